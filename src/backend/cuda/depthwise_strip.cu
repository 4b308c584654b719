/* Depthwise Conv of 3 × 3 and 5 × 5 filters in NHWC, several outputs a thread, one below the other,
 * 16 bytes of channels each, or 8 of 16-bit types. The filters of these channels stay in registers,
 * and an input row is loaded once for all outputs of the strip that it belongs to: of a 3 × 3
 * filter with stride 1 and strips of 4 that is 27 vectors to load for 4 outputs where an output a
 * thread (cuda.conv_depthwise, conv_direct.cu) takes 72. Fewer threads, so small tensors fare
 * better with that. Filters of 8 bytes are few enough to stay there in f32, so that they are
 * widened once, not for every output. */
#include "backend/cuda/positions.cuh"

namespace {

/* X(outputs of a thread, bytes of channels) */
#define CS_DEPTHWISE_STRIPS(X) X(2, 16) X(4, 16) X(2, 8) X(4, 8) X(8, 8)

struct StripVariant {
  int outputs, bytes;
  const char *id;
};
const StripVariant kVariants[] = {
#define CS_STRIP_VARIANT(outputs, bytes) \
  {outputs, bytes, "cuda.depthwise_strip.v2-" #outputs "x" #bytes},
    CS_DEPTHWISE_STRIPS(CS_STRIP_VARIANT)
#undef CS_STRIP_VARIANT
};

struct DepthwiseParams {
  int32_t total;    /* threads */
  FastDiv inner[3]; /* vectors of channels, output width, strips of a column */
  const void *x, *w;
  const float *bias; /* NULL: none */
  void *y;
  int32_t height, width, out_height, channels;
  int pad_top, pad_left;
  Strides<false> in, out;
  Activation act;
};

/* A filter's element of V channels: as it is stored, or in f32. */
template <typename T, int V, bool WIDENED>
struct Filter {
  static constexpr int kWords = V * (int)sizeof(T) / 4;
  uint32_t words[kWords];
  __device__ __forceinline__ void load(const T *from) { load_words(from, words); }
  __device__ __forceinline__ void get(float (&values)[V]) const {
    unpack_words<T, V>(words, values);
  }
};
template <typename T, int V>
struct Filter<T, V, true> {
  float widened[V];
  __device__ __forceinline__ void load(const T *from) { load_vector<T, V>(from, widened); }
  __device__ __forceinline__ void get(float (&values)[V]) const {
#pragma unroll
    for (int v = 0; v < V; v++) values[v] = widened[v];
  }
};

template <typename T, int K, int STRIDE, int OUTPUTS, int V>
__global__ void __launch_bounds__(256)
    cs_depthwise_strip_kernel(const __grid_constant__ DepthwiseParams p) {
  begin_kernel();
  constexpr int kWords = V * (int)sizeof(T) / 4, kRows = (OUTPUTS - 1) * STRIDE + K;
  int32_t index = thread_index<int32_t>();
  if (index >= p.total) return;
  int32_t c, ow, strip;
  int32_t rest = divide(index, p.inner[0], &c);
  rest = divide(rest, p.inner[1], &ow);
  int32_t n = divide(rest, p.inner[2], &strip);
  c *= V;
  const int32_t oh = strip * OUTPUTS;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c;
  const T *filters = static_cast<const T *>(p.w) + c;
  Filter<T, V, V * sizeof(T) == 8> filter[K * K];
#pragma unroll
  for (int k = 0; k < K * K; k++) filter[k].load(filters + k * p.channels);
  const Positions<kRows> h = positions_from<kRows>(oh * STRIDE - p.pad_top, p.height, p.in.h);
  const Positions<K> w = positions_from<K>(ow * STRIDE - p.pad_left, p.width, p.in.w);
  float sum[OUTPUTS][V] = {};
#pragma unroll
  for (int r = 0; r < kRows; r++) {
    uint32_t taps[K][kWords] = {}; /* zeros in every type */
#pragma unroll
    for (int s = 0; s < K; s++)
      if (h.inside[r] && w.inside[s]) load_words(x + h.offset[r] + w.offset[s], taps[s]);
#pragma unroll
    for (int s = 0; s < K; s++) {
      float value[V];
      unpack_words<T, V>(taps[s], value);
#pragma unroll
      for (int i = 0; i < OUTPUTS; i++) {
        const int row = r - i * STRIDE; /* of the filter */
        if (row < 0 || row >= K) continue;
        float weight[V];
        filter[row * K + s].get(weight);
#pragma unroll
        for (int v = 0; v < V; v++) sum[i][v] = fmaf(weight[v], value[v], sum[i][v]);
      }
    }
  }
  T *y = static_cast<T *>(p.y) + n * p.out.n + c + oh * p.out.h + ow * p.out.w;
#pragma unroll
  for (int i = 0; i < OUTPUTS; i++) {
    if (oh + i >= p.out_height) return;
    if (p.bias != nullptr) {
#pragma unroll
      for (int v = 0; v < V; v++) sum[i][v] += p.bias[c + v];
    }
    activate<V>(p.act, sum[i]);
    store_vector<T, V>(y + i * p.out.h, sum[i]);
  }
}

/* ---- Which operations ---- */

bool strips_apply(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  if (desc->op != CS_OP_CONV || out->shape.rank != 4) return false;
  if (desc->has_residual || desc->has_prologue || desc->n_inputs != 1) return false;
  if (conv->group != conv->out_channels || conv->group != in->shape.dims[1]) return false;
  if (conv->kernel[0] != conv->kernel[1] || (conv->kernel[0] != 3 && conv->kernel[0] != 5))
    return false;
  if (conv->strides[0] != conv->strides[1] || conv->strides[0] > 2) return false;
  if (conv->dilations[0] != 1 || conv->dilations[1] != 1) return false;
  return fits_narrow(view_of(in)) && fits_narrow(view_of(out));
}

bool variant_applies(const StripVariant &variant, const cs_op_desc *desc) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  int size = (int)cs_dtype_size(out->dtype), width = variant.bytes / size;
  return (variant.bytes == 16 || size == 2) && out->shape.dims[2] >= variant.outputs &&
         channels_vectorise(in, width) && channels_vectorise(out, width);
}

int strip_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!strips_apply(desc)) return 0;
  for (const StripVariant &variant : kVariants)
    if (variant_applies(variant, desc)) add_variant(ids, capacity, &count, variant.id);
  return count;
}

/* ---- Weights: packed as for cuda.conv (conv_direct.cu) ---- */

int64_t strip_weight_bytes(const cs_op_desc *desc) {
  return cs_conv_family.weight_bytes(desc);
}

cs_status strip_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                     void *host_out) {
  return cs_conv_family.pack(desc, weight, bias, host_out);
}

/* ---- Launch ---- */

struct DepthwiseArrays {
  const void *x, *weights;
  void *y;
};

DepthwiseParams depthwise_params(const cs_op_desc *desc, const DepthwiseArrays &arrays, int outputs,
                                 int width) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  const int64_t size = cs_dtype_size(desc->output.dtype), vectors = out.dim[1] / width;
  const int64_t strips = (out.dim[2] + outputs - 1) / outputs;
  const int64_t filter_bytes =
      weight_part_bytes(conv->kernel[0] * conv->kernel[1] * out.dim[1] * size);
  DepthwiseParams p = {};
  p.total = (int32_t)(out.dim[0] * strips * out.dim[3] * vectors);
  set_divisor(&p.inner[0], vectors);
  set_divisor(&p.inner[1], out.dim[3]);
  set_divisor(&p.inner[2], strips);
  p.x = arrays.x, p.w = arrays.weights, p.y = arrays.y;
  if (desc->has_bias)
    p.bias =
        reinterpret_cast<const float *>(static_cast<const char *>(arrays.weights) + filter_bytes);
  p.height = (int32_t)in.dim[2], p.width = (int32_t)in.dim[3];
  p.out_height = (int32_t)out.dim[2], p.channels = (int32_t)out.dim[1];
  p.pad_top = (int)conv->pads[0], p.pad_left = (int)conv->pads[1];
  p.in = strides_of<false>(in.stride), p.out = strides_of<false>(out.stride);
  p.act = activation_of(desc->activation);
  return p;
}

template <typename T, int K, int STRIDE, int OUTPUTS, int V>
cs_status launch_strips(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                        cudaStream_t stream) {
  DepthwiseParams params = depthwise_params(desc, arrays, OUTPUTS, V);
  return launch_linear("depthwise_strip", cs_depthwise_strip_kernel<T, K, STRIDE, OUTPUTS, V>,
                       params.total, params, stream);
}

template <typename T, int OUTPUTS, int V>
cs_status launch_filter(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                        cudaStream_t stream) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (conv->kernel[0] == 3)
    return conv->strides[0] == 1 ? launch_strips<T, 3, 1, OUTPUTS, V>(desc, arrays, stream)
                                 : launch_strips<T, 3, 2, OUTPUTS, V>(desc, arrays, stream);
  return conv->strides[0] == 1 ? launch_strips<T, 5, 1, OUTPUTS, V>(desc, arrays, stream)
                               : launch_strips<T, 5, 2, OUTPUTS, V>(desc, arrays, stream);
}

template <int OUTPUTS, int BYTES>
cs_status launch_outputs(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                         cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    /* f32 has 16 bytes only (variant_applies). */
    constexpr int V = (sizeof(T) == 4 ? 16 : BYTES) / (int)sizeof(T);
    return launch_filter<T, OUTPUTS, V>(desc, arrays, stream);
  });
}

cs_status strip_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                       const void *weights, void *output, cudaStream_t stream) {
  const DepthwiseArrays arrays = {inputs[0], weights, output};
#define CS_LAUNCH_STRIP(outputs, bytes)                       \
  if (strcmp(strrchr(id, '-'), "-" #outputs "x" #bytes) == 0) \
    return launch_outputs<outputs, bytes>(desc, arrays, stream);
  CS_DEPTHWISE_STRIPS(CS_LAUNCH_STRIP)
#undef CS_LAUNCH_STRIP
  return cs_error(CS_CODE_INTERNAL, "no strip \"%s\"", id);
}

}  // namespace

const KernelFamily cs_depthwise_strip_family = {strip_variants, strip_weight_bytes, strip_pack,
                                                strip_launch};
