/* The concrete description of a node, and which layouts a value may take. */
#include <math.h>

#include "graph/graph_internal.h"

bool cs_node_is_identity(const cs_node *node) {
  return node->op == CS_OP_IDENTITY || node->op == CS_OP_DROPOUT ||
         (node->op == CS_OP_CONCAT && node->n_inputs == 1);
}

bool cs_node_is_product(const cs_node *node) {
  return node->op == CS_OP_CONV || node->op == CS_OP_CONV_TRANSPOSE || node->op == CS_OP_GEMM;
}

bool cs_node_takes_activation(const cs_node *node) {
  return cs_node_is_product(node) || node->op == CS_OP_BATCH_NORM || cs_op_takes_operand(node->op);
}

int cs_node_gate(const cs_graph *graph, const cs_node *product) {
  if (product->op != CS_OP_MUL || product->n_inputs != 2) return -1;
  for (int k = 0; k < 2; k++) {
    int producer = graph->values[product->inputs[k]].producer;
    if (producer < 0) continue;
    const cs_node *gate = &graph->nodes[producer];
    if (gate->inputs[0] != product->inputs[1 - k]) continue;
    if (gate->op == CS_OP_SIGMOID) return producer;
    /* A file's slope is an f32. */
    if (gate->op == CS_OP_HARD_SIGMOID && fabs(gate->attrs.unary.alpha * 6 - 1) < 1e-6 &&
        gate->attrs.unary.beta == 0.5) {
      return producer;
    }
  }
  return -1;
}

bool cs_node_is_channel_concat(const cs_graph *graph, const cs_node *node) {
  return node->op == CS_OP_CONCAT && node->attrs.axis.axis == 1 &&
         graph->values[node->output].shape.rank == 4;
}

bool cs_graph_is_row_major(const cs_graph *graph, int value) {
  const cs_value *whole = &graph->values[value];
  if (whole->shape.rank != 4) return true;
  return whole->producer >= 0 && graph->nodes[whole->producer].op == CS_OP_MATMUL;
}

bool cs_graph_layout_allowed(const cs_graph *graph, int value, cs_layout layout) {
  const cs_value *whole = &graph->values[value];
  if (cs_graph_is_row_major(graph, value)) return layout == CS_LAYOUT_NCHW;
  int64_t granule = cs_layout_granule(layout);
  if (granule == 1 || whole->producer < 0) return true;
  const cs_node *node = &graph->nodes[whole->producer];
  if (!cs_node_is_channel_concat(graph, node)) return true;
  for (int k = 0; k + 1 < node->n_inputs; k++) {
    if (graph->values[node->inputs[k]].shape.dims[1] % granule != 0) return false;
  }
  return true;
}

void cs_graph_uniform_layouts(const cs_graph *graph, cs_layout layout, cs_layout *out) {
  for (int v = 0; v < graph->n_values; v++) {
    out[v] = cs_graph_layout_allowed(graph, v, layout) ? layout : CS_LAYOUT_NCHW;
  }
}

bool cs_node_is_channel_view(const cs_graph *graph, const cs_node *node, cs_layout layout) {
  const cs_slice_attrs *slice = &node->attrs.slice;
  const cs_shape *in = &graph->values[node->inputs[0]].shape;
  if (node->op != CS_OP_SLICE || in->rank != 4 || slice->n_axes != 1) return false;
  if (slice->axes[0] != 1 || slice->steps[0] != 1) return false;
  int64_t granule = cs_layout_granule(layout), end = slice->ends[0];
  return slice->starts[0] % granule == 0 && (end % granule == 0 || end == in->dims[1]);
}

bool cs_node_copies_through_input(const cs_graph *graph, const cs_node *node,
                                  const cs_layout *layouts) {
  return layouts[node->output] == CS_LAYOUT_NCHW && graph->values[node->inputs[0]].shape.rank <= 4;
}

cs_op_desc cs_node_base_desc(const cs_node *node, cs_precision precision) {
  cs_op_desc desc = {.op = node->op,
                     .attrs = node->attrs,
                     .activation = node->activation,
                     .has_residual = node->has_residual,
                     .has_prologue = node->prologue.node != NULL,
                     .prologue = node->prologue_activation,
                     .precision = precision};
  desc.has_bias = cs_op_has_bias(node->op, &node->attrs) || node->bn_before.node != NULL ||
                  node->bn_after.node != NULL;
  if (node->op == CS_OP_CONV || node->op == CS_OP_CONV_TRANSPOSE) {
    desc.attrs.conv.bias = desc.has_bias;
  }
  if (node->op == CS_OP_GEMM) desc.attrs.gemm.bias = desc.has_bias;
  return desc;
}

cs_status cs_graph_node_desc(const cs_graph *graph, int node, cs_precision precision,
                             cs_layout layout, cs_op_desc *out) {
  const cs_node *at = &graph->nodes[node];
  if (at->op == CS_OP_CONCAT || cs_op_keeps_order(at->op)) {
    return cs_error(CS_CODE_USAGE, "node \"%s\": found %s, wanted an operation of a backend",
                    at->name, cs_op_name(at->op));
  }
  if (graph->batch == CS_DIM_N) {
    return cs_error(CS_CODE_USAGE, "node \"%s\": found a symbolic batch, wanted a bound graph",
                    at->name);
  }
  cs_dtype storage = cs_precision_storage(precision);
  if (cs_graph_is_row_major(graph, at->output)) layout = CS_LAYOUT_NCHW;
  *out = cs_node_base_desc(at, precision);
  out->n_inputs = at->n_inputs;
  for (int k = 0; k < at->n_inputs; k++) {
    out->inputs[k] = cs_tensor_dense(&graph->values[at->inputs[k]].shape, storage, layout);
  }
  out->output = cs_tensor_dense(&graph->values[at->output].shape, storage, layout);
  return CS_OK;
}
