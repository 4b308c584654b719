/* Functions of one number in f32. */
#include <math.h>

#include "backend/cpu/cpu.h"

static float cut(float x, float low, float high) {
  return fminf(fmaxf(x, low), high);
}

float cpu_activate(cs_activation activation, float x) {
  float alpha = (float)activation.alpha, beta = (float)activation.beta;
  switch (activation.kind) {
    case CS_ACT_NONE:
      return x;
    case CS_ACT_RELU:
      return x > 0 ? x : 0;
    case CS_ACT_LEAKY_RELU:
      return x > 0 ? x : alpha * x;
    case CS_ACT_CLIP:
      return cut(x, alpha, beta);
    case CS_ACT_SIGMOID:
      return 1.0f / (1.0f + expf(-x));
    case CS_ACT_TANH:
      return tanhf(x);
    case CS_ACT_ELU:
      return x < 0 ? alpha * expm1f(x) : x;
    case CS_ACT_HARD_SIGMOID:
      return cut(alpha * x + beta, 0, 1);
    case CS_ACT_HARD_SWISH:
      return x * cut(x / 6 + 0.5f, 0, 1);
    case CS_ACT_SWISH:
      return x / (1.0f + expf(-alpha * x));
    case CS_ACT_SELU:
      return beta * (x < 0 ? alpha * expm1f(x) : x);
    case CS_ACT_SQRT:
      return sqrtf(x);
    case CS_ACT_ABS:
      return fabsf(x);
    case CS_ACT_NEG:
      return -x;
    case CS_ACT_EXP:
      return expf(x);
    case CS_ACT_SOFTPLUS:
      return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    case CS_ACT_ERF:
      return erff(x);
    case CS_ACT_GELU:
      return 0.5f * x * (1 + erff(x * 0.70710678f));
  }
  return x;
}
