/* Random programs with random candidates for the scheduler's tests. A program made here has no
 * operators that mean anything: only tasks, tensors, buffers and dependencies. */
#ifndef CONVSCHED_TESTS_UNIT_SCHEDULER_FIXTURE_H_
#define CONVSCHED_TESTS_UNIT_SCHEDULER_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#include "scheduler/internal.h"

typedef struct fixture {
  cs_graph graph;
  cs_program program;
  cs_task_choices *choices;
} fixture;

#define assert_ok(expression)                                               \
  do {                                                                      \
    cs_status assert_st_ = (expression);                                    \
    if (assert_st_ != CS_OK) fail_msg("%s", cs_status_message(assert_st_)); \
  } while (0)

/* Fails with `code`, and the message holds `text`. */
#define assert_fails(expression, code, text)                                                  \
  do {                                                                                        \
    cs_status assert_st_ = (expression);                                                      \
    if (cs_status_code(assert_st_) != (code) || !strstr(cs_status_message(assert_st_), text)) \
      fail_msg("found code %d: %s; wanted code %d: %s", (int)cs_status_code(assert_st_),      \
               cs_status_message(assert_st_), (int)(code), text);                             \
    cs_status_free(assert_st_);                                                               \
  } while (0)

static inline int below(cs_rng *rng, int n) {
  return (int)(cs_rng_u32(rng) % (uint32_t)n);
}

static inline char *numbered(const char *prefix, int i) {
  char text[64];
  snprintf(text, sizeof text, "%s%d", prefix, i);
  return cs_strdup(text);
}

/* Room for n tasks, each with a buffer, and one more buffer as the graph's input. */
static inline void fixture_init(fixture *f, int n) {
  memset(f, 0, sizeof *f);
  size_t room = (size_t)n + 1;
  f->graph.name = cs_strdup("random");
  f->graph.batch = 1;
  f->program.graph = &f->graph;
  f->program.buffers = cs_calloc(room, sizeof *f->program.buffers);
  f->program.tensors = cs_calloc(2 * room, sizeof *f->program.tensors);
  f->program.tasks = cs_calloc(room, sizeof *f->program.tasks);
  f->choices = cs_calloc(room, sizeof *f->choices);
}

static inline void fixture_free(fixture *f) {
  for (int b = 0; b < f->program.n_buffers; b++) free(f->program.buffers[b].name);
  for (int t = 0; t < f->program.n_tasks; t++) {
    for (int c = 0; c < f->choices[t].n; c++) {
      cs_candidate *candidate = (cs_candidate *)(uintptr_t)f->choices[t].choices[c].candidate;
      cs_candidate_clear(candidate);
      free(candidate);
    }
    free(f->choices[t].choices);
    free(f->program.tasks[t].name);
    free(f->program.tasks[t].preds);
  }
  free(f->program.buffers);
  free(f->program.tensors);
  free(f->program.tasks);
  free(f->choices);
  free(f->graph.name);
}

static inline int add_buffer(fixture *f, int64_t bytes, cs_buffer_kind kind) {
  int b = f->program.n_buffers++;
  f->program.buffers[b] = (cs_buffer){bytes, kind, numbered("b", b)};
  return b;
}

static inline int add_tensor(fixture *f, int buffer) {
  f->program.tensors[f->program.n_tensors] = (cs_tensor){.value = -1, .buffer = buffer};
  return f->program.n_tensors++;
}

/* A task that reads n tensors and writes one; it depends on `preds` (ascending, each once). */
static inline int add_task(fixture *f, const int *inputs, int n, int output, const int *preds,
                           int n_preds) {
  int t = f->program.n_tasks++;
  cs_task *task = &f->program.tasks[t];
  task->name = numbered("t", t);
  task->desc.op = CS_OP_RELU;
  task->desc.n_inputs = n;
  for (int i = 0; i < n; i++) task->inputs[i] = inputs[i];
  task->output = output;
  task->preds = cs_calloc((size_t)n_preds, sizeof *task->preds);
  task->n_preds = n_preds;
  for (int i = 0; i < n_preds; i++) task->preds[i] = preds[i];
  return t;
}

static inline void add_choice(fixture *f, int task, double us, int64_t workspace) {
  cs_task_choices *own = &f->choices[task];
  own->choices = realloc(own->choices, (size_t)(own->n + 1) * sizeof *own->choices);
  cs_candidate *candidate = cs_calloc(1, sizeof *candidate);
  candidate->id = numbered("test:", own->n);
  candidate->family = cs_strdup("test");
  candidate->workspace_bytes = workspace;
  candidate->deterministic = true;
  own->choices[own->n++] = (cs_choice){.candidate = candidate, .cold_us = us, .warm_us = us};
}

static inline void random_choices(fixture *f, cs_rng *rng, int task, int most, int64_t workspace) {
  int n = 1 + below(rng, most);
  double us = 1 + below(rng, 50);
  for (int c = 0; c < n; c++) {
    int64_t bytes = below(rng, 10) < 4 ? 0 : (int64_t)below(rng, (int)workspace) + 1;
    add_choice(f, task, us, bytes);
    us += below(rng, 20);
  }
}

/* A task that reads the outputs of up to three others and writes a buffer of its own. */
static inline int simple_task(fixture *f, const int *preds, int n_preds, double us) {
  int inputs[CS_MAX_OP_INPUTS], n_inputs = n_preds;
  for (int i = 0; i < n_preds; i++) inputs[i] = f->program.tasks[preds[i]].output;
  if (n_preds == 0) {
    inputs[0] = add_tensor(f, add_buffer(f, 256, CS_BUFFER_INTERMEDIATE));
    n_inputs = 1;
  }
  int output = add_tensor(f, add_buffer(f, 256, CS_BUFFER_INTERMEDIATE));
  int t = add_task(f, inputs, n_inputs, output, preds, n_preds);
  if (us > 0) add_choice(f, t, us, 0);
  return t;
}

/* Dependencies alone: every task reads the graph's input and writes a buffer of its own. */
static inline int task_behind(fixture *f, const int *preds, int n_preds, double us) {
  int input = f->program.n_tensors ? 0 : add_tensor(f, add_buffer(f, 256, CS_BUFFER_INPUT));
  int t = add_task(f, &input, 1, add_tensor(f, add_buffer(f, 256, CS_BUFFER_INTERMEDIATE)), preds,
                   n_preds);
  add_choice(f, t, us, 0);
  return t;
}

static inline void random_tasks(fixture *f, cs_rng *rng, int n) {
  fixture_init(f, n);
  int density = 1 + below(rng, 5);
  for (int t = 0; t < n; t++) {
    int preds[64], n_preds = 0;
    for (int u = 0; u < t; u++)
      if (below(rng, density) == 0) preds[n_preds++] = u;
    task_behind(f, preds, n_preds, 1 + below(rng, 20));
  }
}

/* Tasks write buffers of their own or, some in a row, slices of a shared one; they read up to three
 * of what was written before, slices or whole buffers. */
static inline void random_program(fixture *f, cs_rng *rng, int n, int reach) {
  fixture_init(f, n);
  int *first_writer = cs_calloc(2 * ((size_t)n + 1), sizeof *first_writer); /* per tensor */
  int *n_writers = cs_calloc(2 * ((size_t)n + 1), sizeof *n_writers);
  int input = add_tensor(f, add_buffer(f, 1 + below(rng, 4000), CS_BUFFER_INPUT));
  n_writers[input] = 0;
  int slices = 0, group = -1, group_first = 0;
  for (int t = 0; t < n; t++) {
    bool *pred = cs_calloc((size_t)n, sizeof *pred);
    int inputs[CS_MAX_OP_INPUTS], n_inputs = 1 + below(rng, CS_MAX_OP_INPUTS);
    for (int i = 0; i < n_inputs; i++) {
      int from = f->program.n_tensors - reach;
      from = from < 0 || below(rng, 10) == 0 ? 0 : from;
      inputs[i] = from + below(rng, f->program.n_tensors - from);
      for (int w = 0; w < n_writers[inputs[i]]; w++) pred[first_writer[inputs[i]] + w] = true;
    }
    int preds[4096], n_preds = 0;
    for (int u = 0; u < t; u++)
      if (pred[u]) preds[n_preds++] = u;
    free(pred);
    bool own = slices == 0;
    if (own && t + 4 < n && below(rng, 4) == 0) {
      slices = 2 + below(rng, 3);
      group = add_buffer(f, 300 + below(rng, 9000), CS_BUFFER_INTERMEDIATE);
      group_first = t;
      own = false;
    }
    int kind = t == n - 1 || below(rng, 20) == 0 ? CS_BUFFER_OUTPUT : CS_BUFFER_INTERMEDIATE;
    int buffer = own ? add_buffer(f, below(rng, 5000), (cs_buffer_kind)kind) : group;
    int output = add_tensor(f, buffer);
    first_writer[output] = t;
    n_writers[output] = 1;
    add_task(f, inputs, n_inputs, output, preds, n_preds);
    if (!own && --slices == 0) { /* the whole, written by all slices */
      int whole = add_tensor(f, group);
      first_writer[whole] = group_first;
      n_writers[whole] = t - group_first + 1;
    }
    random_choices(f, rng, t, 4, 10000);
  }
  free(first_writer);
  free(n_writers);
}

static inline cs_policy_input fixture_input(const fixture *f, int max_streams,
                                            int64_t workspace_limit, int64_t memory_limit) {
  return (cs_policy_input){.program = &f->program,
                           .choices = f->choices,
                           .max_streams = max_streams,
                           .workspace_limit = workspace_limit,
                           .memory_limit = memory_limit,
                           .seed = 7,
                           .device_identity = "test device",
                           .graph_hash = 42};
}

/* Plans under a memory limit that may be too small: within it, or refused with a larger one that is
 * accepted. The plan made. */
static inline cs_plan *make_in_memory(const cs_policy *policy, cs_policy_input input) {
  cs_plan *plan = NULL;
  long long least = 0;
  cs_status st = cs_plan_make(policy, &input, &plan);
  if (st != CS_OK) {
    const char *message = cs_status_message(st);
    const char *at = strstr(message, "the smallest possible is ");
    if (cs_status_code(st) != CS_CODE_NOT_FOUND || !strstr(message, "memory limit") || !at ||
        sscanf(at, "the smallest possible is %lld", &least) != 1)
      fail_msg("%s", message);
    cs_status_free(st);
    assert_null(plan);
    assert_true(least > input.memory_limit);
    input.memory_limit = least;
    assert_ok(cs_plan_make(policy, &input, &plan));
  }
  assert_ok(cs_plan_check(plan, input.program, input.workspace_limit, input.memory_limit));
  return plan;
}

/* before[b][a] by brute force: a has always finished when b starts. Merged positions start and end
 * with their leader. Positions that a malformed plan waits for and that do not exist count for
 * nothing. */
#define ORACLE_MAX 64
typedef struct closure {
  bool before[ORACLE_MAX][ORACLE_MAX];
} closure;
static inline int launch_of(const cs_plan *plan, int p) {
  return plan->tasks[p].merged >= 0 ? plan->tasks[p].merged : p;
}
static inline void close_plan(const cs_plan *plan, closure *c) {
  memset(c, 0, sizeof *c);
  int n = plan->n_tasks;
  for (int p = 0; p < n; p++) {
    const cs_plan_task *own = &plan->tasks[launch_of(plan, p)];
    for (int q = 0; q < p; q++)
      if (plan->tasks[q].stream == own->stream && launch_of(plan, q) != launch_of(plan, p))
        c->before[p][q] = true;
    for (int w = 0; w < own->n_waits; w++)
      for (int q = 0; q < n && own->waits[w] >= 0 && own->waits[w] < n; q++)
        if (launch_of(plan, q) == launch_of(plan, own->waits[w])) c->before[p][q] = true;
  }
  for (int k = 0; k < n; k++)
    for (int p = 0; p < n; p++)
      for (int q = 0; q < n; q++)
        if (c->before[p][k] && c->before[k][q]) c->before[p][q] = true;
}

/* The heaviest antichain of workspaces by trying every set of tasks; n <= 16. */
static inline int64_t brute_peak(const cs_plan *plan, const closure *c) {
  int64_t best = 0;
  for (unsigned set = 0; set < 1u << plan->n_tasks; set++) {
    int64_t sum = 0;
    bool antichain = true;
    for (int p = 0; p < plan->n_tasks && antichain; p++) {
      if (!(set >> p & 1)) continue;
      sum += plan->tasks[p].workspace_bytes;
      for (int q = 0; q < p; q++)
        if ((set >> q & 1) && c->before[p][q]) antichain = false;
    }
    if (antichain && sum > best) best = sum;
  }
  return best;
}

#endif
