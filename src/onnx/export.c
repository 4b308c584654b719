#include "onnx/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/progress.h"
#include "onnx/model.h"
#include "onnx/wire.h"
#include "onnx/wire_write.h"

/* What a protobuf message, and so an ONNX file without external data, may have. */
#define MOST_BYTES INT32_MAX

/* ---- Names ---- */

static cs_status add_owned(cs_onnx_export *model, char *name) {
  cs_status st = cs_grow(&model->owned, &model->owned_capacity, model->n_owned + 1, sizeof name);
  if (st == CS_OK) {
    model->owned[model->n_owned++] = name;
  } else {
    free(name);
  }
  return st;
}

cs_status cs_onnx_export_name(cs_onnx_export *model, const char *node, const char *what,
                              const char **out) {
  int existing = 0;
  for (int number = 1; existing >= 0; number++) {
    cs_strbuf text = {0};
    char *name = NULL;
    cs_strbuf_printf(&text, "%s.%s", node, what);
    if (number > 1) cs_strbuf_printf(&text, "_%d", number);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &name));
    CS_RETURN_IF_ERROR(add_owned(model, name));
    CS_RETURN_IF_ERROR(cs_name_map_put(&model->taken, name, 0, &existing));
    *out = name;
  }
  return CS_OK;
}

/* ---- Values and tensors ---- */

static void put_value(cs_strbuf *out, int field, const cs_value *value) {
  cs_strbuf shape = {0}, tensor = {0}, type = {0}, info = {0};
  for (int i = 0; i < value->shape.rank; i++) {
    cs_strbuf dim = {0};
    if (value->shape.dims[i] == CS_DIM_N) {
      cs_wire_put_text(&dim, CS_DIM_PARAM, "N");
    } else {
      cs_wire_put_int(&dim, CS_DIM_VALUE, value->shape.dims[i]);
    }
    cs_wire_put_message(&shape, CS_SHAPE_DIM, &dim);
  }
  cs_wire_put_int(&tensor, CS_TENSOR_TYPE_ELEMENT, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
  cs_wire_put_message(&tensor, CS_TENSOR_TYPE_SHAPE, &shape);
  cs_wire_put_message(&type, CS_TYPE_TENSOR, &tensor);
  cs_wire_put_text(&info, CS_VALUE_NAME, value->name);
  cs_wire_put_message(&info, CS_VALUE_TYPE, &type);
  cs_wire_put_message(out, field, &info);
}

void cs_onnx_export_tensor(cs_strbuf *out, const char *name, int32_t dtype, const cs_shape *shape) {
  for (int i = 0; i < shape->rank; i++) cs_wire_put_int(out, CS_TENSOR_DIM, shape->dims[i]);
  cs_wire_put_int(out, CS_TENSOR_TYPE, dtype);
  cs_wire_put_text(out, CS_TENSOR_NAME, name);
}

/* A parameter's TensorProto up to its elements, of which there are *bytes; *size: of all of it. */
static cs_status param_head(const cs_onnx_export *model, int index, cs_strbuf *out, int64_t *bytes,
                            uint64_t *size) {
  const cs_param *param = &model->params[index];
  int64_t elements;
  CS_RETURN_IF_ERROR(cs_shape_elements(&param->shape, &elements));
  if (!cs_mul_i64(elements, (int64_t)sizeof(float), bytes)) {
    return cs_error(CS_CODE_BAD_INPUT, "parameter \"%s\": its bytes overflow", param->name);
  }
  cs_onnx_export_tensor(out, model->initializers[index], ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
                        &param->shape);
  cs_wire_put_head(out, CS_TENSOR_RAW_DATA, (uint64_t)*bytes);
  *size = out->length + (uint64_t)*bytes;
  return CS_OK;
}

/* ---- The model ---- */

/* Whether it is <node>.<something>: params stand in the order of nodes. */
static bool is_param_of(const char *param, const char *node) {
  size_t length = strlen(node);
  return strncmp(param, node, length) == 0 && param[length] == '.' &&
         !strchr(param + length + 1, '.');
}

static cs_status put_nodes(cs_onnx_export *model) {
  const cs_graph *graph = model->graph;
  int param = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const cs_node *node = &graph->nodes[i];
    int first = param;
    while (param < model->n_params && is_param_of(model->params[param].name, node->name)) param++;
    CS_RETURN_IF_ERROR(cs_onnx_export_node(model, node, first, param - first));
  }
  return CS_OK;
}

/* The release of ONNX that brought an opset had this version of the format. */
static int64_t ir_version_of(int64_t opset) {
  if (opset <= 18) return 8;
  if (opset <= 20) return 9;
  if (opset <= 22) return 10;
  return opset <= 23 ? 11 : 12;
}

static void put_entry(cs_strbuf *out, const char *key, const char *value) {
  cs_strbuf entry = {0};
  cs_wire_put_text(&entry, CS_ENTRY_KEY, key);
  cs_wire_put_text(&entry, CS_ENTRY_VALUE, value);
  cs_wire_put_message(out, CS_MODEL_METADATA, &entry);
}

static void put_reals(const cs_onnx_export *model, cs_strbuf *out) {
  if (json_object_size(model->reals) == 0) return;
  char *text = json_dumps(model->reals, JSON_COMPACT | JSON_REAL_PRECISION(17));
  if (text) put_entry(out, CS_ONNX_REALS_KEY, text);
  if (!text) out->failed = true;
  free(text);
}

static void put_model_fields(const cs_onnx_export *model, const char *note, cs_strbuf *out) {
  cs_strbuf opset = {0}, doc = {0};
  cs_strbuf_printf(&doc, "Graph \"%s\" of convsched.graph/1; %s", model->graph->name, note);
  cs_wire_put_int(&opset, CS_OPSET_VERSION, model->opset);
  cs_wire_put_int(out, CS_MODEL_IR_VERSION, ir_version_of(model->opset));
  cs_wire_put_text(out, CS_MODEL_PRODUCER_NAME, "convsched");
  cs_wire_put_text(out, CS_MODEL_PRODUCER_VERSION, cs_version_string());
  cs_wire_put_message(out, CS_MODEL_DOC, &doc);
  cs_wire_put_message(out, CS_MODEL_OPSET, &opset);
  put_reals(model, out);
  put_entry(out, CS_ONNX_MARK_KEY, CS_ONNX_MARK_VALUE);
}

/* All of the graph but the parameters. */
static void put_graph_fields(const cs_onnx_export *model, cs_strbuf *out) {
  const cs_graph *graph = model->graph;
  cs_wire_put_text(out, CS_GRAPH_NAME, graph->name);
  for (int i = 0; i < graph->n_inputs; i++) {
    put_value(out, CS_GRAPH_INPUT, &graph->values[graph->inputs[i]]);
  }
  for (int i = 0; i < graph->n_outputs; i++) {
    put_value(out, CS_GRAPH_OUTPUT, &graph->values[graph->outputs[i]]);
  }
  for (int i = 0; i < graph->n_nodes; i++) {
    int value = graph->nodes[i].output;
    if (!cs_graph_is_output(graph, value)) put_value(out, CS_GRAPH_VALUE, &graph->values[value]);
  }
  if (model->nodes.length) cs_strbuf_append(out, model->nodes.data, model->nodes.length);
  if (model->constants.length)
    cs_strbuf_append(out, model->constants.data, model->constants.length);
}

static uint64_t varint_size(uint64_t value) {
  uint64_t size = 1;
  for (; value >= 0x80; value >>= 7) size++;
  return size;
}

/* graph_size, and all sizes checked. */
static cs_status measure(cs_onnx_export *model, uint64_t fields) {
  uint64_t total = fields;
  for (int i = 0; i < model->n_params; i++) {
    cs_strbuf head = {0};
    int64_t bytes;
    uint64_t size = 0;
    cs_status st = param_head(model, i, &head, &bytes, &size);
    cs_strbuf_free(&head);
    CS_RETURN_IF_ERROR(st);
    total +=
        1 + varint_size(size) + size; /* of 4 bytes an element: 2³¹ parameters do not overflow */
    if (total <= MOST_BYTES) continue;
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: its parameters and nodes take more than %d bytes, which is what an ONNX "
                    "file without external data can hold",
                    model->graph->source, MOST_BYTES);
  }
  model->graph_size = total;
  return CS_OK;
}

static cs_status name_everything(cs_onnx_export *model) {
  const cs_graph *graph = model->graph;
  int existing;
  for (int i = 0; i < graph->n_values; i++) {
    CS_RETURN_IF_ERROR(cs_name_map_put(&model->taken, graph->values[i].name, 0, &existing));
  }
  model->initializers = cs_calloc((size_t)model->n_params, sizeof *model->initializers);
  if (!model->initializers) return cs_no_memory("names", (size_t)model->n_params * sizeof(char *));
  for (int i = 0; i < model->n_params; i++) {
    const char *name = model->params[i].name, *dot = strrchr(name, '.');
    char *node = NULL;
    const char *made = NULL;
    CS_RETURN_IF_ERROR(cs_strdup_to(name, &node));
    node[dot - name] = '\0';
    cs_status st = cs_onnx_export_name(model, node, dot + 1, &made);
    free(node);
    CS_RETURN_IF_ERROR(st);
    model->initializers[i] = (char *)(uintptr_t)made;
  }
  return CS_OK;
}

cs_status cs_onnx_export_encode(const cs_graph *graph, const char *note, cs_onnx_export *out) {
  cs_status st = CS_OK;
  cs_strbuf fields = {0};
  char *json = NULL;
  *out = (cs_onnx_export){.graph = graph, .opset = CS_ONNX_EXPORT_OPSET, .reals = json_object()};
  if (!out->reals) return cs_no_memory("an ONNX model's structure", 0);
  /* What passes changed has no words there either. */
  CS_TRY(st, cs_graph_to_json(graph, &json), done);
  CS_TRY(st, cs_graph_params(graph, &out->params, &out->n_params), done);
  CS_TRY(st, name_everything(out), done);
  CS_TRY(st, put_nodes(out), done);
  put_graph_fields(out, &fields);
  CS_TRY(st, measure(out, fields.length), done);
  put_model_fields(out, note, &out->head);
  cs_wire_put_head(&out->head, CS_MODEL_GRAPH, out->graph_size);
  if (fields.length) cs_strbuf_append(&out->head, fields.data, fields.length);
  if (fields.failed || out->nodes.failed || out->constants.failed || out->head.failed) {
    st = cs_no_memory("an ONNX model's structure", out->head.capacity);
  }
done:
  free(json);
  cs_strbuf_free(&fields);
  if (st != CS_OK) cs_onnx_export_clear(out);
  return st;
}

void cs_onnx_export_clear(cs_onnx_export *model) {
  for (size_t i = 0; i < model->n_owned; i++) free(model->owned[i]);
  free(model->owned);
  free(model->initializers);
  cs_params_free(model->params, model->n_params);
  cs_name_map_free(&model->taken);
  json_decref(model->reals);
  cs_strbuf_free(&model->nodes);
  cs_strbuf_free(&model->constants);
  cs_strbuf_free(&model->head);
  *model = (cs_onnx_export){0};
}

/* ---- Writing ---- */

static cs_status write_param(const cs_onnx_export *model, const cs_onnx_elements *elements,
                             int index, cs_file_writer *file) {
  cs_status st = CS_OK;
  cs_strbuf tensor = {0}, head = {0};
  int64_t bytes;
  uint64_t size = 0;
  const float *data = NULL;
  bool open = false;
  CS_TRY(st, param_head(model, index, &tensor, &bytes, &size), done);
  cs_wire_put_head(&head, CS_GRAPH_INITIALIZER, size);
  if (tensor.failed || head.failed) {
    st = cs_no_memory("a tensor's head", tensor.capacity);
    goto done;
  }
  CS_TRY(st, cs_file_writer_append(file, head.data, head.length), done);
  CS_TRY(st, cs_file_writer_append(file, tensor.data, tensor.length), done);
  int64_t count = bytes / (int64_t)sizeof *data;
  CS_TRY(st, elements->open(elements->user, model->params[index].name, count, &data), done);
  open = true;
  st = cs_file_writer_append(file, data, (size_t)bytes);
done:
  if (open) elements->close(elements->user);
  cs_strbuf_free(&tensor);
  cs_strbuf_free(&head);
  return st;
}

cs_status cs_onnx_export_write(const cs_onnx_export *model, const cs_onnx_elements *elements,
                               const char *path) {
  cs_status st = CS_OK;
  cs_file_writer file = {0};
  CS_TRY(st, cs_file_writer_open(&file, path), done);
  CS_TRY(st, cs_file_writer_append(&file, model->head.data, model->head.length), done);
  for (int i = 0; i < model->n_params; i++) {
    cs_progress_step("writing the model", "parameters", i, model->n_params, NULL);
    CS_TRY(st, write_param(model, elements, i, &file), done);
  }
  st = cs_file_writer_commit(&file);
done:
  cs_file_writer_abandon(&file);
  return st;
}
