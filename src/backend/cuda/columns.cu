/* Kernels of columns.h: gathering columns, and scattering. */
#include "backend/cuda/kernel_util.cuh"
/* Behind what declares C's functions as such. */
#include "backend/cuda/columns.h"

/* ---- Gathering ---- */

template <bool WIDE>
struct GatherParams {
  using I = typename Index<WIDE>::type;
  using Div = typename Index<WIDE>::Div;
  I total;      /* threads */
  Div inner[3]; /* output extents, innermost first; filters in vectors */
  cs_axis_map h, w;
  const float *columns, *bias;
  I image, row, column, tap, filter; /* strides of columns */
  void *y;
  Strides<WIDE> out;
  Activation act;
};

/* V filters of one output pixel a thread. LAST: filters are the output's innermost axis; V > 1 only
 * there, where those of a column are adjacent. */
template <typename T, int V, bool LAST, bool WIDE>
__global__ void __launch_bounds__(256)
    cs_gather_columns_kernel(const __grid_constant__ GatherParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I n, k, oh, ow;
  if (LAST) {
    I rest = divide(index, p.inner[0], &k);
    rest = divide(rest, p.inner[1], &ow);
    n = divide(rest, p.inner[2], &oh);
    k *= V;
  } else {
    I rest = divide(index, p.inner[0], &ow);
    rest = divide(rest, p.inner[1], &oh);
    n = divide(rest, p.inner[2], &k);
  }
  const cs_reach h = cs_reach_of(&p.h, (int)oh), w = cs_reach_of(&p.w, (int)ow);
  const float *image = p.columns + n * p.image + k * p.filter;
  float sum[V] = {};
  for (int i = 0; i < h.n; i++) {
    I tap_row = (I)(h.tap + i * p.h.tap_step) * p.w.kernel;
    const float *row = image + (I)(h.in - i * p.h.in_step) * p.row;
    for (int j = 0; j < w.n; j++) {
      const float *from = row + (I)(w.in - j * p.w.in_step) * p.column +
                          (tap_row + w.tap + j * p.w.tap_step) * p.tap;
      float values[V];
      load_vector<float, V>(from, values);
#pragma unroll
      for (int v = 0; v < V; v++) sum[v] += values[v];
    }
  }
  if (p.bias != nullptr) {
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += p.bias[k + v];
  }
  activate<V>(p.act, sum);
  store_vector<T, V>(
      static_cast<T *>(p.y) + n * p.out.n + k * p.out.c + oh * p.out.h + ow * p.out.w, sum);
}

template <typename T, int V, bool LAST, bool WIDE>
static cs_status launch_gather(const cs_op_desc *desc, const cs_columns *c, const float *values,
                               const float *bias, void *y, cudaStream_t stream) {
  using I = typename Index<WIDE>::type;
  const cs_column_strides strides = cs_columns_strides(c);
  const int64_t *out = desc->output.shape.dims;
  GatherParams<WIDE> p = {};
  p.total = (I)(out[0] * (out[1] / V) * out[2] * out[3]);
  set_divisor(&p.inner[0], LAST ? out[1] / V : out[3]);
  set_divisor(&p.inner[1], LAST ? out[3] : out[2]);
  set_divisor(&p.inner[2], LAST ? out[2] : out[1]);
  p.h = c->h, p.w = c->w;
  p.columns = values, p.bias = bias, p.y = y;
  p.image = (I)strides.image, p.row = (I)strides.h, p.column = (I)strides.w;
  p.tap = (I)strides.tap, p.filter = (I)strides.filter;
  p.out = strides_of<WIDE>(desc->output.strides);
  p.act = activation_of(desc->activation);
  return launch_linear("gather_columns", cs_gather_columns_kernel<T, V, LAST, WIDE>,
                       (int64_t)p.total, p, stream);
}

cs_status cs_cuda_gather_columns(const cs_op_desc *desc, const cs_columns *columns,
                                 const float *values, const float *bias, void *y,
                                 cudaStream_t stream) {
  const cs_tensor_desc *out = &desc->output;
  bool last = out->strides[1] == 1 && out->shape.dims[1] > 1;
  bool narrow = fits_narrow(view_of(out)) &&
                cs_columns_bytes(columns) / (int64_t)sizeof(float) < kNarrowLimit;
  return by_dtype(out->dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    bool vector =
        last && !columns->planes && out->shape.dims[1] % V == 0 && channels_vectorise(out, V);
    if (vector)
      return narrow ? launch_gather<T, V, true, false>(desc, columns, values, bias, y, stream)
                    : launch_gather<T, V, true, true>(desc, columns, values, bias, y, stream);
    if (last)
      return narrow ? launch_gather<T, 1, true, false>(desc, columns, values, bias, y, stream)
                    : launch_gather<T, 1, true, true>(desc, columns, values, bias, y, stream);
    return narrow ? launch_gather<T, 1, false, false>(desc, columns, values, bias, y, stream)
                  : launch_gather<T, 1, false, true>(desc, columns, values, bias, y, stream);
  });
}

/* ---- Scattering: a baseline, as it would first be written ---- */

struct ZeroParams {
  float *values;
  int64_t n;
};

__global__ void cs_zero_kernel(const __grid_constant__ ZeroParams p) {
  begin_kernel();
  int64_t index = thread_index<int64_t>();
  if (index < p.n) p.values[index] = 0.f;
}

struct ScatterParams {
  const void *x, *w;
  float *sums;
  cs_axis_map h, w_axis;
  int64_t total;
  int channels, filters;
  Strides<true> in;
  cs_column_strides out; /* of the sums, as columns of one tap */
};

/* One thread for each input element, all filters and taps one after the other. */
template <typename T>
__global__ void cs_scatter_kernel(const __grid_constant__ ScatterParams p) {
  begin_kernel();
  int64_t index = thread_index<int64_t>();
  if (index >= p.total) return;
  int ix = (int)(index % p.w_axis.in);
  int iy = (int)(index / p.w_axis.in % p.h.in);
  int64_t plane = index / p.w_axis.in / p.h.in;
  int c = (int)(plane % p.channels);
  int64_t n = plane / p.channels;
  float x = Convert<T>::from(
      static_cast<const T *>(p.x)[n * p.in.n + c * p.in.c + iy * p.in.h + ix * p.in.w]);
  int taps = p.h.kernel * p.w_axis.kernel;
  for (int tap = 0; tap < taps; tap++) {
    int oy = cs_reached(&p.h, iy, tap / p.w_axis.kernel);
    int ox = cs_reached(&p.w_axis, ix, tap % p.w_axis.kernel);
    if (oy < 0 || ox < 0) continue;
    const T *w = static_cast<const T *>(p.w) + ((int64_t)c * taps + tap) * p.filters;
    float *to = p.sums + n * p.out.image + oy * p.out.h + ox * p.out.w;
    for (int k = 0; k < p.filters; k++)
      atomicAdd(to + k * p.out.filter, x * Convert<T>::from(w[k]));
  }
}

static int64_t scatter_matrix_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(cs_op_weight_elements(desc) * cs_dtype_size(desc->output.dtype));
}

/* The sums, in the output's order, as the columns of a 1 × 1 kernel. */
static cs_columns sums_of(const cs_op_desc *desc, const cs_columns *columns) {
  cs_columns sums = *columns;
  sums.h = {1, 1, 0, 1, columns->h.out, columns->h.out, 1, 1};
  sums.w = {1, 1, 0, 1, columns->w.out, columns->w.out, 1, 1};
  sums.planes = desc->output.strides[1] != 1 || desc->output.shape.dims[1] == 1;
  return sums;
}

bool cs_cuda_scatter_takes(const cs_op_desc *desc) {
  cs_columns columns;
  return plain_tensors(desc) && cs_columns_make(desc, &columns) == NULL &&
         desc->inputs[0].shape.dims[1] <= INT32_MAX && columns.filters <= INT32_MAX;
}

int64_t cs_cuda_scatter_workspace(const cs_op_desc *desc) {
  cs_columns columns;
  if (cs_columns_make(desc, &columns)) return 0; /* not offered */
  cs_columns sums = sums_of(desc, &columns);
  return cs_columns_bytes(&sums);
}

int64_t cs_cuda_scatter_weight_bytes(const cs_op_desc *desc) {
  int64_t bias = desc->has_bias ? desc->output.shape.dims[1] * (int64_t)sizeof(float) : 0;
  return scatter_matrix_bytes(desc) + weight_part_bytes(bias);
}

/* From [channel][filter][tap]. */
void cs_cuda_scatter_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                          void *host_out) {
  int64_t filters = desc->output.shape.dims[1], channels = desc->inputs[0].shape.dims[1];
  int64_t taps = desc->attrs.conv.kernel[0] * desc->attrs.conv.kernel[1];
  memset(host_out, 0, (size_t)cs_cuda_scatter_weight_bytes(desc));
  for (int64_t c = 0; c < channels; c++)
    for (int64_t k = 0; k < filters; k++)
      for (int64_t t = 0; t < taps; t++)
        put_rounded(desc->output.dtype, host_out, (c * taps + t) * filters + k,
                    weight[(c * filters + k) * taps + t]);
  if (desc->has_bias)
    memcpy((char *)host_out + scatter_matrix_bytes(desc), bias, (size_t)filters * sizeof(float));
}

cs_status cs_cuda_scatter_launch(const cs_op_desc *desc, const void *x, const void *weights,
                                 float *sums, void *y, cudaStream_t stream) {
  cs_columns columns;
  const char *refusal = cs_columns_make(desc, &columns);
  if (refusal) return cs_error(CS_CODE_BAD_INPUT, "kernel scatter: %s", refusal);
  const cs_tensor_desc *in = &desc->inputs[0];
  cs_columns summed = sums_of(desc, &columns);
  ZeroParams zero = {sums, cs_columns_bytes(&summed) / (int64_t)sizeof(float)};
  cs_status st = launch_linear("zero", cs_zero_kernel, zero.n, zero, stream);
  if (st != CS_OK) return st;
  ScatterParams p = {};
  p.x = x, p.w = weights, p.sums = sums;
  p.h = columns.h, p.w_axis = columns.w;
  p.channels = (int)in->shape.dims[1], p.filters = (int)columns.filters;
  p.total = in->shape.dims[0] * in->shape.dims[1] * in->shape.dims[2] * in->shape.dims[3];
  p.in = strides_of<true>(in->strides);
  p.out = cs_columns_strides(&summed);
  st = by_dtype(desc->output.dtype, [&](auto type) {
    return launch_linear("scatter", cs_scatter_kernel<decltype(type)>, p.total, p, stream);
  });
  if (st != CS_OK) return st;
  const float *bias = desc->has_bias
                          ? reinterpret_cast<const float *>(static_cast<const char *>(weights) +
                                                            scatter_matrix_bytes(desc))
                          : nullptr;
  return cs_cuda_gather_columns(desc, &summed, sums, bias, y, stream);
}
