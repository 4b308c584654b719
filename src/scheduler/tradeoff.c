#include "scheduler/tradeoff.h"

#include "base/progress.h"
#include "scheduler/internal.h"

static cs_status point_under(const cs_policy *policy, const cs_policy_input *input, int64_t limit,
                             cs_tradeoff_point *out) {
  cs_policy_input limited = *input;
  cs_plan *plan;
  limited.memory_limit = limit;
  CS_RETURN_IF_ERROR(cs_plan_make(policy, &limited, &plan));
  *out = (cs_tradeoff_point){.memory_limit = limit,
                             .arena = plan->arena_bytes,
                             .workspace = plan->workspace_peak,
                             .n_streams = plan->n_streams,
                             .predicted_us = plan->predicted_us};
  cs_plan_destroy(plan);
  return CS_OK;
}

/* Arenas fall from point to point, so a new one makes those before it superfluous that are not
 * faster. */
static void add_point(cs_tradeoff *front, const cs_tradeoff_point *point) {
  while (front->n > 0 && front->points[front->n - 1].predicted_us >= point->predicted_us)
    front->n--;
  front->points[front->n++] = *point;
}

cs_status cs_tradeoff_of(const cs_policy *policy, const cs_policy_input *input, cs_tradeoff *out) {
  cs_tradeoff_point point;
  int64_t least;
  *out = (cs_tradeoff){.n = 0};
  CS_RETURN_IF_ERROR(point_under(policy, input, input->memory_limit, &point));
  CS_RETURN_IF_ERROR(cs_plan_least_memory(input, &least));
  add_point(out, &point);
  int64_t first = point.arena, arena = first;
  for (int i = 1; i <= CS_TRADEOFF_STEPS; i++) {
    int64_t limit = i < CS_TRADEOFF_STEPS ? first - (first - least) / CS_TRADEOFF_STEPS * i : least;
    if (limit >= arena) continue;
    cs_progress_step("trade-off", "plans", i, CS_TRADEOFF_STEPS, NULL);
    CS_RETURN_IF_ERROR(point_under(policy, input, limit, &point));
    arena = point.arena;
    add_point(out, &point);
  }
  return CS_OK;
}
