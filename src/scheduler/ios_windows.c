/* Blocks of a program's tasks, and windows of blocks that are too large. */
#include <stdlib.h>

#include "scheduler/ios.h"

typedef struct cutter {
  const cs_policy_input *input;
  int n;
  cs_dag dag;
  size_t words;
  uint64_t *ancestors; /* per task */
  double *start_us;    /* per task: at the earliest */
  bool *closes;        /* per task: every later task depends on it and all before it */
} cutter;

/* ---- Windows ---- */

/* Do tasks of a window that is no wider than the limit stay so with one more? Width is tasks less
 * pairs of a maximum matching of the closed order (Dilworth); each new task may add a pair. */
typedef struct matching {
  const cutter *c;
  const int *tasks;
  int n, pairs;
  int next[CS_IOS_MOST_TASKS + 1]; /* later partner of an earlier task, −1: none */
} matching;

static bool pair_up(matching *m, int later, uint32_t *tried) {
  const uint64_t *before = m->c->ancestors + (size_t)m->tasks[later] * m->c->words;
  for (int earlier = 0; earlier < later; earlier++) {
    if (*tried >> earlier & 1 || !cs_bit_get(before, m->tasks[earlier])) continue;
    *tried |= UINT32_C(1) << earlier;
    if (m->next[earlier] >= 0 && !pair_up(m, m->next[earlier], tried)) continue;
    m->next[earlier] = later;
    return true;
  }
  return false;
}

/* How many of the tasks make a window, from the first on. */
static int window_length(const cutter *c, const int *tasks, int n) {
  matching m = {.c = c, .tasks = tasks};
  while (m.n < n && m.n < CS_IOS_MOST_TASKS) {
    uint32_t tried = 0;
    m.next[m.n] = -1;
    m.pairs += pair_up(&m, m.n, &tried);
    if (m.n + 1 - m.pairs > CS_IOS_MOST_WIDTH) break;
    m.n++;
  }
  return m.n;
}

typedef struct start_key {
  double start_us;
  int task;
} start_key;

static int compare_starts(const void *a, const void *b) {
  const start_key *x = a, *y = b;
  if (x->start_us != y->start_us) return x->start_us < y->start_us ? -1 : 1;
  return (x->task > y->task) - (x->task < y->task);
}

/* A task starts when its predecessors end, or together with them where they take no time: then the
 * lower number comes first. */
static cs_status order_by_start(const cutter *c, int *tasks, int n) {
  start_key *keys = cs_calloc((size_t)n, sizeof *keys);
  if (!keys) return cs_no_memory("the order of a block", (size_t)n * sizeof *keys);
  for (int i = 0; i < n; i++) keys[i] = (start_key){c->start_us[tasks[i]], tasks[i]};
  qsort(keys, (size_t)n, sizeof *keys, compare_starts);
  for (int i = 0; i < n; i++) tasks[i] = keys[i].task;
  free(keys);
  return CS_OK;
}

static cs_status cut_block(const cutter *c, cs_ios_windows *out, int begin, int end) {
  if (window_length(c, out->order + begin, end - begin) < end - begin)
    CS_RETURN_IF_ERROR(order_by_start(c, out->order + begin, end - begin));
  while (begin < end) {
    begin += window_length(c, out->order + begin, end - begin);
    out->first[++out->n] = begin;
  }
  return CS_OK;
}

/* ---- All of it ---- */

static void find_starts(cutter *c) {
  for (int t = 0; t < c->n; t++)
    for (int e = c->dag.first[t]; e < c->dag.first[t + 1]; e++) {
      int u = c->dag.from[e];
      double end = c->start_us[u] + c->input->choices[u].choices[0].cold_us;
      if (end > c->start_us[t]) c->start_us[t] = end;
    }
}

static bool allocate(cutter *c, cs_ios_windows *out) {
  size_t n = (size_t)c->n;
  c->start_us = cs_calloc(n, sizeof *c->start_us);
  c->closes = cs_calloc(n, sizeof *c->closes);
  c->ancestors = cs_dag_ancestors(&c->dag);
  out->order = cs_calloc(n, sizeof *out->order);
  out->first = cs_calloc(n + 1, sizeof *out->first);
  return c->start_us && c->closes && c->ancestors && out->order && out->first;
}

cs_status cs_ios_windows_of(const cs_policy_input *input, cs_ios_windows *out) {
  cs_status st = CS_OK;
  cutter c = {.input = input, .n = input->program->n_tasks};
  c.words = cs_bit_words(c.n);
  *out = (cs_ios_windows){0};
  CS_TRY(st, cs_dag_of_program(input->program, &c.dag), done);
  if (!allocate(&c, out))
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the windows of %d tasks", c.n);
  find_starts(&c);
  cs_dag_blocks(c.ancestors, c.n, c.closes);
  for (int t = 0, begin = 0; t < c.n; t++) {
    out->order[t] = t;
    if (!c.closes[t]) continue;
    CS_TRY(st, cut_block(&c, out, begin, t + 1), done);
    begin = t + 1;
  }
done:
  cs_dag_free(&c.dag);
  free(c.ancestors);
  free(c.start_us);
  free(c.closes);
  if (st != CS_OK) cs_ios_windows_free(out);
  return st;
}

void cs_ios_windows_free(cs_ios_windows *windows) {
  free(windows->order);
  free(windows->first);
  *windows = (cs_ios_windows){0};
}
