/* Functions of one number and of two by definition, in double: of the reference on the host, of the
 * one on a GPU, and of constants that an import computes. */
#ifndef CONVSCHED_GRAPH_FUNCTIONS_H_
#define CONVSCHED_GRAPH_FUNCTIONS_H_

#include <math.h>

#include "graph/op.h"
#include "graph/resample.h"

#ifdef __CUDACC__
#define CS_REF_FUNCTION __device__ static inline
#else
#define CS_REF_FUNCTION static inline
#endif

CS_REF_FUNCTION double ref_cut(double x, double low, double high) {
  return fmin(fmax(x, low), high);
}

CS_REF_FUNCTION double ref_activation(cs_activation activation, double x) {
  double alpha = activation.alpha, beta = activation.beta;
  switch (activation.kind) {
    case CS_ACT_NONE:
      return x;
    case CS_ACT_RELU:
      return x > 0 ? x : 0;
    case CS_ACT_LEAKY_RELU:
      return x > 0 ? x : alpha * x;
    case CS_ACT_CLIP:
      return ref_cut(x, alpha, beta);
    case CS_ACT_SIGMOID:
      return 1.0 / (1.0 + exp(-x));
    case CS_ACT_TANH:
      return tanh(x);
    case CS_ACT_ELU:
      return x < 0 ? alpha * expm1(x) : x;
    case CS_ACT_HARD_SIGMOID:
      return ref_cut(alpha * x + beta, 0, 1);
    case CS_ACT_HARD_SWISH:
      return x * ref_cut(x / 6 + 0.5, 0, 1);
    case CS_ACT_SWISH:
      return x / (1.0 + exp(-alpha * x));
    case CS_ACT_SELU:
      return beta * (x < 0 ? alpha * expm1(x) : x);
    case CS_ACT_SQRT:
      return sqrt(x);
    case CS_ACT_ABS:
      return fabs(x);
    case CS_ACT_NEG:
      return -x;
    case CS_ACT_EXP:
      return exp(x);
    case CS_ACT_SOFTPLUS:
      return fmax(x, 0) + log1p(exp(-fabs(x)));
    case CS_ACT_ERF:
      return erf(x);
    case CS_ACT_GELU:
      return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
  }
  return NAN;
}

/* Of the binary operators. */
CS_REF_FUNCTION double ref_combine(cs_op op, double a, double b) {
  switch (op) {
    case CS_OP_ADD:
      return a + b;
    case CS_OP_SUB:
      return a - b;
    case CS_OP_MUL:
      return a * b;
    case CS_OP_DIV:
      return a / b;
    case CS_OP_MAX:
      return a > b || isnan(a) ? a : b;
    case CS_OP_MIN:
      return a < b || isnan(a) ? a : b;
    case CS_OP_PRELU:
      return a < 0 ? b * a : a;
    default:
      return pow(a, b);
  }
}

/* Row-major index into the input of what a Transpose puts at row-major index `at` of its output. */
CS_REF_FUNCTION int64_t ref_transpose_source(const cs_transpose_attrs *t, const cs_shape *input,
                                             int64_t at) {
  const cs_shape *factors = t->input_shape.rank ? &t->input_shape : input;
  int64_t place[CS_MAX_RANK] = {0}, source = 0;
  for (int i = t->n_perm - 1; i >= 0; i--) {
    int64_t extent = factors->dims[t->perm[i]];
    place[t->perm[i]] = at % extent;
    at /= extent;
  }
  for (int axis = 0; axis < factors->rank; axis++)
    source = source * factors->dims[axis] + place[axis];
  return source;
}

/* The same of a Slice. */
CS_REF_FUNCTION int64_t ref_slice_source(const cs_slice_attrs *s, const cs_shape *input,
                                         const cs_shape *output, int64_t at) {
  int64_t source = 0, step = 1;
  for (int axis = output->rank - 1; axis >= 0; axis--) {
    int64_t i = at % output->dims[axis];
    at /= output->dims[axis];
    for (int k = 0; k < s->n_axes; k++)
      if (s->axes[k] == axis) i = s->starts[k] + i * s->steps[k];
    source += i * step;
    step *= input->dims[axis];
  }
  return source;
}

/* The same of a Pad; -1: the value. */
CS_REF_FUNCTION int64_t ref_pad_source(const cs_pad_attrs *pad, const cs_shape *input,
                                       const cs_shape *output, int64_t at) {
  int64_t source = 0, step = 1;
  for (int axis = output->rank - 1; axis >= 0; axis--) {
    int64_t begin = pad->pads[axis], end = pad->pads[pad->rank + axis], extent = input->dims[axis];
    int64_t low = begin < 0 ? -begin : 0, high = extent + (end < 0 ? end : 0);
    int64_t i = cs_pad_source(pad->mode, at % output->dims[axis] - begin, low, high);
    at /= output->dims[axis];
    if (i < 0) return -1;
    source += i * step;
    step *= extent;
  }
  return source;
}

#endif
