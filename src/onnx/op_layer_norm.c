/* LayerNormalization: what it is made of, mean and variance along the last axes. */
#include "onnx/import.h"

/* (x − mean) / √(mean of (x − mean)² + epsilon) */
static cs_status normalize(cs_onnx_node *node, const cs_onnx_data *x, int64_t axis, double epsilon,
                           cs_onnx_data *out) {
  cs_attrs mean = {.reduce = {.keepdims = true}};
  cs_onnx_data center, far, square, spread, root;
  for (int64_t i = axis; i < x->shape.rank; i++) mean.reduce.axes[mean.reduce.n_axes++] = i;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_MEAN, &mean, x, NULL, &center));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_SUB, NULL, x, &center, &far));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_MUL, NULL, &far, &far, &square));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_MEAN, &mean, &square, NULL, &spread));
  CS_RETURN_IF_ERROR(cs_onnx_step_number(node, CS_OP_ADD, &spread, epsilon, false, &root));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_SQRT, NULL, &root, NULL, &root));
  return cs_onnx_step(node, CS_OP_DIV, NULL, &far, &root, out);
}

cs_status cs_onnx_layer_norm(cs_onnx_node *node) {
  cs_onnx_data input, data;
  cs_onnx_value *scale, *bias;
  int64_t axis;
  double epsilon;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "axis", -1, &axis));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "epsilon", 1e-5, &epsilon));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &scale));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 2, true, &bias));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || !scale || node->refused) return CS_OK;
  int rank = input.shape.rank;
  if (axis < 0) axis += rank;
  if (axis < 1 || axis >= rank) {
    return cs_onnx_refuse(node,
                          "attribute axis: found %lld of %d axes, wanted one behind the first",
                          (long long)axis, rank);
  }
  CS_RETURN_IF_ERROR(normalize(node, &input, axis, epsilon, &data));
  CS_RETURN_IF_ERROR(cs_onnx_emit_operand(node, bias ? cs_op_name(CS_OP_MUL) : NULL, CS_OP_MUL,
                                          &data, scale, false, &data));
  if (bias) {
    CS_RETURN_IF_ERROR(cs_onnx_emit_operand(node, NULL, CS_OP_ADD, &data, bias, false, &data));
  }
  cs_onnx_give(node, &data);
  return CS_OK;
}
