/* Conv and ConvTranspose. */
#include "graph/op_family.h"

static cs_status conv_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  cs_conv_attrs *conv = &attrs->conv;
  CS_RETURN_IF_ERROR(
      cs_attr_int(reader, "out_channels", CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT, &conv->out_channels));
  CS_RETURN_IF_ERROR(
      cs_attr_ints(reader, "kernel_shape", 2, CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT, conv->kernel));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "strides", 2, 1, 1, CS_MAX_EXTENT, conv->strides));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "pads", 4, 0, 0, CS_MAX_EXTENT, conv->pads));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "dilations", 2, 1, 1, CS_MAX_EXTENT, conv->dilations));
  CS_RETURN_IF_ERROR(cs_attr_int(reader, "group", 1, 1, CS_MAX_EXTENT, &conv->group));
  if (op == CS_OP_CONV_TRANSPOSE) {
    CS_RETURN_IF_ERROR(
        cs_attr_ints(reader, "output_padding", 2, 0, 0, CS_MAX_EXTENT, conv->output_padding));
  }
  return cs_attr_bool(reader, "bias", true, &conv->bias);
}

static int conv_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  const cs_conv_attrs *conv = &attrs->conv;
  bool failed = json_object_set_new(object, "out_channels", json_integer(conv->out_channels)) ||
                json_object_set_new(object, "kernel_shape", cs_attr_save_ints(conv->kernel, 2)) ||
                json_object_set_new(object, "strides", cs_attr_save_ints(conv->strides, 2)) ||
                json_object_set_new(object, "pads", cs_attr_save_ints(conv->pads, 4)) ||
                json_object_set_new(object, "dilations", cs_attr_save_ints(conv->dilations, 2)) ||
                json_object_set_new(object, "group", json_integer(conv->group));
  if (!failed && op == CS_OP_CONV_TRANSPOSE) {
    failed = json_object_set_new(object, "output_padding",
                                 cs_attr_save_ints(conv->output_padding, 2)) != 0;
  }
  return failed || json_object_set_new(object, "bias", json_boolean(conv->bias)) ? -1 : 0;
}

static cs_status check_groups(const cs_place *place, const cs_conv_attrs *conv,
                              const cs_shape *input) {
  CS_RETURN_IF_ERROR(cs_want_rank(place, input, 4));
  if (input->dims[1] % conv->group != 0) {
    return cs_place_error(place, "attrs.group",
                          "found %lld groups, wanted a divisor of the input's %lld channels",
                          (long long)conv->group, (long long)input->dims[1]);
  }
  if (conv->out_channels % conv->group != 0) {
    return cs_place_error(place, "attrs.out_channels",
                          "found %lld output channels, wanted a multiple of the %lld groups",
                          (long long)conv->out_channels, (long long)conv->group);
  }
  return CS_OK;
}

static cs_window window_of(const cs_conv_attrs *conv) {
  return (cs_window){conv->kernel, conv->strides, conv->pads, conv->dilations, false};
}

static cs_status conv_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                            const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  const cs_conv_attrs *conv = &attrs->conv;
  CS_RETURN_IF_ERROR(check_groups(place, conv, inputs));
  *out = (cs_shape){.rank = 4, .dims = {inputs->dims[0], conv->out_channels}};
  cs_window window = window_of(conv);
  return cs_window_infer(place, &window, inputs, out);
}

static cs_status transpose_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                                 const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  const cs_conv_attrs *conv = &attrs->conv;
  CS_RETURN_IF_ERROR(check_groups(place, conv, inputs));
  *out = (cs_shape){.rank = 4, .dims = {inputs->dims[0], conv->out_channels}};
  for (int axis = 0; axis < 2; axis++) {
    int64_t limit = cs_max_i64(conv->strides[axis], conv->dilations[axis]);
    if (conv->output_padding[axis] >= limit) {
      return cs_place_error(place, "attrs.output_padding",
                            "found %lld, wanted less than the larger of stride and dilation, %lld",
                            (long long)conv->output_padding[axis], (long long)limit);
    }
    int64_t extent = conv->strides[axis] * (inputs->dims[2 + axis] - 1) +
                     conv->output_padding[axis] +
                     ((conv->kernel[axis] - 1) * conv->dilations[axis] + 1) - conv->pads[axis] -
                     conv->pads[2 + axis];
    if (extent < 1) {
      return cs_place_error(place, "attrs.pads",
                            "found an output extent of %lld along %s, wanted at least 1",
                            (long long)extent, axis ? "W" : "H");
    }
    out->dims[2 + axis] = extent;
  }
  return CS_OK;
}

static cs_shape conv_weight(cs_op op, const cs_attrs *attrs, const cs_shape *input) {
  const cs_conv_attrs *conv = &attrs->conv;
  int64_t in = input->dims[1], out = conv->out_channels;
  if (op == CS_OP_CONV_TRANSPOSE) {
    return (cs_shape){4, {in, out / conv->group, conv->kernel[0], conv->kernel[1]}};
  }
  return (cs_shape){4, {out, in / conv->group, conv->kernel[0], conv->kernel[1]}};
}

static bool conv_has_bias(const cs_attrs *attrs) {
  return attrs->conv.bias;
}

static double conv_flops(const cs_op_desc *desc) {
  cs_shape weight = cs_op_weight_shape(desc);
  /* Per output position K·C/g·R·S products; the transposed form has them per input position. */
  const cs_shape *positions = desc->op == CS_OP_CONV ? &desc->output.shape : &desc->inputs[0].shape;
  return 2.0 * (double)positions->dims[0] * (double)positions->dims[2] *
         (double)positions->dims[3] * cs_shape_count(&weight);
}

static int64_t conv_reduction(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  return desc->inputs[0].shape.dims[1] / conv->group * conv->kernel[0] * conv->kernel[1];
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* An output pixel meets every (stride / gcd(stride, dilation))-th tap of an axis. */
static int64_t transpose_reduction(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t products = desc->inputs[0].shape.dims[1] / conv->group;
  for (int axis = 0; axis < 2; axis++) {
    int64_t step =
        conv->strides[axis] / greatest_common_divisor(conv->strides[axis], conv->dilations[axis]);
    products *= (conv->kernel[axis] + step - 1) / step;
  }
  return products;
}

static void conv_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  const cs_conv_attrs *conv = &attrs->conv;
  cs_window window = window_of(conv);
  cs_window_sign(&window, out);
  cs_strbuf_printf(out, " g=%lld", (long long)conv->group);
  if (op == CS_OP_CONV_TRANSPOSE) {
    cs_strbuf_printf(out, " op=%lldx%lld", (long long)conv->output_padding[0],
                     (long long)conv->output_padding[1]);
  }
}

const cs_op_family cs_family_conv = {.min_inputs = 1,
                                     .max_inputs = 1,
                                     .parse = conv_parse,
                                     .save = conv_save,
                                     .infer = conv_infer,
                                     .weight_shape = conv_weight,
                                     .has_bias = conv_has_bias,
                                     .flops = conv_flops,
                                     .reduction = conv_reduction,
                                     .sign = conv_sign};

const cs_op_family cs_family_conv_transpose = {.min_inputs = 1,
                                               .max_inputs = 1,
                                               .parse = conv_parse,
                                               .save = conv_save,
                                               .infer = transpose_infer,
                                               .weight_shape = conv_weight,
                                               .has_bias = conv_has_bias,
                                               .flops = conv_flops,
                                               .reduction = transpose_reduction,
                                               .sign = conv_sign};
