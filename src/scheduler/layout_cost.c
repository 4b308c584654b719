/* Costs of nodes and copies; which copies there are follows cs_program_lower. */
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
  free(costs->slots);
}

void cs_layout_costs_begin(cs_layout_costs *costs) {
  costs->evaluation++;
  costs->n_slots = 0;
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
  if (costs->copied[value][to] == costs->evaluation) return CS_OK;
  CS_RETURN_IF_ERROR(copy_cost(costs, value, from, to, us));
  if (*us >= 0) costs->copied[value][to] = costs->evaluation;
  return CS_OK;
}

/* ---- Where cs_program_lower needs no copy ---- */

/* Not one of those that views and copies replace. */
static bool is_operation(cs_op op) {
  return op != CS_OP_CONCAT && !cs_op_keeps_order(op);
}

static bool has_one_pixel(const cs_shape *shape) {
  return shape->dims[2] == 1 && shape->dims[3] == 1;
}

/* Readable in a layout as it is. */
static bool reads_in_place(const cs_shape *shape, cs_layout from, cs_layout to) {
  if (shape->rank != 4 || from == to) return true;
  return has_one_pixel(shape) && cs_layout_granule(from) == 1 && cs_layout_granule(to) == 1;
}

static bool lies_in_host(const cs_graph *graph, int index, const cs_layout *layouts) {
  const cs_value *value = &graph->values[index];
  if (value->host < 0 || layouts[index] != layouts[value->host]) return false;
  int64_t granule = cs_layout_granule(layouts[index]);
  int64_t end = value->host_offset + value->shape.dims[1];
  return value->host_offset % granule == 0 &&
         (end % granule == 0 || end == graph->values[value->host].shape.dims[1]);
}

static cs_place locate(const cs_graph *graph, int value, const cs_layout *layouts) {
  cs_place place = {value, 0};
  while (lies_in_host(graph, place.root, layouts)) {
    place.offset += graph->values[place.root].host_offset;
    place.root = graph->values[place.root].host;
  }
  return place;
}

/* Must its bytes be written, as an output or inside a concat? */
static bool needs_own_bytes(const cs_graph *graph, int value, const cs_layout *layouts) {
  return cs_graph_is_output(graph, value) || lies_in_host(graph, value, layouts);
}

/* Channels that are read where they lie. */
static bool is_view(const cs_graph *graph, const cs_node *node, const cs_layout *layouts) {
  return cs_node_is_channel_view(graph, node, layouts[node->output]) &&
         !needs_own_bytes(graph, node->output, layouts);
}

/* Row-major already: dense, and in NCHW or with one pixel and no padded lanes. */
static bool is_row_major(const cs_graph *graph, int value, const cs_layout *layouts) {
  const cs_shape *shape = &graph->values[value].shape;
  int producer = graph->values[value].producer;
  if (shape->rank != 4) return true;
  if (lies_in_host(graph, value, layouts)) return false;
  if (producer >= 0 && shape->dims[0] > 1 && is_view(graph, &graph->nodes[producer], layouts)) {
    return false;
  }
  return layouts[value] == CS_LAYOUT_NCHW ||
         (has_one_pixel(shape) && shape->dims[1] % cs_layout_granule(layouts[value]) == 0);
}

/* The value is written straight into the flattened graph output. */
static bool writes_output(const cs_graph *graph, int value, const cs_layout *layouts) {
  int producer = graph->values[value].producer;
  if (producer < 0 || cs_graph_is_output(graph, value)) return false;
  cs_op op = graph->nodes[producer].op;
  return !cs_op_keeps_order(op) && op != CS_OP_SLICE && is_row_major(graph, value, layouts);
}

/* Sums into *us; false when `add` says that something cannot run. */
static bool add_cost(double *us, double add) {
  *us = add < 0 ? -1 : *us + add;
  return add >= 0;
}

/* Flatten and Reshape. */
static cs_status reshape_cost(cs_layout_costs *costs, const cs_node *node, int value,
                              const cs_layout *layouts, double *us) {
  const cs_graph *graph = costs->graph;
  int output = node->output;
  cs_layout layout = layouts[output];
  bool own = needs_own_bytes(graph, output, layouts);
  if (own && layout == CS_LAYOUT_NCHW && cs_graph_is_output(graph, output) &&
      writes_output(graph, value, layouts)) {
    return CS_OK;
  }
  if (own && cs_node_copies_through_input(graph, node, layouts) &&
      !lies_in_host(graph, output, layouts)) {
    return copy_cost(costs, value, layouts[value], CS_LAYOUT_NCHW, us);
  }
  if (!is_row_major(graph, value, layouts)) {
    CS_RETURN_IF_ERROR(shared_copy(costs, value, layouts[value], CS_LAYOUT_NCHW, us));
  }
  if (!own && reads_in_place(&graph->values[output].shape, CS_LAYOUT_NCHW, layout)) return CS_OK;
  double copied = 0;
  CS_RETURN_IF_ERROR(copy_cost(costs, output, CS_LAYOUT_NCHW, layout, &copied));
  add_cost(us, *us < 0 ? -1 : copied);
  return CS_OK;
}

/* A slot of a concat that some input is copied into; paid once even if two concats share it. */
static cs_status slot_cost(cs_layout_costs *costs, int value, cs_place slot, cs_layout from,
                           cs_layout to, double *us) {
  for (size_t i = 0; i < costs->n_slots; i++)
    if (costs->slots[i].root == slot.root && costs->slots[i].offset == slot.offset) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_grow(&costs->slots, &costs->slot_capacity, costs->n_slots + 1, sizeof *costs->slots));
  costs->slots[costs->n_slots++] = slot;
  return copy_cost(costs, value, from, to, us);
}

static cs_status concat_cost(cs_layout_costs *costs, const cs_node *node, const cs_layout *layouts,
                             double *us) {
  const cs_graph *graph = costs->graph;
  cs_place slot = locate(graph, node->output, layouts);
  *us = 0;
  for (int i = 0; i < node->n_inputs; i++) {
    int value = node->inputs[i];
    cs_place at = locate(graph, value, layouts);
    double part = 0;
    if (at.root != slot.root || at.offset != slot.offset)
      CS_RETURN_IF_ERROR(
          slot_cost(costs, value, slot, layouts[value], layouts[node->output], &part));
    if (!add_cost(us, part)) return CS_OK;
    slot.offset += graph->values[value].shape.dims[node->attrs.axis.axis];
  }
  return CS_OK;
}

/* What it takes to give a node one of its inputs. */
static cs_status input_cost(cs_layout_costs *costs, const cs_node *node, int value,
                            const cs_layout *layouts, double *us) {
  cs_layout from = layouts[value], to = layouts[node->output];
  bool identity = node->op == CS_OP_IDENTITY || node->op == CS_OP_DROPOUT;
  *us = 0;
  if (node->op == CS_OP_FLATTEN || node->op == CS_OP_RESHAPE) {
    return reshape_cost(costs, node, value, layouts, us);
  }
  if (identity && needs_own_bytes(costs->graph, node->output, layouts))
    return copy_cost(costs, value, from, to, us);
  if (reads_in_place(&costs->graph->values[value].shape, from, to)) return CS_OK;
  return shared_copy(costs, value, from, to, us);
}

cs_status cs_layout_node_cost(cs_layout_costs *costs, int node, const cs_layout *layouts,
                              double *us) {
  const cs_node *n = &costs->graph->nodes[node];
  double part = 0;
  if (n->op == CS_OP_CONCAT) return concat_cost(costs, n, layouts, us);
  *us = 0;
  for (int i = 0; i < n->n_inputs; i++) {
    CS_RETURN_IF_ERROR(input_cost(costs, n, n->inputs[i], layouts, &part));
    if (!add_cost(us, part)) return CS_OK;
  }
  if (!is_operation(n->op) || is_view(costs->graph, n, layouts)) return CS_OK;
  CS_RETURN_IF_ERROR(node_cost(costs, node, layouts[n->output], &part));
  add_cost(us, part);
  return CS_OK;
}

cs_status cs_layout_find_culprit(cs_layout_costs *costs, const int *block_of, int block,
                                 const cs_layout *available, int n_available, int *node) {
  for (int i = 0; i < costs->graph->n_nodes; i++) {
    const cs_node *n = &costs->graph->nodes[i];
    if (block_of[i] != block || !is_operation(n->op)) continue;
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
