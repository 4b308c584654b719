/* Concat, Flatten, Pad, Identity, Dropout, Copy: no arithmetic. */
#include "graph/op_family.h"

static cs_status axis_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  /* ONNX: Concat's axis is required, Flatten's is 1 and may equal the rank. */
  bool concat = op == CS_OP_CONCAT;
  return cs_attr_int(reader, "axis", concat ? CS_ATTR_REQUIRED : 1, -CS_MAX_RANK,
                     concat ? CS_MAX_RANK - 1 : CS_MAX_RANK, &attrs->axis.axis);
}

static int axis_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "axis", json_integer(attrs->axis.axis));
}

static void axis_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  cs_strbuf_printf(out, " axis=%lld", (long long)attrs->axis.axis);
}

static cs_status concat_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  CS_RETURN_IF_ERROR(cs_make_axis(place, &attrs->axis.axis, inputs->rank, inputs->rank - 1));
  int axis = (int)attrs->axis.axis;
  *out = inputs[0];
  if (out->dims[axis] == CS_DIM_N && n_inputs > 1) {
    return cs_place_error(place, "attrs.axis",
                          "found axis 0 of a symbolic batch, wanted another axis");
  }
  for (int i = 1; i < n_inputs; i++) {
    cs_shape other = inputs[i];
    bool equal = other.rank == out->rank;
    if (equal) other.dims[axis] = inputs[0].dims[axis];
    if (!equal || !cs_shape_equal(&other, &inputs[0])) {
      char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
      return cs_place_error(place, "inputs",
                            "found shapes %s and %s (input %d), wanted equal ones except axis %d",
                            cs_shape_text(&inputs[0], a), cs_shape_text(&inputs[i], b), i, axis);
    }
    if (!cs_add_i64(out->dims[axis], inputs[i].dims[axis], &out->dims[axis])) {
      return cs_place_error(place, "inputs", "found a sum of extents that overflows");
    }
  }
  return CS_OK;
}

const cs_op_family cs_family_concat = {.min_inputs = 1,
                                       .max_inputs = -1,
                                       .parse = axis_parse,
                                       .save = axis_save,
                                       .infer = concat_infer,
                                       .sign = axis_sign};

static cs_status flatten_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                               const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_make_axis(place, &attrs->axis.axis, inputs->rank, inputs->rank));
  int axis = (int)attrs->axis.axis;
  if (inputs->dims[0] == CS_DIM_N && axis != 1) {
    return cs_place_error(place, "attrs.axis", "found %d, wanted 1 where the batch is symbolic",
                          axis);
  }
  cs_shape head = {.rank = axis}, tail = {.rank = inputs->rank - axis};
  for (int i = 0; i < inputs->rank; i++) {
    if (i < axis) {
      head.dims[i] = inputs->dims[i];
    } else {
      tail.dims[i - axis] = inputs->dims[i];
    }
  }
  out->rank = 2;
  CS_RETURN_IF_ERROR(cs_shape_elements(&head, &out->dims[0]));
  CS_RETURN_IF_ERROR(cs_shape_elements(&tail, &out->dims[1]));
  if (inputs->dims[0] == CS_DIM_N) out->dims[0] = CS_DIM_N;
  return CS_OK;
}

const cs_op_family cs_family_flatten = {.min_inputs = 1,
                                        .max_inputs = 1,
                                        .parse = axis_parse,
                                        .save = axis_save,
                                        .infer = flatten_infer,
                                        .sign = axis_sign};

static cs_status pad_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  CS_RETURN_IF_ERROR(
      cs_attr_ints(reader, "pads", 8, CS_ATTR_REQUIRED, 0, CS_MAX_EXTENT, attrs->pad.pads));
  return cs_attr_double(reader, "value", 0.0, &attrs->pad.value);
}

static int pad_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "pads", cs_attr_save_ints(attrs->pad.pads, 8)) ||
                 json_object_set_new(object, "value", json_real(attrs->pad.value))
             ? -1
             : 0;
}

static cs_status pad_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                           int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  const int64_t *pads = attrs->pad.pads;
  *out = *inputs;
  for (int axis = 0; axis < 4; axis++) {
    if (out->dims[axis] != CS_DIM_N) {
      out->dims[axis] += pads[axis] + pads[4 + axis];
    } else if (pads[axis] || pads[4 + axis]) {
      return cs_place_error(place, "attrs.pads",
                            "found padding of a symbolic batch, wanted 0 on axis 0");
    }
  }
  return CS_OK;
}

static void pad_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  for (int i = 0; i < 8; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "," : " p=", (long long)attrs->pad.pads[i]);
  }
  cs_strbuf_printf(out, " value=%.17g", attrs->pad.value);
}

const cs_op_family cs_family_pad = {.min_inputs = 1,
                                    .max_inputs = 1,
                                    .parse = pad_parse,
                                    .save = pad_save,
                                    .infer = pad_infer,
                                    .sign = pad_sign};

const cs_op_family cs_family_identity = {.min_inputs = 1, .max_inputs = 1, .infer = cs_same_infer};
const cs_op_family cs_family_copy = {.min_inputs = 1, .max_inputs = 1, .infer = cs_same_infer};
