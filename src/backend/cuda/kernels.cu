/* Which kernel family serves which operator. */
#include "backend/cuda/kernel_util.cuh"

static const KernelFamily *family_of(cs_op op) {
  switch (op) {
    case CS_OP_CONV:
    case CS_OP_CONV_TRANSPOSE:
      return &cs_conv_family;
    case CS_OP_GEMM:
      return &cs_gemm_family;
    case CS_OP_MATMUL:
      return &cs_matmul_family;
    case CS_OP_BATCH_NORM:
      return &cs_batch_norm_family;
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
      return &cs_pool_family;
    case CS_OP_GLOBAL_AVERAGE_POOL:
      return &cs_global_pool_family;
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      return &cs_reduce_family;
    case CS_OP_INSTANCE_NORM:
      return &cs_instance_norm_family;
    case CS_OP_LRN:
      return &cs_lrn_family;
    case CS_OP_SOFTMAX:
      return &cs_softmax_family;
    case CS_OP_PAD:
      return &cs_pad_family;
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
      return &cs_move_family;
    case CS_OP_RESIZE:
      return &cs_resize_family;
    case CS_OP_COPY:
      return &cs_copy_family;
    default:
      return cs_elementwise_takes(op) ? &cs_elementwise_family : NULL;
  }
}

/* Further families for the same operators. */
static const KernelFamily *const kFurther[] = {&cs_tma_family,
                                               &cs_mma_family,
                                               &cs_few_family,
                                               &cs_stationary_transposed_family,
                                               &cs_tma_transposed_family,
                                               &cs_mma_transposed_family,
                                               &cs_gemm_transposed_family,
                                               &cs_few_transposed_family,
                                               &cs_tma_pixel_family,
                                               &cs_mma_pixel_family,
                                               &cs_pool_strip_family,
                                               &cs_depthwise_strip_family};

/* Not among an operation's variants, and found like them. */
static const KernelFamily *const kBaselines[] = {&cs_gemm_ladder_family, &cs_gemm_mma_family,
                                                 &cs_gemm_tma_family};

int cs_cuda_kernel_baselines(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!plain_tensors(desc)) return 0;
  for (const KernelFamily *family : kBaselines) {
    int kept = count < capacity ? count : capacity;
    count += family->variants(desc, ids + kept, capacity - kept);
  }
  return count;
}

int cs_cuda_kernel_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  const KernelFamily *family = family_of(desc->op);
  if (!family || !plain_tensors(desc)) return 0;
  int count = family->variants(desc, ids, capacity);
  for (const KernelFamily *more : kFurther) {
    int kept = count < capacity ? count : capacity;
    count += more->variants(desc, ids + kept, capacity - kept);
  }
  return count;
}

bool cs_cuda_kernel_takes_prologue(const cs_op_desc *desc) {
  return desc->has_prologue && plain_tensors(desc) && cs_mma_family.variants(desc, NULL, 0) > 0;
}

/* The family's own text of the id; NULL: it has no such variant for the operation. */
static const char *variant_in(const KernelFamily *family, const cs_op_desc *desc, const char *id) {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int count = family->variants(desc, ids, CS_CUDA_VARIANTS_MOST);
  for (int i = 0; i < count; i++)
    if (strcmp(ids[i], id) == 0) return ids[i];
  return NULL;
}

static bool find_in(const KernelFamily *family, const cs_op_desc *desc, const char *id,
                    cs_cuda_kernel *out) {
  *out = {family, variant_in(family, desc, id)};
  return out->id != NULL;
}

cs_status cs_cuda_kernel_find(const cs_op_desc *desc, const char *id, cs_cuda_kernel *out) {
  const KernelFamily *family = family_of(desc->op);
  *out = {NULL, NULL};
  if (family && plain_tensors(desc)) {
    if (find_in(family, desc, id, out)) return CS_OK;
    for (const KernelFamily *more : kFurther)
      if (find_in(more, desc, id, out)) return CS_OK;
    for (const KernelFamily *baseline : kBaselines)
      if (find_in(baseline, desc, id, out)) return CS_OK;
  }
  return cs_error(CS_CODE_BAD_INPUT, "%s: no kernel \"%s\" for this operation; %d others apply",
                  cs_op_name(desc->op), id, cs_cuda_kernel_variants(desc, NULL, 0));
}

int64_t cs_cuda_kernel_weight_bytes(const cs_cuda_kernel *kernel, const cs_op_desc *desc) {
  return kernel->family->weight_bytes ? kernel->family->weight_bytes(desc) : 0;
}

cs_status cs_cuda_kernel_pack_weights(const cs_cuda_kernel *kernel, const cs_op_desc *desc,
                                      const float *weight, const float *bias, void *host_out) {
  return kernel->family->pack ? kernel->family->pack(desc, weight, bias, host_out) : CS_OK;
}

cs_status cs_cuda_kernel_launch(const cs_cuda_kernel *kernel, const cs_op_desc *desc,
                                const void *const *inputs, const void *weights, void *output,
                                cudaStream_t stream) {
  return kernel->family->launch(desc, kernel->id, inputs, weights, output, stream);
}

/* ---- Several operations in one launch ---- */

/* NULL: it does not merge. */
static const KernelFamily *merging_family(const char *id) {
  for (const KernelFamily *family : kFurther)
    if (family->merges && family->merges(id)) return family;
  return NULL;
}

bool cs_cuda_kernel_merges(const char *id) {
  return merging_family(id) != NULL;
}

cs_status cs_cuda_kernel_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                                       cudaStream_t stream) {
  const KernelFamily *family = merging_family(id);
  if (!family || n < 1 || n > CS_CUDA_MERGE_MOST)
    return cs_error(CS_CODE_BAD_INPUT,
                    "%d operations in one launch of \"%s\"; 1 to %d of one that merges", n, id,
                    CS_CUDA_MERGE_MOST);
  for (int i = 1; i < n; i++)
    if (parts[i].desc->output.dtype != parts[0].desc->output.dtype)
      return cs_error(CS_CODE_BAD_INPUT, "operation %d of a launch of %s has another dtype", i, id);
  return family->launch_merged(parts, n, id, stream);
}
