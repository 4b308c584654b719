/* Own loops for what oneDNN lacks: windows that reach past the padding, LRN of an even size,
 * ConvTranspose whose output padding reaches past the stride,
 * and these and Softmax over strides that oneDNN does not take. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/segments.h"

typedef struct window_args {
  const cs_op_desc *desc;
  cs_tensor_desc in, out; /* rank 4 */
  const float *x;
  const float *weights; /* PyTorch-shaped, then the bias; NULL where there is none */
  float *y;
} window_args;

static float pool_element(const window_args *a, int64_t n, int64_t c, int64_t oy, int64_t ox) {
  const cs_pool_attrs *p = &a->desc->attrs.pool;
  const int64_t *in = a->in.shape.dims;
  int64_t y0 = oy * p->strides[0] - p->pads[0], x0 = ox * p->strides[1] - p->pads[1];
  int64_t padded = 0, inside = 0;
  float largest = -INFINITY, sum = 0;
  for (int64_t r = 0; r < p->kernel[0]; r++)
    for (int64_t s = 0; s < p->kernel[1]; s++) {
      int64_t y = y0 + r * p->dilations[0], x = x0 + s * p->dilations[1];
      padded += y < in[2] + p->pads[2] && x < in[3] + p->pads[3];
      if (y < 0 || x < 0 || y >= in[2] || x >= in[3]) continue;
      float value = a->x[cs_tensor_offset4(&a->in, n, c, y, x)];
      inside++;
      sum += value;
      if (value > largest || isnan(value)) largest = value;
    }
  if (a->desc->op == CS_OP_MAX_POOL) return largest;
  return sum / (float)(p->count_include_pad ? padded : inside);
}

static float global_element(const window_args *a, int64_t n, int64_t c) {
  const int64_t *in = a->in.shape.dims;
  double sum = 0;
  for (int64_t h = 0; h < in[2]; h++)
    for (int64_t w = 0; w < in[3]; w++) sum += (double)a->x[cs_tensor_offset4(&a->in, n, c, h, w)];
  return (float)(sum / (double)(in[2] * in[3]));
}

static float lrn_element(const window_args *a, int64_t n, int64_t c, int64_t h, int64_t w) {
  const cs_lrn_attrs *l = &a->desc->attrs.lrn;
  int64_t first = cs_max_i64(0, c - (l->size - 1) / 2);
  int64_t last = cs_min_i64(a->in.shape.dims[1] - 1, c + l->size / 2);
  float squares = 0;
  for (int64_t j = first; j <= last; j++) {
    float x = a->x[cs_tensor_offset4(&a->in, n, j, h, w)];
    squares += x * x;
  }
  float base = (float)l->bias + (float)(l->alpha / (double)l->size) * squares;
  return a->x[cs_tensor_offset4(&a->in, n, c, h, w)] * powf(base, -(float)l->beta);
}

/* Gathers what is scattered to one output element: y = x · stride − pad + tap · dilation. */
static float transpose_element(const window_args *a, int64_t n, int64_t k, int64_t h, int64_t w) {
  const cs_conv_attrs *t = &a->desc->attrs.conv;
  const int64_t *in = a->in.shape.dims;
  int64_t per_group = in[1] / t->group, out_per_group = a->out.shape.dims[1] / t->group;
  int64_t first = k / out_per_group * per_group;
  float sum = a->desc->has_bias ? a->weights[cs_op_weight_elements(a->desc) + k] : 0;
  for (int64_t r = 0; r < t->kernel[0]; r++)
    for (int64_t s = 0; s < t->kernel[1]; s++) {
      int64_t y = h + t->pads[0] - r * t->dilations[0], x = w + t->pads[1] - s * t->dilations[1];
      if (y < 0 || x < 0 || y % t->strides[0] != 0 || x % t->strides[1] != 0) continue;
      y /= t->strides[0], x /= t->strides[1];
      if (y >= in[2] || x >= in[3]) continue;
      for (int64_t c = first; c < first + per_group; c++) {
        int64_t filter = c * out_per_group + k % out_per_group;
        sum += a->x[cs_tensor_offset4(&a->in, n, c, y, x)] *
               a->weights[(filter * t->kernel[0] + r) * t->kernel[1] + s];
      }
    }
  return sum;
}

static float window_element(const window_args *a, int64_t n, int64_t c, int64_t h, int64_t w) {
  switch (a->desc->op) {
    case CS_OP_GLOBAL_AVERAGE_POOL:
      return global_element(a, n, c);
    case CS_OP_LRN:
      return lrn_element(a, n, c, h, w);
    case CS_OP_CONV_TRANSPOSE:
      return transpose_element(a, n, c, h, w);
    default:
      return pool_element(a, n, c, h, w);
  }
}

/* Element `j` of row `row`: rows are what Softmax normalises, numbered over the other axes. */
static int64_t softmax_offset(const cs_tensor_desc *t, int axis, int64_t row, int64_t j) {
  int64_t at[4];
  for (int i = 3; i >= 0; i--) {
    at[i] = i == axis ? j : row % t->shape.dims[i];
    if (i != axis) row /= t->shape.dims[i];
  }
  return cs_tensor_offset4(t, at[0], at[1], at[2], at[3]);
}

static void softmax(const window_args *a) {
  int axis = (int)a->desc->attrs.axis.axis;
  const int64_t *dims = a->out.shape.dims;
  int64_t length = dims[axis], rows = dims[0] * dims[1] * dims[2] * dims[3] / length;
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    float largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < length; j++)
      largest = fmaxf(largest, a->x[softmax_offset(&a->in, axis, row, j)]);
    for (int64_t j = 0; j < length; j++) {
      float e = expf(a->x[softmax_offset(&a->in, axis, row, j)] - largest);
      a->y[softmax_offset(&a->out, axis, row, j)] = e;
      sum += e;
    }
    for (int64_t j = 0; j < length; j++) a->y[softmax_offset(&a->out, axis, row, j)] /= sum;
  }
}

void cpu_loop_window(const cs_op_desc *desc, const float *input, const float *weights,
                     float *output) {
  window_args a = {
      desc, cpu_as_rank4(&desc->inputs[0]), cpu_as_rank4(&desc->output), input, weights, output};
  if (desc->op == CS_OP_SOFTMAX) {
    softmax(&a);
    return;
  }
  const int64_t *dims = a.out.shape.dims;
  int64_t rows = dims[0] * dims[1] * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t h = row % dims[2], c = row / dims[2] % dims[1], n = row / dims[2] / dims[1];
    for (int64_t w = 0; w < dims[3]; w++)
      output[cs_tensor_offset4(&a.out, n, c, h, w)] = window_element(&a, n, c, h, w);
  }
}
