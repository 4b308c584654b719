/* Where the inputs of a window lie along an axis, for pools and depthwise convolutions. */
#ifndef CONVSCHED_BACKEND_CUDA_POSITIONS_CUH_
#define CONVSCHED_BACKEND_CUDA_POSITIONS_CUH_

#include "backend/cuda/kernel_util.cuh"

/* N positions along an axis: their offsets in elements, and which lie inside. One outside has the
 * offset of the nearest inside, which the same window holds. */
template <int N>
struct Positions {
  int32_t offset[N];
  bool inside[N];
};
template <int N>
__device__ __forceinline__ Positions<N> positions_from(int32_t start, int32_t extent,
                                                       int32_t stride) {
  Positions<N> positions;
#pragma unroll
  for (int i = 0; i < N; i++) {
    int32_t nearest = min(max(start + i, 0), extent - 1);
    positions.inside[i] = nearest == start + i;
    positions.offset[i] = nearest * stride;
  }
  return positions;
}

#endif
