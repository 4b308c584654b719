/* Conv, ConvTranspose, MaxPool, AveragePool and the global pools. */
#include <string.h>

#include "onnx/import.h"

/* ---- auto_pad ---- */

typedef enum auto_pad { PAD_EXPLICIT, PAD_VALID, PAD_UPPER, PAD_LOWER } auto_pad;

static cs_status read_auto_pad(cs_onnx_node *node, auto_pad *out) {
  char text[16];
  *out = PAD_EXPLICIT;
  CS_RETURN_IF_ERROR(cs_onnx_text(node, "auto_pad", "NOTSET", text, sizeof text));
  if (strcmp(text, "VALID") == 0) {
    *out = PAD_VALID;
  } else if (strcmp(text, "SAME_UPPER") == 0) {
    *out = PAD_UPPER;
  } else if (strcmp(text, "SAME_LOWER") == 0) {
    *out = PAD_LOWER;
  } else if (strcmp(text, "NOTSET") != 0) {
    return cs_onnx_refuse(node,
                          "attribute auto_pad: found %s, wanted NOTSET, VALID, SAME_UPPER or "
                          "SAME_LOWER",
                          text);
  }
  return CS_OK;
}

/* The odd one of a number of pads goes to the end (SAME_UPPER) or to the beginning. */
static void split_pads(int64_t total, auto_pad how, int axis, int64_t pads[4]) {
  int64_t small = total / 2, large = total - total / 2;
  pads[axis] = how == PAD_LOWER ? large : small;
  pads[2 + axis] = how == PAD_LOWER ? small : large;
}

/* SAME: ⌈in / stride⌉ outputs. */
static void same_pads(const cs_shape *input, const int64_t kernel[2], const int64_t strides[2],
                      const int64_t dilations[2], auto_pad how, int64_t pads[4]) {
  for (int axis = 0; axis < 2; axis++) {
    int64_t in = input->dims[2 + axis], out = (in + strides[axis] - 1) / strides[axis];
    int64_t total = (out - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 - in;
    split_pads(cs_max_i64(total, 0), how, axis, pads);
  }
}

/* Explicit pads, or those that auto_pad stands for; `input` may be NULL where it is not known. */
static cs_status read_pads(cs_onnx_node *node, const cs_shape *input, const int64_t kernel[2],
                           const int64_t strides[2], const int64_t dilations[2], int64_t pads[4]) {
  auto_pad how;
  CS_RETURN_IF_ERROR(read_auto_pad(node, &how));
  if (how == PAD_EXPLICIT) return cs_onnx_ints(node, "pads", 4, 0, 0, pads);
  for (int i = 0; i < 4; i++) pads[i] = 0;
  if (how != PAD_VALID && input) same_pads(input, kernel, strides, dilations, how, pads);
  return CS_OK;
}

static cs_status want_2d(cs_onnx_node *node, const cs_shape *input, bool *good) {
  *good = input->rank == 4;
  if (*good) return CS_OK;
  return cs_onnx_refuse(node, "found an input of %d axes, wanted 4 (two spatial ones)",
                        input->rank);
}

/* ---- Convolutions ---- */

/* What the weight's shape says, and the attributes that both convolutions have. *good: all of it is
 * known. */
static cs_status read_conv(cs_onnx_node *node, bool transpose, cs_conv_attrs *conv,
                           cs_onnx_data *input, cs_onnx_value **weight, cs_onnx_value **bias,
                           bool *good) {
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "strides", 2, 1, 1, conv->strides));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "dilations", 2, 1, 1, conv->dilations));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "group", 1, &conv->group));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, weight));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 2, true, bias));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, input, &there));
  *good = there && *weight && !node->refused;
  if (!*good) return CS_OK;
  CS_RETURN_IF_ERROR(want_2d(node, &input->shape, good));
  if (!*good) return CS_OK;
  const cs_shape *shape = &(*weight)->data.shape;
  char text[CS_TEXT_SIZE];
  bool fits = shape->rank == 4 && conv->group >= 1 && conv->group <= CS_MAX_EXTENT;
  for (int i = 0; fits && i < 4; i++) fits = shape->dims[i] >= 1 && shape->dims[i] <= CS_MAX_EXTENT;
  /* Conv [K, C/group, R, S], ConvTranspose [C, K/group, R, S]. */
  int64_t channels = input->shape.dims[1], of_input = 0;
  if (fits && transpose) of_input = shape->dims[0];
  if (fits && !transpose) fits = cs_mul_i64(shape->dims[1], conv->group, &of_input);
  conv->out_channels = shape->dims[0];
  if (fits && transpose) fits = cs_mul_i64(shape->dims[1], conv->group, &conv->out_channels);
  if (!fits || of_input != channels || conv->out_channels > CS_MAX_EXTENT) {
    *good = false;
    return cs_onnx_refuse(node, "weight: found shape %s and %lld groups for %lld input channels",
                          cs_shape_text(shape, text), (long long)conv->group, (long long)channels);
  }
  int64_t kernel[2];
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "kernel_shape", 2, 0, 1, kernel));
  for (int i = 0; i < 2; i++) {
    conv->kernel[i] = shape->dims[2 + i];
    if (!cs_onnx_attribute(node, "kernel_shape") || kernel[i] == conv->kernel[i]) continue;
    *good = false;
    return cs_onnx_refuse(node, "attribute kernel_shape: found %lld, wanted the weight's %lld",
                          (long long)kernel[i], (long long)conv->kernel[i]);
  }
  conv->bias = *bias != NULL;
  if (!*bias ||
      ((*bias)->data.shape.rank == 1 && (*bias)->data.shape.dims[0] == conv->out_channels)) {
    return CS_OK;
  }
  *good = false;
  return cs_onnx_refuse(node, "bias: found shape %s, wanted [%lld]",
                        cs_shape_text(&(*bias)->data.shape, text), (long long)conv->out_channels);
}

static cs_status emit_conv(cs_onnx_node *node, cs_op op, const cs_conv_attrs *conv,
                           const cs_onnx_data *input, const cs_onnx_value *weight,
                           const cs_onnx_value *bias) {
  cs_onnx_data data;
  cs_attrs attrs = {.conv = *conv};
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, NULL, op, &attrs, input, 1, &data));
  cs_onnx_param param = {.scale = 1.0, .count = cs_onnx_count(&weight->data.shape)};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "weight", weight, param));
  param.count = conv->out_channels;
  if (bias) CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "bias", bias, param));
  cs_onnx_give(node, &data);
  return CS_OK;
}

cs_status cs_onnx_conv(cs_onnx_node *node) {
  cs_conv_attrs conv = {0};
  cs_onnx_data input;
  cs_onnx_value *weight, *bias;
  bool good;
  CS_RETURN_IF_ERROR(read_conv(node, false, &conv, &input, &weight, &bias, &good));
  CS_RETURN_IF_ERROR(read_pads(node, good ? &input.shape : NULL, conv.kernel, conv.strides,
                               conv.dilations, conv.pads));
  return good ? emit_conv(node, CS_OP_CONV, &conv, &input, weight, bias) : CS_OK;
}

/* Pads of a transposed convolution from the output extent wanted: explicit, or stride × in. */
static void transpose_pads(const cs_shape *input, const int64_t *wanted, auto_pad how,
                           cs_conv_attrs *conv) {
  for (int axis = 0; axis < 2; axis++) {
    int64_t in = input->dims[2 + axis], out = wanted ? wanted[axis] : in * conv->strides[axis];
    int64_t total = conv->strides[axis] * (in - 1) + conv->output_padding[axis] +
                    (conv->kernel[axis] - 1) * conv->dilations[axis] + 1 - out;
    /* Wider than without any pads: what is more is behind the end, as output_padding has it. */
    if (total < 0) conv->output_padding[axis] -= total;
    total = cs_max_i64(total, 0);
    /* ONNX: without SAME_UPPER the odd pad is at the beginning. */
    split_pads(total, how == PAD_UPPER ? PAD_UPPER : PAD_LOWER, axis, conv->pads);
  }
}

cs_status cs_onnx_conv_transpose(cs_onnx_node *node) {
  cs_conv_attrs conv = {0};
  cs_onnx_data input;
  cs_onnx_value *weight, *bias;
  bool good, told = cs_onnx_attribute(node, "output_shape") != NULL;
  auto_pad how;
  int64_t wanted[2];
  CS_RETURN_IF_ERROR(read_conv(node, true, &conv, &input, &weight, &bias, &good));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "output_padding", 2, 0, 0, conv.output_padding));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "output_shape", 2, 0, 1, wanted));
  CS_RETURN_IF_ERROR(read_auto_pad(node, &how));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "pads", 4, 0, 0, conv.pads));
  if (how == PAD_VALID) memset(conv.pads, 0, sizeof conv.pads);
  if (good && !node->refused && (told || how == PAD_UPPER || how == PAD_LOWER)) {
    transpose_pads(&input.shape, told ? wanted : NULL, how, &conv);
  }
  return good ? emit_conv(node, CS_OP_CONV_TRANSPOSE, &conv, &input, weight, bias) : CS_OK;
}

/* ---- Pools ---- */

cs_status cs_onnx_pool(cs_onnx_node *node) {
  bool maximum = strcmp(node->proto->op_type, "MaxPool") == 0, there;
  cs_attrs attrs = {.pool = {.ceil_mode = false}};
  cs_pool_attrs *pool = &attrs.pool;
  cs_onnx_data input;
  int64_t flag;
  if (!cs_onnx_attribute(node, "kernel_shape")) {
    CS_RETURN_IF_ERROR(
        cs_onnx_refuse(node, "attribute kernel_shape: found none, wanted two numbers"));
  }
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "kernel_shape", 2, 1, 1, pool->kernel));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "strides", 2, 1, 1, pool->strides));
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "dilations", 2, 1, 1, pool->dilations));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "ceil_mode", 0, &flag));
  pool->ceil_mode = flag != 0;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "count_include_pad", 0, &flag));
  pool->count_include_pad = !maximum && flag != 0;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (there) CS_RETURN_IF_ERROR(want_2d(node, &input.shape, &there));
  CS_RETURN_IF_ERROR(read_pads(node, there ? &input.shape : NULL, pool->kernel, pool->strides,
                               pool->dilations, pool->pads));
  if (!there) return CS_OK;
  return cs_onnx_become(node, maximum ? CS_OP_MAX_POOL : CS_OP_AVERAGE_POOL, &attrs, &input, 1);
}

/* GlobalMaxPool is a MaxPool whose window is the whole input. */
cs_status cs_onnx_global_pool(cs_onnx_node *node) {
  cs_onnx_data input;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (there) CS_RETURN_IF_ERROR(want_2d(node, &input.shape, &there));
  if (!there) return CS_OK;
  if (strcmp(node->proto->op_type, "GlobalAveragePool") == 0) {
    return cs_onnx_become(node, CS_OP_GLOBAL_AVERAGE_POOL, NULL, &input, 1);
  }
  return cs_onnx_become(node, CS_OP_GLOBAL_MAX_POOL, NULL, &input, 1);
}
