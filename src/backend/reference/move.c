/* Transpose, Slice, Pad and Resize by definition. */
#include <math.h>

#include "backend/reference/internal.h"

static int64_t plane_elements(const cs_shape *shape) {
  int64_t elements = 1;
  for (int i = shape->rank == 4 ? 2 : 1; i < shape->rank; i++) elements *= shape->dims[i];
  return elements;
}

void ref_move_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_shape *in = &d->inputs[0].shape, *out = &d->output.shape;
  int64_t elements = plane_elements(out);
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    bool slice = d->op == CS_OP_SLICE;
    int64_t source = slice ? ref_slice_source(&d->attrs.slice, in, out, at)
                           : ref_transpose_source(&d->attrs.transpose, in, at);
    ref_store(args, at, args->inputs[0][source], fabs(args->inputs[0][source]));
  }
}

void ref_pad_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_shape *in = &d->inputs[0].shape, *out = &d->output.shape;
  int64_t elements = plane_elements(out);
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    int64_t source = ref_pad_source(&d->attrs.pad, in, out, at);
    double y = source < 0 ? d->attrs.pad.value : args->inputs[0][source];
    ref_store(args, at, y, fabs(y));
  }
}

/* One output element from an image's plane. */
static void resize_element(const double *image, const cs_resize_axis axes[2], int64_t oy,
                           int64_t ox, double *value, double *magnitude) {
  cs_resize_window rows = cs_resize_window_of(&axes[0], oy);
  cs_resize_window columns = cs_resize_window_of(&axes[1], ox);
  if (rows.n == 0 || columns.n == 0) return;
  *value = *magnitude = 0;
  for (int64_t r = 0; r < rows.n; r++)
    for (int64_t c = 0; c < columns.n; c++) {
      int64_t y = cs_resize_inside(&axes[0], rows.first + r);
      int64_t x = cs_resize_inside(&axes[1], columns.first + c);
      double weight =
          cs_resize_weight(&axes[0], &rows, r) * cs_resize_weight(&axes[1], &columns, c);
      double term = weight * image[y * axes[1].extent + x];
      *value += term, *magnitude += fabs(term);
    }
}

void ref_resize_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const int64_t *in = d->inputs[0].shape.dims, *out = d->output.shape.dims;
  const double *image = args->inputs[0] + plane * in[2] * in[3];
  cs_resize_axis axes[2];
  for (int i = 0; i < 2; i++) cs_resize_axis_of(d, i, &axes[i]);
  for (int64_t oy = 0; oy < out[2]; oy++)
    for (int64_t ox = 0; ox < out[3]; ox++) {
      double value = d->attrs.resize.extrapolation_value, magnitude = fabs(value);
      resize_element(image, axes, oy, ox, &value, &magnitude);
      ref_store(args, (plane * out[2] + oy) * out[3] + ox, value, magnitude);
    }
}
