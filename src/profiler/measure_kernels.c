/* The kernels of candidates, from the schedule of one launch of each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/measure.h"
#include "profiler/pareto.h"

#define MOST_KERNELS 64

cs_status cs_trial_schedule(const cs_op_buffers *buffers, const cs_trial *trial,
                            cs_schedule **out) {
  cs_launch launch = cs_op_buffers_launch(buffers, trial, 0);
  return buffers->backend->vtable->schedule_create(buffers->backend, &launch, 1, &cs_one_stream,
                                                   false, out);
}

static bool lacks_kernels(const cs_measuring *m, const cs_operation *operation,
                          const cs_trial *trial) {
  const cs_op_profile *known = cs_profile_find(m->profile, operation->signature);
  const cs_record *record = cs_op_profile_record(known, trial->candidate.id);
  return record && cs_record_lacks_kernels(known, record);
}

static cs_status read_kernels(const cs_op_buffers *buffers, const cs_trial *trial,
                              cs_kernel_info *infos, int *n) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_schedule *schedule = NULL;
  CS_RETURN_IF_ERROR(cs_trial_schedule(buffers, trial, &schedule));
  cs_status st = vtable->schedule_kernels(schedule, infos, MOST_KERNELS, n);
  vtable->schedule_destroy(schedule);
  return st;
}

static cs_status record_trial(const cs_measuring *m, const cs_op_buffers *buffers,
                              const cs_operation *operation, const cs_trial *trial, int *recorded) {
  cs_status st = CS_OK;
  int n = 0;
  cs_kernel_info *infos = cs_calloc(MOST_KERNELS, sizeof *infos);
  cs_kernel_profile *kernels = cs_calloc(MOST_KERNELS, sizeof *kernels);
  if (!infos || !kernels) {
    st = cs_no_memory("kernels", MOST_KERNELS * (sizeof *infos + sizeof *kernels));
    goto done;
  }
  CS_TRY(st, read_kernels(buffers, trial, infos, &n), done);
  if (n < 1 || n > MOST_KERNELS) {
    cs_log(m->logger, CS_LOG_WARNING, "%s: %s: found %d kernels, wanted 1 to %d; not recorded",
           operation->name, trial->candidate.id, n, MOST_KERNELS);
    goto done;
  }
  for (int k = 0; k < n; k++) {
    kernels[k].info = infos[k];
    for (int c = 0; c < CS_COUNTER_COUNT; c++) kernels[k].counters.value[c] = NAN;
  }
  CS_TRY(st,
         cs_profile_add_kernels(m->profile, operation->signature, trial->candidate.id, kernels, n),
         done);
  if (recorded) (*recorded)++;
done:
  free(infos);
  free(kernels);
  return st;
}

cs_status cs_record_kernels(const cs_measuring *m, const cs_op_buffers *buffers,
                            const cs_operation *operation, int *recorded) {
  if (!m->backend->vtable->schedule_kernels) return CS_OK;
  for (int i = 0; i < operation->n_trials; i++) {
    const cs_trial *trial = &operation->trials[i];
    if (!trial->exec || trial->rejected || !lacks_kernels(m, operation, trial)) continue;
    CS_RETURN_IF_ERROR(cs_annotate(record_trial(m, buffers, operation, trial, recorded),
                                   "kernels of %s: ", trial->candidate.id));
  }
  return CS_OK;
}
