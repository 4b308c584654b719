/* Kernels and counters of a program's operations, where the profile lacks them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "profiler/profiling_operations.h"

#define MOST_CANDIDATES 512
#define TRACED_SAMPLES 8 /* candidates whose run is compared with what the driver said */

typedef struct kernels_pass {
  const cs_profiling *profiling;
  const cs_measuring *measuring;
  cs_kernels_report *report;
  bool counters;
  int compared;
} kernels_pass;

static bool fully_counted(const cs_record *record) {
  for (int k = 0; k < record->n_kernels; k++) {
    if (!record->kernels[k].counted) return false;
  }
  return record->n_kernels > 0;
}

/* Members of the Pareto set that have no counters; with `ids`, copies of their ids. */
static int uncounted(const kernels_pass *pass, const char *signature,
                     const cs_record *out[CS_PARETO_MOST]) {
  const cs_record *set[CS_PARETO_MOST];
  const cs_device_info *device = pass->profiling->backend->vtable->info(pass->profiling->backend);
  int n = cs_op_pareto(cs_profile_find(pass->profiling->profile, signature), device,
                       pass->profiling->options, CS_PARETO_MOST, set);
  int kept = 0;
  for (int i = 0; i < n; i++) {
    if (!fully_counted(set[i])) out[kept++] = set[i];
  }
  return kept;
}

/* The candidates that have to be prepared again: without kernels, or (with counters) counters. Of
 * those without kernels the Pareto set is not known before they are recorded, so all come. */
static int candidates_of(const kernels_pass *pass, const char *signature,
                         const cs_candidate *out[MOST_CANDIDATES]) {
  const cs_op_profile *known = cs_profile_find(pass->profiling->profile, signature);
  const cs_record *uncounted_ones[CS_PARETO_MOST];
  int n = 0;
  for (int r = 0; known && r < known->n_records && n < MOST_CANDIDATES; r++) {
    if (cs_record_lacks_kernels(known, &known->records[r])) out[n++] = &known->records[r].candidate;
  }
  if (!pass->counters || pass->report->unavailable[0]) return n;
  if (n > 0) {
    for (int r = 0; r < known->n_records && n < MOST_CANDIDATES; r++) {
      const cs_record *record = &known->records[r];
      if (record->kernels && !record->measured.rejected && !record->absent) {
        out[n++] = &record->candidate;
      }
    }
    return n;
  }
  int more = uncounted(pass, signature, uncounted_ones);
  for (int i = 0; i < more; i++) out[n++] = &uncounted_ones[i]->candidate;
  return n;
}

static const cs_trial *trial_of(const cs_operation *operation, const char *id) {
  for (int i = 0; i < operation->n_trials; i++) {
    const cs_trial *trial = &operation->trials[i];
    if (trial->exec && !trial->rejected && strcmp(trial->candidate.id, id) == 0) return trial;
  }
  return NULL;
}

static cs_status count_operation(kernels_pass *pass, const cs_op_buffers *buffers,
                                 const cs_operation *operation) {
  const cs_record *records[CS_PARETO_MOST];
  const cs_trial *trials[CS_PARETO_MOST];
  int n_records = uncounted(pass, operation->signature, records), n = 0;
  for (int i = 0; i < n_records; i++) {
    trials[n] = trial_of(operation, records[i]->candidate.id);
    if (trials[n]) n++;
  }
  CS_RETURN_IF_ERROR(cs_record_counters(pass->measuring, buffers, operation, trials, n,
                                        &pass->report->counted, pass->report->unavailable,
                                        sizeof pass->report->unavailable));
  if (pass->report->unavailable[0]) return CS_OK;
  for (int i = 0; i < n && pass->compared < TRACED_SAMPLES; i++) {
    cs_kernel_comparison found;
    pass->compared++;
    CS_RETURN_IF_ERROR(cs_compare_traced(pass->measuring, buffers, operation, trials[i], &found));
    pass->report->differences += found.differences > 0;
    pass->report->untold_local += found.untold_local;
  }
  return CS_OK;
}

static cs_status inspect(kernels_pass *pass, int task, const cs_candidate *const *candidates,
                         int n) {
  cs_status st = CS_OK;
  cs_operation operation = {0};
  cs_op_buffers buffers = {0};
  CS_RETURN_IF_ERROR(cs_operation_again(pass->profiling, task, candidates, n, &operation));
  CS_TRY(st, cs_prepare_trials(pass->measuring, &operation, 1), done);
  CS_TRY(st, cs_operation_buffers(pass->measuring, &operation, &buffers), done);
  CS_TRY(st, cs_record_kernels(pass->measuring, &buffers, &operation, &pass->report->recorded),
         done);
  if (pass->counters && !pass->report->unavailable[0]) {
    CS_TRY(st, count_operation(pass, &buffers, &operation), done);
  }
done:
  if (buffers.backend) cs_op_buffers_destroy(&buffers);
  cs_operation_clear(pass->profiling->backend, &operation);
  return st;
}

static cs_status inspect_all(kernels_pass *pass, const cs_distinct_op *ops, const int *wanted,
                             int n) {
  const cs_candidate **candidates = cs_calloc(MOST_CANDIDATES, sizeof *candidates);
  if (!candidates) return cs_no_memory("candidates", MOST_CANDIDATES * sizeof *candidates);
  cs_status st = CS_OK;
  for (int i = 0; i < n && st == CS_OK; i++) {
    if (cs_measuring_cancelled(pass->measuring)) {
      st = cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
      break;
    }
    cs_progress_step(pass->counters ? "counters" : "kernels", "operations", i, n, NULL);
    const cs_distinct_op *op = &ops[wanted[i]];
    int n_candidates = candidates_of(pass, op->signature, candidates);
    if (n_candidates > 0) st = inspect(pass, op->task, candidates, n_candidates);
  }
  free(candidates);
  return st;
}

static cs_status find_wanted(const kernels_pass *pass, const cs_distinct_op *ops, int n, int *out,
                             int *n_out) {
  const cs_candidate **candidates = cs_calloc(MOST_CANDIDATES, sizeof *candidates);
  if (!candidates) return cs_no_memory("candidates", MOST_CANDIDATES * sizeof *candidates);
  *n_out = 0;
  for (int i = 0; i < n; i++) {
    if (candidates_of(pass, ops[i].signature, candidates) > 0) out[(*n_out)++] = i;
  }
  free(candidates);
  return CS_OK;
}

cs_status cs_profiling_kernels(const cs_profiling *profiling, bool counters,
                               cs_kernels_report *report) {
  cs_status st = CS_OK;
  const cs_backend_vtable *vtable = profiling->backend->vtable;
  cs_distinct_op *ops = NULL;
  int *wanted = NULL, n = 0, n_wanted = 0;
  cs_measure_report unused = {0};
  cs_measuring measuring = {0};
  kernels_pass pass = {.profiling = profiling, .report = report, .measuring = &measuring};
  if (counters && !vtable->schedule_counters) {
    snprintf(report->unavailable, sizeof report->unavailable, "this device has none");
  }
  pass.counters = counters && vtable->schedule_counters;
  if (!vtable->schedule_kernels || profiling->options->frozen) return CS_OK;
  CS_TRY(st, cs_distinct_ops(profiling, &ops, &n), done);
  wanted = cs_calloc((size_t)n, sizeof *wanted);
  if (!wanted) {
    st = cs_no_memory("operations", (size_t)n * sizeof *wanted);
    goto done;
  }
  CS_TRY(st, find_wanted(&pass, ops, n, wanted, &n_wanted), done);
  if (n_wanted == 0) goto done;
  cs_wanted session = cs_profiling_wanted(profiling, &unused);
  CS_TRY(st, cs_measuring_open(&session, n_wanted, &measuring), done);
  st = inspect_all(&pass, ops, wanted, n_wanted);
  cs_measuring_close(&measuring);
done:
  cs_distinct_ops_free(ops, n);
  free(wanted);
  return st;
}
