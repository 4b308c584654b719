/* The table of workspaces: every algorithm of a node, what memory it wants and how long it takes.
 */
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

enum {
  NODE,
  ALGORITHM,
  FAMILY,
  LAYOUT,
  CANDIDATE,
  WORKSPACE,
  WORKSPACE_TEXT,
  COLD,
  CONFIGURATIONS,
  PAPER_WORKSPACE,
  PAPER_WORKSPACE_TEXT,
  PAPER_TIME,
  REJECTED,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [ALGORITHM] = {"algorithm", "algorithm", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [FAMILY] = {"family", "family", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [LAYOUT] = {"layout", "layout", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [CANDIDATE] = {"candidate", "candidate", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [WORKSPACE] = {"workspace_bytes", "workspace", 0, CS_COLUMN_DATA, false},
    [WORKSPACE_TEXT] = {"workspace", "workspace", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [COLD] = {"cold_us", "time us", 2, CS_COLUMN_ALL, false},
    [CONFIGURATIONS] = {"configurations", "of", 0, CS_COLUMN_ALL, false},
    [PAPER_WORKSPACE] = {"paper_workspace_bytes", "paper workspace", 0, CS_COLUMN_DATA, false},
    [PAPER_WORKSPACE_TEXT] = {"paper_workspace", "paper workspace", CS_COLUMN_TEXT,
                              CS_COLUMN_PERSON, false},
    [PAPER_TIME] = {"paper_ms", "paper ms", 0, CS_COLUMN_ALL, false},
    [REJECTED] = {"rejected", "rejected", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
};

/* The best configuration of one algorithm; rejected only if all of them are. */
typedef struct algorithm {
  cs_algorithm_kind kind;
  char name[64];
  const cs_report_op *op;
  const cs_record *best;
  int configurations; /* measured, over all layouts */
} algorithm;

typedef struct algorithm_list {
  algorithm *items;
  size_t n, capacity;
} algorithm_list;

static bool is_better(const cs_measurement *a, const cs_measurement *b) {
  if (a->rejected != b->rejected) return b->rejected;
  return !a->rejected && a->cold_us < b->cold_us;
}

static cs_status add_record(algorithm_list *list, const cs_report_op *op, const cs_record *record) {
  char name[64];
  cs_algorithm_kind kind = cs_report_algorithm(&record->candidate, name);
  for (size_t i = 0; i < list->n; i++) {
    algorithm *known = &list->items[i];
    if (known->kind != kind || strcmp(known->name, name) != 0) continue;
    known->configurations++;
    if (is_better(&record->measured, &known->best->measured)) {
      known->op = op;
      known->best = record;
    }
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items));
  algorithm *added = &list->items[list->n++];
  *added = (algorithm){.kind = kind, .op = op, .best = record, .configurations = 1};
  memcpy(added->name, name, sizeof name);
  return CS_OK;
}

/* Legacy algorithms, then engines, then others; within each by time, rejected ones last. */
static int by_kind_and_time(const void *a, const void *b) {
  const algorithm *x = a, *y = b;
  if (x->kind != y->kind) return (int)x->kind - (int)y->kind;
  if (is_better(&x->best->measured, &y->best->measured)) return -1;
  if (is_better(&y->best->measured, &x->best->measured)) return 1;
  return strcmp(x->name, y->name);
}

/* Bytes in a column of data, and for a person in the column `text`. */
static void put_bytes(cs_table *table, int column, int text, double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 3; unit++) value /= 1024;
  cs_table_number(table, column, bytes);
  cs_table_text(table, text, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

static void put_algorithm(const algorithm *a, cs_table *table) {
  const cs_measurement *measured = &a->best->measured;
  cs_table_text(table, ALGORITHM, "%s", a->name);
  cs_table_text(table, FAMILY, "%s", a->best->candidate.family);
  cs_table_text(table, LAYOUT, "%s", cs_layout_name(a->op->layout));
  cs_table_text(table, CANDIDATE, "%s", a->best->candidate.id);
  cs_table_number(table, CONFIGURATIONS, a->configurations);
  put_bytes(table, WORKSPACE, WORKSPACE_TEXT, (double)a->best->candidate.workspace_bytes);
  if (measured->rejected) {
    cs_table_text(table, REJECTED, "%s", measured->reason ? measured->reason : "");
  } else {
    cs_table_number(table, COLD, measured->cold_us);
    cs_table_text(table, REJECTED, "%s", "");
  }
}

static void put_paper(const cs_paper_workspace *paper, cs_table *table) {
  put_bytes(table, PAPER_WORKSPACE, PAPER_WORKSPACE_TEXT, paper->workspace_bytes);
  cs_table_number(table, PAPER_TIME, paper->time_ms);
}

/* The paper's figures stand beside the legacy algorithm of the same name, or in rows of their own.
 */
static void add_rows(const cs_report_node *node, const algorithm_list *list,
                     const cs_paper_workspace *paper, int n_paper, cs_table *table) {
  for (size_t i = 0; i < list->n; i++) {
    cs_table_row(table, i > 0);
    cs_table_text(table, NODE, "%s", node->name);
    put_algorithm(&list->items[i], table);
    for (int p = 0; p < n_paper && list->items[i].kind == CS_ALGORITHM_LEGACY; p++) {
      if (strcmp(paper[p].algorithm, list->items[i].name) == 0) put_paper(&paper[p], table);
    }
  }
  for (int p = 0; p < n_paper; p++) {
    bool beside = false;
    for (size_t i = 0; i < list->n && !beside; i++) {
      beside = list->items[i].kind == CS_ALGORITHM_LEGACY &&
               strcmp(paper[p].algorithm, list->items[i].name) == 0;
    }
    if (beside) continue;
    cs_table_row(table, true);
    cs_table_text(table, NODE, "%s", node->name);
    cs_table_text(table, ALGORITHM, "%s", paper[p].algorithm);
    cs_table_text(table, FAMILY, "paper");
    put_paper(&paper[p], table);
  }
}

static cs_status add_node(const cs_report_input *input, const cs_report_node *node, bool *papered,
                          cs_table *table) {
  algorithm_list list = {0};
  cs_status st = CS_OK;
  for (int k = 0; k < node->n_ops; k++) {
    const cs_op_profile *known = node->ops[k].known;
    for (int r = 0; known && r < known->n_records && st == CS_OK; r++) {
      st = add_record(&list, &node->ops[k], &known->records[r]);
    }
  }
  if (st == CS_OK && list.n > 0) {
    int n_paper = 0;
    const cs_paper_workspace *paper =
        input->paper ? cs_paper_workspace_of(&node->desc, &n_paper) : NULL;
    qsort(list.items, list.n, sizeof *list.items, by_kind_and_time);
    add_rows(node, &list, paper, n_paper, table);
    *papered = *papered || n_paper > 0;
  }
  free(list.items);
  return st;
}

cs_status cs_report_workspace(const cs_report_input *input, const cs_report_nodes *nodes,
                              cs_table *out) {
  bool papered = false;
  cs_table_init(out, columns, N_COLUMNS);
  for (int i = 0; i < nodes->n; i++) {
    if (!nodes->items[i].chosen) continue;
    CS_RETURN_IF_ERROR(add_node(input, &nodes->items[i], &papered, out));
  }
  if (!papered) {
    cs_table_hide(out, PAPER_WORKSPACE);
    cs_table_hide(out, PAPER_WORKSPACE_TEXT);
    cs_table_hide(out, PAPER_TIME);
  }
  cs_table_note(out,
                "Of each algorithm the fastest of its configurations (\"of\" so many), over "
                "all layouts; workspaces beyond the limit of the measurement are not there.");
  if (input->paper) {
    cs_table_note(out, papered ? "Paper: %s." : "Paper: no figures of these nodes in %s.",
                  cs_paper_source);
  }
  return CS_OK;
}
