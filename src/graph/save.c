/* A graph as convsched.graph/1. */
#include <string.h>

#include "graph/graph_internal.h"

static json_t *save_names(const cs_graph *graph, const int *values, int n) {
  json_t *array = json_array();
  for (int i = 0; array && i < n; i++) {
    if (json_array_append_new(array, json_string(graph->values[values[i]].name)) != 0) {
      json_decref(array);
      return NULL;
    }
  }
  return array;
}

static json_t *save_input(const cs_value *value) {
  json_t *object = json_object();
  if (!object) return NULL;
  if (json_object_set_new(object, "name", json_string(value->name)) == 0 &&
      json_object_set_new(object, "shape", cs_attr_save_shape(&value->shape)) == 0 &&
      json_object_set_new(object, "dtype", json_string("f32")) == 0) {
    return object;
  }
  json_decref(object);
  return NULL;
}

static json_t *save_attrs(const cs_node *node) {
  json_t *object = json_object();
  const cs_op_family *family = cs_op_family_of(node->op);
  if (object && family->save && family->save(node->op, &node->attrs, object) != 0) {
    json_decref(object);
    return NULL;
  }
  return object;
}

static json_t *save_node(const cs_graph *graph, const cs_node *node) {
  json_t *object = json_object(), *attrs = save_attrs(node);
  bool saved =
      object && attrs && json_object_set_new(object, "name", json_string(node->name)) == 0 &&
      json_object_set_new(object, "op", json_string(cs_op_name(node->op))) == 0 &&
      json_object_set_new(object, "inputs", save_names(graph, node->inputs, node->n_inputs)) == 0;
  if (saved && json_object_size(attrs)) saved = json_object_set(object, "attrs", attrs) == 0;
  json_decref(attrs);
  if (saved) return object;
  json_decref(object);
  return NULL;
}

/* The weights' path as it was written: relative to the folder of the graph's file. */
static const char *weights_as_written(const cs_graph *graph) {
  const char *slash = strrchr(graph->source, '/');
  size_t folder = slash ? (size_t)(slash - graph->source) + 1 : 0;
  bool below = strncmp(graph->weights_path, graph->source, folder) == 0;
  return below ? graph->weights_path + folder : graph->weights_path;
}

static json_t *save_graph(const cs_graph *graph, const char *weights) {
  json_t *root = json_object(), *inputs = json_array(), *nodes = json_array();
  bool saved = root && inputs && nodes;
  for (int i = 0; saved && i < graph->n_inputs; i++) {
    saved = json_array_append_new(inputs, save_input(&graph->values[graph->inputs[i]])) == 0;
  }
  for (int i = 0; saved && i < graph->n_nodes; i++) {
    saved = json_array_append_new(nodes, save_node(graph, &graph->nodes[i])) == 0;
  }
  saved =
      saved && json_object_set_new(root, "schema", json_string("convsched.graph/1")) == 0 &&
      json_object_set_new(root, "name", json_string(graph->name)) == 0 &&
      json_object_set(root, "inputs", inputs) == 0 && json_object_set(root, "nodes", nodes) == 0 &&
      json_object_set_new(root, "outputs", save_names(graph, graph->outputs, graph->n_outputs)) ==
          0;
  if (!weights && graph->weights_path) weights = weights_as_written(graph);
  if (saved && weights) {
    saved = json_object_set_new(root, "weights", json_string(weights)) == 0;
  }
  json_decref(inputs);
  json_decref(nodes);
  if (saved) return root;
  json_decref(root);
  return NULL;
}

/* The format has no words for what passes fuse, and a node's value has the node's name there. */
static bool is_as_written(const cs_graph *graph, const cs_node *node) {
  return node->activation.kind == CS_ACT_NONE && !node->has_residual && !node->bn_before.node &&
         !node->bn_after.node && !node->prologue.node &&
         strcmp(node->name, graph->values[node->output].name) == 0;
}

cs_status cs_graph_to_json(const cs_graph *graph, char **out) {
  return cs_graph_to_json_with(graph, NULL, out);
}

cs_status cs_graph_to_json_with(const cs_graph *graph, const char *weights, char **out) {
  *out = NULL;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (is_as_written(graph, &graph->nodes[i])) continue;
    return cs_error(CS_CODE_USAGE,
                    "%s: node \"%s\": found a node changed by a pass, wanted the graph as written",
                    graph->source, graph->nodes[i].name);
  }
  json_t *root = save_graph(graph, weights);
  /* 17 digits: attributes come back bit for bit. */
  *out = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(root);
  return *out ? CS_OK : cs_no_memory("JSON text", 0);
}
