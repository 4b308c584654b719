/* Folding BatchNormalization into the convolution (or Gemm) before it, or into the one behind it
 * where no padding would have to be normalised too. */
#include "graph/graph_internal.h"

static bool takes_fold(const cs_node *node) {
  return cs_node_is_product(node) && !node->bn_after.node && !node->has_residual &&
         node->activation.kind == CS_ACT_NONE;
}

cs_status cs_bn_fold_make(const cs_graph *graph, const cs_node *norm, cs_bn_fold *fold) {
  fold->channels = graph->values[norm->output].shape.dims[1];
  fold->epsilon = norm->attrs.batch_norm.epsilon;
  return cs_strdup_to(norm->name, &fold->node);
}

static bool is_unpadded_conv(const cs_node *node) {
  if (node->op != CS_OP_CONV || node->bn_before.node) return false;
  const int64_t *pads = node->attrs.conv.pads;
  return !pads[0] && !pads[1] && !pads[2] && !pads[3];
}

cs_status cs_pass_fold_batch_norm(cs_rewrite *rewrite, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i] || node->op != CS_OP_BATCH_NORM) continue;
    cs_node *producer = cs_rewrite_sole_producer(rewrite, node->inputs[0]);
    if (!producer || !takes_fold(producer)) continue;
    CS_RETURN_IF_ERROR(cs_bn_fold_make(graph, node, &producer->bn_after));
    cs_rewrite_take_over(rewrite, (int)(producer - graph->nodes), i);
    report->batch_norms_folded++;
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i] || !is_unpadded_conv(node)) continue;
    cs_node *norm = cs_rewrite_sole_producer(rewrite, node->inputs[0]);
    if (!norm || norm->op != CS_OP_BATCH_NORM || norm->activation.kind != CS_ACT_NONE) continue;
    CS_RETURN_IF_ERROR(cs_bn_fold_make(graph, norm, &node->bn_before));
    graph->values[norm->output].producer = -1;
    node->inputs[0] = norm->inputs[0];
    rewrite->dead[norm - graph->nodes] = true;
    report->batch_norms_folded++;
  }
  return CS_OK;
}
