/* Depthwise Conv of 3 × 3 and 5 × 5 filters in NHWC, several outputs a thread, one below the other,
 * 16 bytes of channels each. The filters of these channels stay in registers, and an input row is
 * loaded once for all outputs of the strip that it belongs to: of a 3 × 3 filter with stride 1 and
 * strips of 4 that is 27 vectors to load for 4 outputs where an output a thread
 * (cuda.conv_depthwise, conv_direct.cu) takes 72. Fewer threads, so small tensors fare better with
 * that. */
#include "backend/cuda/positions.cuh"

namespace {

/* X(outputs of a thread) */
#define CS_DEPTHWISE_STRIPS(X) X(2) X(4)

struct StripVariant {
  int outputs;
  const char *id;
};
const StripVariant kVariants[] = {
#define CS_STRIP_VARIANT(outputs) {outputs, "cuda.depthwise_strip.v1-" #outputs},
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

template <typename T, int K, int STRIDE, int OUTPUTS>
__global__ void __launch_bounds__(256)
    cs_depthwise_strip_kernel(const __grid_constant__ DepthwiseParams p) {
  begin_kernel();
  constexpr int V = kVector<T>, kWords = 4, kRows = (OUTPUTS - 1) * STRIDE + K;
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
  uint32_t filter[K * K][kWords];
#pragma unroll
  for (int k = 0; k < K * K; k++) load_words(filters + k * p.channels, filter[k]);
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
        unpack_words<T, V>(filter[row * K + s], weight);
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
  int width = 16 / cs_dtype_size(out->dtype);
  return channels_vectorise(in, width) && channels_vectorise(out, width) &&
         fits_narrow(view_of(in)) && fits_narrow(view_of(out));
}

int strip_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!strips_apply(desc)) return 0;
  for (const StripVariant &variant : kVariants)
    if (desc->output.shape.dims[2] >= variant.outputs)
      add_variant(ids, capacity, &count, variant.id);
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

DepthwiseParams depthwise_params(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                                 int outputs) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  const int64_t size = cs_dtype_size(desc->output.dtype), vectors = out.dim[1] / (16 / size);
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

template <typename T, int K, int STRIDE, int OUTPUTS>
cs_status launch_strips(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                        cudaStream_t stream) {
  DepthwiseParams params = depthwise_params(desc, arrays, OUTPUTS);
  return launch_linear("depthwise_strip", cs_depthwise_strip_kernel<T, K, STRIDE, OUTPUTS>,
                       params.total, params, stream);
}

template <typename T, int OUTPUTS>
cs_status launch_filter(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                        cudaStream_t stream) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (conv->kernel[0] == 3)
    return conv->strides[0] == 1 ? launch_strips<T, 3, 1, OUTPUTS>(desc, arrays, stream)
                                 : launch_strips<T, 3, 2, OUTPUTS>(desc, arrays, stream);
  return conv->strides[0] == 1 ? launch_strips<T, 5, 1, OUTPUTS>(desc, arrays, stream)
                               : launch_strips<T, 5, 2, OUTPUTS>(desc, arrays, stream);
}

template <int OUTPUTS>
cs_status launch_outputs(const cs_op_desc *desc, const DepthwiseArrays &arrays,
                         cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    return launch_filter<decltype(type), OUTPUTS>(desc, arrays, stream);
  });
}

cs_status strip_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                       const void *weights, void *output, cudaStream_t stream) {
  const DepthwiseArrays arrays = {inputs[0], weights, output};
#define CS_LAUNCH_STRIP(outputs)                   \
  if (strcmp(strrchr(id, '-'), "-" #outputs) == 0) \
    return launch_outputs<outputs>(desc, arrays, stream);
  CS_DEPTHWISE_STRIPS(CS_LAUNCH_STRIP)
#undef CS_LAUNCH_STRIP
  return cs_error(CS_CODE_INTERNAL, "no strip \"%s\"", id);
}

}  // namespace

const KernelFamily cs_depthwise_strip_family = {strip_variants, strip_weight_bytes, strip_pack,
                                                strip_launch};
