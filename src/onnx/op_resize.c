/* Resize and Upsample of H and W. */
#include <math.h>
#include <string.h>

#include "onnx/import.h"

/* What of the lists stands for H and W; other axes stay. */
typedef struct resizing {
  cs_shape input;
  int64_t axes[CS_MAX_RANK];
  int n_axes;
  cs_resize_attrs attrs;
} resizing;

static bool is_plane(int64_t axis) {
  return axis == 2 || axis == 3;
}

static cs_status wrong_axis(cs_onnx_node *node, int64_t axis) {
  return cs_onnx_refuse(node,
                        "found another extent of axis %lld, wanted that of H and W alone to "
                        "change",
                        (long long)axis);
}

/* ---- Extents of the output ---- */

static cs_status wrong_scale(cs_onnx_node *node, double scale, int64_t extent) {
  return cs_onnx_refuse(node, "scales: found %g for an extent of %lld", scale, (long long)extent);
}

/* Factors as floats: the output's extents are rounded down. */
static cs_status take_scales(cs_onnx_node *node, resizing *r, const double *scales) {
  for (int k = 0; k < r->n_axes; k++) {
    int64_t axis = r->axes[k];
    if (!is_plane(axis)) {
      if (scales[k] != 1.0) return wrong_axis(node, axis);
      continue;
    }
    /* In f32, as exporters and other runtimes count: 0.7, which f32 rounds down, of 10 are 7. */
    double extent = (double)floorf((float)scales[k] * (float)r->input.dims[axis]);
    if (!(extent >= 1 && extent <= (double)CS_MAX_EXTENT)) {
      return wrong_scale(node, scales[k], r->input.dims[axis]);
    }
    r->attrs.scales[axis - 2] = scales[k];
    r->attrs.sizes[axis - 2] = (int64_t)extent;
  }
  return CS_OK;
}

/* The one factor that keeps the picture's proportions. */
static cs_status keep_proportions(cs_onnx_node *node, resizing *r, const char *policy) {
  double scale = 0;
  for (int k = 0; k < r->n_axes; k++) {
    int64_t axis = r->axes[k];
    if (!is_plane(axis)) continue;
    double own = (double)r->attrs.sizes[axis - 2] / (double)r->input.dims[axis];
    bool better = strcmp(policy, "not_larger") == 0 ? own < scale : own > scale;
    if (scale == 0 || better) scale = own;
  }
  for (int k = 0; k < r->n_axes; k++) {
    int64_t axis = r->axes[k];
    if (!is_plane(axis)) continue;
    double extent = floor(scale * (double)r->input.dims[axis] + 0.5);
    if (!(extent >= 1 && extent <= (double)CS_MAX_EXTENT)) {
      return wrong_scale(node, scale, r->input.dims[axis]);
    }
    r->attrs.scales[axis - 2] = scale;
    r->attrs.sizes[axis - 2] = (int64_t)extent;
  }
  return CS_OK;
}

static cs_status take_sizes(cs_onnx_node *node, resizing *r, const cs_onnx_item *sizes) {
  for (int k = 0; k < r->n_axes; k++) {
    int64_t axis = r->axes[k], extent = r->input.dims[axis];
    bool batch = sizes[k].times_n && sizes[k].whole == 1;
    if (!is_plane(axis)) {
      if (batch ? extent != CS_DIM_N : sizes[k].whole != extent) return wrong_axis(node, axis);
      continue;
    }
    if (sizes[k].times_n || sizes[k].whole < 1 || sizes[k].whole > CS_MAX_EXTENT) {
      return cs_onnx_refuse(node, "input sizes: found %lld, wanted a number of pixels",
                            (long long)sizes[k].whole);
    }
    r->attrs.sizes[axis - 2] = sizes[k].whole;
  }
  return CS_OK;
}

/* ---- How ---- */

static cs_status read_choice(cs_onnx_node *node, const char *name, const char *fallback,
                             int (*named)(const char *), int *out) {
  char text[32];
  CS_RETURN_IF_ERROR(cs_onnx_text(node, name, fallback, text, sizeof text));
  *out = named(text);
  if (*out >= 0) return CS_OK;
  *out = 0;
  return cs_onnx_refuse(node, "attribute %s: found %s, which is not supported", name, text);
}

static int mode_named(const char *name) {
  return cs_resize_mode_named(strcmp(name, "bilinear") == 0 ? "linear" : name);
}

static cs_status read_how(cs_onnx_node *node, cs_resize_attrs *attrs) {
  bool old = node->import->opset < 11;
  int mode, coordinates, nearest;
  int64_t exclude;
  CS_RETURN_IF_ERROR(read_choice(node, "mode", "nearest", mode_named, &mode));
  CS_RETURN_IF_ERROR(read_choice(node, "coordinate_transformation_mode",
                                 old ? "asymmetric" : "half_pixel", cs_resize_coordinates_named,
                                 &coordinates));
  CS_RETURN_IF_ERROR(read_choice(node, "nearest_mode", old ? "floor" : "round_prefer_floor",
                                 cs_resize_nearest_named, &nearest));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "cubic_coeff_a", -0.75, &attrs->cubic_coeff_a));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "extrapolation_value", 0.0, &attrs->extrapolation_value));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "exclude_outside", 0, &exclude));
  attrs->mode = (cs_resize_mode)mode;
  attrs->coordinates = (cs_resize_coordinates)coordinates;
  attrs->nearest = (cs_resize_nearest)nearest;
  attrs->exclude_outside = exclude != 0;
  return CS_OK;
}

/* Begins of the axes, then ends. */
static cs_status read_roi(cs_onnx_node *node, resizing *r) {
  double roi[2 * CS_MAX_RANK];
  int n;
  if (r->attrs.coordinates != CS_RESIZE_TF_CROP) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_reals(node, "roi", 1, 2 * CS_MAX_RANK, roi, &n));
  if (node->refused) return CS_OK;
  if (n != 2 * r->n_axes) {
    return cs_onnx_refuse(node, "input roi: found %d numbers, wanted %d", n, 2 * r->n_axes);
  }
  r->attrs.roi[2] = r->attrs.roi[3] = 1;
  for (int k = 0; k < r->n_axes; k++) {
    if (!is_plane(r->axes[k])) continue;
    r->attrs.roi[r->axes[k] - 2] = roi[k];
    r->attrs.roi[r->axes[k]] = roi[r->n_axes + k];
  }
  return CS_OK;
}

/* It changes nothing unless an axis shrinks; in mode nearest, nothing at all. */
static cs_status read_antialias(cs_onnx_node *node, resizing *r) {
  int64_t antialias;
  bool shrinks = node->import->model->as_written;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "antialias", 0, &antialias));
  for (int i = 0; i < 2; i++) {
    double scale = r->attrs.scales[i];
    if (scale == 0) scale = (double)r->attrs.sizes[i] / (double)r->input.dims[2 + i];
    shrinks = shrinks || scale < 1;
  }
  r->attrs.antialias = antialias != 0 && shrinks && r->attrs.mode != CS_RESIZE_NEAREST;
  return CS_OK;
}

/* ---- The operators ---- */

static cs_status begin(cs_onnx_node *node, resizing *r, cs_onnx_data *input, bool *there) {
  char text[CS_TEXT_SIZE];
  *r = (resizing){.n_axes = 4, .axes = {0, 1, 2, 3}};
  CS_RETURN_IF_ERROR(read_how(node, &r->attrs));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, input, there));
  if (!*there) return CS_OK;
  r->input = input->shape;
  *there = r->input.rank == 4;
  if (!*there) {
    return cs_onnx_refuse(node, "found shape %s, wanted four axes",
                          cs_shape_text(&input->shape, text));
  }
  for (int i = 0; i < 2; i++) r->attrs.sizes[i] = r->input.dims[2 + i];
  return CS_OK;
}

static cs_status finish(cs_onnx_node *node, resizing *r, const cs_onnx_data *input) {
  if (node->refused) return CS_OK;
  for (int i = 0; i < 2; i++) {
    /* An axis that was not listed, beside one that was. */
    bool other = r->attrs.scales[1 - i] > 0;
    if (other && r->attrs.scales[i] == 0) r->attrs.scales[i] = 1;
  }
  CS_RETURN_IF_ERROR(read_antialias(node, r));
  cs_attrs attrs = {.resize = r->attrs};
  bool same = r->attrs.sizes[0] == r->input.dims[2] && r->attrs.sizes[1] == r->input.dims[3];
  bool exact = r->attrs.scales[0] == r->attrs.scales[1] &&
               (r->attrs.scales[0] == 0 || r->attrs.scales[0] == 1);
  bool free = !node->import->model->as_written;
  if (free && same && exact && r->attrs.coordinates != CS_RESIZE_TF_CROP) {
    return cs_onnx_become(node, CS_OP_IDENTITY, NULL, input, 1);
  }
  return cs_onnx_become(node, CS_OP_RESIZE, &attrs, input, 1);
}

static cs_status count_error(cs_onnx_node *node, const char *what, int64_t found, int wanted) {
  return cs_onnx_refuse(node, "%s: found %lld numbers, wanted %d", what, (long long)found, wanted);
}

/* Scales as an attribute before opset 9, then as input 1. */
cs_status cs_onnx_upsample(cs_onnx_node *node) {
  resizing r;
  cs_onnx_data input;
  double scales[CS_MAX_RANK] = {0};
  int n = -1;
  bool there;
  CS_RETURN_IF_ERROR(begin(node, &r, &input, &there));
  if (!there) return CS_OK;
  if (node->import->opset < 9) {
    const Onnx__AttributeProto *list = cs_onnx_attribute(node, "scales");
    n = list && list->n_floats <= CS_MAX_RANK ? (int)list->n_floats : -1;
    for (int i = 0; i < n; i++) scales[i] = (double)list->floats[i];
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_reals(node, "scales", 1, CS_MAX_RANK, scales, &n));
  }
  if (node->refused) return CS_OK;
  if (n != 4) return count_error(node, "scales", n, 4);
  CS_RETURN_IF_ERROR(take_scales(node, &r, scales));
  return finish(node, &r, &input);
}

static cs_status read_sizes(cs_onnx_node *node, resizing *r, cs_onnx_value *sizes) {
  const cs_onnx_item *items;
  char policy[16];
  CS_RETURN_IF_ERROR(
      cs_onnx_text(node, "keep_aspect_ratio_policy", "stretch", policy, sizeof policy));
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, sizes, &items));
  int64_t n = cs_onnx_count(&sizes->data.shape);
  if (!items || n != r->n_axes || !cs_onnx_dtype_is_whole(sizes->dtype)) {
    return count_error(node, "input sizes", n, r->n_axes);
  }
  CS_RETURN_IF_ERROR(take_sizes(node, r, items));
  if (strcmp(policy, "stretch") == 0 || node->refused) return CS_OK;
  if (strcmp(policy, "not_larger") != 0 && strcmp(policy, "not_smaller") != 0) {
    return cs_onnx_refuse(node, "attribute keep_aspect_ratio_policy: found %s", policy);
  }
  return keep_proportions(node, r, policy);
}

cs_status cs_onnx_resize(cs_onnx_node *node) {
  resizing r;
  cs_onnx_data input;
  cs_onnx_value *sizes = NULL;
  double scales[CS_MAX_RANK];
  int64_t axes[CS_MAX_RANK];
  int n, n_axes;
  bool there, old = node->import->opset < 11;
  CS_RETURN_IF_ERROR(begin(node, &r, &input, &there));
  if (!there) return CS_OK;
  /* An attribute in every opset that has it. */
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "axes", 0, INT64_MAX, 4, axes, &n_axes));
  for (int k = 0; k < n_axes; k++) {
    r.axes[k] = axes[k] < 0 ? axes[k] + 4 : axes[k];
    if (r.axes[k] < 0 || r.axes[k] > 3) return wrong_axis(node, axes[k]);
  }
  if (n_axes > 0) r.n_axes = n_axes;
  CS_RETURN_IF_ERROR(cs_onnx_reals(node, "scales", old ? 1 : 2, CS_MAX_RANK, scales, &n));
  if (!old) CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 3, true, &sizes));
  if (node->refused) return CS_OK;
  bool by_sizes = sizes && cs_onnx_count(&sizes->data.shape) > 0;
  if (!by_sizes && n != r.n_axes) return count_error(node, "input scales", n, r.n_axes);
  if (by_sizes) {
    CS_RETURN_IF_ERROR(read_sizes(node, &r, sizes));
  } else {
    CS_RETURN_IF_ERROR(take_scales(node, &r, scales));
  }
  CS_RETURN_IF_ERROR(read_roi(node, &r));
  return finish(node, &r, &input);
}
