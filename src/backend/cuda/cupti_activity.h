/* Kernels as they ran, from CUPTI's Activity API. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_ACTIVITY_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_ACTIVITY_H_

#include "backend/backend.h"
#include "backend/cuda/cupti_library.h"

typedef struct cs_activity_request {
  CUcontext context; /* kernels of other contexts are left out */
  /* But of a device that is split, whose parts are contexts of their own, with numbers that only
   * CUPTI knows: then kernels of all are kept, and a stream's number has its context's in it. */
  bool any_context;
  /* Called twice, the kernels of the second call are kept: the first one pays for what tracing sets
   * up. What it ran must have finished on the device when it returns. */
  cs_status (*work)(void *user);
  void *user;
} cs_activity_request;

typedef struct cs_activity_result {
  cs_kernel_trace *kernels; /* by start, then end; free() releases */
  int n;
  int untimed; /* kernels left out because their times were missing or inverted */
} cs_activity_result;

/* NOT_FOUND: traces are not to be had, the message says why. The caller holds CUPTI's lock. Nothing
 * is traced any more when it returns. */
cs_status cs_cupti_trace(const cs_cupti *cupti, const cs_activity_request *request,
                         cs_activity_result *out) CS_MUST_USE;

#endif
