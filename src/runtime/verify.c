/* Verification: (a) nodes against the double-precision reference, from the backend's own inputs to
 * them; (b) the plan against the same candidates run serially without buffer reuse, bit for bit;
 * (c) the outputs against the whole graph in float64. docs/verification.md gives the limits. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/verify.h"

/* A race need not show in the first run. */
#define PLAN_RUNS 3

void cs_found_wrong(cs_verification *result, const char *format, ...) {
  size_t used = strlen(result->problem);
  if (used > 0)
    used += (size_t)snprintf(result->problem + used, sizeof result->problem - used, "; ");
  result->passed = false;
  if (used >= sizeof result->problem) return;
  va_list args;
  va_start(args, format);
  vsnprintf(result->problem + used, sizeof result->problem - used, format, args);
  va_end(args);
}

/* ---- The serial twin ---- */

cs_status cs_serial_plan(const cs_plan *plan, const cs_program *program, cs_plan **out) {
  cs_status st = CS_OK;
  cs_plan *serial = cs_calloc(1, sizeof *serial);
  if (!serial) return cs_no_memory("a plan", sizeof *serial);
  serial->precision = plan->precision;
  serial->batch = plan->batch;
  serial->n_streams = 1;
  CS_TRY(st, cs_strdup_to("serial", &serial->policy), done);
  CS_TRY(st, cs_strdup_to(plan->device_identity, &serial->device_identity), done);
  serial->tasks = cs_calloc((size_t)plan->n_tasks, sizeof *serial->tasks);
  serial->buffer_offsets = cs_calloc((size_t)program->n_buffers, sizeof *serial->buffer_offsets);
  if (!serial->tasks || !serial->buffer_offsets) {
    st = cs_no_memory("a plan", (size_t)plan->n_tasks * sizeof *serial->tasks);
    goto done;
  }
  serial->n_buffers = program->n_buffers;
  serial->n_tasks = plan->n_tasks;
  for (int p = 0; p < plan->n_tasks; p++) {
    serial->tasks[p].task = plan->tasks[p].task;
    serial->tasks[p].merged = -1; /* each by a kernel of its own */
    serial->tasks[p].workspace_bytes = plan->tasks[p].workspace_bytes;
    CS_TRY(st, cs_candidate_copy(&plan->tasks[p].candidate, &serial->tasks[p].candidate), done);
  }
  CS_TRY(st, cs_plan_memory(serial, program, false, 0), done);
  *out = serial;
  serial = NULL;
done:
  cs_plan_destroy(serial);
  return st;
}

/* ---- (b) The whole plan ---- */

static void free_outputs(float **outputs, int n) {
  for (int i = 0; outputs && i < n; i++) free(outputs[i]);
  free(outputs);
}

static cs_status read_outputs(const cs_realised *realised, const cs_program *program,
                              const cs_plan *plan, float ***out) {
  cs_status st = CS_OK;
  int n = program->graph->n_outputs;
  float **outputs = cs_calloc((size_t)n, sizeof *outputs);
  if (!outputs) return cs_no_memory("outputs", (size_t)n * sizeof *outputs);
  for (int i = 0; i < n && st == CS_OK; i++) {
    int64_t count = 0;
    st = cs_shape_elements(&program->tensors[program->output_tensors[i]].desc.shape, &count);
    if (st != CS_OK) break;
    outputs[i] = cs_calloc((size_t)count, sizeof **outputs);
    st = outputs[i]
             ? cs_tensor_read(realised, program, plan, program->output_tensors[i], outputs[i])
             : cs_no_memory("an output", (size_t)count * sizeof(float));
  }
  if (st != CS_OK) {
    free_outputs(outputs, n);
    return st;
  }
  *out = outputs;
  return CS_OK;
}

double cs_relative_difference(const float *a, const float *b, int64_t count) {
  double error = 0, norm = 0;
  for (int64_t e = 0; e < count; e++) {
    if (a[e] == b[e] || (isnan(a[e]) && isnan(b[e]))) {
      if (isfinite(b[e])) norm += (double)b[e] * b[e];
      continue;
    }
    error += ((double)a[e] - b[e]) * ((double)a[e] - b[e]);
    norm += (double)b[e] * b[e];
  }
  return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

/* Largest difference of two sets of outputs, and whether every bit agrees. */
static cs_status compare_outputs(const cs_program *program, float *const *a, float *const *b,
                                 bool *equal, double *difference) {
  *equal = true;
  *difference = 0;
  for (int i = 0; i < program->graph->n_outputs; i++) {
    int64_t count;
    CS_RETURN_IF_ERROR(
        cs_shape_elements(&program->tensors[program->output_tensors[i]].desc.shape, &count));
    if (memcmp(a[i], b[i], (size_t)count * sizeof(float)) == 0) continue;
    *equal = false;
    double relative = cs_relative_difference(a[i], b[i], count);
    if (!(relative <= *difference)) *difference = relative;
  }
  return CS_OK;
}

static cs_status all_finite(const cs_program *program, float *const *outputs, bool *finite) {
  *finite = true;
  for (int i = 0; i < program->graph->n_outputs; i++) {
    int64_t count;
    CS_RETURN_IF_ERROR(
        cs_shape_elements(&program->tensors[program->output_tensors[i]].desc.shape, &count));
    for (int64_t e = 0; e < count && *finite; e++) *finite = isfinite(outputs[i][e]) != 0;
  }
  return CS_OK;
}

bool cs_plan_is_deterministic(const cs_plan *plan) {
  for (int p = 0; p < plan->n_tasks; p++) {
    if (!plan->tasks[p].candidate.deterministic) return false;
  }
  return true;
}

/* Non-deterministic candidates may differ by rounding only: as much as a node's own limit. */
double cs_rounding_limit(cs_precision precision) {
  return precision == CS_PRECISION_F32 ? 1e-4 : precision == CS_PRECISION_BF16 ? 5e-2 : 1e-2;
}

/* Runs the plan a few times and compares with the serial run's outputs. The last ones stay in
 * *found. */
static cs_status check_plan(cs_session *session, const cs_plan *serial, float *const *wanted,
                            cs_verification *out, float ***found) {
  const cs_program *program = session->planned.program;
  out->bitwise_applies = cs_plan_is_deterministic(serial);
  out->bitwise_equal = true;
  double limit = out->bitwise_applies ? 0 : cs_rounding_limit(session->settings.options.precision);
  for (int run = 0; run < PLAN_RUNS; run++) {
    bool equal;
    double difference;
    free_outputs(*found, program->graph->n_outputs);
    *found = NULL;
    CS_RETURN_IF_ERROR(session->realised.backend->vtable->schedule_run(session->realised.schedule));
    CS_RETURN_IF_ERROR(read_outputs(&session->realised, program, session->planned.plan, found));
    CS_RETURN_IF_ERROR(compare_outputs(program, *found, wanted, &equal, &difference));
    if (!equal) out->bitwise_equal = false;
    if (!equal && !(difference <= limit)) {
      cs_found_wrong(out, "run %d differs from the serial run by %.1e (limit %.1e)", run + 1,
                     difference, limit);
    }
  }
  return CS_OK;
}

/* ---- (c) End to end ---- */

static cs_status check_end_to_end(const cs_session *session, float *const *found,
                                  cs_verification *out) {
  const cs_session_options *options = &session->settings.options;
  const cs_graph *graph = session->planned.bound;
  cs_known_outputs *known = &session->shared->known;
  CS_RETURN_IF_ERROR(cs_known_outputs_make(graph, session->shared->params,
                                           (const float *const *)session->inputs, known));
  CS_RETURN_IF_ERROR(
      cs_end_to_end_error(graph, known, (const float *const *)found, &out->end_to_end));
  CS_RETURN_IF_ERROR(cs_end_to_end_limit(session->source, options->precision, options->batch,
                                         options->seed, &out->end_to_end_limit));
  if (!isfinite(out->end_to_end) || out->end_to_end > out->end_to_end_limit) {
    cs_found_wrong(out, "end to end %.2e from float64, limit %.2e", out->end_to_end,
                   out->end_to_end_limit);
  }
  return CS_OK;
}

/* What is wrong with the weights themselves: told with a verdict that may come of it, and else
 * once.
 */
static cs_status tell_weights(const cs_session *session, bool outputs_finite,
                              cs_verification *out) {
  cs_shared_params *shared = session->shared;
  cs_not_finite found;
  char text[512];
  CS_RETURN_IF_ERROR(cs_params_find_not_finite(shared->params, &found));
  if (!found.name) return CS_OK;
  snprintf(text, sizeof text, "weights: tensor \"%s\" holds %g at element %lld", found.name,
           (double)found.value, (long long)found.element);
  if (!out->passed) cs_found_wrong(out, "%s", text);
  if (!out->passed || shared->not_finite_told) return CS_OK;
  cs_log(&session->device->logger, CS_LOG_WARNING, "%s, wanted finite numbers%s", text,
         outputs_finite ? "" : "; outputs are not finite either");
  shared->not_finite_told = true;
  return CS_OK;
}

cs_status cs_session_verify(cs_session *session, cs_verify_level level, cs_verification *out) {
  cs_status st = CS_OK;
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_verify"));
  *out = (cs_verification){.passed = true, .end_to_end = NAN, .end_to_end_limit = NAN};
  const cs_program *program = session->planned.program;
  cs_plan *serial = NULL;
  cs_serial_run run = {.session = session};
  float **wanted = NULL, **found = NULL;
  bool finite;
  CS_TRY(st, cs_session_fetch_inputs(session), done);
  CS_TRY(st, cs_serial_plan(session->planned.plan, program, &serial), done);
  run.plan = serial;
  CS_TRY(
      st,
      cs_realise_again(&session->realised, program, session->planned.plan, serial, &run.realised),
      done);
  CS_TRY(st, cs_session_upload_inputs(session, &run.realised, serial), done);
  CS_TRY(st, run.realised.backend->vtable->schedule_run(run.realised.schedule), done);
  CS_TRY(st, read_outputs(&run.realised, program, serial, &wanted), done);
  CS_TRY(st, all_finite(program, wanted, &finite), done);
  CS_TRY(st, cs_verify_nodes(&run, level, finite, out), done);
  CS_TRY(st, check_plan(session, serial, wanted, out, &found), done);
  if (level == CS_VERIFY_FULL) CS_TRY(st, check_end_to_end(session, found, out), done);
  if (!finite || level == CS_VERIFY_FULL) CS_TRY(st, tell_weights(session, finite, out), done);
done:
  free_outputs(wanted, program->graph->n_outputs);
  free_outputs(found, program->graph->n_outputs);
  cs_realised_free(&run.realised);
  cs_plan_destroy(serial);
  return st;
}
