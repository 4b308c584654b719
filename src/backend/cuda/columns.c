/* Which operations are products of columns, and how they lie. */
#include "backend/cuda/columns.h"

#include <string.h>

static int common_divisor(int a, int b) {
  while (b > 0) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static cs_axis_map axis_of(const cs_op_desc *desc, int axis) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  cs_axis_map a = {.stride = (int)conv->strides[axis],
                   .dilation = (int)conv->dilations[axis],
                   .pad = (int)conv->pads[axis],
                   .kernel = (int)conv->kernel[axis],
                   .in = (int)desc->inputs[0].shape.dims[2 + axis],
                   .out = (int)desc->output.shape.dims[2 + axis]};
  int divisor = common_divisor(a.stride, a.dilation);
  a.tap_step = a.stride / divisor;
  a.in_step = a.dilation / divisor;
  return a;
}

/* Pixels whose channels lie side by side, at one distance. */
static bool is_rows(const cs_tensor_desc *t) {
  const int64_t *d = t->shape.dims, *s = t->strides;
  int64_t pitch = d[3] > 1 ? s[3] : d[2] > 1 ? s[2] : s[0];
  return (d[1] == 1 || s[1] == 1) && (d[3] == 1 || s[3] == pitch) &&
         (d[2] == 1 || s[2] == d[3] * pitch) && (d[0] == 1 || s[0] == d[2] * d[3] * pitch);
}

/* Pixels of a channel side by side, without gaps. */
static bool is_planes(const cs_tensor_desc *t) {
  const int64_t *d = t->shape.dims, *s = t->strides;
  return (d[3] == 1 || s[3] == 1) && (d[2] == 1 || s[2] == d[3]);
}

static const char *refuse(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (desc->op != CS_OP_CONV_TRANSPOSE) return "no transposed convolution";
  if (conv->group != 1) return "in groups";
  if (desc->has_residual || desc->has_prologue) return "with a residual or a prologue";
  if (desc->inputs[0].dtype != desc->output.dtype) return "with an input of another type";
  if (desc->output.shape.rank != 4 || cs_layout_granule(desc->inputs[0].layout) != 1 ||
      cs_layout_granule(desc->output.layout) != 1)
    return "in a blocked layout";
  for (int i = 0; i < 4; i++)
    if (desc->inputs[0].shape.dims[i] < 1 || desc->output.shape.dims[i] < 1)
      return "a tensor without elements";
  for (int axis = 0; axis < 2; axis++) {
    double reach = (double)desc->output.shape.dims[2 + axis] + (double)conv->pads[axis] +
                   (double)conv->kernel[axis] * (double)conv->dilations[axis] +
                   (double)desc->inputs[0].shape.dims[2 + axis] * (double)conv->strides[axis];
    if (reach > INT32_MAX / 4) return "extents beyond 2^29";
  }
  return NULL;
}

const char *cs_columns_make(const cs_op_desc *desc, cs_columns *out) {
  memset(out, 0, sizeof(*out));
  const char *refusal = refuse(desc);
  if (refusal) return refusal;
  out->h = axis_of(desc, 0);
  out->w = axis_of(desc, 1);
  out->images = desc->inputs[0].shape.dims[0];
  out->pieces = 1;
  out->filters = desc->output.shape.dims[1];
  out->planes = !is_rows(&desc->inputs[0]);
  if (out->planes && !is_planes(&desc->inputs[0])) return "pixels that lie at no one distance";
  return NULL;
}

int64_t cs_columns_bytes(const cs_columns *c) {
  int64_t pixels = c->images * c->h.in * c->w.in;
  return cs_round_up(pixels * c->h.kernel * c->w.kernel * c->filters * (int64_t)sizeof(float), 256);
}

bool cs_columns_cut(cs_columns *columns, int64_t batch, int64_t limit) {
  for (int64_t pieces = 1; pieces <= batch; pieces++) {
    if (batch % pieces != 0) continue;
    columns->images = batch / pieces;
    columns->pieces = (int)pieces;
    if (cs_columns_bytes(columns) <= limit) return true;
  }
  return false;
}

static int64_t aligned_at(int64_t alignment, int64_t bytes) {
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

static void cut_tensor(cs_tensor_desc *tensor, int64_t images) {
  tensor->shape.dims[0] = images;
  tensor->alignment =
      aligned_at(tensor->alignment, images * tensor->strides[0] * cs_dtype_size(tensor->dtype));
}

cs_op_desc cs_columns_piece(const cs_columns *columns, const cs_op_desc *desc) {
  cs_op_desc piece = *desc;
  if (columns->pieces == 1) return piece;
  cut_tensor(&piece.inputs[0], columns->images);
  cut_tensor(&piece.output, columns->images);
  return piece;
}

cs_column_strides cs_columns_strides(const cs_columns *c) {
  int64_t taps = (int64_t)c->h.kernel * c->w.kernel, pixels = (int64_t)c->h.in * c->w.in;
  int64_t image = pixels * taps * c->filters;
  if (c->planes)
    return (cs_column_strides){
        .image = image, .h = c->w.in, .w = 1, .tap = c->filters * pixels, .filter = pixels};
  return (cs_column_strides){.image = image,
                             .h = c->w.in * taps * c->filters,
                             .w = taps * c->filters,
                             .tap = c->filters,
                             .filter = 1};
}
