#include "backend/cuda/winograd_exec.h"

cs_status cs_winograd_enumerate(const cs_op_desc *desc, const cs_enumerate_options *options,
                                cs_candidate_list *out) {
  cs_winograd w;
  char family[] = CS_WINOGRAD_FAMILY;
  for (int i = 0; cs_winograd_id(i); i++) {
    if (cs_winograd_make(desc, cs_winograd_id(i), &w)) continue;
    int64_t bytes = cs_winograd_workspace(&w);
    if (bytes > options->workspace_limit) continue;
    cs_candidate candidate = {.id = (char *)(uintptr_t)cs_winograd_id(i),
                              .family = family,
                              .deterministic = true,
                              .fused = true,
                              .notes = CS_NOTE_WINOGRAD,
                              .workspace_bytes = bytes};
    CS_RETURN_IF_ERROR(cs_candidate_list_add_copy(out, &candidate));
  }
  return CS_OK;
}

cs_status cs_winograd_prepare(cs_exec *exec) {
  const char *refusal = cs_winograd_make(&exec->desc, exec->id, &exec->winograd);
  if (refusal) {
    return cs_error(CS_CODE_BAD_INPUT, "'%s' is for other operations; this %s is %s", exec->id,
                    cs_op_name(exec->desc.op), refusal);
  }
  exec->staging_bytes = cs_winograd_tiles_bytes(&exec->winograd);
  exec->workspace_bytes = cs_winograd_workspace(&exec->winograd);
  return CS_OK;
}

void cs_winograd_plan_weights(cs_exec *exec) {
  exec->weight_bytes = cs_winograd_weight_bytes(&exec->winograd, exec->desc.has_bias);
  if (!exec->desc.has_bias) return;
  exec->bias_dtype = CS_DTYPE_F32;
  exec->bias_offset = cs_winograd_filters_bytes(&exec->winograd);
}

cs_status cs_winograd_launch(const cs_bound *bound, cudaStream_t stream) {
  const cs_launch *launch = &bound->launch;
  const cs_exec *exec = launch->exec;
  cs_winograd_arrays arrays = {.x = launch->inputs[0],
                               .filters = launch->weights,
                               .tiles = launch->workspace,
                               .sums = (float *)((char *)launch->workspace + exec->staging_bytes),
                               .y = launch->output};
  if (exec->bias_offset >= 0) {
    arrays.bias = (const float *)((const char *)launch->weights + exec->bias_offset);
  }
  if (exec->desc.has_residual) arrays.residual = launch->inputs[exec->desc.n_inputs - 1];
  return cs_cuda_winograd(&exec->desc, &exec->winograd, &arrays, stream);
}
