/* Blocks: the nodes between values that every path from the inputs to the results passes. */
#include <stdlib.h>

#include "graph/graph.h"

/* A value of node i is a cut exactly if no other value made up to i is read after i: in topological
 * order every node before a cut leads to it and every node behind follows from it. Values that
 * nobody reads, and the graph's outputs, are read by the virtual sink behind all nodes. */
cs_status cs_graph_blocks(const cs_graph *graph, int *block_of, int *n_blocks) {
  int sink = graph->n_nodes;
  int *last_read = cs_calloc((size_t)graph->n_values, sizeof *last_read);
  if (!last_read) return cs_no_memory("last reads", (size_t)graph->n_values * sizeof *last_read);
  for (int v = 0; v < graph->n_values; v++) last_read[v] = -1;
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    for (int k = 0; k < node->n_inputs; k++) last_read[node->inputs[k]] = i;
  }
  for (int i = 0; i < graph->n_outputs; i++) last_read[graph->outputs[i]] = sink;
  int reach = -1; /* last read of any value but the newest */
  for (int i = 0; i < graph->n_inputs; i++) {
    int last = last_read[graph->inputs[i]];
    if (last > reach) reach = last;
  }
  int block = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    block_of[i] = block;
    int last = last_read[graph->nodes[i].output];
    if (last < 0) last = sink;
    if (reach <= i) block++;
    if (last > reach) reach = last;
  }
  *n_blocks = graph->n_nodes ? block_of[graph->n_nodes - 1] + 1 : 0;
  free(last_read);
  return CS_OK;
}
