/* Sizes of parts that are worth measuring: at which candidates fit the workspace limit that do not
 * fit it with the whole batch, or tensors the cache. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/measure_session.h"
#include "runtime/micro_batches.h"
#include "runtime/search.h"

#define MOST_FITTING 4   /* sizes of one operation at which something else fits */
#define LEAST_SHARE 0.01 /* of all time that an operation takes for which sizes are looked for */
#define MEMORY_BOUND 0.4 /* of its time an operation takes to move its bytes */
#define LEAST_CACHE_GAIN 0.05 /* of all time that tensors between neighbours take to move */
#define AT_A_TIME 8           /* operations measured between two looks at the clock */

/* ---- Sizes ---- */

static void add_size(int64_t size, int64_t batch, int64_t out[CS_MICRO_SIZES], int *n) {
  if (size < 1 || size >= batch || *n == CS_MICRO_SIZES) return;
  int at = 0;
  while (at < *n && out[at] > size) at++;
  if (at < *n && out[at] == size) return;
  for (int i = (*n)++; i > at; i--) out[i] = out[i - 1];
  out[at] = size;
}

int cs_micro_sizes(int64_t batch, int64_t out[CS_MICRO_SIZES]) {
  int n = 0;
  for (int64_t size = batch; size > 1;) {
    size = (size + 1) / 2;
    add_size(size, batch, out, &n);
    add_size(batch % size, batch, out, &n);
  }
  return n;
}

cs_op_desc cs_micro_desc(const cs_op_desc *desc, int64_t entries) {
  cs_op_desc part = *desc;
  for (int i = 0; i < part.n_inputs; i++) part.inputs[i].shape.dims[0] = entries;
  part.output.shape.dims[0] = entries;
  return part;
}

int64_t cs_micro_bytes(const cs_op_desc *desc) {
  int64_t bytes = cs_tensor_span_bytes(&desc->output);
  for (int i = 0; i < desc->n_inputs; i++) bytes += cs_tensor_span_bytes(&desc->inputs[i]);
  return bytes;
}

bool cs_micro_divides(const cs_program *program, int task) {
  int node = program->tasks[task].node;
  return node >= 0 && cs_node_divides(program->graph, node);
}

cs_status cs_micro_is_known(const cs_session *session, const cs_measure_options *measure,
                            const cs_op_desc *desc, int64_t entries, bool *known) {
  char *signature = NULL;
  cs_op_desc part = cs_micro_desc(desc, entries);
  cs_completion wanted = {.workspace_limit = measure->workspace_limit,
                          .threads = measure->threads,
                          .full = measure->full};
  CS_RETURN_IF_ERROR(cs_op_signature(&part, &signature));
  const cs_op_profile *of = cs_profile_find(session->device->profile, signature);
  *known = cs_device_is_simulated(session->device) ? cs_op_profile_covered_once(of, &wanted)
                                                   : cs_op_profile_covers(of, &wanted);
  free(signature);
  return CS_OK;
}

/* ---- What is wanted ---- */

typedef struct wanted_parts {
  cs_session *session;
  const cs_undivided *of;
  cs_op_desc *descs;
  const char **names;
  size_t n, descs_capacity, names_capacity;
} wanted_parts;

static void release(wanted_parts *wanted) {
  free(wanted->descs);
  free(wanted->names);
}

static cs_status want(wanted_parts *wanted, int task, int64_t entries) {
  const cs_task *t = &wanted->of->program->tasks[task];
  int64_t batch = wanted->of->program->graph->batch;
  if (entries < 1 || entries >= batch) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_grow(&wanted->descs, &wanted->descs_capacity, wanted->n + 1, sizeof *wanted->descs));
  CS_RETURN_IF_ERROR(
      cs_grow(&wanted->names, &wanted->names_capacity, wanted->n + 1, sizeof *wanted->names));
  wanted->descs[wanted->n] = cs_micro_desc(&t->desc, entries);
  wanted->names[wanted->n++] = t->name;
  return CS_OK;
}

/* Parts of a size, and the one that is left. */
static cs_status want_parts(wanted_parts *wanted, int task, int64_t entries) {
  CS_RETURN_IF_ERROR(want(wanted, task, entries));
  return want(wanted, task, wanted->of->program->graph->batch % entries);
}

/* ---- By the workspace limit ---- */

static cs_status enumerate(const wanted_parts *wanted, const cs_op_desc *desc, int64_t limit,
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

static cs_status enumerate_part(const wanted_parts *wanted, int task, int64_t entries,
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
static cs_status largest_fitting(const wanted_parts *wanted, int task, int64_t entries,
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

static cs_status look_for_fitting(const wanted_parts *wanted, beyond_limit *beyond,
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

static cs_status find_fitting(const wanted_parts *wanted, fitting_sizes *out) {
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
  const wanted_parts *wanted;
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
static cs_status distinct_operations(const wanted_parts *wanted, fitting_sizes *out, int *n) {
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

static cs_status want_fitting(wanted_parts *wanted) {
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
      CS_TRY(st, want_parts(wanted, work.operations[i].task, work.operations[i].sizes[k]), done);
    }
  }
done:
  free(work.operations);
  return st;
}

/* ---- By the cache ---- */

/* Neighbours that take much of their time to move their tensors. */
static bool is_memory_bound(const wanted_parts *wanted, int task, double bandwidth) {
  const cs_task *t = &wanted->of->program->tasks[task];
  double us = cs_op_bytes(&t->desc) / bandwidth * 1e6;
  return cs_micro_divides(wanted->of->program, task) &&
         us >= MEMORY_BOUND * wanted->of->choices[task].choices[0].cold_us;
}

static cs_status want_run(wanted_parts *wanted, int first, int end, int64_t largest,
                          int64_t cache) {
  int64_t batch = wanted->of->program->graph->batch, sizes[CS_MICRO_SIZES];
  int n = cs_micro_sizes(batch, sizes), i = 0;
  if (largest * batch <= cache) return CS_OK; /* it stays there as it is */
  while (i < n && (sizes[i] > cache / largest || sizes[i] < batch % sizes[i])) i++;
  for (int t = first; i < n && t < end; t++) {
    CS_RETURN_IF_ERROR(want_parts(wanted, t, sizes[i]));
  }
  return CS_OK;
}

/* Runs of two and more; *saved: what their tensors between them take to be written and read, where
 * `add` is false and nothing is wanted yet. */
static cs_status walk_runs(wanted_parts *wanted, double bandwidth, int64_t cache, bool add,
                           double *saved) {
  const cs_program *program = wanted->of->program;
  for (int first = 0; first < program->n_tasks;) {
    int64_t largest = 0;
    int end = first;
    for (; end < program->n_tasks && is_memory_bound(wanted, end, bandwidth); end++) {
      const cs_op_desc *desc = &program->tasks[end].desc;
      largest =
          cs_max_i64(largest, cs_micro_bytes(desc) / cs_max_i64(1, desc->output.shape.dims[0]));
      if (end > first) {
        *saved += 2e6 * (double)cs_tensor_span_bytes(&desc->inputs[0]) / bandwidth;
      }
    }
    if (add && end - first > 1) CS_RETURN_IF_ERROR(want_run(wanted, first, end, largest, cache));
    first = end > first ? end : first + 1;
  }
  return CS_OK;
}

static cs_status want_resident(wanted_parts *wanted) {
  cs_session *session = wanted->session;
  cs_backend *backend = session->device->backend;
  const cs_device_info *info = backend->vtable->info(backend);
  double flops, bandwidth = info->peak_bandwidth, saved = 0;
  if (!(bandwidth > 0)) {
    CS_RETURN_IF_ERROR(cs_profile_peaks(session->device->profile, backend,
                                        session->settings.options.precision, wanted->of->measure,
                                        &flops, &bandwidth));
  }
  if (!(bandwidth > 0) || info->cache_bytes <= 0) return CS_OK;
  double all = cs_program_cost(wanted->of->program, wanted->of->choices);
  CS_RETURN_IF_ERROR(walk_runs(wanted, bandwidth, info->cache_bytes, false, &saved));
  if (saved < LEAST_CACHE_GAIN * all) return CS_OK;
  return walk_runs(wanted, bandwidth, info->cache_bytes, true, &saved);
}

/* ---- Measuring ---- */

static cs_status measure_wanted(const wanted_parts *wanted, double seconds,
                                cs_micro_measured *out) {
  cs_session *session = wanted->session;
  cs_status st = CS_OK;
  double begun = cs_now_seconds();
  const cs_op_desc **descs = cs_calloc(wanted->n, sizeof *descs);
  if (!descs) return cs_no_memory("operations", wanted->n * sizeof *descs);
  for (size_t i = 0; i < wanted->n; i++) descs[i] = &wanted->descs[i];
  for (size_t first = 0; first < wanted->n; first += AT_A_TIME) {
    cs_measure_report report = {0};
    cs_wanted some = {.profile = session->device->profile,
                      .backend = session->device->backend,
                      .options = wanted->of->measure,
                      .logger = &session->device->logger,
                      .report = &report};
    int n = (int)cs_min_i64(AT_A_TIME, (int64_t)(wanted->n - first));
    if (cs_now_seconds() - begun >= seconds) {
      cs_log(&session->device->logger, CS_LOG_INFO,
             "micro-batches: after %.1f s %zu of %zu sizes of parts are left unmeasured",
             cs_now_seconds() - begun, wanted->n - first, wanted->n);
      out->complete = false;
      break;
    }
    CS_TRY(st, cs_measure_wanted(&some, descs + first, wanted->names + first, n), done);
    out->operations += report.operations - report.operations_cached;
    session->timings.profile += report.seconds;
    cs_measure_report_add(&report, &session->planned.measured);
  }
done:
  free(descs);
  return st;
}

cs_status cs_micro_measure(cs_session *session, const cs_undivided *of, cs_micro_measured *out) {
  cs_status st = CS_OK;
  wanted_parts wanted = {.session = session, .of = of};
  double seconds = session->settings.options.search_seconds;
  if (seconds < 0) seconds = CS_SEARCH_SECONDS;
  out->complete = true;
  CS_TRY(st, cs_session_check_cancelled(session, "looking for micro-batches"), done);
  CS_TRY(st, want_fitting(&wanted), done);
  CS_TRY(st, want_resident(&wanted), done);
  cs_log(&session->device->logger, CS_LOG_DEBUG, "micro-batches: %zu sizes of parts wanted",
         wanted.n);
  st = measure_wanted(&wanted, seconds, out);
done:
  release(&wanted);
  return st;
}
