/* Micro-batches: how the batch of a graph's nodes is divided into parts that run as operations of
 * their own, one after the other or on several streams. Pure data. */
#ifndef CONVSCHED_GRAPH_DIVISION_H_
#define CONVSCHED_GRAPH_DIVISION_H_

#include "graph/graph.h"

#define CS_MOST_PARTS 1024 /* of one node */

/* The batch entries of each part, in order; they add up to the graph's batch. */
typedef struct cs_parts {
  int n;
  int64_t *sizes, *firsts; /* firsts: the first entry of each */
} cs_parts;

/* Nodes of the same list run part by part: a part of one node needs that part of the other alone.
 */
typedef struct cs_division {
  int n_nodes;
  int *list_of; /* per node: its list, -1: the node is whole */
  cs_parts *lists;
  int n_lists;
  size_t capacity;
} cs_division;

/* Whether every batch entry of the node's output is computed from the same entry of its inputs
 * alone, by an operation (views and Concat, which become none, are not divided). */
bool cs_node_divides(const cs_graph *graph, int node);

/* Every node whole. */
cs_status cs_division_create(const cs_graph *graph, cs_division **out) CS_MUST_USE;
void cs_division_destroy(cs_division *division);
cs_status cs_division_copy(const cs_division *from, cs_division **out) CS_MUST_USE;
/* Divides a node into parts of these sizes; n 1: it is whole again. BAD_INPUT, which names the
 * node: it does not divide, the sizes are no division of the batch, too many parts. */
cs_status cs_division_set(cs_division *division, const cs_graph *graph, int node,
                          const int64_t *sizes, int n) CS_MUST_USE;
/* n parts (of one entry, where the batch has fewer) that differ by one entry at most, larger ones
 * first: every node that divides. */
cs_status cs_division_evenly(cs_division *division, const cs_graph *graph, int n) CS_MUST_USE;
/* NULL: the node is whole (or `division` NULL). */
const cs_parts *cs_division_parts(const cs_division *division, int node);
/* Nodes in more than one part. */
int cs_division_count(const cs_division *division);

#endif
