/* What a graph is made of, layer by layer, before any pass: work, blocks, width, critical path.
 * Pure: no profile, no device. */
#ifndef CONVSCHED_REPORT_STRUCTURE_H_
#define CONVSCHED_REPORT_STRUCTURE_H_

#include "base/dag.h"
#include "graph/graph.h"
#include "report/table.h"

typedef struct cs_layer {
  bool works;          /* computes or moves: not a view (Flatten, Reshape, …) */
  double flops, bytes; /* bytes: each input, weight and output once */
  int64_t parameters;
  int block;     /* from 0 */
  bool critical; /* on the path of most FLOPs through the graph */
  int before;    /* the node before it on that path; -1: it is the first, or not on it */
} cs_layer;

typedef struct cs_structure {
  const cs_graph *graph; /* bound; borrowed */
  cs_precision precision;
  cs_layer *layers; /* of every node, topological order */
  int n_blocks;
  int width;              /* the most layers that work of which none needs another */
  int width_convolutions; /* the same of convolutions alone */
  int longest;            /* layers that work on the longest path */
  double flops, bytes, critical_flops;
} cs_structure;

cs_status cs_structure_of(const cs_graph *bound, cs_precision precision,
                          cs_structure *out) CS_MUST_USE;
void cs_structure_free(cs_structure *structure);

/* A row for each node, with title, notes and `about` set; `out` is to be freed in any case. */
cs_status cs_report_layers(const cs_structure *structure, cs_table *out) CS_MUST_USE;
/* The graph in Graphviz's language, a cluster for each block of several nodes, the critical path
 * bold. free() releases. */
cs_status cs_report_dot(const cs_structure *structure, char **out) CS_MUST_USE;

#endif
