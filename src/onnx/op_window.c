/* Conv, ConvTranspose, MaxPool, AveragePool and the global pools, of two spatial axes; of one,
 * which is a width then, of images of one row. */
#include <string.h>

#include "onnx/import.h"

/* ---- Images of one row ---- */

cs_status cs_onnx_as_images(cs_onnx_node *node, cs_onnx_data *data, bool *row, bool *good) {
  const int64_t *dims = data->shape.dims;
  *row = data->shape.rank == 3;
  *good = *row || data->shape.rank == 4;
  if (!*good) {
    return cs_onnx_refuse(node,
                          "found an input of %d axes, wanted 3 or 4 (one spatial axis or two)",
                          data->shape.rank);
  }
  if (!*row) return CS_OK;
  cs_attrs attrs = {.reshape = {4, {dims[0], dims[1], 1, dims[2]}}};
  cs_onnx_data input = *data;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, "Reshape", CS_OP_RESHAPE, &attrs, &input, 1, data));
  *good = !node->refused;
  return CS_OK;
}

cs_status cs_onnx_give_images(cs_onnx_node *node, const cs_onnx_data *data, bool row) {
  if (row && !node->refused) {
    const int64_t *dims = data->shape.dims;
    const cs_shape shape = {3, {dims[0], dims[1], dims[3]}};
    return cs_onnx_as_shape(node, data, &shape);
  }
  cs_onnx_give(node, data);
  return CS_OK;
}

/* A number for each of `axes` spatial axes; a single one is the width's. */
static cs_status read_axes(cs_onnx_node *node, const char *name, int axes, int64_t fallback,
                           int64_t least, int64_t out[2]) {
  out[0] = fallback;
  return cs_onnx_ints(node, name, axes, fallback, least, axes == 1 ? &out[1] : out);
}

/* Begins, then ends. */
static cs_status read_explicit_pads(cs_onnx_node *node, int axes, int64_t pads[4]) {
  int64_t found[4];
  for (int i = 0; i < 4; i++) pads[i] = 0;
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "pads", 2 * axes, 0, 0, found));
  for (int i = 0; i < axes; i++) {
    pads[2 - axes + i] = found[i];
    pads[4 - axes + i] = found[axes + i];
  }
  return CS_OK;
}

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
static cs_status read_pads(cs_onnx_node *node, int axes, const cs_shape *input,
                           const int64_t kernel[2], const int64_t strides[2],
                           const int64_t dilations[2], int64_t pads[4]) {
  auto_pad how;
  CS_RETURN_IF_ERROR(read_auto_pad(node, &how));
  if (how == PAD_EXPLICIT) return read_explicit_pads(node, axes, pads);
  for (int i = 0; i < 4; i++) pads[i] = 0;
  if (how != PAD_VALID && input) same_pads(input, kernel, strides, dilations, how, pads);
  return CS_OK;
}

/* ---- Convolutions ---- */

typedef struct convolution {
  cs_conv_attrs attrs;
  cs_onnx_data input; /* of two spatial axes */
  cs_onnx_value *weight, *bias;
  int axes;  /* spatial ones that the model has */
  bool row;  /* one */
  bool good; /* all of it is known */
} convolution;

/* Conv [K, C/group, R, S], ConvTranspose [C, K/group, R, S]; without R where there is one axis. */
static cs_status check_weight(cs_onnx_node *node, bool transpose, convolution *c) {
  const cs_shape *shape = &c->weight->data.shape;
  cs_conv_attrs *conv = &c->attrs;
  char text[CS_TEXT_SIZE];
  bool fits = shape->rank == (c->row ? 3 : 4) && conv->group >= 1 && conv->group <= CS_MAX_EXTENT;
  for (int i = 0; fits && i < shape->rank; i++) {
    fits = shape->dims[i] >= 1 && shape->dims[i] <= CS_MAX_EXTENT;
  }
  int64_t channels = c->input.shape.dims[1], of_input = 0;
  if (fits && transpose) of_input = shape->dims[0];
  if (fits && !transpose) fits = cs_mul_i64(shape->dims[1], conv->group, &of_input);
  conv->out_channels = shape->dims[0];
  if (fits && transpose) fits = cs_mul_i64(shape->dims[1], conv->group, &conv->out_channels);
  c->good = fits && of_input == channels && conv->out_channels <= CS_MAX_EXTENT;
  if (c->good) return CS_OK;
  return cs_onnx_refuse(node, "weight: found shape %s and %lld groups for %lld input channels",
                        cs_shape_text(shape, text), (long long)conv->group, (long long)channels);
}

static cs_status check_kernel(cs_onnx_node *node, convolution *c) {
  const cs_shape *shape = &c->weight->data.shape;
  int64_t kernel[2];
  CS_RETURN_IF_ERROR(read_axes(node, "kernel_shape", c->axes, 1, 1, kernel));
  for (int i = 0; i < 2; i++) {
    int at = c->row ? 1 + i : 2 + i;
    c->attrs.kernel[i] = c->row && i == 0 ? 1 : shape->dims[at];
    if (!cs_onnx_attribute(node, "kernel_shape") || kernel[i] == c->attrs.kernel[i]) continue;
    c->good = false;
    return cs_onnx_refuse(node, "attribute kernel_shape: found %lld, wanted the weight's %lld",
                          (long long)kernel[i], (long long)c->attrs.kernel[i]);
  }
  return CS_OK;
}

static cs_status check_bias(cs_onnx_node *node, convolution *c) {
  char text[CS_TEXT_SIZE];
  c->attrs.bias = c->bias != NULL;
  if (!c->bias) return CS_OK;
  const cs_shape *shape = &c->bias->data.shape;
  c->good = shape->rank == 1 && shape->dims[0] == c->attrs.out_channels;
  if (c->good) return CS_OK;
  return cs_onnx_refuse(node, "bias: found shape %s, wanted [%lld]", cs_shape_text(shape, text),
                        (long long)c->attrs.out_channels);
}

/* What the weight's shape says, and the attributes that both convolutions have. */
static cs_status read_conv(cs_onnx_node *node, bool transpose, convolution *c) {
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &c->weight));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 2, true, &c->bias));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &c->input, &there));
  c->axes = c->weight && c->weight->data.shape.rank == 3 ? 1 : 2;
  CS_RETURN_IF_ERROR(read_axes(node, "strides", c->axes, 1, 1, c->attrs.strides));
  CS_RETURN_IF_ERROR(read_axes(node, "dilations", c->axes, 1, 1, c->attrs.dilations));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "group", 1, &c->attrs.group));
  c->good = there && c->weight && !node->refused;
  if (c->good) CS_RETURN_IF_ERROR(cs_onnx_as_images(node, &c->input, &c->row, &c->good));
  if (c->good) CS_RETURN_IF_ERROR(check_weight(node, transpose, c));
  if (c->good) CS_RETURN_IF_ERROR(check_kernel(node, c));
  return c->good ? check_bias(node, c) : CS_OK;
}

static cs_status emit_conv(cs_onnx_node *node, cs_op op, const convolution *c) {
  cs_onnx_data data;
  cs_attrs attrs = {.conv = c->attrs};
  const char *suffix = c->row ? cs_op_name(op) : NULL;
  if (!c->good || node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, op, &attrs, &c->input, 1, &data));
  cs_onnx_param param = {.scale = 1.0, .count = cs_onnx_count(&c->weight->data.shape)};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "weight", c->weight, param));
  param.count = c->attrs.out_channels;
  if (c->bias) CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "bias", c->bias, param));
  return cs_onnx_give_images(node, &data, c->row);
}

cs_status cs_onnx_conv(cs_onnx_node *node) {
  convolution c = {.axes = 2};
  cs_conv_attrs *conv = &c.attrs;
  CS_RETURN_IF_ERROR(read_conv(node, false, &c));
  CS_RETURN_IF_ERROR(read_pads(node, c.axes, c.good ? &c.input.shape : NULL, conv->kernel,
                               conv->strides, conv->dilations, conv->pads));
  return emit_conv(node, CS_OP_CONV, &c);
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
  convolution c = {.axes = 2};
  cs_conv_attrs *conv = &c.attrs;
  bool told = cs_onnx_attribute(node, "output_shape") != NULL;
  auto_pad how;
  int64_t wanted[2];
  CS_RETURN_IF_ERROR(read_conv(node, true, &c));
  CS_RETURN_IF_ERROR(read_axes(node, "output_padding", c.axes, 0, 0, conv->output_padding));
  CS_RETURN_IF_ERROR(read_axes(node, "output_shape", c.axes, 1, 1, wanted));
  CS_RETURN_IF_ERROR(read_auto_pad(node, &how));
  CS_RETURN_IF_ERROR(read_explicit_pads(node, c.axes, conv->pads));
  if (how == PAD_VALID) memset(conv->pads, 0, sizeof conv->pads);
  if (c.good && !node->refused && (told || how == PAD_UPPER || how == PAD_LOWER)) {
    transpose_pads(&c.input.shape, told ? wanted : NULL, how, conv);
  }
  return emit_conv(node, CS_OP_CONV_TRANSPOSE, &c);
}

/* ---- Pools ---- */

/* The operator on images, and the axis that was put in taken out again. */
static cs_status become_on_images(cs_onnx_node *node, cs_op op, const cs_attrs *attrs,
                                  const cs_onnx_data *images, bool row) {
  cs_onnx_data made;
  if (node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, row ? cs_op_name(op) : NULL, op, attrs, images, 1, &made));
  return cs_onnx_give_images(node, &made, row);
}

/* As many as kernel_shape has. */
static cs_status pool_axes(cs_onnx_node *node, int *axes) {
  const Onnx__AttributeProto *kernel = cs_onnx_attribute(node, "kernel_shape");
  *axes = kernel && kernel->n_ints == 1 ? 1 : 2;
  if (kernel) return CS_OK;
  return cs_onnx_refuse(node, "attribute kernel_shape: found none, wanted one or two numbers");
}

cs_status cs_onnx_pool(cs_onnx_node *node) {
  bool maximum = strcmp(node->proto->op_type, "MaxPool") == 0, there, row = false;
  cs_attrs attrs = {.pool = {.ceil_mode = false}};
  cs_pool_attrs *pool = &attrs.pool;
  cs_onnx_data input;
  int64_t flag;
  int axes;
  CS_RETURN_IF_ERROR(pool_axes(node, &axes));
  CS_RETURN_IF_ERROR(read_axes(node, "kernel_shape", axes, 1, 1, pool->kernel));
  CS_RETURN_IF_ERROR(read_axes(node, "strides", axes, 1, 1, pool->strides));
  CS_RETURN_IF_ERROR(read_axes(node, "dilations", axes, 1, 1, pool->dilations));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "ceil_mode", 0, &flag));
  pool->ceil_mode = flag != 0;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "count_include_pad", 0, &flag));
  pool->count_include_pad = !maximum && flag != 0;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (there && !node->refused && input.shape.rank != 2 + axes) {
    there = false;
    CS_RETURN_IF_ERROR(cs_onnx_refuse(
        node,
        "found an input of %d axes, wanted 3 or 4, with a number of kernel_shape for each "
        "spatial one (%d)",
        input.shape.rank, axes));
  }
  if (there) CS_RETURN_IF_ERROR(cs_onnx_as_images(node, &input, &row, &there));
  CS_RETURN_IF_ERROR(read_pads(node, axes, there ? &input.shape : NULL, pool->kernel, pool->strides,
                               pool->dilations, pool->pads));
  if (!there) return CS_OK;
  return become_on_images(node, maximum ? CS_OP_MAX_POOL : CS_OP_AVERAGE_POOL, &attrs, &input, row);
}

cs_status cs_onnx_global_pool(cs_onnx_node *node) {
  cs_onnx_data input;
  bool there, row = false;
  bool average = strcmp(node->proto->op_type, "GlobalAveragePool") == 0;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (there) CS_RETURN_IF_ERROR(cs_onnx_as_images(node, &input, &row, &there));
  if (!there) return CS_OK;
  return become_on_images(node, average ? CS_OP_GLOBAL_AVERAGE_POOL : CS_OP_GLOBAL_MAX_POOL, NULL,
                          &input, row);
}
