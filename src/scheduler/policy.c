/* The registry of policies, and how a policy's choice becomes a finished plan. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

static const cs_policy *const policies[] = {&cs_policy_sequential, &cs_policy_streams,
                                            &cs_policy_opara, &cs_policy_ios, &cs_policy_coselect};

const cs_policy *const *cs_policy_all(int *count) {
  *count = (int)(sizeof policies / sizeof policies[0]);
  return policies;
}

const cs_policy *cs_policy_find(const char *name) {
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
    if (strcmp(policies[i]->name, name) == 0) return policies[i];
  return NULL;
}

/* What every policy may rely on. */
static cs_status check_input(const cs_policy_input *input) {
  const cs_program *program = input->program;
  if (input->max_streams < 1)
    return cs_error(CS_CODE_USAGE, "found %d streams to plan for, wanted at least 1",
                    input->max_streams);
  if (input->workspace_limit < 0 || input->memory_limit < 0)
    return cs_error(CS_CODE_USAGE,
                    "found a workspace limit of %" PRId64 " and a memory limit of %" PRId64
                    " bytes, wanted 0 (none) or more",
                    input->workspace_limit, input->memory_limit);
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    if (input->choices[t].n < 1)
      return cs_error(CS_CODE_NOT_FOUND, "task %s has no admissible measured candidate",
                      task->name);
    for (int i = 0; i < task->n_preds; i++)
      if (task->preds[i] < 0 || task->preds[i] >= t)
        return cs_error(CS_CODE_INTERNAL, "task %s depends on task %d, wanted one before %d",
                        task->name, task->preds[i], t);
  }
  return CS_OK;
}

/* What a plan says about where it came from. */
static cs_status fill_origin(cs_plan *plan, const char *policy, const cs_policy_input *input) {
  const cs_graph *graph = input->program->graph;
  CS_RETURN_IF_ERROR(cs_strdup_to(policy, &plan->policy));
  CS_RETURN_IF_ERROR(cs_strdup_to(input->device_identity, &plan->device_identity));
  plan->graph_hash = input->graph_hash;
  plan->precision = input->program->precision;
  plan->batch = graph->batch;
  plan->seed = input->seed;
  plan->n_values = graph->n_values;
  if (input->program->division)
    CS_RETURN_IF_ERROR(cs_division_copy(input->program->division, &plan->division));
  plan->layouts = cs_calloc((size_t)graph->n_values, sizeof *plan->layouts);
  if (!plan->layouts) return cs_no_memory("the layouts of a plan", (size_t)graph->n_values);
  if (graph->n_values > 0)
    memcpy(plan->layouts, input->program->layouts, (size_t)graph->n_values * sizeof *plan->layouts);
  return CS_OK;
}

cs_status cs_plan_finish(cs_plan *plan, const char *policy, const cs_policy_input *input) {
  CS_RETURN_IF_ERROR(fill_origin(plan, policy, input));
  CS_RETURN_IF_ERROR(cs_plan_check_split(plan, input->device ? input->device->units : 0));
  if (input->workspace_limit > 0)
    CS_RETURN_IF_ERROR(
        cs_plan_limit_workspace(plan, input->program, input->choices, input->workspace_limit));
  CS_RETURN_IF_ERROR(cs_plan_memory(plan, input->program, true, input->memory_limit));
  CS_RETURN_IF_ERROR(cs_plan_timeline(plan, input->choices, input->model));
  return cs_plan_check(plan, input->program, input->workspace_limit, input->memory_limit);
}

/* The draft of a policy; where whole schedules were measured, it is told the memory limit, which
 * then says which of them count. */
static cs_status first_draft(const cs_policy *policy, const cs_policy_input *input, cs_plan **out) {
  cs_policy_input unlimited = *input;
  unlimited.memory_limit = 0;
  *out = NULL;
  if (input->memory_limit > 0 && input->schedules) {
    cs_status st = cs_plan_draft(policy, input, out);
    if (st == CS_OK && (*out)->arena_bytes <= input->memory_limit) return CS_OK;
    cs_plan_destroy(*out);
    *out = NULL;
    if (st != CS_OK && cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
    cs_status_free(st); /* nothing within the limit as it is */
  }
  return cs_plan_draft(policy, &unlimited, out);
}

cs_status cs_plan_make(const cs_policy *policy, const cs_policy_input *input, cs_plan **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(check_input(input));
  cs_status st = CS_OK;
  cs_plan *plan = NULL;
  CS_TRY(st, first_draft(policy, input, &plan), done);
  if (input->memory_limit > 0 && plan->arena_bytes > input->memory_limit) {
    CS_TRY(st, cs_plan_hold_memory(policy, input, &plan), done);
    CS_TRY(st, cs_plan_check(plan, input->program, input->workspace_limit, input->memory_limit),
           done);
  }
  *out = plan, plan = NULL;
done:
  cs_plan_destroy(plan);
  return cs_annotate(st, "policy %s: ", policy->name);
}

cs_status cs_sequential_memory(const cs_policy_input *input, cs_plan_bytes *out) {
  cs_plan *plan;
  cs_policy_input plain = *input;
  plain.model = NULL; /* no timeline is wanted */
  CS_RETURN_IF_ERROR(cs_plan_draft(&cs_policy_sequential, &plain, &plan));
  *out = (cs_plan_bytes){plan->arena_bytes, plan->workspace_peak};
  cs_plan_destroy(plan);
  return CS_OK;
}
