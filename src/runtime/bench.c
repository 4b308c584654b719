/* cs_bench_operation: the candidates of one operation, baselines among them, and what of the
 * device's sustained rates each reaches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "profiler/measure_session.h"
#include "profiler/profiling.h"
#include "report/bench.h"
#include "runtime/planning.h"

typedef struct bench {
  cs_session *session; /* planned.graph: the operation alone */
  cs_measure_options measure;
  cs_profile *profile;
  json_t *root, *candidates;
} bench;

static cs_status check_graph(const cs_graph *graph) {
  if (graph->n_nodes == 1) return CS_OK;
  return cs_error(CS_CODE_USAGE, "%s: %d operations after passes, wanted one alone", graph->name,
                  graph->n_nodes);
}

/* ---- Candidates ---- */

static json_t *candidate_json(const cs_record *record, const cs_op_desc *desc, bool baseline) {
  const cs_measurement *m = &record->measured;
  json_t *json =
      json_pack("{s:s, s:s, s:s, s:b, s:i, s:I, s:b}", "id", record->candidate.id, "family",
                record->candidate.family, "layout", cs_layout_name(desc->output.layout), "baseline",
                baseline, "threads", record->candidate.threads, "workspace_bytes",
                (json_int_t)record->candidate.workspace_bytes, "rejected", m->rejected);
  if (!json) return NULL;
  if (m->rejected) {
    json_object_set_new(json, "reason", cs_json_text(m->reason ? m->reason : ""));
    return json;
  }
  json_t *times = json_pack("{s:f, s:f, s:f, s:f, s:f, s:i}", "cold_us", m->cold_us, "warm_us",
                            m->warm_us, "p10_us", m->p10_us, "p90_us", m->p90_us, "variation",
                            m->variation, "samples", m->samples);
  if (times) json_object_update(json, times);
  json_decref(times);
  return json;
}

/* Of this enumeration's threads; baselines of whatever number, if there are any at all. */
static cs_status add_candidates(bench *b, const cs_op_desc *desc, const char *signature) {
  const cs_op_profile *known = cs_profile_find(b->profile, signature);
  cs_enumerate_options all = {
      .workspace_limit = b->measure.workspace_limit, .full = true, .threads = b->measure.threads};
  cs_candidate_list baselines = {0};
  cs_status st = cs_add_baselines(b->session->device->backend, desc, &all, &baselines);
  for (int r = 0; st == CS_OK && known && r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    int threads = record->candidate.threads;
    bool baseline = cs_candidate_find(&baselines, record->candidate.id) != NULL;
    bool is_own = threads == 0 || threads == b->measure.threads;
    if (record->absent || !(is_own || baseline) ||
        record->candidate.workspace_bytes > b->measure.workspace_limit)
      continue;
    json_t *json = candidate_json(record, desc, baseline);
    if (!json || json_array_append_new(b->candidates, json) != 0)
      st = cs_no_memory("a candidate", 0);
  }
  cs_candidate_list_free(&baselines);
  return st;
}

/* ---- The operation in one layout ---- */

static cs_status measure_task(bench *b, const cs_program *program, int task) {
  cs_status st = CS_OK;
  cs_measure_report report = {0};
  char *signature = NULL;
  bool *tasks = cs_calloc((size_t)program->n_tasks, sizeof *tasks);
  if (!tasks) return cs_no_memory("tasks", (size_t)program->n_tasks);
  tasks[task] = true;
  cs_profiling profiling = {.profile = b->profile,
                            .backend = b->session->device->backend,
                            .program = program,
                            .tasks = tasks,
                            .options = &b->measure,
                            .logger = &b->session->device->logger};
  CS_TRY(st, cs_profiling_measure(&profiling, &report), done);
  CS_TRY(st, cs_op_signature(&program->tasks[task].desc, &signature), done);
  st = add_candidates(b, &program->tasks[task].desc, signature);
done:
  free(signature);
  free(tasks);
  return st;
}

static cs_status measure_program(bench *b, const cs_program *program) {
  const char *name = b->session->planned.graph->nodes[0].name;
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_op_desc *desc = &program->tasks[t].desc;
    if (strcmp(program->tasks[t].name, name) != 0) continue;
    json_object_set_new(b->root, "operation", json_string(cs_op_name(desc->op)));
    json_object_set_new(b->root, "flops", json_real(cs_op_flops(desc)));
    json_object_set_new(b->root, "bytes", json_real(cs_op_bytes(desc)));
    return measure_task(b, program, t);
  }
  return cs_error(CS_CODE_INTERNAL, "%s: %s is not run", b->session->planned.graph->name, name);
}

static cs_status measure_layout(bench *b, cs_layout layout) {
  const cs_graph *graph = b->session->planned.graph;
  cs_program *program = NULL;
  cs_layout *layouts = cs_calloc((size_t)graph->n_values, sizeof *layouts);
  if (!layouts) return cs_no_memory("layouts", (size_t)graph->n_values * sizeof *layouts);
  cs_graph_uniform_layouts(graph, layout, layouts);
  cs_status st = cs_program_lower(graph, b->session->settings.options.precision, layouts, &program);
  if (st == CS_OK) st = measure_program(b, program);
  cs_program_destroy(program);
  free(layouts);
  return st;
}

static bool is_matrix(const cs_graph *graph) {
  return graph->values[graph->nodes[0].output].shape.rank != 4;
}

/* One whose tensors are too large for the device, as blocked layouts of few channels are, is left
 * out, unless all are. */
static cs_status measure_all_layouts(bench *b, const cs_layout *layouts, int n) {
  cs_status left_out = CS_OK;
  bool some = false;
  for (int i = 0; i < n; i++) {
    cs_status st = measure_layout(b, layouts[i]);
    some = some || st == CS_OK;
    if (st == CS_OK) continue;
    cs_status_free(left_out);
    left_out = st;
    if (cs_status_code(st) != CS_CODE_NO_MEMORY) return st;
    cs_log(&b->session->device->logger, CS_LOG_WARNING, "layout %s is left out: %s",
           cs_layout_name(layouts[i]), cs_status_message(st));
  }
  if (!some) return left_out;
  cs_status_free(left_out);
  return CS_OK;
}

static cs_status measure_layouts(bench *b) {
  cs_backend *backend = b->session->device->backend;
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  int n = backend->vtable->layouts(backend, b->session->settings.options.precision, layouts);
  if (is_matrix(b->session->planned.graph)) return measure_layout(b, CS_LAYOUT_NCHW);
  return measure_all_layouts(b, layouts, n);
}

/* ---- The whole ---- */

/* FLOP/s of the fastest candidate. */
static double seen_flops(const bench *b) {
  size_t i;
  json_t *candidate;
  double most = 0, flops = json_number_value(json_object_get(b->root, "flops"));
  json_array_foreach(b->candidates, i, candidate) {
    double us = json_number_value(json_object_get(candidate, "warm_us"));
    if (us > 0) most = fmax(most, flops / us * 1e6);
  }
  return most;
}

/* A rate that is seen here is one that the device has. */
static cs_status add_peaks(bench *b) {
  double flops, bandwidth, seen = seen_flops(b);
  bool products = is_matrix(b->session->planned.graph);
  CS_RETURN_IF_ERROR(
      cs_sustained_rates(b->session, &b->measure, products, seen, &flops, &bandwidth));
  json_object_set_new(b->root, "peak_flops", json_real(fmax(flops, seen)));
  json_object_set_new(b->root, "peak_bandwidth", json_real(bandwidth));
  return CS_OK;
}

static cs_status run(bench *b, const cs_session_options *options) {
  cs_session *session = b->session;
  cs_session_options own = *options;
  own.policy = "sequential";
  CS_RETURN_IF_ERROR(cs_settings_copy(&own, &session->settings));
  CS_RETURN_IF_ERROR(cs_planning_begin(session, &b->measure));
  CS_RETURN_IF_ERROR(check_graph(session->planned.graph));
  CS_RETURN_IF_ERROR(cs_device_profile(session->device, session->settings.cache_dir, &b->profile));
  CS_RETURN_IF_ERROR(measure_layouts(b));
  return add_peaks(b);
}

cs_status cs_bench_operation(cs_device *device, const cs_graph *graph,
                             const cs_session_options *session_options, char **out) {
  cs_session session = {.device = device, .source = graph};
  bench b = {.session = &session, .root = json_object(), .candidates = json_array()};
  *out = NULL;
  cs_status st = cs_device_must_compute(device, "bench");
  if (st == CS_OK && (!b.root || !b.candidates)) st = cs_no_memory("a bench", 0);
  if (st == CS_OK) st = run(&b, session_options);
  if (st == CS_OK) json_object_set(b.root, "candidates", b.candidates);
  if (st == CS_OK) st = cs_json_take_text(json_incref(b.root), out);
  json_decref(b.root);
  json_decref(b.candidates);
  cs_planned_free(&session.planned);
  cs_settings_free(&session.settings);
  return st;
}

cs_status cs_bench_records_text(const char *records, size_t length, const char *name,
                                cs_report_format format, char **out) {
  return cs_bench_text_of(records, length, name, format, out);
}
