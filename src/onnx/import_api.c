/* The public functions: an ONNX file to a graph with its parameters, and what is in the way. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "onnx/import.h"

#define GRAPH_NAME_MOST 200
#define REPORTED_MOST 200 /* rows of one message */

/* ---- The graph ---- */

static const char *source_name(const cs_onnx_import *import, int source) {
  return source >= 0 ? import->drafts[source].name : import->input_names[-1 - source];
}

static json_t *shape_json(const cs_shape *shape) {
  json_t *array = json_array();
  for (int i = 0; array && i < shape->rank; i++) {
    json_array_append_new(
        array, shape->dims[i] == CS_DIM_N ? json_string("N") : json_integer(shape->dims[i]));
  }
  return array;
}

static int add_draft(const cs_onnx_import *import, const cs_onnx_draft *draft, json_t *nodes) {
  json_t *inputs = json_array(), *attrs = json_object();
  for (int i = 0; inputs && i < draft->n_inputs; i++) {
    json_array_append_new(inputs, json_string(source_name(import, draft->inputs[i])));
  }
  const cs_op_family *family = cs_op_family_of(draft->op);
  if (attrs && family->save && family->save(draft->op, &draft->attrs, attrs) != 0) {
    json_decref(attrs);
    attrs = NULL;
  }
  /* A NULL among the values makes the whole NULL, and an append of NULL fails. */
  return json_array_append_new(
      nodes, json_pack("{s:s, s:s, s:o, s:o}", "name", draft->name, "op", cs_op_name(draft->op),
                       "inputs", inputs, "attrs", attrs));
}

/* The file's name without folder and extension: graphs of ONNX are called "main_graph" and such.
 * One of our own keeps its name. */
static cs_status graph_name(const cs_onnx_import *import, char **out) {
  const char *path = import->path, *own = import->graph->name;
  if (import->model->as_written && own && own[0]) return cs_strdup_to(own, out);
  const char *slash = strrchr(path, '/');
  CS_RETURN_IF_ERROR(cs_strdup_to(slash ? slash + 1 : path, out));
  char *dot = strrchr(*out, '.');
  if (dot && dot != *out) *dot = '\0';
  json_t *usable = json_string(*out);
  if (!usable || strlen(*out) > GRAPH_NAME_MOST) strcpy(*out, "model");
  json_decref(usable);
  return CS_OK;
}

static cs_status build(cs_onnx_import *import, cs_graph **out) {
  cs_status st = CS_OK;
  char *name = NULL;
  bool good = true;
  json_t *inputs = json_array(), *nodes = json_array(), *outputs = json_array(), *root = NULL;
  for (int i = 0; i < import->n_inputs; i++) {
    json_t *input = json_pack("{s:s, s:o}", "name", import->input_names[i], "shape",
                              shape_json(&import->values[import->inputs[i]].data.shape));
    good = json_array_append_new(inputs, input) == 0 && good;
  }
  for (size_t i = 0; i < import->n_drafts; i++) {
    good = add_draft(import, &import->drafts[i], nodes) == 0 && good;
  }
  for (size_t i = 0; i < import->graph->n_output; i++) {
    int value = cs_name_map_get(&import->value_of, import->graph->output[i]->name);
    json_t *output = json_string(source_name(import, import->values[value].data.source));
    good = json_array_append_new(outputs, output) == 0 && good;
  }
  CS_TRY(st, graph_name(import, &name), done);
  root = json_pack("{s:s, s:s, s:O, s:O, s:O}", "schema", "convsched.graph/1", "name", name,
                   "inputs", inputs, "nodes", nodes, "outputs", outputs);
  if (!good || !root) {
    st = cs_no_memory("a graph", 0);
    goto done;
  }
  st = cs_graph_from_json(root, import->path, out);
done:
  free(name);
  json_decref(root);
  json_decref(inputs);
  json_decref(nodes);
  json_decref(outputs);
  return st;
}

/* ---- What is missing ---- */

static const Onnx__NodeProto *node_of(const cs_onnx_import *import,
                                      const cs_onnx_missing *missing) {
  return missing->node < 0 ? NULL : import->graph->node[missing->node];
}

static cs_status missing_error(const cs_onnx_import *import) {
  cs_strbuf text = {0};
  char *message = NULL;
  cs_strbuf_printf(
      &text, "%s: %d of its %zu nodes, inputs and outputs cannot be imported:", import->path,
      import->n_refused, import->graph->n_node + import->graph->n_input + import->graph->n_output);
  for (size_t i = 0; i < import->n_missing && i < REPORTED_MOST; i++) {
    const Onnx__NodeProto *node = node_of(import, &import->missing[i]);
    cs_strbuf_printf(&text, "\n  ");
    if (node) {
      cs_strbuf_printf(&text, "node \"%.120s\" (%.60s): ", cs_onnx_label(node),
                       node->op_type ? node->op_type : "");
    }
    cs_strbuf_printf(&text, "%s", import->missing[i].reason);
  }
  if (import->n_reasons > REPORTED_MOST) {
    cs_strbuf_printf(&text, "\n  and %zu more", import->n_reasons - REPORTED_MOST);
  }
  if (import->n_following > 0) {
    cs_strbuf_printf(&text, "\n  and %d nodes behind these, of which too little is known to tell",
                     import->n_following);
  }
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &message));
  cs_status st = cs_error(CS_CODE_BAD_INPUT, "%s", message);
  free(message);
  return st;
}

cs_status cs_graph_import(const char *path, cs_graph **out) {
  cs_status st = CS_OK;
  cs_onnx_model *model = NULL;
  cs_onnx_import import = {0};
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_onnx_model_open(path, &model));
  st = cs_onnx_walk(model, &import);
  if (st == CS_OK && import.n_refused > 0) st = missing_error(&import);
  if (st == CS_OK) st = build(&import, out);
  if (st == CS_OK) st = cs_onnx_model_check_unchanged(model);
  if (st == CS_OK) {
    /* From here on the graph owns the parameters, and they the mapped file. */
    (*out)->param_source = &import.params->source;
    import.params = NULL;
  } else {
    cs_graph_destroy(*out);
    *out = NULL;
    if (!import.params) cs_onnx_model_close(model); /* nothing took it over */
  }
  cs_onnx_import_clear(&import);
  return st;
}

/* ---- The support table ---- */

static json_t *text_json(const char *text) {
  json_t *json = json_string(text ? text : "");
  return json ? json : json_string("(a text that is not UTF-8)"); /* a path */
}

/* Adds one to a row's count. */
static void count(json_t *row, const char *key) {
  json_t *number = json_object_get(row, key);
  json_integer_set(number, json_integer_value(number) + 1);
}

/* The row of an operator, which `index` finds by its domain and name. */
static cs_status operator_row(const Onnx__NodeProto *node, json_t *index, json_t *rows,
                              json_t **out) {
  cs_strbuf text = {0};
  char *key = NULL;
  json_t *op = text_json(node->op_type), *domain = text_json(node->domain);
  cs_strbuf_printf(&text, "%s:%s", json_string_value(domain), json_string_value(op));
  cs_status st = cs_strbuf_take(&text, &key);
  *out = st == CS_OK ? json_object_get(index, key) : NULL;
  if (st == CS_OK && !*out) {
    *out =
        json_pack("{s:O, s:O, s:i, s:i}", "op", op, "domain", domain, "nodes", 0, "unsupported", 0);
    if (json_object_set(index, key, *out) != 0 || json_array_append_new(rows, *out) != 0) {
      st = cs_no_memory("a table", 0);
    }
  }
  free(key);
  json_decref(op);
  json_decref(domain);
  return st;
}

/* One row an operator, in order of first use. */
static cs_status count_operators(const cs_onnx_import *import, json_t *rows) {
  cs_status st = CS_OK;
  json_t *index = json_object(), *row = NULL;
  if (!index) return cs_no_memory("a table", 0);
  for (size_t i = 0; i < import->graph->n_node; i++) {
    CS_TRY(st, operator_row(import->graph->node[i], index, rows, &row), done);
    count(row, "nodes");
    if (import->refused[i]) count(row, "unsupported");
  }
done:
  json_decref(index);
  return st;
}

static json_t *missing_json(const cs_onnx_import *import) {
  json_t *list = json_array();
  for (size_t i = 0; i < import->n_missing; i++) {
    const Onnx__NodeProto *node = node_of(import, &import->missing[i]);
    json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "node",
                                          node ? text_json(cs_onnx_label(node)) : json_null(), "op",
                                          node ? text_json(node->op_type) : json_null(), "reason",
                                          text_json(import->missing[i].reason)));
  }
  return list;
}

cs_status cs_import_check_json(const char *path, char **out) {
  cs_status st = CS_OK;
  cs_onnx_model *model = NULL;
  cs_onnx_import import = {0};
  json_t *rows = json_array();
  *out = NULL;
  CS_TRY(st, cs_onnx_model_open(path, &model), done);
  CS_TRY(st, cs_onnx_walk(model, &import), done);
  CS_TRY(st, count_operators(&import, rows), done);
  const Onnx__ModelProto *proto = model->proto;
  json_t *root =
      json_pack("{s:s, s:o, s:I, s:I, s:o, s:b, s:O, s:o, s:i}", "schema",
                "convsched.import-check/1", "model", text_json(path), "ir_version",
                (json_int_t)proto->ir_version, "opset", (json_int_t)model->opset, "producer",
                text_json(proto->producer_name), "importable", import.n_refused == 0, "operators",
                rows, "unsupported", missing_json(&import), "following", import.n_following);
  st = cs_json_take_text(root, out);
done:
  json_decref(rows);
  if (!import.params) cs_onnx_model_close(model);
  cs_onnx_import_clear(&import);
  return st;
}

bool cs_import_is_built(void) {
  return true;
}
