/* Direct Conv and ConvTranspose: any pads, strides, dilations, groups and output padding. The way
 * of last resort, and a depthwise kernel. Weights are packed [R][S][C/group][K] in the storage
 * type, so that neighbouring filters are adjacent; f32 bias [K] follows, then a prologue's f32
 * scale [C] and shift [C]. */
#include "backend/cuda/kernel_util.cuh"

template <bool WIDE>
struct ConvParams {
  using I = typename Index<WIDE>::type;
  using Div = typename Index<WIDE>::Div;
  I total;      /* threads */
  Div inner[3]; /* output extents, innermost first; filters in vectors */
  Div filters_per_group;
  Div stride_div[2]; /* ConvTranspose */
  const void *x, *w, *residual;
  const float *bias;
  void *y;
  I height, width;
  int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  int channels_per_group;
  I filters;
  Strides<WIDE> in, out, added;
  Activation act;
  const float *scale, *shift; /* NULL: there is no prologue */
  Activation prologue;
};

/* Input coordinate of a tap, or -1: at = output · stride − pad + tap · dilation; transposed: the
 * input that this output coordinate receives from through the tap. */
template <bool TRANSPOSED, typename I, typename Div>
__device__ __forceinline__ I tap_source(I out, int tap, int stride, int dilation, int pad, I extent,
                                        const Div &stride_div) {
  if (TRANSPOSED) {
    I shifted = out + pad - (I)tap * dilation, rest;
    if (shifted < 0) return -1;
    I at = divide(shifted, stride_div, &rest);
    return rest == 0 && at < extent ? at : -1;
  }
  I at = out * stride - pad + (I)tap * dilation;
  return at >= 0 && at < extent ? at : -1;
}

template <bool NHWC, bool WIDE, typename I>
__device__ __forceinline__ void conv_position(const ConvParams<WIDE> &p, I index, I *n, I *k, I *h,
                                              I *w) {
  if (NHWC) {
    I rest = divide(index, p.inner[0], k);
    rest = divide(rest, p.inner[1], w);
    *n = divide(rest, p.inner[2], h);
  } else {
    I rest = divide(index, p.inner[0], w);
    rest = divide(rest, p.inner[1], h);
    *n = divide(rest, p.inner[2], k);
  }
}

/* Bias, residual, activation, store; the V filters are adjacent when NHWC vectors are stored. */
template <typename T, int V, bool ADJACENT, bool WIDE, typename I>
__device__ __forceinline__ void conv_finish(const ConvParams<WIDE> &p, I n, I k, I h, I w,
                                            float (&sum)[V]) {
  if (p.bias != nullptr) {
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] += p.bias[k + i];
  }
  if (p.residual != nullptr) {
    const T *residual = static_cast<const T *>(p.residual) + n * p.added.n + k * p.added.c +
                        h * p.added.h + w * p.added.w;
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] += Convert<T>::from(residual[i * p.added.c]);
  }
  activate<V>(p.act, sum);
  T *y = static_cast<T *>(p.y) + n * p.out.n + k * p.out.c + h * p.out.h + w * p.out.w;
  if (ADJACENT) {
    store_vector<T, V>(y, sum);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) y[i * p.out.c] = Convert<T>::to(sum[i]);
  }
}

/* An element of channel `c`, behind the prologue if there is one, as it would be stored. */
template <typename T, bool WIDE, typename I>
__device__ __forceinline__ float conv_operand(const ConvParams<WIDE> &p, T x, I c) {
  float v[1] = {Convert<T>::from(x)};
  if (p.scale == nullptr) return v[0];
  v[0] = fmaf(p.scale[c], v[0], p.shift[c]);
  activate<1>(p.prologue, v);
  return Convert<T>::from(Convert<T>::to(v[0]));
}

/* V filters of one group at one output pixel. */
template <typename T, int V, bool NHWC, bool WIDE, bool TRANSPOSED>
__global__ void cs_conv_direct_kernel(const __grid_constant__ ConvParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I n, k, oh, ow, in_group;
  conv_position<NHWC>(p, index, &n, &k, &oh, &ow);
  k *= V;
  I group = divide(k, p.filters_per_group, &in_group);
  const T *image = static_cast<const T *>(p.x) + n * p.in.n + group * p.channels_per_group * p.in.c;
  float sum[V] = {};
  for (int r = 0; r < p.kernel_h; r++) {
    I h = tap_source<TRANSPOSED>(oh, r, p.stride_h, p.dilation_h, p.pad_top, p.height,
                                 p.stride_div[0]);
    if (h < 0) continue;
    for (int s = 0; s < p.kernel_w; s++) {
      I w = tap_source<TRANSPOSED>(ow, s, p.stride_w, p.dilation_w, p.pad_left, p.width,
                                   p.stride_div[1]);
      if (w < 0) continue;
      const T *x = image + h * p.in.h + w * p.in.w;
      const T *weights = static_cast<const T *>(p.w) +
                         (I)(r * p.kernel_w + s) * p.channels_per_group * p.filters + k;
#pragma unroll 4
      for (int c = 0; c < p.channels_per_group; c++) {
        float filter[V], value = conv_operand(p, x[c * p.in.c], group * p.channels_per_group + c);
        load_vector<T, V>(weights + c * p.filters, filter);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] = fmaf(filter[i], value, sum[i]);
      }
    }
  }
  conv_finish<T, V, false>(p, n, k, oh, ow, sum);
}

/* Depthwise, NHWC, 16 bytes of channels a thread. K: the square kernel's size, 0: any. */
template <typename T, int K>
__global__ void cs_conv_depthwise_kernel(const __grid_constant__ ConvParams<false> p) {
  begin_kernel();
  constexpr int V = kVector<T>;
  int32_t index = thread_index<int32_t>();
  if (index >= p.total) return;
  int32_t n, k, oh, ow;
  conv_position<true>(p, index, &n, &k, &oh, &ow);
  k *= V;
  const T *image = static_cast<const T *>(p.x) + n * p.in.n + k;
  const T *weights = static_cast<const T *>(p.w) + k;
  float sum[V] = {};
  const int kernel_h = K > 0 ? K : p.kernel_h, kernel_w = K > 0 ? K : p.kernel_w;
#pragma unroll
  for (int r = 0; r < kernel_h; r++) {
    int32_t h = oh * p.stride_h - p.pad_top + r * p.dilation_h;
#pragma unroll
    for (int s = 0; s < kernel_w; s++) {
      int32_t w = ow * p.stride_w - p.pad_left + s * p.dilation_w;
      bool inside = h >= 0 && h < p.height && w >= 0 && w < p.width;
      float value[V] = {}, filter[V];
      if (inside) load_vector<T, V>(image + h * p.in.h + w * p.in.w, value);
      load_vector<T, V>(weights + (r * kernel_w + s) * p.filters, filter);
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] = fmaf(filter[i], value[i], sum[i]);
    }
  }
  conv_finish<T, V, true>(p, n, k, oh, ow, sum);
}

/* ---- Weights ---- */

static int64_t filter_elements(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  return conv->kernel[0] * conv->kernel[1] * (desc->inputs[0].shape.dims[1] / conv->group) *
         conv->out_channels;
}

static int64_t filter_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(filter_elements(desc) * cs_dtype_size(desc->output.dtype));
}

static int64_t prologue_offset(const cs_op_desc *desc) {
  int64_t bias = desc->has_bias ? desc->attrs.conv.out_channels * (int64_t)sizeof(float) : 0;
  return filter_bytes(desc) + weight_part_bytes(bias);
}

static int64_t prologue_bytes(const cs_op_desc *desc) {
  return desc->has_prologue ? 2 * desc->inputs[0].shape.dims[1] * (int64_t)sizeof(float) : 0;
}

static int64_t conv_weight_bytes(const cs_op_desc *desc) {
  return prologue_offset(desc) + weight_part_bytes(prologue_bytes(desc));
}

/* Element of the PyTorch-shaped weight: Conv [K, C/group, R, S], ConvTranspose [C, K/group, R, S].
 */
static int64_t weight_index(const cs_op_desc *desc, int64_t k, int64_t c, int64_t tap) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t taps = conv->kernel[0] * conv->kernel[1];
  int64_t channels = desc->inputs[0].shape.dims[1] / conv->group;
  if (desc->op == CS_OP_CONV) return (k * channels + c) * taps + tap;
  int64_t filters = conv->out_channels / conv->group;
  return ((k / filters * channels + c) * filters + k % filters) * taps + tap;
}

static cs_status conv_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                           void *host_out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t taps = conv->kernel[0] * conv->kernel[1], filters = conv->out_channels;
  int64_t channels = desc->inputs[0].shape.dims[1] / conv->group;
  memset(host_out, 0, (size_t)conv_weight_bytes(desc));
  for (int64_t tap = 0; tap < taps; tap++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t k = 0; k < filters; k++)
        put_rounded(desc->output.dtype, host_out, (tap * channels + c) * filters + k,
                    weight[weight_index(desc, k, c, tap)]);
  if (desc->has_bias)
    memcpy((char *)host_out + filter_bytes(desc), bias, (size_t)filters * sizeof(float));
  if (desc->has_prologue)
    memcpy((char *)host_out + prologue_offset(desc), cs_op_prologue(desc, bias),
           (size_t)prologue_bytes(desc));
  return CS_OK;
}

/* ---- Launch ---- */

struct ConvArrays {
  const void *x, *residual, *weights;
  void *y;
};

template <bool WIDE>
static ConvParams<WIDE> conv_params(const cs_op_desc *desc, const ConvArrays &arrays, bool nhwc,
                                    int width) {
  using I = typename Index<WIDE>::type;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  const int64_t filters = conv->out_channels / width;
  ConvParams<WIDE> p = {};
  p.total = (I)(view_elements(out) / width);
  set_divisor(&p.inner[0], nhwc ? filters : out.dim[3]);
  set_divisor(&p.inner[1], nhwc ? out.dim[3] : out.dim[2]);
  set_divisor(&p.inner[2], nhwc ? out.dim[2] : filters);
  set_divisor(&p.filters_per_group, conv->out_channels / conv->group);
  for (int i = 0; i < 2; i++) set_divisor(&p.stride_div[i], conv->strides[i]);
  p.x = arrays.x, p.w = arrays.weights, p.residual = arrays.residual, p.y = arrays.y;
  if (desc->has_bias)
    p.bias = reinterpret_cast<const float *>(static_cast<const char *>(arrays.weights) +
                                             filter_bytes(desc));
  p.height = (I)in.dim[2], p.width = (I)in.dim[3];
  p.kernel_h = (int)conv->kernel[0], p.kernel_w = (int)conv->kernel[1];
  p.stride_h = (int)conv->strides[0], p.stride_w = (int)conv->strides[1];
  p.dilation_h = (int)conv->dilations[0], p.dilation_w = (int)conv->dilations[1];
  p.pad_top = (int)conv->pads[0], p.pad_left = (int)conv->pads[1];
  p.channels_per_group = (int)(in.dim[1] / conv->group);
  p.filters = (I)conv->out_channels;
  p.in = strides_of<WIDE>(in.stride), p.out = strides_of<WIDE>(out.stride);
  if (arrays.residual)
    p.added = strides_of<WIDE>(view_of(&desc->inputs[desc->n_inputs - 1]).stride);
  p.act = activation_of(desc->activation);
  if (desc->has_prologue) {
    p.scale = reinterpret_cast<const float *>(static_cast<const char *>(arrays.weights) +
                                              prologue_offset(desc));
    p.shift = p.scale + in.dim[1];
    p.prologue = activation_of(desc->prologue);
  }
  return p;
}

static bool conv_narrow(const cs_op_desc *desc) {
  bool narrow = fits_narrow(view_of(&desc->output)) && filter_elements(desc) < kNarrowLimit;
  for (int i = 0; i < desc->n_inputs; i++)
    narrow = narrow && fits_narrow(view_of(&desc->inputs[i]));
  return narrow;
}

template <typename T, int V, bool NHWC, bool WIDE, bool TRANSPOSED>
static cs_status launch_direct(const cs_op_desc *desc, const ConvArrays &arrays,
                               cudaStream_t stream) {
  ConvParams<WIDE> params = conv_params<WIDE>(desc, arrays, NHWC, V);
  return launch_linear("conv_direct", cs_conv_direct_kernel<T, V, NHWC, WIDE, TRANSPOSED>,
                       params.total, params, stream);
}

template <typename T, bool TRANSPOSED>
static cs_status launch_width(const cs_op_desc *desc, const ConvArrays &arrays,
                              cudaStream_t stream) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (!conv_narrow(desc)) return launch_direct<T, 1, false, true, TRANSPOSED>(desc, arrays, stream);
  bool nhwc = desc->output.layout == CS_LAYOUT_NHWC;
  if (conv->out_channels / conv->group % 4 != 0)
    return nhwc ? launch_direct<T, 1, true, false, TRANSPOSED>(desc, arrays, stream)
                : launch_direct<T, 1, false, false, TRANSPOSED>(desc, arrays, stream);
  return nhwc ? launch_direct<T, 4, true, false, TRANSPOSED>(desc, arrays, stream)
              : launch_direct<T, 4, false, false, TRANSPOSED>(desc, arrays, stream);
}

template <typename T>
static cs_status launch_depthwise(const cs_op_desc *desc, const ConvArrays &arrays,
                                  cudaStream_t stream) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  ConvParams<false> params = conv_params<false>(desc, arrays, true, kVector<T>);
  bool three = conv->kernel[0] == 3 && conv->kernel[1] == 3;
  return launch_linear("conv_depthwise",
                       three ? cs_conv_depthwise_kernel<T, 3> : cs_conv_depthwise_kernel<T, 0>,
                       params.total, params, stream);
}

static const char *const kConvIds[] = {"cuda.conv.v1", "cuda.conv_depthwise.v1",
                                       "cuda.conv_transpose.v1"};

static int conv_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int count = 0;
  if (desc->output.shape.rank != 4) return 0;
  if (desc->op == CS_OP_CONV_TRANSPOSE) {
    add_variant(ids, capacity, &count, kConvIds[2]);
    return count;
  }
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  bool depthwise = !desc->has_prologue && conv->group == conv->out_channels &&
                   conv->group == desc->inputs[0].shape.dims[1] && conv_narrow(desc) &&
                   channels_vectorise(&desc->inputs[0], width) &&
                   channels_vectorise(&desc->output, width);
  if (depthwise) add_variant(ids, capacity, &count, kConvIds[1]);
  add_variant(ids, capacity, &count, kConvIds[0]);
  return count;
}

static cs_status conv_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                             const void *weights, void *output, cudaStream_t stream) {
  ConvArrays arrays = {inputs[0], desc->has_residual ? inputs[desc->n_inputs - 1] : NULL, weights,
                       output};
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    if (strcmp(id, kConvIds[1]) == 0) return launch_depthwise<T>(desc, arrays, stream);
    return desc->op == CS_OP_CONV_TRANSPOSE ? launch_width<T, true>(desc, arrays, stream)
                                            : launch_width<T, false>(desc, arrays, stream);
  });
}

const KernelFamily cs_conv_family = {conv_variants, conv_weight_bytes, conv_pack, conv_launch};
