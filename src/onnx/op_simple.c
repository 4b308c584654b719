/* Operators that are ours one to one: activations, Sum, Softmax, LRN, Concat, Identity. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"

/* ---- Activations ---- */

/* Attributes have the same names and defaults here. */
cs_status cs_onnx_unary(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  double *values[] = {&attrs.unary.alpha, &attrs.unary.beta};
  cs_op op;
  bool there;
  if (!cs_op_parse(node->proto->op_type, &op)) return CS_OK;
  const cs_unary_info *info = cs_op_unary(op);
  for (int i = 0; i < 2 && info->names[i]; i++) {
    CS_RETURN_IF_ERROR(cs_onnx_real(node, info->names[i], info->defaults[i], values[i]));
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  return there ? cs_onnx_become(node, op, &attrs, &input, 1) : CS_OK;
}

/* The exact form alone. */
cs_status cs_onnx_gelu(cs_onnx_node *node) {
  char how[16];
  CS_RETURN_IF_ERROR(cs_onnx_text(node, "approximate", "none", how, sizeof how));
  if (strcmp(how, "none") != 0) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute approximate: found %s, wanted none", how));
  }
  return cs_onnx_unary(node);
}

cs_status cs_onnx_scalar(cs_onnx_node *node, const char *name, size_t i, double *out) {
  cs_onnx_value *value;
  const cs_onnx_item *items;
  if (node->import->opset < 11) return cs_onnx_real(node, name, *out, out);
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, i, true, &value));
  if (!value) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, value, &items));
  if (!items || cs_onnx_count(&value->data.shape) != 1) {
    return cs_onnx_refuse(node, "input %s: found %lld numbers, wanted one", name,
                          (long long)cs_onnx_count(&value->data.shape));
  }
  if (items[0].times_n) return cs_onnx_refuse_of_batch(node, value);
  *out = cs_onnx_dtype_is_real(value->dtype) ? items[0].real : (double)items[0].whole;
  *out = cs_onnx_exact(node, name, *out);
  return CS_OK;
}

cs_status cs_onnx_clip(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {.clip = {-(double)FLT_MAX, (double)FLT_MAX}};
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_scalar(node, "min", 1, &attrs.clip.min));
  CS_RETURN_IF_ERROR(cs_onnx_scalar(node, "max", 2, &attrs.clip.max));
  /* Infinite bounds are none; JSON has no word for them. */
  if (attrs.clip.min < -(double)FLT_MAX) attrs.clip.min = -(double)FLT_MAX;
  if (attrs.clip.max > (double)FLT_MAX) attrs.clip.max = (double)FLT_MAX;
  if (!(attrs.clip.min <= attrs.clip.max)) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "found min %g and max %g, wanted min at most max",
                                      attrs.clip.min, attrs.clip.max));
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  return there ? cs_onnx_become(node, CS_OP_CLIP, &attrs, &input, 1) : CS_OK;
}

/* ---- Several inputs ---- */

static cs_status all_data(cs_onnx_node *node, cs_onnx_data **out, bool *there) {
  size_t n = node->proto->n_input;
  *there = false;
  *out = cs_calloc(n, sizeof **out);
  if (!*out) return cs_no_memory("inputs", n * sizeof **out);
  bool all = n > 0;
  for (size_t i = 0; i < n; i++) {
    bool one;
    CS_RETURN_IF_ERROR(cs_onnx_data_in(node, i, &(*out)[i], &one));
    all = all && one;
  }
  *there = all;
  return CS_OK;
}

cs_status cs_onnx_concat(cs_onnx_node *node) {
  cs_status st = CS_OK;
  cs_onnx_data *inputs = NULL;
  cs_attrs attrs = {0};
  bool there;
  CS_TRY(st, cs_onnx_int(node, "axis", 1, &attrs.axis.axis), done);
  CS_TRY(st, all_data(node, &inputs, &there), done);
  if (!there) goto done;
  if (attrs.axis.axis < -inputs[0].shape.rank || attrs.axis.axis >= inputs[0].shape.rank) {
    st = cs_onnx_refuse(node, "attribute axis: found %lld, wanted an axis of %d",
                        (long long)attrs.axis.axis, inputs[0].shape.rank);
    goto done;
  }
  st = cs_onnx_become(node, CS_OP_CONCAT, &attrs, inputs, (int)node->proto->n_input);
done:
  free(inputs);
  return st;
}

/* ---- Softmax, LRN ---- */

/* Before opset 13 the axes from `axis` on were one: the same where only one of them is not 1. */
static cs_status old_softmax_axis(cs_onnx_node *node, const cs_shape *shape, int64_t *axis) {
  int64_t wide = *axis;
  int n_wide = 0;
  char text[CS_TEXT_SIZE];
  for (int i = (int)*axis; i < shape->rank; i++) {
    if (shape->dims[i] == 1) continue;
    wide = i;
    n_wide++;
  }
  if (n_wide <= 1) {
    *axis = wide;
    return CS_OK;
  }
  return cs_onnx_refuse(node,
                        "attribute axis: found %lld for shape %s, which before opset 13 is a "
                        "Softmax over several axes; wanted one axis",
                        (long long)*axis, cs_shape_text(shape, text));
}

cs_status cs_onnx_softmax(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  bool there, old = node->import->opset < 13;
  int64_t *axis = &attrs.axis.axis;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "axis", old ? 1 : -1, axis));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  int rank = input.shape.rank;
  if (*axis < -rank || *axis >= rank) {
    return cs_onnx_refuse(node, "attribute axis: found %lld, wanted an axis of %d",
                          (long long)*axis, rank);
  }
  if (*axis < 0) *axis += rank;
  if (old) CS_RETURN_IF_ERROR(old_softmax_axis(node, &input.shape, axis));
  return cs_onnx_become(node, CS_OP_SOFTMAX, &attrs, &input, 1);
}

cs_status cs_onnx_lrn(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "size", 0, &attrs.lrn.size));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "alpha", 1e-4, &attrs.lrn.alpha));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "beta", 0.75, &attrs.lrn.beta));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "bias", 1.0, &attrs.lrn.bias));
  if (attrs.lrn.size < 1 || attrs.lrn.size > CS_MAX_EXTENT) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute size: found %lld, wanted at least 1",
                                      (long long)attrs.lrn.size));
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  return there ? cs_onnx_become(node, CS_OP_LRN, &attrs, &input, 1) : CS_OK;
}

/* ---- Nothing to do ---- */

cs_status cs_onnx_identity(cs_onnx_node *node) {
  cs_onnx_data input;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  return there ? cs_onnx_become(node, CS_OP_IDENTITY, NULL, &input, 1) : CS_OK;
}

/* Inference: the identity, unless the file says that it is training, and drops something. */
cs_status cs_onnx_dropout(cs_onnx_node *node) {
  double ratio = 0.5;
  cs_onnx_data input;
  cs_onnx_value *training = NULL;
  const cs_onnx_item *items = NULL;
  bool there;
  if (node->import->opset >= 12) CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 2, true, &training));
  if (training) CS_RETURN_IF_ERROR(cs_onnx_items(node->import, training, &items));
  bool trains = training && (!items || cs_onnx_count(&training->data.shape) != 1 || items[0].whole);
  if (trains) CS_RETURN_IF_ERROR(cs_onnx_scalar(node, "ratio", 1, &ratio));
  if (trains && ratio != 0) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(
        node, "input training_mode: found true, with a ratio of %g; wanted false, or 0", ratio));
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  return there ? cs_onnx_become(node, CS_OP_DROPOUT, NULL, &input, 1) : CS_OK;
}

/* The precision of a run is chosen there: what is cast between floating-point types stays. */
cs_status cs_onnx_cast(cs_onnx_node *node) {
  int64_t to;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "to", 0, &to));
  if (to < 0 || to > 64 || !cs_onnx_dtype_is_real((int32_t)to)) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(
        node, "attribute to: found type %lld, wanted a floating-point type", (long long)to));
  }
  return cs_onnx_identity(node);
}
