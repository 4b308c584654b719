/* The predicted timeline of a plan. There is no model of contention: tasks on different streams
 * overlap freely, so the prediction is optimistic when a task fills the device alone. */
#include <stdlib.h>

#include "scheduler/internal.h"

cs_status cs_plan_timeline(cs_plan *plan, const cs_task_choices *choices) {
  double *free_at = cs_calloc((size_t)plan->n_streams, sizeof *free_at);
  if (!free_at) return cs_no_memory("streams", (size_t)plan->n_streams * sizeof *free_at);
  cs_status st = CS_OK;
  plan->predicted_us = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    cs_plan_task *task = &plan->tasks[p];
    int chosen = cs_choice_find(&choices[task->task], task->candidate.id);
    if (chosen < 0)
      CS_FAIL(st, done, CS_CODE_INTERNAL, "task %d has no measured candidate %s", task->task,
              task->candidate.id);
    double start = free_at[task->stream];
    for (int w = 0; w < task->n_waits; w++) {
      double end = plan->tasks[task->waits[w]].end_us;
      if (end > start) start = end;
    }
    task->start_us = start;
    task->end_us = start + choices[task->task].choices[chosen].cold_us;
    free_at[task->stream] = task->end_us;
    if (task->end_us > plan->predicted_us) plan->predicted_us = task->end_us;
  }
done:
  free(free_at);
  return st;
}
