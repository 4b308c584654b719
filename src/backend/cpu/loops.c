/* Own loops over elements: copies with conversion, epilogues, BatchNormalization. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"
#include "backend/cpu/segments.h"

void cpu_clear_padding_lanes(const cs_tensor_desc *desc, void *memory) {
  int64_t lanes = cs_layout_granule(desc->layout), used = desc->shape.dims[1] % lanes;
  if (desc->shape.rank != 4 || used == 0) return;
  const int64_t *dims = desc->shape.dims;
  size_t size = (size_t)cs_dtype_size(desc->dtype);
  for (int64_t n = 0; n < dims[0]; n++)
    for (int64_t h = 0; h < dims[2]; h++)
      for (int64_t w = 0; w < dims[3]; w++) {
        int64_t at = cs_tensor_offset4(desc, n, dims[1] - used, h, w) + used;
        memset((char *)memory + (size_t)at * size, 0, (size_t)(lanes - used) * size);
      }
}

/* ---- Copies ---- */

typedef struct copy_args {
  const void *from;
  void *to;
  cs_dtype from_dtype, to_dtype;
} copy_args;

static inline float load(const void *memory, int64_t at, cs_dtype dtype) {
  if (dtype == CS_DTYPE_F32) return ((const float *)memory)[at];
  uint16_t bits = ((const uint16_t *)memory)[at];
  return dtype == CS_DTYPE_F16 ? cs_f16_to_f32(bits) : cs_bf16_to_f32(bits);
}

static inline void store(void *memory, int64_t at, cs_dtype dtype, float value) {
  if (dtype == CS_DTYPE_F32)
    ((float *)memory)[at] = value;
  else
    ((uint16_t *)memory)[at] = dtype == CS_DTYPE_F16 ? cs_f32_to_f16(value) : cs_f32_to_bf16(value);
}

static void copy_segment(void *user, const cpu_segment *s) {
  const copy_args *a = user;
  if (a->from_dtype == a->to_dtype && s->steps[0] == 1 && s->steps[1] == 1) {
    size_t size = (size_t)cs_dtype_size(a->to_dtype);
    memcpy((char *)a->to + (size_t)s->offsets[1] * size,
           (const char *)a->from + (size_t)s->offsets[0] * size, (size_t)s->length * size);
  } else if (a->from_dtype == CS_DTYPE_F32 && a->to_dtype == CS_DTYPE_F32) {
    const float *from = (const float *)a->from + s->offsets[0];
    float *to = (float *)a->to + s->offsets[1];
    for (int64_t i = 0; i < s->length; i++) to[i * s->steps[1]] = from[i * s->steps[0]];
  } else {
    for (int64_t i = 0; i < s->length; i++)
      store(a->to, s->offsets[1] + i * s->steps[1], a->to_dtype,
            load(a->from, s->offsets[0] + i * s->steps[0], a->from_dtype));
  }
}

void cpu_copy(const cs_tensor_desc *from_desc, const void *from, const cs_tensor_desc *to_desc,
              void *to) {
  copy_args args = {from, to, from_desc->dtype, to_desc->dtype};
  const cs_tensor_desc *tensors[] = {from_desc, to_desc};
  cpu_walk(tensors, 2, copy_segment, &args);
  cpu_clear_padding_lanes(to_desc, to);
}

/* ---- Element by element ---- */

typedef struct element_args {
  const float *a, *b; /* b: residual or NULL */
  float *y;
  const float *scale, *shift; /* per channel, or NULL */
  cs_activation activation;
} element_args;

static void element_segment(void *user, const cpu_segment *s) {
  const element_args *e = user;
  const float *a = e->a + s->offsets[0];
  const float *b = e->b ? e->b + s->offsets[2] : NULL;
  float *y = e->y + s->offsets[1];
  cs_activation act = e->activation;
  bool rectify = act.kind == CS_ACT_RELU;
  if (e->scale && s->steps[0] == 1 && s->steps[1] == 1) {
    const float *scale = e->scale + s->channel, *shift = e->shift + s->channel;
    CPU_SIMD
    for (int64_t i = 0; i < s->length; i++) {
      int64_t c = i * s->channel_step;
      float v = a[i] * scale[c] + shift[c];
      y[i] = rectify && v < 0 ? 0 : v;
    }
    if (!rectify && act.kind != CS_ACT_NONE)
      for (int64_t i = 0; i < s->length; i++) y[i] = cpu_activate(act, y[i]);
    return;
  }
  for (int64_t i = 0; i < s->length; i++) {
    float v = a[i * s->steps[0]];
    int64_t c = s->channel + i * s->channel_step;
    if (e->scale) v = v * e->scale[c] + e->shift[c];
    if (b) v += b[i * s->steps[2]];
    y[i * s->steps[1]] = cpu_activate(act, v);
  }
}

void cpu_epilogue(const cs_tensor_desc *y_desc, void *y, const cs_tensor_desc *residual_desc,
                  const void *residual, cs_activation activation) {
  element_args args = {.a = y, .y = y, .b = residual, .activation = activation};
  const cs_tensor_desc *tensors[] = {y_desc, y_desc, residual ? residual_desc : y_desc};
  cpu_walk(tensors, residual ? 3 : 2, element_segment, &args);
  cpu_clear_padding_lanes(y_desc, y);
}

static bool is_unary(const cs_op_desc *desc) {
  return cs_op_own_activation(desc->op, &desc->attrs).kind != CS_ACT_NONE;
}

/* oneDNN refuses these. */
static bool padded_past_stride(const cs_conv_attrs *conv) {
  return conv->output_padding[0] >= conv->strides[0] || conv->output_padding[1] >= conv->strides[1];
}

bool cpu_loop_exists(const cs_op_desc *desc) {
  if (desc->output.shape.rank > 4 || desc->has_residual) return false;
  if (is_unary(desc)) return true;
  if (cs_op_is_binary(desc->op)) return desc->inputs[0].shape.rank <= 4;
  switch (desc->op) {
    case CS_OP_COPY:
    case CS_OP_BATCH_NORM:
    case CS_OP_SOFTMAX:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      return desc->inputs[0].shape.rank <= 4;
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_INSTANCE_NORM:
    case CS_OP_MAX_POOL:
    case CS_OP_AVERAGE_POOL:
    case CS_OP_GLOBAL_AVERAGE_POOL:
    case CS_OP_LRN:
    case CS_OP_RESIZE:
      return desc->output.shape.rank == 4;
    case CS_OP_PAD:
      return true;
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE: {
      cs_movement movement;
      return cs_op_movement(desc, &movement);
    }
    case CS_OP_CONV_TRANSPOSE:
      return padded_past_stride(&desc->attrs.conv);
    default:
      return false;
  }
}

void cpu_loop_run(const cs_op_desc *desc, const void *const *inputs, const float *weights,
                  void *output) {
  element_args args = {.a = inputs[0], .y = output, .activation = desc->activation};
  const cs_tensor_desc *tensors[] = {&desc->inputs[0], &desc->output};
  if (is_unary(desc)) {
    args.activation = cs_op_own_activation(desc->op, &desc->attrs);
    cpu_walk(tensors, 2, element_segment, &args);
    cpu_clear_padding_lanes(&desc->output, output);
    return;
  }
  switch (desc->op) {
    case CS_OP_COPY:
      cpu_copy(&desc->inputs[0], inputs[0], &desc->output, output);
      return;
    case CS_OP_BATCH_NORM:
      args.scale = weights;
      args.shift = weights + desc->output.shape.dims[1];
      cpu_walk(tensors, 2, element_segment, &args);
      break;
    case CS_OP_GLOBAL_MAX_POOL:
    case CS_OP_REDUCE_MEAN:
    case CS_OP_REDUCE_SUM:
    case CS_OP_REDUCE_MAX:
    case CS_OP_REDUCE_MIN:
      cpu_loop_reduce(desc, inputs[0], output);
      break;
    case CS_OP_INSTANCE_NORM:
      cpu_loop_instance_norm(desc, inputs[0], weights, output);
      break;
    case CS_OP_TRANSPOSE:
    case CS_OP_SLICE:
      cpu_loop_move(desc, inputs[0], output);
      break;
    case CS_OP_PAD:
      cpu_loop_pad(desc, inputs[0], output);
      break;
    case CS_OP_RESIZE:
      cpu_loop_resize(desc, inputs[0], output);
      break;
    default:
      if (cs_op_is_binary(desc->op)) {
        cpu_loop_binary(desc, inputs, weights, output);
        break;
      }
      cpu_loop_window(desc, inputs[0], weights, output);
      if (desc->activation.kind != CS_ACT_NONE)
        cpu_epilogue(&desc->output, output, NULL, NULL, desc->activation);
      break;
  }
  cpu_clear_padding_lanes(&desc->output, output);
}
