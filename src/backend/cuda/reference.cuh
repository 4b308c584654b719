/* What the kernels of the double reference share: tensors as they lie in memory read as doubles,
 * and the sums of an error over a block. */
#ifndef CONVSCHED_BACKEND_CUDA_REFERENCE_CUH_
#define CONVSCHED_BACKEND_CUDA_REFERENCE_CUH_

#include "backend/cuda/kernel_util.cuh"

struct RefTensor {
  const void *data;
  int64_t dim[4], stride[4];
  int dtype;
};

inline RefTensor ref_tensor(const cs_tensor_desc *desc, const void *data) {
  View view = view_of(desc);
  RefTensor tensor = {};
  tensor.data = data;
  tensor.dtype = (int)desc->dtype;
  memcpy(tensor.dim, view.dim, sizeof view.dim);
  memcpy(tensor.stride, view.stride, sizeof view.stride);
  return tensor;
}

__device__ __forceinline__ double ref_load(const RefTensor &t, int64_t n, int64_t c, int64_t h,
                                           int64_t w) {
  int64_t at = n * t.stride[0] + c * t.stride[1] + h * t.stride[2] + w * t.stride[3];
  if (t.dtype == CS_DTYPE_F16) return (double)__half2float(static_cast<const __half *>(t.data)[at]);
  if (t.dtype == CS_DTYPE_BF16)
    return (double)__bfloat162float(static_cast<const __nv_bfloat16 *>(t.data)[at]);
  return (double)static_cast<const float *>(t.data)[at];
}

/* The place of a row-major index. */
__device__ __forceinline__ void ref_place(const int64_t (&dim)[4], int64_t index,
                                          int64_t (&at)[4]) {
#pragma unroll
  for (int axis = 3; axis >= 0; axis--) {
    at[axis] = index % dim[axis];
    index /= dim[axis];
  }
}

/* The sums of a warp in its first lane. */
__device__ __forceinline__ void warp_errors(cs_error_sums *sums) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    cs_error_sums other;
    other.squares = __shfl_down_sync(0xffffffffu, sums->squares, lane);
    other.reference = __shfl_down_sync(0xffffffffu, sums->reference, lane);
    other.max_scaled = __shfl_down_sync(0xffffffffu, sums->max_scaled, lane);
    other.finite = __shfl_down_sync(0xffffffffu, (int)sums->finite, lane) != 0;
    cs_error_merge(sums, &other);
  }
}

/* The sums of a block of block_size() threads, all of which call it once, in thread 0. Merged in
 * one order, so the same bits every time. */
__device__ __forceinline__ void block_errors(cs_error_sums *sums) {
  constexpr int kMostWarps = 8;
  __shared__ cs_error_sums warps[kMostWarps];
  __syncwarp();
  warp_errors(sums);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = *sums;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < (int)blockDim.x / 32; warp++) cs_error_merge(sums, &warps[warp]);
}

#endif
