/* Resize: a thread makes one pixel of several channels, so that where it comes from is computed
 * once for them: V adjacent ones as a vector, else up to kPlanes planes, or one. */
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

/* Planes that share a thread where the channels are not adjacent. */
constexpr int64_t kPlanes = 4;

/* What a thread makes, from channel c on. */
template <typename I>
struct ResizePixel {
  I n, c, h, w;
};

template <typename T, bool WIDE, typename I>
__device__ __forceinline__ ResizePixel<I> pixel_of(const ResizeParams<T, WIDE> &p, I index) {
  I at[4];
  I rest = divide(index, p.inner[0], &at[0]);
  rest = divide(rest, p.inner[1], &at[1]);
  at[3] = divide(rest, p.inner[2], &at[2]);
  I c = (p.channels_first ? at[2] : at[0]) * p.group;
  return {at[3], c, p.channels_first ? at[1] : at[2], p.channels_first ? at[0] : at[1]};
}

template <typename T, typename I, typename S>
__device__ __forceinline__ T *place_of(T *base, const S &stride, const ResizePixel<I> &at, I h,
                                       I w) {
  return base + at.n * stride.n + at.c * stride.c + h * stride.h + w * stride.w;
}

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
  ResizePixel<I> at = pixel_of(p, index);
  ResizeTaps<TAPS, I> rows = taps_of<TAPS, I>(p.axes[0], at.h, p.in_stride.h);
  ResizeTaps<TAPS, I> columns = taps_of<TAPS, I>(p.axes[1], at.w, p.in_stride.w);
  const T *in = place_of(p.in, p.in_stride, at, I(0), I(0));
  T *out = place_of(p.out, p.out_stride, at, at.h, at.w);
  bool inside = rows.inside && columns.inside;
  I end = at.c + p.group < p.channels ? at.c + p.group : p.channels;
  for (I c = at.c; c < end; c += V) {
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

/* ---- A widened filter: any number of elements, whose weights are computed as they are met ---- */

/* Adds the windows' elements of the thread's planes, weighted, to its sums. */
template <typename T, int V, int P, bool WIDE, typename I>
__device__ __forceinline__ void sum_windows(const ResizeParams<T, WIDE> &p, const T *in, I planes,
                                            const cs_resize_window &rows,
                                            const cs_resize_window &columns, float (&sum)[P][V]) {
  for (int64_t r = 0; r < rows.n; r++) {
    double down = cs_resize_weight(&p.axes[0], &rows, r);
    const T *row = in + (I)cs_resize_inside(&p.axes[0], rows.first + r) * p.in_stride.h;
    for (int64_t s = 0; s < columns.n; s++) {
      float weight = (float)(down * cs_resize_weight(&p.axes[1], &columns, s));
      const T *from = row + (I)cs_resize_inside(&p.axes[1], columns.first + s) * p.in_stride.w;
#pragma unroll
      for (int k = 0; k < P; k++) {
        if (k >= planes) continue;
        float x[V];
        load_vector<T, V>(from + k * p.in_stride.c, x);
#pragma unroll
        for (int i = 0; i < V; i++) sum[k][i] = fmaf(weight, x[i], sum[k][i]);
      }
    }
  }
}

template <typename T, int V, bool WIDE>
__global__ void cs_resize_antialias_kernel(const __grid_constant__ ResizeParams<T, WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  constexpr int P = V == 1 ? (int)kPlanes : 1;
  I index = thread_index<I>();
  if (index >= p.total) return;
  ResizePixel<I> at = pixel_of(p, index);
  cs_resize_window rows = cs_resize_window_of(&p.axes[0], (int64_t)at.h);
  cs_resize_window columns = cs_resize_window_of(&p.axes[1], (int64_t)at.w);
  I left = p.channels - at.c, planes = V > 1 ? 1 : left < p.group ? left : p.group;
  bool inside = rows.n > 0 && columns.n > 0;
  float sum[P][V];
#pragma unroll
  for (int k = 0; k < P; k++)
#pragma unroll
    for (int i = 0; i < V; i++) sum[k][i] = inside ? 0.f : p.outside;
  const T *in = place_of(p.in, p.in_stride, at, I(0), I(0));
  if (inside) sum_windows<T, V, P, WIDE, I>(p, in, planes, rows, columns, sum);
  T *out = place_of(p.out, p.out_stride, at, at.h, at.w);
#pragma unroll
  for (int k = 0; k < P; k++)
    if (k < planes) store_vector<T, V>(out + k * p.out_stride.c, sum[k]);
}

/* ---- Launch ---- */

template <typename T, int V, bool WIDE>
static cs_status launch_resize(void (*kernel)(ResizeParams<T, WIDE>), const cs_op_desc *desc,
                               const void *in, void *out, cudaStream_t stream) {
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
  return launch_linear("resize", kernel, params.total, params, stream);
}

static bool is_widened(const cs_op_desc *desc) {
  cs_resize_axis axes[2];
  for (int i = 0; i < 2; i++) cs_resize_axis_of(desc, i, &axes[i]);
  return axes[0].narrow < 1 || axes[1].narrow < 1;
}

template <typename T, int V, bool WIDE>
static cs_status launch_taps(const cs_op_desc *desc, const void *in, void *out,
                             cudaStream_t stream) {
  auto launch = [&](void (*kernel)(ResizeParams<T, WIDE>)) {
    return launch_resize<T, V, WIDE>(kernel, desc, in, out, stream);
  };
  if (is_widened(desc)) return launch(cs_resize_antialias_kernel<T, V, WIDE>);
  switch (cs_resize_taps_of(desc->attrs.resize.mode)) {
    case 1:
      return launch(cs_resize_kernel<T, V, 1, WIDE>);
    case 2:
      return launch(cs_resize_kernel<T, V, 2, WIDE>);
    default:
      return launch(cs_resize_kernel<T, V, 4, WIDE>);
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
