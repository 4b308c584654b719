/* Directed acyclic graphs: ancestors, longest paths, reduction, matching, width; and bit sets.
 * Pure.
 */
#ifndef CONVSCHED_BASE_DAG_H_
#define CONVSCHED_BASE_DAG_H_

#include "base/base.h"

/* ---- Bit sets: `words` 64-bit words a set ---- */

static inline size_t cs_bit_words(int n) {
  return ((size_t)n + 63) / 64;
}
static inline bool cs_bit_get(const uint64_t *set, int i) {
  return (set[i / 64] >> (i % 64)) & 1;
}
static inline void cs_bit_set(uint64_t *set, int i) {
  set[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void cs_bits_or(uint64_t *into, const uint64_t *from, size_t words) {
  for (size_t w = 0; w < words; w++) into[w] |= from[w];
}
static inline bool cs_bits_subset(const uint64_t *a, const uint64_t *b, size_t words) {
  for (size_t w = 0; w < words; w++)
    if (a[w] & ~b[w]) return false;
  return true;
}

/* ---- Graphs ---- */

/* Edges u → v over n nodes numbered in topological order: those into node v are from[first[v]] …
 * from[first[v + 1] − 1], ascending. */
typedef struct cs_dag {
  int n, n_edges;
  int *first; /* n + 1 */
  int *from;
} cs_dag;
/* n nodes without edges and room for `capacity` of them, to be added node by node: from[n_edges++],
 * then first[v + 1] = n_edges. */
cs_status cs_dag_create(int n, int capacity, cs_dag *out) CS_MUST_USE;
void cs_dag_free(cs_dag *dag);
/* Ancestors of every node as n bit sets of cs_bit_words(n) words; NULL: no memory. free() releases.
 */
uint64_t *cs_dag_ancestors(const cs_dag *dag);
/* The minimum equivalent graph: the transitive reduction. */
cs_status cs_dag_reduce(const cs_dag *dag, cs_dag *out) CS_MUST_USE;
/* Longest time from the start of each node to the end of the graph, the node's own included. */
cs_status cs_dag_remaining(const cs_dag *dag, const double *time_us, double *out) CS_MUST_USE;
/* The most of the chosen nodes of which none is an ancestor of another (Dilworth: as many as chains
 * needed to hold all of them). */
cs_status cs_dag_width(const cs_dag *dag, const bool *chosen, int *out) CS_MUST_USE;

/* Maximum bipartite matching (Hopcroft and Karp, 1973) over edges left → right given as a cs_dag's
 * "from" lists: left nodes that may be matched to right node v are from[first[v]] …. Fills
 * next[left] and prev[right] with the partner or −1; *size the number of pairs. */
cs_status cs_bipartite_match(const cs_dag *edges, int *next, int *prev, int *size) CS_MUST_USE;

#endif
