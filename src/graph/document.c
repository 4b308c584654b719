/* A parsed JSON document to a graph: strict checks of every key and type. Here head, inputs and
 * outputs. */
#include "graph/document.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define CS_MAX_NAME 256

cs_status cs_load_error(const cs_loader *load, const char *path, const json_t *found,
                        const char *wanted) {
  char text[CS_TEXT_SIZE];
  return cs_error(CS_CODE_BAD_INPUT, "%s: %s: found %s, wanted %s", load->source, path,
                  cs_json_found(found, text), wanted);
}

cs_path_text cs_path_of(const char *format, ...) {
  cs_path_text path;
  va_list args;
  va_start(args, format);
  vsnprintf(path.text, sizeof path.text, format, args);
  va_end(args);
  return path;
}

cs_status cs_load_keys(const cs_loader *load, const char *path, const json_t *object,
                       const char *const *known) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    bool found = false;
    for (int i = 0; known[i] && !found; i++) found = strcmp(known[i], key) == 0;
    if (found) continue;
    cs_strbuf wanted = {0};
    for (int i = 0; known[i]; i++) cs_strbuf_printf(&wanted, "%s%s", i ? ", " : "", known[i]);
    char *text = NULL;
    CS_RETURN_IF_ERROR(cs_strbuf_take(&wanted, &text));
    cs_status status =
        cs_error(CS_CODE_BAD_INPUT, "%s: %s: found unknown key \"%.80s\", wanted one of %s",
                 load->source, path, key, text);
    free(text);
    return status;
  }
  return CS_OK;
}

static cs_status read_name(const cs_loader *load, const char *path, const json_t *json,
                           const char **out) {
  *out = json_string_value(json);
  size_t length = *out ? json_string_length(json) : 0;
  if (length >= 1 && length <= CS_MAX_NAME) return CS_OK;
  return cs_load_error(load, path, json, "a name of 1 to 256 bytes");
}

cs_status cs_load_name(cs_loader *load, const char *path, const json_t *json, int value) {
  const char *name;
  CS_RETURN_IF_ERROR(read_name(load, path, json, &name));
  int existing;
  CS_RETURN_IF_ERROR(cs_name_map_put(&load->names, name, value, &existing));
  if (existing < 0) return CS_OK;
  int n_inputs = load->graph->n_inputs;
  cs_path_text where = existing < n_inputs ? cs_path_of("inputs[%d]", existing)
                                           : cs_path_of("nodes[%d]", existing - n_inputs);
  return cs_error(CS_CODE_BAD_INPUT, "%s: %s: found duplicate name \"%s\" (also of %s)",
                  load->source, path, name, where.text);
}

static cs_status cs_load_array(const cs_loader *load, const json_t *root, const char *key, int *n) {
  const json_t *array = json_object_get(root, key);
  *n = 0;
  size_t size = json_is_array(array) ? json_array_size(array) : 0;
  if (size == 0 || size > INT_MAX / 2) {
    return cs_load_error(load, key, array, "an array of at least one entry");
  }
  *n = (int)size;
  return CS_OK;
}

/* ---- Head ---- */

static cs_status read_head(cs_loader *load, const json_t *root) {
  static const char *const keys[] = {"schema",  "name",    "inputs", "nodes",
                                     "outputs", "weights", NULL};
  if (!json_is_object(root)) return cs_load_error(load, "document", root, "an object");
  const json_t *schema = json_object_get(root, "schema");
  if (!json_is_string(schema) || strcmp(json_string_value(schema), "convsched.graph/1") != 0) {
    return cs_load_error(load, "schema", schema, "\"convsched.graph/1\"");
  }
  CS_RETURN_IF_ERROR(cs_load_keys(load, "document", root, keys));
  const char *name;
  CS_RETURN_IF_ERROR(read_name(load, "name", json_object_get(root, "name"), &name));
  CS_RETURN_IF_ERROR(cs_strdup_to(name, &load->graph->name));
  const json_t *weights = json_object_get(root, "weights");
  if (!weights) return CS_OK;
  if (!json_is_string(weights) || !json_string_length(weights)) {
    return cs_load_error(load, "weights", weights, "a path");
  }
  return cs_path_beside(load->source, json_string_value(weights), &load->graph->weights_path);
}

static cs_status read_extent(const cs_loader *load, int input, int axis, const json_t *json,
                             cs_shape *shape) {
  if (axis == 0 && json_is_string(json) && strcmp(json_string_value(json), "N") == 0) {
    shape->dims[0] = CS_DIM_N;
    load->graph->batch = CS_DIM_N;
    return CS_OK;
  }
  int64_t extent = json_is_integer(json) ? json_integer_value(json) : 0;
  if (extent < 1 || extent > CS_MAX_EXTENT) {
    cs_path_text path = cs_path_of("inputs[%d].shape[%d]", input, axis);
    return cs_load_error(
        load, path.text, json,
        axis == 0 ? "an integer from 1 to 2147483647 or \"N\"" : "an integer from 1 to 2147483647");
  }
  shape->dims[axis] = extent;
  return CS_OK;
}

static cs_status read_input(cs_loader *load, int index, const json_t *json) {
  static const char *const keys[] = {"name", "shape", "dtype", NULL};
  cs_path_text path = cs_path_of("inputs[%d]", index);
  if (!json_is_object(json)) return cs_load_error(load, path.text, json, "an object");
  CS_RETURN_IF_ERROR(cs_load_keys(load, path.text, json, keys));
  path = cs_path_of("inputs[%d].name", index);
  CS_RETURN_IF_ERROR(cs_load_name(load, path.text, json_object_get(json, "name"), index));
  const json_t *dtype = json_object_get(json, "dtype");
  if (dtype && (!json_is_string(dtype) || strcmp(json_string_value(dtype), "f32") != 0)) {
    path = cs_path_of("inputs[%d].dtype", index);
    return cs_load_error(load, path.text, dtype, "\"f32\"");
  }
  const json_t *shape = json_object_get(json, "shape");
  path = cs_path_of("inputs[%d].shape", index);
  if (!json_is_array(shape) || !json_array_size(shape) || json_array_size(shape) > CS_MAX_RANK) {
    return cs_load_error(load, path.text, shape, "an array of 1 to 8 extents");
  }
  cs_value *value = &load->graph->values[index];
  value->shape.rank = (int)json_array_size(shape);
  for (int axis = 0; axis < value->shape.rank; axis++) {
    CS_RETURN_IF_ERROR(
        read_extent(load, index, axis, json_array_get(shape, (size_t)axis), &value->shape));
  }
  CS_RETURN_IF_ERROR(
      cs_annotate(cs_shape_fits(&value->shape), "%s: %s: ", load->source, path.text));
  value->producer = -1;
  load->graph->inputs[index] = index;
  return cs_strdup_to(json_string_value(json_object_get(json, "name")), &value->name);
}

static cs_status read_inputs(cs_loader *load, const json_t *root) {
  cs_graph *graph = load->graph;
  int n;
  CS_RETURN_IF_ERROR(cs_load_array(load, root, "inputs", &n));
  CS_RETURN_IF_ERROR(cs_load_array(load, root, "nodes", &load->n_nodes));
  load->nodes = json_object_get(root, "nodes");
  size_t n_values = (size_t)n + (size_t)load->n_nodes;
  graph->inputs = cs_calloc((size_t)n, sizeof *graph->inputs);
  graph->values = cs_calloc(n_values, sizeof *graph->values);
  if (!graph->inputs || !graph->values) {
    return cs_no_memory("values", n_values * sizeof *graph->values);
  }
  graph->n_inputs = n;
  graph->n_values = n + load->n_nodes;
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(
        read_input(load, i, json_array_get(json_object_get(root, "inputs"), (size_t)i)));
  }
  if (graph->batch != CS_DIM_N) graph->batch = graph->values[0].shape.dims[0];
  return CS_OK;
}

/* ---- Outputs and the whole ---- */

/* After the nodes, when every value has its number. */
static cs_status read_outputs(cs_loader *load, const json_t *root) {
  cs_graph *graph = load->graph;
  cs_status st = CS_OK;
  cs_name_map seen = {0}, values = {0};
  int n, existing;
  CS_TRY(st, cs_load_array(load, root, "outputs", &n), done);
  graph->outputs = cs_calloc((size_t)n, sizeof *graph->outputs);
  if (!graph->outputs) {
    st = cs_no_memory("outputs", (size_t)n * sizeof *graph->outputs);
    goto done;
  }
  for (int i = graph->n_inputs; i < graph->n_values; i++) {
    CS_TRY(st, cs_name_map_put(&values, graph->values[i].name, i, &existing), done);
  }
  for (; graph->n_outputs < n; graph->n_outputs++) {
    const json_t *entry =
        json_array_get(json_object_get(root, "outputs"), (size_t)graph->n_outputs);
    cs_path_text path = cs_path_of("outputs[%d]", graph->n_outputs);
    const char *name = json_string_value(entry);
    int value = name ? cs_name_map_get(&values, name) : -1;
    if (value < 0) {
      st = cs_load_error(load, path.text, entry, "the name of a node");
      goto done;
    }
    CS_TRY(st, cs_name_map_put(&seen, name, graph->n_outputs, &existing), done);
    if (existing >= 0) {
      st = cs_load_error(load, path.text, entry, "each output once");
      goto done;
    }
    graph->outputs[graph->n_outputs] = value;
  }
done:
  cs_name_map_free(&seen);
  cs_name_map_free(&values);
  return st;
}

cs_status cs_graph_from_json(const json_t *root, const char *source, cs_graph **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_loader load = {.source = source, .graph = cs_calloc(1, sizeof(cs_graph))};
  if (!load.graph) return cs_no_memory("a graph", sizeof(cs_graph));
  CS_TRY(st, cs_strdup_to(source, &load.graph->source), done);
  CS_TRY(st, read_head(&load, root), done);
  CS_TRY(st, read_inputs(&load, root), done);
  CS_TRY(st, cs_load_nodes(&load), done);
  CS_TRY(st, read_outputs(&load, root), done);
  for (int i = 0; i < load.graph->n_values; i++) {
    load.graph->values[i].root = i;
    load.graph->values[i].host = -1;
  }
  *out = load.graph;
  load.graph = NULL;
done:
  for (int i = 0; load.drafts && i < load.n_nodes; i++) cs_node_clear(&load.drafts[i]);
  free(load.drafts);
  free(load.order);
  cs_name_map_free(&load.names);
  cs_graph_destroy(load.graph);
  return st;
}
