/* Blocks of tasks: the program is cut wherever every task behind depends on every task before. */
#include <stdlib.h>

#include "scheduler/internal.h"

/* How many of the first tasks are in a set of ancestors, without a gap. */
static int leading_ancestors(const uint64_t *set, int n) {
  for (size_t w = 0; w < cs_bit_words(n); w++)
    if (~set[w]) return (int)(w * 64) + __builtin_ctzll(~set[w]);
  return n;
}

cs_status cs_dag_of_program(const cs_program *program, cs_dag *out) {
  int total = 0;
  for (int t = 0; t < program->n_tasks; t++) total += program->tasks[t].n_preds;
  CS_RETURN_IF_ERROR(cs_dag_create(program->n_tasks, total, out));
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    for (int i = 0; i < task->n_preds; i++) out->from[out->n_edges++] = task->preds[i];
    out->first[t + 1] = out->n_edges;
  }
  return CS_OK;
}

void cs_dag_blocks(const uint64_t *ancestors, int n, bool *closes) {
  int shared = n; /* first tasks that all later ones depend on */
  for (int t = n - 1; t >= 0; t--) {
    closes[t] = shared > t;
    int leading = leading_ancestors(ancestors + (size_t)t * cs_bit_words(n), n);
    if (leading < shared) shared = leading;
  }
}

cs_status cs_program_blocks(const cs_program *program, int *block_of, int *n_blocks) {
  cs_status st = CS_OK;
  cs_dag dag = {0};
  int n = program->n_tasks;
  uint64_t *ancestors = NULL;
  bool *closes = cs_calloc((size_t)n, sizeof *closes);
  CS_TRY(st, cs_dag_of_program(program, &dag), done);
  ancestors = cs_dag_ancestors(&dag);
  if (!closes || !ancestors)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the blocks of %d tasks", n);
  cs_dag_blocks(ancestors, n, closes);
  *n_blocks = 0;
  for (int t = 0; t < n; t++) {
    block_of[t] = *n_blocks;
    *n_blocks += closes[t];
  }
done:
  cs_dag_free(&dag);
  free(ancestors);
  free(closes);
  return st;
}
