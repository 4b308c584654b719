/* Verification (a): single nodes of the serial run against the double-precision reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "base/progress.h"
#include "runtime/verify.h"

/* Without a device reference, sampled nodes may cost this much in all (the C reference runs at
 * about a GFLOP/s a core); the cheapest ones are always checked. */
#define SAMPLE_FLOPS 4e9
#define SAMPLE_STRIDE 8

typedef struct node_check {
  const cs_serial_run *run;
  cs_verification *result;
  bool not_finite; /* the worst node gave a NaN or an infinity that the reference did not */
} node_check;

static cs_status reference_from_host(const node_check *check, const cs_task *task,
                                     const float *weight, const float *bias, double *value,
                                     double *magnitude) {
  cs_status st = CS_OK;
  const cs_program *program = check->run->session->planned.program;
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
    st = check->run->realised.backend->vtable->download(
        check->run->realised.backend, raw,
        cs_realised_tensor(&check->run->realised, program, check->run->plan, task->inputs[i]),
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

/* The output of a task against the plain C reference. */
static cs_status error_on_host(const node_check *check, const cs_task *task, const float *weight,
                               const float *bias, cs_error_measure *error) {
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
  CS_TRY(st, reference_from_host(check, task, weight, bias, value, magnitude), done);
  CS_TRY(st,
         cs_tensor_read(&check->run->realised, check->run->session->planned.program,
                        check->run->plan, task->output, out),
         done);
  *error = cs_measure_error(out, value, magnitude, count);
done:
  free(out);
  free(value);
  free(magnitude);
  return st;
}

static cs_status error_on_device(const node_check *check, const cs_task *task, const float *weight,
                                 const float *bias, cs_error_measure *error) {
  const cs_program *program = check->run->session->planned.program;
  const cs_realised *realised = &check->run->realised;
  const void *inputs[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < task->desc.n_inputs; i++) {
    inputs[i] = cs_realised_tensor(realised, program, check->run->plan, task->inputs[i]);
  }
  return realised->backend->vtable->reference_error(
      realised->backend, &task->desc, inputs, weight, bias,
      cs_realised_tensor(realised, program, check->run->plan, task->output), error);
}

/* The weight as the device stores it. Per-channel scale and shift stay f32 on every backend. */
static cs_status round_weight(const cs_task *task, cs_node_params *its) {
  cs_dtype dtype = task->desc.output.dtype;
  bool per_channel = task->desc.op == CS_OP_BATCH_NORM || task->desc.op == CS_OP_INSTANCE_NORM;
  if (per_channel || dtype == CS_DTYPE_F32 || !its->weight) return CS_OK;
  if (!its->own_weight) {
    size_t bytes = (size_t)its->n_weight * sizeof *its->own_weight;
    its->own_weight = cs_calloc(1, bytes);
    if (!its->own_weight) return cs_no_memory(task->name, bytes);
    memcpy(its->own_weight, its->weight, bytes);
    its->weight = its->own_weight;
  }
  cs_round_to_dtype(dtype, its->own_weight, its->n_weight);
  return CS_OK;
}

static cs_status error_of(const node_check *check, const cs_task *task, cs_error_measure *error) {
  const cs_params *params = check->run->session->shared->params;
  cs_node_params its = {0};
  if (task->node >= 0) {
    CS_RETURN_IF_ERROR(
        cs_node_params_open(params, check->run->session->planned.program->graph, task->node, &its));
  }
  cs_status st = round_weight(task, &its);
  if (st == CS_OK) {
    st = check->run->realised.backend->vtable->reference_error
             ? error_on_device(check, task, its.weight, its.bias, error)
             : error_on_host(check, task, its.weight, its.bias, error);
  }
  cs_node_params_close(params, &its);
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
  if (result->nodes_checked == 1 || ratio > result->worst_ratio) {
    result->worst_ratio = ratio;
    check->not_finite = !error->finite;
    result->tolerance = ratio_l2 >= ratio_scaled ? limit_l2 : limit_scaled;
    snprintf(result->worst_node, sizeof result->worst_node, "%s", task->name);
  }
}

static cs_status check_node(node_check *check, int position) {
  const cs_plan_task *planned = &check->run->plan->tasks[position];
  const cs_task *task = &check->run->session->planned.program->tasks[planned->task];
  cs_error_measure error = {0};
  CS_RETURN_IF_ERROR(cs_annotate(error_of(check, task, &error), "verifying %s: ", task->name));
  judge(check, task, planned->candidate.notes, &error);
  return CS_OK;
}

/* ---- Where a NaN or an infinity comes from ---- */

static cs_status tensor_finite(const cs_serial_run *run, int tensor, bool *finite) {
  const cs_program *program = run->session->planned.program;
  int64_t count;
  CS_RETURN_IF_ERROR(cs_shape_elements(&program->tensors[tensor].desc.shape, &count));
  float *values = cs_calloc((size_t)count, sizeof *values);
  if (!values) return cs_no_memory("a tensor", (size_t)count * sizeof *values);
  cs_status st = cs_tensor_read(&run->realised, program, run->plan, tensor, values);
  *finite = true;
  for (int64_t i = 0; i < count; i++) *finite &= isfinite(values[i]) != 0;
  free(values);
  return st;
}

static cs_status mark_origin(const cs_serial_run *run, int position, bool *origin) {
  const cs_task *task = &run->session->planned.program->tasks[run->plan->tasks[position].task];
  bool finite;
  CS_RETURN_IF_ERROR(tensor_finite(run, task->output, &finite));
  *origin = !finite;
  for (int i = 0; i < task->desc.n_inputs && *origin; i++) {
    CS_RETURN_IF_ERROR(tensor_finite(run, task->inputs[i], origin));
  }
  return CS_OK;
}

/* ---- Which nodes ---- */

/* The sample: the first node of every operator, and every eighth from a seeded start; and those
 * of `must`. */
static cs_status check_nodes(node_check *check, cs_verify_level level, const bool *must) {
  const cs_program *program = check->run->session->planned.program;
  bool seen[CS_OP_COUNT] = {false};
  bool on_host = !check->run->realised.backend->vtable->reference_error;
  double budget = SAMPLE_FLOPS;
  int start = (int)(check->run->session->settings.options.seed % SAMPLE_STRIDE);
  for (int p = 0; p < check->run->plan->n_tasks; p++) {
    const cs_op_desc *desc = &program->tasks[check->run->plan->tasks[p].task].desc;
    bool all = level == CS_VERIFY_FULL || must[p];
    double flops = cs_op_flops(desc);
    if (!all) {
      bool wanted = !seen[desc->op] || p % SAMPLE_STRIDE == start;
      if (!wanted || (on_host && flops > budget)) continue;
      if (on_host) budget -= flops;
    }
    seen[desc->op] = true;
    cs_progress_step("verification", "nodes", p, check->run->plan->n_tasks, "%s",
                     program->tasks[check->run->plan->tasks[p].task].name);
    CS_RETURN_IF_ERROR(check_node(check, p));
  }
  return CS_OK;
}

static void tell(const node_check *check) {
  cs_verification *result = check->result;
  bool f16 = check->run->session->settings.options.precision == CS_PRECISION_F16;
  if (check->not_finite) {
    cs_found_wrong(result, "node %s overflows: a NaN or an infinity where float64 has none%s",
                   result->worst_node, f16 ? " (f16 ends at 65504)" : "");
  } else if (result->worst_ratio > 1) {
    cs_found_wrong(result, "node %s: %.3g times its limit of %.1e", result->worst_node,
                   result->worst_ratio, result->tolerance);
  }
}

cs_status cs_verify_nodes(const cs_serial_run *run, cs_verify_level level, bool outputs_finite,
                          cs_verification *result) {
  cs_status st = CS_OK;
  node_check check = {.run = run, .result = result};
  bool *must = cs_calloc((size_t)run->plan->n_tasks, sizeof *must);
  if (!must) return cs_no_memory("nodes to check", (size_t)run->plan->n_tasks);
  for (int p = 0; p < run->plan->n_tasks && !outputs_finite; p++) {
    CS_TRY(st, mark_origin(run, p, &must[p]), done);
  }
  CS_TRY(st, check_nodes(&check, level, must), done);
  tell(&check);
done:
  free(must);
  return st;
}
