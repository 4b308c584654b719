/* Functions of one number and of two by definition, in double: of the reference on the host and of
 * the one on a GPU. */
#ifndef CONVSCHED_BACKEND_REFERENCE_FUNCTIONS_H_
#define CONVSCHED_BACKEND_REFERENCE_FUNCTIONS_H_

#include <math.h>

#include "graph/op.h"

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

#endif
