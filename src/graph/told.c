#include "graph/told.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

/* ---- The nodes that one stands for ---- */

static bool is_activation(cs_op op) {
  return cs_act_fuses(cs_op_unary(op)->act);
}

/* Climbs from `value` to the node called `start` over what passes fuse, noting every node (and
 * beside a product its gate) but identities in way[*n…]. 1: there; 0: not this way; an addition,
 * which has two ways on, ends the climb with −1 and is noted in *add. */
static int climb(const cs_graph *graph, int value, const char *start, int *way, int *n, int *add) {
  for (;;) {
    int at = graph->values[value].producer;
    if (at < 0) return 0;
    const cs_node *node = &graph->nodes[at];
    if (!cs_node_is_identity(node)) way[(*n)++] = at;
    int gate = cs_node_gate(graph, node);
    if (gate >= 0) way[(*n)++] = gate;
    if (strcmp(node->name, start) == 0) return 1;
    if (gate >= 0) {
      value = graph->nodes[gate].inputs[0];
      continue;
    }
    if (node->op == CS_OP_ADD && node->n_inputs == 2) {
      *add = at;
      return -1;
    }
    if (!cs_node_is_identity(node) && !is_activation(node->op) && node->op != CS_OP_BATCH_NORM &&
        node->op != CS_OP_RESHAPE)
      return 0;
    value = node->inputs[0];
  }
}

static bool find_way(const cs_graph *graph, int value, const char *start, int *way, int *n) {
  int add, found = climb(graph, value, start, way, n, &add), before = *n;
  if (found >= 0) return found > 0;
  for (int k = 0; k < 2; k++) {
    int second;
    *n = before;
    if (climb(graph, graph->nodes[add].inputs[k], start, way, n, &second) > 0) return true;
  }
  return false;
}

static int by_index(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

int cs_graph_nodes_of(const cs_graph *bound, const cs_graph *passed, int node, int *out) {
  const cs_node *made = &passed->nodes[node];
  int value = cs_graph_find_value(bound, passed->values[made->output].name), n = 0;
  if (value < 0 || !find_way(bound, value, made->name, out, &n)) return 0;
  const char *before[] = {made->bn_before.node, made->prologue.node}; /* the nearer one first */
  for (int i = 0; i < 2; i++) {
    int add, kept = n, input = bound->nodes[out[n - 1]].inputs[0];
    if (before[i] && climb(bound, input, before[i], out, &n, &add) <= 0) n = kept;
  }
  qsort(out, (size_t)n, sizeof *out, by_index);
  return n;
}

/* ---- Why a node stands alone ---- */

bool cs_graph_could_be_fused(cs_op op) {
  return op == CS_OP_BATCH_NORM || op == CS_OP_ADD || is_activation(op);
}

/* Readers of a value, the graph's results counted. */
static int uses_of(const cs_graph *graph, int value, int *first) {
  int reader[1] = {-1};
  int n = cs_graph_consumers(graph, value, reader, 1);
  *first = n > 0 ? reader[0] : -1;
  return n + (cs_graph_is_output(graph, value) ? 1 : 0);
}

/* What keeps `node` out of the one that makes its input `value`. */
static void tell_before(const cs_graph *graph, const cs_node *node, int value, cs_strbuf *out) {
  const char *name = graph->values[value].name;
  int producer = graph->values[value].producer, first;
  if (producer < 0) {
    cs_strbuf_printf(out, "%s is the graph's input", name);
    return;
  }
  const cs_node *before = &graph->nodes[producer];
  bool takes =
      cs_node_is_product(before) || (is_activation(node->op) && cs_node_takes_activation(before));
  if (!takes) {
    cs_strbuf_printf(out, "%s is made by a %s, which takes over nothing", name,
                     cs_op_name(before->op));
  } else if (before->activation.kind != CS_ACT_NONE) {
    cs_strbuf_printf(out, "%s is made by a %s that ends in %s already", name,
                     cs_op_name(before->op), cs_act_name(before->activation.kind));
  } else if (uses_of(graph, value, &first) > 1) {
    cs_strbuf_printf(out, "%s is read elsewhere too", name);
  } else if (before->has_residual && !is_activation(node->op)) {
    cs_strbuf_printf(out, "%s is made by a %s that adds a residual already", name,
                     cs_op_name(before->op));
  } else if (before->bn_after.node && node->op == CS_OP_BATCH_NORM) {
    cs_strbuf_printf(out, "%s has taken over %s already", name, before->bn_after.node);
  } else if (node->op == CS_OP_ADD) {
    cs_strbuf_printf(out, "%s is not added to another tensor of its shape", name);
  } else {
    cs_strbuf_printf(out, "the passes left it behind %s", name);
  }
}

/* What keeps a BatchNormalization out of a convolution behind it. */
static void tell_behind(const cs_graph *graph, const cs_node *node, cs_strbuf *out) {
  int reader;
  if (node->activation.kind != CS_ACT_NONE) {
    cs_strbuf_printf(out, "its %s comes before any weights behind it",
                     cs_act_name(node->activation.kind));
    return;
  }
  int uses = uses_of(graph, node->output, &reader);
  if (uses != 1 || reader < 0) {
    cs_strbuf_printf(out, "its own result %s",
                     uses > 1 ? "is read by several" : "is a result of the graph");
  } else if (graph->nodes[reader].op != CS_OP_CONV) {
    cs_strbuf_printf(out, "%s behind it is a %s", graph->nodes[reader].name,
                     cs_op_name(graph->nodes[reader].op));
  } else {
    cs_strbuf_printf(
        out, "%s behind it %s", graph->nodes[reader].name,
        graph->nodes[reader].bn_before.node ? "has taken over another one" : "pads its input");
  }
}

void cs_graph_tell_why_alone(const cs_graph *passed, int node, cs_strbuf *out) {
  const cs_node *told = &passed->nodes[node];
  tell_before(passed, told, told->inputs[0], out);
  if (told->op == CS_OP_ADD && told->n_inputs == 2) {
    cs_strbuf_printf(out, "; ");
    tell_before(passed, told, told->inputs[1], out);
  }
  if (told->op == CS_OP_BATCH_NORM) {
    cs_strbuf_printf(out, "; ");
    tell_behind(passed, told, out);
  }
}
