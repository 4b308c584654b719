/* Enumerating and preparing candidates: work of the CPU alone, done on all cores. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/measure.h"

static bool is_asked_for(const cs_enumerate_options *options, const char *id) {
  bool asked = options->full;
  for (int i = 0; i < options->n_allows; i++) {
    asked = asked || fnmatch(options->allows[i], id, 0) == 0;
  }
  return asked;
}

cs_status cs_add_baselines(cs_backend *backend, const cs_op_desc *desc,
                           const cs_enumerate_options *options, cs_candidate_list *list) {
  cs_candidate_list offered = {0};
  if (!backend->vtable->baselines) return CS_OK;
  cs_status st = backend->vtable->baselines(backend, desc, options, &offered);
  for (size_t i = 0; i < offered.n && st == CS_OK; i++) {
    if (!is_asked_for(options, offered.items[i].id)) continue;
    offered.items[i].baseline = true;
    st = cs_candidate_list_add(list, &offered.items[i]);
  }
  cs_candidate_list_free(&offered);
  return st;
}

typedef struct prepare_job {
  const cs_measuring *measuring;
  cs_operation *operations;
  int most;
  struct {
    int operation, trial;
  } * items; /* trials to prepare */
} prepare_job;

static cs_status enumerate_body(void *user, int64_t index, int worker) {
  prepare_job *job = user;
  cs_operation *operation = &job->operations[index];
  cs_backend *backend = job->measuring->backend;
  const cs_measure_options *options = job->measuring->options;
  cs_enumerate_options wanted = {.workspace_limit = options->workspace_limit,
                                 .deterministic = false,
                                 .full = options->full,
                                 .threads = options->threads,
                                 .allows = options->allows,
                                 .n_allows = options->n_allows};
  cs_candidate_list list = {0};
  (void)worker;
  cs_status st = backend->vtable->enumerate(backend, operation->desc, &wanted, &list);
  if (st == CS_OK) st = cs_add_baselines(backend, operation->desc, &wanted, &list);
  if (st != CS_OK) {
    st = cs_annotate(st, "%s: enumerating candidates: ", operation->name);
    goto done;
  }
  operation->trials = cs_calloc(list.n, sizeof *operation->trials);
  if (!operation->trials) {
    st = cs_no_memory("candidates", list.n * sizeof *operation->trials);
    goto done;
  }
  operation->n_trials = job->most > 0 && list.n > (size_t)job->most ? job->most : (int)list.n;
  for (int i = 0; i < operation->n_trials; i++) {
    operation->trials[i].candidate = list.items[i];
    operation->trials[i].pool = -1;
    memset(&list.items[i], 0, sizeof list.items[i]);
  }
done:
  cs_candidate_list_free(&list);
  return st;
}

static cs_status prepare_body(void *user, int64_t index, int worker) {
  prepare_job *job = user;
  const cs_operation *operation = &job->operations[job->items[index].operation];
  cs_trial *trial = &operation->trials[job->items[index].trial];
  cs_backend *backend = job->measuring->backend;
  (void)worker;
  cs_status st =
      backend->vtable->prepare(backend, operation->desc, &trial->candidate, &trial->exec);
  if (st != CS_OK) return cs_trial_reject(trial, "cannot be prepared", st);
  trial->workspace_bytes = backend->vtable->exec_workspace(trial->exec);
  trial->weight_bytes = backend->vtable->exec_weight_bytes(trial->exec);
  int64_t allowed =
      cs_min_i64(trial->candidate.workspace_bytes, job->measuring->options->workspace_limit);
  if (trial->workspace_bytes > allowed) {
    cs_trial_reject_text(trial, "needs %lld bytes of workspace where %lld were said or allowed",
                         (long long)trial->workspace_bytes, (long long)allowed);
  }
  return CS_OK;
}

/* A rejection holds until the profile is refreshed: what broke the device once is not tried again
 * in every run. */
static void take_known_rejections(const cs_measuring *measuring, cs_operation *operation) {
  if (measuring->options->refresh) return;
  const cs_op_profile *known = cs_profile_find(measuring->profile, operation->signature);
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    const cs_record *record = cs_op_profile_record(known, trial->candidate.id);
    if (record && record->measured.rejected) {
      cs_trial_reject_text(trial, "%s", record->measured.reason);
      trial->recorded = true;
    }
  }
}

cs_status cs_prepare_trials(const cs_measuring *measuring, cs_operation *operations, int n) {
  prepare_job job = {.measuring = measuring, .operations = operations};
  int64_t total = 0, n_items = 0;
  for (int i = 0; i < n; i++) total += operations[i].n_trials;
  job.items = cs_calloc((size_t)total, sizeof *job.items);
  if (!job.items) return cs_no_memory("candidates", (size_t)total * sizeof *job.items);
  for (int i = 0; i < n; i++) {
    for (int t = 0; t < operations[i].n_trials; t++) {
      if (operations[i].trials[t].rejected) continue;
      job.items[n_items].operation = i;
      job.items[n_items].trial = t;
      n_items++;
    }
  }
  cs_status st = cs_parallel_for(n_items, 0, prepare_body, &job);
  free(job.items);
  return st;
}

cs_status cs_prepare_operations(const cs_measuring *measuring, cs_operation *operations, int n,
                                int most) {
  prepare_job job = {.measuring = measuring, .operations = operations, .most = most};
  CS_RETURN_IF_ERROR(cs_parallel_for(n, 0, enumerate_body, &job));
  for (int i = 0; i < n; i++) take_known_rejections(measuring, &operations[i]);
  return cs_prepare_trials(measuring, operations, n);
}
