/* Counters and traces of single candidates. Nothing here is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/profiling_operations.h"

#define MOST_KERNELS 64

static const cs_record *record_of(const cs_measuring *m, const cs_operation *operation,
                                  const cs_trial *trial) {
  return cs_op_profile_record(cs_profile_find(m->profile, operation->signature),
                              trial->candidate.id);
}

/* All trials in one schedule: starting to count costs far more than counting. */
static cs_status run_counted(const cs_op_buffers *buffers, const cs_trial *const *trials, int n,
                             cs_kernel_counts *out, int capacity, int *count) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_launch launches[CS_PARETO_MOST];
  cs_schedule *schedule = NULL;
  for (int i = 0; i < n; i++) launches[i] = cs_op_buffers_launch(buffers, trials[i], 0);
  CS_RETURN_IF_ERROR(
      vtable->schedule_create(buffers->backend, launches, n, &cs_one_stream, false, &schedule));
  cs_status st = vtable->schedule_counters(schedule, out, capacity, count);
  vtable->schedule_destroy(schedule);
  return st;
}

/* False: other kernels were counted than are recorded. */
static bool join_counts(cs_kernel_profile *kernels, const cs_record *record,
                        const cs_kernel_counts *counts) {
  memcpy(kernels, record->kernels, (size_t)record->n_kernels * sizeof *kernels);
  for (int k = 0; k < record->n_kernels; k++) {
    if (strcmp(kernels[k].info.name, counts[k].name) != 0) return false;
    kernels[k].counted = true;
    kernels[k].counters = counts[k].counters;
  }
  return true;
}

static cs_status record_counts(const cs_measuring *m, const cs_operation *operation,
                               const cs_trial *const *trials, int n, const cs_kernel_counts *counts,
                               int *counted) {
  cs_kernel_profile *kernels = cs_calloc(MOST_KERNELS, sizeof *kernels);
  if (!kernels) return cs_no_memory("counters", MOST_KERNELS * sizeof *kernels);
  cs_status st = CS_OK;
  for (int i = 0, at = 0; i < n && st == CS_OK; i++) {
    /* Found anew: adding to the profile moves its records. */
    const cs_record *record = record_of(m, operation, trials[i]);
    int n_kernels = record->n_kernels;
    if (join_counts(kernels, record, &counts[at])) {
      st = cs_profile_add_kernels(m->profile, operation->signature, trials[i]->candidate.id,
                                  kernels, n_kernels);
      (*counted)++;
    } else {
      cs_log(m->logger, CS_LOG_WARNING, "%s: %s: kernel %s was counted where %s is recorded",
             operation->name, trials[i]->candidate.id, counts[at].name,
             record->kernels[0].info.name);
    }
    at += n_kernels;
  }
  free(kernels);
  return st;
}

cs_status cs_record_counters(const cs_measuring *m, const cs_op_buffers *buffers,
                             const cs_operation *operation, const cs_trial *const *trials, int n,
                             int *counted, char *reason, size_t reason_size) {
  int expected = 0, found = 0, usable = 0;
  const cs_trial *known[CS_PARETO_MOST];
  for (int i = 0; i < n; i++) {
    const cs_record *record = record_of(m, operation, trials[i]);
    if (!record || !record->kernels || record->n_kernels > MOST_KERNELS) continue;
    known[usable++] = trials[i];
    expected += record->n_kernels;
  }
  if (usable == 0) return CS_OK;
  cs_kernel_counts *counts = cs_calloc((size_t)expected, sizeof *counts);
  if (!counts) return cs_no_memory("counters", (size_t)expected * sizeof *counts);
  cs_status st = run_counted(buffers, known, usable, counts, expected, &found);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND) {
    snprintf(reason, reason_size, "%s", cs_status_message(st));
    cs_status_free(st);
    st = CS_OK;
  } else if (st == CS_OK && found == expected) {
    st = record_counts(m, operation, known, usable, counts, counted);
  } else if (st == CS_OK) {
    cs_log(m->logger, CS_LOG_WARNING,
           "%s: %d kernels of %d candidates counted where %d are recorded; left out",
           operation->name, found, usable, expected);
  }
  free(counts);
  return st;
}

/* ---- What ran against what the driver said ---- */

/* NOT_FOUND (no traces here) is said where counters are asked for: then *n is 0, and CS_OK. */
static cs_status trace_once(const cs_op_buffers *buffers, const cs_trial *trial,
                            cs_kernel_trace *out, int capacity, int *n) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_schedule *schedule = NULL;
  *n = 0;
  CS_RETURN_IF_ERROR(cs_trial_schedule(buffers, trial, &schedule));
  cs_status st = vtable->schedule_trace(schedule, out, capacity, n);
  vtable->schedule_destroy(schedule);
  if (cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  cs_status_free(st);
  *n = 0;
  return CS_OK;
}

static cs_status compare_record(const cs_record *record, const cs_kernel_trace *traced,
                                cs_strbuf *lines, cs_kernel_comparison *out) {
  int n = record->n_kernels;
  cs_kernel_info *told = cs_calloc((size_t)n, sizeof *told);
  if (!told) return cs_no_memory("kernels", (size_t)n * sizeof *told);
  for (int k = 0; k < n; k++) told[k] = record->kernels[k].info;
  cs_status st = cs_compare_kernels(told, n, traced, n, lines, out);
  free(told);
  return st;
}

cs_status cs_compare_traced(const cs_measuring *m, const cs_op_buffers *buffers,
                            const cs_operation *operation, const cs_trial *trial,
                            cs_kernel_comparison *out) {
  const cs_record *record = record_of(m, operation, trial);
  cs_strbuf lines = {0};
  int n = 0;
  *out = (cs_kernel_comparison){0};
  if (!m->backend->vtable->schedule_trace || !record || !record->kernels) return CS_OK;
  cs_kernel_trace *traced = cs_calloc((size_t)record->n_kernels, sizeof *traced);
  if (!traced) return cs_no_memory("a trace", (size_t)record->n_kernels * sizeof *traced);
  cs_status st = trace_once(buffers, trial, traced, record->n_kernels, &n);
  if (st == CS_OK && n == record->n_kernels) {
    st = compare_record(record, traced, &lines, out);
  } else if (st == CS_OK && n > 0) {
    cs_strbuf_printf(&lines, "%d kernels ran where the driver told of %d\n", n, record->n_kernels);
    out->differences = 1;
  }
  if (st == CS_OK && out->differences > 0) {
    cs_log(m->logger, CS_LOG_WARNING, "%s: %s: kernels ran otherwise than the driver told:\n%s",
           operation->name, trial->candidate.id, lines.data);
  }
  cs_strbuf_free(&lines);
  free(traced);
  return st;
}
