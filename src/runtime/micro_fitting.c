/* Sizes of parts at which candidates fit the workspace limit that do not fit it with the whole
 * batch. */
#include <stdlib.h>

#include "runtime/micro_wanted.h"

#define MOST_FITTING 4   /* sizes of one operation at which something else fits */
#define LEAST_SHARE 0.01 /* of all time that an operation takes for which sizes are looked for */

/* ---- Of one operation ---- */

static cs_status enumerate(const cs_wanted_parts *wanted, const cs_op_desc *desc, int64_t limit,
                           cs_candidate_list *out) {
  cs_backend *backend = wanted->session->device->backend;
  cs_enumerate_options options = {.workspace_limit = limit,
                                  .threads = wanted->of->measure->threads};
  return backend->vtable->enumerate(backend, desc, &options, out);
}

/* Drops what fits the limit with the whole batch, is not deterministic where that is asked, or
 * would not be chosen. */
static void keep_what_does_not_fit(const cs_op_desc *desc, const cs_settings *settings,
                                   cs_candidate_list *list) {
  const cs_session_options *options = &settings->options;
  size_t kept = 0;
  for (size_t i = 0; i < list->n; i++) {
    cs_candidate *candidate = &list->items[i];
    bool wanted = candidate->workspace_bytes > options->workspace_limit &&
                  (candidate->deterministic || !options->deterministic) &&
                  !cs_candidate_is_coarse(desc, candidate) &&
                  !cs_choices_exclude(settings, desc, candidate->id);
    if (!wanted) {
      cs_candidate_clear(candidate);
      continue;
    }
    cs_candidate moved = *candidate;
    *candidate = (cs_candidate){0};
    list->items[kept++] = moved;
  }
  list->n = kept;
}

/* Candidates that do not fit the workspace limit with all entries. */
typedef struct beyond_limit {
  cs_candidate_list all;
  bool *fits; /* with as few entries as were looked at so far */
  bool *news; /* of these, those that did not fit the size before */
  int64_t batch, limit;
} beyond_limit;

/* No candidate that does not fit yet can fit as many entries: workspaces grow at most in
 * proportion.
 */
static bool none_can_fit(const beyond_limit *beyond, int64_t entries) {
  for (size_t i = 0; i < beyond->all.n; i++) {
    double least =
        (double)beyond->all.items[i].workspace_bytes * (double)entries / (double)beyond->batch;
    if (!beyond->fits[i] && least <= (double)beyond->limit) return false;
  }
  return true;
}

/* How many entries a candidate may fit, of its workspaces with fewer and with all of them: as if
 * each took the same. */
static int64_t may_fit(const beyond_limit *beyond, const cs_candidate *with_fewer, int64_t fewer,
                       const cs_candidate *with_all) {
  double each = (double)(with_all->workspace_bytes - with_fewer->workspace_bytes) /
                (double)(beyond->batch - fewer);
  if (!(each > 0)) return fewer;
  return fewer + (int64_t)((double)(beyond->limit - with_fewer->workspace_bytes) / each);
}

/* Marks those that fit `entries`, of which `fit` is what there is; how many are new. *most: the
 * most entries that any of these may fit. */
static int mark_fitting(const cs_candidate_list *fit, int64_t entries, beyond_limit *beyond,
                        int64_t *most) {
  int n = 0;
  *most = entries;
  for (size_t i = 0; i < beyond->all.n; i++) {
    const cs_candidate *fits = cs_candidate_find(fit, beyond->all.items[i].id);
    beyond->news[i] = fits && !beyond->fits[i];
    if (!beyond->news[i]) continue;
    beyond->fits[i] = true;
    *most = cs_max_i64(*most, may_fit(beyond, fits, entries, &beyond->all.items[i]));
    n++;
  }
  return n;
}

static bool any_news(const cs_candidate_list *fit, const beyond_limit *beyond) {
  for (size_t i = 0; i < beyond->all.n; i++) {
    if (beyond->news[i] && cs_candidate_find(fit, beyond->all.items[i].id)) return true;
  }
  return false;
}

static cs_status enumerate_part(const cs_wanted_parts *wanted, int task, int64_t entries,
                                cs_candidate_list *out) {
  cs_op_desc part = cs_micro_desc(&wanted->of->program->tasks[task].desc, entries);
  cs_candidate_list_free(out);
  *out = (cs_candidate_list){0};
  return enumerate(wanted, &part, wanted->session->settings.options.workspace_limit, out);
}

/* Sizes of an operation's parts at which something fits that does not fit with all entries. */
typedef struct fitting_sizes {
  int task;
  double share; /* of the time of all operations that this one takes, wherever it is */
  int64_t sizes[MOST_FITTING];
  int n;
} fitting_sizes;

/* A size at which something new fits, or a larger one, below `above`, at which it still does. */
static cs_status largest_fitting(const cs_wanted_parts *wanted, int task, int64_t entries,
                                 int64_t most, int64_t above, const beyond_limit *beyond,
                                 int64_t *out) {
  cs_candidate_list fit = {0};
  cs_status st = CS_OK;
  *out = entries;
  most = cs_min_i64(most, above - 1);
  if (most <= entries) return CS_OK;
  CS_TRY(st, enumerate_part(wanted, task, most, &fit), done);
  if (any_news(&fit, beyond)) *out = most;
done:
  cs_candidate_list_free(&fit);
  return st;
}

static cs_status look_for_fitting(const cs_wanted_parts *wanted, beyond_limit *beyond,
                                  fitting_sizes *out) {
  cs_status st = CS_OK;
  cs_candidate_list fit = {0};
  int64_t sizes[CS_MICRO_SIZES], above = beyond->batch;
  int n = cs_micro_sizes(beyond->batch, sizes);
  for (int i = 0; i < n && out->n < MOST_FITTING; i++) {
    int64_t most;
    if (!none_can_fit(beyond, sizes[i])) {
      CS_TRY(st, enumerate_part(wanted, out->task, sizes[i], &fit), done);
      if (mark_fitting(&fit, sizes[i], beyond, &most) > 0) {
        CS_TRY(
            st,
            largest_fitting(wanted, out->task, sizes[i], most, above, beyond, &out->sizes[out->n]),
            done);
        out->n++;
      }
    }
    above = sizes[i];
  }
done:
  cs_candidate_list_free(&fit);
  return st;
}

static cs_status find_fitting(const cs_wanted_parts *wanted, fitting_sizes *out) {
  cs_status st = CS_OK;
  const cs_settings *settings = &wanted->session->settings;
  const cs_op_desc *desc = &wanted->of->program->tasks[out->task].desc;
  const cs_backend *backend = wanted->session->device->backend;
  int64_t memory = backend->vtable->info(backend)->memory_bytes;
  beyond_limit beyond = {.batch = wanted->of->program->graph->batch,
                         .limit = settings->options.workspace_limit};
  CS_TRY(st, enumerate(wanted, desc, memory > 0 ? memory : INT64_MAX / 2, &beyond.all), done);
  keep_what_does_not_fit(desc, settings, &beyond.all);
  beyond.fits = cs_calloc(beyond.all.n, sizeof *beyond.fits);
  beyond.news = cs_calloc(beyond.all.n, sizeof *beyond.news);
  if (!beyond.fits || !beyond.news) {
    st = cs_no_memory("candidates", beyond.all.n);
    goto done;
  }
  st = look_for_fitting(wanted, &beyond, out);
done:
  cs_candidate_list_free(&beyond.all);
  free(beyond.fits);
  free(beyond.news);
  return st;
}

/* ---- Of all operations, in parallel ---- */

typedef struct fitting_work {
  const cs_wanted_parts *wanted;
  fitting_sizes *operations;
} fitting_work;

static cs_status find_one(void *user, int64_t index, int worker) {
  const fitting_work *work = user;
  (void)worker;
  return find_fitting(work->wanted, &work->operations[index]);
}

static int by_share(const void *a, const void *b) {
  const fitting_sizes *x = a, *y = b;
  if (x->share != y->share) return x->share < y->share ? 1 : -1;
  return (x->task > y->task) - (x->task < y->task);
}

/* Distinct operations that divide and take a share worth the trouble, the largest first. */
static cs_status distinct_operations(const cs_wanted_parts *wanted, fitting_sizes *out, int *n) {
  cs_status st = CS_OK;
  const cs_program *program = wanted->of->program;
  double all = cs_program_cost(program, wanted->of->choices);
  int kept = 0;
  uint64_t *seen = cs_calloc((size_t)program->n_tasks, sizeof *seen);
  *n = 0;
  if (!seen) return cs_no_memory("operations", (size_t)program->n_tasks * sizeof *seen);
  for (int t = 0; t < program->n_tasks; t++) {
    char *signature = NULL;
    double us = wanted->of->choices[t].choices[0].cold_us;
    int i = 0;
    if (!cs_micro_divides(program, t)) continue;
    CS_TRY(st, cs_op_signature(&program->tasks[t].desc, &signature), done);
    uint64_t key = cs_hash_string(CS_HASH_SEED, signature);
    free(signature);
    while (i < *n && seen[i] != key) i++;
    if (i == *n) {
      seen[i] = key;
      out[(*n)++] = (fitting_sizes){.task = t};
    }
    out[i].share += us;
  }
  qsort(out, (size_t)*n, sizeof *out, by_share);
  for (int i = 0; i < *n; i++) {
    out[i].share /= all;
    kept += out[i].share >= LEAST_SHARE;
  }
  *n = kept;
done:
  free(seen);
  return st;
}

cs_status cs_want_fitting(cs_wanted_parts *wanted) {
  cs_status st = CS_OK;
  size_t most = (size_t)wanted->of->program->n_tasks;
  fitting_work work = {.wanted = wanted, .operations = cs_calloc(most, sizeof *work.operations)};
  int n = 0;
  if (!work.operations) return cs_no_memory("operations", most * sizeof *work.operations);
  CS_TRY(st, distinct_operations(wanted, work.operations, &n), done);
  CS_TRY(st, cs_parallel_stage("looking for micro-batches", "operations", n, 0, find_one, &work),
         done);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < work.operations[i].n; k++) {
      CS_TRY(st, cs_want_parts(wanted, work.operations[i].task, work.operations[i].sizes[k]), done);
    }
  }
done:
  free(work.operations);
  return st;
}
