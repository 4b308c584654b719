#include "backend/cuda/driver.h"

#include <string.h>

#include "backend/cuda/cuda_error.h"

static cs_status load(const char *name, unsigned version, void *function_pointer) {
  void *symbol = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &symbol, version, cudaEnableDefault, &found);
  if (result != cudaSuccess) return cs_cuda_status(result, "looking up %s in the driver", name);
  if (found != cudaDriverEntryPointSuccess || !symbol) {
    return cs_error(CS_CODE_DEVICE, "the NVIDIA driver lacks %s of CUDA %u.%u: update the driver",
                    name, version / 1000, version % 1000 / 10);
  }
  memcpy(function_pointer, &symbol, sizeof(symbol));
  return CS_OK;
}

cs_status cs_cuda_driver_load(cs_cuda_driver *out) {
  memset(out, 0, sizeof(*out));
  CS_RETURN_IF_ERROR(load("cuGraphKernelNodeGetParams", 12000, &out->graph_kernel_node_get_params));
  CS_RETURN_IF_ERROR(
      load("cuGraphKernelNodeGetAttribute", 11080, &out->graph_kernel_node_get_attribute));
  CS_RETURN_IF_ERROR(load("cuKernelGetFunction", 12000, &out->kernel_get_function));
  CS_RETURN_IF_ERROR(load("cuFuncGetAttribute", 11000, &out->func_get_attribute));
  CS_RETURN_IF_ERROR(load("cuFuncGetName", 12030, &out->func_get_name));
  CS_RETURN_IF_ERROR(load("cuCtxGetCurrent", 4000, &out->ctx_get_current));
  return load("cuOccupancyMaxActiveBlocksPerMultiprocessor", 11000, &out->occupancy);
}
