/* What passes did with a graph's nodes, for a person. Pure. */
#ifndef CONVSCHED_GRAPH_TOLD_H_
#define CONVSCHED_GRAPH_TOLD_H_

#include "graph/graph.h"

/* The nodes of `bound` (as it was before passes) that a node of `passed` computes, in their order:
 * indices into bound->nodes, with room for bound->n_nodes. Identities are left out. Returns how
 * many; 0: they cannot be found again. */
int cs_graph_nodes_of(const cs_graph *bound, const cs_graph *passed, int node, int *out);

/* Whether passes fuse such a node into another where they can: BatchNormalization, activations,
 * Add. */
bool cs_graph_could_be_fused(cs_op op);
/* Appends why such a node of a graph after all passes still stands alone: "its input pool1 is a
 * MaxPool, which takes over nothing; …". */
void cs_graph_tell_why_alone(const cs_graph *passed, int node, cs_strbuf *out);

#endif
