/* Shapes and tensor descriptions: dense strides, spans, offsets. */
#include <string.h>

#include "graph/op.h"

cs_status cs_shape_elements(const cs_shape *shape, int64_t *out) {
  int64_t elements = 1;
  for (int i = 0; i < shape->rank; i++) {
    int64_t extent = shape->dims[i] == CS_DIM_N ? 1 : shape->dims[i];
    if (!cs_mul_i64(elements, extent, &elements)) {
      return cs_error(CS_CODE_BAD_INPUT, "found a tensor of more than 2^63 - 1 elements");
    }
  }
  *out = elements;
  return CS_OK;
}

bool cs_shape_equal(const cs_shape *a, const cs_shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

bool cs_shape_broadcast(const cs_shape *a, const cs_shape *b, cs_shape *out) {
  *out = (cs_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < out->rank; i++) {
    int in_a = i - (out->rank - a->rank), in_b = i - (out->rank - b->rank);
    int64_t from_a = in_a < 0 ? 1 : a->dims[in_a], from_b = in_b < 0 ? 1 : b->dims[in_b];
    if (from_a != from_b && from_a != 1 && from_b != 1) return false;
    out->dims[i] = from_a == 1 ? from_b : from_a;
    if (out->dims[i] == CS_DIM_N && i > 0) return false;
  }
  return true;
}

static int64_t channel_blocks(const cs_tensor_desc *desc) {
  int64_t granule = cs_layout_granule(desc->layout);
  return (desc->shape.dims[1] + granule - 1) / granule;
}

cs_tensor_desc cs_tensor_dense(const cs_shape *shape, cs_dtype dtype, cs_layout layout) {
  cs_tensor_desc desc = {.shape = *shape, .dtype = dtype, .layout = layout, .alignment = 256};
  if (shape->rank != 4) desc.layout = CS_LAYOUT_NCHW;
  if (desc.layout == CS_LAYOUT_NCHW) {
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
      desc.strides[i] = stride;
      stride *= shape->dims[i];
    }
    return desc;
  }
  int64_t lanes = desc.layout == CS_LAYOUT_NHWC ? shape->dims[1] : cs_layout_granule(layout);
  desc.strides[3] = lanes;
  desc.strides[2] = lanes * shape->dims[3];
  int64_t plane = desc.strides[2] * shape->dims[2];
  desc.strides[1] = desc.layout == CS_LAYOUT_NHWC ? 1 : plane;
  desc.strides[0] = desc.layout == CS_LAYOUT_NHWC ? plane : plane * channel_blocks(&desc);
  return desc;
}

int64_t cs_tensor_span_bytes(const cs_tensor_desc *desc) {
  int64_t granule = cs_layout_granule(desc->layout);
  int64_t last = granule - 1;
  for (int i = 0; i < desc->shape.rank; i++) {
    int64_t extent = desc->shape.dims[i];
    if (i == 1 && granule > 1) extent = channel_blocks(desc);
    last += (extent - 1) * desc->strides[i];
  }
  return (last + 1) * cs_dtype_size(desc->dtype);
}

bool cs_tensor_is_dense(const cs_tensor_desc *desc) {
  cs_tensor_desc dense = cs_tensor_dense(&desc->shape, desc->dtype, desc->layout);
  for (int i = 0; i < desc->shape.rank; i++) {
    int64_t extent = desc->shape.dims[i];
    if (i == 1 && cs_layout_granule(desc->layout) > 1) extent = channel_blocks(desc);
    if (extent > 1 && desc->strides[i] != dense.strides[i]) return false;
  }
  return true;
}

cs_tensor_desc cs_tensor_broadcast(const cs_tensor_desc *desc, const cs_shape *shape) {
  cs_tensor_desc out = *desc;
  out.shape = *shape;
  for (int i = 0; i < shape->rank; i++) {
    int from = i - (shape->rank - desc->shape.rank);
    bool repeats = from < 0 || desc->shape.dims[from] == 1;
    out.strides[i] = repeats ? 0 : desc->strides[from];
  }
  if (desc->shape.rank == 4 && desc->shape.dims[1] == 1 && cs_layout_granule(desc->layout) > 1) {
    out.layout = CS_LAYOUT_NCHW;
  }
  return out;
}

int64_t cs_tensor_offset4(const cs_tensor_desc *desc, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t *strides = desc->strides;
  int64_t granule = cs_layout_granule(desc->layout);
  return n * strides[0] + c / granule * strides[1] + c % granule + h * strides[2] + w * strides[3];
}
