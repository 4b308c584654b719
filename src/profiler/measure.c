/* cs_profile_program: which operations lack measurements, batches of them prepared, then measured
 * one after another. Knows devices through the backend's vtable alone. */
#include "profiler/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "profiler/measure_data.h"
#include "profiler/measure_session.h"
#include "profiler/profiling.h"

/* A payload is worth its bytes only where the candidate may be chosen. */
#define PAYLOAD_WITHIN 1.5

/* ---- Trials and operations ---- */

void cs_operation_clear(const cs_backend *backend, cs_operation *operation) {
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (trial->exec) backend->vtable->exec_destroy(trial->exec);
    cs_candidate_clear(&trial->candidate);
  }
  free(operation->trials);
  free(operation->signature);
  memset(operation, 0, sizeof *operation);
}

void cs_trial_reject_text(cs_trial *trial, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(trial->reason, sizeof trial->reason, format, args);
  va_end(args);
  trial->rejected = true;
}

cs_status cs_trial_reject(cs_trial *trial, const char *what, cs_status why) {
  cs_code code = cs_status_code(why);
  if (code == CS_CODE_NO_MEMORY || code == CS_CODE_CANCELLED) {
    return cs_annotate(why, "%s: ", trial->candidate.id);
  }
  cs_trial_reject_text(trial, "%s: %s", what, cs_status_message(why));
  cs_status_free(why);
  return CS_OK;
}

void cs_measure_report_add(const cs_measure_report *more, cs_measure_report *to) {
  to->operations += more->operations;
  to->operations_cached += more->operations_cached;
  to->candidates += more->candidates;
  to->candidates_rejected += more->candidates_rejected;
  to->seconds += more->seconds;
}

bool cs_measuring_cancelled(const cs_measuring *measuring) {
  return measuring->options->cancelled && measuring->options->cancelled(measuring->options->user);
}

void cs_measuring_tell(const cs_measuring *measuring, const char *operation,
                       const char *candidate) {
  if (!measuring->stage) return;
  cs_progress_step(measuring->stage, "operations", measuring->at, measuring->of, "%s%s%s",
                   operation, candidate ? "  " : "", candidate ? candidate : "");
}

/* ---- Recording ---- */

static cs_status measurement_of(cs_trial *trial, cs_measurement *out) {
  cs_stats stats;
  memset(out, 0, sizeof *out);
  out->rejected = trial->rejected;
  out->reason = trial->reason;
  if (out->rejected) return CS_OK;
  int n = trial->n_samples > 0 ? trial->n_samples : 1;
  const double *samples = trial->n_samples > 0 ? trial->samples : &trial->rough_us;
  CS_RETURN_IF_ERROR(cs_stats_of(samples, n, &stats));
  out->cold_us = stats.median;
  out->p10_us = stats.p10;
  out->p90_us = stats.p90;
  out->variation = stats.variation;
  out->samples = n;
  out->warm_us = trial->warm_us > 0 ? trial->warm_us : stats.median;
  return CS_OK;
}

/* `partial`: the operation was interrupted; only what has samples or is rejected is known. */
static cs_status record(cs_measuring *m, cs_operation *operation, bool partial) {
  double best = INFINITY;
  cs_measurement measured;
  for (int i = 0; i < operation->n_trials; i++) {
    CS_RETURN_IF_ERROR(measurement_of(&operation->trials[i], &measured));
    if (!measured.rejected && measured.cold_us > 0) best = fmin(best, measured.cold_us);
  }
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (trial->recorded || (partial && !trial->rejected && trial->n_samples == 0)) continue;
    CS_RETURN_IF_ERROR(measurement_of(trial, &measured));
    if (measured.rejected || measured.cold_us > PAYLOAD_WITHIN * best) {
      free(trial->candidate.payload);
      trial->candidate.payload = NULL;
    }
    CS_RETURN_IF_ERROR(
        cs_profile_add(m->profile, operation->signature, &trial->candidate, &measured));
    trial->recorded = true;
    m->report->candidates++;
    if (measured.rejected) {
      m->report->candidates_rejected++;
      cs_log(m->logger, CS_LOG_DEBUG, "%s: %s rejected: %s", operation->name, trial->candidate.id,
             trial->reason);
    }
  }
  return CS_OK;
}

/* ---- One operation ---- */

static bool anything_to_measure(const cs_operation *operation) {
  for (int i = 0; i < operation->n_trials; i++) {
    if (!operation->trials[i].rejected) return true;
  }
  return false;
}

cs_status cs_measure_operation(cs_measuring *m, cs_operation *operation) {
  cs_status st = CS_OK;
  cs_op_buffers buffers = {0};
  cs_checker checker = {0};
  double start = cs_now_seconds();
  if (anything_to_measure(operation)) {
    CS_TRY(st, cs_op_buffers_create(m, operation, &buffers), done);
    CS_TRY(st, cs_checker_create(m, &buffers, &checker), done);
    double referred = cs_now_seconds();
    CS_TRY(st, cs_checker_check_all(m, &buffers, &checker, operation), done);
    cs_checker_destroy(&checker); /* its memory is free for copies */
    double checked = cs_now_seconds();
    CS_TRY(st, cs_time_trials(m, &buffers, operation), done);
    cs_log(m->logger, CS_LOG_DEBUG,
           "%s: %d candidates; reference %.0f ms, checks %.0f ms, timing %.0f ms", operation->name,
           operation->n_trials, 1e3 * (referred - start), 1e3 * (checked - referred),
           1e3 * (cs_now_seconds() - checked));
  }
done:;
  cs_status recorded = record(m, operation, st != CS_OK);
  if (st == CS_OK) {
    st = recorded;
  } else {
    cs_status_free(recorded);
  }
  if (st == CS_OK && buffers.backend) st = cs_record_kernels(m, &buffers, operation, NULL);
  if (st == CS_OK) {
    cs_completion completion = {.workspace_limit = m->options->workspace_limit,
                                .threads = m->options->threads,
                                .full = m->options->full};
    st = cs_profile_mark_completion(m->profile, operation->signature, &completion);
  }
  cs_checker_destroy(&checker);
  if (buffers.backend) cs_op_buffers_destroy(&buffers);
  return cs_annotate(st, "%s: ", operation->name);
}

/* ---- All operations ---- */

/* Reports the operation unless an earlier call, for the same threads, did so. */
static cs_status report_operation(const cs_wanted *wanted, const char *signature, bool cached) {
  char *key = NULL;
  cs_strbuf text = {0};
  json_t *reported = wanted->options->reported;
  cs_strbuf_printf(&text, "%d %s", wanted->options->threads, signature);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &key));
  bool again = json_object_get(reported, key) != NULL;
  bool failed = reported && !again && json_object_set_new(reported, key, json_true()) != 0;
  free(key);
  if (failed) return cs_no_memory("signatures", strlen(signature));
  wanted->report->operations += !again;
  wanted->report->operations_cached += !again && cached;
  return CS_OK;
}

cs_status cs_measure_operations(cs_measuring *m, cs_operation *operations, int n) {
  const int batch = cs_cpu_count() > 8 ? cs_cpu_count() : 8;
  m->stage = "profiling";
  m->of = n;
  for (int first = 0; first < n; first += batch) {
    int count = n - first < batch ? n - first : batch;
    if (cs_measuring_cancelled(m)) {
      return cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
    }
    m->at = first;
    cs_measuring_tell(m, "preparing candidates", NULL);
    CS_RETURN_IF_ERROR(cs_prepare_operations(m, &operations[first], count, 0));
    for (int i = first; i < first + count; i++) {
      m->at = i;
      cs_measuring_tell(m, operations[i].name, NULL);
      CS_RETURN_IF_ERROR(cs_retire_candidates(m, &operations[i]));
      CS_RETURN_IF_ERROR(cs_measure_operation(m, &operations[i]));
      cs_operation_clear(m->backend, &operations[i]);
    }
  }
  return CS_OK;
}

/* Baselines are asked for by name, which a completion does not tell. */
static cs_status baselines_are_known(const cs_wanted *wanted, const cs_op_desc *desc,
                                     const cs_op_profile *known, bool *out) {
  const cs_measure_options *options = wanted->options;
  cs_enumerate_options asked = {.workspace_limit = options->workspace_limit,
                                .threads = options->threads,
                                .allows = options->allows,
                                .n_allows = options->n_allows};
  cs_candidate_list list = {0};
  *out = true;
  if (options->n_allows == 0) return CS_OK;
  cs_status st = cs_add_baselines(wanted->backend, desc, &asked, &list);
  for (size_t i = 0; i < list.n; i++) {
    if (!cs_op_profile_record(known, list.items[i].id)) *out = false;
  }
  cs_candidate_list_free(&list);
  return st;
}

/* Nothing can be measured of a recorded device, so what an older program enumerated counts there;
 * under `frozen` what another version of a library did. */
static cs_status is_known(const cs_wanted *wanted, const cs_op_desc *desc, const char *name,
                          const char *signature, bool *out) {
  const cs_op_profile *known = cs_profile_find(wanted->profile, signature);
  const cs_measure_options *options = wanted->options;
  bool outdated = false;
  cs_completion completion = {.workspace_limit = options->workspace_limit,
                              .threads = options->threads,
                              .full = options->full};
  if (wanted->backend->vtable->recorded) {
    *out = cs_op_profile_covered_once(known, &completion);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(cs_mark_absent(wanted, name, signature, &outdated));
  *out = !options->refresh && (!outdated || options->frozen) &&
         cs_op_profile_covers(known, &completion);
  return *out ? baselines_are_known(wanted, desc, known, out) : CS_OK;
}

static cs_status refuse_recorded(const cs_wanted *wanted, const char *name, const char *signature) {
  const char *device = wanted->backend->vtable->info(wanted->backend)->name;
  const cs_op_profile *known = cs_profile_find(wanted->profile, signature);
  int64_t limit = -1;
  for (int i = 0; known && i < known->n_completions; i++) {
    limit = cs_max_i64(limit, known->completions[i].workspace_limit);
  }
  if (!known || limit < 0) {
    return cs_error(CS_CODE_NOT_FOUND, "%s: %s of %s; operation %s", name,
                    known ? "recorded in part only" : "not recorded", device, signature);
  }
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s: recorded of %s under a workspace limit of %lld bytes, wanted one of %lld "
                  "bytes%s; operation %s",
                  name, device, (long long)limit, (long long)wanted->options->workspace_limit,
                  wanted->options->full ? " and every engine" : "", signature);
}

/* Why nothing is measured where the profile does not cover an operation. */
static cs_status refuse_miss(const cs_wanted *wanted, const char *name, const char *signature) {
  if (wanted->backend->vtable->recorded) return refuse_recorded(wanted, name, signature);
  return cs_error(CS_CODE_NOT_FOUND,
                  "%s: not measured under a workspace limit of %lld bytes, and measuring is "
                  "forbidden (frozen); operation %s",
                  name, (long long)wanted->options->workspace_limit, signature);
}

/* Appends the task's operation unless it is there or the profile covers it. */
static cs_status want_operation(const cs_wanted *wanted, const cs_op_desc *desc, const char *name,
                                json_t *seen, cs_operation *out, int *n) {
  char *signature = NULL;
  cs_status st = cs_op_signature(desc, &signature);
  if (st != CS_OK) return cs_annotate(st, "%s: ", name);
  if (json_object_get(seen, signature)) goto done;
  if (json_object_set_new(seen, signature, json_true()) != 0) {
    st = cs_no_memory("signatures", strlen(signature));
    goto done;
  }
  bool known = false;
  CS_TRY(st, is_known(wanted, desc, name, signature, &known), done);
  CS_TRY(st, report_operation(wanted, signature, known), done);
  if (known) goto done;
  if (wanted->options->frozen || wanted->backend->vtable->recorded) {
    st = refuse_miss(wanted, name, signature);
    goto done;
  }
  st = cs_annotate(cs_measure_check_fits(wanted->backend, desc), "%s: ", name);
  if (st != CS_OK) goto done;
  out[*n] = (cs_operation){.desc = desc, .name = name, .signature = signature};
  signature = NULL;
  (*n)++;
done:
  free(signature);
  return st;
}

cs_status cs_measure_wanted(const cs_wanted *wanted, const cs_op_desc *const *descs,
                            const char *const *names, int n) {
  cs_status st = CS_OK;
  int n_operations = 0;
  double start = cs_now_seconds();
  json_t *seen = json_object();
  cs_operation *operations = cs_calloc((size_t)n, sizeof *operations);
  if (!seen || !operations) {
    st = cs_no_memory("operations", (size_t)n * sizeof *operations);
    goto done;
  }
  for (int i = 0; i < n; i++) {
    CS_TRY(st, want_operation(wanted, descs[i], names[i], seen, operations, &n_operations), done);
  }
  if (n_operations > 0) st = cs_measure_session(wanted, operations, n_operations);
done:
  for (int i = 0; operations && i < n_operations; i++) {
    cs_operation_clear(wanted->backend, &operations[i]);
  }
  free(operations);
  json_decref(seen);
  wanted->report->seconds += cs_now_seconds() - start;
  return st;
}

cs_status cs_profiling_measure(const cs_profiling *profiling, cs_measure_report *report) {
  const cs_program *program = profiling->program;
  cs_wanted wanted = cs_profiling_wanted(profiling, report);
  memset(report, 0, sizeof *report);
  const cs_op_desc **descs = cs_calloc((size_t)program->n_tasks, sizeof *descs);
  const char **names = cs_calloc((size_t)program->n_tasks, sizeof *names);
  cs_status st = CS_OK;
  int n = 0;
  if (!descs || !names) {
    st = cs_no_memory("tasks", (size_t)program->n_tasks * sizeof *descs);
    goto done;
  }
  for (int t = 0; t < program->n_tasks; t++) {
    if (profiling->tasks && !profiling->tasks[t]) continue;
    descs[n] = &program->tasks[t].desc;
    names[n++] = program->tasks[t].name;
  }
  st = cs_measure_wanted(&wanted, descs, names, n);
done:
  free(descs);
  free(names);
  return st;
}

cs_status cs_profile_program(cs_profile *profile, cs_backend *backend, const cs_program *program,
                             const cs_measure_options *options, const cs_logger *logger,
                             cs_measure_report *report) {
  cs_measure_report unused;
  cs_profiling profiling = {.profile = profile,
                            .backend = backend,
                            .program = program,
                            .options = options,
                            .logger = logger};
  return cs_profiling_measure(&profiling, report ? report : &unused);
}
