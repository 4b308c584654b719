/* Pad: each output vector is a copy of one of the input, or the value. */
#include "backend/cuda/kernel_util.cuh"

template <typename T, bool WIDE>
struct PadParams {
  using I = typename Index<WIDE>::type;
  I total;                            /* threads */
  typename Index<WIDE>::Div inner[3]; /* output extents, innermost first; [0] in vectors */
  /* Of each axis, innermost first: index of the input = of the output − begin; what is left of the
   * input lies from low to high − 1. */
  I begin[4], low[4], high[4];
  cs_pad_mode mode;
  I in_stride[4], out_stride[4];
  const T *in;
  T *out;
  float value;
};

/* cs_pad_source of a narrow or wide index. */
template <typename I>
__device__ __forceinline__ I source(cs_pad_mode mode, I at, I low, I high) {
  if (at >= low && at < high) return at;
  if (mode == CS_PAD_REFLECT) return at < low ? 2 * low - at : 2 * (high - 1) - at;
  if (mode == CS_PAD_EDGE) return at < low ? low : high - 1;
  if (mode == CS_PAD_WRAP) return at < low ? at + (high - low) : at - (high - low);
  return -1;
}

template <typename T, int V, bool WIDE>
__global__ void cs_pad_kernel(const __grid_constant__ PadParams<T, WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I at[4];
  I rest = divide(index, p.inner[0], &at[0]);
  rest = divide(rest, p.inner[1], &at[1]);
  at[3] = divide(rest, p.inner[2], &at[2]);
  at[0] *= V;
  I in = 0, out = 0;
  bool inside = true;
#pragma unroll
  for (int axis = 0; axis < 4; axis++) {
    I from = source<I>(p.mode, at[axis] - p.begin[axis], p.low[axis], p.high[axis]);
    inside = inside && from >= 0;
    in += from * p.in_stride[axis];
    out += at[axis] * p.out_stride[axis];
  }
  float values[V];
  if (inside) {
    load_vector<T, V>(p.in + in, values);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) values[i] = p.value;
  }
  store_vector<T, V>(p.out + out, values);
}

template <typename T, int V, bool WIDE>
static cs_status launch_pad(const cs_op_desc *desc, const void *in, void *out,
                            cudaStream_t stream) {
  static const int kNchw[4] = {3, 2, 1, 0}, kNhwc[4] = {1, 3, 2, 0};
  const int *order = desc->output.layout == CS_LAYOUT_NHWC ? kNhwc : kNchw;
  View from = view_of(&desc->inputs[0]), to = view_of(&desc->output);
  using I = typename Index<WIDE>::type;
  PadParams<T, WIDE> params = {};
  params.total = (I)(view_elements(to) / V);
  for (int i = 0; i < 4; i++) {
    int axis = order[i];
    if (i < 3) set_divisor(&params.inner[i], i == 0 ? to.dim[axis] / V : to.dim[axis]);
    const cs_pad_attrs *pad = &desc->attrs.pad;
    int64_t begin = axis < pad->rank ? pad->pads[axis] : 0;
    int64_t end = axis < pad->rank ? pad->pads[pad->rank + axis] : 0;
    params.begin[i] = (I)begin;
    params.low[i] = (I)cs_max_i64(0, -begin);
    params.high[i] = (I)(from.dim[axis] + cs_min_i64(0, end));
    params.in_stride[i] = (I)from.stride[axis];
    params.out_stride[i] = (I)to.stride[axis];
  }
  params.in = static_cast<const T *>(in), params.out = static_cast<T *>(out);
  params.value = (float)desc->attrs.pad.value, params.mode = desc->attrs.pad.mode;
  return launch_linear("pad", cs_pad_kernel<T, V, WIDE>, params.total, params, stream);
}

static int pad_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->activation.kind != CS_ACT_NONE || desc->has_residual) return 0;
  add_variant(ids, capacity, &count, "cuda.pad.v1");
  return count;
}

static cs_status pad_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                            const void *, void *output, cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    if (!fits_narrow(view_of(&desc->output)) || !fits_narrow(view_of(&desc->inputs[0])))
      return launch_pad<T, 1, true>(desc, inputs[0], output, stream);
    const cs_pad_attrs *pad = &desc->attrs.pad;
    bool vector = desc->output.shape.rank == 4 && channels_vectorise(&desc->inputs[0], V) &&
                  channels_vectorise(&desc->output, V) && pad->pads[1] % V == 0 &&
                  (pad->mode == CS_PAD_CONSTANT || (pad->pads[1] == 0 && pad->pads[5] == 0));
    return vector ? launch_pad<T, V, false>(desc, inputs[0], output, stream)
                  : launch_pad<T, 1, false>(desc, inputs[0], output, stream);
  });
}

const KernelFamily cs_pad_family = {pad_variants, NULL, NULL, pad_launch};
