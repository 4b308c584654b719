/* A BatchNormalization and the activation behind it (DenseNet's order) become the prologue of the
 * 1x1 convolution that alone reads them: they cannot go into its weights, but a kernel can apply
 * them to its operand, and the whole feature map is neither written nor read once more. */
#include "graph/graph_internal.h"

/* Without padding, whose zeros lie behind the prologue; with one tap, so that it is applied to a
 * pixel once for each tile of filters and not for each tap as well. */
static bool is_pointwise(const cs_node *node) {
  if (node->op != CS_OP_CONV || node->attrs.conv.group != 1) return false;
  const cs_conv_attrs *conv = &node->attrs.conv;
  return conv->kernel[0] == 1 && conv->kernel[1] == 1 && !conv->pads[0] && !conv->pads[1] &&
         !conv->pads[2] && !conv->pads[3];
}

/* The operation that the convolution would be. */
static cs_status is_taken(const cs_graph *graph, int conv, const cs_node *norm,
                          const cs_prologue_taker *taker, bool *taken) {
  cs_op_desc desc;
  CS_RETURN_IF_ERROR(cs_graph_node_desc(graph, conv, taker->precision, taker->layout, &desc));
  desc.has_prologue = true;
  desc.prologue = norm->activation;
  *taken = taker->takes(taker->user, &desc);
  return CS_OK;
}

cs_status cs_pass_fuse_prologues(cs_rewrite *rewrite, const cs_prologue_taker *taker,
                                 cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *conv = &graph->nodes[i];
    if (rewrite->dead[i] || !is_pointwise(conv) || conv->bn_before.node) continue;
    cs_node *norm = cs_rewrite_sole_producer(rewrite, conv->inputs[0]);
    if (!norm || norm->op != CS_OP_BATCH_NORM) continue;
    bool taken = false;
    CS_RETURN_IF_ERROR(is_taken(graph, i, norm, taker, &taken));
    if (!taken) continue;
    CS_RETURN_IF_ERROR(cs_bn_fold_make(graph, norm, &conv->prologue));
    conv->prologue_activation = norm->activation;
    graph->values[norm->output].producer = -1;
    conv->inputs[0] = norm->inputs[0];
    rewrite->dead[norm - graph->nodes] = true;
    report->prologues_fused++;
  }
  return CS_OK;
}
