/* MaxPool and AveragePool of 2 × 2 and 3 × 3 windows in NHWC, several outputs a thread, one below
 * the other. Windows that overlap share rows: a row's K inputs are loaded and joined once, and a
 * window is K joined rows. Down rather than across, because what windows share across is in the L1
 * cache already (a block's threads are neighbours along the width), while rows are other blocks'
 * and come from L2. Fewer threads, so small tensors fare better with an output a thread (pool.cu).
 */
#include "backend/cuda/pool.cuh"

namespace {

/* X(outputs of a thread) */
#define CS_POOL_STRIPS(X) X(2) X(4)

struct StripVariant {
  int outputs;
  const char *max_id, *average_id;
};
const StripVariant kVariants[] = {
#define CS_STRIP_VARIANT(outputs) \
  {outputs, "cuda.max_pool_strip.v1-" #outputs, "cuda.average_pool_strip.v1-" #outputs},
    CS_POOL_STRIPS(CS_STRIP_VARIANT)
#undef CS_STRIP_VARIANT
};

struct StripParams {
  PoolParams<false> pool; /* inner[2]: strips of a column */
  int32_t out_height;
};

template <typename T, PoolKind KIND, int K, int STRIDE, int OUTPUTS>
__global__ void __launch_bounds__(256, 2)
    cs_pool_strip_kernel(const __grid_constant__ StripParams params) {
  begin_kernel();
  constexpr int V = kVector<T>, kRows = (OUTPUTS - 1) * STRIDE + K;
  using J = Joining<T, V, KIND>;
  const PoolParams<false> &p = params.pool;
  int32_t index = thread_index<int32_t>();
  if (index >= p.total) return;
  int32_t c, ow, strip;
  int32_t rest = divide(index, p.inner[0], &c);
  rest = divide(rest, p.inner[1], &ow);
  int32_t n = divide(rest, p.inner[2], &strip);
  c *= V;
  const int32_t oh = strip * OUTPUTS;
  const int32_t h0 = oh * STRIDE - p.pad_top, w0 = ow * p.stride_w - p.pad_left;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c;
  const Positions<kRows> h = positions_from<kRows>(h0, p.height, p.in.h);
  const Positions<K> w = positions_from<K>(w0, p.width, p.in.w);
  typename J::Value rows[kRows][J::kSize];
#pragma unroll
  for (int r = 0; r < kRows; r++) {
    typename J::Value taps[K][J::kSize];
#pragma unroll
    for (int s = 0; s < K; s++)
      J::load(h.inside[r] && w.inside[s], x + h.offset[r] + w.offset[s], taps[s]);
    copy_values<J>(taps[0], rows[r]);
#pragma unroll
    for (int s = 1; s < K; s++) J::join(taps[s], rows[r]);
  }
  T *y = static_cast<T *>(p.y) + n * p.out.n + c + oh * p.out.h + ow * p.out.w;
#pragma unroll
  for (int i = 0; i < OUTPUTS; i++) {
    if (oh + i >= params.out_height) return;
    typename J::Value sum[J::kSize];
    copy_values<J>(rows[i * STRIDE], sum);
#pragma unroll
    for (int r = 1; r < K; r++) J::join(rows[i * STRIDE + r], sum);
    if constexpr (KIND == POOL_AVERAGE)
      divide_sums(counted<K>(h0 + i * STRIDE, p.height, p.padded_h, p.include_pad) *
                      counted<K>(w0, p.width, p.padded_w, p.include_pad),
                  sum);
    J::store(y + i * p.out.h, sum);
  }
}

template <typename T, PoolKind KIND, int K, int STRIDE, int OUTPUTS>
cs_status launch_strips(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  StripParams params = {pool_params<false>(desc, true, kVector<T>, x, y), 0};
  params.out_height = (int32_t)desc->output.shape.dims[2];
  int32_t strips = (params.out_height + OUTPUTS - 1) / OUTPUTS;
  params.pool.total = params.pool.total / params.out_height * strips;
  set_divisor(&params.pool.inner[2], strips);
  return launch_linear("pool_strip", cs_pool_strip_kernel<T, KIND, K, STRIDE, OUTPUTS>,
                       params.pool.total, params, stream);
}

template <typename T, PoolKind KIND, int OUTPUTS>
cs_status launch_window(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  const cs_pool_attrs *pool = &desc->attrs.pool;
  if (pool->kernel[0] == 3)
    return pool->strides[0] == 1 ? launch_strips<T, KIND, 3, 1, OUTPUTS>(desc, x, y, stream)
                                 : launch_strips<T, KIND, 3, 2, OUTPUTS>(desc, x, y, stream);
  return pool->strides[0] == 1 ? launch_strips<T, KIND, 2, 1, OUTPUTS>(desc, x, y, stream)
                               : launch_strips<T, KIND, 2, 2, OUTPUTS>(desc, x, y, stream);
}

template <int OUTPUTS>
cs_status launch_outputs(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    return desc->op == CS_OP_MAX_POOL ? launch_window<T, POOL_MAX, OUTPUTS>(desc, x, y, stream)
                                      : launch_window<T, POOL_AVERAGE, OUTPUTS>(desc, x, y, stream);
  });
}

/* No activation: networks have none behind a pool, and it would be there once for each output. */
bool strips_apply(const cs_op_desc *desc) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  const cs_pool_attrs *pool = &desc->attrs.pool;
  if (desc->op != CS_OP_MAX_POOL && desc->op != CS_OP_AVERAGE_POOL) return false;
  if (out->shape.rank != 4 || desc->has_residual || desc->n_inputs != 1) return false;
  if (desc->activation.kind != CS_ACT_NONE) return false;
  if (fixed_kernel(desc) == 0 || pool->strides[0] > 2) return false;
  int width = 16 / cs_dtype_size(out->dtype);
  return channels_vectorise(in, width) && channels_vectorise(out, width) &&
         fits_narrow(view_of(in)) && fits_narrow(view_of(out));
}

int strip_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!strips_apply(desc)) return 0;
  for (const StripVariant &variant : kVariants)
    if (desc->output.shape.dims[2] >= variant.outputs)
      add_variant(ids, capacity, &count,
                  desc->op == CS_OP_MAX_POOL ? variant.max_id : variant.average_id);
  return count;
}

cs_status strip_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                       const void *, void *output, cudaStream_t stream) {
#define CS_LAUNCH_STRIP(outputs)                   \
  if (strcmp(strrchr(id, '-'), "-" #outputs) == 0) \
    return launch_outputs<outputs>(desc, inputs[0], output, stream);
  CS_POOL_STRIPS(CS_LAUNCH_STRIP)
#undef CS_LAUNCH_STRIP
  return cs_error(CS_CODE_INTERNAL, "no strip \"%s\"", id);
}

}  // namespace

const KernelFamily cs_pool_strip_family = {strip_variants, NULL, NULL, strip_launch};
