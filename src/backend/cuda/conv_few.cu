/* Convolution of few channels (a network's first: 3) into NHWC on the tensor cores. Where channels
 * are too few for 16-byte vectors, a row of the kernel is the unit of the sum: with channels
 * innermost, the inputs under it are adjacent, whatever pixel and channel they belong to. A block
 * holds the inputs under a tile of output pixels, and all its filters, in shared memory; each
 * fragment of the implicit matrix is read from there where it lies, pixel by pixel overlapping.
 * Filters are packed as fragments, so that they are read as such, and in an order in which a
 * thread's sums are adjacent filters and leave as 16-byte vectors. */
#include "backend/cuda/conv_few.cuh"

namespace {

/* ---- Variants ---- */

/* X(id, warps, rows of 16 pixels a warp): large tiles read fewer inputs twice and load filters less
 * often, small ones reach more SMs. */
#define CS_FEW_TILES(X)            \
  X("cuda.mma_few.v1-16x16", 8, 2) \
  X("cuda.mma_few.v1-8x16", 4, 2)  \
  X("cuda.mma_few.v1-4x16", 4, 1)

struct FewVariant {
  const char *id;
  int height; /* of a tile */
};
const FewVariant kVariants[] = {
#define CS_FEW_VARIANT(id, warps, rows) {id, (warps) * (rows)},
    CS_FEW_TILES(CS_FEW_VARIANT)
#undef CS_FEW_VARIANT
};
constexpr int kVariantCount = (int)(sizeof kVariants / sizeof *kVariants);
constexpr int64_t kSharedMost = 96 << 10; /* bytes a block: two of them to an SM */
constexpr int64_t kTilesWanted = 400;     /* blocks that fill the device about once */
constexpr int64_t kTilesABlock = 8;
constexpr int64_t kChannelsMost = 8;
constexpr int64_t kExtentMost = 1 << 24; /* of an image, and of its padding */

/* ---- The sum: groups of 8 elements of the kernel's rows ---- */

struct FewSum {
  int64_t pixel;  /* elements of a pixel in shared memory: channels, one more where pairs would lie
                     at odd offsets */
  int64_t groups; /* of a row */
  int64_t steps, tail;
};

FewSum sum_of(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  FewSum s;
  s.pixel = desc->inputs[0].shape.dims[1];
  if (s.pixel * conv->strides[1] % 2 != 0) s.pixel++;
  int64_t row = conv->kernel[1] * s.pixel, groups_a_step = 4 / cs_dtype_size(desc->output.dtype);
  s.groups = (row + kGroupElements - 1) / kGroupElements;
  s.tail = row - (s.groups - 1) * kGroupElements;
  s.steps = (conv->kernel[0] * s.groups + groups_a_step - 1) / groups_a_step;
  return s;
}

/* Filters of a tile, in fragments of 8: half as many where they would fill the shared memory. */
int fragments_across(const cs_op_desc *desc) {
  return desc->attrs.conv.out_channels > 32 && sum_of(desc).steps * 8 * 32 * 8 <= kSharedMost / 2
             ? 8
             : 4;
}

int64_t columns_of(const cs_op_desc *desc) {
  int64_t filters = 8 * fragments_across(desc);
  return (desc->attrs.conv.out_channels + filters - 1) / filters;
}

/* Of one tile of filters. */
int64_t fragments_bytes(const cs_op_desc *desc) {
  return sum_of(desc).steps * fragments_across(desc) * 32 * 8;
}

struct FewInputs {
  int64_t rows, elements, pitch; /* under a tile of output pixels */
};

FewInputs inputs_of(const cs_op_desc *desc, int height) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  FewSum s = sum_of(desc);
  FewInputs in;
  in.rows = (height - 1) * conv->strides[0] + (conv->kernel[0] - 1) * conv->dilations[0] + 1;
  int64_t across = (kFewColumns - 1) * conv->strides[1];
  in.elements = (across + conv->kernel[1]) * s.pixel;
  in.pitch = across * s.pixel + s.groups * kGroupElements; /* even: so is each summand */
  return in;
}

int64_t shared_bytes(const cs_op_desc *desc, int height) {
  FewInputs in = inputs_of(desc, height);
  return fragments_bytes(desc) + in.rows * in.pitch * cs_dtype_size(desc->output.dtype);
}

bool takes(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV || desc->precision == CS_PRECISION_F32) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (desc->output.shape.rank != 4 || conv->group != 1 || desc->has_residual) return false;
  if (desc->has_prologue) return false;
  if (desc->output.layout != CS_LAYOUT_NHWC || view_of(&desc->output).stride[1] != 1) return false;
  if (!fits_narrow(view_of(&desc->output)) || !fits_narrow(view_of(&desc->inputs[0]))) return false;
  if (conv->dilations[1] != 1 && conv->kernel[1] != 1) return false;
  const int64_t *in = desc->inputs[0].shape.dims;
  if (in[1] < 1 || in[1] > kChannelsMost) return false;
  /* So that nothing that follows overflows. */
  for (int axis = 0; axis < 2; axis++) {
    if (conv->kernel[axis] > kFewGroupsMost || conv->strides[axis] > kFewGroupsMost) return false;
    if (conv->dilations[axis] > kFewGroupsMost || in[2 + axis] > kExtentMost) return false;
    if (conv->pads[axis] > kExtentMost || conv->pads[2 + axis] > kExtentMost) return false;
  }
  return conv->kernel[0] * sum_of(desc).groups < kFewGroupsMost && columns_of(desc) <= 65535;
}

int few_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!takes(desc)) return 0;
  for (int v = 0; v < kVariantCount; v++)
    if (shared_bytes(desc, kVariants[v].height) <= kSharedMost)
      add_variant(ids, capacity, &count, kVariants[v].id);
  return count;
}

/* ---- Weights: [tile of filters][step][pair of fragments][lane][4 words]; then the bias in f32
 * ---- */

int64_t filters_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(columns_of(desc) * fragments_bytes(desc));
}

int64_t few_weight_bytes(const cs_op_desc *desc) {
  int64_t filters = columns_of(desc) * fragments_across(desc) * 8;
  int64_t bias = desc->has_bias ? filters * (int64_t)sizeof(float) : 0;
  return filters_bytes(desc) + weight_part_bytes(bias);
}

/* The weight (PyTorch's shape) of a filter at element `at` of row `row` of the kernel; 0 beyond. */
float weight_at(const cs_op_desc *desc, const FewSum &s, const float *weight, int64_t filter,
                int64_t row, int64_t at) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t channels = desc->inputs[0].shape.dims[1], tap = at / s.pixel, c = at % s.pixel;
  if (filter >= conv->out_channels || row >= conv->kernel[0]) return 0.f;
  if (tap >= conv->kernel[1] || c >= channels) return 0.f;
  float value = weight[((filter * channels + c) * conv->kernel[0] + row) * conv->kernel[1] + tap];
  return desc->output.dtype == CS_DTYPE_F32 ? round_tf32(value) : value;
}

cs_status few_pack(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out) {
  FewSum s = sum_of(desc);
  cs_dtype dtype = desc->output.dtype;
  bool f32 = dtype == CS_DTYPE_F32;
  int across = fragments_across(desc);
  memset(host_out, 0, (size_t)few_weight_bytes(desc));
  for (int64_t column = 0; column < columns_of(desc); column++)
    for (int64_t step = 0; step < s.steps; step++)
      for (int j = 0; j < across; j++)
        for (int lane = 0; lane < 32; lane++)
          for (int e = 0; e < (f32 ? 2 : 4); e++) {
            /* Fragment j of a pair follows the other in each lane. */
            int64_t group = f32 ? step : 2 * step + e / 2, at = lane % 4 * 2 + e % 2;
            int n = lane / 4; /* column of the fragment */
            int first = f32 ? fragment_filter<float>(j, n / 2) : fragment_filter<__half>(j, n / 2);
            int64_t filter = column * across * 8 + first + n % 2;
            int64_t index = ((column * s.steps + step) * across / 2 + j / 2) * 32 + lane;
            index = (index * 2 + j % 2) * (f32 ? 2 : 4) + e;
            put_rounded(dtype, host_out, index,
                        weight_at(desc, s, weight, filter, group / s.groups,
                                  group % s.groups * kGroupElements + at));
          }
  if (desc->has_bias)
    memcpy((char *)host_out + filters_bytes(desc), bias,
           (size_t)desc->attrs.conv.out_channels * sizeof(float));
  return CS_OK;
}

/* ---- Launch ---- */

/* Groups past the kernel's last read what the first reads, and ignore it. */
void set_groups(const cs_op_desc *desc, const FewSum &s, FewParams *p) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t bytes = cs_dtype_size(desc->output.dtype);
  for (int64_t g = 0; g < kFewGroupsMost; g++) {
    int64_t row = g / s.groups, in_row = g % s.groups;
    int64_t offset = row * conv->dilations[0] * p->pitch + in_row * kGroupElements;
    bool last = in_row == s.groups - 1 && s.tail < kGroupElements;
    p->group[g] = row >= conv->kernel[0]
                      ? FEW_NONE
                      : (int32_t)(offset * bytes * 4) + (last ? FEW_TAIL : FEW_ALL);
  }
}

FewParams params_of(const cs_op_desc *desc, const void *x, const void *weights, void *y,
                    int height) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  FewSum s = sum_of(desc);
  FewInputs tile = inputs_of(desc, height);
  FewParams p = {};
  p.x = x, p.w = weights, p.y = y;
  if (desc->has_bias)
    p.bias =
        reinterpret_cast<const float *>(static_cast<const char *>(weights) + filters_bytes(desc));
  p.height = (int32_t)in.dim[2], p.width = (int32_t)in.dim[3], p.channels = (int32_t)in.dim[1];
  p.filters = (int32_t)conv->out_channels;
  p.out_height = (int32_t)out.dim[2], p.out_width = (int32_t)out.dim[3];
  p.stride_h = (int32_t)conv->strides[0], p.stride_w = (int32_t)conv->strides[1];
  p.pad_top = (int32_t)conv->pads[0], p.pad_left = (int32_t)conv->pads[1];
  p.in = strides_of<false>(in.stride), p.out = strides_of<false>(out.stride);
  int64_t tiles_w = (out.dim[3] + kFewColumns - 1) / kFewColumns;
  int64_t tiles_h = (out.dim[2] + height - 1) / height;
  set_divisor(&p.tiles_w, tiles_w);
  set_divisor(&p.tiles_h, tiles_h);
  set_divisor(&p.pixel, s.pixel);
  p.tiles = (int32_t)(out.dim[0] * tiles_h * tiles_w);
  p.tiles_a_block =
      (int32_t)cs_max_i64(1, cs_min_i64(kTilesABlock, p.tiles * columns_of(desc) / kTilesWanted));
  p.input_rows = (int32_t)tile.rows, p.input_elements = (int32_t)tile.elements;
  p.pitch = (int32_t)tile.pitch;
  p.steps = (int32_t)s.steps, p.tail = (int32_t)s.tail;
  p.act = activation_of(desc->activation);
  p.wide = channels_vectorise(&desc->output, 16 / (int)cs_dtype_size(desc->output.dtype));
  set_groups(desc, s, &p);
  return p;
}

template <typename T, typename C, typename S>
cs_status launch_tile(const FewParams &params, int64_t columns, size_t shared,
                      cudaStream_t stream) {
  int64_t blocks = ((int64_t)params.tiles + params.tiles_a_block - 1) / params.tiles_a_block;
  return launch_kernel_shared("conv_few", cs_conv_few_kernel<T, C, S>,
                              dim3((unsigned)blocks, (unsigned)columns), dim3(C::kThreads), params,
                              shared, (int)kSharedMost, stream);
}

template <typename S>
bool is_shape(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (desc->inputs[0].shape.dims[1] != S::kChannels) return false;
  for (int axis = 0; axis < 2; axis++)
    if (conv->kernel[axis] != S::kSize || conv->strides[axis] != S::kStride ||
        conv->dilations[axis] != 1)
      return false;
  return true;
}

template <typename T, typename C>
cs_status launch_shape(const cs_op_desc *desc, const void *x, const void *weights, void *y,
                       cudaStream_t stream) {
  FewParams params = params_of(desc, x, weights, y, C::kHeight);
  if (params.tiles == 0) return CS_OK;
  size_t shared = (size_t)shared_bytes(desc, C::kHeight);
  int64_t columns = columns_of(desc);
  if (is_shape<FewKnown<T, 7, 3, 2>>(desc))
    return launch_tile<T, C, FewKnown<T, 7, 3, 2>>(params, columns, shared, stream);
  if (is_shape<FewKnown<T, 3, 3, 2>>(desc))
    return launch_tile<T, C, FewKnown<T, 3, 3, 2>>(params, columns, shared, stream);
  return launch_tile<T, C, FewAny<T>>(params, columns, shared, stream);
}

template <typename T, int WARPS, int ROWS>
cs_status launch_rows(const cs_op_desc *desc, const void *x, const void *weights, void *y,
                      cudaStream_t stream) {
  return fragments_across(desc) == 8
             ? launch_shape<T, FewTile<WARPS, ROWS, 8>>(desc, x, weights, y, stream)
             : launch_shape<T, FewTile<WARPS, ROWS, 4>>(desc, x, weights, y, stream);
}

/* The caller found the variant among those of the operation. */
cs_status few_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                     const void *weights, void *output, cudaStream_t stream) {
  using Launcher =
      cs_status (*)(const cs_op_desc *, const void *, const void *, void *, cudaStream_t);
  return by_dtype(desc->output.dtype, [&](auto type) {
    static constexpr Launcher launchers[] = {
#define CS_FEW_LAUNCHER(id, warps, rows) launch_rows<decltype(type), warps, rows>,
        CS_FEW_TILES(CS_FEW_LAUNCHER)
#undef CS_FEW_LAUNCHER
    };
    int v = 0;
    while (strcmp(id, kVariants[v].id) != 0) v++;
    return launchers[v](desc, inputs[0], weights, output, stream);
  });
}

}  // namespace

const KernelFamily cs_few_family = {few_variants, few_weight_bytes, few_pack, few_launch};
