/* Performance counters of schedules. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_COUNTERS_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_COUNTERS_H_

#include "backend/cuda/schedule.h"

/* The contract's members. Kernels are counted one after the other, as stream calls on one stream; a
 * whole run is counted as the schedule runs, as a graph or as stream calls. */
cs_status cs_schedule_counters(cs_schedule *schedule, cs_kernel_counts *out, int capacity,
                               int *count) CS_MUST_USE;
cs_status cs_schedule_counters_whole(cs_schedule *schedule, cs_counters *out) CS_MUST_USE;

/* The kernels of a schedule in the order in which its launches are issued; free() releases.
 * NULL where there are none. */
cs_status cs_schedule_kernel_list(cs_schedule *schedule, cs_kernel_info **out,
                                  int *count) CS_MUST_USE;
/* The calling thread's CUDA context. */
cs_status cs_cuda_context(const cs_cuda_driver *driver, CUcontext *out) CS_MUST_USE;

/* CS_OK if this user may read counters of CUDA device `index`, which is there; tried out with a
 * kernel of a few microseconds. NOT_FOUND says why not and what to do. */
cs_status cs_cuda_counters_permitted(int index) CS_MUST_USE;

#endif
