/* What kernels on the tensor cores share: asynchronous copies into shared memory, matrix fragments
 * and their product, rounding to tf32. */
#ifndef CONVSCHED_BACKEND_CUDA_TENSOR_CORE_CUH_
#define CONVSCHED_BACKEND_CUDA_TENSOR_CORE_CUH_

#include "backend/cuda/kernel_util.cuh"

/* 16 bytes, or zeros where `there` is nothing: then `from` is not read, and may lie anywhere. */
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0));
}
__device__ __forceinline__ void commit_async() {
  asm volatile("cp.async.commit_group;");
}
template <int PENDING>
__device__ __forceinline__ void wait_async() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

/* sum[16 × 8] += a[16 × 32 bytes] · b[32 bytes × 8] */
template <typename T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  if constexpr (std::is_same_v<T, float>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/* The tensor cores cut f32 to tf32; rounding comes first. Weights are rounded when packed. */
template <typename T, int N>
__device__ __forceinline__ void round_operand(uint32_t (&a)[N]) {
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; i++)
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[i]) : "f"(__uint_as_float(a[i])));
  }
}

/* The larger of two pairs, element by element; NaN stays NaN. */
template <typename T>
__device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b) {
  uint32_t y;
  if constexpr (std::is_same_v<T, __half>)
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  else
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

/* Where column pairs of fragments go: filters are packed in such an order that columns 2 ·
 * lane_of_4 and the next of fragment j are filters fragment_filter() and the next, which puts what
 * a lane has of neighbouring fragments into 16-byte vectors, and the vectors of four lanes side by
 * side. */
template <typename T>
__host__ __device__ __forceinline__ constexpr int fragment_filter(int j, int lane_of_4) {
  constexpr int V = kVector<T>;
  return j / (V / 2) * 4 * V + lane_of_4 * V + j % (V / 2) * 2;
}

/* What most activations are: a factor for what is below zero. NaN stays NaN. */
struct Slope {
  bool any;    /* the activation is one of these */
  float slope; /* 1: there is none */
  bool zero;   /* not by a product, which would make NaN of an infinity */
  __host__ __device__ __forceinline__ float of(float v) const {
    float below = zero ? 0.f : slope * v;
    return v < 0.f ? below : v;
  }
};
__host__ __device__ __forceinline__ Slope slope_of(const Activation &act) {
  bool relu = act.kind == CS_ACT_RELU, leaky = act.kind == CS_ACT_LEAKY_RELU;
  return {relu || leaky || act.kind == CS_ACT_NONE, leaky ? act.alpha : 1.f, relu};
}
/* Any activation, called: for code that is unrolled over many sums. */
inline __device__ __noinline__ float activated(const Activation &act, float value) {
  float v[1] = {value};
  activate<1>(act, v);
  return v[0];
}

/* To the nearest tf32, ties away from zero, as cvt.rna does; infinities and NaN stay. */
inline float round_tf32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

#endif
