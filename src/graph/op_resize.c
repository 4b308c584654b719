/* Resize: H and W of an image by nearest neighbours, linear or cubic interpolation. */
#include <math.h>
#include <string.h>

#include "graph/op_family.h"
#include "graph/resample.h"

static const char *const modes[] = {"nearest", "linear", "cubic"};
static const char *const coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
enum { N_COORDINATES = sizeof coordinates / sizeof *coordinates };
static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static int named(const char *const *names, int n, const char *name) {
  for (int i = 0; i < n; i++) {
    if (strcmp(names[i], name) == 0) return i;
  }
  return -1;
}

int cs_resize_mode_named(const char *name) {
  return named(modes, 3, name);
}

int cs_resize_coordinates_named(const char *name) {
  return named(coordinates, N_COORDINATES, name);
}

int cs_resize_nearest_named(const char *name) {
  return named(nearest, 4, name);
}

static cs_status resize_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_resize_attrs *r = &attrs->resize;
  int mode, how, rounding;
  double roi[4] = {0};
  CS_RETURN_IF_ERROR(
      cs_attr_ints(reader, "sizes", 2, CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT, r->sizes));
  CS_RETURN_IF_ERROR(cs_attr_doubles(reader, "scales", 2, 0, r->scales));
  CS_RETURN_IF_ERROR(cs_attr_choice(reader, "mode", modes, 3, CS_RESIZE_NEAREST, &mode));
  CS_RETURN_IF_ERROR(cs_attr_choice(reader, "coordinate_transformation_mode", coordinates,
                                    N_COORDINATES, CS_RESIZE_HALF_PIXEL, &how));
  CS_RETURN_IF_ERROR(
      cs_attr_choice(reader, "nearest_mode", nearest, 4, CS_RESIZE_ROUND_PREFER_FLOOR, &rounding));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "cubic_coeff_a", -0.75, &r->cubic_coeff_a));
  CS_RETURN_IF_ERROR(cs_attr_bool(reader, "exclude_outside", false, &r->exclude_outside));
  CS_RETURN_IF_ERROR(cs_attr_bool(reader, "antialias", false, &r->antialias));
  CS_RETURN_IF_ERROR(cs_attr_doubles(reader, "roi", 4, 0, roi));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "extrapolation_value", 0, &r->extrapolation_value));
  for (int i = 0; i < 4; i++) r->roi[i] = roi[i];
  r->mode = (cs_resize_mode)mode;
  r->coordinates = (cs_resize_coordinates)how;
  r->nearest = (cs_resize_nearest)rounding;
  for (int i = 0; i < 2; i++) {
    if (r->scales[i] >= 0 && (r->scales[i] == 0) == (r->scales[0] == 0)) continue;
    return cs_place_error(reader->place, "attrs.scales", "found %g and %g, wanted positive numbers",
                          r->scales[0], r->scales[1]);
  }
  return CS_OK;
}

static int resize_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_resize_attrs *r = &attrs->resize;
  int failed = json_object_set_new(object, "sizes", cs_attr_save_ints(r->sizes, 2)) ||
               json_object_set_new(object, "mode", json_string(modes[r->mode])) ||
               json_object_set_new(object, "coordinate_transformation_mode",
                                   json_string(coordinates[r->coordinates]));
  if (!failed && r->scales[0] > 0) {
    failed = json_object_set_new(object, "scales", cs_attr_save_doubles(r->scales, 2));
  }
  if (!failed && r->mode == CS_RESIZE_NEAREST) {
    failed = json_object_set_new(object, "nearest_mode", json_string(nearest[r->nearest]));
  }
  if (!failed && r->mode == CS_RESIZE_CUBIC) {
    failed = json_object_set_new(object, "cubic_coeff_a", json_real(r->cubic_coeff_a));
  }
  if (!failed && r->exclude_outside) {
    failed = json_object_set_new(object, "exclude_outside", json_true());
  }
  if (!failed && r->antialias && r->mode != CS_RESIZE_NEAREST) {
    failed = json_object_set_new(object, "antialias", json_true());
  }
  if (!failed && r->coordinates == CS_RESIZE_TF_CROP) {
    failed = json_object_set_new(object, "roi", cs_attr_save_doubles(r->roi, 4)) ||
             json_object_set_new(object, "extrapolation_value", json_real(r->extrapolation_value));
  }
  return failed ? -1 : 0;
}

static cs_status resize_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  *out = *inputs;
  for (int i = 0; i < 2; i++) {
    double length = attrs->resize.scales[i] * (double)inputs->dims[2 + i];
    out->dims[2 + i] = attrs->resize.sizes[i];
    if (!attrs->resize.antialias || length == 0 || length >= 0.5) continue;
    return cs_place_error(place, "attrs.scales",
                          "found %g for %lld elements with antialias, wanted half an element of "
                          "the output or more",
                          attrs->resize.scales[i], (long long)inputs->dims[2 + i]);
  }
  return CS_OK;
}

int cs_resize_taps_of(cs_resize_mode mode) {
  return mode == CS_RESIZE_NEAREST ? 1 : mode == CS_RESIZE_LINEAR ? 2 : 4;
}

/* The most elements of H (0) or W (1) that have a weight. */
static int64_t taps_along(const cs_op_desc *desc, int i) {
  cs_resize_axis axis;
  cs_resize_axis_of(desc, i, &axis);
  return axis.mode == CS_RESIZE_NEAREST ? 1 : (int64_t)ceil(2 * axis.support);
}

static int64_t resize_reduction(const cs_op_desc *desc) {
  return taps_along(desc, 0) * taps_along(desc, 1);
}

static double resize_flops(const cs_op_desc *desc) {
  if (desc->attrs.resize.mode == CS_RESIZE_NEAREST) return 0;
  return 2.0 * (double)resize_reduction(desc) * cs_shape_count(&desc->output.shape);
}

static double resize_reads(const cs_op_desc *desc) {
  const int64_t *in = desc->inputs[0].shape.dims, *out = desc->output.shape.dims;
  double count = (double)in[0] * (double)in[1];
  for (int i = 0; i < 2; i++) {
    count *= fmin((double)in[2 + i], (double)out[2 + i] * (double)taps_along(desc, i));
  }
  return count;
}

static void resize_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_resize_attrs *r = &attrs->resize;
  cs_strbuf_printf(out, " %s %s", modes[r->mode], coordinates[r->coordinates]);
  if (r->scales[0] > 0) cs_strbuf_printf(out, " scales=%.17g,%.17g", r->scales[0], r->scales[1]);
  if (r->mode == CS_RESIZE_NEAREST) cs_strbuf_printf(out, " %s", nearest[r->nearest]);
  if (r->mode == CS_RESIZE_CUBIC) cs_strbuf_printf(out, " a=%.17g", r->cubic_coeff_a);
  if (r->exclude_outside) cs_strbuf_printf(out, " inside");
  if (r->antialias && r->mode != CS_RESIZE_NEAREST) cs_strbuf_printf(out, " antialias");
  if (r->coordinates != CS_RESIZE_TF_CROP) return;
  for (int i = 0; i < 4; i++) cs_strbuf_printf(out, "%s%.17g", i ? "," : " roi=", r->roi[i]);
  cs_strbuf_printf(out, " value=%.17g", r->extrapolation_value);
}

const cs_op_family cs_family_resize = {.min_inputs = 1,
                                       .max_inputs = 1,
                                       .parse = resize_parse,
                                       .save = resize_save,
                                       .infer = resize_infer,
                                       .flops = resize_flops,
                                       .reduction = resize_reduction,
                                       .reads = resize_reads,
                                       .sign = resize_sign};

/* ONNX's formulas. `length` is the output's as the scale has it, not rounded to whole elements. */
void cs_resize_axis_of(const cs_op_desc *desc, int i, cs_resize_axis *out) {
  const cs_resize_attrs *r = &desc->attrs.resize;
  double in = (double)desc->inputs[0].shape.dims[2 + i], size = (double)r->sizes[i];
  double scale = r->scales[i] > 0 ? r->scales[i] : size / in, length = scale * in;
  double narrow = r->antialias && r->mode != CS_RESIZE_NEAREST ? fmin(scale, 1) : 1;
  *out = (cs_resize_axis){.times = 1,
                          .by = scale,
                          .narrow = narrow,
                          .support = cs_resize_taps_of(r->mode) / 2.0 / narrow,
                          .cubic_coeff_a = r->cubic_coeff_a,
                          .extent = desc->inputs[0].shape.dims[2 + i],
                          .mode = r->mode,
                          .nearest = r->nearest,
                          .rounds = r->mode == CS_RESIZE_NEAREST && r->scales[i] > 0,
                          .exclude_outside = r->exclude_outside};
  double begin = r->roi[i], end = r->roi[2 + i];
  bool one = length == 1;
  switch (r->coordinates) {
    case CS_RESIZE_HALF_PIXEL:
      out->add = 0.5, out->offset = -0.5;
      return;
    case CS_RESIZE_HALF_PIXEL_SYMMETRIC:
      out->add = 0.5, out->offset = in / 2 * (1 - size / length) - 0.5;
      return;
    case CS_RESIZE_PYTORCH_HALF_PIXEL:
      out->add = 0.5, out->offset = -0.5;
      if (one) out->times = 0, out->by = 1;
      return;
    case CS_RESIZE_ALIGN_CORNERS:
      out->times = one ? 0 : in - 1, out->by = one ? 1 : length - 1;
      return;
    case CS_RESIZE_ASYMMETRIC:
      return;
    case CS_RESIZE_TF_HALF_PIXEL_FOR_NN:
      out->add = 0.5;
      return;
    case CS_RESIZE_TF_CROP:
      out->crops = true;
      out->times = one ? 0 : (end - begin) * (in - 1), out->by = one ? 1 : length - 1;
      out->offset = (one ? (end - begin) / 2 : 0) * (in - 1) + begin * (in - 1);
      return;
  }
}
