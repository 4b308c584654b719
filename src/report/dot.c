/* A graph as Graphviz draws it. */
#include "graph/op_family.h"
#include "report/structure.h"

static void put_quoted(cs_strbuf *out, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') cs_strbuf_append(out, "\\", 1);
    cs_strbuf_append(out, text, 1);
  }
}

static const char *fill_of(const cs_structure *s, int index) {
  cs_op op = s->graph->nodes[index].op;
  if (!s->layers[index].works) return "white";
  if (op == CS_OP_CONV || op == CS_OP_CONV_TRANSPOSE) return "lightblue";
  if (op == CS_OP_GEMM || op == CS_OP_MATMUL) return "lightsteelblue";
  if (op == CS_OP_MAX_POOL || op == CS_OP_AVERAGE_POOL) return "palegreen";
  return op == CS_OP_CONCAT ? "lightyellow" : "whitesmoke";
}

static void put_node(const cs_structure *s, int index, cs_strbuf *out) {
  char shape[CS_TEXT_SIZE];
  const cs_node *node = &s->graph->nodes[index];
  const cs_layer *layer = &s->layers[index];
  cs_strbuf_printf(out, "    n%d [label=\"", index);
  put_quoted(out, node->name);
  cs_strbuf_printf(out, "\\n%s %s", cs_op_name(node->op),
                   cs_shape_text(&s->graph->values[node->output].shape, shape));
  if (layer->flops > 0) cs_strbuf_printf(out, "\\n%.4g MFLOPs", 1e-6 * layer->flops);
  cs_strbuf_printf(out, "\", fillcolor=%s%s%s];\n", fill_of(s, index),
                   layer->works ? "" : ", style=\"filled,dashed\"",
                   layer->critical ? ", penwidth=3" : "");
}

/* The nodes of one block, from `first` on; returns the first behind it. */
static int put_block(const cs_structure *s, int first, cs_strbuf *out) {
  int block = s->layers[first].block, end = first;
  while (end < s->graph->n_nodes && s->layers[end].block == block) end++;
  bool cluster = end - first > 1;
  if (cluster)
    cs_strbuf_printf(out, "  subgraph cluster_%d {\n    label=\"block %d\";\n", block, block);
  for (int n = first; n < end; n++) put_node(s, n, out);
  if (cluster) cs_strbuf_printf(out, "  }\n");
  return end;
}

static void put_terminals(const cs_graph *graph, cs_strbuf *out) {
  for (int i = 0; i < graph->n_inputs; i++) {
    cs_strbuf_printf(out, "  v%d [shape=ellipse, label=\"", graph->inputs[i]);
    put_quoted(out, graph->values[graph->inputs[i]].name);
    cs_strbuf_printf(out, "\"];\n");
  }
  for (int i = 0; i < graph->n_outputs; i++) {
    int value = graph->outputs[i], producer = graph->values[value].producer;
    cs_strbuf_printf(out, "  o%d [shape=ellipse, label=\"", i);
    put_quoted(out, graph->values[value].name);
    cs_strbuf_printf(out, "\"];\n  %s%d -> o%d;\n", producer < 0 ? "v" : "n",
                     producer < 0 ? value : producer, i);
  }
}

static void put_edges(const cs_structure *s, cs_strbuf *out) {
  for (int n = 0; n < s->graph->n_nodes; n++) {
    const cs_node *node = &s->graph->nodes[n];
    for (int k = 0; k < node->n_inputs; k++) {
      int value = node->inputs[k], producer = s->graph->values[value].producer;
      bool critical = producer >= 0 && s->layers[n].before == producer;
      cs_strbuf_printf(out, "  %s%d -> n%d%s;\n", producer < 0 ? "v" : "n",
                       producer < 0 ? value : producer, n, critical ? " [penwidth=3]" : "");
    }
  }
}

cs_status cs_report_dot(const cs_structure *structure, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "digraph \"");
  put_quoted(&text, structure->graph->name);
  cs_strbuf_printf(&text, "\" {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
  for (int n = 0; n < structure->graph->n_nodes;) n = put_block(structure, n, &text);
  put_terminals(structure->graph, &text);
  put_edges(structure, &text);
  cs_strbuf_printf(&text, "}\n");
  return cs_strbuf_take(&text, out);
}
