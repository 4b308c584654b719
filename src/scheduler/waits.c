/* Waits: the fewest that enforce the program's dependencies beside stream order. A merged launch is
 * waited for, and waits, at its leader. */
#include <stdlib.h>

#include "scheduler/internal.h"

/* State of one pass over the launch order. */
typedef struct wait_pass {
  const cs_program *program;
  cs_plan *plan;
  size_t words;
  uint64_t *before; /* per position */
  int *position_of; /* per task; -1 while not launched */
  int *last_on_stream;
  int *wanted; /* positions a task still has to wait for */
} wait_pass;

static bool implied_by_another(const wait_pass *pass, const int *wanted, int n, int i) {
  for (int j = 0; j < n; j++)
    if (j != i && cs_bit_get(pass->before + (size_t)wanted[j] * pass->words, wanted[i]))
      return true;
  return false;
}

static int compare_ints(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* `set` takes in a launch and what happens before it. */
static void add_launch(const wait_pass *pass, uint64_t *set, int leader) {
  int end = cs_plan_launch_end(pass->plan, leader);
  cs_bits_or(set, pass->before + (size_t)leader * pass->words, pass->words);
  for (int p = leader; p < end; p++) cs_bit_set(set, p);
}

static bool contains(const int *list, int n, int value) {
  for (int i = 0; i < n; i++)
    if (list[i] == value) return true;
  return false;
}

/* What the task at a position depends on and `set` does not hold. */
static cs_status collect_wanted(wait_pass *pass, int p, const uint64_t *set, int *n) {
  const cs_task *task = &pass->program->tasks[pass->plan->tasks[p].task];
  for (int i = 0; i < task->n_preds; i++) {
    int q = pass->position_of[task->preds[i]];
    if (q < 0)
      return cs_error(CS_CODE_INTERNAL,
                      "task %s is launched before (or with) %s, which it depends on", task->name,
                      pass->program->tasks[task->preds[i]].name);
    q = cs_plan_leader(pass->plan, q);
    if (!cs_bit_get(set, q) && !contains(pass->wanted, *n, q)) pass->wanted[(*n)++] = q;
  }
  return CS_OK;
}

static cs_status put_waits(const wait_pass *pass, int n, cs_plan_task *placed) {
  free(placed->waits);
  placed->n_waits = 0;
  placed->waits = NULL;
  if (n == 0) return CS_OK;
  placed->waits = cs_calloc((size_t)n, sizeof *placed->waits);
  if (!placed->waits) return cs_no_memory("the waits of a task", (size_t)n);
  for (int i = 0; i < n; i++)
    if (!implied_by_another(pass, pass->wanted, n, i))
      placed->waits[placed->n_waits++] = pass->wanted[i];
  qsort(placed->waits, (size_t)placed->n_waits, sizeof *placed->waits, compare_ints);
  return CS_OK;
}

/* One launch: positions from p up to, not including, end. */
static cs_status fill_launch(wait_pass *pass, int p, int end) {
  cs_plan_task *placed = &pass->plan->tasks[p];
  uint64_t *set = pass->before + (size_t)p * pass->words;
  int previous = pass->last_on_stream[placed->stream], n = 0;
  if (previous >= 0) add_launch(pass, set, previous);
  for (int q = p; q < end; q++) CS_RETURN_IF_ERROR(collect_wanted(pass, q, set, &n));
  CS_RETURN_IF_ERROR(put_waits(pass, n, placed));
  for (int i = 0; i < placed->n_waits; i++) add_launch(pass, set, placed->waits[i]);
  for (int q = p; q < end; q++) {
    pass->position_of[pass->plan->tasks[q].task] = q;
    if (q > p) CS_RETURN_IF_ERROR(put_waits(pass, 0, &pass->plan->tasks[q]));
  }
  pass->last_on_stream[placed->stream] = p;
  return CS_OK;
}

cs_status cs_plan_fill_waits(cs_plan *plan, const cs_program *program) {
  cs_status st = CS_OK;
  size_t n = (size_t)plan->n_tasks;
  wait_pass pass = {.program = program, .plan = plan, .words = cs_bit_words(plan->n_tasks)};
  pass.before = cs_calloc(n * pass.words, sizeof *pass.before);
  pass.position_of = cs_calloc(n, sizeof *pass.position_of);
  pass.last_on_stream = cs_calloc((size_t)plan->n_streams, sizeof *pass.last_on_stream);
  pass.wanted = cs_calloc(n, sizeof *pass.wanted);
  if (!pass.before || !pass.position_of || !pass.last_on_stream || !pass.wanted)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the waits of %zu tasks", n);
  for (size_t t = 0; t < n; t++) pass.position_of[t] = -1;
  for (int s = 0; s < plan->n_streams; s++) pass.last_on_stream[s] = -1;
  for (int p = 0, end = 0; p < plan->n_tasks; p = end) {
    end = cs_plan_launch_end(plan, p);
    CS_TRY(st, fill_launch(&pass, p, end), done);
  }
done:
  free(pass.before);
  free(pass.position_of);
  free(pass.last_on_stream);
  free(pass.wanted);
  return st;
}
