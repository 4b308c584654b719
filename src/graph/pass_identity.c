/* Dropping Identity, Dropout (the identity at inference) and Concat of one input. */
#include <stdlib.h>

#include "graph/graph_internal.h"

/* Follows replacements to the end, shortening the way. */
static int resolve(int *replaced, int value) {
  int end = value;
  while (replaced[end] >= 0) end = replaced[end];
  while (replaced[value] >= 0) {
    int next = replaced[value];
    replaced[value] = end;
    value = next;
  }
  return end;
}

/* An output's name is kept: the node that made the input writes it instead. That cannot be where
 * the input is the graph's own input or another output. */
static bool drop(cs_rewrite *rewrite, int index, int *replaced) {
  cs_graph *graph = rewrite->graph;
  cs_node *node = &graph->nodes[index];
  int from = resolve(replaced, node->inputs[0]), to = node->output;
  int producer = graph->values[from].producer;
  if (!rewrite->is_output[to]) {
    replaced[to] = from;
    graph->values[to].producer = -1;
    rewrite->dead[index] = true;
    rewrite->uses[from] += rewrite->uses[to] - 1;
    return true;
  }
  if (producer < 0 || rewrite->is_output[from]) return false;
  cs_rewrite_take_over(rewrite, producer, index);
  replaced[from] = to;
  rewrite->uses[to] += rewrite->uses[from] - 1;
  return true;
}

cs_status cs_pass_drop_identities(cs_rewrite *rewrite, cs_pass_report *report) {
  cs_graph *graph = rewrite->graph;
  int *replaced = cs_calloc((size_t)graph->n_values, sizeof *replaced);
  if (!replaced) return cs_no_memory("replacements", (size_t)graph->n_values * sizeof *replaced);
  for (int i = 0; i < graph->n_values; i++) replaced[i] = -1;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (cs_node_is_identity(&graph->nodes[i]) && drop(rewrite, i, replaced))
      report->identities_dropped++;
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    cs_node *node = &graph->nodes[i];
    if (rewrite->dead[i]) continue;
    for (int k = 0; k < node->n_inputs; k++) {
      node->inputs[k] = resolve(replaced, node->inputs[k]);
    }
  }
  free(replaced);
  return CS_OK;
}
