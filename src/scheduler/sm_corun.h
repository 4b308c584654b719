/* The SM model's prediction of a co-run record: operations that ran together, each on its stream.
 */
#ifndef CONVSCHED_SCHEDULER_SM_CORUN_H_
#define CONVSCHED_SCHEDULER_SM_CORUN_H_

#include "scheduler/sm_model.h"

typedef struct cs_sm_times {
  double together_us;           /* predicted */
  double longest_us, serial_us; /* the longest and the sum of the times alone */
  cs_sm_timeline timeline;
} cs_sm_times;

typedef struct cs_sm_prediction {
  cs_sm_times cold, warm; /* of concurrent_us and of concurrent_warm_us */
} cs_sm_prediction;

/* From the times alone, kernels and counters of the members' records. Members are launched longest
 * first, as they are measured. NOT_FOUND: a member without a record or without kernels. */
cs_status cs_sm_predict_corun(cs_sm_model *model, const cs_profile *profile, const cs_corun *corun,
                              cs_sm_prediction *out) CS_MUST_USE;

/* Bytes of the tensors that a signature names, and of a convolution's weights: what an operation
 * touches. BAD_INPUT: not a signature. */
cs_status cs_sm_signature_bytes(const char *signature, int64_t *out) CS_MUST_USE;

/* The share of its way from warm to cold that a time takes when what runs together touches `bytes`:
 * 0 while all stays in the cache, 1 from where it exceeds it. */
double cs_sm_coldness(const cs_sm_model *model, int64_t bytes);

#endif
