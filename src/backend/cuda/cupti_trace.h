/* When the kernels of a schedule ran. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_TRACE_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_TRACE_H_

#include "backend/cuda/schedule.h"

/* The contract's member. Traces a run of the schedule as it is, a graph or stream calls. DEVICE:
 * other than as many kernels as the schedule has were traced. */
cs_status cs_schedule_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity,
                            int *count) CS_MUST_USE;

#endif
