/* Verification: (a) nodes against the double-precision reference, from the backend's own inputs to
 * them; (b) the plan against the same candidates run serially without buffer reuse, bit for bit;
 * (c) the outputs against the whole graph in float64. docs/verification.md gives the limits. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "runtime/session.h"

/* Without a device reference, sampled nodes may cost this much in all (the C reference runs at
 * about a GFLOP/s a core); the cheapest ones are always checked. */
#define SAMPLE_FLOPS 4e9
#define SAMPLE_STRIDE 8
/* A race need not show in the first run. */
#define PLAN_RUNS 3

/* Appends to what is wrong, as far as there is room. */
static void CS_PRINTF(2, 3) found_wrong(cs_verification *result, const char *format, ...) {
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

static cs_status serial_plan(const cs_plan *plan, const cs_program *program, cs_plan **out) {
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

/* ---- (a) Nodes ---- */

typedef struct node_check {
  cs_session *session;
  const cs_plan *plan; /* serial */
  const cs_realised *realised;
  cs_verification *result;
} node_check;

static cs_status reference_from_host(const node_check *check, const cs_task *task,
                                     const float *weight, const float *bias, double *value,
                                     double *magnitude) {
  cs_status st = CS_OK;
  const cs_program *program = check->session->planned.program;
  double *inputs[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < task->desc.n_inputs; i++) {
    const cs_tensor_desc *desc = &program->tensors[task->inputs[i]].desc;
    int64_t count;
    CS_TRY(st, cs_shape_elements(&desc->shape, &count), done);
    void *raw = cs_calloc(1, (size_t)cs_tensor_span_bytes(desc));
    inputs[i] = cs_calloc((size_t)count, sizeof(double));
    if (!raw || !inputs[i]) {
      free(raw);
      st = cs_no_memory("a reference's input", (size_t)count * sizeof(double));
      goto done;
    }
    st = check->realised->backend->vtable->download(
        check->realised->backend, raw,
        cs_realised_tensor(check->realised, program, check->plan, task->inputs[i]),
        cs_tensor_span_bytes(desc));
    if (st == CS_OK) cs_tensor_to_f64(desc, raw, inputs[i]);
    free(raw);
    if (st != CS_OK) goto done;
  }
  st = cs_reference_run(&task->desc, (const double *const *)inputs, weight, bias, value, magnitude,
                        0);
done:
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(inputs[i]);
  return st;
}

static cs_status reference_of(const node_check *check, const cs_task *task, double *value,
                              double *magnitude) {
  const cs_program *program = check->session->planned.program;
  cs_backend *backend = check->realised->backend;
  float *weight = NULL, *bias = NULL;
  int64_t n_weight = 0, n_bias = 0;
  if (task->node >= 0) {
    CS_RETURN_IF_ERROR(cs_params_of_node(check->session->shared->params, program->graph, task->node,
                                         &weight, &n_weight, &bias, &n_bias));
    /* Per-channel scale and shift stay f32 on every backend. */
    if (task->desc.op != CS_OP_BATCH_NORM) {
      cs_round_to_dtype(task->desc.output.dtype, weight, n_weight);
    }
  }
  cs_status st;
  if (backend->vtable->reference) {
    const void *inputs[CS_MAX_OP_INPUTS] = {NULL};
    for (int i = 0; i < task->desc.n_inputs; i++) {
      inputs[i] = cs_realised_tensor(check->realised, program, check->plan, task->inputs[i]);
    }
    st = backend->vtable->reference(backend, &task->desc, inputs, weight, bias, value, magnitude);
  } else {
    st = reference_from_host(check, task, weight, bias, value, magnitude);
  }
  free(weight);
  free(bias);
  return st;
}

static void judge(node_check *check, const cs_task *task, uint32_t notes,
                  const cs_error_measure *error) {
  double limit_l2, limit_scaled;
  cs_tolerance(&task->desc, notes, &limit_l2, &limit_scaled);
  double ratio_l2 = limit_l2 > 0 ? error->rel_l2 / limit_l2 : (error->rel_l2 > 0 ? INFINITY : 0);
  double ratio_scaled =
      limit_scaled > 0 ? error->max_scaled / limit_scaled : (error->max_scaled > 0 ? INFINITY : 0);
  double ratio = fmax(ratio_l2, ratio_scaled);
  if (!error->finite || isnan(ratio)) ratio = INFINITY;
  cs_verification *result = check->result;
  result->nodes_checked++;
  result->rel_l2 = fmax(result->rel_l2, error->rel_l2);
  result->max_scaled = fmax(result->max_scaled, error->max_scaled);
  if (ratio >= result->worst_ratio) {
    result->worst_ratio = ratio;
    result->tolerance = ratio_l2 >= ratio_scaled ? limit_l2 : limit_scaled;
    snprintf(result->worst_node, sizeof result->worst_node, "%s", task->name);
  }
}

static cs_status check_node(node_check *check, int position) {
  const cs_program *program = check->session->planned.program;
  const cs_plan_task *planned = &check->plan->tasks[position];
  const cs_task *task = &program->tasks[planned->task];
  cs_status st = CS_OK;
  int64_t count;
  CS_RETURN_IF_ERROR(cs_shape_elements(&task->desc.output.shape, &count));
  float *out = cs_calloc((size_t)count, sizeof *out);
  double *value = cs_calloc((size_t)count, sizeof *value);
  double *magnitude = cs_calloc((size_t)count, sizeof *magnitude);
  if (!out || !value || !magnitude) {
    st = cs_no_memory("a node's reference", (size_t)count * 2 * sizeof(double));
    goto done;
  }
  CS_TRY(st, reference_of(check, task, value, magnitude), done);
  CS_TRY(st, cs_tensor_read(check->realised, program, check->plan, task->output, out), done);
  cs_error_measure error = cs_measure_error(out, value, magnitude, count);
  judge(check, task, planned->candidate.notes, &error);
done:
  free(out);
  free(value);
  free(magnitude);
  return cs_annotate(st, "verifying %s: ", task->name);
}

/* The sample: the first node of every operator, and every eighth from a seeded start. */
static cs_status check_nodes(node_check *check, cs_verify_level level) {
  const cs_program *program = check->session->planned.program;
  bool seen[CS_OP_COUNT] = {false};
  bool on_host = !check->realised->backend->vtable->reference;
  double budget = SAMPLE_FLOPS;
  int start = (int)(check->session->settings.options.seed % SAMPLE_STRIDE);
  for (int p = 0; p < check->plan->n_tasks; p++) {
    const cs_op_desc *desc = &program->tasks[check->plan->tasks[p].task].desc;
    bool wanted = level == CS_VERIFY_FULL || !seen[desc->op] || p % SAMPLE_STRIDE == start;
    double flops = cs_op_flops(desc);
    if (!wanted || (level != CS_VERIFY_FULL && on_host && flops > budget)) continue;
    if (level != CS_VERIFY_FULL && on_host) budget -= flops;
    seen[desc->op] = true;
    CS_RETURN_IF_ERROR(check_node(check, p));
  }
  const cs_verification *result = check->result;
  if (isinf(result->worst_ratio)) {
    found_wrong(check->result, "node %s: not finite, or not exact where it must be",
                result->worst_node);
  } else if (result->worst_ratio > 1) {
    found_wrong(check->result, "node %s: %.3g times its limit of %.1e", result->worst_node,
                result->worst_ratio, result->tolerance);
  }
  return CS_OK;
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

/* Largest relative L2 difference of two sets of outputs, and whether every bit agrees. */
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
    double error = 0, norm = 0;
    for (int64_t e = 0; e < count; e++) {
      error += ((double)a[i][e] - b[i][e]) * ((double)a[i][e] - b[i][e]);
      norm += (double)b[i][e] * b[i][e];
    }
    double relative = norm > 0 ? sqrt(error / norm) : sqrt(error);
    if (!(relative <= *difference)) *difference = relative;
  }
  return CS_OK;
}

/* Non-deterministic candidates may differ by rounding only: as much as a node's own limit. */
static double rounding_limit(cs_precision precision) {
  return precision == CS_PRECISION_F32 ? 1e-4 : precision == CS_PRECISION_BF16 ? 5e-2 : 1e-2;
}

static cs_status check_plan(cs_session *session, const cs_plan *serial,
                            const cs_realised *serial_run, bool end_to_end, cs_verification *out) {
  cs_status st = CS_OK;
  const cs_program *program = session->planned.program;
  int n = program->graph->n_outputs;
  float **wanted = NULL, **found = NULL;
  out->bitwise_applies = true;
  for (int p = 0; p < serial->n_tasks; p++) {
    if (!serial->tasks[p].candidate.deterministic) out->bitwise_applies = false;
  }
  out->bitwise_equal = true;
  CS_TRY(st, read_outputs(serial_run, program, serial, &wanted), done);
  for (int run = 0; run < PLAN_RUNS; run++) {
    CS_TRY(st, session->realised.backend->vtable->schedule_run(session->realised.schedule), done);
    CS_TRY(st, read_outputs(&session->realised, program, session->planned.plan, &found), done);
    bool equal;
    double difference;
    CS_TRY(st, compare_outputs(program, found, wanted, &equal, &difference), done);
    if (!equal) out->bitwise_equal = false;
    double limit = out->bitwise_applies ? 0 : rounding_limit(session->settings.options.precision);
    if (!equal && !(difference <= limit)) {
      found_wrong(out, "run %d differs from the serial run by %.1e (limit %.1e)", run + 1,
                  difference, limit);
    }
    if (run == PLAN_RUNS - 1) break;
    free_outputs(found, n);
    found = NULL;
  }
  if (!end_to_end) goto done;
  CS_TRY(st,
         cs_end_to_end_error(session->planned.bound, session->shared->params,
                             (const float *const *)session->inputs, (const float *const *)found,
                             &out->end_to_end),
         done);
  CS_TRY(st,
         cs_end_to_end_limit(session->source, session->settings.options.precision,
                             session->settings.options.batch, session->settings.options.seed,
                             &out->end_to_end_limit),
         done);
  if (isnan(out->end_to_end) || out->end_to_end > out->end_to_end_limit) {
    found_wrong(out, "end to end %.2e from float64, limit %.2e", out->end_to_end,
                out->end_to_end_limit);
  }
done:
  free_outputs(wanted, n);
  free_outputs(found, n);
  return st;
}

cs_status cs_session_verify(cs_session *session, cs_verify_level level, cs_verification *out) {
  cs_status st = CS_OK;
  *out = (cs_verification){.passed = true, .end_to_end = NAN, .end_to_end_limit = NAN};
  const cs_program *program = session->planned.program;
  cs_plan *serial = NULL;
  cs_realised serial_run = {0};
  CS_TRY(st, serial_plan(session->planned.plan, program, &serial), done);
  CS_TRY(st,
         cs_realise_again(&session->realised, program, session->planned.plan, serial, &serial_run),
         done);
  CS_TRY(st, cs_session_upload_inputs(session, &serial_run, serial), done);
  CS_TRY(st, serial_run.backend->vtable->schedule_run(serial_run.schedule), done);
  node_check check = {session, serial, &serial_run, out};
  CS_TRY(st, check_nodes(&check, level), done);
  CS_TRY(st, check_plan(session, serial, &serial_run, level == CS_VERIFY_FULL, out), done);
done:
  cs_realised_free(&serial_run);
  cs_plan_destroy(serial);
  return st;
}
