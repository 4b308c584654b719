/* Blocks of a cluster (Hopper and newer), which read each other's shared memory. Elsewhere these do
 * nothing, and kernels that use them are not offered. */
#ifndef CONVSCHED_BACKEND_CUDA_CLUSTER_CUH_
#define CONVSCHED_BACKEND_CUDA_CLUSTER_CUH_

#include "backend/cuda/kernel_util.cuh"

/* All threads of the cluster (that have not ended) meet; what they wrote to shared memory before is
 * seen by all behind. */
__device__ __forceinline__ void cluster_meet() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
#endif
}

/* THREADS threads of this block, whole warps, meet; the others do not. */
template <int THREADS>
__device__ __forceinline__ void meet_in_block() {
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* Where in shared memory of block `rank` of the cluster lies what is at `at` in this one's. */
__device__ __forceinline__ uint32_t cluster_place(uint32_t at, int rank) {
  uint32_t there = at;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
#else
  (void)rank;
#endif
  return there;
}

/* V floats, 16-byte aligned where V is a multiple of 4. */
template <int V>
__device__ __forceinline__ void cluster_load(uint32_t from, float (&v)[V]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (V % 4 == 0) {
#pragma unroll
    for (int i = 0; i < V; i += 4)
      asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v[i]), "=f"(v[i + 1]), "=f"(v[i + 2]), "=f"(v[i + 3])
                   : "r"(from + 4 * i)
                   : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < V; i++)
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v[i]) : "r"(from + 4 * i) : "memory");
  }
#else
  (void)from, (void)v;
#endif
}

/* Whether the current device has clusters. */
inline bool device_has_clusters() {
  return device_capability() >= 90;
}

#endif
