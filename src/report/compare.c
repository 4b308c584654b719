#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Of each median; that of two together is 0.95 at least (Bonferroni). */
#define CONFIDENCE 0.975
#define LEAST_SAMPLES 7 /* of which an interval of a median has that confidence */

enum {
  MODEL,
  DTYPE,
  BATCH,
  CONTENDER,
  LAYOUT,
  METRIC,
  A,
  A_LOW,
  A_HIGH,
  B,
  B_LOW,
  B_HIGH,
  SLOWDOWN,
  SLOWDOWN_LOW,
  SLOWDOWN_HIGH,
  INTERVAL,
  VERDICT,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [MODEL] = {"model", "model", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [DTYPE] = {"dtype", "dtype", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [BATCH] = {"batch", "batch", 0, CS_COLUMN_ALL, false},
    [CONTENDER] = {"contender", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [LAYOUT] = {"layout", "layout", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [METRIC] = {"metric", "metric", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [A] = {"a", "A", 1, CS_COLUMN_ALL, false},
    [A_LOW] = {"a_low", "", 1, CS_COLUMN_DATA, false},
    [A_HIGH] = {"a_high", "", 1, CS_COLUMN_DATA, false},
    [B] = {"b", "B", 1, CS_COLUMN_ALL, false},
    [B_LOW] = {"b_low", "", 1, CS_COLUMN_DATA, false},
    [B_HIGH] = {"b_high", "", 1, CS_COLUMN_DATA, false},
    [SLOWDOWN] = {"slowdown", "B's time over A's", 3, CS_COLUMN_ALL, false},
    [SLOWDOWN_LOW] = {"slowdown_low", "", 3, CS_COLUMN_DATA, false},
    [SLOWDOWN_HIGH] = {"slowdown_high", "", 3, CS_COLUMN_DATA, false},
    [INTERVAL] = {"interval", "95% interval", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [VERDICT] = {"verdict", "B is", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
};

typedef struct comparison {
  cs_records a, b;
  double max_regression; /* percent; below 0: none */
  int rows, faster, slower, same, regressions;
  int few; /* rows with too few samples for the interval */
  double worst;
} comparison;

/* B's time over A's: of rates their inverse. */
typedef struct slowdown {
  double ratio, low, high;
} slowdown;

static slowdown slowdown_of(const cs_measured *a, const cs_measured *b) {
  if (a->in_flight > 0) {
    return (slowdown){a->median / b->median, a->low / b->high, a->high / b->low};
  }
  return (slowdown){b->median / a->median, b->low / a->high, b->high / a->low};
}

static bool is_sure(const cs_measured *m) {
  return m->predicted || m->samples >= LEAST_SAMPLES;
}

static const char *judge(comparison *c, const slowdown *s) {
  if (s->low > 1) {
    c->slower++;
    if (c->max_regression < 0 || s->ratio <= 1 + c->max_regression / 100) return "slower";
    c->regressions++;
    return "a regression";
  }
  if (s->high < 1) {
    c->faster++;
    return "faster";
  }
  c->same++;
  return "the same";
}

static void put_metric(const cs_measured *m, cs_table *table) {
  if (m->in_flight > 0) {
    cs_table_text(table, METRIC, "images/s, %d in flight", m->in_flight);
  } else {
    cs_table_text(table, METRIC, m->predicted ? "predicted us" : "latency us");
  }
}

static void add_row(comparison *c, const cs_measured *a, const cs_measured *b, cs_table *table) {
  slowdown s = slowdown_of(a, b);
  cs_table_row(table, false);
  cs_table_text(table, MODEL, "%s", a->model);
  cs_table_text(table, DTYPE, "%s", a->dtype);
  cs_table_number(table, BATCH, (double)a->batch);
  cs_table_text(table, CONTENDER, "%s", a->contender);
  if (a->layout) cs_table_text(table, LAYOUT, "%s", a->layout);
  put_metric(a, table);
  cs_table_number(table, A, a->median);
  cs_table_number(table, A_LOW, a->low);
  cs_table_number(table, A_HIGH, a->high);
  cs_table_number(table, B, b->median);
  cs_table_number(table, B_LOW, b->low);
  cs_table_number(table, B_HIGH, b->high);
  cs_table_number(table, SLOWDOWN, s.ratio);
  cs_table_number(table, SLOWDOWN_LOW, s.low);
  cs_table_number(table, SLOWDOWN_HIGH, s.high);
  cs_table_text(table, INTERVAL, "%.3f to %.3f", s.low, s.high);
  cs_table_text(table, VERDICT, "%s", judge(c, &s));
  c->rows++;
  c->few += !is_sure(a) || !is_sure(b);
  if (s.ratio > c->worst) c->worst = s.ratio;
}

/* ---- Around the rows ---- */

/* "Only in A: 3, the first of them googlenet f16 batch 1, streams." */
static void note_missing(const char *name, const cs_records *in, const cs_records *other,
                         cs_table *table) {
  int n = 0;
  const char *first = NULL;
  for (size_t i = 0; i < in->n; i++) {
    if (cs_records_find(other, in->items[i].key)) continue;
    if (n++ == 0) first = in->items[i].key;
  }
  if (n > 0) cs_table_note(table, "Only in %s: %d, the first of them %s.", name, n, first);
  if (in->repeated > 0) {
    cs_table_note(table, "%d results of %s were measured again later in it; the last count.",
                  in->repeated, name);
  }
}

static cs_status describe_side(const char *name, const cs_records *side, cs_table *table) {
  char *device = NULL, *commit = NULL, key[] = {(char)(name[0] + ('a' - 'A')), 0};
  cs_status st = CS_OK;
  CS_TRY(st, cs_records_list(side, "device", "name", &device), done);
  CS_TRY(st, cs_records_list(side, NULL, "commit", &commit), done);
  cs_table_note(table, "%s: %s; %s; commit %s.", name, side->path, device, commit);
  json_t *about = json_pack("{s:o, s:s, s:s}", "path", cs_json_text(side->path), "device", device,
                            "commit", commit);
  if (!about || json_object_set_new(table->about, key, about) != 0) table->failed = true;
done:
  free(device);
  free(commit);
  return st;
}

static cs_status finish(comparison *c, cs_table *table) {
  cs_table_title(table, "compare: %s (A) and %s (B)", c->a.path, c->b.path);
  if (json_object_set_new(table->about, "table", json_string("compare")) != 0) table->failed = true;
  CS_RETURN_IF_ERROR(describe_side("A", &c->a, table));
  CS_RETURN_IF_ERROR(describe_side("B", &c->b, table));
  cs_table_note(table, "Of %d that both have, B is faster in %d, slower in %d, the same in %d.",
                c->rows, c->faster, c->slower, c->same);
  if (c->max_regression >= 0) {
    cs_table_note(table, "Slower by more than %g%%: %d.", c->max_regression, c->regressions);
  }
  note_missing("A", &c->a, &c->b, table);
  note_missing("B", &c->b, &c->a, table);
  if (c->few > 0) {
    cs_table_note(table,
                  "Rows with fewer than %d samples of A or B, whose interval has less confidence: "
                  "%d.",
                  LEAST_SAMPLES, c->few);
  }
  json_t *summary = json_pack("{s:i, s:i, s:i, s:i, s:i, s:o}", "rows", c->rows, "faster",
                              c->faster, "slower", c->slower, "same", c->same, "regressions",
                              c->regressions, "worst", cs_json_number(c->worst));
  if (!summary || json_object_update(table->summary, summary) != 0) table->failed = true;
  json_decref(summary);
  return CS_OK;
}

cs_status cs_report_compare(const char *path_a, const char *path_b, double max_regression,
                            cs_table *out) {
  comparison c = {.max_regression = max_regression};
  cs_status st = CS_OK;
  *out = (cs_table){0};
  CS_TRY(st, cs_records_read(path_a, CONFIDENCE, &c.a), done);
  CS_TRY(st, cs_records_read(path_b, CONFIDENCE, &c.b), done);
  cs_table_init(out, columns, N_COLUMNS);
  bool layouts = false;
  for (size_t i = 0; i < c.a.n; i++) {
    const cs_measured *b = cs_records_find(&c.b, c.a.items[i].key);
    if (!b) continue;
    add_row(&c, &c.a.items[i], b, out);
    layouts = layouts || b->layout;
  }
  if (!layouts) cs_table_hide(out, LAYOUT);
  if (c.rows == 0) {
    st = cs_error(CS_CODE_NOT_FOUND,
                  "%s and %s have nothing in common: the first has %s, the second %s", path_a,
                  path_b, c.a.items[0].key, c.b.items[0].key);
    goto done;
  }
  st = finish(&c, out);
done:
  cs_records_free(&c.a);
  cs_records_free(&c.b);
  return st;
}
