/* ReduceMean, ReduceSum, ReduceMax, ReduceMin and GlobalMaxPool over any axes. An output element is
 * made by one thread, by a warp or by a block of 256: where the axes that are left are adjacent a
 * thread for each reads whole lines with its neighbours, where the reduced ones are a warp does. */
#include "backend/cuda/loop_nest.cuh"

template <bool WIDE>
struct ReduceParams {
  using I = typename Index<WIDE>::type;
  NestParams<WIDE> outer; /* y and x over the axes that are left: total, output elements */
  NestParams<WIDE> inner; /* x over the reduced ones: total, elements of each */
  const void *x;
  void *y;
  float factor; /* of a sum */
  int op;
};

struct Reduction {
  float sum, best;
};

__device__ __forceinline__ bool is_better(int op, float v, float best) {
  return (op == CS_OP_REDUCE_MIN ? v < best : v > best) || isnan(v);
}

/* Both halves; the op's is used. A NaN stays. */
__device__ __forceinline__ void reduce_add(int op, Reduction *r, float sum, float best) {
  r->sum += sum;
  if (is_better(op, best, r->best)) r->best = best;
}

template <int LANES>
__device__ __forceinline__ void reduce_lanes(int op, Reduction *r) {
  if constexpr (LANES > 1) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) {
      float sum = __shfl_xor_sync(0xffffffffu, r->sum, lane);
      float best = __shfl_xor_sync(0xffffffffu, r->best, lane);
      reduce_add(op, r, sum, best);
    }
  }
  if constexpr (LANES > 32) {
    __shared__ Reduction warps[LANES / 32];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = *r;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int warp = 1; warp < LANES / 32; warp++)
        reduce_add(op, r, warps[warp].sum, warps[warp].best);
  }
}

template <typename T, int LANES, bool WIDE>
__global__ void __launch_bounds__(256)
    cs_reduce_kernel(const __grid_constant__ ReduceParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>(), at = index / LANES, lane = index % LANES;
  if (at >= p.outer.total) return; /* whole warps and blocks alike */
  I offset[2], part[1];
  nest_offsets(p.outer, at, offset);
  const T *x = static_cast<const T *>(p.x) + offset[1];
  Reduction r = {0.f, p.op == CS_OP_REDUCE_MIN ? INFINITY : -INFINITY};
  for (I i = lane; i < p.inner.total; i += LANES) {
    nest_offsets(p.inner, i, part);
    float v = Convert<T>::from(x[part[0]]);
    reduce_add(p.op, &r, v, v);
  }
  reduce_lanes<LANES>(p.op, &r);
  if (lane != 0) return;
  bool sums = p.op == CS_OP_REDUCE_MEAN || p.op == CS_OP_REDUCE_SUM;
  float y[1] = {sums ? r.sum * p.factor : r.best};
  store_vector<T, 1>(static_cast<T *>(p.y) + offset[0], y);
}

/* ---- Launch ---- */

struct ReduceNests {
  LoopNest outer, inner;
};

static ReduceNests nests_of(const cs_op_desc *desc) {
  cs_tensor_desc kept = cs_op_kept_output(desc);
  View y = view_of(&kept), x = view_of(&desc->inputs[0]);
  bool reduced[CS_MAX_RANK];
  (void)cs_op_reduces(desc, reduced);
  View left = x, part = x;
  for (int axis = 0; axis < 4; axis++) {
    if (reduced[axis])
      left.dim[axis] = 1;
    else
      part.dim[axis] = 1;
  }
  ReduceNests nests = {nest_begin(y), nest_begin(part)};
  nest_add(&nests.outer, left);
  nest_collapse(&nests.outer);
  nest_collapse(&nests.inner);
  return nests;
}

static bool fits(const ReduceNests &nests, int lanes) {
  int64_t last = 0; /* of x: both offsets add up */
  for (int axis = 0; axis < 4; axis++)
    last += (nests.outer.size[axis] - 1) * nests.outer.stride[1][axis] +
            (nests.inner.size[axis] - 1) * nests.inner.stride[0][axis];
  return nest_fits_narrow(&nests.outer) && nest_fits_narrow(&nests.inner) && last < kNarrowLimit &&
         nest_elements(&nests.outer) * lanes < kNarrowLimit;
}

template <typename T, int LANES, bool WIDE>
static cs_status launch_reduce(const cs_op_desc *desc, const ReduceNests &nests, const void *x,
                               void *y, cudaStream_t stream) {
  int64_t length = nest_elements(&nests.inner), outputs = nest_elements(&nests.outer);
  float factor = desc->op == CS_OP_REDUCE_MEAN ? 1.f / (float)length : 1.f;
  ReduceParams<WIDE> params = {nest_params<WIDE>(&nests.outer, 1),
                               nest_params<WIDE>(&nests.inner, 1),
                               x,
                               y,
                               factor,
                               (int)desc->op};
  if (LANES < 256)
    return launch_linear("reduce", cs_reduce_kernel<T, LANES, WIDE>, outputs * LANES, params,
                         stream);
  if (outputs > INT32_MAX)
    return cs_error(CS_CODE_BAD_INPUT, "kernel reduce: %lld outputs; at most 2^31 blocks fit",
                    (long long)outputs);
  return launch_kernel("reduce", cs_reduce_kernel<T, LANES, WIDE>, dim3((unsigned)outputs),
                       dim3(256), params, stream);
}

static const char *const kReduceIds[] = {"cuda.reduce_thread.v1", "cuda.reduce_warp.v1",
                                         "cuda.reduce_block.v1"};

/* A block for each element only where there is work for one. */
static int reduce_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->inputs[0].shape.rank > 4 || desc->has_residual || desc->n_inputs != 1) return 0;
  if (desc->activation.kind != CS_ACT_NONE) return 0;
  ReduceNests nests = nests_of(desc);
  add_variant(ids, capacity, &count, kReduceIds[0]);
  if (nest_elements(&nests.inner) >= 32) add_variant(ids, capacity, &count, kReduceIds[1]);
  if (nest_elements(&nests.inner) >= 1024) add_variant(ids, capacity, &count, kReduceIds[2]);
  return count;
}

static cs_status reduce_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                               const void *, void *output, cudaStream_t stream) {
  ReduceNests nests = nests_of(desc);
  int lanes = strcmp(id, kReduceIds[0]) == 0 ? 1 : strcmp(id, kReduceIds[1]) == 0 ? 32 : 256;
  bool wide = !fits(nests, lanes);
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    const void *x = inputs[0];
    if (lanes == 1)
      return wide ? launch_reduce<T, 1, true>(desc, nests, x, output, stream)
                  : launch_reduce<T, 1, false>(desc, nests, x, output, stream);
    if (lanes == 32)
      return wide ? launch_reduce<T, 32, true>(desc, nests, x, output, stream)
                  : launch_reduce<T, 32, false>(desc, nests, x, output, stream);
    return wide ? launch_reduce<T, 256, true>(desc, nests, x, output, stream)
                : launch_reduce<T, 256, false>(desc, nests, x, output, stream);
  });
}

const KernelFamily cs_reduce_family = {reduce_variants, NULL, NULL, reduce_launch};
