/* Fusing residual additions into convolutions and Gemm, y = act(conv + bias + residual), and
 * activations into the operation before them; those that are written as two nodes become one. */
#include <stdlib.h>

#include "graph/graph_internal.h"

static bool takes_residual(const cs_node *node) {
  return node && cs_node_is_product(node) && !node->has_residual &&
         node->activation.kind == CS_ACT_NONE;
}

/* Two tensors of the output's shape: nothing is broadcast. */
static bool adds_alike(const cs_graph *graph, const cs_node *add) {
  const cs_shape *out = &graph->values[add->output].shape;
  return add->n_inputs == 2 && cs_shape_equal(&graph->values[add->inputs[0]].shape, out) &&
         cs_shape_equal(&graph->values[add->inputs[1]].shape, out);
}

/* The convolution moves to the addition's place in the order, since only there is the residual
 * sure to exist. Of two that could take the other's result, the one with the longer path before it
 * does (the later one where they are equal), so that the shorter branch can run beside it. */
static cs_status fuse_residual(cs_rewrite *rewrite, int add_index, const int *depth,
                               cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  cs_node *add = &graph->nodes[add_index];
  cs_node *left = cs_rewrite_sole_producer(rewrite, add->inputs[0]);
  cs_node *right = cs_rewrite_sole_producer(rewrite, add->inputs[1]);
  if (!takes_residual(left)) left = NULL;
  if (!takes_residual(right)) right = NULL;
  if (!left && !right) return CS_OK;
  bool take_left = !right;
  if (left && right) {
    int difference = depth[left->output] - depth[right->output];
    take_left = difference ? difference > 0 : left > right;
  }
  cs_node *conv = take_left ? left : right;
  int residual = add->inputs[conv == left ? 1 : 0];
  size_t n = (size_t)conv->n_inputs + 1;
  int *inputs = realloc(conv->inputs, n * sizeof *inputs);
  if (!inputs) return cs_no_memory("inputs", n * sizeof *inputs);
  conv->inputs = inputs;
  inputs[conv->n_inputs++] = residual;
  conv->has_residual = true;
  int conv_index = (int)(conv - graph->nodes);
  cs_rewrite_take_over(rewrite, conv_index, add_index);
  cs_node swapped = *conv;
  *conv = *add;
  *add = swapped;
  rewrite->dead[conv_index] = true;
  rewrite->dead[add_index] = false;
  graph->values[swapped.output].producer = add_index;
  report->residuals_fused++;
  return CS_OK;
}

static void fuse_activation(cs_rewrite *rewrite, int index, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  const cs_node *node = &graph->nodes[index];
  cs_activation activation = cs_op_own_activation(node->op, &node->attrs);
  if (!cs_act_fuses(activation.kind)) return;
  cs_node *before = cs_rewrite_sole_producer(rewrite, graph->nodes[index].inputs[0]);
  if (!before || before->activation.kind != CS_ACT_NONE) return;
  if (!cs_node_takes_activation(before)) return;
  before->activation = activation;
  cs_rewrite_take_over(rewrite, (int)(before - graph->nodes), index);
  report->activations_fused++;
}

/* x · Sigmoid(x) is Swish, and x · HardSigmoid(x) of slope 1/6 HardSwish: the product becomes it.
 */
static void join_gate(cs_rewrite *rewrite, int index, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  cs_node *product = &graph->nodes[index];
  int gate_index = cs_node_gate(graph, product);
  if (gate_index < 0 || rewrite->dead[gate_index]) return;
  cs_node *gate = &graph->nodes[gate_index];
  if (!cs_rewrite_sole_producer(rewrite, gate->output)) return;
  int x = gate->inputs[0];
  product->op = gate->op == CS_OP_SIGMOID ? CS_OP_SWISH : CS_OP_HARD_SWISH;
  product->attrs = (cs_attrs){.unary = {.alpha = gate->op == CS_OP_SIGMOID ? 1 : 0}};
  product->inputs[0] = x;
  product->n_inputs = 1;
  graph->values[gate->output].producer = -1;
  rewrite->dead[gate_index] = true;
  rewrite->uses[x]--;
  report->activations_fused++;
}

/* Nodes on the longest path up to each value, in the graph as it is now. */
static cs_status depths_of(const cs_rewrite *rewrite, int **out) {
  const cs_graph *graph = rewrite->graph;
  int *depth = cs_calloc((size_t)graph->n_values, sizeof *depth);
  if (!depth) return cs_no_memory("depths", (size_t)graph->n_values * sizeof *depth);
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i]) continue;
    int deepest = 0;
    for (int k = 0; k < node->n_inputs; k++) {
      if (depth[node->inputs[k]] > deepest) deepest = depth[node->inputs[k]];
    }
    depth[node->output] = deepest + 1;
  }
  *out = depth;
  return CS_OK;
}

cs_status cs_pass_fuse(cs_rewrite *rewrite, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  int *depth = NULL;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (!rewrite->dead[i]) join_gate(rewrite, i, report);
  }
  CS_RETURN_IF_ERROR(depths_of(rewrite, &depth));
  cs_status st = CS_OK;
  for (int i = 0; i < graph->n_nodes && st == CS_OK; i++) {
    if (rewrite->dead[i] || graph->nodes[i].op != CS_OP_ADD) continue;
    if (!adds_alike(graph, &graph->nodes[i])) continue;
    st = fuse_residual(rewrite, i, depth, report);
  }
  free(depth);
  if (st != CS_OK) return st;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (!rewrite->dead[i]) fuse_activation(rewrite, i, report);
  }
  return CS_OK;
}
