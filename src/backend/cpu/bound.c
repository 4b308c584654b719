/* A prepared candidate at fixed addresses: conversions in, the core, the epilogue, conversion out.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"

static const void *image_of(const void *base, const cs_tensor_desc *tensor, int image) {
  return (const float *)base + image * tensor->strides[0];
}

static cs_status bind_images(cpu_bound *bound, const cs_launch *launch) {
  const cs_exec *exec = bound->exec;
  int images = exec->variant.images;
  bound->images = cs_calloc((size_t)images, sizeof *bound->images);
  if (!bound->images) return cs_no_memory("a bound operation", sizeof *bound->images);
  for (int i = 0; i < images; i++) {
    const void *inputs[CS_MAX_OP_INPUTS] = {0};
    void *output = bound->core_output;
    for (int j = 0; j < exec->variant.core.n_inputs; j++)
      inputs[j] = i == 0 ? bound->core_inputs[j]
                         : image_of(bound->core_inputs[j], &exec->desc.inputs[j], i);
    if (i > 0) output = (float *)output + i * exec->desc.output.strides[0];
    CS_RETURN_IF_ERROR(
        dnn_bind(exec->op, inputs, output, launch->weights, bound->scratchpad, &bound->images[i]));
  }
  return CS_OK;
}

cs_status cpu_bind(const cs_launch *launch, cpu_bound *out) {
  const cs_exec *exec = launch->exec;
  char *workspace = launch->workspace;
  *out = (cpu_bound){.exec = exec,
                     .output = launch->output,
                     .weights = launch->weights,
                     .scratchpad = workspace + exec->scratchpad_offset};
  for (int i = 0; i < exec->desc.n_inputs; i++) {
    out->inputs[i] = launch->inputs[i];
    out->core_inputs[i] =
        exec->variant.staged_inputs[i] ? workspace + exec->stage_offsets[i] : launch->inputs[i];
  }
  out->core_output = exec->variant.staged_output ? workspace + exec->stage_offsets[CS_MAX_OP_INPUTS]
                                                 : launch->output;
  if (!exec->op) return CS_OK;
  cs_status st = bind_images(out, launch);
  if (st != CS_OK) cpu_bound_clear(out);
  return st;
}

void cpu_bound_clear(cpu_bound *bound) {
  for (int i = 0; bound->images && i < bound->exec->variant.images; i++)
    dnn_binding_destroy(bound->images[i]);
  free(bound->images);
  bound->images = NULL;
}

/* An unfused residual and activation, in place on what the core computed. */
static void run_epilogue(const cpu_bound *bound) {
  const cs_exec *exec = bound->exec;
  const cs_op_desc *desc = &exec->desc;
  const cpu_variant *v = &exec->variant;
  int last = desc->n_inputs - 1;
  const cs_tensor_desc *y = v->staged_output ? &v->core.output : &desc->output;
  const cs_tensor_desc *r = v->staged_inputs[last] ? &v->core.inputs[last] : &desc->inputs[last];
  cpu_epilogue(y, bound->core_output, desc->has_residual ? r : NULL,
               desc->has_residual ? bound->core_inputs[last] : NULL, desc->activation);
}

cs_status cpu_bound_run(const cpu_bound *bound) {
  const cs_exec *exec = bound->exec;
  const cpu_variant *v = &exec->variant;
  for (int i = 0; i < exec->desc.n_inputs; i++)
    if (v->staged_inputs[i])
      cpu_copy(&exec->desc.inputs[i], bound->inputs[i], &v->core.inputs[i],
               (void *)(uintptr_t)bound->core_inputs[i]);
  if (exec->op) {
    for (int i = 0; i < v->images; i++) CS_RETURN_IF_ERROR(dnn_run(bound->images[i]));
  } else if (exec->form) {
    CS_RETURN_IF_ERROR(cpu_transposed_run(&v->core, exec->form, bound->core_inputs[0],
                                          bound->weights, bound->scratchpad, bound->core_output));
  } else if (exec->gemm) {
    cpu_gemm_run(&v->core, exec->gemm, bound->core_inputs[0], bound->weights, bound->core_output);
  } else {
    cpu_loop_run(&v->core, bound->core_inputs, bound->weights, bound->core_output);
  }
  if (v->unfused) run_epilogue(bound);
  if (v->staged_output)
    cpu_copy(&v->core.output, bound->core_output, &exec->desc.output, bound->output);
  return CS_OK;
}
