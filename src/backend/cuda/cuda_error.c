#include "backend/cuda/cuda_error.h"

#include <stdio.h>

static cs_status make_status(cs_code code, const char *format, va_list args, const char *library,
                             int number, const char *text) {
  char action[512];
  vsnprintf(action, sizeof(action), format, args);
  return cs_error(code, "%s failed: %s error %d (%s)", action, library, number, text);
}

cs_status cs_cuda_status(cudaError_t result, const char *format, ...) {
  if (result == cudaSuccess) return CS_OK;
  (void)cudaGetLastError();
  va_list args;
  va_start(args, format);
  cs_status st =
      make_status(result == cudaErrorMemoryAllocation ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE, format,
                  args, "CUDA", (int)result, cudaGetErrorString(result));
  va_end(args);
  return st;
}

cs_status cs_cudnn_status(cudnnStatus_t result, const char *format, ...) {
  if (result == CUDNN_STATUS_SUCCESS) return CS_OK;
  bool memory = result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  va_list args;
  va_start(args, format);
  cs_status st = make_status(memory ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE, format, args, "cuDNN",
                             (int)result, cudnnGetErrorString(result));
  va_end(args);
  return st;
}

cs_status cs_driver_status(int result, const char *format, ...) {
  if (result == 0) return CS_OK;
  va_list args;
  va_start(args, format);
  cs_status st = make_status(result == 2 ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE, format, args,
                             "CUDA driver", result, "see CUresult in cuda.h");
  va_end(args);
  return st;
}

bool cs_cudnn_unsupported(cudnnStatus_t result) {
  int category = (int)CUDNN_STATUS_CATEGORY(result);
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM ||
         result == CUDNN_STATUS_INTERNAL_ERROR ||
         result == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED ||
         result == CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE;
}
