/* The plan as a value: making, filling, releasing, identity. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/identity.h"
#include "scheduler/internal.h"

void cs_plan_destroy(cs_plan *plan) {
  if (!plan) return;
  for (int p = 0; plan->tasks && p < plan->n_tasks; p++) {
    cs_candidate_clear(&plan->tasks[p].candidate);
    free(plan->tasks[p].waits);
  }
  free(plan->policy);
  free(plan->device_identity);
  free(plan->layouts);
  cs_division_destroy(plan->division);
  free(plan->stream_part);
  free(plan->tasks);
  free(plan->buffer_offsets);
  free(plan);
}

cs_status cs_plan_begin(const cs_program *program, cs_plan *plan) {
  memset(plan, 0, sizeof *plan);
  plan->tasks = cs_calloc((size_t)program->n_tasks, sizeof *plan->tasks);
  if (!plan->tasks) return cs_no_memory("the tasks of a plan", (size_t)program->n_tasks);
  plan->n_tasks = program->n_tasks;
  for (int p = 0; p < plan->n_tasks; p++) plan->tasks[p].merged = -1;
  plan->buffer_offsets = cs_calloc((size_t)program->n_buffers, sizeof *plan->buffer_offsets);
  if (!plan->buffer_offsets)
    return cs_no_memory("the buffers of a plan", (size_t)program->n_buffers);
  plan->n_buffers = program->n_buffers;
  return CS_OK;
}

cs_status cs_plan_place(cs_plan *plan, int position, int task, int stream,
                        const cs_candidate *candidate) {
  cs_plan_task *placed = &plan->tasks[position];
  placed->task = task;
  placed->stream = stream;
  placed->workspace_bytes = candidate->workspace_bytes;
  cs_candidate_clear(&placed->candidate);
  return cs_candidate_copy(candidate, &placed->candidate);
}

void cs_plan_positions(const cs_plan *plan, int *position_of) {
  for (int p = 0; p < plan->n_tasks; p++) position_of[plan->tasks[p].task] = p;
}

int cs_plan_launch_end(const cs_plan *plan, int leader) {
  int end = leader + 1;
  while (end < plan->n_tasks && plan->tasks[end].merged == leader) end++;
  return end;
}

cs_status cs_plan_check_split(const cs_plan *plan, int units) {
  int64_t sum = 0;
  for (int i = 0; i < plan->n_parts; i++) sum += plan->parts[i];
  if (units > 0 && sum > units)
    return cs_error(CS_CODE_BAD_INPUT,
                    "the plan splits the device into %d parts of together %" PRId64
                    " SMs, wanted at most the device's %d",
                    plan->n_parts, sum, units);
  return CS_OK;
}

int cs_choice_find(const cs_task_choices *choices, const char *id) {
  for (int i = 0; i < choices->n; i++)
    if (strcmp(choices->choices[i].candidate->id, id) == 0) return i;
  return -1;
}

cs_status cs_plan_check_identity(const cs_plan *plan, uint64_t graph_hash, cs_precision precision,
                                 const char *device_identity) {
  if (plan->graph_hash != graph_hash)
    return cs_error(CS_CODE_BAD_INPUT,
                    "the plan is for another graph or batch: found hash %016" PRIx64
                    " (batch %" PRId64 "), wanted %016" PRIx64,
                    plan->graph_hash, plan->batch, graph_hash);
  if (plan->precision != precision)
    return cs_error(CS_CODE_BAD_INPUT, "the plan is for another precision: found %s, wanted %s",
                    cs_precision_name(plan->precision), cs_precision_name(precision));
  if (!cs_identity_same_hardware(plan->device_identity, device_identity))
    return cs_error(CS_CODE_BAD_INPUT,
                    "the plan is for another device: found \"%s\", wanted \"%s\"",
                    plan->device_identity, device_identity);
  return CS_OK;
}
