/* A schedule is simulated when it is made; its latency is what the SM model says. */
#include <stdlib.h>
#include <string.h>

#include "backend/sim/sim.h"
#include "profiler/partition.h"

struct cs_schedule {
  const cs_exec **execs;   /* per launch; NULL: it is part of the launch before it */
  cs_sm_operation *merged; /* per launch; of those that lead others */
  int n;
  double us;
};

/* Launches that one kernel runs with launch i: how many, itself included. */
static cs_status count_members(const cs_launch *launches, int n, int i, int *out) {
  const cs_candidate *own = sim_exec_candidate(launches[i].exec);
  int k = 1;
  for (; i + k < n && launches[i + k].merged == i; k++) {
    const cs_launch *member = &launches[i + k];
    const cs_candidate *its = sim_exec_candidate(member->exec);
    if (!own->merges || strcmp(own->id, its->id) != 0 || member->stream != launches[i].stream ||
        member->n_waits > 0 || k == CS_MERGE_MOST) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "launch %d (%s, %s) is merged with launch %d (%s), wanted at most %d of one "
                      "candidate that merges, on one stream, without waits",
                      i + k, member->name, its->id, i, own->id, CS_MERGE_MOST);
    }
  }
  *out = k;
  return CS_OK;
}

/* The step of launch i, and of those that are part of it: *n of them. */
static cs_status fill_steps(const sim_backend *sim, const cs_launch *launches, int i,
                            const cs_stream_set *streams, cs_schedule *schedule, cs_sm_step *steps,
                            int *n) {
  const cs_launch *leader = &launches[i];
  const cs_sm_operation *operations[CS_MERGE_MOST];
  if (leader->merged >= 0) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "launch %d (%s) is merged with launch %d, wanted the leader of the launch "
                    "directly before",
                    i, leader->name, leader->merged);
  }
  if (leader->stream < 0 || leader->stream >= streams->n) {
    return cs_error(CS_CODE_INTERNAL, "%s: stream %d of %d", leader->name, leader->stream,
                    streams->n);
  }
  CS_RETURN_IF_ERROR(count_members(launches, schedule->n, i, n));
  for (int k = 0; k < *n; k++) operations[k] = sim_exec_operation(launches[i + k].exec);
  schedule->execs[i] = leader->exec;
  steps[i] = (cs_sm_step){.operation = operations[0],
                          .stream = leader->stream,
                          .waits = leader->waits,
                          .n_waits = leader->n_waits,
                          .part = cs_stream_part(streams, leader->stream),
                          .priority = leader->priority};
  if (*n == 1) return CS_OK;
  steps[i].operation = &schedule->merged[i];
  return cs_sm_operation_merge(sim->model, operations, *n, &schedule->merged[i]);
}

static cs_status simulate(sim_backend *sim, const cs_launch *launches, const cs_stream_set *streams,
                          cs_schedule *schedule) {
  cs_status st = CS_OK;
  cs_sm_parts parts = {.n = streams->n_parts};
  memcpy(parts.units, streams->parts, sizeof parts.units);
  cs_sm_step *steps = cs_calloc((size_t)schedule->n, sizeof *steps);
  if (!steps) return cs_no_memory("the steps of a schedule", (size_t)schedule->n * sizeof *steps);
  for (int i = 0, n = 0; i < schedule->n; i += n) {
    CS_TRY(st, fill_steps(sim, launches, i, streams, schedule, steps, &n), done);
  }
  st = cs_sm_schedule_simulate(sim->model, &parts, steps, schedule->n, NULL, &schedule->us);
done:
  free(steps);
  return st;
}

cs_status sim_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                              const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  (void)use_graph;
  cs_status st = CS_OK;
  *out = NULL;
  if (n < 0) return cs_error(CS_CODE_INTERNAL, "found %d launches, wanted 0 or more", n);
  CS_RETURN_IF_ERROR(cs_stream_set_check(streams, &((sim_backend *)backend)->info));
  cs_schedule *schedule = cs_calloc(1, sizeof *schedule);
  if (!schedule) return cs_no_memory("a schedule", sizeof *schedule);
  schedule->n = n;
  schedule->execs = cs_calloc((size_t)n, sizeof(const cs_exec *));
  schedule->merged = cs_calloc((size_t)n, sizeof *schedule->merged);
  if (!schedule->execs || !schedule->merged) {
    st = cs_no_memory("a schedule", (size_t)n * sizeof(const cs_exec *));
    goto done;
  }
  if (n > 0) CS_TRY(st, simulate((sim_backend *)backend, launches, streams, schedule), done);
  *out = schedule;
  schedule = NULL;
done:
  sim_schedule_destroy(schedule);
  return st;
}

void sim_schedule_destroy(cs_schedule *schedule) {
  if (!schedule) return;
  for (int i = 0; schedule->merged && i < schedule->n; i++) {
    cs_sm_operation_clear(&schedule->merged[i]);
  }
  free(schedule->merged);
  free(schedule->execs);
  free(schedule);
}

cs_status sim_schedule_run(cs_schedule *schedule) {
  return cs_error(CS_CODE_USAGE,
                  "a simulated device computes nothing: a schedule of %d launches cannot be run",
                  schedule->n);
}

cs_status sim_schedule_latency(cs_schedule *schedule, int count, double *us) {
  for (int i = 0; i < count; i++) us[i] = schedule->us;
  return CS_OK;
}

/* One launch starts when the one before has ended. */
cs_status sim_schedule_b2b(cs_schedule *schedule, int n, double *us) {
  (void)n;
  *us = schedule->us;
  return CS_OK;
}

/* Of a candidate without recorded kernels nothing but that there is one. Those of a merged launch
 * are told as its leader's, with its leader's grid. */
cs_status sim_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                               int *count) {
  *count = 0;
  for (int i = 0; i < schedule->n; i++) {
    if (!schedule->execs[i]) continue;
    const cs_kernel_profile *kernels = sim_exec_kernels(schedule->execs[i]);
    int n = sim_exec_operation(schedule->execs[i])->n_kernels;
    for (int k = 0; k < n; k++, (*count)++) {
      if (*count >= capacity) continue;
      out[*count] = kernels ? kernels[k].info : (cs_kernel_info){0};
      out[*count].launch = i;
    }
  }
  return CS_OK;
}
