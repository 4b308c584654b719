/* The values of an ONNX graph, and the walk over its nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "onnx/import.h"

static cs_status graph_missing(cs_onnx_import *import, const char *format, ...)
    CS_PRINTF(2, 3) CS_MUST_USE;
static cs_status graph_missing(cs_onnx_import *import, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  cs_onnx_node node = {.import = import, .index = -1};
  import->n_refused++;
  return cs_onnx_refuse(&node, "%s", text);
}

/* A value that is new under its name; its index. */
static cs_status add_value(cs_onnx_import *import, const char *name, const char *what, int node,
                           int *out) {
  int existing;
  CS_RETURN_IF_ERROR(cs_grow(&import->values, &import->values_capacity, import->n_values + 1,
                             sizeof *import->values));
  CS_RETURN_IF_ERROR(cs_name_map_put(&import->value_of, name, (int)import->n_values, &existing));
  if (existing >= 0) {
    const cs_onnx_value *other = &import->values[existing];
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: %s: found name \"%s\", which is also that of %s; wanted each name once",
                    import->path, what, name,
                    other->node >= 0                  ? "another node's output"
                    : other->kind == CS_ONNX_CONSTANT ? "an initializer"
                                                      : "an input");
  }
  *out = (int)import->n_values;
  cs_onnx_value *value = &import->values[import->n_values++];
  *value = (cs_onnx_value){.name = name, .node = node, .defined = node < 0};
  value->data.source = CS_ONNX_NOWHERE;
  return CS_OK;
}

/* ---- Initializers ---- */

static cs_status add_initializers(cs_onnx_import *import) {
  const Onnx__GraphProto *graph = import->graph;
  for (size_t i = 0; i < graph->n_initializer; i++) {
    const char *name = graph->initializer[i]->name ? graph->initializer[i]->name : "";
    char what[64];
    int index = 0;
    snprintf(what, sizeof what, "initializer[%zu]", i);
    CS_RETURN_IF_ERROR(add_value(import, name, what, -1, &index));
    cs_onnx_value *value = &import->values[index];
    value->kind = CS_ONNX_CONSTANT;
    CS_RETURN_IF_ERROR(
        cs_onnx_tensor_open(import->model, graph->initializer[i], name, &value->tensor));
    value->dtype = value->tensor.dtype;
    value->data.shape = value->tensor.shape;
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
    const Onnx__TensorProto *values = graph->sparse_initializer[i]->values;
    const char *name = values && values->name ? values->name : "";
    int index = 0;
    CS_RETURN_IF_ERROR(add_value(import, name, "sparse_initializer", -1, &index));
    CS_RETURN_IF_ERROR(
        graph_missing(import, "initializer \"%.80s\": found a sparse one, wanted dense", name));
  }
  return CS_OK;
}

/* ---- Inputs ---- */

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *info) {
  bool tensor = info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  return tensor ? info->type->tensor_type : NULL;
}

static bool is_symbolic(const Onnx__TensorShapeProto__Dimension *dim) {
  return dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
}

/* The name of a symbolic extent; "" where it has none. */
static const char *symbol_of(const Onnx__TensorShapeProto__Dimension *dim) {
  bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  return named && dim->dim_param ? dim->dim_param : "";
}

/* *symbol: the batch's name, of the first input that has one. */
static cs_status read_input_shape(cs_onnx_import *import, const char *name,
                                  const Onnx__TensorShapeProto *shape, const char **symbol,
                                  cs_shape *out) {
  if (!shape || shape->n_dim < 1 || shape->n_dim > CS_MAX_RANK) {
    return graph_missing(import, "input \"%.80s\": found %s, wanted a shape of 1 to 8 axes", name,
                         shape ? "another number of axes" : "no shape");
  }
  *out = (cs_shape){.rank = (int)shape->n_dim};
  for (size_t i = 0; i < shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
    if (is_symbolic(dim) && i == 0) {
      const char *found = symbol_of(dim);
      out->dims[0] = CS_DIM_N;
      if (!*symbol) *symbol = found;
      if (strcmp(*symbol, found) == 0) continue;
      CS_RETURN_IF_ERROR(graph_missing(import,
                                       "input \"%.80s\": found batch \"%.40s\" beside \"%.40s\" of "
                                       "another input, wanted one",
                                       name, found, *symbol));
    } else if (is_symbolic(dim)) {
      CS_RETURN_IF_ERROR(graph_missing(import,
                                       "input \"%.80s\": found a symbolic extent \"%.40s\" on axis "
                                       "%zu, wanted numbers on all but the first",
                                       name, symbol_of(dim), i));
      out->rank = 0;
      return CS_OK;
    } else if (dim->dim_value < 1 || dim->dim_value > CS_MAX_EXTENT) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: input \"%s\": found extent %lld on axis %zu, wanted 1 to %lld",
                      import->path, name, (long long)dim->dim_value, i, (long long)CS_MAX_EXTENT);
    } else {
      out->dims[i] = dim->dim_value;
    }
  }
  return cs_annotate(cs_shape_fits(out), "%s: input \"%s\": ", import->path, name);
}

static cs_status add_input(cs_onnx_import *import, const Onnx__ValueInfoProto *info,
                           const char **symbol) {
  const char *name = info->name ? info->name : "";
  char *unique = NULL;
  int index = 0;
  int known = cs_name_map_get(&import->value_of, name);
  /* Before IR version 4 initializers were listed among the inputs, as defaults. */
  if (known >= 0 && import->values[known].kind == CS_ONNX_CONSTANT) return CS_OK;
  CS_RETURN_IF_ERROR(add_value(import, name, "input", -1, &index));
  cs_onnx_value *value = &import->values[index];
  if (strlen(name) < 1 || strlen(name) > cs_onnx_most_name(import)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: input: found a name of %zu bytes, wanted 1 to %zu",
                    import->path, strlen(name), cs_onnx_most_name(import));
  }
  /* Inputs keep their names: nodes' make way. */
  CS_RETURN_IF_ERROR(cs_onnx_new_name(import, name, "input", &unique));
  /* Names stay: that of an input that was refused makes room at the end. */
  char **place = &import->input_names[import->n_inputs];
  if (*place) import->input_names[import->input_names_size - ++import->n_refused_names] = *place;
  *place = unique;
  const Onnx__TypeProto__Tensor *type = tensor_type(info);
  if (!type || !cs_onnx_dtype_is_real(type->elem_type)) {
    return graph_missing(import, "input \"%.80s\": found %s, wanted a tensor of float", name,
                         type ? cs_onnx_dtype_name(type->elem_type) : "no tensor");
  }
  CS_RETURN_IF_ERROR(read_input_shape(import, name, type->shape, symbol, &value->data.shape));
  if (value->data.shape.rank == 0) return CS_OK;
  value->kind = CS_ONNX_DATA;
  value->data.source = -1 - import->n_inputs;
  import->inputs[import->n_inputs++] = index;
  return CS_OK;
}

static cs_status add_inputs(cs_onnx_import *import) {
  const Onnx__GraphProto *graph = import->graph;
  const char *symbol = NULL;
  import->inputs = cs_calloc(graph->n_input, sizeof *import->inputs);
  import->input_names = cs_calloc(graph->n_input, sizeof *import->input_names);
  import->input_names_size = graph->n_input;
  if (!import->inputs || !import->input_names) {
    return cs_no_memory("inputs", graph->n_input * sizeof *import->input_names);
  }
  for (size_t i = 0; i < graph->n_input; i++) {
    CS_RETURN_IF_ERROR(add_input(import, graph->input[i], &symbol));
  }
  return CS_OK;
}

/* ---- What nodes make and read, outputs, shapes told ---- */

static cs_status add_node_outputs(cs_onnx_import *import, size_t index) {
  const Onnx__NodeProto *node = import->graph->node[index];
  char what[320];
  snprintf(what, sizeof what, "node %zu \"%.256s\"", index, cs_onnx_label(node));
  for (size_t i = 0; i < node->n_output; i++) {
    int value = 0;
    if (!node->output[i][0]) continue;
    CS_RETURN_IF_ERROR(add_value(import, node->output[i], what, (int)index, &value));
  }
  return CS_OK;
}

static cs_status count_reads(cs_onnx_import *import, size_t index) {
  const Onnx__NodeProto *node = import->graph->node[index];
  for (size_t i = 0; i < node->n_input; i++) {
    if (!node->input[i][0]) continue;
    int value = cs_name_map_get(&import->value_of, node->input[i]);
    if (value < 0) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: node %zu \"%s\": found input \"%s\", wanted the name of an input, an "
                      "initializer or another node's output",
                      import->path, index, cs_onnx_label(node), node->input[i]);
    }
    import->values[value].readers++;
  }
  return CS_OK;
}

static cs_status mark_outputs(cs_onnx_import *import) {
  const Onnx__GraphProto *graph = import->graph;
  for (size_t i = 0; i < graph->n_output; i++) {
    const char *name = graph->output[i]->name ? graph->output[i]->name : "";
    int index = cs_name_map_get(&import->value_of, name);
    if (index < 0) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: output[%zu]: found \"%s\", wanted the name of a value of the graph",
                      import->path, i, name);
    }
    cs_onnx_value *value = &import->values[index];
    if (value->is_output) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: output[%zu]: found \"%s\" twice, wanted each once",
                      import->path, i, name);
    }
    value->is_output = true;
    value->readers++;
  }
  return CS_OK;
}

/* Shapes that the file tells of what nodes make; used only behind nodes that are refused. */
static void note_told_shape(cs_onnx_import *import, const Onnx__ValueInfoProto *info) {
  int index = info->name ? cs_name_map_get(&import->value_of, info->name) : -1;
  const Onnx__TypeProto__Tensor *type = tensor_type(info);
  if (index < 0 || import->values[index].node < 0 || !type || !type->shape) return;
  const Onnx__TensorShapeProto *told = type->shape;
  cs_shape shape = {.rank = (int)told->n_dim};
  if (told->n_dim < 1 || told->n_dim > CS_MAX_RANK) return;
  for (size_t i = 0; i < told->n_dim; i++) {
    bool symbolic = is_symbolic(told->dim[i]);
    if (symbolic && i > 0) return;
    shape.dims[i] = symbolic ? CS_DIM_N : told->dim[i]->dim_value;
    if (!symbolic && (shape.dims[i] < 1 || shape.dims[i] > CS_MAX_EXTENT)) return;
  }
  cs_status st = cs_shape_fits(&shape);
  if (st == CS_OK) import->values[index].data.shape = shape;
  cs_status_free(st);
}

static cs_status check_outputs(cs_onnx_import *import) {
  const Onnx__GraphProto *graph = import->graph;
  for (size_t i = 0; i < graph->n_output; i++) {
    const char *name = graph->output[i]->name ? graph->output[i]->name : "";
    const cs_onnx_value *value = &import->values[cs_name_map_get(&import->value_of, name)];
    if (value->kind == CS_ONNX_CONSTANT || (value->kind == CS_ONNX_DATA && value->node < 0)) {
      CS_RETURN_IF_ERROR(
          graph_missing(import, "output \"%.80s\": found %s, wanted what a node computes",
                        value->name, value->kind == CS_ONNX_CONSTANT ? "a constant" : "an input"));
    }
  }
  if (import->n_refused == 0 &&
      (graph->n_output == 0 || import->n_inputs == 0 || graph->n_node == 0)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: found %d inputs, %zu nodes and %zu outputs, wanted at least one of each",
                    import->path, import->n_inputs, graph->n_node, graph->n_output);
  }
  return CS_OK;
}

cs_status cs_onnx_walk(cs_onnx_model *model, cs_onnx_import *import) {
  *import = (cs_onnx_import){
      .model = model, .graph = model->graph, .opset = model->opset, .path = model->file.path};
  const Onnx__GraphProto *graph = model->graph;
  CS_RETURN_IF_ERROR(cs_onnx_params_create(model, &import->params));
  import->refused = cs_calloc(graph->n_node, sizeof *import->refused);
  if (!import->refused) return cs_no_memory("nodes", graph->n_node);
  CS_RETURN_IF_ERROR(add_initializers(import));
  CS_RETURN_IF_ERROR(add_inputs(import));
  for (size_t i = 0; i < graph->n_node; i++) CS_RETURN_IF_ERROR(add_node_outputs(import, i));
  for (size_t i = 0; i < graph->n_node; i++) CS_RETURN_IF_ERROR(count_reads(import, i));
  CS_RETURN_IF_ERROR(mark_outputs(import));
  for (size_t i = 0; i < graph->n_value_info; i++) note_told_shape(import, graph->value_info[i]);
  for (size_t i = 0; i < graph->n_output; i++) note_told_shape(import, graph->output[i]);
  CS_RETURN_IF_ERROR(cs_onnx_name_nodes(import));
  for (size_t i = 0; i < graph->n_node; i++) {
    cs_progress_step("import", "nodes", (int64_t)i, (int64_t)graph->n_node, NULL);
    CS_RETURN_IF_ERROR(cs_onnx_visit(import, (int)i));
  }
  return check_outputs(import);
}

void cs_onnx_import_clear(cs_onnx_import *import) {
  for (size_t i = 0; i < import->n_values; i++) free(import->values[i].items);
  for (size_t i = 0; i < import->n_drafts; i++) {
    free(import->drafts[i].name);
    free(import->drafts[i].inputs);
  }
  for (size_t i = 0; i < import->n_missing; i++) free(import->missing[i].reason);
  for (size_t i = 0; import->names && i < import->graph->n_node; i++) free(import->names[i]);
  for (size_t i = 0; i < import->input_names_size && import->input_names; i++) {
    free(import->input_names[i]);
  }
  free(import->values);
  free(import->drafts);
  free(import->missing);
  free(import->refused);
  free(import->names);
  free(import->input_names);
  free(import->inputs);
  free(import->numbers);
  cs_name_map_free(&import->value_of);
  cs_name_map_free(&import->used_names);
  cs_onnx_params_destroy(import->params);
  *import = (cs_onnx_import){0};
}
