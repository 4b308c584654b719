/* MaxPool and AveragePool, an output a thread. NHWC: a thread for each pixel and 16 bytes of
 * channels. NCHW: neighbours along the width. */
#include "backend/cuda/pool.cuh"

/* Taps k with 0 <= start + k·dilation < end. */
__host__ __device__ __forceinline__ int taps_before(int64_t start, int64_t end, int dilation,
                                                    int kernel) {
  if (start >= end) return 0;
  int64_t taps = (end - start + dilation - 1) / dilation;
  return taps < kernel ? (int)taps : kernel;
}

/* A K × K window without dilation, no branch between its loads. Returns how many inputs an average
 * counts. */
template <typename J, int K, typename T>
__device__ __forceinline__ int pool_fixed(const PoolParams<false> &p, const T *x, int32_t h0,
                                          int32_t w0, typename J::Value (&sum)[J::kSize]) {
  typename J::Value taps[K * K][J::kSize];
  const Positions<K> h = positions_from<K>(h0, p.height, p.in.h);
  const Positions<K> w = positions_from<K>(w0, p.width, p.in.w);
#pragma unroll
  for (int k = 0; k < K * K; k++)
    J::load(h.inside[k / K] && w.inside[k % K], x + h.offset[k / K] + w.offset[k % K], taps[k]);
  copy_values<J>(taps[0], sum);
#pragma unroll
  for (int k = 1; k < K * K; k++) J::join(taps[k], sum);
  return counted<K>(h0, p.height, p.padded_h, p.include_pad) *
         counted<K>(w0, p.width, p.padded_w, p.include_pad);
}

/* The same for any window. */
template <typename J, typename T, typename P, typename I>
__device__ __forceinline__ int pool_any(const P &p, const T *x, I h0, I w0,
                                        typename J::Value (&sum)[J::kSize]) {
  int count = 0;
#pragma unroll
  for (int i = 0; i < J::kSize; i++) sum[i] = J::none();
  for (int r = 0; r < p.kernel_h; r++) {
    I h = h0 + (I)r * p.dilation_h;
    if (h < 0 || h >= p.height) continue;
#pragma unroll 4
    for (int s = 0; s < p.kernel_w; s++) {
      I w = w0 + (I)s * p.dilation_w;
      if (w < 0 || w >= p.width) continue;
      typename J::Value tap[J::kSize];
      J::load(true, x + h * p.in.h + w * p.in.w, tap);
      J::join(tap, sum);
      count++;
    }
  }
  if (!p.include_pad) return count;
  return taps_before(h0, p.padded_h, p.dilation_h, p.kernel_h) *
         taps_before(w0, p.padded_w, p.dilation_w, p.kernel_w);
}

/* K: fixed_kernel(). */
template <typename T, int V, bool NHWC, bool WIDE, PoolKind KIND, int K>
__global__ void cs_pool_kernel(const __grid_constant__ PoolParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  using J = Joining<T, V, KIND>;
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
  typename J::Value sum[J::kSize];
  int count;
  if constexpr (K > 0)
    count = pool_fixed<J, K>(p, x, h0, w0, sum);
  else
    count = pool_any<J>(p, x, h0, w0, sum);
  if constexpr (KIND == POOL_AVERAGE) divide_sums(count, sum);
  J::activate(p.act, sum);
  J::store(static_cast<T *>(p.y) + n * p.out.n + c * p.out.c + oh * p.out.h + ow * p.out.w, sum);
}

template <typename T, int V, bool NHWC, bool WIDE, PoolKind KIND, int K>
static cs_status launch_pool(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  PoolParams<WIDE> params = pool_params<WIDE>(desc, NHWC, V, x, y);
  return launch_linear("pool", cs_pool_kernel<T, V, NHWC, WIDE, KIND, K>, params.total, params,
                       stream);
}

template <typename T, int V, bool NHWC, PoolKind KIND>
static cs_status launch_fixed(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  switch (fixed_kernel(desc)) {
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

static int pool_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->has_residual || desc->n_inputs != 1) return 0;
  add_variant(ids, capacity, &count,
              desc->op == CS_OP_MAX_POOL ? "cuda.max_pool.v2" : "cuda.average_pool.v2");
  return count;
}

static cs_status pool_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                             const void *, void *output, cudaStream_t stream) {
  return desc->op == CS_OP_MAX_POOL ? launch_kind<POOL_MAX>(desc, inputs[0], output, stream)
                                    : launch_kind<POOL_AVERAGE>(desc, inputs[0], output, stream);
}

const KernelFamily cs_pool_family = {pool_variants, NULL, NULL, pool_launch};
