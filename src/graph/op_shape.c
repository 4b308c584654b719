/* Concat, Flatten, Pad, Identity, Dropout, Copy: no arithmetic. */
#include <string.h>

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

static const char *const pad_modes[] = {"constant", "reflect", "edge", "wrap"};

int cs_pad_mode_named(const char *name) {
  for (int mode = 0; mode < 4; mode++) {
    if (strcmp(pad_modes[mode], name) == 0) return mode;
  }
  return -1;
}

static cs_status pad_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_pad_attrs *pad = &attrs->pad;
  int n, mode;
  CS_RETURN_IF_ERROR(cs_attr_pairs(reader, "pads", -CS_MAX_EXTENT, CS_MAX_EXTENT, pad->pads, &n));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "value", 0.0, &pad->value));
  CS_RETURN_IF_ERROR(cs_attr_choice(reader, "mode", pad_modes, 4, CS_PAD_CONSTANT, &mode));
  pad->mode = (cs_pad_mode)mode;
  pad->rank = n / 2;
  if (n > 0 && n % 2 == 0) return CS_OK;
  return cs_place_error(reader->place, "attrs.pads", "found %d numbers, wanted two for each axis",
                        n);
}

static int pad_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_pad_attrs *pad = &attrs->pad;
  return json_object_set_new(object, "pads", cs_attr_save_ints(pad->pads, 2 * pad->rank)) ||
                 json_object_set_new(object, "value", json_real(pad->value)) ||
                 json_object_set_new(object, "mode", json_string(pad_modes[pad->mode]))
             ? -1
             : 0;
}

/* How far a pad may reach past a border, given the elements that are left when negative pads have
 * cut. */
static int64_t farthest(cs_pad_mode mode, int64_t left) {
  if (mode == CS_PAD_REFLECT) return left - 1;
  return mode == CS_PAD_WRAP ? left : CS_MAX_EXTENT;
}

static cs_status pad_axis(const cs_place *place, const cs_pad_attrs *pad, int axis,
                          int64_t *extent) {
  int64_t begin = pad->pads[axis], end = pad->pads[pad->rank + axis], in = *extent;
  if (in == CS_DIM_N) {
    if (begin == 0 && end == 0) return CS_OK;
    return cs_place_error(place, "attrs.pads",
                          "found padding of a symbolic batch, wanted 0 on axis 0");
  }
  int64_t left = in + cs_min_i64(begin, 0) + cs_min_i64(end, 0);
  int64_t most = farthest(pad->mode, left);
  *extent = in + begin + end;
  if (left >= 1 && begin <= most && end <= most) return CS_OK;
  return cs_place_error(place, "attrs.pads",
                        "found %lld and %lld on axis %d of extent %lld (mode %s), wanted pads that "
                        "leave an element and reach no further than it allows",
                        (long long)begin, (long long)end, axis, (long long)in,
                        pad_modes[pad->mode]);
}

static cs_status pad_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                           int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  if (inputs->rank != attrs->pad.rank) {
    return cs_place_error(place, "attrs.pads",
                          "found %d numbers for an input of rank %d, wanted %d",
                          2 * attrs->pad.rank, inputs->rank, 2 * inputs->rank);
  }
  *out = *inputs;
  for (int axis = 0; axis < out->rank; axis++) {
    CS_RETURN_IF_ERROR(pad_axis(place, &attrs->pad, axis, &out->dims[axis]));
  }
  return CS_OK;
}

static double pad_reads(const cs_op_desc *desc) {
  return cs_window_reads(desc, 1);
}

static void pad_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_pad_attrs *pad = &attrs->pad;
  for (int i = 0; i < 2 * pad->rank; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "," : " p=", (long long)pad->pads[i]);
  }
  if (pad->mode == CS_PAD_CONSTANT) cs_strbuf_printf(out, " value=%.17g", pad->value);
  if (pad->mode != CS_PAD_CONSTANT) cs_strbuf_printf(out, " %s", pad_modes[pad->mode]);
}

const cs_op_family cs_family_pad = {.min_inputs = 1,
                                    .max_inputs = 1,
                                    .parse = pad_parse,
                                    .save = pad_save,
                                    .infer = pad_infer,
                                    .reads = pad_reads,
                                    .sign = pad_sign};

const cs_op_family cs_family_identity = {.min_inputs = 1, .max_inputs = 1, .infer = cs_same_infer};
const cs_op_family cs_family_copy = {.min_inputs = 1, .max_inputs = 1, .infer = cs_same_infer};
