/* Own loops of reductions over any axes, and of InstanceNormalization. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/segments.h"

typedef struct reduce_args {
  cs_op op;
  cs_tensor_desc in;
  int64_t size[4]; /* of the part that one output element is made of */
  const float *x;
} reduce_args;

/* Sums are of rows of f32, added in double. */
static float reduce_part(const reduce_args *a, const int64_t at[4]) {
  bool smallest = a->op == CS_OP_REDUCE_MIN;
  bool extreme = smallest || a->op == CS_OP_REDUCE_MAX || a->op == CS_OP_GLOBAL_MAX_POOL;
  float best = smallest ? INFINITY : -INFINITY;
  double sum = 0;
  for (int64_t n = at[0]; n < at[0] + a->size[0]; n++)
    for (int64_t c = at[1]; c < at[1] + a->size[1]; c++)
      for (int64_t h = at[2]; h < at[2] + a->size[2]; h++) {
        const float *row = a->x + cs_tensor_offset4(&a->in, n, c, h, at[3]);
        for (int64_t w = 0; w < a->size[3]; w++) {
          float v = row[w * a->in.strides[3]];
          sum += (double)v;
          if (extreme && ((smallest ? v < best : v > best) || isnan(v))) best = v;
        }
      }
  if (extreme) return best;
  int64_t count = a->size[0] * a->size[1] * a->size[2] * a->size[3];
  return (float)(a->op == CS_OP_REDUCE_MEAN ? sum / (double)count : sum);
}

void cpu_loop_reduce(const cs_op_desc *desc, const float *input, float *output) {
  reduce_args a = {.op = desc->op, .in = cpu_as_rank4(&desc->inputs[0]), .x = input};
  cs_tensor_desc kept = cs_op_kept_output(desc), out = cpu_as_rank4(&kept);
  const int64_t *dims = out.shape.dims;
  bool reduced[CS_MAX_RANK];
  (void)cs_op_reduces(desc, reduced);
  for (int i = 0; i < 4; i++) a.size[i] = reduced[i] ? a.in.shape.dims[i] : 1;
  int64_t rows = dims[0] * dims[1] * dims[2];
  CPU_PARALLEL_FOR
  for (int64_t row = 0; row < rows; row++) {
    int64_t at[4] = {row / dims[2] / dims[1], row / dims[2] % dims[1], row % dims[2], 0};
    for (at[3] = 0; at[3] < dims[3]; at[3]++)
      output[cs_tensor_offset4(&out, at[0], at[1], at[2], at[3])] = reduce_part(&a, at);
  }
}

void cpu_loop_instance_norm(const cs_op_desc *desc, const float *input, const float *weights,
                            float *output) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  const int64_t *dims = out->shape.dims;
  int64_t planes = dims[0] * dims[1];
  double pixels = (double)(dims[2] * dims[3]);
  CPU_PARALLEL_FOR
  for (int64_t plane = 0; plane < planes; plane++) {
    int64_t n = plane / dims[1], c = plane % dims[1];
    double sum = 0, squares = 0;
    for (int64_t h = 0; h < dims[2]; h++)
      for (int64_t w = 0; w < dims[3]; w++) sum += (double)input[cs_tensor_offset4(in, n, c, h, w)];
    double mean = sum / pixels;
    for (int64_t h = 0; h < dims[2]; h++)
      for (int64_t w = 0; w < dims[3]; w++) {
        double x = (double)input[cs_tensor_offset4(in, n, c, h, w)] - mean;
        squares += x * x;
      }
    double scale = (double)weights[c] / sqrt(squares / pixels + desc->attrs.batch_norm.epsilon);
    for (int64_t h = 0; h < dims[2]; h++)
      for (int64_t w = 0; w < dims[3]; w++) {
        double x = (double)input[cs_tensor_offset4(in, n, c, h, w)] - mean;
        output[cs_tensor_offset4(out, n, c, h, w)] =
            (float)(x * scale + (double)weights[dims[1] + c]);
      }
  }
}
