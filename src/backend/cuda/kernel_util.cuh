/* What every kernel file shares: index arithmetic, vector loads and stores with f32 arithmetic,
 * activations, and the launch itself. Kernels take one parameter struct by value. */
#ifndef CONVSCHED_BACKEND_CUDA_KERNEL_UTIL_CUH_
#define CONVSCHED_BACKEND_CUDA_KERNEL_UTIL_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <type_traits>

extern "C" {
#include "base/base.h"
#include "graph/op.h"
}
#include "backend/cuda/kernels.h"

/* ---- Index arithmetic ---- */

/* Division by a constant of the launch: exact for 0 <= n < 2^31 (Granlund and Montgomery, 1994). */
struct FastDiv {
  uint32_t divisor, multiplier, shift;
};
struct PlainDiv {
  int64_t divisor;
};

inline void set_divisor(FastDiv *div, int64_t divisor) {
  uint32_t shift = 0;
  while ((INT64_C(1) << shift) < divisor) shift++;
  uint64_t excess = (UINT64_C(1) << shift) - (uint64_t)divisor;
  div->divisor = (uint32_t)divisor;
  div->multiplier = (uint32_t)((excess << 32) / (uint64_t)divisor + 1);
  div->shift = shift;
}
inline void set_divisor(PlainDiv *div, int64_t divisor) {
  div->divisor = divisor;
}
__host__ __device__ __forceinline__ int32_t divide(int32_t n, const FastDiv &div, int32_t *rest) {
  uint32_t high = (uint32_t)(((uint64_t)(uint32_t)n * div.multiplier) >> 32);
  uint32_t quotient = (high + (uint32_t)n) >> div.shift;
  *rest = (int32_t)((uint32_t)n - quotient * div.divisor);
  return (int32_t)quotient;
}
__host__ __device__ __forceinline__ int64_t divide(int64_t n, const PlainDiv &div, int64_t *rest) {
  int64_t quotient = n / div.divisor;
  *rest = n - quotient * div.divisor;
  return quotient;
}

/* Narrow: every offset and count is below 2^31, with room for the idle threads of a last block. */
constexpr int64_t kNarrowLimit = INT32_MAX - 4096;
template <bool WIDE>
struct Index {
  using type = int32_t;
  using Div = FastDiv;
};
template <>
struct Index<true> {
  using type = int64_t;
  using Div = PlainDiv;
};

/* Strides of a rank-4 view, in elements. */
template <bool WIDE>
struct Strides {
  typename Index<WIDE>::type n, c, h, w;
};
template <bool WIDE>
inline Strides<WIDE> strides_of(const int64_t *stride) {
  using I = typename Index<WIDE>::type;
  return {(I)stride[0], (I)stride[1], (I)stride[2], (I)stride[3]};
}

template <typename I>
__device__ __forceinline__ I thread_index() {
  return (I)blockIdx.x * (I)blockDim.x + (I)threadIdx.x;
}

/* ---- Beginning early (programmatic dependent launch) ----
 * A kernel may be launched while what it waits for still runs. In every kernel of an operation each
 * thread that accesses memory which other kernels write or read, or has it copied, calls one of
 * these before: what it writes may still be read by those before, too. */

/* Until everything that this kernel waits for has ended, and is seen. */
__device__ __forceinline__ void await_inputs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* What waits for this kernel may be launched where its blocks leave room: when all of them have
 * called this. Behind await_inputs(), so that no more than one kernel of a chain waits on the SMs.
 */
__device__ __forceinline__ void release_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void begin_kernel() {
  await_inputs();
  release_dependents();
}

/* ---- Vectors: V elements of T as floats ---- */

template <typename T>
struct Convert;
template <>
struct Convert<float> {
  static __device__ __forceinline__ float from(float v) { return v; }
  static __device__ __forceinline__ float to(float v) { return v; }
};
template <>
struct Convert<__half> {
  static __device__ __forceinline__ float from(__half v) { return __half2float(v); }
  static __device__ __forceinline__ __half to(float v) { return __float2half_rn(v); }
  static __device__ __forceinline__ float2 from2(uint32_t bits) {
    return __half22float2(*reinterpret_cast<const __half2 *>(&bits));
  }
  static __device__ __forceinline__ uint32_t to2(float a, float b) {
    __half2 pair = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&pair);
  }
};
template <>
struct Convert<__nv_bfloat16> {
  static __device__ __forceinline__ float from(__nv_bfloat16 v) { return __bfloat162float(v); }
  static __device__ __forceinline__ __nv_bfloat16 to(float v) { return __float2bfloat16_rn(v); }
  static __device__ __forceinline__ float2 from2(uint32_t bits) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(&bits));
  }
  static __device__ __forceinline__ uint32_t to2(float a, float b) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&pair);
  }
};

/* Elements of a 16-byte vector. */
template <typename T>
constexpr int kVector = 16 / (int)sizeof(T);

/* WORDS 32-bit words from or to memory, in the widest accesses that divide their size. */
template <int WORDS>
__device__ __forceinline__ void load_words(const void *from, uint32_t (&words)[WORDS]) {
  if constexpr (WORDS % 4 == 0) {
#pragma unroll
    for (int i = 0; i < WORDS / 4; i++) {
      uint4 v = static_cast<const uint4 *>(from)[i];
      words[4 * i] = v.x, words[4 * i + 1] = v.y, words[4 * i + 2] = v.z, words[4 * i + 3] = v.w;
    }
  } else if constexpr (WORDS == 2) {
    uint2 v = *static_cast<const uint2 *>(from);
    words[0] = v.x, words[1] = v.y;
  } else {
    static_assert(WORDS == 1, "vectors are 4, 8 or a multiple of 16 bytes");
    words[0] = *static_cast<const uint32_t *>(from);
  }
}
template <int WORDS>
__device__ __forceinline__ void store_words(void *to, const uint32_t (&words)[WORDS]) {
  if constexpr (WORDS % 4 == 0) {
#pragma unroll
    for (int i = 0; i < WORDS / 4; i++)
      static_cast<uint4 *>(to)[i] =
          make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
  } else if constexpr (WORDS == 2) {
    *static_cast<uint2 *>(to) = make_uint2(words[0], words[1]);
  } else {
    static_assert(WORDS == 1, "vectors are 4, 8 or a multiple of 16 bytes");
    *static_cast<uint32_t *>(to) = words[0];
  }
}

/* V elements as they lie in memory, from and to floats. */
template <typename T, int V>
__device__ __forceinline__ void unpack_words(const uint32_t (&words)[V * (int)sizeof(T) / 4],
                                             float (&values)[V]) {
#pragma unroll
  for (int i = 0; i < V * (int)sizeof(T) / 4; i++) {
    if constexpr (sizeof(T) == 4) {
      values[i] = __uint_as_float(words[i]);
    } else {
      float2 pair = Convert<T>::from2(words[i]);
      values[2 * i] = pair.x, values[2 * i + 1] = pair.y;
    }
  }
}
template <typename T, int V>
__device__ __forceinline__ void pack_words(const float (&values)[V],
                                           uint32_t (&words)[V * (int)sizeof(T) / 4]) {
#pragma unroll
  for (int i = 0; i < V * (int)sizeof(T) / 4; i++) {
    if constexpr (sizeof(T) == 4)
      words[i] = __float_as_uint(values[i]);
    else
      words[i] = Convert<T>::to2(values[2 * i], values[2 * i + 1]);
  }
}

template <typename T, int V>
__device__ __forceinline__ void load_vector(const T *from, float (&values)[V]) {
  if constexpr (V == 1) {
    values[0] = Convert<T>::from(*from);
  } else {
    uint32_t words[V * (int)sizeof(T) / 4];
    load_words(from, words);
    unpack_words<T, V>(words, values);
  }
}
template <typename T, int V>
__device__ __forceinline__ void store_vector(T *to, const float (&values)[V]) {
  if constexpr (V == 1) {
    *to = Convert<T>::to(values[0]);
  } else {
    uint32_t words[V * (int)sizeof(T) / 4];
    pack_words<T, V>(values, words);
    store_words(to, words);
  }
}

/* ---- Activations; NaN stays NaN ---- */

struct Activation {
  int kind; /* cs_act_kind */
  float alpha, beta;
};
inline Activation activation_of(const cs_activation &act) {
  return {(int)act.kind, (float)act.alpha, (float)act.beta};
}

__device__ __forceinline__ float cut_to_one(float v) {
  float low = v < 0.f ? 0.f : v;
  return low > 1.f ? 1.f : low;
}

/* Those that may be fused behind an operation (cs_act_fuses); elementwise.cu has the others. */
template <int V>
__device__ __forceinline__ void activate(const Activation &act, float (&v)[V]) {
  switch (act.kind) {
    case CS_ACT_RELU:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = v[i] < 0.f ? 0.f : v[i];
      break;
    case CS_ACT_LEAKY_RELU:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = v[i] < 0.f ? act.alpha * v[i] : v[i];
      break;
    case CS_ACT_CLIP:
#pragma unroll
      for (int i = 0; i < V; i++) {
        float low = v[i] < act.alpha ? act.alpha : v[i];
        v[i] = low > act.beta ? act.beta : low;
      }
      break;
    case CS_ACT_SIGMOID:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = 1.f / (1.f + expf(-v[i]));
      break;
    case CS_ACT_TANH:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = tanhf(v[i]);
      break;
    case CS_ACT_ELU:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = v[i] < 0.f ? act.alpha * expm1f(v[i]) : v[i];
      break;
    case CS_ACT_HARD_SIGMOID:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = cut_to_one(act.alpha * v[i] + act.beta);
      break;
    case CS_ACT_HARD_SWISH:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] *= cut_to_one(fmaf(v[i], 1.f / 6.f, 0.5f));
      break;
    case CS_ACT_SWISH:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = v[i] / (1.f + expf(-act.alpha * v[i]));
      break;
    default:
      break;
  }
}

/* ---- Warp and block reductions ---- */

/* Scale and shift of each channel in f32: what BatchNormalization and InstanceNormalization pack.
 */
int64_t channel_weight_bytes(const cs_op_desc *desc);
cs_status channel_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                       void *host_out);

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  return v;
}

/* ---- Descriptors on the host ---- */

/* A tensor of rank <= 4 as rank 4, ones appended (stride 0). */
struct View {
  int64_t dim[4], stride[4];
};
View view_of(const cs_tensor_desc *desc);
int64_t view_elements(const View &view);
/* Offset of the last element. */
int64_t view_last(const View &view);
inline bool fits_narrow(const View &view) {
  return view_last(view) < kNarrowLimit && view_elements(view) < kNarrowLimit;
}
/* Channels adjacent, and every other stride and the address a multiple of V elements. */
bool channels_vectorise(const cs_tensor_desc *desc, int width);
/* All inputs and the output: rank <= 4, NCHW or NHWC, positive strides; equal dtypes unless Copy.
 */
bool plain_tensors(const cs_op_desc *desc);

/* Of the current device, 90 for 9.0; 0: there is none. */
int device_capability();

/* ---- Launch ---- */

/* A block size that spreads `threads` over the device: 256 down to 64. */
unsigned block_size(int64_t threads);
cs_status launch_error(const char *name, cudaError_t error);

template <typename Params>
inline cs_status launch_kernel(const char *name, void (*kernel)(Params), dim3 grid, dim3 block,
                               Params params, cudaStream_t stream) {
  void *args[] = {&params};
  cudaError_t error = cudaLaunchKernel(kernel, grid, block, args, 0, stream);
  return error == cudaSuccess ? CS_OK : launch_error(name, error);
}
/* The same with `shared` bytes of dynamic shared memory, and in clusters of so many blocks. `most`:
 * what any launch of this kernel may have, as the limit is the kernel's and not the launch's. */
template <typename Params>
inline cs_status launch_kernel_shared(const char *name, void (*kernel)(Params), dim3 grid,
                                      dim3 block, const Params &params, size_t shared, int most,
                                      cudaStream_t stream, unsigned cluster = 1) {
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (error != cudaSuccess) return launch_error(name, error);
  void *args[] = {const_cast<Params *>(&params)};
  cudaLaunchAttribute clustered = {};
  clustered.id = cudaLaunchAttributeClusterDimension;
  clustered.val.clusterDim.x = cluster, clustered.val.clusterDim.y = clustered.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid, config.blockDim = block;
  config.dynamicSmemBytes = shared, config.stream = stream;
  config.attrs = &clustered, config.numAttrs = cluster > 1;
  error = cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), args);
  return error == cudaSuccess ? CS_OK : launch_error(name, error);
}
/* One thread for each of `threads`. */
template <typename Params>
inline cs_status launch_linear(const char *name, void (*kernel)(Params), int64_t threads,
                               const Params &params, cudaStream_t stream) {
  if (threads == 0) return CS_OK;
  unsigned block = block_size(threads);
  int64_t blocks = (threads + block - 1) / block;
  if (blocks > INT32_MAX)
    return cs_error(CS_CODE_BAD_INPUT, "kernel %s: %lld threads; at most 2^31 blocks of %u fit",
                    name, (long long)threads, block);
  return launch_kernel(name, kernel, dim3((unsigned)blocks), dim3(block), params, stream);
}

/* Calls f with a value of the storage type. */
template <typename F>
inline cs_status by_dtype(cs_dtype dtype, F f) {
  switch (dtype) {
    case CS_DTYPE_F16:
      return f(__half());
    case CS_DTYPE_BF16:
      return f(__nv_bfloat16());
    default:
      return f(float());
  }
}

/* ---- Weights: `elements` of the storage type, then f32 bias, each part 256-aligned ---- */

inline int64_t weight_part_bytes(int64_t bytes) {
  return cs_round_up(bytes, 256);
}
/* Rounds one f32 to the storage type at element `index`. */
void put_rounded(cs_dtype dtype, void *to, int64_t index, float value);

/* ---- Families (one .cu each) ---- */

struct KernelFamily {
  /* Writes up to capacity ids and returns how many there are. */
  int (*variants)(const cs_op_desc *desc, const char **ids, int capacity);
  int64_t (*weight_bytes)(const cs_op_desc *desc); /* NULL: none */
  cs_status (*pack)(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out);
  cs_status (*launch)(const cs_op_desc *desc, const char *id, const void *const *inputs,
                      const void *weights, void *output, cudaStream_t stream);
  /* Both NULL: no variant takes several operations in one launch. */
  bool (*merges)(const char *id);
  /* Of one dtype, 1 to CS_CUDA_MERGE_MOST, of a variant that merges. */
  cs_status (*launch_merged)(const cs_cuda_merge_part *parts, int n, const char *id,
                             cudaStream_t stream);
};
extern const KernelFamily cs_pool_family, cs_pool_strip_family, cs_depthwise_strip_family,
    cs_global_pool_family, cs_lrn_family, cs_softmax_family, cs_batch_norm_family,
    cs_elementwise_family, cs_copy_family, cs_pad_family, cs_gemm_family, cs_conv_family,
    cs_mma_family, cs_tma_family, cs_few_family, cs_reduce_family, cs_instance_norm_family,
    cs_mma_transposed_family, cs_tma_transposed_family, cs_stationary_transposed_family,
    cs_gemm_transposed_family, cs_few_transposed_family, cs_mma_pixel_family, cs_tma_pixel_family,
    cs_move_family, cs_resize_family, cs_matmul_family;
/* Baselines. */
extern const KernelFamily cs_gemm_ladder_family, cs_gemm_mma_family, cs_gemm_tma_family;

/* The operators of one number, and the binary ones. */
bool cs_elementwise_takes(cs_op op);

/* Appends an id while there is room; counts always. */
inline void add_variant(const char **ids, int capacity, int *count, const char *id) {
  if (*count < capacity) ids[*count] = id;
  ++*count;
}

#endif
