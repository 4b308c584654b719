/* The latency/memory front of a policy: its plans under falling memory limits. Pure and
 * deterministic. */
#ifndef CONVSCHED_SCHEDULER_TRADEOFF_H_
#define CONVSCHED_SCHEDULER_TRADEOFF_H_

#include "scheduler/policy.h"

/* Limits tried, evenly spaced from the arena of the plan without a limit to the least. */
#define CS_TRADEOFF_STEPS 12

typedef struct cs_tradeoff_point {
  int64_t memory_limit;     /* bytes, under which cs_plan_make gives this plan; 0: none */
  int64_t arena, workspace; /* bytes; workspace: most in use at once */
  int n_streams;
  double predicted_us;
} cs_tradeoff_point;

typedef struct cs_tradeoff {
  cs_tradeoff_point points[CS_TRADEOFF_STEPS + 1]; /* the fastest first, the smallest last */
  int n;
} cs_tradeoff;

/* Points that another one is both as small and as fast as are left out. Begins with the input's own
 * memory limit, where it has one. Errors as cs_plan_make. */
cs_status cs_tradeoff_of(const cs_policy *policy, const cs_policy_input *input,
                         cs_tradeoff *out) CS_MUST_USE;

#endif
