/* Holding the arena to a limit. Workspaces lie in the arena, so less workspace is tried first;
 * fewer streams let more buffers and workspaces share bytes; the least is taken by one stream in
 * program order with least workspaces. */
#include <inttypes.h>

#include "scheduler/internal.h"

/* Of the workspace limit, before every task gets its least. */
#define MOST_ROUNDS 8

static cs_status pack(cs_plan *plan, const cs_policy_input *input) {
  CS_RETURN_IF_ERROR(cs_plan_memory(plan, input->program, true, 0));
  return cs_plan_timeline(plan, input->choices, input->model);
}

/* Less workspace by what the arena exceeds its limit, until it fits or nothing is left to give up.
 */
static cs_status shrink(cs_plan *plan, const cs_policy_input *input) {
  int64_t smallest, limit = input->memory_limit;
  if (plan->arena_bytes <= limit) return CS_OK;
  CS_RETURN_IF_ERROR(cs_plan_smallest_workspace(plan, input->choices, &smallest));
  for (int round = 0; round < MOST_ROUNDS && plan->workspace_peak > smallest; round++) {
    int64_t excess = plan->arena_bytes - limit;
    int64_t wanted = cs_max_i64(smallest, plan->workspace_peak - excess);
    CS_RETURN_IF_ERROR(cs_plan_limit_workspace(plan, input->program, input->choices, wanted));
    CS_RETURN_IF_ERROR(pack(plan, input));
    if (plan->arena_bytes <= limit) return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_plan_spare_workspace(plan, input->choices));
  return pack(plan, input);
}

/* Shrinks the plan and keeps it in *best if it fits and is predicted to be faster; *arena is what
 * it takes. Owns `plan`. */
static cs_status offer(cs_plan *plan, const cs_policy_input *input, cs_plan **best,
                       int64_t *arena) {
  cs_status st = shrink(plan, input);
  *arena = plan->arena_bytes;
  if (st == CS_OK && *arena <= input->memory_limit &&
      (!*best || plan->predicted_us < (*best)->predicted_us)) {
    cs_plan_destroy(*best);
    *best = plan;
    return CS_OK;
  }
  cs_plan_destroy(plan);
  return st;
}

cs_status cs_plan_least_memory(const cs_policy_input *input, int64_t *out) {
  cs_status st = CS_OK;
  cs_plan *plan;
  cs_policy_input plain = *input;
  plain.model = NULL; /* no timeline is wanted */
  CS_RETURN_IF_ERROR(cs_plan_draft(&cs_policy_sequential, &plain, &plan));
  CS_TRY(st, cs_plan_spare_workspace(plan, input->choices), done);
  CS_TRY(st, cs_plan_memory(plan, input->program, true, 0), done);
  *out = plan->arena_bytes;
done:
  cs_plan_destroy(plan);
  return st;
}

/* What the policy makes of the limit itself: some plan otherwise when they are told. */
static cs_status offer_told(const cs_policy *policy, const cs_policy_input *input, cs_plan **best) {
  cs_plan *draft;
  int64_t arena;
  cs_status st = cs_plan_draft(policy, input, &draft);
  cs_code code = cs_status_code(st);
  if (st == CS_OK) return offer(draft, input, best, &arena);
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_NO_MEMORY) return st;
  cs_status_free(st); /* it has none within the limit */
  return CS_OK;
}

cs_status cs_plan_hold_memory(const cs_policy *policy, const cs_policy_input *input,
                              cs_plan **plan) {
  const cs_policy in_order = {.name = policy->name, .plan = cs_policy_sequential.plan};
  cs_policy_input fewer = *input;
  cs_plan *best = NULL, *draft = *plan;
  cs_status st = CS_OK;
  int64_t arena = 0;
  fewer.memory_limit = 0;
  *plan = NULL;
  CS_TRY(st, offer(draft, input, &best, &arena), done);
  while (fewer.max_streams > 1) {
    fewer.max_streams /= 2;
    CS_TRY(st, cs_plan_draft(policy, &fewer, &draft), done);
    CS_TRY(st, offer(draft, input, &best, &arena), done);
  }
  CS_TRY(st, offer_told(policy, input, &best), done);
  CS_TRY(st, cs_plan_draft(&in_order, &fewer, &draft), done);
  CS_TRY(st, offer(draft, input, &best, &arena), done);
  if (!best)
    CS_FAIL(st, done, CS_CODE_NOT_FOUND,
            "no plan of %s holds the memory limit: wanted at most %" PRId64
            " bytes of arena, the smallest possible is %" PRId64
            " (one stream, candidates with the least workspace)",
            cs_graph_name(input->program->graph), input->memory_limit, arena);
  *plan = best, best = NULL;
done:
  cs_plan_destroy(best);
  return st;
}
