/* Operators that are several of ours: ReduceL1, ReduceL2, ReduceSumSquare, Reciprocal, Mish,
 * Softsign, GroupNormalization. */
#include <string.h>

#include "onnx/import.h"

cs_status cs_onnx_step(cs_onnx_node *node, cs_op op, const cs_attrs *attrs, const cs_onnx_data *a,
                       const cs_onnx_data *b, cs_onnx_data *out) {
  const cs_onnx_data inputs[2] = {*a, b ? *b : *a}; /* *out may be one of them */
  return cs_onnx_emit(node, cs_op_name(op), op, attrs, inputs, b ? 2 : 1, out);
}

/* Called like the node itself where `last`. */
static cs_status with_number(cs_onnx_node *node, cs_op op, const cs_onnx_data *a, double number,
                             bool number_first, bool last, cs_onnx_data *out) {
  cs_attrs attrs = {.binary = {.operand = {1, {1}}, .operand_first = number_first}};
  const cs_onnx_param fill = {.fill = number, .count = 1};
  const cs_onnx_data input = *a;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, last ? NULL : cs_op_name(op), op, &attrs, &input, 1, out));
  return cs_onnx_add_param(node, out, "weight", NULL, fill);
}

cs_status cs_onnx_step_number(cs_onnx_node *node, cs_op op, const cs_onnx_data *a, double number,
                              bool number_first, cs_onnx_data *out) {
  return with_number(node, op, a, number, number_first, false, out);
}

/* ---- Of one tensor ---- */

cs_status cs_onnx_reciprocal(cs_onnx_node *node) {
  cs_onnx_data input, made;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(with_number(node, CS_OP_DIV, &input, 1.0, true, true, &made));
  cs_onnx_give(node, &made);
  return CS_OK;
}

/* x · tanh(softplus(x)) */
cs_status cs_onnx_mish(cs_onnx_node *node) {
  cs_onnx_data input, gate;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_SOFTPLUS, NULL, &input, NULL, &gate));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_TANH, NULL, &gate, NULL, &gate));
  const cs_onnx_data factors[2] = {input, gate};
  return cs_onnx_become(node, CS_OP_MUL, NULL, factors, 2);
}

/* x / (1 + |x|) */
cs_status cs_onnx_softsign(cs_onnx_node *node) {
  cs_onnx_data input, size;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_ABS, NULL, &input, NULL, &size));
  CS_RETURN_IF_ERROR(cs_onnx_step_number(node, CS_OP_ADD, &size, 1.0, false, &size));
  const cs_onnx_data parts[2] = {input, size};
  return cs_onnx_become(node, CS_OP_DIV, NULL, parts, 2);
}

/* ---- Reductions of sizes and squares ---- */

cs_status cs_onnx_reduce_norm(cs_onnx_node *node) {
  const char *name = node->proto->op_type;
  bool root = strcmp(name, "ReduceL2") == 0, first = strcmp(name, "ReduceL1") == 0, there;
  cs_onnx_data input, made;
  cs_attrs attrs = {0};
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_read_reduce(node, 18, input.shape.rank, &attrs.reduce));
  if (node->refused) return CS_OK;
  if (attrs.reduce.n_axes < 0) {
    return cs_onnx_refuse(node, "found no axes and noop_with_empty_axes, wanted axes");
  }
  if (first) {
    CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_ABS, NULL, &input, NULL, &made));
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_MUL, NULL, &input, &input, &made));
  }
  if (!root) return cs_onnx_become(node, CS_OP_REDUCE_SUM, &attrs, &made, 1);
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_SUM, &attrs, &made, NULL, &made));
  return cs_onnx_become(node, CS_OP_SQRT, NULL, &made, 1);
}

/* ---- GroupNormalization ---- */

/* Each group as one channel, normalized there. */
static cs_status normalize_groups(cs_onnx_node *node, const cs_onnx_data *images, int64_t groups,
                                  double epsilon, cs_onnx_data *out) {
  const int64_t *dims = images->shape.dims;
  cs_attrs split = {.reshape = {4, {dims[0], groups, dims[1] / groups * dims[2], dims[3]}}};
  cs_attrs norm = {.batch_norm = {.epsilon = epsilon}}, back = {.reshape = images->shape};
  cs_onnx_param one = {.fill = 1.0, .count = groups}, zero = {.count = groups};
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_RESHAPE, &split, images, NULL, out));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_INSTANCE_NORM, &norm, out, NULL, out));
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, out, "weight", NULL, one));
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, out, "bias", NULL, zero));
  return cs_onnx_step(node, CS_OP_RESHAPE, &back, out, NULL, out);
}

/* Scale and bias are per channel from opset 21 on, per group before. */
cs_status cs_onnx_group_norm(cs_onnx_node *node) {
  cs_onnx_data input, data;
  cs_onnx_value *constants[2];
  double epsilon;
  int64_t groups;
  bool there, row = false;
  char text[CS_TEXT_SIZE];
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "epsilon", 1e-5, &epsilon));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "num_groups", 0, &groups));
  for (size_t i = 0; i < 2; i++) {
    CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1 + i, false, &constants[i]));
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || !constants[0] || !constants[1] || node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_as_images(node, &input, &row, &there));
  if (!there) return CS_OK;
  int64_t channels = input.shape.dims[1];
  if (groups < 1 || channels % groups != 0) {
    return cs_onnx_refuse(node, "attribute num_groups: found %lld for %lld channels",
                          (long long)groups, (long long)channels);
  }
  if (node->import->opset < 21 && groups != channels) {
    return cs_onnx_refuse(node, "found a scale and a bias per group, which opset 21 has no more");
  }
  for (size_t i = 0; i < 2; i++) {
    const cs_shape *shape = &constants[i]->data.shape;
    if (shape->rank == 1 && shape->dims[0] == channels) continue;
    return cs_onnx_refuse(node, "input %zu: found shape %s, wanted [%lld]", 1 + i,
                          cs_shape_text(shape, text), (long long)channels);
  }
  CS_RETURN_IF_ERROR(normalize_groups(node, &input, groups, epsilon, &data));
  CS_RETURN_IF_ERROR(cs_onnx_emit_affine(node, row ? "BatchNormalization" : NULL, &data,
                                         constants[0], constants[1], &data));
  return cs_onnx_give_images(node, &data, row);
}
