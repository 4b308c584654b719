/* Applying passes: a working copy is rewritten, then dead nodes and values are squeezed out. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

cs_node *cs_rewrite_sole_producer(const cs_rewrite *rewrite, int value) {
  int producer = rewrite->graph->values[value].producer;
  bool sole = producer >= 0 && rewrite->uses[value] == 1 && !rewrite->is_output[value];
  return sole ? &rewrite->graph->nodes[producer] : NULL;
}

void cs_rewrite_take_over(cs_rewrite *rewrite, int into, int from) {
  cs_graph *graph = rewrite->graph;
  int value = graph->nodes[from].output;
  rewrite->dead[from] = true;
  graph->values[graph->nodes[into].output].producer = -1;
  graph->nodes[into].output = value;
  graph->values[value].producer = into;
}

static void rewrite_release(cs_rewrite *rewrite) {
  cs_graph_destroy(rewrite->graph);
  free(rewrite->is_output);
  free(rewrite->dead);
  free(rewrite->uses);
}

static cs_status rewrite_begin(const cs_graph *graph, cs_rewrite *rewrite) {
  CS_RETURN_IF_ERROR(cs_graph_clone(graph, &rewrite->graph));
  CS_RETURN_IF_ERROR(cs_graph_output_flags(graph, &rewrite->is_output));
  rewrite->dead = cs_calloc((size_t)graph->n_nodes, sizeof *rewrite->dead);
  rewrite->uses = cs_calloc((size_t)graph->n_values, sizeof *rewrite->uses);
  if (!rewrite->dead || !rewrite->uses) {
    return cs_no_memory("a rewrite", (size_t)graph->n_values * sizeof *rewrite->uses);
  }
  for (int i = 0; i < graph->n_outputs; i++) rewrite->uses[graph->outputs[i]]++;
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    for (int k = 0; k < node->n_inputs; k++) rewrite->uses[node->inputs[k]]++;
  }
  return CS_OK;
}

/* Keeps inputs of the graph and outputs of live nodes, in their order; every kept value is its own
 * root. */
static cs_status squeeze(cs_rewrite *rewrite) {
  cs_graph *graph = rewrite->graph;
  int *renumbered = cs_calloc((size_t)graph->n_values, sizeof *renumbered);
  bool *kept = cs_calloc((size_t)graph->n_values, sizeof *kept);
  if (!renumbered || !kept) {
    free(renumbered);
    free(kept);
    return cs_no_memory("value numbers", (size_t)graph->n_values * sizeof *renumbered);
  }
  for (int i = 0; i < graph->n_inputs; i++) kept[graph->inputs[i]] = true;
  int n_nodes = 0, n_values = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (rewrite->dead[i]) {
      cs_node_clear(&graph->nodes[i]);
      continue;
    }
    kept[graph->nodes[i].output] = true;
    cs_node moved = graph->nodes[i];
    graph->nodes[i] = (cs_node){0};
    graph->nodes[n_nodes++] = moved;
  }
  graph->n_nodes = n_nodes;
  for (int i = 0; i < graph->n_values; i++) {
    if (!kept[i]) {
      free(graph->values[i].name);
      continue;
    }
    renumbered[i] = n_values;
    graph->values[n_values] = graph->values[i];
    graph->values[n_values].root = n_values;
    graph->values[n_values].channel_offset = 0;
    graph->values[n_values].host = -1;
    graph->values[n_values].host_offset = 0;
    n_values++;
  }
  graph->n_values = n_values;
  for (int i = 0; i < graph->n_inputs; i++) graph->inputs[i] = renumbered[graph->inputs[i]];
  for (int i = 0; i < graph->n_outputs; i++) graph->outputs[i] = renumbered[graph->outputs[i]];
  for (int i = 0; i < n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    for (int k = 0; k < node->n_inputs; k++) node->inputs[k] = renumbered[node->inputs[k]];
    node->output = renumbered[node->output];
    graph->values[node->output].producer = i;
  }
  free(renumbered);
  free(kept);
  return CS_OK;
}

cs_status cs_graph_apply_passes(const cs_graph *bound, cs_pass_options options,
                                cs_pass_report *report, cs_graph **out) {
  cs_status st = CS_OK;
  cs_rewrite rewrite = {0};
  cs_pass_report counted = {0};
  *out = NULL;
  CS_TRY(st, rewrite_begin(bound, &rewrite), done);
  if (options.drop_identities) CS_TRY(st, cs_pass_drop_identities(&rewrite, &counted), done);
  if (options.drop_identities) cs_pass_global_pool(&rewrite);
  if (options.fuse) cs_pass_compose_movements(&rewrite, &counted);
  if (options.fold_batch_norm) CS_TRY(st, cs_pass_fold_batch_norm(&rewrite, &counted), done);
  if (options.fuse) CS_TRY(st, cs_pass_fuse(&rewrite, &counted), done);
  if (options.prologue.takes) {
    CS_TRY(st, cs_pass_fuse_prologues(&rewrite, &options.prologue, &counted), done);
  }
  if (options.concat_in_place) CS_TRY(st, cs_pass_flatten_concats(&rewrite, &counted), done);
  CS_TRY(st, squeeze(&rewrite), done);
  if (options.concat_in_place) {
    CS_TRY(st, cs_pass_concat_in_place(rewrite.graph, &counted), done);
  }
  if (report) *report = counted;
  *out = rewrite.graph;
  rewrite.graph = NULL;
done:
  rewrite_release(&rewrite);
  return st;
}
