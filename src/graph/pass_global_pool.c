/* AveragePool whose one window is the whole input, ReduceMean and ReduceMax over H and W are
 * GlobalAveragePool and GlobalMaxPool, which devices have faster implementations for. */
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

static bool reduces_planes(const cs_graph *graph, const cs_node *node) {
  const cs_reduce_attrs *reduce = &node->attrs.reduce;
  return graph->values[node->inputs[0]].shape.rank == 4 && reduce->keepdims &&
         reduce->n_axes == 2 && reduce->axes[0] == 2 && reduce->axes[1] == 3;
}

/* CS_OP_COUNT: it is none. */
static cs_op global_pool_of(const cs_graph *graph, const cs_node *node) {
  switch (node->op) {
    case CS_OP_AVERAGE_POOL:
      return covers_input(graph, node) ? CS_OP_GLOBAL_AVERAGE_POOL : CS_OP_COUNT;
    case CS_OP_REDUCE_MEAN:
      return reduces_planes(graph, node) ? CS_OP_GLOBAL_AVERAGE_POOL : CS_OP_COUNT;
    case CS_OP_REDUCE_MAX:
      return reduces_planes(graph, node) ? CS_OP_GLOBAL_MAX_POOL : CS_OP_COUNT;
    default:
      return CS_OP_COUNT;
  }
}

void cs_pass_global_pool(cs_rewrite *rewrite) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    cs_op made = rewrite->dead[i] ? CS_OP_COUNT : global_pool_of(graph, node);
    if (made == CS_OP_COUNT) continue;
    node->op = made;
    memset(&node->attrs, 0, sizeof node->attrs);
  }
}
