/* Latencies: of the policies here, and of other systems as a file of records has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view.h"

/* ---- Policies ---- */

static cs_status policy_tip(const cs_view *view, const cs_policy_view *policy, char **out) {
  char us[32], low[32], high[32], predicted[32], arena[32];
  cs_strbuf tip = {0};
  cs_unit_text(CS_UNIT_US, cs_policy_view_us(policy), us);
  cs_unit_text(CS_UNIT_US, policy->interval.low, low);
  cs_unit_text(CS_UNIT_US, policy->interval.high, high);
  cs_unit_text(CS_UNIT_US, policy->plan->predicted_us, predicted);
  cs_unit_text(CS_UNIT_BYTES, (double)policy->plan->arena_bytes, arena);
  cs_strbuf_printf(&tip, "%s\n%s %s", policy->name, view->not_measured ? "predicted" : "median",
                   us);
  if (policy->latency.n > 0) {
    cs_strbuf_printf(&tip, " (95%% %s to %s, %d samples)\npredicted %s", low, high,
                     policy->latency.n, predicted);
  }
  cs_strbuf_printf(&tip, "\n%d streams, arena %s", policy->plan->n_streams, arena);
  return cs_strbuf_take(&tip, out);
}

cs_status cs_draw_policies(const cs_view *view, const char *style, cs_strbuf *out) {
  cs_status st = CS_OK;
  cs_bar items[16] = {0};
  char *tips[16] = {0}, notes[16][16];
  int n = view->n_policies < 16 ? view->n_policies : 16;
  if (n == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  double base = cs_policy_view_us(&view->policies[0]);
  for (int i = 0; i < n; i++) {
    const cs_policy_view *policy = &view->policies[i];
    bool measured = policy->latency.n > 0;
    CS_TRY(st, policy_tip(view, policy, &tips[i]), done);
    snprintf(notes[i], sizeof notes[i], "%.2f×", base / cs_policy_view_us(policy));
    items[i] = (cs_bar){.name = policy->name,
                        .tip = tips[i],
                        .value = cs_policy_view_us(policy),
                        .low = measured ? policy->interval.low : NAN,
                        .high = measured ? policy->interval.high : NAN,
                        .mark = measured ? policy->plan->predicted_us : NAN,
                        .note = notes[i],
                        .ours = true};
  }
  cs_bars bars = {
      .id = "policies-chart",
      .label = view->not_measured ? "Predicted latency of each policy" : "Latency of each policy",
      .style = style,
      .across = {.title = "latency", .unit = CS_UNIT_US},
      .value_name = "measured, with 95% interval",
      .mark_name = view->not_measured ? NULL : "predicted"};
  cs_figure_bars(out, &bars, items, n);
done:
  for (int i = 0; i < n; i++) free(tips[i]);
  return st;
}

enum {
  POLICY,
  MEDIAN,
  LOW,
  HIGH,
  P10,
  P90,
  SAMPLES,
  PREDICTED,
  GAIN,
  STREAMS,
  ARENA,
  ARENA_TEXT,
  WORKSPACE,
  WORKSPACE_TEXT,
  N_POLICY
};
static const cs_table_column policy_columns[N_POLICY] = {
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [MEDIAN] = {"median_us", "median us", 1, CS_COLUMN_ALL, false},
    [LOW] = {"low_us", "95% from", 1, CS_COLUMN_ALL, false},
    [HIGH] = {"high_us", "to", 1, CS_COLUMN_ALL, false},
    [P10] = {"p10_us", "p10", 1, CS_COLUMN_DATA, false},
    [P90] = {"p90_us", "p90", 1, CS_COLUMN_DATA, false},
    [SAMPLES] = {"samples", "samples", 0, CS_COLUMN_ALL, false},
    [PREDICTED] = {"predicted_us", "predicted us", 1, CS_COLUMN_ALL, false},
    [GAIN] = {"gain", "vs sequential", 2, CS_COLUMN_ALL, false},
    [STREAMS] = {"streams", "streams", 0, CS_COLUMN_ALL, false},
    [ARENA] = {"arena_bytes", "arena", 0, CS_COLUMN_DATA, false},
    [ARENA_TEXT] = {"arena", "arena", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [WORKSPACE] = {"workspace_bytes", "workspace", 0, CS_COLUMN_DATA, false},
    [WORKSPACE_TEXT] = {"workspace", "workspace", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
};

static void put_bytes(cs_table *table, int number, int text, int64_t bytes) {
  char shown[32];
  cs_unit_text(CS_UNIT_BYTES, (double)bytes, shown);
  cs_table_number(table, number, (double)bytes);
  cs_table_text(table, text, "%s", shown);
}

cs_status cs_tabulate_policies(const cs_view *view, cs_table *out) {
  cs_table_init(out, policy_columns, N_POLICY);
  if (view->n_policies == 0) return cs_error(CS_CODE_NOT_FOUND, "%s", view->no_plans);
  for (int i = 0; i < view->n_policies; i++) {
    const cs_policy_view *policy = &view->policies[i];
    cs_table_row(out, false);
    cs_table_text(out, POLICY, "%s", policy->name);
    if (policy->latency.n > 0) {
      cs_table_number(out, MEDIAN, policy->latency.median);
      cs_table_number(out, LOW, policy->interval.low);
      cs_table_number(out, HIGH, policy->interval.high);
      cs_table_number(out, P10, policy->latency.p10);
      cs_table_number(out, P90, policy->latency.p90);
      cs_table_number(out, SAMPLES, policy->latency.n);
    }
    cs_table_number(out, PREDICTED, policy->plan->predicted_us);
    cs_table_number(out, GAIN, cs_policy_view_us(&view->policies[0]) / cs_policy_view_us(policy));
    cs_table_number(out, STREAMS, policy->plan->n_streams);
    put_bytes(out, ARENA, ARENA_TEXT, policy->plan->arena_bytes);
    put_bytes(out, WORKSPACE, WORKSPACE_TEXT, policy->plan->workspace_peak);
  }
  if (view->policies[0].latency.n == 0) {
    for (int c = MEDIAN; c <= SAMPLES; c++) cs_table_hide(out, c);
  }
  return CS_OK;
}

/* ---- Other systems ---- */

/* The model by the file's name, and as records have it. */
static bool is_of_view(const cs_view *view, const cs_measured *m) {
  const cs_report_input *report = view->report;
  return strcmp(m->model, report->graph->name) == 0 && m->batch == report->graph->batch &&
         strcmp(m->dtype, cs_precision_name(report->precision)) == 0 && m->in_flight == 0 &&
         !m->predicted;
}

static int by_median(const void *a, const void *b) {
  const cs_measured *x = *(const cs_measured *const *)a, *y = *(const cs_measured *const *)b;
  return x->median != y->median ? (x->median < y->median ? -1 : 1) : strcmp(x->key, y->key);
}

/* Of this model, dtype and batch, fastest first. free() releases. */
static cs_status find_peers(const cs_view *view, const cs_measured ***out, int *n) {
  const cs_report_input *report = view->report;
  *n = 0;
  *out = NULL;
  if (!view->peers) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "no file of other systems' records was given (--peers FILE)");
  }
  *out = cs_calloc(view->peers->n + 1, sizeof(const cs_measured *));
  if (!*out) return cs_no_memory("records", view->peers->n * sizeof(void *));
  for (size_t i = 0; i < view->peers->n; i++) {
    if (is_of_view(view, &view->peers->items[i])) (*out)[(*n)++] = &view->peers->items[i];
  }
  if (*n == 0) {
    free(*out);
    *out = NULL;
    return cs_error(CS_CODE_NOT_FOUND, "%s has no latency of %s, %s, batch %lld", view->peers->path,
                    report->graph->name, cs_precision_name(report->precision),
                    (long long)report->graph->batch);
  }
  qsort(*out, (size_t)*n, sizeof **out, by_median);
  return CS_OK;
}

static bool is_ours(const cs_measured *m) {
  int n;
  const cs_policy *const *all = cs_policy_all(&n);
  for (int i = 0; i < n; i++) {
    if (strcmp(m->contender, all[i]->name) == 0) return true;
  }
  return false;
}

typedef struct peer_text {
  char name[96], tip[256], note[16];
} peer_text;

static void fill_peer(const cs_measured *m, double fastest, peer_text *text, cs_bar *bar) {
  char us[32], low[32], high[32];
  cs_unit_text(CS_UNIT_US, m->median, us);
  cs_unit_text(CS_UNIT_US, m->low, low);
  cs_unit_text(CS_UNIT_US, m->high, high);
  snprintf(text->name, sizeof text->name, "%s%s%s%s", is_ours(m) ? "convsched " : "", m->contender,
           m->layout ? " " : "", m->layout ? m->layout : "");
  snprintf(text->tip, sizeof text->tip, "%s\nmedian %s (95%% %s to %s, %d samples)", text->name, us,
           low, high, m->samples);
  snprintf(text->note, sizeof text->note, "%.2f×", m->median / fastest);
  *bar = (cs_bar){.name = text->name,
                  .tip = text->tip,
                  .value = m->median,
                  .low = m->low,
                  .high = m->high,
                  .mark = NAN,
                  .note = text->note,
                  .ours = is_ours(m)};
}

cs_status cs_draw_peers(const cs_view *view, const char *style, cs_strbuf *out) {
  const cs_measured **found = NULL;
  int n = 0;
  CS_RETURN_IF_ERROR(find_peers(view, &found, &n));
  cs_bar *items = cs_calloc((size_t)n, sizeof *items);
  peer_text *texts = cs_calloc((size_t)n, sizeof *texts);
  cs_bars bars = {.id = "peers-chart",
                  .label = "Latency beside other systems",
                  .style = style,
                  .across = {.title = "latency", .unit = CS_UNIT_US}};
  for (int i = 0; items && texts && i < n; i++)
    fill_peer(found[i], found[0]->median, &texts[i], &items[i]);
  if (items && texts) cs_figure_bars(out, &bars, items, n);
  cs_status st = items && texts ? CS_OK : cs_no_memory("bars", (size_t)n * sizeof *items);
  free(items);
  free(texts);
  free(found);
  return st;
}

cs_status cs_view_peer_devices(const cs_view *view, char **out) {
  return cs_records_list(view->peers, "device", "name", out);
}

enum { CONTENDER, LAYOUT, PEER_MEDIAN, PEER_LOW, PEER_HIGH, PEER_SAMPLES, N_PEER };
static const cs_table_column peer_columns[N_PEER] = {
    [CONTENDER] = {"contender", "system", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [LAYOUT] = {"layout", "layout", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [PEER_MEDIAN] = {"median_us", "median us", 1, CS_COLUMN_ALL, false},
    [PEER_LOW] = {"low_us", "95% from", 1, CS_COLUMN_ALL, false},
    [PEER_HIGH] = {"high_us", "to", 1, CS_COLUMN_ALL, false},
    [PEER_SAMPLES] = {"samples", "samples", 0, CS_COLUMN_ALL, false},
};

cs_status cs_tabulate_peers(const cs_view *view, cs_table *out) {
  const cs_measured **found = NULL;
  int n = 0;
  cs_table_init(out, peer_columns, N_PEER);
  CS_RETURN_IF_ERROR(find_peers(view, &found, &n));
  for (int i = 0; i < n; i++) {
    cs_table_row(out, false);
    cs_table_text(out, CONTENDER, "%s", found[i]->contender);
    if (found[i]->layout) cs_table_text(out, LAYOUT, "%s", found[i]->layout);
    cs_table_number(out, PEER_MEDIAN, found[i]->median);
    cs_table_number(out, PEER_LOW, found[i]->low);
    cs_table_number(out, PEER_HIGH, found[i]->high);
    cs_table_number(out, PEER_SAMPLES, found[i]->samples);
  }
  free(found);
  return CS_OK;
}
