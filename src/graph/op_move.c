/* Reshape, Transpose, Slice: elements change places, nothing else. */
#include <stdlib.h>
#include <string.h>

#include "graph/op_family.h"

/* ---- The batch in attributes ---- */

/* "N" is the input's first extent once that is known; a tensor of a symbolic batch keeps it first.
 */
static cs_status bind_batch(const cs_place *place, const char *key, const cs_shape *input,
                            cs_shape *shape) {
  char text[CS_TEXT_SIZE];
  if (shape->dims[0] == CS_DIM_N) shape->dims[0] = input->dims[0];
  if ((shape->dims[0] == CS_DIM_N) == (input->dims[0] == CS_DIM_N)) return CS_OK;
  return cs_place_error(place, key, "found %s, wanted the symbolic batch \"N\" first",
                        cs_shape_text(shape, text));
}

/* Elements of one image where the batch is symbolic, else of all. */
static int64_t elements_of(const cs_shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dims[i] != CS_DIM_N && !cs_mul_i64(count, shape->dims[i], &count)) return -1;
  }
  return count;
}

/* ---- Reshape ---- */

static cs_status reshape_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  CS_RETURN_IF_ERROR(cs_attr_batch_shape(reader, "shape", &attrs->reshape));
  if (attrs->reshape.rank) return CS_OK;
  return cs_place_error(reader->place, "attrs.shape", "found nothing, wanted 1 to 8 extents");
}

static int reshape_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "shape", cs_attr_save_shape(&attrs->reshape));
}

static cs_status reshape_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                               const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  CS_RETURN_IF_ERROR(bind_batch(place, "attrs.shape", inputs, &attrs->reshape));
  *out = attrs->reshape;
  if (elements_of(out) == elements_of(inputs)) return CS_OK;
  return cs_place_error(place, "attrs.shape",
                        "found %s for an input of shape %s, wanted as many "
                        "elements",
                        cs_shape_text(out, a), cs_shape_text(inputs, b));
}

static void reshape_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  cs_shape_sign("to", &attrs->reshape, out);
}

const cs_op_family cs_family_reshape = {.min_inputs = 1,
                                        .max_inputs = 1,
                                        .parse = reshape_parse,
                                        .save = reshape_save,
                                        .infer = reshape_infer,
                                        .sign = reshape_sign};

/* ---- Transpose ---- */

static cs_status transpose_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_transpose_attrs *transpose = &attrs->transpose;
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "perm", 0, CS_MAX_RANK - 1, transpose->perm, &transpose->n_perm));
  CS_RETURN_IF_ERROR(cs_attr_batch_shape(reader, "input_shape", &transpose->input_shape));
  CS_RETURN_IF_ERROR(cs_attr_batch_shape(reader, "output_shape", &transpose->output_shape));
  if (transpose->n_perm) return CS_OK;
  return cs_place_error(reader->place, "attrs.perm", "found nothing, wanted every axis once");
}

static int transpose_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_transpose_attrs *t = &attrs->transpose;
  if (json_object_set_new(object, "perm", cs_attr_save_ints(t->perm, t->n_perm)) != 0) return -1;
  if (t->input_shape.rank &&
      json_object_set_new(object, "input_shape", cs_attr_save_shape(&t->input_shape)) != 0) {
    return -1;
  }
  if (!t->output_shape.rank) return 0;
  return json_object_set_new(object, "output_shape", cs_attr_save_shape(&t->output_shape));
}

bool cs_shape_split(const cs_shape *shape, const int64_t *strides, const cs_shape *factors,
                    int64_t factor_strides[CS_MAX_RANK]) {
  int axis = shape->rank - 1;
  int64_t left = shape->dims[axis], stride = strides[axis];
  for (int f = factors->rank - 1; f >= 0; f--) {
    int64_t factor = factors->dims[f];
    factor_strides[f] = 0;
    if (factor == 1) continue;
    while (left == 1 && axis > 0) {
      left = shape->dims[--axis];
      stride = strides[axis];
    }
    /* A symbolic batch is as a number that divides by itself alone. */
    if (factor == CS_DIM_N ? left != CS_DIM_N : left == CS_DIM_N || left % factor != 0) {
      return false;
    }
    factor_strides[f] = stride;
    stride *= factor;
    left /= factor;
  }
  while (left == 1 && axis > 0) left = shape->dims[--axis];
  return axis == 0 && left == 1;
}

static cs_status check_perm(const cs_place *place, const cs_transpose_attrs *transpose, int rank) {
  bool seen[CS_MAX_RANK] = {false};
  bool good = transpose->n_perm == rank;
  for (int i = 0; good && i < rank; i++) {
    good = transpose->perm[i] < rank && !seen[transpose->perm[i]];
    if (good) seen[transpose->perm[i]] = true;
  }
  if (good) return CS_OK;
  return cs_place_error(place, "attrs.perm",
                        "found %d axes of a tensor of %d, or one twice, wanted "
                        "every axis once",
                        transpose->n_perm, rank);
}

static cs_status check_split(const cs_place *place, const char *key, const cs_shape *whole,
                             const cs_shape *factors, const cs_shape *found) {
  int64_t strides[CS_MAX_RANK] = {0}, unused[CS_MAX_RANK];
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  if (cs_shape_split(whole, strides, factors, unused)) return CS_OK;
  return cs_place_error(place, key,
                        "found %s, wanted one whose axes %s those of %s, in their order",
                        cs_shape_text(found, a), found == factors ? "split" : "merge",
                        cs_shape_text(found == factors ? whole : factors, b));
}

static cs_status transpose_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                                 const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  cs_transpose_attrs *t = &attrs->transpose;
  if (t->input_shape.rank) {
    CS_RETURN_IF_ERROR(bind_batch(place, "attrs.input_shape", inputs, &t->input_shape));
    CS_RETURN_IF_ERROR(
        check_split(place, "attrs.input_shape", inputs, &t->input_shape, &t->input_shape));
  }
  const cs_shape *factors = t->input_shape.rank ? &t->input_shape : inputs;
  CS_RETURN_IF_ERROR(check_perm(place, t, factors->rank));
  *out = (cs_shape){.rank = factors->rank};
  for (int i = 0; i < out->rank; i++) out->dims[i] = factors->dims[t->perm[i]];
  if (inputs->dims[0] == CS_DIM_N && t->perm[0] != 0) {
    return cs_place_error(place, "attrs.perm",
                          "found %lld first, wanted 0, the symbolic batch, to stay there",
                          (long long)t->perm[0]);
  }
  if (!t->output_shape.rank) return CS_OK;
  CS_RETURN_IF_ERROR(bind_batch(place, "attrs.output_shape", inputs, &t->output_shape));
  CS_RETURN_IF_ERROR(
      check_split(place, "attrs.output_shape", &t->output_shape, out, &t->output_shape));
  *out = t->output_shape;
  return CS_OK;
}

static void transpose_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_transpose_attrs *t = &attrs->transpose;
  for (int i = 0; i < t->n_perm; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "," : " perm=", (long long)t->perm[i]);
  }
  cs_shape_sign("from", &t->input_shape, out);
  cs_shape_sign("to", &t->output_shape, out);
}

const cs_op_family cs_family_transpose = {.min_inputs = 1,
                                          .max_inputs = 1,
                                          .parse = transpose_parse,
                                          .save = transpose_save,
                                          .infer = transpose_infer,
                                          .sign = transpose_sign};

/* ---- Slice ---- */

static cs_status slice_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_slice_attrs *s = &attrs->slice;
  int n_starts, n_ends, n_steps;
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "starts", -CS_MAX_EXTENT, CS_MAX_EXTENT, s->starts, &n_starts));
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "ends", -CS_MAX_EXTENT - 1, CS_MAX_EXTENT, s->ends, &n_ends));
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "axes", -CS_MAX_RANK, CS_MAX_RANK - 1, s->axes, &s->n_axes));
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "steps", -CS_MAX_EXTENT, CS_MAX_EXTENT, s->steps, &n_steps));
  if (!s->n_axes) {
    for (s->n_axes = 0; s->n_axes < n_starts; s->n_axes++) s->axes[s->n_axes] = s->n_axes;
  }
  for (int i = 0; i < s->n_axes && !n_steps; i++) s->steps[i] = 1;
  if (!n_steps) n_steps = s->n_axes;
  if (n_starts == s->n_axes && n_ends == s->n_axes && n_steps == s->n_axes && n_starts > 0) {
    return CS_OK;
  }
  return cs_place_error(reader->place, "attrs.starts",
                        "found %d starts, %d ends, %d axes and %d steps, wanted as many of each",
                        n_starts, n_ends, s->n_axes, n_steps);
}

static int slice_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_slice_attrs *s = &attrs->slice;
  return json_object_set_new(object, "starts", cs_attr_save_ints(s->starts, s->n_axes)) ||
                 json_object_set_new(object, "ends", cs_attr_save_ints(s->ends, s->n_axes)) ||
                 json_object_set_new(object, "axes", cs_attr_save_ints(s->axes, s->n_axes)) ||
                 json_object_set_new(object, "steps", cs_attr_save_ints(s->steps, s->n_axes))
             ? -1
             : 0;
}

static int64_t cut(int64_t value, int64_t low, int64_t high) {
  return cs_max_i64(low, cs_min_i64(value, high));
}

cs_slice_range cs_slice_range_of(const cs_slice_attrs *slice, int k, int64_t extent) {
  int64_t start = slice->starts[k], end = slice->ends[k], step = slice->steps[k];
  if (extent < 1) return (cs_slice_range){0, step, 0};
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  bool back = step < 0;
  start = cut(start, 0, back ? extent - 1 : extent);
  end = cut(end, back ? -1 : 0, back ? extent - 1 : extent);
  int64_t way = back ? start - end : end - start, stride = back ? -step : step;
  return (cs_slice_range){start, step, way > 0 ? (way + stride - 1) / stride : 0};
}

/* Makes the range along its k-th axis one within the axis. */
static cs_status normalise(const cs_place *place, cs_slice_attrs *s, int k, const cs_shape *in,
                           cs_shape *out) {
  CS_RETURN_IF_ERROR(cs_make_axis(place, &s->axes[k], in->rank, in->rank - 1));
  int axis = (int)s->axes[k];
  for (int before = 0; before < k; before++) {
    if (s->axes[before] != axis) continue;
    return cs_place_error(place, "attrs.axes", "found %d twice, wanted each axis once", axis);
  }
  if (in->dims[axis] == CS_DIM_N) {
    return cs_place_error(place, "attrs.axes",
                          "found axis 0 of a symbolic batch, wanted another axis");
  }
  if (s->steps[k] == 0) return cs_place_error(place, "attrs.steps", "found 0, wanted another step");
  int64_t extent = in->dims[axis];
  cs_slice_range range = cs_slice_range_of(s, k, extent);
  if (range.count == 0) {
    return cs_place_error(place, "attrs.ends",
                          "found %lld to %lld, which is nothing of an axis of %lld",
                          (long long)s->starts[k], (long long)s->ends[k], (long long)extent);
  }
  int64_t last = range.first + (range.count - 1) * range.step;
  s->starts[k] = range.first;
  s->ends[k] = range.step > 0 ? last + 1 : last == 0 ? -extent - 1 : last - 1;
  out->dims[axis] = range.count;
  return CS_OK;
}

static cs_status slice_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                             const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  *out = *inputs;
  for (int k = 0; k < attrs->slice.n_axes; k++) {
    CS_RETURN_IF_ERROR(normalise(place, &attrs->slice, k, inputs, out));
  }
  return CS_OK;
}

static void slice_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_slice_attrs *s = &attrs->slice;
  for (int k = 0; k < s->n_axes; k++) {
    cs_strbuf_printf(out, " axis%lld=%lld:%lld:%lld", (long long)s->axes[k],
                     (long long)s->starts[k], (long long)s->ends[k], (long long)s->steps[k]);
  }
}

static double slice_reads(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape);
}

const cs_op_family cs_family_slice = {.min_inputs = 1,
                                      .max_inputs = 1,
                                      .parse = slice_parse,
                                      .save = slice_save,
                                      .infer = slice_infer,
                                      .reads = slice_reads,
                                      .sign = slice_sign};

/* ---- As views and loop nests ---- */

bool cs_op_keeps_order(cs_op op) {
  return op == CS_OP_FLATTEN || op == CS_OP_RESHAPE || op == CS_OP_IDENTITY || op == CS_OP_DROPOUT;
}

static bool transpose_movement(const cs_op_desc *desc, cs_movement *out) {
  const cs_transpose_attrs *t = &desc->attrs.transpose;
  const cs_tensor_desc *in = &desc->inputs[0];
  const cs_shape *factors = t->input_shape.rank ? &t->input_shape : &in->shape;
  cs_shape permuted = {.rank = factors->rank};
  int64_t strides[CS_MAX_RANK];
  if (!cs_shape_split(&in->shape, in->strides, factors, strides)) return false;
  out->rank = factors->rank;
  for (int i = 0; i < out->rank; i++) {
    out->size[i] = permuted.dims[i] = factors->dims[t->perm[i]];
    out->in_stride[i] = strides[t->perm[i]];
  }
  return cs_shape_split(&desc->output.shape, desc->output.strides, &permuted, out->out_stride);
}

static bool slice_movement(const cs_op_desc *desc, cs_movement *out) {
  const cs_slice_attrs *s = &desc->attrs.slice;
  const cs_tensor_desc *in = &desc->inputs[0];
  out->rank = in->shape.rank;
  for (int i = 0; i < out->rank; i++) {
    out->size[i] = desc->output.shape.dims[i];
    out->in_stride[i] = in->strides[i];
    out->out_stride[i] = desc->output.strides[i];
  }
  for (int k = 0; k < s->n_axes; k++) {
    cs_slice_range range = cs_slice_range_of(s, k, in->shape.dims[s->axes[k]]);
    out->in_offset += range.first * in->strides[s->axes[k]];
    out->in_stride[s->axes[k]] *= range.step;
  }
  return true;
}

bool cs_op_movement(const cs_op_desc *desc, cs_movement *out) {
  *out = (cs_movement){0};
  if (desc->op != CS_OP_TRANSPOSE && desc->op != CS_OP_SLICE) return false;
  if (cs_layout_granule(desc->inputs[0].layout) > 1 || cs_layout_granule(desc->output.layout) > 1) {
    return false;
  }
  return desc->op == CS_OP_SLICE ? slice_movement(desc, out) : transpose_movement(desc, out);
}
