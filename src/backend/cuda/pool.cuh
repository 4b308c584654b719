/* What MaxPool's and AveragePool's kernels share: their parameters, and how a window's inputs are
 * joined. */
#ifndef CONVSCHED_BACKEND_CUDA_POOL_CUH_
#define CONVSCHED_BACKEND_CUDA_POOL_CUH_

#include "backend/cuda/positions.cuh"

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

/* A thread for each `width` channels of an output pixel. */
template <bool WIDE>
inline PoolParams<WIDE> pool_params(const cs_op_desc *desc, bool nhwc, int width, const void *x,
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

/* The kernel's size where kernels are made for it: square, undilated, and an input in every window
 * (which lets maxima take an input for its neighbour outside). Else 0. */
inline int fixed_kernel(const cs_op_desc *desc) {
  const cs_pool_attrs *pool = &desc->attrs.pool;
  for (int axis = 0; axis < 2; axis++) {
    int64_t last = (desc->output.shape.dims[2 + axis] - 1) * pool->strides[axis] - pool->pads[axis];
    if (pool->pads[axis] >= pool->kernel[axis] || last >= desc->inputs[0].shape.dims[2 + axis])
      return 0;
  }
  bool square =
      pool->kernel[0] == pool->kernel[1] && pool->dilations[0] == 1 && pool->dilations[1] == 1;
  return square && (pool->kernel[0] == 2 || pool->kernel[0] == 3) ? (int)pool->kernel[0] : 0;
}

/* How many of K positions count in an average. */
template <int K>
__device__ __forceinline__ int counted(int32_t start, int32_t extent, int32_t padded,
                                       bool include_pad) {
  int32_t first = include_pad ? start : max(start, 0);
  return max(min(start + K, include_pad ? padded : extent) - first, 0);
}

/* ---- Joining the inputs of a window, V channels at a time ---- */

/* The larger one; NaN if either is. */
__device__ __forceinline__ float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
/* The same for each element of a word of T. */
template <typename T>
__device__ __forceinline__ uint32_t larger_each(uint32_t a, uint32_t b) {
  if constexpr (std::is_same<T, float>::value) {
    return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b)));
  } else {
    using Pair =
        typename std::conditional<std::is_same<T, __half>::value, __half2, __nv_bfloat162>::type;
    Pair result =
        __hmax2_nan(*reinterpret_cast<const Pair *>(&a), *reinterpret_cast<const Pair *>(&b));
    return *reinterpret_cast<const uint32_t *>(&result);
  }
}

/* A maximum rounds nothing, so whole words are compared as they are stored. An input outside is
 * read all the same: it stands for one of the window's. */
template <typename T, int V>
struct Maxima {
  static constexpr int kSize = V * (int)sizeof(T) / 4;
  using Value = uint32_t;

  static __device__ __forceinline__ Value none() { /* minus infinity */
    return std::is_same<T, float>::value    ? 0xff800000u
           : std::is_same<T, __half>::value ? 0xfc00fc00u
                                            : 0xff80ff80u;
  }
  static __device__ __forceinline__ void load(bool, const T *from, Value (&tap)[kSize]) {
    load_words(from, tap);
  }
  static __device__ __forceinline__ void join(const Value (&tap)[kSize], Value (&sum)[kSize]) {
#pragma unroll
    for (int i = 0; i < kSize; i++) sum[i] = larger_each<T>(sum[i], tap[i]);
  }
  static __device__ __forceinline__ void activate(const Activation &act, Value (&sum)[kSize]) {
    if (act.kind == CS_ACT_NONE) return;
    float values[V];
    unpack_words<T, V>(sum, values);
    ::activate<V>(act, values);
    pack_words<T, V>(values, sum);
  }
  static __device__ __forceinline__ void store(T *to, const Value (&sum)[kSize]) {
    store_words(to, sum);
  }
};

/* Sums, in which an input outside is zero; and maxima of single channels. */
template <typename T, int V, PoolKind KIND>
struct Floats {
  static_assert(KIND == POOL_AVERAGE || V == 1, "Maxima does these");
  static constexpr int kSize = V;
  using Value = float;

  static __device__ __forceinline__ Value none() { return KIND == POOL_MAX ? -INFINITY : 0.f; }
  static __device__ __forceinline__ void load(bool inside, const T *from, Value (&tap)[V]) {
    if constexpr (V == 1) {
      tap[0] = KIND == POOL_MAX || inside ? Convert<T>::from(*from) : 0.f;
    } else {
      uint32_t words[V * (int)sizeof(T) / 4] = {}; /* zeros in every type */
      if (inside) load_words(from, words);
      unpack_words<T, V>(words, tap);
    }
  }
  static __device__ __forceinline__ void join(const Value (&tap)[V], Value (&sum)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++)
      sum[i] = KIND == POOL_MAX ? larger(sum[i], tap[i]) : sum[i] + tap[i];
  }
  static __device__ __forceinline__ void activate(const Activation &act, Value (&sum)[V]) {
    ::activate<V>(act, sum);
  }
  static __device__ __forceinline__ void store(T *to, const Value (&sum)[V]) {
    store_vector<T, V>(to, sum);
  }
};

template <typename T, int V, PoolKind KIND>
using Joining =
    typename std::conditional<KIND == POOL_MAX && (V > 1), Maxima<T, V>, Floats<T, V, KIND>>::type;

template <typename J>
__device__ __forceinline__ void copy_values(const typename J::Value (&from)[J::kSize],
                                            typename J::Value (&to)[J::kSize]) {
#pragma unroll
  for (int i = 0; i < J::kSize; i++) to[i] = from[i];
}

/* Sums to averages over `count` inputs: NaN for a window without any. */
template <int V>
__device__ __forceinline__ void divide_sums(int count, float (&sum)[V]) {
  float scale = 1.f / (float)count;
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] *= scale;
}

#endif
