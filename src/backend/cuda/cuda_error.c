#include "backend/cuda/cuda_error.h"

#include <stdio.h>

#define ACTION_SIZE 512

/* The caller's format and arguments as text in `action`. */
#define FORMAT_ACTION(action, format)                 \
  char action[ACTION_SIZE];                           \
  do {                                                \
    va_list args;                                     \
    va_start(args, format);                           \
    vsnprintf((action), ACTION_SIZE, (format), args); \
    va_end(args);                                     \
  } while (0)

cs_status cs_cuda_status(cudaError_t result, const char *format, ...) {
  if (result == cudaSuccess) return CS_OK;
  (void)cudaGetLastError();
  FORMAT_ACTION(action, format);
  return cs_error(result == cudaErrorMemoryAllocation ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE,
                  "%s failed: CUDA error %d (%s)", action, (int)result, cudaGetErrorString(result));
}

cs_status cs_cudnn_status(cudnnStatus_t result, const char *format, ...) {
  if (result == CUDNN_STATUS_SUCCESS) return CS_OK;
  bool memory = result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  FORMAT_ACTION(action, format);
  return cs_error(memory ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE, "%s failed: cuDNN error %d (%s)",
                  action, (int)result, cudnnGetErrorString(result));
}

cs_status cs_driver_status(int result, const char *format, ...) {
  if (result == 0) return CS_OK;
  FORMAT_ACTION(action, format);
  return cs_error(result == 2 ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE,
                  "%s failed: CUDA driver error %d", action, result);
}

bool cs_cudnn_unsupported(cudnnStatus_t result) {
  int category = (int)CUDNN_STATUS_CATEGORY(result);
  return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM ||
         result == CUDNN_STATUS_INTERNAL_ERROR ||
         result == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED ||
         result == CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE;
}
