/* One case on one device: measured, sorted into rungs, recorded. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/json.h"
#include "cli/bench.h"
#include "commit.h"

typedef struct measured {
  const cli_options *options;
  const bench_ladder *ladder;
  bench_device *device;
  const bench_case *one;
  json_t *told;                       /* of cs_bench_operation */
  char skipped[BENCH_MOST_RUNGS][96]; /* why a baseline was not asked for; "": it was */
} measured;

/* ---- What is asked for ---- */

/* A baseline by whose rate one run would take too long is not asked for. */
static void skip_slow(measured *m, int rung) {
  const bench_rung *of = &m->ladder->rungs[rung];
  bool known = m->device->rates[rung] > 0;
  double rate = known ? m->device->rates[rung] : of->assumed[m->device->on_cpu ? 0 : 1];
  double seconds = rate > 0 ? bench_case_flops(m->one) / rate : 0;
  m->skipped[rung][0] = '\0';
  if (seconds <= m->options->naive_seconds) return;
  snprintf(m->skipped[rung], sizeof m->skipped[rung],
           "some %.2g s a run%s, more than --naive-seconds %g", seconds,
           known ? " by its rate so far" : "", m->options->naive_seconds);
}

/* Patterns of the baselines that are asked for; returns how many. */
static int patterns_of(measured *m, const char *out[BENCH_MOST_RUNGS * BENCH_MOST_PATTERNS]) {
  int n = 0;
  for (int r = 0; r < m->ladder->n; r++) {
    const bench_rung *rung = &m->ladder->rungs[r];
    const char *const *patterns = bench_patterns(rung, m->device->on_cpu);
    if (!m->ladder->wanted[r] || !rung->baseline[m->device->on_cpu ? 0 : 1]) continue;
    skip_slow(m, r);
    for (int p = 0; patterns[p] && !m->skipped[r][0]; p++) out[n++] = patterns[p];
  }
  return n;
}

static cs_status measure(measured *m, cs_precision precision) {
  const char *patterns[BENCH_MOST_RUNGS * BENCH_MOST_PATTERNS];
  cs_session_options session;
  cs_graph *graph = NULL;
  char *text = NULL;
  int64_t batch = 1;
  CS_RETURN_IF_ERROR(bench_case_graph(m->one, &graph, &batch));
  cli_session_options(m->options, batch, precision, NULL, &session);
  session.n_allows = patterns_of(m, patterns);
  session.allows = patterns;
  cs_status st = cs_bench_operation(m->device->device, graph, &session, &text);
  cs_graph_destroy(graph);
  if (st != CS_OK) return cs_annotate(st, "%s on %s: ", m->one->name, m->device->spec);
  m->told = json_loads(text, 0, NULL);
  cs_string_free(text);
  return m->told ? CS_OK : cs_no_memory("a bench", 0);
}

/* ---- Rungs ---- */

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static double number_of(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* The first that the candidate is of; −1: none. */
static int rung_of(const measured *m, const char *id) {
  for (int r = 0; r < m->ladder->n; r++) {
    const char *const *patterns = bench_patterns(&m->ladder->rungs[r], m->device->on_cpu);
    for (int p = 0; patterns[p]; p++)
      if (fnmatch(patterns[p], id, 0) == 0) return r;
  }
  return -1;
}

/* The fastest candidate of a rung (−1: of all); NULL: none. *rejected: one that was, if any. */
static const json_t *fastest(const measured *m, int rung, const json_t **rejected) {
  size_t i;
  json_t *candidate;
  const json_t *best = NULL;
  *rejected = NULL;
  json_array_foreach(json_object_get(m->told, "candidates"), i, candidate) {
    int own = rung_of(m, text_of(candidate, "id"));
    if (rung >= 0 ? own != rung : own >= 0 && !m->ladder->wanted[own]) continue;
    if (json_is_true(json_object_get(candidate, "rejected"))) {
      *rejected = candidate;
    } else if (!best || number_of(candidate, "warm_us") < number_of(best, "warm_us")) {
      best = candidate;
    }
  }
  return best;
}

static json_t *times_json(const measured *m, const json_t *candidate) {
  static const char *const copied[] = {"id",     "layout", "workspace_bytes", "cold_us", "warm_us",
                                       "p10_us", "p90_us", "variation",       "samples"};
  json_t *json = json_object();
  double rate = number_of(m->told, "flops") / number_of(candidate, "warm_us") * 1e6;
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
    json_object_set(json, copied[i], json_object_get(candidate, copied[i]));
  json_object_set_new(json, "flop_per_s", cs_json_number(rate));
  json_object_set_new(json, "share_of_peak",
                      cs_json_number(rate / number_of(m->told, "peak_flops")));
  return json;
}

static json_t *rung_json(measured *m, int rung, int *wrong) {
  const json_t *rejected, *best = fastest(m, rung, &rejected);
  json_t *json = best ? times_json(m, best) : json_object();
  json_object_set_new(json, "rung", json_string(m->ladder->rungs[rung].name));
  if (best) {
    m->device->rates[rung] = number_of(json, "flop_per_s");
    return json;
  }
  const char *why = m->skipped[rung][0] ? m->skipped[rung]
                    : rejected          ? text_of(rejected, "reason")
                                        : "the device offers none for this";
  *wrong += rejected != NULL && !m->skipped[rung][0];
  json_object_set_new(json, "skipped", cs_json_text(why));
  return json;
}

static json_t *rungs_json(measured *m, int *wrong) {
  json_t *list = json_array();
  for (int r = 0; r < m->ladder->n; r++) {
    bool has = bench_patterns(&m->ladder->rungs[r], m->device->on_cpu)[0] != NULL;
    if (has && m->ladder->wanted[r]) json_array_append_new(list, rung_json(m, r, wrong));
  }
  return list;
}

static json_t *rejected_json(const measured *m) {
  size_t i;
  json_t *candidate, *list = json_array();
  json_array_foreach(json_object_get(m->told, "candidates"), i, candidate) {
    if (!json_is_true(json_object_get(candidate, "rejected"))) continue;
    json_array_append_new(list, json_pack("{s:O, s:O, s:O}", "id", json_object_get(candidate, "id"),
                                          "layout", json_object_get(candidate, "layout"), "reason",
                                          json_object_get(candidate, "reason")));
  }
  return list;
}

/* ---- The record ---- */

static json_t *shape_json(const bench_case *one) {
  if (one->kind == BENCH_GEMM)
    return json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)one->rows, "features",
                     (json_int_t)one->features, "inputs", (json_int_t)one->inputs);
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "channels", (json_int_t)one->channels,
                   "height", (json_int_t)one->height, "width", (json_int_t)one->width,
                   "out_channels", (json_int_t)one->filters, "kernel", (json_int_t)one->kernel,
                   "stride", (json_int_t)one->stride, "pad", (json_int_t)one->pad);
}

static json_t *device_json(const bench_device *device) {
  json_t *json = json_copy(device->info);
  json_object_set_new(json, "spec", json_string(device->spec));
  return json;
}

static cs_status record(measured *m, cs_precision precision, json_t **out, int *wrong) {
  char started[32];
  time_t now = time(NULL);
  struct tm utc;
  const json_t *unused;
  const json_t *best = fastest(m, -1, &unused);
  strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  json_t *json = json_pack(
      "{s:s, s:s, s:s, s:o, s:s, s:o, s:s, s:s, s:f, s:o, s:o, s:O, s:O, s:O, s:O, s:i, s:o, s:o, "
      "s:o}",
      "schema", "convsched.bench/1", "commit", CS_COMMIT, "command", cli_command_line, "device",
      device_json(m->device), "dtype", cs_precision_name(precision), "batch",
      m->one->kind == BENCH_GEMM ? json_null() : json_integer(m->one->batch), "bench",
      bench_kind_name(m->one->kind), "case", m->one->name, "at", m->one->at, "shape",
      shape_json(m->one), "started", json_string(started), "flops",
      json_object_get(m->told, "flops"), "bytes", json_object_get(m->told, "bytes"), "peak_flops",
      json_object_get(m->told, "peak_flops"), "peak_bandwidth",
      json_object_get(m->told, "peak_bandwidth"), "candidates",
      (int)json_array_size(json_object_get(m->told, "candidates")), "rejected", rejected_json(m),
      "rungs", rungs_json(m, wrong), "best", best ? times_json(m, best) : json_null());
  if (!json) return cs_no_memory("a record", 0);
  *out = json;
  return CS_OK;
}

cs_status bench_measure(const cli_options *options, const bench_ladder *ladder,
                        bench_device *device, const bench_case *one, cs_precision precision,
                        json_t **out, int *wrong) {
  measured m = {.options = options, .ladder = ladder, .device = device, .one = one};
  *out = NULL;
  cs_status st = measure(&m, precision);
  if (st == CS_OK) st = record(&m, precision, out, wrong);
  json_decref(m.told);
  return st;
}
