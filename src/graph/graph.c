/* The graph object: lifetime, copies, binding the batch, look-ups. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

void cs_node_clear(cs_node *node) {
  free(node->name);
  free(node->inputs);
  free(node->bn_before.node);
  free(node->bn_after.node);
  free(node->prologue.node);
  *node = (cs_node){0};
}

void cs_graph_destroy(cs_graph *graph) {
  if (!graph) return;
  for (int i = 0; i < graph->n_values; i++) free(graph->values[i].name);
  for (int i = 0; i < graph->n_nodes; i++) cs_node_clear(&graph->nodes[i]);
  free(graph->name);
  free(graph->source);
  free(graph->weights_path);
  if (graph->param_source) graph->param_source->destroy(graph->param_source);
  free(graph->values);
  free(graph->nodes);
  free(graph->inputs);
  free(graph->outputs);
  free(graph);
}

static cs_status copy_text(const char *text, char **out) {
  *out = NULL;
  return text ? cs_strdup_to(text, out) : CS_OK;
}

static cs_status copy_ints(const int *from, int n, int **out) {
  size_t bytes = (size_t)n * sizeof **out;
  *out = cs_calloc((size_t)n, sizeof **out);
  if (!*out) return cs_no_memory("a list of indices", bytes);
  if (n) memcpy(*out, from, bytes);
  return CS_OK;
}

static cs_status clone_node(const cs_node *from, cs_node *to) {
  *to = *from;
  to->name = NULL;
  to->inputs = NULL;
  to->bn_before.node = to->bn_after.node = to->prologue.node = NULL;
  CS_RETURN_IF_ERROR(copy_text(from->name, &to->name));
  CS_RETURN_IF_ERROR(copy_ints(from->inputs, from->n_inputs, &to->inputs));
  CS_RETURN_IF_ERROR(copy_text(from->bn_before.node, &to->bn_before.node));
  CS_RETURN_IF_ERROR(copy_text(from->bn_after.node, &to->bn_after.node));
  return copy_text(from->prologue.node, &to->prologue.node);
}

static cs_status clone_values(const cs_graph *graph, cs_graph *copy) {
  size_t n = (size_t)graph->n_values;
  copy->values = cs_calloc(n, sizeof *copy->values);
  if (!copy->values) return cs_no_memory("values", n * sizeof *copy->values);
  for (; copy->n_values < graph->n_values; copy->n_values++) {
    cs_value *value = &copy->values[copy->n_values];
    *value = graph->values[copy->n_values];
    CS_RETURN_IF_ERROR(copy_text(graph->values[copy->n_values].name, &value->name));
  }
  return CS_OK;
}

static cs_status clone_nodes(const cs_graph *graph, cs_graph *copy) {
  size_t n = (size_t)graph->n_nodes;
  copy->nodes = cs_calloc(n, sizeof *copy->nodes);
  if (!copy->nodes) return cs_no_memory("nodes", n * sizeof *copy->nodes);
  for (int i = 0; i < graph->n_nodes; i++) {
    copy->n_nodes = i + 1; /* what destroy releases, also of a node copied in part */
    CS_RETURN_IF_ERROR(clone_node(&graph->nodes[i], &copy->nodes[i]));
  }
  return CS_OK;
}

cs_status cs_graph_clone(const cs_graph *graph, cs_graph **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_graph *copy = cs_calloc(1, sizeof *copy);
  if (!copy) return cs_no_memory("a graph", sizeof *copy);
  copy->batch = graph->batch;
  CS_TRY(st, copy_text(graph->name, &copy->name), done);
  CS_TRY(st, copy_text(graph->source, &copy->source), done);
  CS_TRY(st, copy_text(graph->weights_path, &copy->weights_path), done);
  CS_TRY(st, copy_ints(graph->inputs, graph->n_inputs, &copy->inputs), done);
  copy->n_inputs = graph->n_inputs;
  CS_TRY(st, copy_ints(graph->outputs, graph->n_outputs, &copy->outputs), done);
  copy->n_outputs = graph->n_outputs;
  CS_TRY(st, clone_values(graph, copy), done);
  CS_TRY(st, clone_nodes(graph, copy), done);
  *out = copy;
  copy = NULL;
done:
  cs_graph_destroy(copy);
  return st;
}

cs_status cs_graph_infer_node(cs_graph *graph, int index, const cs_place *place) {
  cs_node *node = &graph->nodes[index];
  int n = node->n_inputs - (node->has_residual ? 1 : 0);
  cs_shape few[CS_MAX_OP_INPUTS] = {0}, *inputs = few;
  if (n > CS_MAX_OP_INPUTS) {
    inputs = cs_calloc((size_t)n, sizeof *inputs);
    if (!inputs) return cs_no_memory("input shapes", (size_t)n * sizeof *inputs);
  }
  for (int i = 0; i < n; i++) inputs[i] = graph->values[node->inputs[i]].shape;
  cs_status st =
      cs_op_infer(place, node->op, &node->attrs, inputs, n, &graph->values[node->output].shape);
  if (inputs != few) free(inputs);
  return st;
}

cs_status cs_graph_bind(const cs_graph *graph, int64_t n, cs_graph **out) {
  cs_status st = CS_OK;
  cs_graph *bound = NULL;
  *out = NULL;
  if (n < 1 || n > CS_MAX_EXTENT) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found batch %lld, wanted from 1 to %lld", graph->source,
                    (long long)n, (long long)CS_MAX_EXTENT);
  }
  if (graph->batch != CS_DIM_N && graph->batch != n) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: found batch %lld, wanted %lld, which the graph's input shapes fix",
                    graph->source, (long long)n, (long long)graph->batch);
  }
  CS_TRY(st, cs_graph_clone(graph, &bound), done);
  /* A clone that succeeded is there; the analyzer takes cs_no_memory for CS_OK. */
  bound->batch = n; /* NOLINT(clang-analyzer-core.NullDereference) */
  for (int i = 0; i < bound->n_inputs; i++) {
    cs_value *value = &bound->values[bound->inputs[i]];
    if (value->shape.dims[0] == CS_DIM_N) value->shape.dims[0] = n;
    CS_TRY(st,
           cs_annotate(cs_shape_fits(&value->shape), "%s: input \"%s\" at batch %lld: ",
                       graph->source, value->name, (long long)n),
           done);
  }
  for (int i = 0; i < bound->n_nodes; i++) {
    cs_place place = {bound->source, -1, bound->nodes[i].name};
    CS_TRY(st, cs_annotate(cs_graph_infer_node(bound, i, &place), "batch %lld: ", (long long)n),
           done);
  }
  *out = bound;
  bound = NULL;
done:
  cs_graph_destroy(bound);
  return st;
}

int cs_graph_find_value(const cs_graph *graph, const char *name) {
  for (int i = 0; i < graph->n_values; i++) {
    if (strcmp(graph->values[i].name, name) == 0) return i;
  }
  return -1;
}

int cs_graph_consumers(const cs_graph *graph, int value, int *nodes, int capacity) {
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    bool reads = false;
    for (int k = 0; k < node->n_inputs && !reads; k++) reads = node->inputs[k] == value;
    if (!reads) continue;
    if (n < capacity) nodes[n] = i;
    n++;
  }
  return n;
}

bool cs_graph_is_output(const cs_graph *graph, int value) {
  for (int i = 0; i < graph->n_outputs; i++) {
    if (graph->outputs[i] == value) return true;
  }
  return false;
}

cs_status cs_graph_output_flags(const cs_graph *graph, bool **out) {
  *out = cs_calloc((size_t)graph->n_values, sizeof **out);
  if (!*out) return cs_no_memory("output flags", (size_t)graph->n_values);
  for (int i = 0; i < graph->n_outputs; i++) (*out)[graph->outputs[i]] = true;
  return CS_OK;
}
