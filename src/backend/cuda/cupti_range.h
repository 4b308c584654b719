/* One count with CUPTI's Range Profiler: set up, replay the work until every pass is collected,
 * read the counters, take everything down again. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_RANGE_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_RANGE_H_

#include "backend/cuda/cupti_metrics.h"

typedef struct cs_range_request {
  int device; /* CUDA's index */
  CUcontext context;
  /* true: a range a kernel; CUPTI runs kernels one at a time. false: one range around all of the
   * work, which keeps its concurrency. The work is called for each pass. */
  bool per_kernel;
  int max_ranges; /* room in the answer; more of them is an error */
  cs_status (*work)(void *user);
  void *user; /* of work, which must have finished on the device when it returns */
  /* The device's metrics: made by the first count (choosing them takes longer than counting),
   * cleared by the owner. */
  cs_metric_set *metrics;
  const cs_logger *logger; /* told of metrics that the chip lacks; NULL: nobody */
} cs_range_request;

/* Writes the counters of up to max_ranges ranges, in the order they ran, and how many there are.
 * NOT_FOUND: counters are not to be had, the message says why and what to do. The caller holds
 * CUPTI's lock, and there is a device. No session is left open, whatever comes of it. */
cs_status cs_cupti_count(const cs_cupti *cupti, const cs_range_request *request, cs_counters *out,
                         int *count) CS_MUST_USE;

#endif
