/* Resize: a thread makes one pixel of several channels, so that where it comes from is computed
 * once for them: V adjacent ones as a vector, else up to four planes, or one. */
#include "backend/cuda/kernel_util.cuh"
#include "graph/resample.h"

template <typename T, bool WIDE>
struct ResizeParams {
  using I = typename Index<WIDE>::type;
  I total;                            /* threads */
  typename Index<WIDE>::Div inner[3]; /* output extents, innermost first; channels in groups */
  bool channels_first;                /* innermost are w, h, c; else c, w, h */
  I channels, group;
  Strides<WIDE> in_stride, out_stride;
  cs_resize_axis axes[2];
  const T *in;
  T *out;
  float outside;
};

/* What one axis contributes: the offsets of its elements, and their weights. */
template <int TAPS, typename I>
struct ResizeTaps {
  I offset[TAPS];
  float weight[TAPS];
  bool inside;
};

template <int TAPS, typename I>
__device__ __forceinline__ ResizeTaps<TAPS, I> taps_of(const cs_resize_axis &axis, I at, I stride) {
  ResizeTaps<TAPS, I> taps;
  double weight[CS_RESIZE_TAPS];
  int64_t first = 0;
  constexpr cs_resize_mode kMode = TAPS == 1   ? CS_RESIZE_NEAREST
                                   : TAPS == 2 ? CS_RESIZE_LINEAR
                                               : CS_RESIZE_CUBIC;
  taps.inside = cs_resize_taps_in(kMode, &axis, (int64_t)at, &first, weight) > 0;
#pragma unroll
  for (int t = 0; t < TAPS; t++) {
    taps.offset[t] = (I)cs_resize_inside(&axis, first + t) * stride;
    taps.weight[t] = (float)weight[t];
  }
  return taps;
}

template <typename T, int V, int TAPS, typename I>
__device__ __forceinline__ void sum_taps(const T *in, const ResizeTaps<TAPS, I> &rows,
                                         const ResizeTaps<TAPS, I> &columns, float (&sum)[V]) {
  if constexpr (TAPS == 1) {
    load_vector<T, V>(in + rows.offset[0] + columns.offset[0], sum);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = 0.f;
#pragma unroll
    for (int r = 0; r < TAPS; r++)
#pragma unroll
      for (int c = 0; c < TAPS; c++) {
        float x[V], weight = rows.weight[r] * columns.weight[c];
        load_vector<T, V>(in + rows.offset[r] + columns.offset[c], x);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] = fmaf(weight, x[i], sum[i]);
      }
  }
}

template <typename T, int V, int TAPS, bool WIDE>
__global__ void cs_resize_kernel(const __grid_constant__ ResizeParams<T, WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I at[4];
  I rest = divide(index, p.inner[0], &at[0]);
  rest = divide(rest, p.inner[1], &at[1]);
  at[3] = divide(rest, p.inner[2], &at[2]);
  I w = p.channels_first ? at[0] : at[1], h = p.channels_first ? at[1] : at[2];
  I c = (p.channels_first ? at[2] : at[0]) * p.group;
  ResizeTaps<TAPS, I> rows = taps_of<TAPS, I>(p.axes[0], h, p.in_stride.h);
  ResizeTaps<TAPS, I> columns = taps_of<TAPS, I>(p.axes[1], w, p.in_stride.w);
  const T *in = p.in + at[3] * p.in_stride.n + c * p.in_stride.c;
  T *out =
      p.out + at[3] * p.out_stride.n + c * p.out_stride.c + h * p.out_stride.h + w * p.out_stride.w;
  bool inside = rows.inside && columns.inside;
  I end = c + p.group < p.channels ? c + p.group : p.channels;
  for (; c < end; c += V) {
    float sum[V];
    if (inside) {
      sum_taps<T, V, TAPS>(in, rows, columns, sum);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] = p.outside;
    }
    store_vector<T, V>(out, sum);
    in += V * p.in_stride.c, out += V * p.out_stride.c;
  }
}

/* ---- Launch ---- */

/* Planes that share a thread where the channels are not adjacent. */
constexpr int64_t kPlanes = 4;

template <typename T, int V, int TAPS, bool WIDE>
static cs_status launch_resize(const cs_op_desc *desc, const void *in, void *out,
                               cudaStream_t stream) {
  using I = typename Index<WIDE>::type;
  ResizeParams<T, WIDE> params = {};
  const int64_t *dim = desc->output.shape.dims;
  params.channels_first = V == 1 && desc->output.strides[1] != 1;
  int64_t group = V > 1 ? V : params.channels_first ? kPlanes : 1;
  int64_t groups = (dim[1] + group - 1) / group;
  params.total = (I)(dim[0] * groups * dim[2] * dim[3]);
  set_divisor(&params.inner[0], params.channels_first ? dim[3] : groups);
  set_divisor(&params.inner[1], params.channels_first ? dim[2] : dim[3]);
  set_divisor(&params.inner[2], params.channels_first ? groups : dim[2]);
  params.channels = (I)dim[1], params.group = (I)group;
  params.in_stride = strides_of<WIDE>(desc->inputs[0].strides);
  params.out_stride = strides_of<WIDE>(desc->output.strides);
  for (int i = 0; i < 2; i++) cs_resize_axis_of(desc, i, &params.axes[i]);
  params.in = static_cast<const T *>(in), params.out = static_cast<T *>(out);
  params.outside = (float)desc->attrs.resize.extrapolation_value;
  return launch_linear("resize", cs_resize_kernel<T, V, TAPS, WIDE>, params.total, params, stream);
}

template <typename T, int V, bool WIDE>
static cs_status launch_taps(const cs_op_desc *desc, const void *in, void *out,
                             cudaStream_t stream) {
  switch (cs_resize_taps_of(desc->attrs.resize.mode)) {
    case 1:
      return launch_resize<T, V, 1, WIDE>(desc, in, out, stream);
    case 2:
      return launch_resize<T, V, 2, WIDE>(desc, in, out, stream);
    default:
      return launch_resize<T, V, 4, WIDE>(desc, in, out, stream);
  }
}

static int resize_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->activation.kind != CS_ACT_NONE || desc->has_residual)
    return 0;
  add_variant(ids, capacity, &count, "cuda.resize.v1");
  return count;
}

static cs_status resize_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                               const void *, void *output, cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    if (!fits_narrow(view_of(&desc->output)) || !fits_narrow(view_of(&desc->inputs[0])))
      return launch_taps<T, 1, true>(desc, inputs[0], output, stream);
    bool vector = channels_vectorise(&desc->inputs[0], V) && channels_vectorise(&desc->output, V);
    return vector ? launch_taps<T, V, false>(desc, inputs[0], output, stream)
                  : launch_taps<T, 1, false>(desc, inputs[0], output, stream);
  });
}

const KernelFamily cs_resize_family = {resize_variants, NULL, NULL, resize_launch};
