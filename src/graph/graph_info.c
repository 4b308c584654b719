/* What the public API tells about a graph, and the hash of one. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

const char *cs_graph_name(const cs_graph *graph) {
  return graph->name;
}
int cs_graph_input_count(const cs_graph *graph) {
  return graph->n_inputs;
}
int cs_graph_output_count(const cs_graph *graph) {
  return graph->n_outputs;
}

static const cs_value *value_at(const cs_graph *graph, const int *list, int n, int index) {
  return index >= 0 && index < n ? &graph->values[list[index]] : NULL;
}

const char *cs_graph_input_name(const cs_graph *graph, int index) {
  const cs_value *value = value_at(graph, graph->inputs, graph->n_inputs, index);
  return value ? value->name : NULL;
}

const char *cs_graph_output_name(const cs_graph *graph, int index) {
  const cs_value *value = value_at(graph, graph->outputs, graph->n_outputs, index);
  return value ? value->name : NULL;
}

static int copy_shape(const cs_value *value, int64_t dims[8]) {
  if (!value) return 0;
  memcpy(dims, value->shape.dims, (size_t)value->shape.rank * sizeof *dims);
  return value->shape.rank;
}

int cs_graph_input_shape(const cs_graph *graph, int index, int64_t dims[8]) {
  return copy_shape(value_at(graph, graph->inputs, graph->n_inputs, index), dims);
}

int cs_graph_output_shape(const cs_graph *graph, int index, int64_t dims[8]) {
  return copy_shape(value_at(graph, graph->outputs, graph->n_outputs, index), dims);
}

bool cs_graph_has_value(const cs_graph *graph, const char *name) {
  return cs_graph_find_value(graph, name) >= 0;
}

/* ---- Parameters ---- */

static cs_status add_param(cs_param *param, const char *node, const char *suffix,
                           const cs_shape *shape, bool trainable) {
  cs_strbuf name = {0};
  cs_strbuf_printf(&name, "%s.%s", node, suffix);
  param->shape = *shape;
  param->trainable = trainable;
  return cs_strbuf_take(&name, &param->name);
}

static cs_status add_node_params(const cs_graph *graph, const cs_node *node, cs_param *params,
                                 int *n) {
  const cs_shape *input = &graph->values[node->inputs[0]].shape;
  cs_shape weight = cs_op_param_shape(node->op, &node->attrs, input);
  if (!weight.rank) return CS_OK;
  CS_RETURN_IF_ERROR(add_param(&params[(*n)++], node->name, "weight", &weight, true));
  cs_shape vector = {1, {graph->values[node->output].shape.dims[1]}};
  if (cs_op_has_bias(node->op, &node->attrs)) {
    CS_RETURN_IF_ERROR(add_param(&params[(*n)++], node->name, "bias", &vector, true));
  }
  if (node->op != CS_OP_BATCH_NORM) return CS_OK;
  CS_RETURN_IF_ERROR(add_param(&params[(*n)++], node->name, "running_mean", &vector, false));
  return add_param(&params[(*n)++], node->name, "running_var", &vector, false);
}

cs_status cs_graph_params(const cs_graph *graph, cs_param **out, int *count) {
  cs_status st = CS_OK;
  int n = 0;
  size_t most = 0;
  *out = NULL;
  *count = 0;
  for (int i = 0; i < graph->n_nodes; i++) most += cs_op_has_weight(graph->nodes[i].op) ? 4 : 0;
  cs_param *params = cs_calloc(most, sizeof *params);
  if (!params) return cs_no_memory("parameters", most * sizeof *params);
  for (int i = 0; i < graph->n_nodes; i++) {
    CS_TRY(st, add_node_params(graph, &graph->nodes[i], params, &n), done);
  }
  *out = params;
  *count = n;
  params = NULL;
done:
  cs_params_free(params, n);
  return st;
}

void cs_params_free(cs_param *params, int count) {
  for (int i = 0; params && i < count; i++) free(params[i].name);
  free(params);
}

int64_t cs_node_parameter_count(const cs_graph *graph, const cs_node *node) {
  cs_shape weight =
      cs_op_param_shape(node->op, &node->attrs, &graph->values[node->inputs[0]].shape);
  if (!weight.rank) return 0;
  int64_t count = 1;
  for (int k = 0; k < weight.rank; k++) count *= weight.dims[k];
  if (cs_op_has_bias(node->op, &node->attrs)) count += graph->values[node->output].shape.dims[1];
  return count;
}

int64_t cs_graph_parameter_count(const cs_graph *graph) {
  int64_t count = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    count += cs_node_parameter_count(graph, &graph->nodes[i]);
  }
  return count;
}

/* ---- Hash ---- */

/* Text goes into a buffer that is large enough for every piece between two flushes, so hashing
 * allocates nothing and cannot fail. */
typedef struct hasher {
  uint64_t hash;
  cs_strbuf text;
  char buffer[2048];
} hasher;

static void flush(hasher *sink) {
  sink->hash = cs_hash_bytes(sink->hash, sink->text.data, sink->text.length);
  sink->hash = cs_hash_bytes(sink->hash, "", 1);
  sink->text.length = 0;
}

static void add_shape(hasher *sink, const cs_shape *shape) {
  for (int i = 0; i < shape->rank; i++) {
    cs_strbuf_printf(&sink->text, "%s%lld", i ? "x" : " ", (long long)shape->dims[i]);
  }
}

static void add_fold(hasher *sink, const char *label, const cs_bn_fold *fold) {
  if (!fold->node) return;
  cs_strbuf_printf(&sink->text, " %s=%lld,%.17g,", label, (long long)fold->channels, fold->epsilon);
  flush(sink);
  sink->hash = cs_hash_string(sink->hash, fold->node);
}

static void add_node(hasher *sink, const cs_graph *graph, const cs_node *node) {
  sink->hash = cs_hash_string(sink->hash, node->name);
  cs_strbuf_printf(&sink->text, "%s", cs_op_name(node->op));
  cs_op_sign_attrs(node->op, &node->attrs, &sink->text);
  if (node->op == CS_OP_BATCH_NORM) {
    cs_strbuf_printf(&sink->text, " epsilon=%.17g", node->attrs.batch_norm.epsilon);
  }
  if (cs_op_has_bias(node->op, &node->attrs)) cs_strbuf_printf(&sink->text, " bias");
  cs_strbuf_printf(&sink->text, " act=%s,%.17g,%.17g res=%d", cs_act_name(node->activation.kind),
                   node->activation.alpha, node->activation.beta, node->has_residual);
  add_fold(sink, "before", &node->bn_before);
  add_fold(sink, "after", &node->bn_after);
  if (node->prologue.node) {
    cs_strbuf_printf(&sink->text, " pre=%s,%.17g,%.17g",
                     cs_act_name(node->prologue_activation.kind), node->prologue_activation.alpha,
                     node->prologue_activation.beta);
    add_fold(sink, "prologue", &node->prologue);
  }
  for (int i = 0; i < node->n_inputs; i++) {
    cs_strbuf_printf(&sink->text, " <%d", node->inputs[i]);
    flush(sink);
  }
  cs_strbuf_printf(&sink->text, " >%d", node->output);
  add_shape(sink, &graph->values[node->output].shape);
  flush(sink);
}

uint64_t cs_graph_hash(const cs_graph *graph) {
  hasher sink = {.hash = CS_HASH_SEED};
  sink.text.data = sink.buffer;
  sink.text.capacity = sizeof sink.buffer;
  cs_strbuf_printf(&sink.text, "convsched.graph/1 batch=%lld", (long long)graph->batch);
  flush(&sink);
  for (int i = 0; i < graph->n_values; i++) {
    const cs_value *value = &graph->values[i];
    sink.hash = cs_hash_string(sink.hash, value->name);
    cs_strbuf_printf(&sink.text, "%d %d+%lld", value->producer, value->root,
                     (long long)value->channel_offset);
    if (value->producer < 0) add_shape(&sink, &value->shape);
    flush(&sink);
  }
  for (int i = 0; i < graph->n_nodes; i++) add_node(&sink, graph, &graph->nodes[i]);
  for (int i = 0; i < graph->n_outputs; i++) {
    cs_strbuf_printf(&sink.text, "output %d", graph->outputs[i]);
    flush(&sink);
  }
  return sink.hash;
}
