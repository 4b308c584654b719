/* A policy's plan as it is without a memory limit. */
#include "scheduler/internal.h"

cs_status cs_plan_draft(const cs_policy *policy, const cs_policy_input *input, cs_plan **out) {
  *out = NULL;
  cs_policy_input unlimited = *input;
  unlimited.memory_limit = 0;
  cs_plan *plan = cs_calloc(1, sizeof *plan);
  if (!plan) return cs_no_memory("a plan", sizeof *plan);
  cs_status st = policy->plan(input, plan);
  if (st == CS_OK) st = cs_plan_finish(plan, policy->name, &unlimited);
  if (st != CS_OK) {
    cs_plan_destroy(plan);
    return st;
  }
  *out = plan;
  return CS_OK;
}
