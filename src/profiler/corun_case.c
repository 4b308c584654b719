/* One set under measurement: which combinations of candidates, and the chains they run in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/corun.h"

#define CHAIN_US 300.0
#define LEAST_ROUNDS 4
#define SLOW_ROUND_US 1000.0 /* above it a chain may be one round */

/* ---- Combinations ---- */

static int64_t total(const int64_t workspace[][CS_PARETO_MOST], const int *choice, int n) {
  int64_t sum = 0;
  for (int i = 0; i < n; i++) sum += workspace[i][choice[i]];
  return sum;
}

/* The next of a member's candidates that needs less workspace than its present one; -1: none. */
static int next_smaller(const int64_t *workspace, int size, int from) {
  for (int i = 0; i < size; i++) {
    if (workspace[i] < workspace[from]) return i;
  }
  return -1;
}

bool cs_corun_base(const int64_t workspace[][CS_PARETO_MOST], const int *sizes, int n,
                   int64_t limit, int *choice) {
  for (int i = 0; i < n; i++) choice[i] = 0;
  while (total(workspace, choice, n) > limit) {
    int most = -1;
    for (int i = 0; i < n; i++) {
      if (next_smaller(workspace[i], sizes[i], choice[i]) < 0) continue;
      if (most < 0 || workspace[i][choice[i]] > workspace[most][choice[most]]) most = i;
    }
    if (most < 0) return false;
    choice[most] = next_smaller(workspace[most], sizes[most], choice[most]);
  }
  return true;
}

/* How many candidates each member contributes so that the product stays in bounds: one more where
 * there are fewest, of equals to the longest alone. */
static void share_product(const cs_corun_case *c, int *sizes) {
  bool full[CS_CORUN_MOST] = {false};
  for (int i = 0; i < c->n; i++) sizes[i] = 1;
  for (;;) {
    int product = 1, next = -1;
    for (int i = 0; i < c->n; i++) {
      product *= sizes[i];
      if (full[i] || sizes[i] >= c->members[i]->operation.n_trials) continue;
      double us = c->members[i]->operation.trials[0].rough_us;
      if (next < 0 || sizes[i] < sizes[next] ||
          (sizes[i] == sizes[next] && us > c->members[next]->operation.trials[0].rough_us)) {
        next = i;
      }
    }
    if (next < 0) return;
    if (product / sizes[next] * (sizes[next] + 1) <= CS_CORUN_COMBINATIONS) {
      sizes[next]++;
    } else {
      full[next] = true;
    }
  }
}

/* The member's Pareto set thinned to `size`, as indices of its trials. */
static int thinned(const cs_corun_op *op, const cs_profiling *profiling, int size, int *out) {
  const cs_record *set[CS_PARETO_MOST];
  int n = cs_op_pareto(cs_profile_find(profiling->profile, op->operation.signature),
                       profiling->backend->vtable->info(profiling->backend), profiling->options,
                       size, set);
  int found = 0;
  for (int i = 0; i < n; i++) {
    for (int t = 0; t < op->operation.n_trials; t++) {
      const cs_trial *trial = &op->operation.trials[t];
      if (!trial->exec || trial->rejected) continue;
      if (strcmp(trial->candidate.id, set[i]->candidate.id) == 0) out[found++] = t;
    }
  }
  return found;
}

static void fill_times(const cs_corun_case *c, cs_combination *combination) {
  combination->alone_us = combination->longest_us = 0;
  for (int i = 0; i < c->n; i++) {
    double us = c->members[i]->operation.trials[combination->choice[i]].rough_us;
    combination->alone_us += us;
    combination->longest_us = fmax(combination->longest_us, us);
  }
}

/* Members of one signature are alike: only one order of their choices is tried. */
static bool is_canonical(const cs_corun_case *c, const int *choice) {
  for (int i = 0; i < c->n; i++) {
    for (int k = i + 1; k < c->n; k++) {
      if (choice[i] > choice[k] &&
          strcmp(c->members[i]->operation.signature, c->members[k]->operation.signature) == 0) {
        return false;
      }
    }
  }
  return true;
}

static int compare_combinations(const void *a, const void *b) {
  const cs_combination *x = a, *y = b;
  if (x->alone_us != y->alone_us) return x->alone_us < y->alone_us ? -1 : 1;
  return memcmp(x->choice, y->choice, sizeof x->choice);
}

/* All others that fit the limit, by the sum of their times alone. */
static void add_combinations(cs_corun_case *c, const int64_t workspace[][CS_PARETO_MOST]) {
  const cs_profiling *profiling = c->group->profiling;
  int sizes[CS_CORUN_MOST], options[CS_CORUN_MOST][CS_PARETO_MOST], at[CS_CORUN_MOST] = {0};
  share_product(c, sizes);
  for (int i = 0; i < c->n; i++) {
    sizes[i] = thinned(c->members[i], profiling, sizes[i], options[i]);
    if (sizes[i] == 0) return;
  }
  for (int i = 0; i < c->n && c->n_combinations < CS_CORUN_COMBINATIONS;) {
    cs_combination next = {.alone_us = 0};
    for (int k = 0; k < c->n; k++) next.choice[k] = options[k][at[k]];
    bool is_base = memcmp(next.choice, c->combinations[0].choice, sizeof next.choice) == 0;
    if (!is_base && is_canonical(c, next.choice) &&
        total(workspace, next.choice, c->n) <= profiling->options->workspace_limit) {
      fill_times(c, &next);
      c->combinations[c->n_combinations++] = next;
    }
    for (i = 0; i < c->n && ++at[i] == sizes[i]; i++) at[i] = 0;
  }
  if (c->n_combinations > 2) {
    qsort(&c->combinations[1], (size_t)c->n_combinations - 1, sizeof *c->combinations,
          compare_combinations);
  }
}

/* ---- The chain ---- */

static void sort_issue(cs_corun_case *c) {
  for (int i = 0; i < c->n; i++) {
    int at = i;
    double us = c->members[i]->operation.trials[0].rough_us;
    for (; at > 0; at--) {
      if (c->members[c->issue_order[at - 1]]->operation.trials[0].rough_us >= us) break;
      c->issue_order[at] = c->issue_order[at - 1];
    }
    c->issue_order[at] = i;
  }
}

/* As of one operation (measure_rounds.c): copies enough that a chain is past twice the cache before
 * it comes back to one, or the cache emptied before each sample where that is much shorter. */
static cs_status plan_chain(cs_corun_case *c) {
  const cs_measuring *m = c->group->measuring;
  int64_t bytes = 0, cap = cs_measure_memory_cap(m) / c->group->n;
  double us = fmax(c->combinations[0].alone_us, 0.1);
  int most = CS_MAX_CHAIN / c->n;
  int64_t fits = most;
  for (int i = 0; i < c->n; i++) {
    int64_t one = cs_max_i64(1, cs_op_buffers_set_bytes(&c->members[i]->buffers));
    bytes += one;
    fits = cs_min_i64(fits, cs_max_i64(1, cap / one));
  }
  double timed = fmin(fmax(ceil(CHAIN_US / us), us > SLOW_ROUND_US ? 1 : LEAST_ROUNDS), most);
  double covering = m->scrub_bytes > 0 ? ceil((double)m->scrub_bytes / (double)bytes) + 1 : timed;
  double rotated = fmax(covering, timed) * us, scrubbed = timed * us + m->scrub_us;
  bool rotates = covering <= (double)fits && rotated <= 2 * scrubbed;
  c->rounds = (int)(rotates ? fmax(covering, timed) : timed);
  c->copies = (int)(rotates ? covering : fmin(timed, (double)fits));
  c->scrub = !rotates && m->scrub != NULL;
  for (int i = 0; i < c->n; i++) {
    CS_RETURN_IF_ERROR(cs_op_buffers_grow(&c->members[i]->buffers, c->copies));
  }
  return CS_OK;
}

cs_status cs_corun_schedule(const cs_corun_case *c, const cs_combination *combination,
                            cs_corun_way way, cs_schedule **out) {
  const bool together = way == CS_CORUN_COLD || way == CS_CORUN_WARM;
  const bool warm = way == CS_CORUN_WARM || way == CS_CORUN_SERIAL_WARM;
  cs_launch launches[CS_MAX_CHAIN];
  int waits[CS_MAX_CHAIN][CS_CORUN_MOST], n = 0;
  cs_backend *backend = c->group->profiling->backend;
  int64_t cap = cs_measure_memory_cap(c->group->measuring) / c->group->n / 4;
  for (int round = 0; round < c->rounds; round++) {
    int before = n - c->n; /* the first launch of the round before */
    for (int i = 0; i < c->n; i++, n++) {
      cs_corun_op *op = c->members[c->issue_order[i]];
      const cs_trial *trial = &op->operation.trials[combination->choice[c->issue_order[i]]];
      CS_RETURN_IF_ERROR(cs_op_buffers_grow_pool(&op->buffers, trial, c->copies, cap));
      launches[n] = cs_op_buffers_launch(&op->buffers, trial, warm ? 0 : round % c->copies);
      if (!together) continue;
      launches[n].stream = i;
      launches[n].waits = waits[n];
      for (int k = 0; round > 0 && k < c->n; k++) {
        if (k != i) waits[n][launches[n].n_waits++] = before + k;
      }
    }
  }
  const cs_stream_set streams = {.n = together ? c->n : 1};
  CS_RETURN_IF_ERROR(backend->vtable->schedule_create(backend, launches, n, &streams, true, out));
  return backend->vtable->schedule_run(*out); /* the first replay is not a sample */
}

cs_status cs_corun_sample(const cs_corun_case *c, cs_combination *combination, int at) {
  const cs_measuring *m = c->group->measuring;
  const cs_backend_vtable *vtable = m->backend->vtable;
  for (int w = 0; w < CS_CORUN_WAYS; w++) {
    if (!combination->schedules[w]) continue;
    if (c->scrub && (w == CS_CORUN_COLD || w == CS_CORUN_SERIAL)) {
      CS_RETURN_IF_ERROR(vtable->fill(m->backend, m->scrub, 0, m->scrub_bytes));
    } else if (c->scrub) {
      /* What ran before is no longer in the cache: one replay brings it back. */
      CS_RETURN_IF_ERROR(vtable->schedule_run(combination->schedules[w]));
    }
    double us = 0;
    CS_RETURN_IF_ERROR(vtable->schedule_latency(combination->schedules[w], 1, &us));
    combination->us[w][at] = us / c->rounds;
    combination->n[w] = at + 1;
  }
  return CS_OK;
}

void cs_combination_drop(const cs_corun_case *c, cs_combination *combination) {
  const cs_backend_vtable *vtable = c->group->profiling->backend->vtable;
  for (int w = 0; w < CS_CORUN_WAYS; w++) {
    if (combination->schedules[w]) vtable->schedule_destroy(combination->schedules[w]);
    combination->schedules[w] = NULL;
  }
}

/* ---- Setting up ---- */

static cs_corun_op *find_op(cs_corun_group *group, int task) {
  for (int i = 0; i < group->n; i++) {
    if (group->ops[i].task == task) return &group->ops[i];
  }
  return NULL;
}

static bool set_up_combinations(cs_corun_case *c) {
  int64_t workspace[CS_CORUN_MOST][CS_PARETO_MOST] = {{0}};
  int sizes[CS_CORUN_MOST];
  for (int i = 0; i < c->n; i++) {
    const cs_operation *operation = &c->members[i]->operation;
    sizes[i] = operation->n_trials;
    for (int t = 0; t < sizes[i]; t++) {
      workspace[i][t] = operation->trials[t].candidate.workspace_bytes;
    }
  }
  cs_combination *base = &c->combinations[0];
  int64_t limit = c->group->profiling->options->workspace_limit;
  if (!cs_corun_base((const int64_t(*)[CS_PARETO_MOST])workspace, sizes, c->n, limit,
                     base->choice)) {
    return false;
  }
  for (int i = 0; i < c->n; i++) {
    const cs_trial *trial = &c->members[i]->operation.trials[base->choice[i]];
    if (!trial->exec || trial->rejected) return false;
  }
  fill_times(c, base);
  c->n_combinations = 1;
  add_combinations(c, (const int64_t(*)[CS_PARETO_MOST])workspace);
  return true;
}

cs_status cs_corun_case_create(cs_corun_group *group, const cs_corun_set *set,
                               cs_corun_case **out) {
  *out = NULL;
  cs_corun_case *c = cs_calloc(1, sizeof *c);
  if (!c) return cs_no_memory("a set of operations", sizeof *c);
  c->group = group;
  for (int i = 0; i < set->n; i++) c->members[c->n++] = find_op(group, set->tasks[i]);
  sort_issue(c);
  if (!set_up_combinations(c)) {
    free(c);
    return CS_OK;
  }
  cs_status st = plan_chain(c);
  if (st != CS_OK) {
    free(c);
    return st;
  }
  *out = c;
  return CS_OK;
}

void cs_corun_case_destroy(cs_corun_case *c) {
  if (!c) return;
  for (int i = 0; i < c->n_combinations; i++) cs_combination_drop(c, &c->combinations[i]);
  free(c);
}
