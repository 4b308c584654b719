/* Bulk copies of Hopper (TMA) into shared memory, and the barriers they are waited for with. For
 * kernels of sm_90a (CS_WGMMA); elsewhere these do nothing. Addresses are of shared memory. */
#ifndef CONVSCHED_BACKEND_CUDA_TMA_CUH_
#define CONVSCHED_BACKEND_CUDA_TMA_CUH_

#include <cuda.h>

#include "backend/cuda/wgmma.cuh"

/* ---- Barriers of 8 bytes ---- */

__device__ __forceinline__ void barrier_create(uint32_t barrier, uint32_t arrivals) {
#if CS_WGMMA
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#endif
}
/* What barrier_create did is seen by bulk copies, and behind __syncthreads by all threads. */
__device__ __forceinline__ void barriers_created() {
#if CS_WGMMA
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
#if CS_WGMMA
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
}
/* Arrives, and `bytes` of copies are waited for besides. */
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
#if CS_WGMMA
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#endif
}
/* Until the phase of this parity (the first one's is 0) is over; of parity 1 before the first one:
 * at once. */
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
#if CS_WGMMA
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@over bra done;\n"
      "bra again;\n"
      "done:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#endif
}

/* ---- Copies, which the barrier is told of ---- */

/* 16-byte multiples, from a 16-byte aligned address. */
__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, uint32_t bytes,
                                          uint32_t barrier) {
#if CS_WGMMA
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#endif
}

/* Where a copy of pixels begins: channel, column and row (of the window's first tap), image. */
struct WindowAt {
  int32_t c, w, h, n;
};
/* The channels of a column of pixels as an im2col map says, moved by (right, down) to another tap;
 * zeros where that is outside. */
__device__ __forceinline__ void copy_window(uint32_t to, const CUtensorMap *map, WindowAt at,
                                            uint16_t right, uint16_t down, uint32_t barrier) {
#if CS_WGMMA
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
      "l"(map), "r"(barrier), "r"(at.c), "r"(at.w), "r"(at.h), "r"(at.n), "h"(right), "h"(down)
      : "memory");
#endif
}
/* The box of a tiled map from (c, w, h, n) on, zeros outside. */
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap *map, WindowAt at,
                                         uint32_t barrier) {
#if CS_WGMMA
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(at.c), "r"(at.w), "r"(at.h), "r"(at.n)
      : "memory");
#endif
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap *map) {
#if CS_WGMMA
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

#endif
