/* Graph algorithms over a program's tasks, which are numbered in topological order. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

void cs_dag_free(cs_dag *dag) {
  free(dag->first);
  free(dag->from);
  memset(dag, 0, sizeof *dag);
}

static cs_status allocate(cs_dag *dag, int n, int capacity) {
  memset(dag, 0, sizeof *dag);
  dag->n = n;
  dag->first = cs_calloc((size_t)n + 1, sizeof *dag->first);
  dag->from = cs_calloc((size_t)capacity, sizeof *dag->from);
  if (dag->first && dag->from) return CS_OK;
  cs_dag_free(dag);
  return cs_no_memory("a dependency graph", (size_t)capacity * sizeof *dag->from);
}

cs_status cs_dag_of_program(const cs_program *program, cs_dag *out) {
  int total = 0;
  for (int t = 0; t < program->n_tasks; t++) total += program->tasks[t].n_preds;
  CS_RETURN_IF_ERROR(allocate(out, program->n_tasks, total));
  for (int t = 0; t < program->n_tasks; t++) {
    const cs_task *task = &program->tasks[t];
    for (int i = 0; i < task->n_preds; i++) out->from[out->n_edges++] = task->preds[i];
    out->first[t + 1] = out->n_edges;
  }
  return CS_OK;
}

uint64_t *cs_dag_ancestors(const cs_dag *dag) {
  size_t words = cs_bit_words(dag->n), total = (size_t)dag->n * words;
  uint64_t *sets = cs_calloc(total, sizeof *sets);
  if (!sets) return NULL;
  for (int v = 0; v < dag->n; v++) {
    uint64_t *set = sets + (size_t)v * words;
    for (int e = dag->first[v]; e < dag->first[v + 1]; e++) {
      cs_bits_or(set, sets + (size_t)dag->from[e] * words, words);
      cs_bit_set(set, dag->from[e]);
    }
  }
  return sets;
}

/* An edge u → v is redundant when u is an ancestor of another predecessor of v. */
static bool redundant(const cs_dag *dag, const uint64_t *ancestors, int v, int edge) {
  size_t words = cs_bit_words(dag->n);
  for (int e = dag->first[v]; e < dag->first[v + 1]; e++)
    if (cs_bit_get(ancestors + (size_t)dag->from[e] * words, dag->from[edge])) return true;
  return false;
}

cs_status cs_dag_reduce(const cs_dag *dag, cs_dag *out) {
  uint64_t *ancestors = cs_dag_ancestors(dag);
  if (!ancestors) return cs_no_memory("the ancestors of tasks", (size_t)dag->n);
  cs_status st = allocate(out, dag->n, dag->n_edges);
  if (st == CS_OK) {
    for (int v = 0; v < dag->n; v++) {
      for (int e = dag->first[v]; e < dag->first[v + 1]; e++)
        if (!redundant(dag, ancestors, v, e)) out->from[out->n_edges++] = dag->from[e];
      out->first[v + 1] = out->n_edges;
    }
  }
  free(ancestors);
  return st;
}

cs_status cs_dag_remaining(const cs_dag *dag, const double *time_us, double *out) {
  double *behind = cs_calloc((size_t)dag->n, sizeof *behind);
  if (!behind) return cs_no_memory("remaining times", (size_t)dag->n * sizeof *behind);
  for (int v = dag->n - 1; v >= 0; v--) {
    out[v] = behind[v] + time_us[v];
    for (int e = dag->first[v]; e < dag->first[v + 1]; e++) {
      int u = dag->from[e];
      if (out[v] > behind[u]) behind[u] = out[v];
    }
  }
  free(behind);
  return CS_OK;
}
