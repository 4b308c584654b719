#include "scheduler/layout_cost.h"

#include <stdlib.h>

#define NOT_ASKED (-2.0)

cs_status cs_layout_costs_init(cs_layout_costs *costs, const cs_graph *graph,
                               cs_precision precision, cs_cost_fn cost, void *user) {
  *costs = (cs_layout_costs){
      .graph = graph, .precision = precision, .cost = cost, .user = user, .memo = json_object()};
  size_t nodes = (size_t)graph->n_nodes, values = (size_t)graph->n_values;
  costs->node_us = cs_calloc(nodes, sizeof *costs->node_us);
  costs->copy_us = cs_calloc(values, sizeof *costs->copy_us);
  costs->copied = cs_calloc(values, sizeof *costs->copied);
  if (!costs->memo || !costs->node_us || !costs->copy_us || !costs->copied)
    return cs_no_memory("the costs of layouts", values * sizeof *costs->copy_us);
  for (size_t i = 0; i < nodes; i++)
    for (int l = 0; l < CS_LAYOUT_COUNT; l++) costs->node_us[i][l] = NOT_ASKED;
  for (size_t v = 0; v < values; v++)
    for (int from = 0; from < CS_LAYOUT_COUNT; from++)
      for (int to = 0; to < CS_LAYOUT_COUNT; to++) costs->copy_us[v][from][to] = NOT_ASKED;
  return CS_OK;
}

void cs_layout_costs_free(cs_layout_costs *costs) {
  json_decref(costs->memo);
  free(costs->node_us);
  free(costs->copy_us);
  free(costs->copied);
}

void cs_layout_costs_begin(cs_layout_costs *costs) {
  costs->evaluation++;
}

/* Asks for an operation's cost, once per signature. */
static cs_status ask(cs_layout_costs *costs, const cs_op_desc *desc, double *us) {
  char *signature = NULL;
  CS_RETURN_IF_ERROR(cs_op_signature(desc, &signature));
  cs_status st = CS_OK;
  const json_t *known = json_object_get(costs->memo, signature);
  *us = known ? json_real_value(known) : costs->cost(costs->user, desc);
  if (!known && json_object_set_new(costs->memo, signature, json_real(*us)) != 0)
    st = cs_no_memory("the costs of layouts", 0);
  free(signature);
  return st;
}

static cs_status node_cost(cs_layout_costs *costs, int node, cs_layout layout, double *us) {
  double *known = &costs->node_us[node][layout];
  if (*known == NOT_ASKED) {
    cs_op_desc desc;
    CS_RETURN_IF_ERROR(cs_graph_node_desc(costs->graph, node, costs->precision, layout, &desc));
    CS_RETURN_IF_ERROR(ask(costs, &desc, known));
    if (*known < 0) *known = -1;
  }
  *us = *known;
  return CS_OK;
}

static cs_status copy_cost(cs_layout_costs *costs, int value, cs_layout from, cs_layout to,
                           double *us) {
  double *known = &costs->copy_us[value][from][to];
  if (*known == NOT_ASKED) {
    const cs_shape *shape = &costs->graph->values[value].shape;
    cs_dtype dtype = cs_precision_storage(costs->precision);
    cs_op_desc desc = {.op = CS_OP_COPY, .n_inputs = 1, .precision = costs->precision};
    desc.inputs[0] = cs_tensor_dense(shape, dtype, from);
    desc.output = cs_tensor_dense(shape, dtype, to);
    CS_RETURN_IF_ERROR(ask(costs, &desc, known));
    if (*known < 0) *known = -1;
  }
  *us = *known;
  return CS_OK;
}

/* A copy that every reader of the value in that layout shares. */
static cs_status shared_copy(cs_layout_costs *costs, int value, cs_layout from, cs_layout to,
                             double *us) {
  *us = 0;
  if (from == to || costs->copied[value][to] == costs->evaluation) return CS_OK;
  CS_RETURN_IF_ERROR(copy_cost(costs, value, from, to, us));
  if (*us >= 0) costs->copied[value][to] = costs->evaluation;
  return CS_OK;
}

static bool lies_in_place(const cs_graph *graph, int value, int concat, const cs_layout *layouts) {
  const cs_value *part = &graph->values[value], *whole = &graph->values[concat];
  return part->root != value && part->root == whole->root && layouts[value] == layouts[concat];
}

/* Row-major already: in NCHW, or with one pixel and no padded lanes. */
static bool flattens_in_place(const cs_shape *shape, cs_layout layout) {
  if (shape->rank != 4 || layout == CS_LAYOUT_NCHW) return true;
  return shape->dims[2] == 1 && shape->dims[3] == 1 &&
         shape->dims[1] % cs_layout_granule(layout) == 0;
}

/* Sums into *us; false when `add` says that something cannot run. */
static bool add_cost(double *us, double add) {
  *us = add < 0 ? -1 : *us + add;
  return add >= 0;
}

static cs_status input_cost(cs_layout_costs *costs, const cs_node *node, int value,
                            const cs_layout *layouts, double *us) {
  const cs_graph *graph = costs->graph;
  cs_layout from = layouts[value], to = layouts[node->output];
  *us = 0;
  switch (node->op) {
    case CS_OP_CONCAT:
      if (lies_in_place(graph, value, node->output, layouts)) return CS_OK;
      return copy_cost(costs, value, from, to, us);
    case CS_OP_FLATTEN:
      if (flattens_in_place(&graph->values[value].shape, from)) return CS_OK;
      return shared_copy(costs, value, from, CS_LAYOUT_NCHW, us);
    default:
      if (graph->values[value].shape.rank != 4) return CS_OK;
      return shared_copy(costs, value, from, to, us);
  }
}

cs_status cs_layout_node_cost(cs_layout_costs *costs, int node, const cs_layout *layouts,
                              double *us) {
  const cs_node *n = &costs->graph->nodes[node];
  double part = 0;
  *us = 0;
  for (int i = 0; i < n->n_inputs; i++) {
    CS_RETURN_IF_ERROR(input_cost(costs, n, n->inputs[i], layouts, &part));
    if (!add_cost(us, part)) return CS_OK;
  }
  if (n->op == CS_OP_CONCAT || n->op == CS_OP_FLATTEN || n->op == CS_OP_IDENTITY ||
      n->op == CS_OP_DROPOUT)
    return CS_OK;
  CS_RETURN_IF_ERROR(node_cost(costs, node, layouts[n->output], &part));
  add_cost(us, part);
  return CS_OK;
}

cs_status cs_layout_find_culprit(cs_layout_costs *costs, const int *block_of, int block,
                                 const cs_layout *available, int n_available, int *node) {
  for (int i = 0; i < costs->graph->n_nodes; i++) {
    const cs_node *n = &costs->graph->nodes[i];
    if (block_of[i] != block || n->op == CS_OP_CONCAT || n->op == CS_OP_FLATTEN ||
        n->op == CS_OP_IDENTITY || n->op == CS_OP_DROPOUT)
      continue;
    bool runs = false;
    for (int l = 0; l < n_available && !runs; l++) {
      double us;
      bool ranked = costs->graph->values[n->output].shape.rank == 4;
      CS_RETURN_IF_ERROR(node_cost(costs, i, ranked ? available[l] : CS_LAYOUT_NCHW, &us));
      runs = us >= 0;
    }
    *node = i;
    if (!runs) return CS_OK;
  }
  *node = -1;
  return CS_OK;
}
