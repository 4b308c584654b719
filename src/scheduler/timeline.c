/* The predicted timeline of a plan: by the SM model where kernels are known, else from the times
 * alone, where tasks on different streams overlap freely, which is optimistic when a task fills the
 * device alone. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"
#include "scheduler/sm_schedule.h"

static cs_status chosen_of(const cs_plan_task *task, const cs_task_choices *choices,
                           const cs_choice **out) {
  int chosen = cs_choice_find(&choices[task->task], task->candidate.id);
  if (chosen < 0) {
    return cs_error(CS_CODE_INTERNAL, "task %d has no measured candidate %s", task->task,
                    task->candidate.id);
  }
  *out = &choices[task->task].choices[chosen];
  return CS_OK;
}

/* ---- From times alone ---- */

/* A merged launch takes the longest time of its tasks. */
static void end_launch(cs_plan *plan, int p, const cs_choice *const *chosen) {
  cs_plan_task *task = &plan->tasks[p];
  int first = cs_plan_leader(plan, p);
  double us = 0;
  for (int q = first; q < cs_plan_launch_end(plan, first); q++)
    if (chosen[q]->cold_us > us) us = chosen[q]->cold_us;
  task->end_us = task->start_us + us;
}

static cs_status from_times(cs_plan *plan, const cs_choice *const *chosen) {
  double *free_at = cs_calloc((size_t)plan->n_streams, sizeof *free_at);
  if (!free_at) return cs_no_memory("streams", (size_t)plan->n_streams * sizeof *free_at);
  plan->predicted_us = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    cs_plan_task *task = &plan->tasks[p];
    double start = free_at[task->stream];
    for (int w = 0; w < task->n_waits; w++) {
      double end = plan->tasks[task->waits[w]].end_us;
      if (end > start) start = end;
    }
    task->start_us = task->merged >= 0 ? plan->tasks[task->merged].start_us : start;
    end_launch(plan, p, chosen);
    free_at[task->stream] = task->end_us;
    if (task->end_us > plan->predicted_us) plan->predicted_us = task->end_us;
  }
  free(free_at);
  return CS_OK;
}

/* ---- By the SM model ---- */

/* The launch that a position leads: its operation becomes that of all of them. */
static cs_status merge_operations(const cs_plan *plan, int leader, const cs_sm_model *model,
                                  cs_sm_operation *operations) {
  const cs_sm_operation *parts[CS_MERGE_MOST];
  cs_sm_operation merged;
  int end = cs_plan_launch_end(plan, leader);
  for (int p = leader; p < end && p - leader < CS_MERGE_MOST; p++)
    parts[p - leader] = &operations[p];
  if (end == leader + 1) return CS_OK;
  CS_RETURN_IF_ERROR(cs_sm_operation_merge(model, parts, end - leader, &merged));
  cs_sm_operation_clear(&operations[leader]);
  operations[leader] = merged;
  return CS_OK;
}

static cs_status simulate(cs_plan *plan, const cs_choice *const *chosen, cs_sm_model *model,
                          cs_sm_operation *operations, cs_sm_step *steps, cs_sm_span *spans) {
  cs_sm_parts parts = {.n = plan->n_parts};
  memcpy(parts.units, plan->parts, sizeof parts.units);
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    CS_RETURN_IF_ERROR(cs_sm_operation_prepare(model, task->candidate.id, chosen[p]->kernels,
                                               chosen[p]->n_kernels, chosen[p]->cold_us,
                                               &operations[p]));
    int part = plan->n_parts > 0 ? plan->stream_part[task->stream] : -1;
    steps[p] = (cs_sm_step){.operation = task->merged < 0 ? &operations[p] : NULL,
                            .stream = task->stream,
                            .waits = task->waits,
                            .n_waits = task->n_waits,
                            .part = part,
                            .priority = task->priority};
  }
  for (int p = 0; p < plan->n_tasks; p++)
    if (plan->tasks[p].merged < 0) CS_RETURN_IF_ERROR(merge_operations(plan, p, model, operations));
  CS_RETURN_IF_ERROR(
      cs_sm_schedule_simulate(model, &parts, steps, plan->n_tasks, spans, &plan->predicted_us));
  for (int p = 0; p < plan->n_tasks; p++) {
    plan->tasks[p].start_us = spans[p].start_us;
    plan->tasks[p].end_us = spans[p].end_us;
  }
  return CS_OK;
}

static cs_status from_model(cs_plan *plan, const cs_choice *const *chosen, cs_sm_model *model) {
  size_t n = (size_t)plan->n_tasks;
  cs_sm_operation *operations = cs_calloc(n, sizeof *operations);
  cs_sm_step *steps = cs_calloc(n, sizeof *steps);
  cs_sm_span *spans = cs_calloc(n, sizeof *spans);
  cs_status st = operations && steps && spans
                     ? simulate(plan, chosen, model, operations, steps, spans)
                     : cs_no_memory("a timeline", n * sizeof *operations);
  for (size_t p = 0; operations && p < n; p++) cs_sm_operation_clear(&operations[p]);
  free(operations);
  free(steps);
  free(spans);
  return st;
}

cs_status cs_plan_timeline(cs_plan *plan, const cs_task_choices *choices, cs_sm_model *model) {
  cs_status st = CS_OK;
  bool any_kernels = false;
  const cs_choice **chosen = cs_calloc((size_t)plan->n_tasks, sizeof(const cs_choice *));
  if (!chosen) return cs_no_memory("a timeline", (size_t)plan->n_tasks * sizeof(void *));
  for (int p = 0; p < plan->n_tasks; p++) {
    CS_TRY(st, chosen_of(&plan->tasks[p], choices, &chosen[p]), done);
    any_kernels = any_kernels || chosen[p]->n_kernels > 0;
  }
  st = model && any_kernels ? from_model(plan, chosen, model) : from_times(plan, chosen);
done:
  free(chosen);
  return st;
}
