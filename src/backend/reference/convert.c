/* Between tensors as a device holds them and logical row-major arrays. */
#include <string.h>

#include "backend/reference/reference.h"

float cs_tensor_element(const void *memory, int64_t at, cs_dtype dtype) {
  if (dtype == CS_DTYPE_F16) return cs_f16_to_f32(((const uint16_t *)memory)[at]);
  if (dtype == CS_DTYPE_BF16) return cs_bf16_to_f32(((const uint16_t *)memory)[at]);
  return ((const float *)memory)[at];
}

static void store(void *memory, int64_t at, cs_dtype dtype, float value) {
  if (dtype == CS_DTYPE_F16)
    ((uint16_t *)memory)[at] = cs_f32_to_f16(value);
  else if (dtype == CS_DTYPE_BF16)
    ((uint16_t *)memory)[at] = cs_f32_to_bf16(value);
  else
    ((float *)memory)[at] = value;
}

/* Walks the rows (last axis) of a tensor: the element offset of each row's first element. */
typedef struct row_walk {
  const cs_tensor_desc *desc;
  int64_t index[CS_MAX_RANK];
  int64_t rows, length, step;
} row_walk;

static row_walk walk_start(const cs_tensor_desc *desc) {
  row_walk walk = {.desc = desc, .rows = 1, .length = 1, .step = 1};
  int rank = desc->shape.rank;
  for (int i = 0; i + 1 < rank; i++) walk.rows *= desc->shape.dims[i];
  if (rank > 0) {
    walk.length = desc->shape.dims[rank - 1];
    walk.step = desc->strides[rank - 1];
  }
  return walk;
}

static int64_t walk_offset(const row_walk *walk) {
  const cs_tensor_desc *d = walk->desc;
  if (d->shape.rank == 4)
    return cs_tensor_offset4(d, walk->index[0], walk->index[1], walk->index[2], 0);
  int64_t offset = 0;
  for (int i = 0; i + 1 < d->shape.rank; i++) offset += walk->index[i] * d->strides[i];
  return offset;
}

static void walk_next(row_walk *walk) {
  for (int i = walk->desc->shape.rank - 2; i >= 0; i--) {
    if (++walk->index[i] < walk->desc->shape.dims[i]) return;
    walk->index[i] = 0;
  }
}

void cs_tensor_to_f32(const cs_tensor_desc *desc, const void *memory, float *out) {
  row_walk walk = walk_start(desc);
  for (int64_t row = 0; row < walk.rows; row++, walk_next(&walk)) {
    int64_t first = walk_offset(&walk);
    for (int64_t i = 0; i < walk.length; i++)
      *out++ = cs_tensor_element(memory, first + i * walk.step, desc->dtype);
  }
}

void cs_tensor_to_f64(const cs_tensor_desc *desc, const void *memory, double *out) {
  row_walk walk = walk_start(desc);
  for (int64_t row = 0; row < walk.rows; row++, walk_next(&walk)) {
    int64_t first = walk_offset(&walk);
    for (int64_t i = 0; i < walk.length; i++)
      *out++ = (double)cs_tensor_element(memory, first + i * walk.step, desc->dtype);
  }
}

static void clear_padding_lanes(const cs_tensor_desc *desc, void *memory) {
  int64_t lanes = cs_layout_granule(desc->layout);
  if (desc->shape.rank != 4 || lanes == 1) return;
  const int64_t *dims = desc->shape.dims;
  cs_tensor_desc whole = *desc;
  whole.shape.dims[1] = cs_round_up(dims[1], lanes);
  for (int64_t n = 0; n < dims[0]; n++)
    for (int64_t c = dims[1]; c < whole.shape.dims[1]; c++)
      for (int64_t h = 0; h < dims[2]; h++)
        for (int64_t w = 0; w < dims[3]; w++)
          store(memory, cs_tensor_offset4(&whole, n, c, h, w), desc->dtype, 0.0f);
}

void cs_tensor_from_f32(const cs_tensor_desc *desc, const float *in, void *memory) {
  row_walk walk = walk_start(desc);
  for (int64_t row = 0; row < walk.rows; row++, walk_next(&walk)) {
    int64_t first = walk_offset(&walk);
    for (int64_t i = 0; i < walk.length; i++)
      store(memory, first + i * walk.step, desc->dtype, *in++);
  }
  clear_padding_lanes(desc, memory);
}

void cs_round_to_dtype(cs_dtype dtype, float *values, int64_t count) {
  if (dtype == CS_DTYPE_F32) return;
  for (int64_t i = 0; i < count; i++)
    values[i] = dtype == CS_DTYPE_F16 ? cs_f16_to_f32(cs_f32_to_f16(values[i]))
                                      : cs_bf16_to_f32(cs_f32_to_bf16(values[i]));
}
