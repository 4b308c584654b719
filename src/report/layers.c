/* The table of layers: shapes, parameters, FLOPs and bytes of every node as written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op_family.h"
#include "report/structure.h"

enum {
  BLOCK,
  NODE,
  OPERATOR,
  WINDOW,
  SHAPE,
  INPUTS,
  PARAMETERS,
  FLOPS,
  MFLOPS,
  BYTES,
  KBYTES,
  INTENSITY,
  CRITICAL,
  CRITICAL_MARK,
  N_COLUMNS
};

static const cs_table_column columns[N_COLUMNS] = {
    [BLOCK] = {"block", "block", 0, CS_COLUMN_ALL, false},
    [NODE] = {"node", "node", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [OPERATOR] = {"op", "operator", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [WINDOW] = {"window", "window", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [SHAPE] = {"shape", "output", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [INPUTS] = {"inputs", "inputs", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [PARAMETERS] = {"parameters", "parameters", 0, CS_COLUMN_ALL, false},
    [FLOPS] = {"flops", "FLOPs", 0, CS_COLUMN_DATA, false},
    [MFLOPS] = {"mflops", "MFLOPs", 2, CS_COLUMN_PERSON, false},
    [BYTES] = {"bytes", "bytes", 0, CS_COLUMN_DATA, false},
    [KBYTES] = {"kbytes", "kB", 1, CS_COLUMN_PERSON, false},
    [INTENSITY] = {"flops_per_byte", "FLOPs/byte", 1, CS_COLUMN_ALL, false},
    [CRITICAL] = {"critical", "critical", 0, CS_COLUMN_DATA, false},
    [CRITICAL_MARK] = {"critical_mark", "critical", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
};

/* "7x7 /2", "3x3 dilated 2", "5x5 in 32 groups", "1x7 /2x1"; nothing for what has no window. */
static void put_pair(cs_strbuf *text, const char *before, const int64_t pair[2]) {
  cs_strbuf_printf(text, "%s%lld", before, (long long)pair[0]);
  if (pair[1] != pair[0]) cs_strbuf_printf(text, "x%lld", (long long)pair[1]);
}

static void window_of(const cs_node *node, cs_strbuf *text) {
  const cs_conv_attrs *conv = &node->attrs.conv;
  const cs_pool_attrs *pool = &node->attrs.pool;
  bool is_conv = node->op == CS_OP_CONV || node->op == CS_OP_CONV_TRANSPOSE;
  if (!is_conv && node->op != CS_OP_MAX_POOL && node->op != CS_OP_AVERAGE_POOL) return;
  const int64_t *kernel = is_conv ? conv->kernel : pool->kernel;
  const int64_t *strides = is_conv ? conv->strides : pool->strides;
  const int64_t *dilations = is_conv ? conv->dilations : pool->dilations;
  cs_strbuf_printf(text, "%lldx%lld", (long long)kernel[0], (long long)kernel[1]);
  if (strides[0] != 1 || strides[1] != 1) put_pair(text, " /", strides);
  if (dilations[0] != 1 || dilations[1] != 1) put_pair(text, " dilated ", dilations);
  if (is_conv && conv->group > 1) {
    cs_strbuf_printf(text, " in %lld groups", (long long)conv->group);
  }
}

static cs_status put_texts(const cs_graph *graph, const cs_node *node, cs_table *table) {
  char shape[CS_TEXT_SIZE];
  cs_strbuf window = {0}, inputs = {0};
  char *text = NULL;
  window_of(node, &window);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&window, &text));
  if (text[0]) cs_table_text(table, WINDOW, "%s", text);
  free(text);
  text = NULL;
  for (int k = 0; k < node->n_inputs; k++) {
    cs_strbuf_printf(&inputs, "%s%s", k ? ", " : "", graph->values[node->inputs[k]].name);
  }
  CS_RETURN_IF_ERROR(cs_strbuf_take(&inputs, &text));
  cs_table_text(table, INPUTS, "%s", text);
  free(text);
  cs_table_text(table, NODE, "%s", node->name);
  cs_table_text(table, OPERATOR, "%s", cs_op_name(node->op));
  cs_table_text(table, SHAPE, "%s", cs_shape_text(&graph->values[node->output].shape, shape));
  return CS_OK;
}

static cs_status add_layer(const cs_structure *s, int index, cs_table *table) {
  const cs_layer *layer = &s->layers[index];
  cs_table_row(table, false);
  CS_RETURN_IF_ERROR(put_texts(s->graph, &s->graph->nodes[index], table));
  cs_table_number(table, BLOCK, layer->block);
  cs_table_number(table, PARAMETERS, (double)layer->parameters);
  cs_table_number(table, CRITICAL, layer->critical);
  if (layer->critical) cs_table_text(table, CRITICAL_MARK, "*");
  cs_table_number(table, FLOPS, layer->flops);
  cs_table_number(table, BYTES, layer->bytes);
  if (!layer->works) return CS_OK;
  cs_table_number(table, MFLOPS, 1e-6 * layer->flops);
  cs_table_number(table, KBYTES, 1e-3 * layer->bytes);
  cs_table_number(table, INTENSITY, layer->bytes > 0 ? layer->flops / layer->bytes : NAN);
  return CS_OK;
}

/* ---- What holds for the whole graph ---- */

static int layers_at_work(const cs_structure *s) {
  int n = 0;
  for (int i = 0; i < s->graph->n_nodes; i++) n += s->layers[i].works;
  return n;
}

static void put_values(const cs_graph *graph, const char *what, const int *list, int n,
                       cs_table *table) {
  char shape[CS_TEXT_SIZE];
  for (int i = 0; i < n; i++) {
    const cs_value *value = &graph->values[list[i]];
    cs_table_note(table, "%s: %s %s", what, value->name, cs_shape_text(&value->shape, shape));
  }
}

/* "Operators: 57 Conv, 57 Relu, …", in the order in which they come. */
static void put_operators(const cs_graph *graph, cs_table *table) {
  int count[CS_OP_COUNT] = {0};
  cs_strbuf text = {0};
  char *told = NULL;
  for (int n = 0; n < graph->n_nodes; n++) count[graph->nodes[n].op]++;
  for (int n = 0; n < graph->n_nodes; n++) {
    cs_op op = graph->nodes[n].op;
    if (count[op] > 0) {
      cs_strbuf_printf(&text, "%s%d %s", n ? ", " : "", count[op], cs_op_name(op));
    }
    count[op] = 0;
  }
  cs_status st = cs_strbuf_take(&text, &told);
  if (st == CS_OK) {
    cs_table_note(table, "Operators: %s.", told);
  } else {
    table->failed = true;
  }
  cs_status_free(st);
  free(told);
}

static void put_notes(const cs_structure *s, cs_table *table) {
  const cs_graph *graph = s->graph;
  double share = s->flops > 0 ? s->critical_flops / s->flops : 0;
  put_values(graph, "Input", graph->inputs, graph->n_inputs, table);
  put_values(graph, "Output", graph->outputs, graph->n_outputs, table);
  cs_table_note(table, "%d nodes, of which %d compute or move; %lld parameters.", graph->n_nodes,
                layers_at_work(s), (long long)cs_graph_parameter_count(graph));
  put_operators(graph, table);
  cs_table_note(table,
                "%.4g GFLOPs (a multiply-add is two), %.4g MB (each input, weight and output once, "
                "before any fusion).",
                1e-9 * s->flops, 1e-6 * s->bytes);
  cs_table_note(
      table,
      "Blocks (between values that every path passes): %d. Width (the most layers that do "
      "not need one another): %d, of convolutions alone %d.",
      s->n_blocks, s->width, s->width_convolutions);
  cs_table_note(
      table,
      "Critical path (*, of most FLOPs): %.4g GFLOPs, %.0f%% of all; the longest path has "
      "%d layers.",
      1e-9 * s->critical_flops, 100 * share, s->longest);
}

static void describe(const cs_structure *s, cs_table *table) {
  const cs_graph *graph = s->graph;
  const char *dtype = cs_precision_name(s->precision);
  cs_table_title(table, "layers: %s, batch %lld, %s", graph->name, (long long)graph->batch, dtype);
  json_t *about = json_pack("{s:s, s:s, s:I, s:s}", "table", "layers", "model", graph->name,
                            "batch", (json_int_t)graph->batch, "dtype", dtype);
  json_t *summary = json_pack(
      "{s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:i}", "nodes", graph->n_nodes, "layers",
      layers_at_work(s), "parameters", (json_int_t)cs_graph_parameter_count(graph), "flops",
      (json_int_t)s->flops, "bytes", (json_int_t)s->bytes, "blocks", s->n_blocks, "width", s->width,
      "width_convolutions", s->width_convolutions, "critical_flops", (json_int_t)s->critical_flops,
      "longest_path", s->longest);
  if (!about || json_object_update(table->about, about) != 0) table->failed = true;
  if (!summary || json_object_update(table->summary, summary) != 0) table->failed = true;
  json_decref(about);
  json_decref(summary);
}

cs_status cs_report_layers(const cs_structure *structure, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  for (int n = 0; n < structure->graph->n_nodes; n++) {
    CS_RETURN_IF_ERROR(add_layer(structure, n, out));
  }
  put_notes(structure, out);
  describe(structure, out);
  return CS_OK;
}
