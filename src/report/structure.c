#include "report/structure.h"

#include <stdlib.h>
#include <string.h>

/* ---- Work of a node ---- */

static double value_bytes(const cs_structure *s, int value) {
  double bytes = (double)cs_dtype_size(cs_precision_storage(s->precision));
  const cs_shape *shape = &s->graph->values[value].shape;
  for (int d = 0; d < shape->rank; d++) bytes *= (double)shape->dims[d];
  return bytes;
}

/* A Concat, which has no description of its own, reads its inputs and writes its output. */
static void concat_work(const cs_structure *s, const cs_node *node, cs_layer *out) {
  out->works = node->n_inputs > 1;
  if (!out->works) return;
  out->bytes = value_bytes(s, node->output);
  for (int k = 0; k < node->n_inputs; k++) out->bytes += value_bytes(s, node->inputs[k]);
}

static cs_status work_of(const cs_structure *s, int index, cs_layer *out) {
  cs_op_desc desc;
  const cs_node *node = &s->graph->nodes[index];
  out->parameters = cs_node_parameter_count(s->graph, node);
  if (node->op == CS_OP_CONCAT) {
    concat_work(s, node, out);
    return CS_OK;
  }
  if (cs_op_keeps_order(node->op)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_graph_node_desc(s->graph, index, s->precision, CS_LAYOUT_NCHW, &desc));
  out->works = true;
  out->flops = cs_op_flops(&desc);
  out->bytes = cs_op_bytes(&desc);
  return CS_OK;
}

/* ---- Paths ---- */

/* From a node before (none: −1) to the newest, whose edges, ascending and each once, begin at
 * `first`. */
static void add_edge(cs_dag *dag, int first, int from) {
  int at = dag->n_edges;
  while (at > first && dag->from[at - 1] > from) at--;
  if (from < 0 || (at > first && dag->from[at - 1] == from)) return;
  memmove(&dag->from[at + 1], &dag->from[at], (size_t)(dag->n_edges - at) * sizeof *dag->from);
  dag->from[at] = from;
  dag->n_edges++;
}

static cs_status dag_of(const cs_graph *graph, cs_dag *out) {
  int total = 0;
  for (int n = 0; n < graph->n_nodes; n++) total += graph->nodes[n].n_inputs;
  CS_RETURN_IF_ERROR(cs_dag_create(graph->n_nodes, total, out));
  for (int n = 0; n < graph->n_nodes; n++) {
    const cs_node *node = &graph->nodes[n];
    for (int k = 0; k < node->n_inputs; k++) {
      add_edge(out, out->first[n], graph->values[node->inputs[k]].producer);
    }
    out->first[n + 1] = out->n_edges;
  }
  return CS_OK;
}

/* The heaviest path's weight, and through `from` (may be NULL) the node before each on it, through
 * *last its end. */
static double heaviest_path(const cs_dag *dag, const double *weight, double *until, int *from,
                            int *last) {
  double most = -1;
  for (int v = 0; v < dag->n; v++) {
    int before = -1;
    for (int e = dag->first[v]; e < dag->first[v + 1]; e++) {
      if (before < 0 || until[dag->from[e]] > until[before]) before = dag->from[e];
    }
    until[v] = weight[v] + (before < 0 ? 0 : until[before]);
    if (from) from[v] = before;
    if (until[v] > most) {
      most = until[v];
      *last = v;
    }
  }
  return dag->n > 0 ? most : 0;
}

static cs_status find_paths(cs_structure *s, const cs_dag *dag) {
  cs_status st = CS_OK;
  int n = dag->n, last = -1;
  double *weight = cs_calloc(2 * (size_t)n + 1, sizeof *weight);
  int *from = cs_calloc((size_t)n + 1, sizeof *from);
  if (!weight || !from) {
    st = cs_no_memory("paths", 2 * (size_t)n * sizeof *weight);
    goto done;
  }
  for (int v = 0; v < n; v++) weight[v] = s->layers[v].works;
  s->longest = (int)heaviest_path(dag, weight, weight + n, NULL, &last);
  for (int v = 0; v < n; v++) weight[v] = s->layers[v].flops;
  s->critical_flops = heaviest_path(dag, weight, weight + n, from, &last);
  for (int v = 0; v < n; v++) s->layers[v].before = -1;
  for (int v = last; v >= 0; v = from[v]) {
    s->layers[v].critical = true;
    s->layers[v].before = from[v];
  }
done:
  free(weight);
  free(from);
  return st;
}

static cs_status find_widths(cs_structure *s, const cs_dag *dag) {
  bool *chosen = cs_calloc((size_t)dag->n + 1, sizeof *chosen);
  if (!chosen) return cs_no_memory("layers", (size_t)dag->n);
  for (int v = 0; v < dag->n; v++) chosen[v] = s->layers[v].works;
  cs_status st = cs_dag_width(dag, chosen, &s->width);
  for (int v = 0; v < dag->n; v++) {
    cs_op op = s->graph->nodes[v].op;
    chosen[v] = op == CS_OP_CONV || op == CS_OP_CONV_TRANSPOSE;
  }
  if (st == CS_OK) st = cs_dag_width(dag, chosen, &s->width_convolutions);
  free(chosen);
  return st;
}

static cs_status find_blocks(cs_structure *s) {
  int n = s->graph->n_nodes, *block_of = cs_calloc((size_t)n + 1, sizeof *block_of);
  if (!block_of) return cs_no_memory("blocks", (size_t)n * sizeof *block_of);
  cs_status st = cs_graph_blocks(s->graph, block_of, &s->n_blocks);
  for (int i = 0; i < n; i++) s->layers[i].block = block_of[i];
  free(block_of);
  return st;
}

cs_status cs_structure_of(const cs_graph *bound, cs_precision precision, cs_structure *out) {
  cs_dag dag = {0};
  cs_status st = CS_OK;
  *out = (cs_structure){.graph = bound, .precision = precision};
  out->layers = cs_calloc((size_t)bound->n_nodes + 1, sizeof *out->layers);
  if (!out->layers) return cs_no_memory("layers", (size_t)bound->n_nodes * sizeof *out->layers);
  for (int n = 0; n < bound->n_nodes; n++) {
    CS_TRY(st, work_of(out, n, &out->layers[n]), done);
    out->flops += out->layers[n].flops;
    out->bytes += out->layers[n].bytes;
  }
  CS_TRY(st, dag_of(bound, &dag), done);
  CS_TRY(st, find_paths(out, &dag), done);
  CS_TRY(st, find_widths(out, &dag), done);
  CS_TRY(st, find_blocks(out), done);
done:
  cs_dag_free(&dag);
  if (st != CS_OK) cs_structure_free(out);
  return st;
}

void cs_structure_free(cs_structure *structure) {
  free(structure->layers);
  memset(structure, 0, sizeof *structure);
}
