/* Conv, ConvTranspose, Gemm and MatMul by definition. The loops run over whole rows of an output
 * plane, so that large layers stay affordable; each output element is still one plain double sum.
 */
#include <math.h>
#include <string.h>

#include "backend/reference/internal.h"

/* One filter tap over one plane: value[oy, ox] += w · x[oy·sh + dy, ox·sw + dx] where inside. */
typedef struct conv_tap {
  const double *image;           /* input plane */
  const double *image_magnitude; /* NULL: its absolute values */
  int64_t in_h, in_w, out_h, out_w;
  const int64_t *strides;
  int64_t dy, dx;
  double w;
  double *value, *magnitude;
} conv_tap;

static void first_and_last(int64_t in, int64_t out, int64_t stride, int64_t shift, int64_t *begin,
                           int64_t *end) {
  int64_t b = shift < 0 ? (-shift + stride - 1) / stride : 0;
  int64_t e = in - shift > 0 ? (in - shift - 1) / stride + 1 : 0;
  *begin = b;
  *end = cs_min_i64(e, out);
}

static void add_tap(const conv_tap *t) {
  int64_t y0, y1, x0, x1, sw = t->strides[1];
  first_and_last(t->in_h, t->out_h, t->strides[0], t->dy, &y0, &y1);
  first_and_last(t->in_w, t->out_w, sw, t->dx, &x0, &x1);
  for (int64_t oy = y0; oy < y1; oy++) {
    const double *in = t->image + (oy * t->strides[0] + t->dy) * t->in_w + t->dx;
    double *value = t->value + oy * t->out_w;
    for (int64_t ox = x0; ox < x1; ox++) value[ox] += t->w * in[ox * sw];
    if (!t->magnitude) continue;
    double *magnitude = t->magnitude + oy * t->out_w;
    if (t->image_magnitude) in = t->image_magnitude + (in - t->image);
    for (int64_t ox = x0; ox < x1; ox++) magnitude[ox] += fabs(t->w * in[ox * sw]);
  }
}

static void clear_plane(const ref_args *args, int64_t plane, int64_t elements, double **value,
                        double **magnitude) {
  *value = args->value + plane * elements;
  *magnitude = args->magnitude ? args->magnitude + plane * elements : NULL;
  memset(*value, 0, (size_t)elements * sizeof(double));
  if (*magnitude) memset(*magnitude, 0, (size_t)elements * sizeof(double));
}

void ref_conv_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_conv_attrs *a = &d->attrs.conv;
  const int64_t *in = d->inputs[0].shape.dims, *out = d->output.shape.dims;
  int64_t n = plane / out[1], k = plane % out[1];
  int64_t per_group = in[1] / a->group, group = k / (out[1] / a->group);
  conv_tap tap = {.in_h = in[2], .in_w = in[3], .out_h = out[2], .out_w = out[3]};
  tap.strides = a->strides;
  clear_plane(args, plane, out[2] * out[3], &tap.value, &tap.magnitude);
  for (int64_t c = 0; c < per_group; c++) {
    int64_t image = (n * in[1] + group * per_group + c) * in[2] * in[3];
    tap.image = args->inputs[0] + image;
    if (args->input_magnitude) tap.image_magnitude = args->input_magnitude + image;
    for (int64_t r = 0; r < a->kernel[0]; r++)
      for (int64_t s = 0; s < a->kernel[1]; s++) {
        tap.w = args->weight[((k * per_group + c) * a->kernel[0] + r) * a->kernel[1] + s];
        tap.dy = r * a->dilations[0] - a->pads[0];
        tap.dx = s * a->dilations[1] - a->pads[1];
        add_tap(&tap);
      }
  }
}

/* Scatters one input plane through one tap: out[iy·sh + dy, ix·sw + dx] += w · x[iy, ix]. */
static void scatter_tap(const conv_tap *t) {
  int64_t y0, y1, x0, x1, sw = t->strides[1];
  first_and_last(t->out_h, t->in_h, t->strides[0], t->dy, &y0, &y1);
  first_and_last(t->out_w, t->in_w, sw, t->dx, &x0, &x1);
  for (int64_t iy = y0; iy < y1; iy++) {
    const double *in = t->image + iy * t->in_w;
    int64_t at = (iy * t->strides[0] + t->dy) * t->out_w + t->dx;
    for (int64_t ix = x0; ix < x1; ix++) t->value[at + ix * sw] += t->w * in[ix];
    if (!t->magnitude) continue;
    for (int64_t ix = x0; ix < x1; ix++) t->magnitude[at + ix * sw] += fabs(t->w * in[ix]);
  }
}

void ref_conv_transpose_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  const cs_conv_attrs *a = &d->attrs.conv;
  const int64_t *in = d->inputs[0].shape.dims, *out = d->output.shape.dims;
  int64_t n = plane / out[1], k = plane % out[1];
  int64_t in_per_group = in[1] / a->group, out_per_group = out[1] / a->group;
  int64_t group = k / out_per_group;
  conv_tap tap = {.in_h = in[2], .in_w = in[3], .out_h = out[2], .out_w = out[3]};
  tap.strides = a->strides;
  clear_plane(args, plane, out[2] * out[3], &tap.value, &tap.magnitude);
  for (int64_t i = 0; i < in_per_group; i++) {
    int64_t c = group * in_per_group + i;
    tap.image = args->inputs[0] + (n * in[1] + c) * in[2] * in[3];
    for (int64_t r = 0; r < a->kernel[0]; r++)
      for (int64_t s = 0; s < a->kernel[1]; s++) {
        int64_t filter = c * out_per_group + k % out_per_group;
        tap.w = args->weight[(filter * a->kernel[0] + r) * a->kernel[1] + s];
        tap.dy = r * a->dilations[0] - a->pads[0];
        tap.dx = s * a->dilations[1] - a->pads[1];
        scatter_tap(&tap);
      }
  }
}

void ref_gemm_plane(const ref_args *args, int64_t plane) {
  const cs_op_desc *d = args->desc;
  int64_t in = d->inputs[0].shape.dims[1], out = d->output.shape.dims[1];
  const double *x = args->inputs[0] + plane * in;
  for (int64_t o = 0; o < out; o++) {
    const float *w = args->weight + o * in;
    double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < in; i++) sum += x[i] * w[i], magnitude += fabs(x[i] * w[i]);
    ref_store(args, plane * out + o, sum, magnitude);
  }
}

/* A factor of a product: from doubles, or the constant. */
typedef struct factor {
  const double *data;
  const float *constant; /* NULL: data */
} factor;

static double factor_at(const factor *from, int64_t at) {
  return from->constant ? (double)from->constant[at] : from->data[at];
}

/* Inputs are dense here, whatever the description says. */
static cs_matmul_factors dense_factors(const cs_op_desc *desc) {
  cs_op_desc dense = *desc;
  for (int i = 0; i < desc->n_inputs; i++) {
    dense.inputs[i] = cs_tensor_dense(&desc->inputs[i].shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  }
  return cs_op_factors(&dense, CS_DTYPE_F32);
}

/* Where the products of output element `at` begin in a and in b. */
static void first_products(const cs_matmul_factors *of, const cs_shape *out, int64_t at,
                           int64_t *in_a, int64_t *in_b) {
  *in_a = *in_b = 0;
  for (int i = out->rank - 1; i >= 0; i--) {
    int64_t place = at % out->dims[i];
    at /= out->dims[i];
    if (i < out->rank - 1) *in_a += place * of->a.strides[i];
    if (i != out->rank - 2) *in_b += place * of->b.strides[i];
  }
}

void ref_matmul_plane(const ref_args *args, int64_t plane) {
  const cs_shape *out = &args->desc->output.shape;
  cs_matmul_factors of = dense_factors(args->desc);
  factor a = {args->inputs[0], of.constant_a ? args->weight : NULL};
  factor b = {args->inputs[0], of.constant_b ? args->weight : NULL};
  if (!of.constant_a && !of.constant_b) b.data = args->inputs[1];
  int64_t depth = of.a.shape.dims[out->rank - 1], elements = 1;
  int64_t step_a = of.a.strides[out->rank - 1], step_b = of.b.strides[out->rank - 2];
  for (int i = out->rank == 4 ? 2 : 1; i < out->rank; i++) elements *= out->dims[i];
  for (int64_t at = plane * elements; at < (plane + 1) * elements; at++) {
    double sum = 0, magnitude = 0;
    int64_t in_a, in_b;
    first_products(&of, out, at, &in_a, &in_b);
    for (int64_t k = 0; k < depth; k++) {
      double product = factor_at(&a, in_a + k * step_a) * factor_at(&b, in_b + k * step_b);
      sum += product, magnitude += fabs(product);
    }
    ref_store(args, at, sum, magnitude);
  }
}
