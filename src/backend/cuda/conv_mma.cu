/* Convolution in NHWC as an implicit matrix product on the tensor cores: rows are output pixels,
 * columns filters, and the sum runs over (tap, channel), channels innermost. Operands come through
 * a ring of shared-memory stages by cp.async (16 bytes a thread, zeros where a tap falls outside),
 * and are multiplied by mma.sync from registers that ldmatrix fills, or by wgmma where they lie;
 * sums stay in f32. Bias, residual and activation are applied on the way out, which writes any NHWC
 * view, so that a branch's result goes straight into its slice of a concat.
 *
 * One launch takes up to CS_CUDA_MERGE_MOST convolutions: each has its tiles among the blocks, and
 * nothing is shared but the launch. */
#include "backend/cuda/conv_mma.cuh"

namespace {

/* ---- Variants ---- */

/* X(id, rows, columns, tile). Large tiles read each operand less often; small ones, and those that
 * share a sum among warps, reach more SMs where there are few pixels; the last is for any. The
 * third number of a tile for wgmma are its stages: with fewer, more blocks fit on an SM. */
#define CS_MMA_ASYNC_TILES(X)                                    \
  X("cuda.wgmma.v1-128x192x4", 128, 192, AsyncTile<128, 192, 4>) \
  X("cuda.wgmma.v1-128x128x3", 128, 128, AsyncTile<128, 128, 3>) \
  X("cuda.wgmma.v1-128x64x4", 128, 64, AsyncTile<128, 64, 4>)    \
  X("cuda.wgmma.v1-128x64x3", 128, 64, AsyncTile<128, 64, 3>)    \
  X("cuda.wgmma.v1-64x128x3", 64, 128, AsyncTile<64, 128, 3>)    \
  X("cuda.wgmma.v1-64x64x4", 64, 64, AsyncTile<64, 64, 4>)
#define CS_MMA_TILES(X)                                               \
  X("cuda.mma.v3-128x128", 128, 128, Tile<128, 128, 2, 4, 1, 128, 3>) \
  X("cuda.mma.v3-128x64", 128, 64, Tile<128, 64, 2, 2, 1, 128, 3>)    \
  X("cuda.mma.v3-64x128", 64, 128, Tile<64, 128, 2, 2, 1, 128, 3>)    \
  X("cuda.mma.v3-64x64", 64, 64, Tile<64, 64, 2, 1, 2, 128, 3>)       \
  X("cuda.mma.v3-64x32", 64, 32, Tile<64, 32, 2, 1, 2, 128, 4>)       \
  X("cuda.mma.v3-32x64", 32, 64, Tile<32, 64, 1, 2, 4, 256, 3>)       \
  X("cuda.mma.v3-32x32", 32, 32, Tile<32, 32, 1, 1, 4, 256, 4>)       \
  X("cuda.mma.v3-16x32", 16, 32, Tile<16, 32, 1, 1, 8, 256, 4>)

struct MmaVariant {
  const char *id;
  int rows, columns; /* of a tile */
  bool async;        /* needs wgmma */
};
const MmaVariant kVariants[] = {
#define CS_MMA_VARIANT(id, m, n, ...) {id, m, n, __VA_ARGS__::kAsync},
    CS_MMA_ASYNC_TILES(CS_MMA_VARIANT) CS_MMA_TILES(CS_MMA_VARIANT)
#undef CS_MMA_VARIANT
};
constexpr int kVariantCount = (int)(sizeof kVariants / sizeof *kVariants);
constexpr int kAsyncTile = 128 * 64; /* elements of a tile */
constexpr int kColumnsMost = 192;    /* of a tile */
constexpr int64_t kTapsMost = 15;    /* of an axis: bits of half a word, and one more */

int variant_of(const char *id) {
  for (int v = 0; v < kVariantCount; v++)
    if (strcmp(id, kVariants[v].id) == 0) return v;
  return -1;
}

/* Elements between packed filters: whole stages of every variant. */
int64_t filter_row(const cs_op_desc *desc) {
  return cs_round_up(cs_op_weight_elements(desc) / desc->attrs.conv.out_channels,
                     256 / cs_dtype_size(desc->output.dtype));
}

/* Filters with the zeros that fill the last group of those that are permuted. */
int64_t packed_filters(const cs_op_desc *desc) {
  return cs_round_up(desc->attrs.conv.out_channels, 64 / cs_dtype_size(desc->output.dtype));
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

/* With the padding, as offsets of taps outside are added up too. */
bool window_fits_narrow(const cs_op_desc *desc) {
  const int64_t *pads = desc->attrs.conv.pads;
  View in = view_of(&desc->inputs[0]);
  int64_t left = kNarrowLimit - view_last(in);
  for (int axis = 0; axis < 2; axis++) {
    int64_t extent = in.dim[2 + axis] + pads[axis] + pads[2 + axis];
    int64_t stride = cs_max_i64(in.stride[2 + axis], 1);
    if (extent >= left / stride) return false;
    left -= extent * stride;
  }
  return true;
}

bool takes(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV || desc->precision == CS_PRECISION_F32) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  if (desc->output.shape.rank != 4 || conv->group != 1) return false;
  if (conv->kernel[0] > kTapsMost || conv->kernel[1] > kTapsMost) return false;
  if (desc->output.layout != CS_LAYOUT_NHWC || view_of(&desc->output).stride[1] != 1) return false;
  bool narrow = fits_narrow(view_of(&desc->output)) &&
                filter_row(desc) * (conv->out_channels + kColumnsMost) < kNarrowLimit;
  for (int i = 0; i < desc->n_inputs; i++)
    narrow = narrow && fits_narrow(view_of(&desc->inputs[i]));
  if (desc->has_residual && view_of(&desc->inputs[desc->n_inputs - 1]).stride[1] != 1) return false;
  return narrow && window_fits_narrow(desc) && desc->inputs[0].shape.dims[1] % width == 0 &&
         channels_vectorise(&desc->inputs[0], width);
}

/* wgmma was compiled in, and the current device has it: sm_90a is for compute capability 9.0. */
bool device_has_wgmma() {
#if CS_CUDA_SM90A
  int device, major, minor;
  bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
  if (!known) (void)cudaGetLastError(); /* there is no device */
  return known && major == 9 && minor == 0;
#else
  return false;
#endif
}

/* Where there is wgmma, no large tile is faster without it. One that would compute more than four
 * times what is asked for is not worth measuring. */
bool is_worthwhile(const cs_op_desc *desc, const MmaVariant *variant, bool async) {
  if (variant->async && !async) return false;
  if (!variant->async && async && variant->rows * variant->columns >= kAsyncTile) return false;
  int64_t filters = desc->attrs.conv.out_channels;
  int64_t pixels = view_elements(view_of(&desc->output)) / filters;
  return cs_round_up(filters, variant->columns) * cs_round_up(pixels, variant->rows) <=
             4 * filters * pixels ||
         variant == &kVariants[kVariantCount - 1];
}

int mma_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!takes(desc)) return 0;
  bool async = device_has_wgmma();
  for (int v = 0; v < kVariantCount; v++)
    if (is_worthwhile(desc, &kVariants[v], async))
      add_variant(ids, capacity, &count, kVariants[v].id);
  return count;
}

/* ---- Weights: [filter][tap][channel], filters permuted, rows and filters padded with zeros; then
 * the bias in f32 ---- */

int64_t mma_weight_bytes(const cs_op_desc *desc) {
  int64_t bias = desc->has_bias ? desc->attrs.conv.out_channels * (int64_t)sizeof(float) : 0;
  return filters_bytes(desc) + weight_part_bytes(bias);
}

/* Where among the packed filters a filter comes (fragment_filter). */
template <typename T>
int64_t packed_row(int64_t filter) {
  constexpr int kTogether = 4 * kVector<T>; /* filters permuted among themselves */
  int64_t in = filter % kTogether;
  for (int column = 0; column < kTogether; column++)
    if (fragment_filter<T>(column / 8, column % 8 / 2) + column % 2 == in)
      return filter - in + column;
  return filter; /* not reached: it is a permutation */
}

void mma_pack(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t taps = conv->kernel[0] * conv->kernel[1], channels = desc->inputs[0].shape.dims[1];
  bool f32 = desc->output.dtype == CS_DTYPE_F32;
  memset(host_out, 0, (size_t)mma_weight_bytes(desc));
  for (int64_t k = 0; k < conv->out_channels; k++) {
    int64_t row = (f32 ? packed_row<float>(k) : packed_row<__half>(k)) * filter_row(desc);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        float value = *weight++;
        put_rounded(desc->output.dtype, host_out, row + tap * channels + c,
                    f32 ? round_tf32(value) : value);
      }
  }
  if (desc->has_bias)
    memcpy((char *)host_out + filters_bytes(desc), bias,
           (size_t)conv->out_channels * sizeof(float));
}

/* ---- Launch ---- */

MmaPart part_of(const cs_cuda_merge_part *from, const MmaVariant *variant, int stage_bytes) {
  const cs_op_desc *desc = from->desc;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  MmaPart p = {};
  p.x = from->inputs[0], p.w = from->weights, p.y = from->output;
  p.wide = conv->out_channels % width == 0 && channels_vectorise(&desc->output, width);
  if (desc->has_bias)
    p.bias = reinterpret_cast<const float *>(static_cast<const char *>(from->weights) +
                                             filters_bytes(desc));
  if (desc->has_residual) {
    const cs_tensor_desc *residual = &desc->inputs[desc->n_inputs - 1];
    p.residual = from->inputs[desc->n_inputs - 1];
    p.added = strides_of<false>(view_of(residual).stride);
    p.wide = p.wide && channels_vectorise(residual, width);
  }
  p.rows = (int32_t)(out.dim[0] * out.dim[2] * out.dim[3]);
  p.filters = (int32_t)conv->out_channels, p.channels = (int32_t)in.dim[1];
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
  p.in = strides_of<false>(in.stride), p.out = strides_of<false>(out.stride);
  set_divisor(&p.out_w, out.dim[3]);
  set_divisor(&p.out_h, out.dim[2]);
  p.act = activation_of(desc->activation);
  p.columns = (p.filters + variant->columns - 1) / variant->columns;
  return p;
}

/* Parts with the longest sums first, so that short ones fill the end; their first blocks. */
int64_t arrange(MmaParams *params, const MmaVariant *variant) {
  for (int i = 1; i < params->n; i++)
    for (int j = i; j > 0 && params->part[j].steps > params->part[j - 1].steps; j--) {
      MmaPart other = params->part[j];
      params->part[j] = params->part[j - 1];
      params->part[j - 1] = other;
    }
  int64_t blocks = 0;
  for (int i = 0; i < params->n; i++) {
    MmaPart *p = &params->part[i];
    p->first = (int32_t)cs_min_i64(blocks, INT32_MAX);
    blocks += (int64_t)p->columns * ((p->rows + (int64_t)variant->rows - 1) / variant->rows);
  }
  return blocks;
}

template <typename T, typename C, bool POINTWISE>
cs_status launch_tile(const MmaParams &params, int64_t blocks, cudaStream_t stream) {
  return launch_kernel_shared("conv_mma", cs_conv_mma_kernel<T, C, POINTWISE>,
                              dim3((unsigned)blocks), dim3(C::kThreads), params, C::kShared,
                              C::kShared, stream);
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
  int64_t blocks = arrange(&params, &kVariants[variant]);
  if (blocks == 0) return CS_OK;
  if (blocks > INT32_MAX)
    return cs_error(CS_CODE_BAD_INPUT, "kernel conv_mma: %lld blocks; at most %d fit",
                    (long long)blocks, INT32_MAX);
  return pointwise ? launch_tile<T, C, true>(params, blocks, stream)
                   : launch_tile<T, C, false>(params, blocks, stream);
}

using PartsLauncher = cs_status (*)(const cs_cuda_merge_part *parts, int n, int variant,
                                    cudaStream_t stream);

cs_status launch_variant(cs_dtype dtype, int variant, const cs_cuda_merge_part *parts, int n,
                         cudaStream_t stream) {
  return by_dtype(dtype, [&](auto type) {
    static constexpr PartsLauncher launchers[] = {
#define CS_MMA_LAUNCHER(id, m, n, ...) launch_parts<decltype(type), __VA_ARGS__>,
        CS_MMA_ASYNC_TILES(CS_MMA_LAUNCHER) CS_MMA_TILES(CS_MMA_LAUNCHER)
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

}  // namespace

const KernelFamily cs_mma_family = {mma_variants, mma_weight_bytes, mma_pack, mma_launch};

bool cs_cuda_kernel_merges(const char *id) {
  return variant_of(id) >= 0;
}

cs_status cs_cuda_kernel_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                                       cudaStream_t stream) {
  int variant = variant_of(id);
  if (variant < 0 || n < 1 || n > CS_CUDA_MERGE_MOST)
    return cs_error(CS_CODE_BAD_INPUT,
                    "%d operations in one launch of \"%s\"; 1 to %d of a cuda.mma or cuda.wgmma", n,
                    id, CS_CUDA_MERGE_MOST);
  if (kVariants[variant].async && !device_has_wgmma())
    return cs_error(CS_CODE_BAD_INPUT, "%s: the device has no wgmma (compute capability 9.0)", id);
  cs_dtype dtype = parts[0].desc->output.dtype;
  for (int i = 0; i < n; i++)
    if (!takes(parts[i].desc) || parts[i].desc->output.dtype != dtype)
      return cs_error(CS_CODE_BAD_INPUT, "%s does not take operation %d of a launch", id, i);
  return launch_variant(dtype, variant, parts, n, stream);
}
