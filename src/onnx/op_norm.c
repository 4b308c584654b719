/* BatchNormalization, InstanceNormalization, GroupNormalization, LayerNormalization. */
#include "onnx/import.h"

/* Refuses constants, from input 1 on, that are not of one number per channel. */
static cs_status want_per_channel(cs_onnx_node *node, cs_onnx_value *const *constants, size_t n,
                                  int64_t channels) {
  char text[CS_TEXT_SIZE];
  for (size_t i = 0; i < n; i++) {
    const cs_shape *shape = &constants[i]->data.shape;
    if (shape->rank == 1 && shape->dims[0] == channels) continue;
    return cs_onnx_refuse(node, "input %zu: found shape %s, wanted [%lld]", 1 + i,
                          cs_shape_text(shape, text), (long long)channels);
  }
  return CS_OK;
}

/* Input 0 as images (a matrix stays where it may be one), and the constants behind it. *there: all
 * of them are. */
static cs_status read_inputs(cs_onnx_node *node, size_t n, bool may_be_matrix,
                             cs_onnx_value **constants, cs_onnx_data *input, bool *row,
                             bool *there) {
  bool all = true;
  *row = false;
  for (size_t i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1 + i, false, &constants[i]));
    all = all && constants[i];
  }
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, input, there));
  *there = *there && all && !node->refused;
  if (!*there || (may_be_matrix && input->shape.rank == 2)) return CS_OK;
  return cs_onnx_as_images(node, input, row, there);
}

/* ---- BatchNormalization, InstanceNormalization: the same here, with n parameters ---- */

static cs_status normalize(cs_onnx_node *node, cs_op op, const cs_attrs *attrs, size_t n) {
  static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
  cs_onnx_data input, data;
  cs_onnx_value *constants[4];
  bool there, row;
  CS_RETURN_IF_ERROR(read_inputs(node, n, op == CS_OP_BATCH_NORM, constants, &input, &row, &there));
  if (!there) return CS_OK;
  int64_t channels = input.shape.dims[1];
  CS_RETURN_IF_ERROR(want_per_channel(node, constants, n, channels));
  if (node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, row ? cs_op_name(op) : NULL, op, attrs, &input, 1, &data));
  for (size_t i = 0; i < n; i++) {
    cs_onnx_param param = {.scale = 1.0, .count = channels};
    CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, names[i], constants[i], param));
  }
  return cs_onnx_give_images(node, &data, row);
}

cs_status cs_onnx_batch_norm(cs_onnx_node *node) {
  cs_attrs attrs = {0};
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "epsilon", 1e-5, &attrs.batch_norm.epsilon));
  CS_RETURN_IF_ERROR(cs_onnx_want_int(node, "training_mode", 0, 0));
  /* Until opset 8: statistics per channel (1) or per element. */
  CS_RETURN_IF_ERROR(cs_onnx_want_int(node, "spatial", 1, 1));
  return normalize(node, CS_OP_BATCH_NORM, &attrs, 4);
}

cs_status cs_onnx_instance_norm(cs_onnx_node *node) {
  cs_attrs attrs = {0};
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "epsilon", 1e-5, &attrs.batch_norm.epsilon));
  return normalize(node, CS_OP_INSTANCE_NORM, &attrs, 2);
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
  bool there, row;
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "epsilon", 1e-5, &epsilon));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "num_groups", 0, &groups));
  CS_RETURN_IF_ERROR(read_inputs(node, 2, false, constants, &input, &row, &there));
  if (!there) return CS_OK;
  int64_t channels = input.shape.dims[1];
  if (groups < 1 || channels % groups != 0) {
    return cs_onnx_refuse(node, "attribute num_groups: found %lld for %lld channels",
                          (long long)groups, (long long)channels);
  }
  if (node->import->opset < 21 && groups != channels) {
    return cs_onnx_refuse(node, "found a scale and a bias per group, which opset 21 has no more");
  }
  CS_RETURN_IF_ERROR(want_per_channel(node, constants, 2, channels));
  if (node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(normalize_groups(node, &input, groups, epsilon, &data));
  CS_RETURN_IF_ERROR(cs_onnx_emit_affine(node, row ? "BatchNormalization" : NULL, &data,
                                         constants[0], constants[1], &data));
  return cs_onnx_give_images(node, &data, row);
}

/* ---- LayerNormalization: what it is made of, mean and variance along the last axes ---- */

/* (x − mean) / √(mean of (x − mean)² + epsilon) */
static cs_status standardize(cs_onnx_node *node, const cs_onnx_data *x, int64_t axis,
                             double epsilon, cs_onnx_data *out) {
  cs_attrs mean = {.reduce = {.keepdims = true}};
  cs_onnx_data center, far, square, spread, root;
  for (int64_t i = axis; i < x->shape.rank; i++) mean.reduce.axes[mean.reduce.n_axes++] = i;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_MEAN, &mean, x, NULL, &center));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_SUB, NULL, x, &center, &far));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_MUL, NULL, &far, &far, &square));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_MEAN, &mean, &square, NULL, &spread));
  CS_RETURN_IF_ERROR(
      cs_onnx_emit_number(node, cs_op_name(CS_OP_ADD), CS_OP_ADD, &spread, epsilon, false, &root));
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
  CS_RETURN_IF_ERROR(standardize(node, &input, axis, epsilon, &data));
  CS_RETURN_IF_ERROR(cs_onnx_emit_operand(node, bias ? cs_op_name(CS_OP_MUL) : NULL, CS_OP_MUL,
                                          &data, scale, false, &data));
  if (bias) {
    CS_RETURN_IF_ERROR(cs_onnx_emit_operand(node, NULL, CS_OP_ADD, &data, bias, false, &data));
  }
  cs_onnx_give(node, &data);
  return CS_OK;
}
