/* What kernels of the copy engine and wgmma need on the host: whether the device has them,
 * functions of the driver, and what maps tell the copy engine (tma.cuh) of a tensor in NHWC. */
#ifndef CONVSCHED_BACKEND_CUDA_TENSOR_MAP_CUH_
#define CONVSCHED_BACKEND_CUDA_TENSOR_MAP_CUH_

#include <cuda.h>

#include "backend/cuda/kernel_util.cuh"

/* Everything here is the including file's own. */
namespace {

/* wgmma was compiled in, and the current device has it: sm_90a is for compute capability 9.0. */
inline bool device_has_wgmma() {
#if CS_CUDA_SM90A
  return device_capability() == 90;
#else
  return false;
#endif
}

/* A function of the driver since CUDA 12.0; NULL: it has none of this name. */
template <typename FUNCTION>
inline FUNCTION driver_function(const char *name) {
  void *symbol = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &symbol, 12000, cudaEnableDefault, &result);
  if (error != cudaSuccess) (void)cudaGetLastError();
  bool there = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
  return there ? reinterpret_cast<FUNCTION>(symbol) : nullptr;
}

inline CUtensorMapDataType map_type_of(cs_dtype dtype) {
  switch (dtype) {
    case CS_DTYPE_F16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case CS_DTYPE_BF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; /* rounds */
  }
}

/* Extents of channels, columns, rows and images; bytes from one to the next, but of channels. */
struct MapView {
  cuuint64_t dims[4], strides[3];
};
inline MapView map_view_of(const View &in, int64_t size) {
  MapView out = {
      {(cuuint64_t)in.dim[1], (cuuint64_t)in.dim[3], (cuuint64_t)in.dim[2], (cuuint64_t)in.dim[0]},
      {}};
  for (int i = 0; i < 3; i++) { /* of an axis of extent 1 it says nothing, but must be a multiple */
    int64_t stride = in.stride[i < 2 ? 3 - i : 0] * size;
    out.strides[i] = (cuuint64_t)cs_round_up(cs_max_i64(stride, 1), 16);
  }
  return out;
}

}  // namespace

#endif
