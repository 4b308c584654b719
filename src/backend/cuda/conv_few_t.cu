/* Transposed convolution by steps of 2 to few channels (a generator's last: 3), of NHWC, on the
 * tensor cores. What it computes is little: time goes into reading the input, which happens once. A
 * warp walks down a part of an image, 16 or 32 columns of 2 × 2 output pixels wide: rows of inputs
 * come into its own ring of shared memory ahead of time, and each is multiplied with the weights of
 * all the rows of outputs that it reaches, whose sums stay in registers until they are whole. So
 * warps wait for nobody. Weights are packed as fragments; a warp holds them in registers where
 * their number is a known one. Sums leave through shared memory as whole lines of outputs. */
#include "backend/cuda/conv_few_t_plan.cuh"

namespace {

int few_t_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!few_t_takes(desc)) return 0;
  for (const FewTVariant &variant : kFewTVariants)
    if (few_t_offers(desc, variant)) add_variant(ids, capacity, &count, variant.id);
  return count;
}

/* ---- Weights: [step][fragment][lane][2 words]; then the bias in f32 ---- */

int64_t bias_at(const cs_op_desc *desc) {
  return weight_part_bytes(few_t_fragments_bytes(desc));
}

int64_t few_t_weight_bytes(const cs_op_desc *desc) {
  if (!few_t_takes(desc)) return 0;
  return bias_at(desc) + weight_part_bytes(kFewTFiltersMost * (int64_t)sizeof(float));
}

/* PyTorch's [channel][filter][row][column]; 0 beyond. */
float weight_at(const cs_op_desc *desc, const float *weight, int64_t channel, int64_t filter,
                int64_t row, int64_t column) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t size = conv->kernel[0];
  if (channel >= desc->inputs[0].shape.dims[1] || filter >= conv->out_channels) return 0.f;
  float value = weight[((channel * conv->out_channels + filter) * size + row) * size + column];
  return desc->output.dtype == CS_DTYPE_F32 ? round_tf32(value) : value;
}

/* Row of a step's weights that element e of a lane is, as mma has them: two neighbours and two 8
 * rows on, or (f32) one and one 4 rows on. */
int64_t row_in_step(cs_dtype dtype, int lane, int e) {
  return dtype == CS_DTYPE_F32 ? lane % 4 + 4 * e : lane % 4 * 2 + e % 2 + e / 2 * 8;
}

template <typename S>
void pack_step(const cs_op_desc *desc, const float *weight, int64_t step, void *host_out) {
  cs_dtype dtype = desc->output.dtype;
  int elements = dtype == CS_DTYPE_F32 ? 2 : 4, shift = 0;
  for_products<S>([&](int a) { shift = a; },
                  [&](int fragment, int s, int i, int u) {
                    for (int lane = 0; lane < 32; lane++)
                      for (int e = 0; e < elements; e++) {
                        int64_t at = (step * S::kFragments + fragment) * 32 + lane;
                        int64_t channel = step * 4 * elements + row_in_step(dtype, lane, e);
                        int n = lane / 4; /* column of the fragment */
                        put_rounded(dtype, host_out, at * elements + e,
                                    weight_at(desc, weight, channel, S::filter_of(n),
                                              2 * i + S::row_of(u, n), S::tap_w(s, shift)));
                      }
                  });
}

cs_status few_t_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                     void *host_out) {
  if (!few_t_takes(desc)) return CS_OK; /* not offered */
  memset(host_out, 0, (size_t)few_t_weight_bytes(desc));
  for (int64_t step = 0; step < few_t_steps(desc); step++)
    few_t_by_shape(desc,
                   [&](auto shape) { pack_step<decltype(shape)>(desc, weight, step, host_out); });
  if (desc->has_bias)
    memcpy(static_cast<char *>(host_out) + bias_at(desc), bias,
           (size_t)desc->attrs.conv.out_channels * sizeof(float));
  return CS_OK;
}

/* ---- Launch ---- */

/* The caller found the variant among those of the operation. */
cs_status few_t_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                       const void *weights, void *output, cudaStream_t stream) {
  int v = 0;
  while (strcmp(id, kFewTVariants[v].id) != 0) v++;
  return few_t_by_tile(desc, id, [&](auto tile) {
    using C = decltype(tile);
    if (view_elements(view_of(&desc->output)) == 0) return CS_OK;
    FewTLaunch launch;
    FewTParams p = few_t_params<C>(desc, kFewTVariants[v], &launch);
    p.x = inputs[0], p.w = weights, p.y = output;
    p.bias = reinterpret_cast<const float *>(static_cast<const char *>(weights) + bias_at(desc));
    return launch_kernel_shared("conv_few_t", cs_conv_few_t_kernel<C>,
                                dim3((unsigned)launch.blocks), dim3((unsigned)(32 * launch.warps)),
                                p, (size_t)launch.shared, (int)kFewTSharedMost, stream);
  });
}

}  // namespace

const KernelFamily cs_few_transposed_family = {few_t_variants, few_t_weight_bytes, few_t_pack,
                                               few_t_launch};
