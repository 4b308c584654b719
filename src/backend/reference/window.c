/* Pooling and LRN by definition. */
#include <math.h>

#include "backend/reference/internal.h"

/* One output element of a pooling window that starts at (y0, x0), which may lie in the padding.
 * With count_include_pad an average divides by the positions inside the padded extent: what a
 * ceil_mode window reaches beyond it never counts. */
static void pool_window(const cs_op_desc *d, const double *image, int64_t y0, int64_t x0,
                        double *value, double *magnitude) {
  const cs_pool_attrs *a = &d->attrs.pool;
  int64_t height = d->inputs[0].shape.dims[2], width = d->inputs[0].shape.dims[3];
  int64_t padded = 0, inside = 0;
  double sum = 0, absolute = 0, largest = -INFINITY;
  for (int64_t r = 0; r < a->kernel[0]; r++)
    for (int64_t s = 0; s < a->kernel[1]; s++) {
      int64_t y = y0 + r * a->dilations[0], x = x0 + s * a->dilations[1];
      if (y < height + a->pads[2] && x < width + a->pads[3]) padded++;
      if (y < 0 || x < 0 || y >= height || x >= width) continue;
      double in = image[y * width + x];
      inside++;
      sum += in, absolute += fabs(in);
      if (in > largest || isnan(in)) largest = in;
    }
  if (d->op == CS_OP_MAX_POOL) {
    *value = largest, *magnitude = fabs(largest);
  } else {
    double count = (double)(a->count_include_pad ? padded : inside);
    *value = sum / count, *magnitude = absolute / count;
  }
}

void ref_pool_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_pool_attrs *a = &d->attrs.pool;
  const int64_t *in = d->inputs[0].shape.dims, *out = d->output.shape.dims;
  const double *image = args->inputs[0] + plane * in[2] * in[3];
  for (int64_t oy = 0; oy < out[2]; oy++)
    for (int64_t ox = 0; ox < out[3]; ox++) {
      double value, magnitude;
      pool_window(d, image, oy * a->strides[0] - a->pads[0], ox * a->strides[1] - a->pads[1],
                  &value, &magnitude);
      ref_store(args, (plane * out[2] + oy) * out[3] + ox, value, magnitude);
    }
}

void ref_global_pool_plane(const ref_args *args, int64_t plane) {
  const int64_t *in = args->desc->inputs[0].shape.dims;
  int64_t count = in[2] * in[3];
  const double *image = args->inputs[0] + plane * count;
  double sum = 0, absolute = 0;
  for (int64_t i = 0; i < count; i++) sum += image[i], absolute += fabs(image[i]);
  ref_store(args, plane, sum / (double)count, absolute / (double)count);
}

/* ONNX: the window of channel c is [c − ⌊(size−1)/2⌋, c + ⌈(size−1)/2⌉], cut at the ends. */
void ref_lrn_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_lrn_attrs *a = &d->attrs.lrn;
  const int64_t *shape = d->output.shape.dims;
  int64_t elements = shape[2] * shape[3], n = plane / shape[1], c = plane % shape[1];
  int64_t first = cs_max_i64(0, c - (a->size - 1) / 2);
  int64_t last = cs_min_i64(shape[1] - 1, c + a->size / 2);
  for (int64_t i = 0; i < elements; i++) {
    double squares = 0;
    for (int64_t j = first; j <= last; j++) {
      double x = args->inputs[0][(n * shape[1] + j) * elements + i];
      squares += x * x;
    }
    double x = args->inputs[0][plane * elements + i];
    double y = x / pow(a->bias + a->alpha / (double)a->size * squares, a->beta);
    ref_store(args, plane * elements + i, y, fabs(y));
  }
}
