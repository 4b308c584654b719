/* AveragePool whose one window is the whole input is GlobalAveragePool, which devices have faster
 * implementations for. */
#include <string.h>

#include "graph/graph_internal.h"

static bool covers_input(const cs_graph *graph, const cs_node *node) {
  const cs_pool_attrs *pool = &node->attrs.pool;
  const cs_shape *in = &graph->values[node->inputs[0]].shape;
  const cs_shape *out = &graph->values[node->output].shape;
  if (in->rank != 4) return false;
  for (int i = 0; i < 4; i++) {
    if (pool->pads[i] != 0) return false;
  }
  for (int i = 0; i < 2; i++) {
    if (out->dims[2 + i] != 1 || pool->kernel[i] != in->dims[2 + i] || pool->dilations[i] != 1) {
      return false;
    }
  }
  return true;
}

void cs_pass_global_pool(cs_rewrite *rewrite) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i] || node->op != CS_OP_AVERAGE_POOL || !covers_input(graph, node)) continue;
    node->op = CS_OP_GLOBAL_AVERAGE_POOL;
    memset(&node->attrs, 0, sizeof node->attrs);
  }
}
