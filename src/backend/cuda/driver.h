/* The CUDA driver functions that the runtime has no twin of, taken at run time so that the program
 * starts where there is no driver. */
#ifndef CONVSCHED_BACKEND_CUDA_DRIVER_H_
#define CONVSCHED_BACKEND_CUDA_DRIVER_H_

#include <cuda.h>

#include "base/base.h"

typedef struct cs_cuda_driver {
  CUresult(CUDAAPI *graph_kernel_node_get_params)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *);
  CUresult(CUDAAPI *graph_kernel_node_get_attribute)(CUgraphNode, CUlaunchAttributeID,
                                                     CUlaunchAttributeValue *);
  CUresult(CUDAAPI *kernel_get_function)(CUfunction *, CUkernel);
  CUresult(CUDAAPI *func_get_attribute)(int *, CUfunction_attribute, CUfunction);
  CUresult(CUDAAPI *func_get_name)(const char **, CUfunction);
  CUresult(CUDAAPI *ctx_get_current)(CUcontext *);
  CUresult(CUDAAPI *occupancy)(int *, CUfunction, int, size_t);
  CUresult(CUDAAPI *graph_kernel_node_set_attribute)(CUgraphNode, CUlaunchAttributeID,
                                                     const CUlaunchAttributeValue *);
  /* Green contexts; all of them or none (NULL), with what is missing in `no_green`. */
  CUresult(CUDAAPI *device_get)(CUdevice *, int);
  CUresult(CUDAAPI *device_get_resource)(CUdevice, CUdevResource *, CUdevResourceType);
  CUresult(CUDAAPI *resource_split)(CUdevResource *, unsigned *, const CUdevResource *,
                                    CUdevResource *, unsigned, unsigned);
  CUresult(CUDAAPI *resource_describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
  CUresult(CUDAAPI *green_create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
  CUresult(CUDAAPI *green_get_resource)(CUgreenCtx, CUdevResource *, CUdevResourceType);
  CUresult(CUDAAPI *green_stream_create)(CUstream *, CUgreenCtx, unsigned, int);
  CUresult(CUDAAPI *green_destroy)(CUgreenCtx);
  char no_green[160];
} cs_cuda_driver;

/* DEVICE error that names the function the driver lacks. */
cs_status cs_cuda_driver_load(cs_cuda_driver *out) CS_MUST_USE;

#endif
