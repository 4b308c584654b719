#include <stdlib.h>
#include <string.h>

#include "profiler/corun.h"

static bool has_task(const cs_corun_group *group, int task) {
  for (int i = 0; i < group->n; i++) {
    if (group->ops[i].task == task) return true;
  }
  return false;
}

/* The operation with its Pareto set as trials, not yet prepared. */
static cs_status take_operation(const cs_profiling *profiling, int task, cs_corun_op *out) {
  const cs_device_info *device = profiling->backend->vtable->info(profiling->backend);
  const cs_record *set[CS_PARETO_MOST];
  const cs_candidate *candidates[CS_PARETO_MOST];
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_op_signature(&profiling->program->tasks[task].desc, &signature));
  int n = cs_op_pareto(cs_profile_find(profiling->profile, signature), device, profiling->options,
                       CS_PARETO_MOST, set);
  cs_status st = CS_OK;
  if (n == 0) {
    CS_FAIL(st, done, CS_CODE_NOT_FOUND, "%s: nothing measured that may be used for %s",
            profiling->program->tasks[task].name, signature);
  }
  for (int i = 0; i < n; i++) candidates[i] = &set[i]->candidate;
  CS_TRY(st, cs_operation_again(profiling, task, candidates, n, &out->operation), done);
  out->task = task;
  for (int i = 0; i < n; i++) {
    out->operation.trials[i].rough_us = set[i]->measured.cold_us;
    out->demands[i] = cs_kernels_demand(device, set[i]->kernels, set[i]->n_kernels);
  }
done:
  free(signature);
  return st;
}

static cs_status prepare_group(cs_corun_group *group) {
  cs_status st = CS_OK;
  cs_operation *operations = cs_calloc((size_t)group->n, sizeof *operations);
  if (!operations) return cs_no_memory("operations", (size_t)group->n * sizeof *operations);
  for (int i = 0; i < group->n; i++) operations[i] = group->ops[i].operation;
  st = cs_prepare_trials(group->measuring, operations, group->n);
  for (int i = 0; i < group->n; i++) group->ops[i].operation = operations[i];
  free(operations);
  CS_RETURN_IF_ERROR(st);
  for (int i = 0; i < group->n; i++) {
    cs_corun_op *op = &group->ops[i];
    CS_RETURN_IF_ERROR(cs_operation_buffers(group->measuring, &op->operation, &op->buffers));
  }
  return CS_OK;
}

cs_status cs_corun_group_create(const cs_profiling *profiling, const cs_measuring *measuring,
                                const cs_corun_set *const *sets, int n, cs_corun_group *out) {
  cs_status st = CS_OK;
  size_t capacity = 0;
  *out = (cs_corun_group){.profiling = profiling, .measuring = measuring};
  for (int s = 0; s < n; s++) {
    for (int i = 0; i < sets[s]->n; i++) {
      if (has_task(out, sets[s]->tasks[i])) continue;
      CS_TRY(st, cs_grow(&out->ops, &capacity, (size_t)out->n + 1, sizeof *out->ops), done);
      CS_TRY(st, take_operation(profiling, sets[s]->tasks[i], &out->ops[out->n]), done);
      out->n++;
    }
  }
  st = prepare_group(out);
done:
  if (st != CS_OK) cs_corun_group_destroy(out);
  return st;
}

void cs_corun_group_destroy(cs_corun_group *group) {
  for (int i = 0; i < group->n; i++) {
    cs_corun_op *op = &group->ops[i];
    if (op->buffers.backend) cs_op_buffers_destroy(&op->buffers);
    cs_operation_clear(group->profiling->backend, &op->operation);
  }
  free(group->ops);
  group->ops = NULL;
  group->n = 0;
}
