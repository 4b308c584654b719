#include "base/dag.h"

#include <stdlib.h>
#include <string.h>

void cs_dag_free(cs_dag *dag) {
  free(dag->first);
  free(dag->from);
  memset(dag, 0, sizeof *dag);
}

cs_status cs_dag_create(int n, int capacity, cs_dag *out) {
  memset(out, 0, sizeof *out);
  out->n = n;
  out->first = cs_calloc((size_t)n + 1, sizeof *out->first);
  out->from = cs_calloc((size_t)capacity, sizeof *out->from);
  if (out->first && out->from) return CS_OK;
  cs_dag_free(out);
  return cs_no_memory("a dependency graph", (size_t)capacity * sizeof *out->from);
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
  if (!ancestors) return cs_no_memory("the ancestors of nodes", (size_t)dag->n);
  cs_status st = cs_dag_create(dag->n, dag->n_edges, out);
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
  if (!behind) return cs_no_memory("longest paths", (size_t)dag->n * sizeof *behind);
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

/* Edges from every chosen node's chosen ancestors, as a graph over the same nodes. */
static cs_status close_over(const cs_dag *dag, const bool *chosen, cs_dag *out) {
  size_t words = cs_bit_words(dag->n);
  int64_t edges = 0;
  uint64_t *ancestors = cs_dag_ancestors(dag);
  if (!ancestors) return cs_no_memory("the ancestors of nodes", (size_t)dag->n);
  for (int v = 0; v < dag->n; v++)
    for (int u = 0; chosen[v] && u < v; u++)
      edges += chosen[u] && cs_bit_get(ancestors + (size_t)v * words, u);
  cs_status st = edges > INT32_MAX ? cs_no_memory("pairs of nodes", SIZE_MAX)
                                   : cs_dag_create(dag->n, (int)edges, out);
  for (int v = 0; v < dag->n && st == CS_OK; v++) {
    for (int u = 0; chosen[v] && u < v; u++)
      if (chosen[u] && cs_bit_get(ancestors + (size_t)v * words, u)) out->from[out->n_edges++] = u;
    out->first[v + 1] = out->n_edges;
  }
  free(ancestors);
  return st;
}

cs_status cs_dag_width(const cs_dag *dag, const bool *chosen, int *out) {
  cs_dag closed = {0};
  int pairs = 0, n = 0;
  CS_RETURN_IF_ERROR(close_over(dag, chosen, &closed));
  cs_status st = CS_OK;
  int *partners = cs_calloc(2 * (size_t)dag->n + 1, sizeof *partners);
  if (!partners) {
    st = cs_no_memory("partners", 2 * (size_t)dag->n * sizeof *partners);
  } else {
    st = cs_bipartite_match(&closed, partners, partners + dag->n, &pairs);
  }
  for (int v = 0; v < dag->n; v++) n += chosen[v];
  *out = n - pairs;
  free(partners);
  cs_dag_free(&closed);
  return st;
}
