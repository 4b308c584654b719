/* The table of complementary algorithms: sets of operations that, run together, take less time with
 * candidates of which some are slower alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "profiler/profiling.h"
#include "report/members.h"

enum {
  SET,
  SERIAL,
  FASTEST,
  BEST,
  GAIN,
  OVERLAP_FASTEST,
  OVERLAP,
  LIMITER,
  NODE,
  FASTEST_CANDIDATE,
  FASTEST_ALONE,
  BEST_CANDIDATE,
  BEST_ALONE,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [SET] = {"set", "set", 0, CS_COLUMN_ALL, true},
    [SERIAL] = {"serial_us", "serial us", 2, CS_COLUMN_ALL, true},
    [FASTEST] = {"fastest_alone_us", "fastest us", 2, CS_COLUMN_ALL, true},
    [BEST] = {"chosen_us", "chosen us", 2, CS_COLUMN_ALL, true},
    [GAIN] = {"gain", "gain", 3, CS_COLUMN_ALL, true},
    [OVERLAP_FASTEST] = {"fastest_alone_overlap", "overlap fastest", 2, CS_COLUMN_ALL, true},
    [OVERLAP] = {"chosen_overlap", "overlap chosen", 2, CS_COLUMN_ALL, true},
    [LIMITER] = {"limiter", "limiter", CS_COLUMN_TEXT, CS_COLUMN_ALL, true},
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [FASTEST_CANDIDATE] = {"fastest_alone", "fastest alone", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [FASTEST_ALONE] = {"fastest_alone_alone_us", "alone us", 2, CS_COLUMN_ALL, false},
    [BEST_CANDIDATE] = {"chosen", "chosen", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [BEST_ALONE] = {"chosen_alone_us", "alone us", 2, CS_COLUMN_ALL, false},
};

/* Combinations of one set of signatures; fastest: of the least sum of times alone. */
typedef struct outcome {
  const cs_corun *fastest, *best; /* best: the fastest confirmed */
  double alone_us;                /* sum of `fastest` */
} outcome;

typedef struct win {
  const cs_report_nodes *nodes;
  outcome found;
  int *places; /* nodes of the members */
  double gain;
} win;

typedef struct totals {
  win *wins;
  size_t n_wins, capacity;
  int sets, unconfirmed;
  double best_gain;
} totals;

/* The time of a member alone; NaN: its candidate is not there, or may not be planned with. */
static double alone_of(const cs_report_input *input, const cs_corun_member *member) {
  const cs_op_profile *known = cs_profile_find(input->profile, member->signature);
  for (int r = 0; known && r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    if (strcmp(record->candidate.id, member->candidate) != 0) continue;
    bool fits = cs_record_admissible(record, input->workspace_limit, input->deterministic, 0);
    return fits ? record->measured.cold_us : NAN;
  }
  return NAN;
}

static bool is_confirmed(const cs_corun *corun) {
  return corun->samples >= CS_CORUN_CONFIRMED;
}

static void consider(const cs_report_input *input, const cs_corun *corun, outcome *out) {
  double alone = 0;
  for (int i = 0; i < corun->n; i++) alone += alone_of(input, &corun->members[i]);
  if (isnan(alone)) return;
  bool faster = !out->fastest || alone < out->alone_us ||
                (alone == out->alone_us && is_confirmed(corun) && !is_confirmed(out->fastest));
  if (faster) {
    out->fastest = corun;
    out->alone_us = alone;
  }
  if (!is_confirmed(corun)) return;
  if (!out->best || corun->concurrent_us < out->best->concurrent_us) out->best = corun;
}

static bool same_signatures(const cs_corun *a, const cs_corun *b) {
  if (a->n != b->n) return false;
  for (int i = 0; i < a->n; i++) {
    if (strcmp(a->members[i].signature, b->members[i].signature) != 0) return false;
  }
  return true;
}

static void put_set(const outcome *o, int set, cs_table *table) {
  cs_table_number(table, SET, set);
  cs_table_number(table, SERIAL, o->fastest->serial_us);
  cs_table_number(table, FASTEST, o->fastest->concurrent_us);
  cs_table_number(table, BEST, o->best->concurrent_us);
  cs_table_number(table, GAIN, o->fastest->concurrent_us / o->best->concurrent_us);
  cs_table_number(table, OVERLAP_FASTEST, o->fastest->overlap);
  cs_table_number(table, OVERLAP, o->best->overlap);
  if (o->fastest->limiter[0]) cs_table_text(table, LIMITER, "%s", o->fastest->limiter);
}

/* A row a member. */
static void add_win(const cs_report_input *input, const win *w, int set, cs_table *table) {
  const outcome *o = &w->found;
  for (int i = 0; i < o->best->n; i++) {
    const cs_corun_member *fastest = &o->fastest->members[i], *chosen = &o->best->members[i];
    cs_table_row(table, i > 0);
    put_set(o, set, table);
    cs_table_text(table, NODE, "%s", w->nodes->items[w->places[i]].name);
    cs_table_text(table, FASTEST_CANDIDATE, "%s", fastest->candidate);
    cs_table_number(table, FASTEST_ALONE, alone_of(input, fastest));
    cs_table_text(table, BEST_CANDIDATE, "%s", chosen->candidate);
    cs_table_number(table, BEST_ALONE, alone_of(input, chosen));
  }
}

/* By gain, the largest first; then by the names of the nodes; then by signatures, since one set of
 * nodes may be there in several layouts. */
static int by_gain_and_names(const void *a, const void *b) {
  const win *x = a, *y = b;
  const cs_corun *p = x->found.best, *q = y->found.best;
  int n = p->n < q->n ? p->n : q->n, order = 0;
  if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
  for (int i = 0; i < n && order == 0; i++) {
    order = strcmp(x->nodes->items[x->places[i]].name, y->nodes->items[y->places[i]].name);
  }
  if (order == 0) order = (p->n > q->n) - (p->n < q->n);
  for (int i = 0; i < n && order == 0; i++) {
    order = strcmp(p->members[i].signature, q->members[i].signature);
  }
  return order;
}

static void add_wins(const cs_report_input *input, totals *sum, cs_table *table) {
  if (sum->n_wins == 0) return;
  qsort(sum->wins, sum->n_wins, sizeof *sum->wins, by_gain_and_names);
  for (size_t i = 0; i < sum->n_wins; i++) {
    add_win(input, &sum->wins[i], (int)i + 1, table);
  }
}

static void free_wins(totals *sum) {
  for (size_t i = 0; i < sum->n_wins; i++) free(sum->wins[i].places);
  free(sum->wins);
}

/* Counts a set whose fastest combination is confirmed, and keeps it, with *places, if it wins. */
static cs_status count_set(const cs_report_nodes *nodes, const outcome *o, int **places,
                           totals *sum) {
  double gain = o->fastest->concurrent_us / o->best->concurrent_us;
  sum->sets++;
  sum->best_gain = fmax(sum->best_gain, gain);
  if (o->best->concurrent_us > CS_CORUN_WIN * o->fastest->concurrent_us) return CS_OK;
  CS_RETURN_IF_ERROR(cs_grow(&sum->wins, &sum->capacity, sum->n_wins + 1, sizeof *sum->wins));
  sum->wins[sum->n_wins++] = (win){nodes, *o, *places, gain};
  *places = NULL;
  return CS_OK;
}

static cs_status add_set(const cs_report_nodes *nodes, const outcome *o, totals *sum) {
  cs_status st = CS_OK;
  int *places = NULL;
  if (!o->fastest) return CS_OK;
  CS_RETURN_IF_ERROR(cs_report_places(nodes, o->fastest, &places));
  bool chosen = false;
  for (int i = 0; places && i < o->fastest->n; i++) {
    chosen = chosen || nodes->items[places[i]].chosen;
  }
  if (chosen && is_confirmed(o->fastest)) {
    st = count_set(nodes, o, &places, sum);
  } else if (chosen) {
    sum->unconfirmed++;
  }
  free(places);
  return st;
}

static bool is_convolution(const cs_node *node) {
  return node->op == CS_OP_CONV || node->op == CS_OP_CONV_TRANSPOSE;
}

/* Does a convolution behind node `first` not depend on it? `depends` has room for every value. */
static bool has_independent(const cs_graph *graph, int first, bool *depends) {
  memset(depends, 0, (size_t)graph->n_values * sizeof *depends);
  depends[graph->nodes[first].output] = true;
  for (int n = first + 1; n < graph->n_nodes; n++) {
    const cs_node *node = &graph->nodes[n];
    bool reached = false;
    for (int i = 0; i < node->n_inputs; i++) reached = reached || depends[node->inputs[i]];
    if (!reached && is_convolution(node)) return true;
    depends[node->output] = reached;
  }
  return false;
}

/* NOT_FOUND where the network is a chain, and measuring would tell no more. */
static cs_status check_independent(const cs_graph *graph) {
  bool found = false, *depends = cs_calloc((size_t)graph->n_values, sizeof *depends);
  if (!depends) return cs_no_memory("dependencies", (size_t)graph->n_values);
  for (int n = 0; n < graph->n_nodes && !found; n++) {
    found = is_convolution(&graph->nodes[n]) && has_independent(graph, n, depends);
  }
  free(depends);
  if (found) return CS_OK;
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s has no two convolutions that are independent of each other: none can run "
                  "together",
                  graph->name);
}

static cs_status none_measured(const cs_report_input *input, const totals *sum) {
  cs_strbuf command = {0};
  char *text = NULL;
  CS_RETURN_IF_ERROR(check_independent(input->graph));
  cs_report_measure_command(input, " --corun", &command);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&command, &text));
  cs_status st =
      cs_error(CS_CODE_NOT_FOUND,
               "the profile of %s has no operations of %s (batch %lld, %s) that were "
               "measured together%s; %s measures them",
               cs_report_device_name(input), input->graph->name, (long long)input->graph->batch,
               cs_precision_name(input->precision),
               sum->unconfirmed > 0 ? " with the candidates that are fastest alone" : "", text);
  free(text);
  return st;
}

static cs_status finish(const cs_report_input *input, const totals *sum, cs_table *table) {
  if (sum->sets == 0) return none_measured(input, sum);
  cs_table_note(table,
                "Sets measured: %d; won by 3%% or more by candidates chosen together: %d; best "
                "gain: %.3f.",
                sum->sets, (int)sum->n_wins, sum->best_gain);
  if (sum->unconfirmed > 0) {
    cs_table_note(table, "Sets not measured with what is fastest alone by now: %d.",
                  sum->unconfirmed);
  }
  cs_table_note(table,
                "Overlap: share of the concurrent time in which at least two ran (– where "
                "not traced), and limiter: with the candidates that are fastest alone.");
  json_t *summary =
      json_pack("{s:i, s:i, s:i, s:o}", "sets", sum->sets, "wins", (int)sum->n_wins, "unconfirmed",
                sum->unconfirmed, "best_gain", cs_json_number(sum->best_gain));
  if (!summary || json_object_update(table->summary, summary) != 0) table->failed = true;
  json_decref(summary);
  return CS_OK;
}

cs_status cs_report_complementary(const cs_report_input *input, const cs_report_nodes *nodes,
                                  cs_table *out) {
  const cs_corun **coruns = NULL;
  int n = 0;
  totals sum = {0};
  cs_table_init(out, columns, N_COLUMNS);
  CS_RETURN_IF_ERROR(cs_profile_coruns(input->profile, NULL, 0, &coruns, &n));
  bool *taken = cs_calloc((size_t)n + 1, sizeof *taken);
  if (!taken) {
    free(coruns);
    return cs_no_memory("co-runs", (size_t)n);
  }
  cs_status st = CS_OK;
  for (int i = 0; i < n && st == CS_OK; i++) {
    outcome o = {0};
    if (taken[i]) continue;
    for (int k = i; k < n; k++) {
      if (taken[k] || !same_signatures(coruns[i], coruns[k])) continue;
      taken[k] = true;
      consider(input, coruns[k], &o);
    }
    st = add_set(nodes, &o, &sum);
  }
  if (st == CS_OK) {
    add_wins(input, &sum, out);
    st = finish(input, &sum, out);
  }
  free_wins(&sum);
  free(taken);
  free(coruns);
  return st;
}
