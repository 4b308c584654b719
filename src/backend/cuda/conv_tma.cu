/* Convolution in NHWC on Hopper as an implicit matrix product whose operands the copy engine
 * brings: the pixels by im2col maps, which find each tap's pixels and fill zeros in where it falls
 * outside, the filters as blocks that are packed as they lie in shared memory. No thread computes
 * an address of a pixel, and f32 is rounded to tf32 on the way. As in conv_mma.cu the result goes
 * straight into any NHWC view, and a launch takes several convolutions. */
#include "backend/cuda/conv_tiles.h"
#include "backend/cuda/conv_tma.cuh"
#include "backend/cuda/tensor_map.cuh"

namespace {

/* ---- Variants ---- */

struct TmaVariant {
  const char *id;
  int rows, columns; /* of a tile */
  int split;
};
const TmaVariant kVariants[] = {
#define CS_TMA_VARIANT(name, m, n, ...) {CS_TMA_ID name, m, n, __VA_ARGS__::kSplit},
    CS_TMA_TILES(CS_TMA_VARIANT)
#undef CS_TMA_VARIANT
};
/* Of conv_transposed.cu, which names them; not offered for a convolution. */
const TmaVariant kLarge[] = {
#define CS_TMA_VARIANT(name, m, n, ...) {CS_TMA_ID name, m, n, 1},
    CS_TMA_LARGE_TILES(CS_TMA_VARIANT)
#undef CS_TMA_VARIANT
};
constexpr int kVariantCount = (int)(sizeof kVariants / sizeof *kVariants);
constexpr int kLargeCount = (int)(sizeof kLarge / sizeof *kLarge);

/* Large ones behind the others; -1: none. */
int variant_of(const char *id) {
  for (int v = 0; v < kVariantCount; v++)
    if (strcmp(id, kVariants[v].id) == 0) return v;
  for (int v = 0; v < kLargeCount; v++)
    if (strcmp(id, kLarge[v].id) == 0) return kVariantCount + v;
  return -1;
}
const TmaVariant &variant_at(int v) {
  return v < kVariantCount ? kVariants[v] : kLarge[v - kVariantCount];
}

using EncodeIm2col = decltype(&cuTensorMapEncodeIm2col);

/* NULL: the driver has none. */
EncodeIm2col encode_im2col() {
  return driver_function<EncodeIm2col>("cuTensorMapEncodeIm2col");
}

/* What the box of pixels goes beyond the input's first and last, negative inwards (width, height).
 */
struct Corners {
  int lower[2], upper[2];
};
constexpr int64_t kCornerMost = 127, kOffsetMost = 255, kStrideMost = 8; /* of im2col maps */

/* False: out of what a map can say. */
bool corners_of(const cs_op_desc *desc, Corners *out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  for (int axis = 0; axis < 2; axis++) {
    int64_t beyond = (conv->kernel[axis] - 1) * conv->dilations[axis];
    int64_t begin = conv->pads[axis], end = conv->pads[2 + axis] - beyond;
    if (beyond > kOffsetMost || begin > kCornerMost || begin < -kCornerMost || end > kCornerMost ||
        end < -kCornerMost || conv->strides[axis] > kStrideMost)
      return false;
    out->lower[1 - axis] = (int)-begin, out->upper[1 - axis] = (int)end;
  }
  return true;
}

/* Channels that fill less than half of a stage waste more than they gain. */
bool tma_takes(const cs_op_desc *desc) {
  Corners corners;
  if (desc->has_prologue || !tiles_take(desc) || !corners_of(desc, &corners)) return false;
  int64_t channels = desc->inputs[0].shape.dims[1];
  return 2 * channels >= filled_elements(desc, channels, kStageRow) && device_has_wgmma() &&
         encode_im2col() != nullptr;
}

int tma_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!tma_takes(desc)) return 0;
  for (const TmaVariant &v : kVariants) {
    bool worthwhile =
        tile_is_worthwhile(desc, v.rows, v.columns) &&
        (v.split == 1 || split_is_worthwhile(desc, v.rows, v.columns, v.split, kStageRow));
    if (worthwhile) add_variant(ids, capacity, &count, v.id);
  }
  return count;
}

/* ---- Weights: [tap][channels of a stage][filter][128 bytes], 16-byte vectors swizzled as
 * matrix_low says, filters permuted, filled up with zeros; then the bias in f32 ---- */

int64_t stages_of_tap(const cs_op_desc *desc) {
  int64_t bytes = desc->inputs[0].shape.dims[1] * cs_dtype_size(desc->output.dtype);
  return (bytes + kStageRow - 1) / kStageRow;
}

int64_t stages_of(const cs_op_desc *desc) {
  return desc->attrs.conv.kernel[0] * desc->attrs.conv.kernel[1] * stages_of_tap(desc);
}

int64_t filters_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(stages_of(desc) * packed_filters(desc) * kStageRow);
}

int64_t tma_weight_bytes(const cs_op_desc *desc) {
  return with_bias_bytes(desc, filters_bytes(desc));
}

cs_status tma_pack(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out) {
  int64_t size = cs_dtype_size(desc->output.dtype), width = kStageRow / size;
  int64_t chunks = stages_of_tap(desc), packed = packed_filters(desc);
  memset(host_out, 0, (size_t)tma_weight_bytes(desc));
  pack_filters(desc, weight, [&](int64_t row, int64_t tap, int64_t c, float value) {
    int64_t stage = tap * chunks + c / width, byte = c % width * size;
    int64_t at = stage * packed * kStageRow + swizzled_at(row, byte);
    put_rounded(desc->output.dtype, host_out, at / size, value);
  });
  pack_bias(desc, bias, filters_bytes(desc), host_out);
  return CS_OK;
}

/* ---- Launch ---- */

/* Columns of `rows` output pixels of the input. */
cs_status encode_map(const cs_op_desc *desc, const void *input, int rows, CUtensorMap *out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t size = cs_dtype_size(desc->output.dtype);
  MapView in = map_view_of(view_of(&desc->inputs[0]), size);
  cuuint32_t steps[4] = {1, (cuuint32_t)conv->strides[1], (cuuint32_t)conv->strides[0], 1};
  Corners corners;
  if (!corners_of(desc, &corners))
    return cs_error(CS_CODE_BAD_INPUT, "kernel conv_tma: a window that no im2col map describes");
  EncodeIm2col encode = encode_im2col();
  if (!encode) return cs_error(CS_CODE_DEVICE, "kernel conv_tma: the driver makes no im2col maps");
  CUresult result =
      encode(out, map_type_of(desc->output.dtype), 4, const_cast<void *>(input), in.dims,
             in.strides, corners.lower, corners.upper, (cuuint32_t)(kStageRow / size),
             (cuuint32_t)rows, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return CS_OK;
  return cs_error(CS_CODE_DEVICE, "kernel conv_tma: the driver makes no im2col map (error %d)",
                  (int)result);
}

cs_status part_of(const cs_cuda_merge_part *from, const TmaVariant *variant, TmaPart *p) {
  const cs_op_desc *desc = from->desc;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  fill_output(from, variant->columns, filters_bytes(desc), p);
  p->w = static_cast<const char *>(from->weights);
  p->packed = (int32_t)packed_filters(desc);
  p->chunks = (int32_t)stages_of_tap(desc), p->steps = (int32_t)stages_of(desc);
  p->stride_h = (int32_t)conv->strides[0], p->stride_w = (int32_t)conv->strides[1];
  p->dilation_h = (int32_t)conv->dilations[0], p->dilation_w = (int32_t)conv->dilations[1];
  p->pad_top = (int32_t)conv->pads[0], p->pad_left = (int32_t)conv->pads[1];
  p->taps_w = (int32_t)conv->kernel[1];
  return p->rows > 0 ? encode_map(desc, from->inputs[0], variant->rows, &p->x) : CS_OK;
}

template <typename T, typename C>
cs_status launch_tile(const TmaParams &params, int64_t blocks, cudaStream_t stream) {
  return launch_kernel_shared("conv_tma", cs_conv_tma_kernel<T, C>, dim3((unsigned)blocks),
                              dim3(C::kThreads), params, C::kShared, C::kShared, stream, C::kSplit);
}

using TileLauncher = cs_status (*)(const TmaParams &params, int64_t blocks, cudaStream_t stream);

cs_status launch_variant(cs_dtype dtype, int variant, const cs_cuda_merge_part *parts, int n,
                         cudaStream_t stream) {
  TmaParams params = {};
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(part_of(&parts[i], &variant_at(variant), &params.part[params.n]));
    params.n += params.part[params.n].rows > 0;
  }
  int64_t blocks =
      arrange(params.part, params.n, variant_at(variant).rows, variant_at(variant).split);
  if (blocks == 0) return CS_OK;
  if (blocks > INT32_MAX) return too_many_blocks("conv_tma", blocks);
  return by_dtype(dtype, [&](auto type) {
    static constexpr TileLauncher launchers[] = {
#define CS_TMA_LAUNCHER(name, m, n, ...) launch_tile<decltype(type), __VA_ARGS__>,
        CS_TMA_TILES(CS_TMA_LAUNCHER)
#undef CS_TMA_LAUNCHER
#define CS_TMA_LAUNCHER(name, m, n, above, ...) launch_tile<decltype(type), __VA_ARGS__>,
            CS_TMA_LARGE_TILES(CS_TMA_LAUNCHER)
#undef CS_TMA_LAUNCHER
    };
    return launchers[variant](params, blocks, stream);
  });
}

/* The caller found the variant among those of the operation. */
cs_status tma_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                     const void *weights, void *output, cudaStream_t stream) {
  cs_cuda_merge_part part = {desc, inputs, weights, output};
  return launch_variant(desc->output.dtype, variant_of(id), &part, 1, stream);
}

bool tma_merges(const char *id) {
  return variant_of(id) >= 0;
}

cs_status tma_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                            cudaStream_t stream) {
  for (int i = 0; i < n; i++)
    if (!tma_takes(parts[i].desc))
      return cs_error(CS_CODE_BAD_INPUT, "%s does not take operation %d of a launch here", id, i);
  return launch_variant(parts[0].desc->output.dtype, variant_of(id), parts, n, stream);
}

}  // namespace

const KernelFamily cs_tma_family = {tma_variants, tma_weight_bytes, tma_pack,
                                    tma_launch,   tma_merges,       tma_launch_merged};
