/* CUPTI as a table of functions, loaded when it is first needed: a program that never counts or
 * traces does not pay for it at start-up, and a machine without it runs all the rest.
 *
 * CUPTI serves one user of a process at a time, so that whoever counts or traces holds the lock.
 */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_LIBRARY_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_LIBRARY_H_

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "base/base.h"

/* X(member, function) */
#define CS_CUPTI_FUNCTIONS(X)                                                    \
  X(get_version, cuptiGetVersion)                                                \
  X(profiler_initialize, cuptiProfilerInitialize)                                \
  X(profiler_deinitialize, cuptiProfilerDeInitialize)                            \
  X(device_get_chip_name, cuptiDeviceGetChipName)                                \
  X(get_counter_availability, cuptiProfilerGetCounterAvailability)               \
  X(host_initialize, cuptiProfilerHostInitialize)                                \
  X(host_deinitialize, cuptiProfilerHostDeinitialize)                            \
  X(host_get_metric_properties, cuptiProfilerHostGetMetricProperties)            \
  X(host_config_add_metrics, cuptiProfilerHostConfigAddMetrics)                  \
  X(host_get_config_image_size, cuptiProfilerHostGetConfigImageSize)             \
  X(host_get_config_image, cuptiProfilerHostGetConfigImage)                      \
  X(host_get_num_of_passes, cuptiProfilerHostGetNumOfPasses)                     \
  X(host_evaluate, cuptiProfilerHostEvaluateToGpuValues)                         \
  X(range_enable, cuptiRangeProfilerEnable)                                      \
  X(range_disable, cuptiRangeProfilerDisable)                                    \
  X(range_set_config, cuptiRangeProfilerSetConfig)                               \
  X(range_start, cuptiRangeProfilerStart)                                        \
  X(range_stop, cuptiRangeProfilerStop)                                          \
  X(range_push, cuptiRangeProfilerPushRange)                                     \
  X(range_pop, cuptiRangeProfilerPopRange)                                       \
  X(range_decode, cuptiRangeProfilerDecodeData)                                  \
  X(range_get_counter_data_size, cuptiRangeProfilerGetCounterDataSize)           \
  X(range_initialize_counter_data, cuptiRangeProfilerCounterDataImageInitialize) \
  X(range_get_counter_data_info, cuptiRangeProfilerGetCounterDataInfo)           \
  X(get_context_id, cuptiGetContextId)                                           \
  X(activity_register_callbacks, cuptiActivityRegisterCallbacks)                 \
  X(activity_enable, cuptiActivityEnable)                                        \
  X(activity_disable, cuptiActivityDisable)                                      \
  X(activity_flush_all, cuptiActivityFlushAll)                                   \
  X(activity_get_next_record, cuptiActivityGetNextRecord)

typedef struct cs_cupti {
#define CS_CUPTI_MEMBER(member, function) __typeof__ (&(function))(member);
  CS_CUPTI_FUNCTIONS(CS_CUPTI_MEMBER)
#undef CS_CUPTI_MEMBER
} cs_cupti;

/* Declares the zeroed parameters `name` of a call ("RangeProfiler_Start"). */
#define CS_CUPTI_PARAMS(call, name) \
  CUpti_##call##_Params name = {.structSize = CUpti_##call##_Params_STRUCT_SIZE}

/* Loads the first library of `paths` that opens. NOT_FOUND says what was tried, or which function
 * the library lacks. What was loaded stays loaded. */
cs_status cs_cupti_load(const char *const *paths, int n, cs_cupti *out) CS_MUST_USE;
/* The process's CUPTI, looked for where the system looks, beside libcudart, in the CUDA folders of
 * /usr/local and where the build found it. `*out` is valid for ever. */
cs_status cs_cupti_get(const cs_cupti **out) CS_MUST_USE;
/* CUPTI's API version ("130001"); "" without CUPTI. Needs no driver. */
void cs_cupti_version(char *out, size_t size);

void cs_cupti_lock(void);
void cs_cupti_unlock(void);

/* A CUPTI result as a status. What this machine does not permit or support is NOT_FOUND, "<what>:
 * unavailable (<CUPTI's name>): <what to do>"; `what` is "counters" or "trace". All else is an
 * error that says what was being done. */
cs_status cs_cupti_status(CUptiResult result, const char *what, const char *doing) CS_MUST_USE;

#endif
