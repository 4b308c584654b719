#include "backend/cuda/driver.h"

#include <stdio.h>
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

/* A driver without them still does all else. */
static void load_green(cs_cuda_driver *out) {
  const struct {
    const char *name;
    unsigned version;
    void *function;
  } wanted[] = {{"cuDeviceGet", 2000, &out->device_get},
                {"cuDeviceGetDevResource", 12040, &out->device_get_resource},
                {"cuDevSmResourceSplitByCount", 12040, &out->resource_split},
                {"cuDevResourceGenerateDesc", 12040, &out->resource_describe},
                {"cuGreenCtxCreate", 12040, &out->green_create},
                {"cuGreenCtxGetDevResource", 12040, &out->green_get_resource},
                {"cuGreenCtxStreamCreate", 12050, &out->green_stream_create},
                {"cuGreenCtxDestroy", 12040, &out->green_destroy}};
  const size_t n = sizeof(wanted) / sizeof(wanted[0]);
  cs_status st = CS_OK;
  for (size_t i = 0; i < n && st == CS_OK; i++) {
    st = load(wanted[i].name, wanted[i].version, wanted[i].function);
  }
  if (st == CS_OK) return;
  snprintf(out->no_green, sizeof(out->no_green), "%s", cs_status_message(st));
  cs_status_free(st);
  for (size_t i = 0; i < n; i++) memset(wanted[i].function, 0, sizeof(void *));
}

cs_status cs_cuda_driver_load(cs_cuda_driver *out) {
  memset(out, 0, sizeof(*out));
  CS_RETURN_IF_ERROR(load("cuGraphKernelNodeGetParams", 12000, &out->graph_kernel_node_get_params));
  CS_RETURN_IF_ERROR(
      load("cuGraphKernelNodeGetAttribute", 11080, &out->graph_kernel_node_get_attribute));
  CS_RETURN_IF_ERROR(
      load("cuGraphKernelNodeSetAttribute", 11080, &out->graph_kernel_node_set_attribute));
  CS_RETURN_IF_ERROR(load("cuKernelGetFunction", 12000, &out->kernel_get_function));
  CS_RETURN_IF_ERROR(load("cuFuncGetAttribute", 11000, &out->func_get_attribute));
  CS_RETURN_IF_ERROR(load("cuFuncGetName", 12030, &out->func_get_name));
  CS_RETURN_IF_ERROR(load("cuCtxGetCurrent", 4000, &out->ctx_get_current));
  CS_RETURN_IF_ERROR(load("cuOccupancyMaxActiveBlocksPerMultiprocessor", 11000, &out->occupancy));
  load_green(out);
  return CS_OK;
}
