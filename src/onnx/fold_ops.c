/* Arithmetic on shapes: lists of extents, of which some are multiples of the batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/functions.h"
#include "onnx/fold.h"

static cs_status new_items(int64_t count, cs_onnx_item **out) {
  *out = cs_calloc((size_t)count, sizeof **out);
  return *out ? CS_OK : cs_no_memory("a constant", (size_t)count * sizeof **out);
}

/* Vectors and single numbers are what shapes are computed with. */
static cs_status want_vector(cs_onnx_node *node, const cs_onnx_value *value, bool *good) {
  *good = value->data.shape.rank <= 1;
  if (*good) return CS_OK;
  return cs_onnx_refuse(node, "input (\"%.80s\"): found a constant of %d axes, wanted a list",
                        value->name, value->data.shape.rank);
}

cs_status cs_onnx_fold_gather(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  int64_t n = cs_onnx_count(&inputs[0]->data.shape);
  int64_t n_out = cs_onnx_count(&inputs[1]->data.shape);
  cs_onnx_item *items = NULL;
  bool good;
  CS_RETURN_IF_ERROR(cs_onnx_want_int(node, "axis", 0, 0));
  CS_RETURN_IF_ERROR(want_vector(node, inputs[0], &good));
  if (!good || node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(new_items(n_out, &items));
  for (int64_t i = 0; i < n_out; i++) {
    int64_t at = inputs[1]->items[i].whole;
    if (at < 0) at += n;
    if (at < 0 || at >= n || inputs[1]->items[i].times_n) {
      free(items);
      return cs_onnx_refuse(node, "input indices: found %lld for a list of %lld",
                            (long long)inputs[1]->items[i].whole, (long long)n);
    }
    items[i] = inputs[0]->items[at];
  }
  cs_onnx_give_items(node, inputs[0]->dtype, &inputs[1]->data.shape, items);
  return CS_OK;
}

/* A constant's elements taken with a stride along each axis of the result. */
typedef struct strided {
  cs_shape shape;
  int64_t first, strides[CS_MAX_RANK];
} strided;

static strided row_major(const cs_shape *shape) {
  strided all = {.shape = *shape};
  int64_t stride = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    all.strides[i] = stride;
    stride *= shape->dims[i];
  }
  return all;
}

static cs_status give_strided(cs_onnx_node *node, const cs_onnx_value *from, const strided *taken) {
  int64_t n = cs_onnx_count(&taken->shape);
  cs_onnx_item *items = NULL;
  CS_RETURN_IF_ERROR(new_items(n, &items));
  for (int64_t i = 0; i < n; i++) {
    int64_t at = taken->first, rest = i;
    for (int axis = taken->shape.rank - 1; axis >= 0; axis--) {
      at += rest % taken->shape.dims[axis] * taken->strides[axis];
      rest /= taken->shape.dims[axis];
    }
    items[i] = from->items[at];
  }
  cs_onnx_give_items(node, from->dtype, &taken->shape, items);
  return CS_OK;
}

cs_status cs_onnx_fold_slice(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  cs_slice_attrs slice = {0};
  strided taken = row_major(&inputs[0]->data.shape);
  CS_RETURN_IF_ERROR(cs_onnx_read_slice(node, taken.shape.rank, &slice));
  if (node->refused) return CS_OK;
  for (int k = 0; k < slice.n_axes; k++) {
    int64_t *extent = &taken.shape.dims[slice.axes[k]], *stride = &taken.strides[slice.axes[k]];
    cs_slice_range range = cs_slice_range_of(&slice, k, *extent);
    taken.first += range.first * *stride;
    *extent = range.count;
    *stride *= range.step;
  }
  return give_strided(node, inputs[0], &taken);
}

cs_status cs_onnx_fold_permutation(cs_onnx_node *node, const cs_onnx_value *input) {
  const cs_shape *from = &input->data.shape;
  strided all = row_major(from), taken = {.shape = {.rank = from->rank}};
  int64_t perm[CS_MAX_RANK];
  bool seen[CS_MAX_RANK] = {false};
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "perm", from->rank, 0, 0, perm));
  if (node->refused) return CS_OK;
  for (int i = 0; i < from->rank; i++) {
    if (!cs_onnx_attribute(node, "perm")) perm[i] = from->rank - 1 - i;
    if (perm[i] >= from->rank || seen[perm[i]]) {
      return cs_onnx_refuse(node, "attribute perm: found %lld, wanted every axis once",
                            (long long)perm[i]);
    }
    seen[perm[i]] = true;
    taken.shape.dims[i] = from->dims[perm[i]];
    taken.strides[i] = all.strides[perm[i]];
  }
  return give_strided(node, input, &taken);
}

cs_status cs_onnx_fold_concat(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  cs_shape shape = {.rank = 1};
  cs_onnx_item *items = NULL;
  size_t n = node->proto->n_input;
  for (size_t i = 0; i < n; i++) {
    bool good;
    if (!inputs[i]) return cs_onnx_refuse(node, "input %zu: found none, wanted a list", i);
    CS_RETURN_IF_ERROR(want_vector(node, inputs[i], &good));
    if (!good) return CS_OK;
    shape.dims[0] += cs_onnx_count(&inputs[i]->data.shape);
  }
  if (shape.dims[0] > CS_ONNX_MOST_ITEMS) {
    return cs_onnx_refuse(node, "found %lld numbers, wanted at most %d", (long long)shape.dims[0],
                          CS_ONNX_MOST_ITEMS);
  }
  CS_RETURN_IF_ERROR(new_items(shape.dims[0], &items));
  int64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t count = cs_onnx_count(&inputs[i]->data.shape);
    if (count) memcpy(items + at, inputs[i]->items, (size_t)count * sizeof *items);
    at += count;
  }
  cs_onnx_give_items(node, inputs[0]->dtype, &shape, items);
  return CS_OK;
}

/* ---- Arithmetic ---- */

double cs_onnx_rounded(int32_t dtype, double value) {
  switch (dtype) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
      return value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
      return (double)cs_f16_to_f32(cs_f32_to_f16((float)value));
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
      return (double)cs_bf16_to_f32(cs_f32_to_bf16((float)value));
    default:
      return (double)(float)value;
  }
}

int64_t cs_onnx_wrapped(int32_t dtype, int64_t value) {
  switch (dtype) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
      return value != 0;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
      return (int8_t)value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
      return (uint8_t)value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
      return (int16_t)value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
      return (uint16_t)value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
      return (int32_t)value;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
      return (uint32_t)value;
    default:
      return value;
  }
}

/* a op b of integers; false: it overflows, or is no multiple of the batch. */
static bool whole_of(cs_op op, cs_onnx_item a, cs_onnx_item b, cs_onnx_item *out) {
  *out = (cs_onnx_item){.times_n = a.times_n};
  switch (op) {
    case CS_OP_ADD:
      return a.times_n == b.times_n && cs_add_i64(a.whole, b.whole, &out->whole);
    case CS_OP_SUB:
      return a.times_n == b.times_n && b.whole != INT64_MIN &&
             cs_add_i64(a.whole, -b.whole, &out->whole);
    case CS_OP_MAX:
      out->whole = cs_max_i64(a.whole, b.whole);
      return a.times_n == b.times_n;
    case CS_OP_MIN:
      out->whole = cs_min_i64(a.whole, b.whole);
      return a.times_n == b.times_n;
    case CS_OP_POW:
      return false;
    case CS_OP_MUL:
      out->times_n = a.times_n || b.times_n;
      return !(a.times_n && b.times_n) && cs_mul_i64(a.whole, b.whole, &out->whole);
    default:
      /* N·c / N·d is c / d; N·c / d only where it divides. */
      if (b.whole == 0 || (b.whole == -1 && a.whole == INT64_MIN)) return false;
      if (b.times_n && !a.times_n) return false;
      out->times_n = a.times_n && !b.times_n;
      out->whole = a.whole / b.whole;
      return !a.times_n || a.whole % b.whole == 0;
  }
}

cs_status cs_onnx_fold_arithmetic(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  cs_onnx_item *items = NULL;
  cs_op op;
  if (!cs_op_parse(node->proto->op_type, &op)) return CS_OK;
  if (node->proto->n_input != 2 || !inputs[0] || !inputs[1]) {
    return cs_onnx_refuse(node, "found %zu constants, or an absent one, wanted two",
                          node->proto->n_input);
  }
  const cs_shape *a = &inputs[0]->data.shape, *b = &inputs[1]->data.shape;
  int64_t n_a = cs_onnx_count(a), n_b = cs_onnx_count(b);
  const cs_shape *shape = n_a == 1 && (n_b != 1 || b->rank > a->rank) ? b : a;
  if (n_a != 1 && n_b != 1 && !cs_shape_equal(a, b)) {
    return cs_onnx_refuse(node, "found constants of %lld and %lld numbers, wanted as many, or one",
                          (long long)n_a, (long long)n_b);
  }
  int64_t n = cs_onnx_count(shape);
  /* One number of more axes gives the result these, of extent 1. */
  cs_shape broad = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < broad.rank; i++) {
    int from = i - (broad.rank - shape->rank);
    broad.dims[i] = from < 0 ? 1 : shape->dims[from];
  }
  int32_t dtype = inputs[0]->dtype;
  bool real = cs_onnx_dtype_is_real(dtype), good = true;
  CS_RETURN_IF_ERROR(new_items(n, &items));
  for (int64_t i = 0; i < n && good; i++) {
    cs_onnx_item left = inputs[0]->items[n_a == 1 ? 0 : i];
    cs_onnx_item right = inputs[1]->items[n_b == 1 ? 0 : i];
    if (real) {
      items[i].real = cs_onnx_rounded(dtype, ref_combine(op, left.real, right.real));
      good = !left.times_n && !right.times_n && cs_onnx_dtype_is_real(inputs[1]->dtype);
    } else {
      good = whole_of(op, left, right, &items[i]);
      if (!items[i].times_n) items[i].whole = cs_onnx_wrapped(dtype, items[i].whole);
    }
  }
  if (!good) {
    free(items);
    return cs_onnx_refuse(node, "found numbers that are no multiple of the batch, or overflow");
  }
  cs_onnx_give_items(node, dtype, &broad, items);
  return CS_OK;
}

cs_status cs_onnx_fold_rounding(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  int64_t n = cs_onnx_count(&inputs[0]->data.shape);
  cs_onnx_item *items = NULL;
  char op = node->proto->op_type[0];
  CS_RETURN_IF_ERROR(new_items(n, &items));
  for (int64_t i = 0; i < n; i++) {
    cs_onnx_item item = inputs[0]->items[i];
    if (op == 'F') item.real = floor(item.real);
    if (op == 'C') item.real = ceil(item.real);
    if (op == 'N') item.real = -item.real;
    if (op == 'N' && item.whole != INT64_MIN) item.whole = -item.whole;
    items[i] = item;
  }
  cs_onnx_give_items(node, inputs[0]->dtype, &inputs[0]->data.shape, items);
  return CS_OK;
}

/* min(max(x, low), high) of whole numbers; of a multiple of the batch only where that changes none,
 * whatever the batch. */
static bool clip_whole(cs_onnx_item *x, const cs_onnx_item *low, const cs_onnx_item *high) {
  if ((low && low->times_n) || (high && high->times_n)) return false;
  if (x->times_n) return !high && x->whole >= 0 && (!low || low->whole <= x->whole);
  if (low) x->whole = cs_max_i64(x->whole, low->whole);
  if (high) x->whole = cs_min_i64(x->whole, high->whole);
  return true;
}

/* Bounds as inputs, from opset 11 on: before, Clip was of floating-point numbers alone. */
cs_status cs_onnx_fold_clip(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  int64_t n = cs_onnx_count(&inputs[0]->data.shape);
  const cs_onnx_item *bounds[2] = {NULL, NULL};
  cs_onnx_item *items = NULL;
  bool real = cs_onnx_dtype_is_real(inputs[0]->dtype), good = true;
  if (node->import->opset < 11) {
    return cs_onnx_refuse(node,
                          "found a constant before opset 11, wanted what the network computes");
  }
  for (size_t i = 1; i < node->proto->n_input; i++) {
    if (!inputs[i]) continue;
    if (cs_onnx_count(&inputs[i]->data.shape) != 1) {
      return cs_onnx_refuse(node, "input %zu: found %lld numbers, wanted one", i,
                            (long long)cs_onnx_count(&inputs[i]->data.shape));
    }
    bounds[i - 1] = inputs[i]->items;
  }
  CS_RETURN_IF_ERROR(new_items(n, &items));
  for (int64_t i = 0; i < n && good; i++) {
    items[i] = inputs[0]->items[i];
    if (!real) {
      good = clip_whole(&items[i], bounds[0], bounds[1]);
      continue;
    }
    if (bounds[0]) items[i].real = fmax(items[i].real, bounds[0]->real);
    if (bounds[1]) items[i].real = fmin(items[i].real, bounds[1]->real);
  }
  if (!good) {
    free(items);
    return cs_onnx_refuse(node, "found a multiple of the batch that bounds would change");
  }
  cs_onnx_give_items(node, inputs[0]->dtype, &inputs[0]->data.shape, items);
  return CS_OK;
}

/* Of all elements of a list: how many there are of something. */
cs_status cs_onnx_fold_product(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  int64_t n = cs_onnx_count(&inputs[0]->data.shape), keep;
  cs_onnx_item *product = NULL;
  cs_shape shape = {0};
  bool good, real = cs_onnx_dtype_is_real(inputs[0]->dtype);
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "keepdims", 1, &keep));
  CS_RETURN_IF_ERROR(cs_onnx_want_int(node, "noop_with_empty_axes", 0, 0));
  CS_RETURN_IF_ERROR(want_vector(node, inputs[0], &good));
  if (!good || node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(new_items(1, &product));
  *product = (cs_onnx_item){.real = 1.0, .whole = 1};
  for (int64_t i = 0; i < n && good; i++) {
    const cs_onnx_item *item = &inputs[0]->items[i];
    product->real *= item->real;
    if (!real) good = whole_of(CS_OP_MUL, *product, *item, product);
  }
  if (!good) {
    free(product);
    return cs_onnx_refuse(node,
                          "found numbers whose product overflows, or is no multiple of the batch");
  }
  if (keep && inputs[0]->data.shape.rank > 0) shape = (cs_shape){1, {1}};
  cs_onnx_give_items(node, inputs[0]->dtype, &shape, product);
  return CS_OK;
}
