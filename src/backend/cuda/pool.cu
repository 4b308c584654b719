/* MaxPool, AveragePool and GlobalAveragePool. NHWC: a thread for each pixel and 16 bytes of
 * channels. NCHW: a thread for each output, neighbours along the width. */
#include "backend/cuda/kernel_util.cuh"

enum PoolKind { POOL_MAX, POOL_AVERAGE };

template <bool WIDE>
struct PoolParams {
  using I = typename Index<WIDE>::type;
  I total;                            /* threads */
  typename Index<WIDE>::Div inner[3]; /* output extents, innermost first; channels in vectors */
  const void *x;
  void *y;
  I height, width;
  int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  I padded_h, padded_w; /* one past the last position that count_include_pad counts */
  bool include_pad;
  Strides<WIDE> in, out;
  Activation act;
};

/* Taps k with 0 <= start + k·dilation < end. */
__host__ __device__ __forceinline__ int taps_before(int64_t start, int64_t end, int dilation,
                                                    int kernel) {
  if (start >= end) return 0;
  int64_t taps = (end - start + dilation - 1) / dilation;
  return taps < kernel ? (int)taps : kernel;
}

template <int V, PoolKind KIND>
__device__ __forceinline__ void pool_tap(const float (&tap)[V], float (&sum)[V]) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    if (KIND == POOL_MAX)
      sum[i] = tap[i] > sum[i] || tap[i] != tap[i] ? tap[i] : sum[i];
    else
      sum[i] += tap[i];
  }
}

/* All taps of a K × K window without dilation, every load issued before the first use. */
template <typename T, int V, PoolKind KIND, int K, typename P, typename I>
__device__ __forceinline__ int pool_fixed(const P &p, const T *x, I h0, I w0, float (&sum)[V]) {
  float taps[K * K][V];
  int count = 0;
#pragma unroll
  for (int r = 0; r < K; r++) {
#pragma unroll
    for (int s = 0; s < K; s++) {
      I h = h0 + r, w = w0 + s;
      bool inside = h >= 0 && h < p.height && w >= 0 && w < p.width;
      count += inside;
#pragma unroll
      for (int i = 0; i < V; i++) taps[r * K + s][i] = KIND == POOL_MAX ? -INFINITY : 0.f;
      if (inside) load_vector<T, V>(x + h * p.in.h + w * p.in.w, taps[r * K + s]);
    }
  }
#pragma unroll
  for (int k = 0; k < K * K; k++) pool_tap<V, KIND>(taps[k], sum);
  return count;
}

template <typename T, int V, PoolKind KIND, typename P, typename I>
__device__ __forceinline__ int pool_any(const P &p, const T *x, I h0, I w0, float (&sum)[V]) {
  int count = 0;
  for (int r = 0; r < p.kernel_h; r++) {
    I h = h0 + (I)r * p.dilation_h;
    if (h < 0 || h >= p.height) continue;
#pragma unroll 4
    for (int s = 0; s < p.kernel_w; s++) {
      I w = w0 + (I)s * p.dilation_w;
      if (w < 0 || w >= p.width) continue;
      float tap[V];
      load_vector<T, V>(x + h * p.in.h + w * p.in.w, tap);
      pool_tap<V, KIND>(tap, sum);
      count++;
    }
  }
  return count;
}

/* K: the square kernel's size when it is known and undilated, else 0. */
template <typename T, int V, bool NHWC, bool WIDE, PoolKind KIND, int K>
__global__ void cs_pool_kernel(const __grid_constant__ PoolParams<WIDE> p) {
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I c, oh, ow, n;
  if (NHWC) {
    I rest = divide(index, p.inner[0], &c);
    rest = divide(rest, p.inner[1], &ow);
    n = divide(rest, p.inner[2], &oh);
    c *= V;
  } else {
    I rest = divide(index, p.inner[0], &ow);
    rest = divide(rest, p.inner[1], &oh);
    n = divide(rest, p.inner[2], &c);
  }
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c * p.in.c;
  I h0 = oh * p.stride_h - p.pad_top, w0 = ow * p.stride_w - p.pad_left;
  float sum[V];
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = KIND == POOL_MAX ? -INFINITY : 0.f;
  int count;
  if constexpr (K > 0)
    count = pool_fixed<T, V, KIND, K>(p, x, h0, w0, sum);
  else
    count = pool_any<T, V, KIND>(p, x, h0, w0, sum);
  if (KIND == POOL_AVERAGE) {
    if (p.include_pad)
      count = taps_before(h0, p.padded_h, p.dilation_h, p.kernel_h) *
              taps_before(w0, p.padded_w, p.dilation_w, p.kernel_w);
    float scale = 1.f / (float)count; /* 0/0 is NaN: a window without any element */
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] *= scale;
  }
  activate<V>(p.act, sum);
  store_vector<T, V>(
      static_cast<T *>(p.y) + n * p.out.n + c * p.out.c + oh * p.out.h + ow * p.out.w, sum);
}

template <bool WIDE>
static PoolParams<WIDE> pool_params(const cs_op_desc *desc, bool nhwc, int width, const void *x,
                                    void *y) {
  using I = typename Index<WIDE>::type;
  const cs_pool_attrs *pool = &desc->attrs.pool;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  PoolParams<WIDE> p = {};
  p.total = (I)(view_elements(out) / width);
  const int64_t channels = out.dim[1] / width;
  set_divisor(&p.inner[0], nhwc ? channels : out.dim[3]);
  set_divisor(&p.inner[1], nhwc ? out.dim[3] : out.dim[2]);
  set_divisor(&p.inner[2], nhwc ? out.dim[2] : channels);
  p.x = x, p.y = y;
  p.height = (I)in.dim[2], p.width = (I)in.dim[3];
  p.kernel_h = (int)pool->kernel[0], p.kernel_w = (int)pool->kernel[1];
  p.stride_h = (int)pool->strides[0], p.stride_w = (int)pool->strides[1];
  p.dilation_h = (int)pool->dilations[0], p.dilation_w = (int)pool->dilations[1];
  p.pad_top = (int)pool->pads[0], p.pad_left = (int)pool->pads[1];
  p.padded_h = (I)(in.dim[2] + pool->pads[2]), p.padded_w = (I)(in.dim[3] + pool->pads[3]);
  p.include_pad = pool->count_include_pad;
  p.in = strides_of<WIDE>(in.stride), p.out = strides_of<WIDE>(out.stride);
  p.act = activation_of(desc->activation);
  return p;
}

template <typename T, int V, bool NHWC, bool WIDE, PoolKind KIND, int K>
static cs_status launch_pool(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  PoolParams<WIDE> params = pool_params<WIDE>(desc, NHWC, V, x, y);
  return launch_linear("pool", cs_pool_kernel<T, V, NHWC, WIDE, KIND, K>, params.total, params,
                       stream);
}

/* The kernel's size when there is a kernel made for it. */
static int fixed_kernel(const cs_pool_attrs *pool) {
  bool square =
      pool->kernel[0] == pool->kernel[1] && pool->dilations[0] == 1 && pool->dilations[1] == 1;
  return square && (pool->kernel[0] == 2 || pool->kernel[0] == 3) ? (int)pool->kernel[0] : 0;
}

template <typename T, int V, bool NHWC, PoolKind KIND>
static cs_status launch_fixed(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  switch (fixed_kernel(&desc->attrs.pool)) {
    case 2:
      return launch_pool<T, V, NHWC, false, KIND, 2>(desc, x, y, stream);
    case 3:
      return launch_pool<T, V, NHWC, false, KIND, 3>(desc, x, y, stream);
    default:
      return launch_pool<T, V, NHWC, false, KIND, 0>(desc, x, y, stream);
  }
}

template <PoolKind KIND>
static cs_status launch_kind(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  return by_dtype(out->dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    if (!fits_narrow(view_of(in)) || !fits_narrow(view_of(out)))
      return launch_pool<T, 1, false, true, KIND, 0>(desc, x, y, stream);
    if (channels_vectorise(in, V) && channels_vectorise(out, V))
      return launch_fixed<T, V, true, KIND>(desc, x, y, stream);
    if (out->layout == CS_LAYOUT_NHWC)
      return launch_pool<T, 1, true, false, KIND, 0>(desc, x, y, stream);
    return launch_fixed<T, 1, false, KIND>(desc, x, y, stream);
  });
}

/* ---- GlobalAveragePool ---- */

constexpr int kPoolBatch = 4; /* loads in flight per thread */

template <bool WIDE>
struct GlobalPoolParams {
  using I = typename Index<WIDE>::type;
  I rows; /* N × C, or N × channel groups */
  typename Index<WIDE>::Div channels, width;
  I pixels;
  const void *x;
  void *y;
  float scale;
  Strides<WIDE> in, out;
  bool row_major; /* the plane is one line of stride in.w */
  Activation act;
};

/* A warp for each (n, c), lanes along the plane. */
template <typename T, bool WIDE>
__global__ void cs_global_pool_plane_kernel(const __grid_constant__ GlobalPoolParams<WIDE> p) {
  using I = typename Index<WIDE>::type;
  I row = thread_index<I>() / 32;
  if (row >= p.rows) return;
  I c;
  I n = divide(row, p.channels, &c);
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c * p.in.c;
  float sum = 0.f;
  for (I i = (I)threadIdx.x % 32; i < p.pixels; i += 32 * kPoolBatch) {
    float taps[kPoolBatch];
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) {
      I pixel = i + 32 * j, offset = pixel * p.in.w;
      if (!p.row_major) {
        I w;
        I h = divide(pixel, p.width, &w);
        offset = h * p.in.h + w * p.in.w;
      }
      taps[j] = pixel < p.pixels ? Convert<T>::from(x[offset]) : 0.f;
    }
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) sum += taps[j];
  }
  float mean[1] = {warp_sum(sum) * p.scale};
  activate<1>(p.act, mean);
  if (threadIdx.x % 32 == 0)
    store_vector<T, 1>(static_cast<T *>(p.y) + n * p.out.n + c * p.out.c, mean);
}

/* A block for each image and 4 vectors of channels: 4 × 32 threads, the pixels shared out. */
template <typename T, int V>
__global__ void __launch_bounds__(128)
    cs_global_pool_channels_kernel(const __grid_constant__ GlobalPoolParams<false> p) {
  __shared__ float partial[4][4][V];
  int32_t group;
  int32_t n = divide((int32_t)blockIdx.x, p.channels, &group);
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  int32_t c = (group * 4 + lane % 4) * V;
  bool active = lane % 4 + group * 4 < p.rows;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c;
  float sum[V];
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = 0.f;
  for (int32_t first = (int)threadIdx.x / 4; active && first < p.pixels; first += 32 * kPoolBatch) {
    float taps[kPoolBatch][V];
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) {
      int32_t pixel = first + 32 * j, w;
      int32_t h = divide(pixel, p.width, &w);
#pragma unroll
      for (int i = 0; i < V; i++) taps[j][i] = 0.f;
      if (pixel < p.pixels) load_vector<T, V>(x + h * p.in.h + w * p.in.w, taps[j]);
    }
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] += taps[j][i];
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
#pragma unroll
    for (int step = 16; step >= 4; step /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
    if (lane < 4) partial[warp][lane][i] = sum[i];
  }
  __syncthreads();
  if (threadIdx.x >= 4 || !active) return;
#pragma unroll
  for (int i = 0; i < V; i++)
    sum[i] =
        (partial[0][lane][i] + partial[1][lane][i] + partial[2][lane][i] + partial[3][lane][i]) *
        p.scale;
  activate<V>(p.act, sum);
  store_vector<T, V>(static_cast<T *>(p.y) + n * p.out.n + c, sum);
}

template <bool WIDE>
static GlobalPoolParams<WIDE> global_params(const cs_op_desc *desc, const void *x, void *y) {
  using I = typename Index<WIDE>::type;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  GlobalPoolParams<WIDE> p = {};
  p.rows = (I)(in.dim[0] * in.dim[1]);
  set_divisor(&p.channels, in.dim[1]);
  set_divisor(&p.width, in.dim[3]);
  p.pixels = (I)(in.dim[2] * in.dim[3]);
  p.x = x, p.y = y;
  p.scale = 1.f / (float)p.pixels;
  p.in = strides_of<WIDE>(in.stride), p.out = strides_of<WIDE>(out.stride);
  p.row_major = in.stride[2] == in.dim[3] * in.stride[3];
  p.act = activation_of(desc->activation);
  return p;
}

template <typename T, bool WIDE>
static cs_status launch_plane(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  GlobalPoolParams<WIDE> params = global_params<WIDE>(desc, x, y);
  View in = view_of(&desc->inputs[0]);
  return launch_linear("global_average_pool", cs_global_pool_plane_kernel<T, WIDE>,
                       in.dim[0] * in.dim[1] * 32, params, stream);
}

template <typename T, int V>
static cs_status launch_channels(const cs_op_desc *desc, const void *x, void *y,
                                 cudaStream_t stream) {
  GlobalPoolParams<false> params = global_params<false>(desc, x, y);
  View in = view_of(&desc->inputs[0]);
  int64_t vectors = in.dim[1] / V, groups = (vectors + 3) / 4;
  params.rows = (int32_t)vectors;
  set_divisor(&params.channels, groups);
  return launch_kernel("global_average_pool", cs_global_pool_channels_kernel<T, V>,
                       dim3((unsigned)(in.dim[0] * groups)), dim3(128), params, stream);
}

static cs_status launch_global(const cs_op_desc *desc, const void *x, void *y,
                               cudaStream_t stream) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  return by_dtype(out->dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    View view = view_of(in);
    if (!fits_narrow(view) || view.dim[0] * view.dim[1] * 32 >= kNarrowLimit)
      return launch_plane<T, true>(desc, x, y, stream);
    if (channels_vectorise(in, V) && channels_vectorise(out, V))
      return launch_channels<T, V>(desc, x, y, stream);
    if (in->layout == CS_LAYOUT_NHWC && in->strides[1] == 1 && out->strides[1] == 1)
      return launch_channels<T, 1>(desc, x, y, stream);
    return launch_plane<T, false>(desc, x, y, stream);
  });
}

/* ---- The family ---- */

static int pool_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->has_residual || desc->n_inputs != 1) return 0;
  add_variant(ids, capacity, &count,
              desc->op == CS_OP_MAX_POOL       ? "cuda.max_pool.v1"
              : desc->op == CS_OP_AVERAGE_POOL ? "cuda.average_pool.v1"
                                               : "cuda.global_average_pool.v1");
  return count;
}

static cs_status pool_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                             const void *, void *output, cudaStream_t stream) {
  switch (desc->op) {
    case CS_OP_MAX_POOL:
      return launch_kind<POOL_MAX>(desc, inputs[0], output, stream);
    case CS_OP_AVERAGE_POOL:
      return launch_kind<POOL_AVERAGE>(desc, inputs[0], output, stream);
    default:
      return launch_global(desc, inputs[0], output, stream);
  }
}

const KernelFamily cs_pool_family = {pool_variants, NULL, NULL, pool_launch};
