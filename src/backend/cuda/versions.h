/* Versions of driver, runtime and cuDNN, as text. None of these needs a device. */
#ifndef CONVSCHED_BACKEND_CUDA_VERSIONS_H_
#define CONVSCHED_BACKEND_CUDA_VERSIONS_H_

#include "backend/cuda/cuda_error.h"

#define CS_VERSION_TEXT 32

/* The kernel driver's own version ("580.65.06"); "" where there is none to be found. */
void cs_cuda_driver_version(char out[CS_VERSION_TEXT]);
/* The newest CUDA that the driver supports ("13.0"); "" without a driver. */
void cs_cuda_driver_api_version(char out[CS_VERSION_TEXT]);
void cs_cuda_runtime_version(char out[CS_VERSION_TEXT]);
/* cuDNN as it runs, and as built against. */
void cs_cudnn_running_version(char out[CS_VERSION_TEXT]);
void cs_cudnn_built_version(char out[CS_VERSION_TEXT]);
/* DEVICE unless the running cuDNN has the built one's major version. */
cs_status cs_cudnn_check_version(void) CS_MUST_USE;

/* Devices that can be used now; 0 with a status that says why and what to do. */
cs_status cs_cuda_device_count(int *count) CS_MUST_USE;

#endif
