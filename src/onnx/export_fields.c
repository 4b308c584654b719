/* Fields of nodes: attributes as a graph's JSON has them, and those that are inputs in ONNX, which
 * become initializers. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"
#include "onnx/export.h"
#include "onnx/model.h"
#include "onnx/wire.h"
#include "onnx/wire_write.h"

/* ---- Attributes ---- */

static void begin_attribute(cs_strbuf *attribute, const char *name, int64_t type) {
  cs_wire_put_text(attribute, CS_ATTRIBUTE_NAME, name);
  cs_wire_put_int(attribute, CS_ATTRIBUTE_TYPE, type);
}

void cs_onnx_put_int(cs_strbuf *out, const char *name, int64_t value) {
  cs_strbuf attribute = {0};
  begin_attribute(&attribute, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  cs_wire_put_int(&attribute, CS_ATTRIBUTE_INT, value);
  cs_wire_put_message(out, CS_NODE_ATTRIBUTE, &attribute);
}

static void put_text(cs_strbuf *out, const char *name, const char *value) {
  cs_strbuf attribute = {0};
  begin_attribute(&attribute, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  cs_wire_put_text(&attribute, CS_ATTRIBUTE_STRING, value);
  cs_wire_put_message(out, CS_NODE_ATTRIBUTE, &attribute);
}

void cs_onnx_put_ints(cs_strbuf *out, const char *name, const json_t *list) {
  cs_strbuf attribute = {0};
  size_t i;
  const json_t *value;
  begin_attribute(&attribute, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  json_array_foreach(list, i, value) {
    cs_wire_put_int(&attribute, CS_ATTRIBUTE_INTS, json_integer_value(value));
  }
  cs_wire_put_message(out, CS_NODE_ATTRIBUTE, &attribute);
}

/* ONNX has f32; what that rounds is told in the metadata too. */
static cs_status narrow(cs_onnx_export *model, const cs_node *node, const char *name, double value,
                        float *out) {
  cs_strbuf text = {0};
  char *key = NULL;
  if (!(value >= -(double)FLT_MAX && value <= (double)FLT_MAX)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: node \"%s\": attribute %s: found %g, wanted a number that f32 holds, "
                    "which is what ONNX has",
                    model->graph->source, node->name, name, value);
  }
  *out = (float)value;
  if ((double)*out == value) return CS_OK;
  cs_strbuf_printf(&text, "%s.%s", node->name, name);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &key));
  int failed = json_object_set_new(model->reals, key, json_real(value));
  free(key);
  return failed ? cs_no_memory("metadata", 0) : CS_OK;
}

/* What ONNX takes where the attribute is absent; NaN: it is always written. */
static double default_of(cs_op op, const char *name) {
  const cs_unary_info *info = cs_op_unary(op);
  for (int i = 0; i < 2 && info->names[i]; i++) {
    if (strcmp(info->names[i], name) == 0) return info->defaults[i];
  }
  if (strcmp(name, "epsilon") == 0) return 1e-5;
  if (op == CS_OP_LRN && strcmp(name, "alpha") == 0) return 1e-4;
  if (op == CS_OP_LRN && strcmp(name, "beta") == 0) return 0.75;
  return NAN;
}

static cs_status put_real(cs_onnx_export *model, const cs_node *node, const char *name,
                          double value, cs_strbuf *out) {
  cs_strbuf attribute = {0};
  float narrowed = 0;
  if (value == default_of(node->op, name)) return CS_OK;
  CS_RETURN_IF_ERROR(narrow(model, node, name, value, &narrowed));
  begin_attribute(&attribute, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  cs_wire_put_float(&attribute, CS_ATTRIBUTE_FLOAT, narrowed);
  cs_wire_put_message(out, CS_NODE_ATTRIBUTE, &attribute);
  return CS_OK;
}

static cs_status put_attribute(cs_onnx_export *model, const cs_node *node, const char *name,
                               const json_t *value, cs_strbuf *out) {
  if (json_is_real(value)) return put_real(model, node, name, json_real_value(value), out);
  if (json_is_array(value)) {
    cs_onnx_put_ints(out, name, value);
  } else if (json_is_boolean(value)) {
    cs_onnx_put_int(out, name, json_boolean_value(value));
  } else if (json_is_integer(value)) {
    cs_onnx_put_int(out, name, json_integer_value(value));
  } else if (json_is_string(value)) {
    put_text(out, name, json_string_value(value));
  } else {
    return cs_error(CS_CODE_INTERNAL, "node \"%s\": attribute %s cannot be written", node->name,
                    name);
  }
  return CS_OK;
}

/* Those of the names that the node has. */
cs_status cs_onnx_put_attributes(cs_onnx_export *model, const cs_node *node, const char *names,
                                 cs_strbuf *out) {
  cs_status st = CS_OK;
  const cs_op_family *family = cs_op_family_of(node->op);
  json_t *attrs = json_object();
  if (!attrs || (family->save && family->save(node->op, &node->attrs, attrs) != 0)) {
    st = cs_no_memory("attributes", 0);
    goto done;
  }
  for (const char *at = names, *end; *at; at = end + 1) {
    char name[32] = "";
    end = strchr(at, ' ');
    memcpy(name, at, (size_t)(end - at));
    const json_t *value = json_object_get(attrs, name);
    if (value) CS_TRY(st, put_attribute(model, node, name, value, out), done);
  }
done:
  json_decref(attrs);
  return st;
}

/* ---- Attributes that are inputs in ONNX ---- */

static cs_status put_constant(cs_onnx_export *model, const cs_node *node, const char *what,
                              int32_t dtype, const cs_shape *shape, const void *data, size_t size,
                              cs_strbuf *out) {
  const char *name = NULL;
  cs_strbuf tensor = {0};
  CS_RETURN_IF_ERROR(cs_onnx_export_name(model, node->name, what, &name));
  cs_onnx_export_tensor(&tensor, name, dtype, shape);
  cs_wire_put_bytes(&tensor, CS_TENSOR_RAW_DATA, data, size);
  cs_wire_put_message(&model->constants, CS_GRAPH_INITIALIZER, &tensor);
  cs_wire_put_text(out, CS_NODE_INPUT, name);
  return CS_OK;
}

cs_status cs_onnx_put_list(cs_onnx_export *model, const cs_node *node, const char *what,
                           const int64_t *values, int n, cs_strbuf *out) {
  const cs_shape shape = {1, {n}};
  return put_constant(model, node, what, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape, values,
                      (size_t)n * sizeof *values, out);
}

cs_status cs_onnx_put_number(cs_onnx_export *model, const cs_node *node, const char *what,
                             double value, cs_strbuf *out) {
  const cs_shape scalar = {0};
  float narrowed = 0;
  CS_RETURN_IF_ERROR(narrow(model, node, what, value, &narrowed));
  return put_constant(model, node, what, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &scalar, &narrowed,
                      sizeof narrowed, out);
}

cs_status cs_onnx_put_numbers(cs_onnx_export *model, const cs_node *node, const char *what,
                              const double *values, int n, cs_strbuf *out) {
  const cs_shape shape = {1, {n}};
  float narrowed[4] = {0};
  for (int i = 0; i < n; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", what, i);
    CS_RETURN_IF_ERROR(narrow(model, node, name, values[i], &narrowed[i]));
  }
  return put_constant(model, node, what, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &shape, narrowed,
                      (size_t)n * sizeof *narrowed, out);
}
