/* Add, Mul, Sub, Div, Max, Min, Pow, PRelu of broadcast operands. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/segments.h"

typedef struct binary_args {
  cs_op op;
  cs_activation activation;
  const float *a, *b;
  float *y;
} binary_args;

/* NaN stays NaN. */
static inline float largest(float a, float b) {
  return a > b || isnan(a) ? a : b;
}
static inline float smallest(float a, float b) {
  return a < b || isnan(a) ? a : b;
}

#define EACH(expression)                        \
  CPU_SIMD                                      \
  for (int64_t i = 0; i < s->length; i++) {     \
    float v = a[i * step_a], w = b[i * step_b]; \
    y[i * step_y] = (expression);               \
  }                                             \
  break

static void combine(cs_op op, const cpu_segment *s, const float *a, const float *b, float *y) {
  int64_t step_y = s->steps[0], step_a = s->steps[1], step_b = s->steps[2];
  switch (op) {
    case CS_OP_ADD:
      EACH(v + w);
    case CS_OP_SUB:
      EACH(v - w);
    case CS_OP_MUL:
      EACH(v * w);
    case CS_OP_DIV:
      EACH(v / w);
    case CS_OP_MAX:
      EACH(largest(v, w));
    case CS_OP_MIN:
      EACH(smallest(v, w));
    case CS_OP_PRELU:
      EACH(v < 0 ? w * v : v);
    default:
      EACH(powf(v, w));
  }
}

static void binary_segment(void *user, const cpu_segment *s) {
  const binary_args *e = user;
  float *y = e->y + s->offsets[0];
  combine(e->op, s, e->a + s->offsets[1], e->b + s->offsets[2], y);
  if (e->activation.kind == CS_ACT_NONE) return;
  for (int64_t i = 0; i < s->length; i++)
    y[i * s->steps[0]] = cpu_activate(e->activation, y[i * s->steps[0]]);
}

void cpu_loop_binary(const cs_op_desc *desc, const void *const *inputs, const float *weights,
                     float *output) {
  bool constant = cs_op_has_operand(desc);
  const cs_shape *shape = &desc->output.shape;
  cs_tensor_desc first = cs_tensor_broadcast(&desc->inputs[0], shape);
  cs_tensor_desc second = constant ? cs_op_operand(desc, CS_DTYPE_F32) : desc->inputs[1];
  second = cs_tensor_broadcast(&second, shape);
  binary_args args = {desc->op, desc->activation, inputs[0], constant ? weights : inputs[1],
                      output};
  const cs_tensor_desc *tensors[] = {&desc->output, &first, &second};
  if (constant && desc->attrs.binary.operand_first) {
    args.b = args.a, args.a = weights;
    tensors[1] = &second, tensors[2] = &first;
  }
  cpu_walk(tensors, 3, binary_segment, &args);
}
