/* Warpgroup products of Hopper (wgmma): four warps multiply tiles that lie in shared memory,
 * without waiting. Compiled for sm_90a only; elsewhere the kernels that use them are empty and not
 * offered. */
#ifndef CONVSCHED_BACKEND_CUDA_WGMMA_CUH_
#define CONVSCHED_BACKEND_CUDA_WGMMA_CUH_

#include "backend/cuda/kernel_util.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CS_WGMMA 1
#else
#define CS_WGMMA 0
#endif

constexpr int kStageRow = 128; /* bytes of the sum that a row has in shared memory */

/* Describes rows of 128 bytes of the sum, 8 rows to a group of 1024 bytes, 16-byte vectors swizzled
 * by the row (PTX ISA, "Matrix descriptor", 128-byte swizzle). `at`: shared memory, a multiple of
 * 1024 plus the 32-byte slice of the rows. The low half says where, in steps of 16 bytes; the high
 * half is the same for all, which sums of halves keep known to the compiler. */
__device__ __forceinline__ uint32_t matrix_low(uint32_t at) {
  return (at & 0x3ffffu) >> 4 | 1u << 16;
}
__device__ __forceinline__ uint64_t matrix_of(uint32_t low) {
  constexpr uint64_t kHigh = 1024 >> 4 | 1 << 30;
  return kHigh << 32 | low;
}

/* Where in packed operands byte `byte` of row `row` is, swizzled as matrix_low says; from rows that
 * are a multiple of 8 on. */
inline int64_t swizzled_at(int64_t row, int64_t byte) {
  return row * kStageRow + ((byte / 16) ^ (row % 8)) * 16 + byte % 16;
}

/* A warp's number, known to be the same for all of its threads: what is counted from it is then
 * held in the uniform registers that wgmma takes its operands from. */
__device__ __forceinline__ int uniform_warp() {
  return __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
}

/* What was written by ordinary stores and copies is there for wgmma too. */
__device__ __forceinline__ void fence_shared_for_wgmma() {
#if CS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
__device__ __forceinline__ void wgmma_begin() {
#if CS_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wgmma_commit() {
#if CS_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
#if CS_WGMMA
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
#endif
}

#define CS_SUM_4(i) "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
#define CS_SUM_16(i) CS_SUM_4(i), CS_SUM_4((i) + 1), CS_SUM_4((i) + 2), CS_SUM_4((i) + 3)
#define CS_SUM_32(i) CS_SUM_16(i), CS_SUM_16((i) + 4)
#define CS_SUM_48(i) CS_SUM_32(i), CS_SUM_16((i) + 8)
#define CS_SUM_64(i) CS_SUM_32(i), CS_SUM_32((i) + 8)
#define CS_SUM_96(i) CS_SUM_64(i), CS_SUM_32((i) + 16)
#define CS_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define CS_NAMES_32                                                                            \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CS_NAMES_48 \
  CS_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define CS_NAMES_64                                                                              \
  CS_NAMES_32                                                                                    \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CS_NAMES_96                                                                              \
  CS_NAMES_64                                                                                    \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

/* …: the sums. 16-bit operands may be transposed (here they are not), tf32 may not. */
#define CS_WGMMA_16(n, type, names, a_name, b_name, ...)                                      \
  asm volatile(                                                                               \
      "{.reg .pred p; setp.eq.u32 p, 0, 0;\n"                                                 \
      "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" names "}, " a_name \
      ", " b_name ", p, 1, 1, 0, 0;}"                                                         \
      : __VA_ARGS__                                                                           \
      : "l"(a), "l"(b))
#define CS_WGMMA_TF32(n, names, a_name, b_name, ...)                                             \
  asm volatile(                                                                                  \
      "{.reg .pred p; setp.eq.u32 p, 0, 0;\n"                                                    \
      "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" names "}, " a_name ", " b_name \
      ", p, 1, 1;}"                                                                              \
      : __VA_ARGS__                                                                              \
      : "l"(a), "l"(b))
#define CS_WGMMA_ANY(n, names, a_name, b_name, ...)               \
  do {                                                            \
    if constexpr (std::is_same_v<T, float>)                       \
      CS_WGMMA_TF32(n, names, a_name, b_name, __VA_ARGS__);       \
    else if constexpr (std::is_same_v<T, __half>)                 \
      CS_WGMMA_16(n, "f16", names, a_name, b_name, __VA_ARGS__);  \
    else                                                          \
      CS_WGMMA_16(n, "bf16", names, a_name, b_name, __VA_ARGS__); \
  } while (0)

/* sum[64 × N] += a[64 × 32 bytes] · b[N × 32 bytes]ᵀ, in the fragments of `sum` from FROM on.
 * Fragment j of a thread's sums are columns 8j, in the order of mma.sync; warp w of the four has
 * rows 16w. */
template <typename T, int N, int FROM = 0, int ALL>
__device__ __forceinline__ void wgmma(float (&sum)[ALL][4], uint64_t a, uint64_t b) {
#if CS_WGMMA
  if constexpr (N == 32)
    CS_WGMMA_ANY(32, CS_NAMES_16, "%16", "%17", CS_SUM_16(FROM));
  else if constexpr (N == 96)
    CS_WGMMA_ANY(96, CS_NAMES_48, "%48", "%49", CS_SUM_48(FROM));
  else if constexpr (N == 64)
    CS_WGMMA_ANY(64, CS_NAMES_32, "%32", "%33", CS_SUM_32(FROM));
  else if constexpr (N == 128)
    CS_WGMMA_ANY(128, CS_NAMES_64, "%64", "%65", CS_SUM_64(FROM));
  else
    CS_WGMMA_ANY(192, CS_NAMES_96, "%96", "%97", CS_SUM_96(FROM));
#else
  (void)sum, (void)a, (void)b;
#endif
  static_assert(FROM + N / 8 <= ALL, "inside of the sums");
  static_assert(N == 32 || N == 64 || N == 96 || N == 128 || N == 192, "a shape above");
}

#undef CS_SUM_4
#undef CS_SUM_16
#undef CS_SUM_32
#undef CS_SUM_48
#undef CS_SUM_64
#undef CS_SUM_96
#undef CS_NAMES_16
#undef CS_NAMES_32
#undef CS_NAMES_48
#undef CS_NAMES_64
#undef CS_NAMES_96
#undef CS_WGMMA_16
#undef CS_WGMMA_TF32
#undef CS_WGMMA_ANY

#endif
