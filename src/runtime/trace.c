/* A session's trace: latencies first, then traced runs, then what came of them as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/progress.h"
#include "report/trace.h"
#include "runtime/timelines.h"

#define WARM_UPS 3
#define MOST_SAMPLES 1000000

/* ---- Latency, before the tracer is there ---- */

static json_t *samples_json(const double *samples, int n, const cs_stats *stats) {
  json_t *all = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(all, json_real(samples[i]));
  return json_pack("{s:f, s:f, s:f, s:f, s:o}", "median", stats->median, "p10", stats->p10, "p90",
                   stats->p90, "variation", stats->variation, "samples", all);
}

/* Null on a simulated device. */
static cs_status measure_latency(cs_session *session, int n, json_t **out) {
  cs_status st = CS_OK;
  double warm_up;
  cs_stats stats;
  *out = json_null();
  if (cs_device_is_simulated(session->device)) return CS_OK;
  double *samples = cs_calloc((size_t)n, sizeof *samples);
  if (!samples) return cs_no_memory("samples", (size_t)n * sizeof *samples);
  for (int w = 0; w < WARM_UPS; w++) CS_TRY(st, cs_session_latency(session, &warm_up), done);
  for (int i = 0; i < n; i++) {
    CS_TRY(st, cs_session_check_cancelled(session, "measuring the latency"), done);
    cs_progress_step("sampling", "samples", i, n, NULL);
    CS_TRY(st, cs_session_latency(session, &samples[i]), done);
  }
  CS_TRY(st, cs_stats_of(samples, n, &stats), done);
  *out = samples_json(samples, n, &stats);
  if (!*out) st = cs_no_memory("samples", 0);
done:
  free(samples);
  return st;
}

/* ---- What is told beside the events ---- */

/* Null where nothing was run. */
static json_t *traced_json(const cs_session *session, const cs_timelines *timelines) {
  if (timelines->runs == 0) return json_null();
  const cs_backend_vtable *vtable = session->device->backend->vtable;
  json_t *spans = json_array();
  for (int r = 0; r < timelines->runs; r++) {
    json_array_append_new(spans, json_real(timelines->spans_us[r]));
  }
  return json_pack("{s:s, s:i, s:o, s:i, s:f, s:i, s:i, s:f}", "by",
                   vtable->schedule_kernels ? "CUPTI's activity records" : "the machine's clock",
                   "runs", timelines->runs, "spans_us", spans, "run", timelines->chosen, "span_us",
                   timelines->measured.span_us, "launches_not_seen", timelines->untraced,
                   "kernels_ambiguous", timelines->match.ambiguous, "clock_slack_us",
                   timelines->measured.slack_us);
}

static int early_slices(const cs_timeline *timeline) {
  int n = 0;
  for (int i = 0; i < timeline->n_slices; i++) n += timeline->slices[i].early;
  return n;
}

static json_t *plan_json(const cs_session *session, const cs_timelines *timelines) {
  const cs_plan *plan = session->planned.plan;
  return json_pack(
      "{s:s, s:i, s:i, s:i, s:f, s:I, s:I, s:b, s:i}", "policy", plan->policy, "streams",
      plan->n_streams, "tasks", plan->n_tasks, "slices", timelines->planned.n_slices,
      "predicted_us", plan->predicted_us, "arena_bytes", (json_int_t)plan->arena_bytes,
      "workspace_bytes", (json_int_t)plan->workspace_peak, "cuda_graph",
      strcmp(session->device->backend->vtable->name, "cuda") == 0 && !session->realised.no_graph,
      "slices_early", early_slices(&timelines->measured));
}

static const char note[] =
    "What kernels take under a tracer is no latency: that is latency_us, which was measured "
    "before.";

static cs_status tell(const cs_session *session, const cs_timelines *timelines, json_t *latency,
                      json_t **out) {
  const cs_plan *plan = session->planned.plan;
  char *device_text = NULL;
  CS_RETURN_IF_ERROR(cs_device_info_json(session->device, &device_text));
  json_t *device = json_loads(device_text, 0, NULL);
  cs_string_free(device_text);
  *out = json_pack("{s:s, s:I, s:s, s:s, s:b, s:o, s:o, s:o, s:O, s:s}", "model",
                   cs_graph_name(session->planned.bound), "batch", (json_int_t)plan->batch, "dtype",
                   cs_precision_name(plan->precision), "convsched", cs_version_string(),
                   "simulated", cs_device_is_simulated(session->device), "device", device, "plan",
                   plan_json(session, timelines), "traced", traced_json(session, timelines),
                   "latency_us", latency, "note",
                   timelines->runs > 0
                       ? note
                       : "Nothing was run: the device is simulated, times are predicted.");
  return *out ? CS_OK : cs_no_memory("a trace", 0);
}

/* ---- All of it ---- */

static cs_status check_numbers(int samples, int runs) {
  if (samples >= 1 && samples <= MOST_SAMPLES && runs >= 1 && runs <= CS_TRACE_MOST_RUNS) {
    return CS_OK;
  }
  return cs_error(
      CS_CODE_USAGE,
      "cs_session_trace_json: %d samples and %d traced runs, wanted 1 to %d and 1 to %d", samples,
      runs, MOST_SAMPLES, CS_TRACE_MOST_RUNS);
}

cs_status cs_session_trace_json(cs_session *session, int samples, int runs, char **out) {
  cs_status st = CS_OK;
  cs_timelines timelines = {0};
  json_t *latency = NULL, *other = NULL, *json = NULL;
  *out = NULL;
  CS_RETURN_IF_ERROR(check_numbers(samples, runs));
  if (!cs_device_is_simulated(session->device)) {
    CS_RETURN_IF_ERROR(cs_device_check_trace(session->device, "cs_session_trace_json"));
  }
  CS_TRY(st, measure_latency(session, samples, &latency), done);
  CS_TRY(st, cs_session_timelines(session, runs, &timelines), done);
  CS_TRY(st, tell(session, &timelines, latency, &other), done);
  const cs_trace_input input = {
      .bound = session->planned.bound,
      .program = session->planned.program,
      .plan = session->planned.plan,
      .device = session->device->backend->vtable->info(session->device->backend),
      .planned = &timelines.planned,
      .measured = timelines.runs > 0 ? &timelines.measured : NULL};
  CS_TRY(st, cs_trace_make(&input, other, &json), done);
  /* Nanoseconds of runs of seconds. */
  *out = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15));
  if (!*out) st = cs_no_memory("a trace", 0);
done:
  json_decref(json);
  json_decref(latency);
  json_decref(other);
  cs_timelines_free(&timelines);
  return st;
}
