/* Building a graph step by step: a JSON document that cs_builder_finish checks as a file's. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

struct cs_builder {
  char *name;
  json_t *root, *inputs, *nodes, *outputs; /* the arrays are borrowed from root */
};

cs_status cs_builder_create(const char *name, cs_builder **out) {
  cs_status st = CS_OK;
  *out = NULL;
  if (!name) return cs_error(CS_CODE_USAGE, "cs_builder_create: found no name, wanted one");
  cs_builder *builder = cs_calloc(1, sizeof *builder);
  if (!builder) return cs_no_memory("a builder", sizeof *builder);
  CS_TRY(st, cs_strdup_to(name, &builder->name), done);
  json_t *text = json_string(name);
  if (!text) {
    st = cs_error(CS_CODE_BAD_INPUT, "cs_builder_create: wanted a name in UTF-8");
    goto done;
  }
  builder->root = json_pack("{s:s, s:o, s:[], s:[], s:[]}", "schema", "convsched.graph/1", "name",
                            text, "inputs", "nodes", "outputs");
  if (!builder->root) {
    st = cs_no_memory("a builder", 0);
    goto done;
  }
  builder->inputs = json_object_get(builder->root, "inputs");
  builder->nodes = json_object_get(builder->root, "nodes");
  builder->outputs = json_object_get(builder->root, "outputs");
  *out = builder;
  builder = NULL;
done:
  cs_builder_destroy(builder);
  return st;
}

void cs_builder_destroy(cs_builder *builder) {
  if (!builder) return;
  free(builder->name);
  json_decref(builder->root);
  free(builder);
}

/* Takes over `entry`; NULL `entry` or a failure to append are reported. */
static cs_status append(const cs_builder *builder, json_t *array, const char *what,
                        const char *name, json_t *entry) {
  if (json_array_append_new(array, entry) == 0) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%s: %s \"%s\": wanted names in UTF-8 (or out of memory)",
                  builder->name, what, name);
}

cs_status cs_builder_input(cs_builder *builder, const char *name, int rank, const int64_t *dims) {
  if (!name || rank < 1 || rank > CS_MAX_RANK || !dims) {
    return cs_error(CS_CODE_USAGE, "%s: input \"%s\": found rank %d, wanted a name and 1 to %d",
                    builder->name, name ? name : "", rank, CS_MAX_RANK);
  }
  json_t *shape = json_array();
  for (int i = 0; shape && i < rank; i++) {
    json_t *extent = dims[i] == CS_DIM_N ? json_string("N") : json_integer(dims[i]);
    if (json_array_append_new(shape, extent) == 0) continue;
    json_decref(shape);
    shape = NULL;
  }
  if (!shape) return cs_no_memory("a shape", 0);
  return append(builder, builder->inputs, "input", name,
                json_pack("{s:s, s:o, s:s}", "name", name, "shape", shape, "dtype", "f32"));
}

static cs_status parse_attrs(const cs_builder *builder, const char *node, const char *text,
                             json_t **out) {
  json_error_t error;
  *out = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (*out) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT,
                  "%s: node \"%s\": attributes, line %d, column %d: %s, wanted a JSON object",
                  builder->name, node, error.line, error.column, error.text);
}

cs_status cs_builder_node(cs_builder *builder, const char *name, const char *op, int n_inputs,
                          const char *const *inputs, const char *attrs_json) {
  cs_status st = CS_OK;
  json_t *names = NULL, *node = NULL, *attrs = NULL;
  if (!name || !op || n_inputs < 0 || (n_inputs && !inputs)) {
    return cs_error(CS_CODE_USAGE, "%s: node \"%s\": wanted a name, an operator and input names",
                    builder->name, name ? name : "");
  }
  if (attrs_json) CS_TRY(st, parse_attrs(builder, name, attrs_json, &attrs), done);
  names = json_array();
  for (int i = 0; i < n_inputs; i++) {
    CS_TRY(st, append(builder, names, "input of node", name, json_string(inputs[i])), done);
  }
  node = json_pack("{s:s, s:s, s:O}", "name", name, "op", op, "inputs", names);
  if (node && attrs && json_object_set(node, "attrs", attrs) != 0) {
    st = cs_no_memory("attributes", 0);
    goto done;
  }
  st = append(builder, builder->nodes, "node", name, node);
  node = NULL;
done:
  json_decref(attrs);
  json_decref(names);
  json_decref(node);
  return st;
}

cs_status cs_builder_output(cs_builder *builder, const char *name) {
  if (!name) return cs_error(CS_CODE_USAGE, "%s: output: wanted a name", builder->name);
  return append(builder, builder->outputs, "output", name, json_string(name));
}

cs_status cs_builder_finish(cs_builder *builder, cs_graph **out) {
  cs_status status = cs_graph_from_json(builder->root, builder->name, out);
  cs_builder_destroy(builder);
  return status;
}
