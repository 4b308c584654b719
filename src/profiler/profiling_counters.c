/* Counters and traces of single candidates. Nothing here is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/profiling_operations.h"

#define MOST_KERNELS 64

static const cs_record *record_of(const cs_measuring *m, const cs_operation *operation,
                                  const cs_trial *trial) {
  const cs_op_profile *known = cs_profile_find(m->profile, operation->signature);
  for (int r = 0; known && r < known->n_records; r++) {
    const cs_record *record = &known->records[r];
    if (strcmp(record->candidate.id, trial->candidate.id) == 0) return record;
  }
  return NULL;
}

static cs_status run_counted(const cs_op_buffers *buffers, const cs_trial *trial,
                             cs_kernel_counts *out, int *n) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_schedule *schedule = NULL;
  CS_RETURN_IF_ERROR(cs_trial_schedule(buffers, trial, &schedule));
  cs_status st = vtable->schedule_counters(schedule, out, MOST_KERNELS, n);
  vtable->schedule_destroy(schedule);
  return st;
}

/* False: other kernels were counted than are recorded. */
static bool join_counts(cs_kernel_profile *kernels, int n_kernels, const cs_kernel_counts *counts,
                        int n) {
  if (n != n_kernels) return false;
  for (int k = 0; k < n; k++) {
    if (strcmp(kernels[k].info.name, counts[k].name) != 0) return false;
    kernels[k].counted = true;
    kernels[k].counters = counts[k].counters;
  }
  return true;
}

cs_status cs_record_counters(const cs_measuring *m, const cs_op_buffers *buffers,
                             const cs_operation *operation, const cs_trial *trial, bool *counted,
                             char *reason, size_t reason_size) {
  cs_status st = CS_OK;
  int n = 0, n_kernels = 0;
  *counted = false;
  const cs_record *record = record_of(m, operation, trial);
  if (!record || !record->kernels) return CS_OK;
  n_kernels = record->n_kernels;
  cs_kernel_counts *counts = cs_calloc(MOST_KERNELS, sizeof *counts);
  cs_kernel_profile *kernels = cs_calloc((size_t)n_kernels, sizeof *kernels);
  if (!counts || !kernels) {
    st = cs_no_memory("counters", MOST_KERNELS * sizeof *counts);
    goto done;
  }
  memcpy(kernels, record->kernels, (size_t)n_kernels * sizeof *kernels);
  st = run_counted(buffers, trial, counts, &n);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND) {
    snprintf(reason, reason_size, "%s", cs_status_message(st));
    cs_status_free(st);
    st = CS_OK;
    goto done;
  }
  if (st != CS_OK) goto done;
  if (!join_counts(kernels, n_kernels, counts, n)) {
    cs_log(m->logger, CS_LOG_WARNING,
           "%s: %s: counters of %d kernels (%s, …) are not of the %d recorded (%s, …); left out",
           operation->name, trial->candidate.id, n, n > 0 ? counts[0].name : "none", n_kernels,
           kernels[0].info.name);
    goto done;
  }
  CS_TRY(st,
         cs_profile_add_kernels(m->profile, operation->signature, trial->candidate.id, kernels,
                                n_kernels),
         done);
  *counted = true;
done:
  free(counts);
  free(kernels);
  return st;
}

/* ---- What ran against what the driver said ---- */

static bool same_kernel(const cs_kernel_info *said, const cs_kernel_trace *ran) {
  return memcmp(said->grid, ran->grid, sizeof said->grid) == 0 &&
         memcmp(said->block, ran->block, sizeof said->block) == 0 &&
         said->registers == ran->registers && said->static_shared == ran->static_shared &&
         said->dynamic_shared == ran->dynamic_shared;
}

static void warn_difference(const cs_measuring *m, const cs_operation *operation,
                            const cs_trial *trial, const cs_kernel_info *said,
                            const cs_kernel_trace *ran) {
  cs_log(m->logger, CS_LOG_WARNING,
         "%s: %s: kernel %s ran with %d registers, %d + %d bytes of shared memory, grid %dx%dx%d; "
         "the driver said %d, %d + %d, %dx%dx%d",
         operation->name, trial->candidate.id, said->name, ran->registers, ran->static_shared,
         ran->dynamic_shared, ran->grid[0], ran->grid[1], ran->grid[2], said->registers,
         said->static_shared, said->dynamic_shared, said->grid[0], said->grid[1], said->grid[2]);
}

cs_status cs_compare_traced(const cs_measuring *m, const cs_op_buffers *buffers,
                            const cs_operation *operation, const cs_trial *trial, bool *differs) {
  const cs_backend_vtable *vtable = m->backend->vtable;
  const cs_record *record = record_of(m, operation, trial);
  cs_schedule *schedule = NULL;
  int n = 0;
  *differs = false;
  if (!vtable->schedule_trace || !record || !record->kernels) return CS_OK;
  cs_kernel_trace *trace = cs_calloc(MOST_KERNELS, sizeof *trace);
  if (!trace) return cs_no_memory("a trace", MOST_KERNELS * sizeof *trace);
  cs_status st = cs_trial_schedule(buffers, trial, &schedule);
  if (st == CS_OK) st = vtable->schedule_trace(schedule, trace, MOST_KERNELS, &n);
  if (schedule) vtable->schedule_destroy(schedule);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND) { /* said where counters are asked for */
    cs_status_free(st);
    st = CS_OK;
    n = 0;
  } else if (st == CS_OK && n != record->n_kernels) {
    cs_log(m->logger, CS_LOG_WARNING, "%s: %s: %d kernels ran where the driver said %d",
           operation->name, trial->candidate.id, n, record->n_kernels);
    *differs = true;
    n = 0;
  }
  for (int k = 0; st == CS_OK && k < n; k++) {
    if (same_kernel(&record->kernels[k].info, &trace[k])) continue;
    warn_difference(m, operation, trial, &record->kernels[k].info, &trace[k]);
    *differs = true;
  }
  free(trace);
  return st;
}
