/* A schedule is simulated when it is made; its latency is what the SM model says. */
#include <stdlib.h>

#include "backend/sim/sim.h"

struct cs_schedule {
  const cs_exec **execs; /* per launch */
  int n;
  double us;
};

static cs_status simulate(sim_backend *sim, const cs_launch *launches, cs_schedule *schedule) {
  cs_sm_step *steps = cs_calloc((size_t)schedule->n, sizeof *steps);
  if (!steps) return cs_no_memory("the steps of a schedule", (size_t)schedule->n * sizeof *steps);
  for (int i = 0; i < schedule->n; i++) {
    schedule->execs[i] = launches[i].exec;
    steps[i] = (cs_sm_step){.operation = sim_exec_operation(launches[i].exec),
                            .stream = launches[i].stream,
                            .waits = launches[i].waits,
                            .n_waits = launches[i].n_waits};
  }
  cs_status st = cs_sm_schedule_simulate(sim->model, steps, schedule->n, NULL, &schedule->us);
  free(steps);
  return st;
}

cs_status sim_schedule_create(cs_backend *backend, const cs_launch *launches, int n, int n_streams,
                              bool use_graph, cs_schedule **out) {
  (void)use_graph;
  cs_status st = CS_OK;
  *out = NULL;
  if (n < 0 || n_streams < 1) {
    return cs_error(CS_CODE_INTERNAL, "found %d launches on %d streams, wanted one stream or more",
                    n, n_streams);
  }
  cs_schedule *schedule = cs_calloc(1, sizeof *schedule);
  if (!schedule) return cs_no_memory("a schedule", sizeof *schedule);
  schedule->n = n;
  schedule->execs = cs_calloc((size_t)n, sizeof(const cs_exec *));
  if (!schedule->execs) {
    st = cs_no_memory("a schedule", (size_t)n * sizeof(const cs_exec *));
    goto done;
  }
  if (n > 0) CS_TRY(st, simulate((sim_backend *)backend, launches, schedule), done);
  *out = schedule;
  schedule = NULL;
done:
  sim_schedule_destroy(schedule);
  return st;
}

void sim_schedule_destroy(cs_schedule *schedule) {
  if (!schedule) return;
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

/* Of a candidate without recorded kernels nothing but that there is one. */
cs_status sim_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                               int *count) {
  *count = 0;
  for (int i = 0; i < schedule->n; i++) {
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
