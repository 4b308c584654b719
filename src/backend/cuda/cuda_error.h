/* CUDA runtime, driver and cuDNN results as statuses that say what was being done. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDA_ERROR_H_
#define CONVSCHED_BACKEND_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "base/base.h"

/* `format` says what was being done ("creating a stream"). Success gives CS_OK; out of memory gives
 * NO_MEMORY, all else DEVICE. The CUDA form also clears the thread's last error. */
cs_status cs_cuda_status(cudaError_t result, const char *format, ...) CS_PRINTF(2, 3) CS_MUST_USE;
cs_status cs_cudnn_status(cudnnStatus_t result, const char *format, ...)
    CS_PRINTF(2, 3) CS_MUST_USE;
/* A CUresult by value: 0 is success. */
cs_status cs_driver_status(int result, const char *format, ...) CS_PRINTF(2, 3) CS_MUST_USE;

/* True for results that mean "not for this problem on this device" and not a failure. */
bool cs_cudnn_unsupported(cudnnStatus_t result);

#endif
