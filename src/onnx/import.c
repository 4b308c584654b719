/* The walk over an ONNX graph, and what every operator's import shares. */
#include "onnx/import.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Refusing, reading inputs, emitting ---- */

cs_status cs_onnx_refuse(cs_onnx_node *node, const char *format, ...) {
  cs_onnx_import *import = node->import;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  node->refused = true;
  if (import->n_reasons++ >= CS_ONNX_MOST_REASONS) return CS_OK;
  CS_RETURN_IF_ERROR(cs_grow(&import->missing, &import->missing_capacity, import->n_missing + 1,
                             sizeof *import->missing));
  cs_onnx_missing *missing = &import->missing[import->n_missing];
  CS_RETURN_IF_ERROR(cs_strdup_to(text, &missing->reason));
  missing->node = node->index;
  import->n_missing++;
  return CS_OK;
}

/* Behind a refused node nothing is known of some constants (as the shape arithmetic there), and
 * what is missing then follows from that node's own reason. */
static bool is_behind_refused(const cs_onnx_node *node) {
  for (size_t i = 0; i < node->proto->n_input; i++) {
    const cs_onnx_value *input = cs_onnx_input(node, i);
    if (input && input->kind == CS_ONNX_UNKNOWN && input->defined) return true;
  }
  return false;
}

/* Refused without a reason of its own. */
static cs_status follow(cs_onnx_node *node) {
  if (!node->refused) node->import->n_following++;
  node->refused = true;
  return CS_OK;
}

cs_onnx_value *cs_onnx_input(const cs_onnx_node *node, size_t i) {
  if (i >= node->proto->n_input || !node->proto->input[i][0]) return NULL;
  int value = cs_name_map_get(&node->import->value_of, node->proto->input[i]);
  return value < 0 ? NULL : &node->import->values[value];
}

cs_status cs_onnx_data_in(cs_onnx_node *node, size_t i, cs_onnx_data *out, bool *there) {
  const cs_onnx_value *value = cs_onnx_input(node, i);
  *there = false;
  *out = (cs_onnx_data){.source = CS_ONNX_NOWHERE};
  if (!value) return cs_onnx_refuse(node, "input %zu: found none, wanted a tensor", i);
  if (value->kind == CS_ONNX_CONSTANT && is_behind_refused(node)) return follow(node);
  if (value->kind == CS_ONNX_CONSTANT) {
    return cs_onnx_refuse(node,
                          "input %zu (\"%.80s\"): found a constant, wanted what the network "
                          "computes",
                          i, value->name);
  }
  *out = value->data;
  *there = value->kind == CS_ONNX_DATA;
  return CS_OK;
}

cs_status cs_onnx_constant_in(cs_onnx_node *node, size_t i, bool optional, cs_onnx_value **out) {
  cs_onnx_value *value = cs_onnx_input(node, i);
  *out = NULL;
  if (!value && optional) return CS_OK;
  if (!value) return cs_onnx_refuse(node, "input %zu: found none, wanted a constant", i);
  if (value->kind == CS_ONNX_UNKNOWN && value->defined) return follow(node);
  if (value->kind != CS_ONNX_CONSTANT) {
    return cs_onnx_refuse(node,
                          "input %zu (\"%.80s\"): found what the network computes, wanted a "
                          "constant",
                          i, value->name);
  }
  *out = value;
  return CS_OK;
}

static cs_status add_draft(cs_onnx_node *node, const char *suffix, cs_onnx_draft *draft) {
  cs_onnx_import *import = node->import;
  const char *main_name = import->names[node->index];
  if (suffix) {
    cs_strbuf text = {0};
    char *wanted = NULL;
    cs_strbuf_printf(&text, "%s/%s", main_name, suffix);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &wanted));
    cs_status st = cs_onnx_new_name(import, wanted, "node", &draft->name);
    free(wanted);
    CS_RETURN_IF_ERROR(st);
  } else {
    CS_RETURN_IF_ERROR(cs_strdup_to(main_name, &draft->name));
  }
  CS_RETURN_IF_ERROR(
      cs_grow(&import->drafts, &import->drafts_capacity, import->n_drafts + 1, sizeof *draft));
  import->drafts[import->n_drafts++] = *draft;
  *draft = (cs_onnx_draft){0};
  return CS_OK;
}

/* What the operator table says of it. Its message begins with the (empty) source and the name. */
static cs_status infer(cs_onnx_node *node, cs_op op, cs_attrs *attrs, const cs_shape *shapes,
                       int n_inputs, cs_shape *out) {
  cs_place place = {"", -1, ""};
  cs_status st = cs_op_infer(&place, op, attrs, shapes, n_inputs, out);
  if (st == CS_OK || cs_status_code(st) != CS_CODE_BAD_INPUT) return st;
  const char *message = cs_status_message(st), *start = ": node \"\": ";
  bool known = strncmp(message, start, strlen(start)) == 0;
  cs_status refused =
      cs_onnx_refuse(node, "%s: %s", cs_op_name(op), message + (known ? strlen(start) : 0));
  cs_status_free(st);
  return refused;
}

cs_status cs_onnx_emit(cs_onnx_node *node, const char *suffix, cs_op op, const cs_attrs *attrs,
                       const cs_onnx_data *inputs, int n_inputs, cs_onnx_data *out) {
  cs_status st = CS_OK;
  cs_onnx_draft draft = {.op = op, .n_inputs = n_inputs};
  cs_onnx_data made = {.source = CS_ONNX_NOWHERE}; /* *out may be one of the inputs */
  if (node->refused) {
    *out = made;
    return CS_OK;
  }
  if (attrs) draft.attrs = *attrs;
  cs_shape *shapes = cs_calloc((size_t)n_inputs, sizeof *shapes);
  draft.inputs = cs_calloc((size_t)n_inputs, sizeof *draft.inputs);
  if (!shapes || !draft.inputs) {
    st = cs_no_memory("inputs", (size_t)n_inputs * sizeof *shapes);
    goto done;
  }
  bool nowhere = false;
  for (int i = 0; i < n_inputs; i++) {
    shapes[i] = inputs[i].shape;
    draft.inputs[i] = inputs[i].source;
    if (inputs[i].source == CS_ONNX_NOWHERE) nowhere = true;
  }
  CS_TRY(st, infer(node, op, &draft.attrs, shapes, n_inputs, &draft.shape), done);
  if (node->refused) goto done;
  made.shape = draft.shape;
  if (nowhere) goto done;
  made.source = (int)node->import->n_drafts;
  st = add_draft(node, suffix, &draft);
done:
  *out = made;
  free(draft.name);
  free(draft.inputs);
  free(shapes);
  return st;
}

cs_onnx_value *cs_onnx_output(const cs_onnx_node *node, size_t i) {
  if (i >= node->proto->n_output || !node->proto->output[i][0]) return NULL;
  return &node->import->values[cs_name_map_get(&node->import->value_of, node->proto->output[i])];
}

void cs_onnx_give_output(cs_onnx_node *node, size_t i, const cs_onnx_data *data) {
  cs_onnx_value *value = cs_onnx_output(node, i);
  if (node->refused || !value) return;
  value->kind = CS_ONNX_DATA;
  value->data = *data;
}

void cs_onnx_give(cs_onnx_node *node, const cs_onnx_data *data) {
  cs_onnx_give_output(node, 0, data);
}

cs_status cs_onnx_become(cs_onnx_node *node, cs_op op, const cs_attrs *attrs,
                         const cs_onnx_data *inputs, int n_inputs) {
  cs_onnx_data data;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, NULL, op, attrs, inputs, n_inputs, &data));
  cs_onnx_give(node, &data);
  return CS_OK;
}

void cs_onnx_give_items(cs_onnx_node *node, int32_t dtype, const cs_shape *shape,
                        cs_onnx_item *items) {
  cs_onnx_value *value = cs_onnx_output(node, 0);
  if (!value || node->refused) {
    free(items);
    return;
  }
  value->kind = CS_ONNX_CONSTANT;
  value->dtype = dtype;
  value->data.shape = *shape;
  value->items = items;
}

cs_status cs_onnx_give_fill(cs_onnx_node *node, int32_t dtype, const cs_shape *shape,
                            cs_onnx_item fill) {
  cs_onnx_value *value = cs_onnx_output(node, 0);
  int64_t n = cs_onnx_count(shape);
  if (n <= CS_ONNX_MOST_ITEMS) {
    cs_onnx_item *items = cs_calloc((size_t)n, sizeof *items);
    if (!items) return cs_no_memory("a constant", (size_t)n * sizeof *items);
    for (int64_t i = 0; i < n; i++) items[i] = fill;
    cs_onnx_give_items(node, dtype, shape, items);
    return CS_OK;
  }
  cs_onnx_give_items(node, dtype, shape, NULL);
  if (!value || node->refused) return CS_OK;
  value->filled = true;
  value->fill = fill;
  return CS_OK;
}

cs_status cs_onnx_give_alias(cs_onnx_node *node, const cs_onnx_value *from, const cs_shape *shape,
                             int32_t dtype) {
  cs_onnx_value *value = cs_onnx_output(node, 0);
  if (!value || node->refused) return CS_OK;
  value->kind = CS_ONNX_CONSTANT;
  value->dtype = dtype;
  value->tensor = from->tensor;
  value->transposed = from->transposed;
  value->data.shape = *shape;
  value->filled = from->filled;
  value->fill = from->fill;
  if (!from->items) return CS_OK;
  size_t n = (size_t)cs_onnx_count(shape);
  value->items = cs_calloc(n, sizeof *value->items);
  if (!value->items) return cs_no_memory("a constant", n * sizeof *value->items);
  if (n) memcpy(value->items, from->items, n * sizeof *value->items);
  return CS_OK;
}

/* A computed constant has no place in the file: one number fills the parameter, several are kept
 * with it. */
static cs_status keep_computed(cs_onnx_node *node, const cs_onnx_value *constant,
                               cs_onnx_param *param) {
  bool real = cs_onnx_dtype_is_real(constant->dtype), same = true;
  cs_onnx_item first = constant->filled ? constant->fill : constant->items[0];
  int64_t n = constant->filled ? 1 : cs_onnx_count(&constant->data.shape);
  bool of_batch = first.times_n;
  for (int64_t i = 1; i < n; i++) {
    const cs_onnx_item *item = &constant->items[i];
    same = same && (real ? item->real == first.real : item->whole == first.whole);
    of_batch = of_batch || item->times_n;
  }
  if (of_batch) return cs_onnx_refuse_of_batch(node, constant);
  param->fill = (real ? first.real : (double)first.whole) * param->scale;
  if (same) return CS_OK;
  param->values = cs_calloc((size_t)n, sizeof *param->values);
  if (!param->values) return cs_no_memory("a constant", (size_t)n * sizeof *param->values);
  int64_t columns = param->transposed && constant->data.shape.rank == 2
                        ? constant->data.shape.dims[1]
                        : 1,
          rows = n / columns;
  for (int64_t i = 0; i < n; i++) {
    const cs_onnx_item *item = &constant->items[i];
    /* Row and column change places where the parameter is the matrix the other way round. */
    int64_t at = i % columns * rows + i / columns;
    param->values[at] = (float)((real ? item->real : (double)item->whole) * param->scale);
  }
  return CS_OK;
}

cs_status cs_onnx_refuse_of_batch(cs_onnx_node *node, const cs_onnx_value *constant) {
  return cs_onnx_refuse(node,
                        "input (\"%.80s\"): found numbers that depend on the batch, wanted known "
                        "ones",
                        constant->name);
}

cs_status cs_onnx_add_param(cs_onnx_node *node, const cs_onnx_data *draft, const char *what,
                            const cs_onnx_value *constant, cs_onnx_param param) {
  if (node->refused || draft->source < 0) return CS_OK;
  cs_strbuf text = {0};
  char *name = NULL;
  if (constant && constant->tensor.message) {
    param.has_tensor = true;
    param.tensor = constant->tensor;
    const cs_shape *shape = &constant->data.shape;
    if (shape->rank == 2) {
      param.rows = shape->dims[param.transposed ? 1 : 0];
      param.columns = shape->dims[param.transposed ? 0 : 1];
    }
    if (constant->transposed) param.transposed = !param.transposed;
  } else if (constant) {
    CS_RETURN_IF_ERROR(keep_computed(node, constant, &param));
    if (node->refused) return CS_OK;
  }
  cs_strbuf_printf(&text, "%s.%s", node->import->drafts[draft->source].name, what);
  cs_status st = cs_strbuf_take(&text, &name);
  if (st == CS_OK) st = cs_onnx_params_add(node->import->params, name, &param);
  if (st != CS_OK) free(param.values);
  return st;
}

/* ---- One node ---- */

/* What the operator table says of an attribute, an input ("#1") or the operator itself ("*"). */
typedef enum standing { UNKNOWN_NAME, KNOWN, OF_OTHER_OPSETS } standing;

/* `range`: "-12", "14-", "9-12", or anything else for all. */
static bool is_within(const char *range, int64_t opset) {
  char *end = (char *)range;
  long first = *range == '-' ? 0 : strtol(range, &end, 10);
  if (*end != '-') return true;
  long last = end[1] >= '0' && end[1] <= '9' ? strtol(end + 1, NULL, 10) : LONG_MAX;
  return opset >= first && opset <= last;
}

static standing standing_of(const char *list, const char *name, int64_t opset) {
  size_t length = strlen(name);
  for (const char *at = list; length && (at = strstr(at, name)) != NULL; at += length) {
    bool starts = at == list || at[-1] == ' ';
    char behind = at[length];
    if (!starts || (behind != ' ' && behind != ':' && behind != '\0')) continue;
    return behind != ':' || is_within(at + length + 1, opset) ? KNOWN : OF_OTHER_OPSETS;
  }
  return UNKNOWN_NAME;
}

static cs_status check_attributes(cs_onnx_node *node, const cs_onnx_operator *known) {
  const Onnx__NodeProto *proto = node->proto;
  int64_t opset = node->import->opset;
  for (size_t i = 0; i < proto->n_attribute; i++) {
    const char *name = proto->attribute[i]->name ? proto->attribute[i]->name : "";
    const char *reference = proto->attribute[i]->ref_attr_name;
    standing found = standing_of(known->attributes, name, opset);
    bool twice = false;
    for (size_t k = 0; k < i; k++) {
      twice = twice || (proto->attribute[k]->name && strcmp(proto->attribute[k]->name, name) == 0);
    }
    if (found == UNKNOWN_NAME || name[0] == '#' || name[0] == '*') {
      CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute %.80s is not supported", name));
    } else if (found == OF_OTHER_OPSETS) {
      CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute %s: opset %lld does not have it", name,
                                        (long long)opset));
    } else if (twice) {
      CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute %s: found twice", name));
    } else if (reference && reference[0]) {
      CS_RETURN_IF_ERROR(
          cs_onnx_refuse(node, "attribute %s: found a function's parameter, wanted a value", name));
    }
  }
  return CS_OK;
}

static cs_status check_inputs(cs_onnx_node *node, const cs_onnx_operator *known) {
  const Onnx__NodeProto *proto = node->proto;
  for (size_t i = 0; i < proto->n_input && i < (size_t)known->max_inputs; i++) {
    char name[24];
    snprintf(name, sizeof name, "#%zu", i);
    if (!proto->input[i][0]) continue;
    if (standing_of(known->attributes, name, node->import->opset) != OF_OTHER_OPSETS) continue;
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "input %zu (\"%.80s\"): opset %lld does not have it", i,
                                      proto->input[i], (long long)node->import->opset));
  }
  if (proto->n_input >= (size_t)known->min_inputs && proto->n_input <= (size_t)known->max_inputs) {
    return CS_OK;
  }
  return cs_onnx_refuse(node, "found %zu inputs, wanted %d to %d", proto->n_input,
                        known->min_inputs, known->max_inputs);
}

/* What is the same for every operator: domain, attributes' names, numbers of inputs and outputs. */
static cs_status check_node(cs_onnx_node *node, const cs_onnx_operator *known) {
  const Onnx__NodeProto *proto = node->proto;
  const char *domain = proto->domain ? proto->domain : "";
  if (*domain && strcmp(domain, "ai.onnx") != 0) {
    return cs_onnx_refuse(node, "operator of domain \"%.80s\", wanted one of ONNX's own", domain);
  }
  if (!known) return cs_onnx_refuse(node, "operator is not supported");
  if (standing_of(known->attributes, "*", node->import->opset) == OF_OTHER_OPSETS) {
    CS_RETURN_IF_ERROR(
        cs_onnx_refuse(node, "opset %lld does not have it", (long long)node->import->opset));
  }
  CS_RETURN_IF_ERROR(check_attributes(node, known));
  CS_RETURN_IF_ERROR(check_inputs(node, known));
  for (size_t i = 1; i < proto->n_output && known->convert != cs_onnx_split; i++) {
    int value = cs_name_map_get(&node->import->value_of, proto->output[i]);
    if (value < 0 || node->import->values[value].readers == 0) continue;
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "output %zu (\"%.80s\") is read, wanted only the first",
                                      i, proto->output[i]));
  }
  return CS_OK;
}

static cs_status read_inputs_defined(const cs_onnx_node *node) {
  const cs_onnx_import *import = node->import;
  for (size_t i = 0; i < node->proto->n_input; i++) {
    const cs_onnx_value *value = cs_onnx_input(node, i);
    if (!value || value->defined) continue;
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: node %d \"%s\": found input \"%s\", which node %d \"%s\" makes, itself or "
                    "later in the file; wanted nodes in topological order, without cycles",
                    import->path, node->index, cs_onnx_label(node->proto), value->name, value->node,
                    cs_onnx_label(import->graph->node[value->node]));
  }
  return CS_OK;
}

/* Behind a refused node the file's own shapes, if it has them, let the rest be checked. */
static void give_told_shape(cs_onnx_node *node) {
  cs_onnx_value *value = cs_onnx_output(node, 0);
  if (!value || value->kind != CS_ONNX_UNKNOWN) return;
  if (value->data.shape.rank > 0) value->kind = CS_ONNX_DATA;
  value->data.source = CS_ONNX_NOWHERE;
}

cs_status cs_onnx_visit(cs_onnx_import *import, int index) {
  cs_onnx_node node = {import, import->graph->node[index], index, false};
  bool done = false;
  CS_RETURN_IF_ERROR(read_inputs_defined(&node));
  const cs_onnx_operator *known =
      node.proto->op_type ? cs_onnx_operator_of(node.proto->op_type) : NULL;
  CS_RETURN_IF_ERROR(check_node(&node, known));
  if (known && !node.refused) CS_RETURN_IF_ERROR(cs_onnx_fold(&node, &done));
  bool computes = false; /* of an input that the network computes */
  for (size_t i = 0; i < node.proto->n_input; i++) {
    const cs_onnx_value *input = cs_onnx_input(&node, i);
    computes = computes || (input && input->kind == CS_ONNX_DATA);
  }
  bool counted = known && node.proto->n_input >= (size_t)known->min_inputs;
  if (counted && !done && known->convert) CS_RETURN_IF_ERROR(known->convert(&node));
  if (counted && !done && !known->convert && !node.refused && computes) {
    CS_RETURN_IF_ERROR(
        cs_onnx_refuse(&node, "found an input that the network computes, wanted constants"));
  }
  import->refused[index] = node.refused;
  if (node.refused) import->n_refused++;
  give_told_shape(&node);
  for (size_t i = 0; i < node.proto->n_output; i++) {
    int value = cs_name_map_get(&import->value_of, node.proto->output[i]);
    if (value >= 0) import->values[value].defined = true;
  }
  return CS_OK;
}
