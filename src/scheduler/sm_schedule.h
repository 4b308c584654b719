/* The SM model over a schedule of operations, each the kernels of one candidate in a row: what a
 * plan's predicted timeline and a simulated device have in common. */
#ifndef CONVSCHED_SCHEDULER_SM_SCHEDULE_H_
#define CONVSCHED_SCHEDULER_SM_SCHEDULE_H_

#include "scheduler/sm_model.h"

/* The kernels of one candidate made ready; cs_sm_operation_clear releases. */
typedef struct cs_sm_operation {
  cs_sm_kernel *kernels; /* in the order they run */
  int n_kernels;         /* at least 1 */
} cs_sm_operation;
/* `solo_us`: time of the candidate alone. `kernels` NULL, where none are recorded: one kernel that
 * takes this time and a single block slot, so that it runs beside whatever there is. Errors as
 * cs_sm_kernels_prepare. */
cs_status cs_sm_operation_prepare(const cs_sm_model *model, const char *candidate,
                                  const cs_kernel_profile *kernels, int n, double solo_us,
                                  cs_sm_operation *out) CS_MUST_USE;
void cs_sm_operation_clear(cs_sm_operation *operation);

/* n operations as one merged launch: the k-th kernels of all as one. */
cs_status cs_sm_operation_merge(const cs_sm_model *model, const cs_sm_operation *const *operations,
                                int n, cs_sm_operation *out) CS_MUST_USE;

typedef struct cs_sm_step {
  const cs_sm_operation *operation; /* NULL: it is part of the launch of the step before */
  int stream; /* 0 … n − 1 of n steps; streams run theirs in the order of the steps */
  const int *waits;
  int n_waits;        /* steps (smaller indices) that must have finished */
  int part, priority; /* as of cs_sm_launch */
} cs_sm_step;

/* Runs the steps in this order, with nothing in the cache. `parts` NULL: not split. spans[n], of
 * the first kernel's start to the last one's end, may be NULL. On one stream the total is the sum
 * of the times alone. Errors as cs_sm_simulate. */
cs_status cs_sm_schedule_simulate(cs_sm_model *model, const cs_sm_parts *parts,
                                  const cs_sm_step *steps, int n, cs_sm_span *spans,
                                  double *total_us) CS_MUST_USE;

#endif
