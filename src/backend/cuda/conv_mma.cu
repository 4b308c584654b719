/* Convolution in NHWC as an implicit matrix product on the tensor cores: rows are output pixels,
 * columns filters, and the sum runs over (tap, channel), channels innermost. Operands come through
 * a ring of shared-memory stages by cp.async (16 bytes a thread, zeros where a tap falls outside),
 * and are multiplied by mma.sync from registers that ldmatrix fills; sums stay in f32. Bias,
 * residual and activation are applied on the way out, which writes any NHWC view, so that a
 * branch's result goes straight into its slice of a concat.
 *
 * A 1x1 convolution may have a prologue (cs_op_desc), which is applied to fragments of pixels
 * between ldmatrix and mma.sync.
 *
 * One launch takes up to CS_CUDA_MERGE_MOST convolutions: each has its tiles among the blocks, and
 * nothing is shared but the launch. */
#include "backend/cuda/conv_mma.cuh"
#include "backend/cuda/conv_tiles.h"

namespace {

/* ---- Variants ---- */

/* Kernels with a prologue are others, by other names: those with and those without do not merge. */
struct MmaVariant {
  const char *id, *prologue_id;
  int rows, columns; /* of a tile */
  int split, stage_bytes;
};
const MmaVariant kVariants[] = {
#define CS_MMA_VARIANT(name, m, n, ...) \
  {CS_MMA_ID name, CS_MMA_PROLOGUE_ID name, m, n, __VA_ARGS__::kSplit, __VA_ARGS__::kBytes},
    CS_MMA_TILES(CS_MMA_VARIANT)
#undef CS_MMA_VARIANT
};
constexpr int kVariantCount = (int)(sizeof kVariants / sizeof *kVariants);
constexpr int kLargeTile = 128 * 64;  /* elements */
constexpr int kAffineMost = 32 << 10; /* bytes of scales and shifts in shared memory */

int variant_of(const char *id) {
  for (int v = 0; v < kVariantCount; v++)
    if (strcmp(id, kVariants[v].id) == 0 || strcmp(id, kVariants[v].prologue_id) == 0) return v;
  return -1;
}

/* Elements between packed filters: whole stages of every variant. */
int64_t filter_row(const cs_op_desc *desc) {
  return cs_round_up(cs_op_weight_elements(desc) / desc->attrs.conv.out_channels,
                     256 / cs_dtype_size(desc->output.dtype));
}

int64_t filters_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(filter_row(desc) * packed_filters(desc) *
                           cs_dtype_size(desc->output.dtype));
}

bool is_pointwise(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  bool padded =
      conv->pads[0] != 0 || conv->pads[1] != 0 || conv->pads[2] != 0 || conv->pads[3] != 0;
  return conv->kernel[0] == 1 && conv->kernel[1] == 1 && !padded;
}

/* Scale and shift of every channel, filled up as filters are. */
int64_t affine_bytes(const cs_op_desc *desc) {
  return desc->has_prologue ? filter_row(desc) * 2 * (int64_t)sizeof(float) : 0;
}

bool mma_takes(const cs_op_desc *desc) {
  if (!tiles_take(desc)) return false;
  if (!desc->has_prologue) return true;
  bool cuts = desc->prologue.kind == CS_ACT_NONE || desc->prologue.kind == CS_ACT_RELU;
  return cuts && is_pointwise(desc) && affine_bytes(desc) <= kAffineMost;
}

/* Where the copy engine brings the operands (conv_tma.cu), no large tile is faster without it; the
 * smallest is for any. */
bool is_worthwhile(const cs_op_desc *desc, const MmaVariant *variant, bool has_tma) {
  if (has_tma && variant->rows * variant->columns >= kLargeTile) return false;
  if (variant->split > 1 && !split_is_worthwhile(desc, variant->rows, variant->columns,
                                                 variant->split, variant->stage_bytes))
    return false;
  return tile_is_worthwhile(desc, variant->rows, variant->columns) ||
         variant == &kVariants[kVariantCount - 1];
}

int mma_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!mma_takes(desc)) return 0;
  bool has_tma = cs_tma_family.variants(desc, nullptr, 0) > 0;
  for (int v = 0; v < kVariantCount; v++)
    if (is_worthwhile(desc, &kVariants[v], has_tma))
      add_variant(ids, capacity, &count,
                  desc->has_prologue ? kVariants[v].prologue_id : kVariants[v].id);
  return count;
}

/* ---- Weights: [filter][tap][channel], filters permuted, rows and filters padded with zeros; then
 * the bias in f32; then scale and shift of each channel ---- */

int64_t affine_offset(const cs_op_desc *desc) {
  return with_bias_bytes(desc, filters_bytes(desc));
}

int64_t mma_weight_bytes(const cs_op_desc *desc) {
  return affine_offset(desc) + weight_part_bytes(affine_bytes(desc));
}

cs_status mma_pack(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out) {
  int64_t row_elements = filter_row(desc), channels = desc->inputs[0].shape.dims[1];
  memset(host_out, 0, (size_t)mma_weight_bytes(desc));
  pack_filters(desc, weight, [&](int64_t row, int64_t tap, int64_t c, float value) {
    put_rounded(desc->output.dtype, host_out, row * row_elements + tap * channels + c, value);
  });
  pack_bias(desc, bias, filters_bytes(desc), host_out);
  if (!desc->has_prologue) return CS_OK;
  const float *scale = cs_op_prologue(desc, bias), *shift = scale + channels;
  float *affine = reinterpret_cast<float *>(static_cast<char *>(host_out) + affine_offset(desc));
  for (int64_t c = 0; c < channels; c++) affine[2 * c] = scale[c], affine[2 * c + 1] = shift[c];
  return CS_OK;
}

/* ---- Launch ---- */

MmaPart part_of(const cs_cuda_merge_part *from, const MmaVariant *variant, int stage_bytes) {
  const cs_op_desc *desc = from->desc;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]);
  MmaPart p = {};
  fill_output(from, variant->columns, filters_bytes(desc), &p);
  p.x = from->inputs[0], p.w = from->weights;
  p.channels = (int32_t)in.dim[1];
  p.packed = (int32_t)packed_filters(desc);
  int64_t sum_bytes =
      conv->kernel[0] * conv->kernel[1] * in.dim[1] * cs_dtype_size(desc->output.dtype);
  p.steps = (int32_t)((sum_bytes + stage_bytes - 1) / stage_bytes);
  p.w_row = (int32_t)filter_row(desc);
  p.height = (int32_t)in.dim[2], p.width = (int32_t)in.dim[3];
  p.taps_h = (int32_t)conv->kernel[0], p.taps_w = (int32_t)conv->kernel[1];
  p.stride_h = (int32_t)conv->strides[0], p.stride_w = (int32_t)conv->strides[1];
  p.dilation_h = (int32_t)conv->dilations[0], p.dilation_w = (int32_t)conv->dilations[1];
  p.pad_top = (int32_t)conv->pads[0], p.pad_left = (int32_t)conv->pads[1];
  p.in = strides_of<false>(in.stride);
  if (desc->has_prologue) p.affine = static_cast<const char *>(from->weights) + affine_offset(desc);
  p.affine_vectors = (int32_t)(affine_bytes(desc) / 16);
  p.lowest = desc->prologue.kind == CS_ACT_RELU ? 0.f : -INFINITY;
  return p;
}

template <typename T, typename C, bool POINTWISE>
cs_status launch_tile(const MmaParams &params, int64_t blocks, cudaStream_t stream) {
  return launch_kernel_shared("conv_mma", cs_conv_mma_kernel<T, C, POINTWISE, false>,
                              dim3((unsigned)blocks), dim3(C::kThreads), params, C::kShared,
                              C::kShared, stream, C::kSplit);
}

/* Warps side by side apply the prologue to the same pixels, each for its own filters. Where a warp
 * has more pixels than filters, twice as many filters for half the pixels are as many fragments to
 * load and half as many to apply it to. */
template <typename C>
using PrologueTile = std::conditional_t<(C::kWarpM > C::kWarpN),
                                        Tile<C::kM, C::kN, C::kWarpsM * 2, C::kWarpsN / 2,
                                             C::kWarpsK, C::kBytes, C::kStages, C::kSplit>,
                                        C>;

template <typename T, typename C>
cs_status launch_prologue_tile(const MmaParams &params, int64_t blocks, cudaStream_t stream) {
  int affine = 0;
  for (int i = 0; i < params.n; i++) affine = max(affine, params.part[i].affine_vectors * 16);
  return launch_kernel_shared("conv_mma_pre", cs_conv_mma_kernel<T, C, true, true>,
                              dim3((unsigned)blocks), dim3(C::kThreads), params,
                              (size_t)(C::kShared + affine), C::kShared + kAffineMost, stream,
                              C::kSplit);
}

template <typename T, typename C>
cs_status launch_parts(const cs_cuda_merge_part *parts, int n, int variant, cudaStream_t stream) {
  MmaParams params = {};
  bool pointwise = true;
  for (int i = 0; i < n; i++) {
    MmaPart part = part_of(&parts[i], &kVariants[variant], C::kBytes);
    if (part.rows == 0) continue;
    params.part[params.n++] = part;
    pointwise = pointwise && is_pointwise(parts[i].desc);
  }
  int64_t blocks = arrange(params.part, params.n, kVariants[variant].rows, C::kSplit);
  if (blocks == 0) return CS_OK;
  if (blocks > INT32_MAX) return too_many_blocks("conv_mma", blocks);
  if (parts[0].desc->has_prologue)
    return launch_prologue_tile<T, PrologueTile<C>>(params, blocks, stream);
  return pointwise ? launch_tile<T, C, true>(params, blocks, stream)
                   : launch_tile<T, C, false>(params, blocks, stream);
}

using PartsLauncher = cs_status (*)(const cs_cuda_merge_part *parts, int n, int variant,
                                    cudaStream_t stream);

cs_status launch_variant(cs_dtype dtype, int variant, const cs_cuda_merge_part *parts, int n,
                         cudaStream_t stream) {
  return by_dtype(dtype, [&](auto type) {
    static constexpr PartsLauncher launchers[] = {
#define CS_MMA_LAUNCHER(name, m, n, ...) launch_parts<decltype(type), __VA_ARGS__>,
        CS_MMA_TILES(CS_MMA_LAUNCHER)
#undef CS_MMA_LAUNCHER
    };
    return launchers[variant](parts, n, variant, stream);
  });
}

/* The caller found the variant among those of the operation. */
cs_status mma_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                     const void *weights, void *output, cudaStream_t stream) {
  cs_cuda_merge_part part = {desc, inputs, weights, output};
  return launch_variant(desc->output.dtype, variant_of(id), &part, 1, stream);
}

bool mma_merges(const char *id) {
  return variant_of(id) >= 0;
}

cs_status mma_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                            cudaStream_t stream) {
  bool prologue = strcmp(id, kVariants[variant_of(id)].prologue_id) == 0;
  for (int i = 0; i < n; i++)
    if (!mma_takes(parts[i].desc) || parts[i].desc->has_prologue != prologue)
      return cs_error(CS_CODE_BAD_INPUT, "%s does not take operation %d of a launch", id, i);
  return launch_variant(parts[0].desc->output.dtype, variant_of(id), parts, n, stream);
}

}  // namespace

const KernelFamily cs_mma_family = {mma_variants, mma_weight_bytes, mma_pack,
                                    mma_launch,   mma_merges,       mma_launch_merged};
