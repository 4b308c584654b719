/* Constants computed while importing: which nodes are, the elements they compute with, and the
 * nodes that only move elements. */
#include "onnx/fold.h"

#include <stdlib.h>
#include <string.h>

int64_t cs_onnx_count(const cs_shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; i++) count *= shape->dims[i];
  return count;
}

static bool is_real(const cs_onnx_value *value) {
  return cs_onnx_dtype_is_real(value->dtype);
}

static cs_status new_items(int64_t count, cs_onnx_item **out) {
  *out = cs_calloc((size_t)count, sizeof **out);
  return *out ? CS_OK : cs_no_memory("a constant", (size_t)count * sizeof **out);
}

cs_status cs_onnx_items(cs_onnx_import *import, cs_onnx_value *value, const cs_onnx_item **out) {
  (void)import;
  *out = value->items;
  int64_t n = cs_onnx_count(&value->data.shape);
  if (*out || n > CS_ONNX_MOST_ITEMS) return CS_OK;
  cs_onnx_item *items = NULL;
  int64_t *wholes = cs_calloc((size_t)n, sizeof *wholes);
  double *reals = cs_calloc((size_t)n, sizeof *reals);
  cs_status st = wholes && reals ? new_items(n, &items) : cs_no_memory("a constant", (size_t)n);
  if (st == CS_OK && is_real(value)) {
    cs_onnx_tensor_reals(&value->tensor, reals);
  } else if (st == CS_OK) {
    cs_onnx_tensor_ints(&value->tensor, wholes);
  }
  int64_t rows = value->transposed ? value->data.shape.dims[0] : 1, columns = n ? n / rows : 0;
  for (int64_t i = 0; st == CS_OK && i < n; i++) {
    int64_t from = value->transposed ? i % columns * rows + i / columns : i;
    items[i] = (cs_onnx_item){.real = reals[from], .whole = wholes[from]};
  }
  free(wholes);
  free(reals);
  value->items = items;
  *out = items;
  return st;
}

/* ---- Making constants ---- */

static cs_status fold_constant(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  (void)inputs;
  const Onnx__AttributeProto *one;
  cs_shape scalar = {0}, vector = {.rank = 1};
  cs_onnx_item *items = NULL;
  if ((one = cs_onnx_attribute(node, "value")) != NULL && one->t) {
    cs_onnx_value from = {.kind = CS_ONNX_CONSTANT};
    CS_RETURN_IF_ERROR(
        cs_onnx_tensor_open(node->import->model, one->t, cs_onnx_label(node->proto), &from.tensor));
    return cs_onnx_give_alias(node, &from, &from.tensor.shape, from.tensor.dtype);
  }
  if ((one = cs_onnx_attribute(node, "value_float")) != NULL) {
    CS_RETURN_IF_ERROR(new_items(1, &items));
    items[0].real = (double)one->f;
    cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &scalar, items);
  } else if ((one = cs_onnx_attribute(node, "value_int")) != NULL) {
    CS_RETURN_IF_ERROR(new_items(1, &items));
    items[0].whole = one->i;
    cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &scalar, items);
  } else if ((one = cs_onnx_attribute(node, "value_floats")) != NULL) {
    vector.dims[0] = (int64_t)one->n_floats;
    CS_RETURN_IF_ERROR(new_items(vector.dims[0], &items));
    for (size_t i = 0; i < one->n_floats; i++) items[i].real = (double)one->floats[i];
    cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &vector, items);
  } else if ((one = cs_onnx_attribute(node, "value_ints")) != NULL) {
    vector.dims[0] = (int64_t)one->n_ints;
    CS_RETURN_IF_ERROR(new_items(vector.dims[0], &items));
    for (size_t i = 0; i < one->n_ints; i++) items[i].whole = one->ints[i];
    cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &vector, items);
  } else {
    return cs_onnx_refuse(node, "found no value, wanted a tensor, numbers or a list of them");
  }
  return CS_OK;
}

/* *out: the number that the attribute has; 0 without one. */
static cs_status read_fill(cs_onnx_node *node, int32_t *dtype, cs_onnx_item *out) {
  const Onnx__AttributeProto *value = cs_onnx_attribute(node, "value");
  cs_onnx_tensor tensor;
  float real = 0;
  *dtype = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  if (!value || !value->t) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_onnx_tensor_open(node->import->model, value->t, cs_onnx_label(node->proto), &tensor));
  *dtype = tensor.dtype;
  if (tensor.elements != 1) return cs_onnx_refuse(node, "attribute value: wanted one number");
  if (cs_onnx_dtype_is_real(tensor.dtype)) {
    cs_onnx_tensor_f32(&tensor, 0, 1, &real);
  } else {
    cs_onnx_tensor_ints(&tensor, &out->whole);
  }
  out->real = (double)real;
  return CS_OK;
}

static cs_status fold_constant_of_shape(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  const cs_onnx_item *extents = inputs[0]->items;
  cs_shape shape = {.rank = (int)cs_onnx_count(&inputs[0]->data.shape)};
  cs_onnx_item fill = {0};
  int32_t dtype;
  if (shape.rank > CS_MAX_RANK) return cs_onnx_refuse(node, "found %d axes", shape.rank);
  int64_t bytes = (int64_t)sizeof(float);
  for (int i = 0; i < shape.rank; i++) {
    shape.dims[i] = extents[i].whole;
    bool good =
        !extents[i].times_n && extents[i].whole >= 0 && cs_mul_i64(bytes, extents[i].whole, &bytes);
    if (!good) return cs_onnx_refuse(node, "input: found a shape that is symbolic or too large");
  }
  CS_RETURN_IF_ERROR(read_fill(node, &dtype, &fill));
  return node->refused ? CS_OK : cs_onnx_give_fill(node, dtype, &shape, fill);
}

/* Shape and Size, also of tensors that the network computes. */
static cs_status fold_shape(cs_onnx_node *node, const cs_shape *input) {
  cs_onnx_item *items = NULL;
  int64_t begin, end;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "start", 0, &begin));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "end", input->rank, &end));
  if (begin < 0) begin += input->rank;
  if (end < 0) end += input->rank;
  begin = cs_max_i64(0, cs_min_i64(begin, input->rank));
  end = cs_max_i64(begin, cs_min_i64(end, input->rank));
  cs_shape shape = {.rank = 1, .dims = {end - begin}};
  CS_RETURN_IF_ERROR(new_items(end - begin, &items));
  for (int64_t i = begin; i < end; i++) {
    bool batch = input->dims[i] == CS_DIM_N;
    items[i - begin] = (cs_onnx_item){.whole = batch ? 1 : input->dims[i], .times_n = batch};
  }
  cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape, items);
  return CS_OK;
}

static cs_status fold_size(cs_onnx_node *node, const cs_shape *input) {
  cs_onnx_item *items = NULL;
  cs_shape scalar = {0};
  CS_RETURN_IF_ERROR(new_items(1, &items));
  items[0].whole = 1;
  for (int i = 0; i < input->rank; i++) {
    bool batch = input->dims[i] == CS_DIM_N;
    if (batch) items[0].times_n = true;
    if (!batch) items[0].whole *= input->dims[i];
  }
  cs_onnx_give_items(node, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &scalar, items);
  return CS_OK;
}

/* ---- The same elements under another shape ---- */

static cs_status fold_identity(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  return cs_onnx_give_alias(node, inputs[0], &inputs[0]->data.shape, inputs[0]->dtype);
}

/* A constant's shape may change unless its elements lie transposed. */
static cs_status alias_as(cs_onnx_node *node, const cs_onnx_value *from, const cs_shape *shape) {
  if (from->transposed) {
    return cs_onnx_refuse(node, "input 0: found a transposed constant, wanted one as it is stored");
  }
  return cs_onnx_give_alias(node, from, shape, from->dtype);
}

static cs_status fold_reshape(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  const cs_onnx_item *extents = inputs[1]->items;
  const cs_shape *from = &inputs[0]->data.shape;
  cs_shape shape = {.rank = (int)cs_onnx_count(&inputs[1]->data.shape)};
  int64_t known = 1, total = cs_onnx_count(from);
  int open = -1;
  if (shape.rank > CS_MAX_RANK) return cs_onnx_refuse(node, "found %d axes", shape.rank);
  for (int i = 0; i < shape.rank; i++) {
    shape.dims[i] = extents[i].whole == 0 && i < from->rank ? from->dims[i] : extents[i].whole;
    if (extents[i].whole == -1 && open < 0) {
      open = i;
    } else if (extents[i].times_n || shape.dims[i] < 1 ||
               !cs_mul_i64(known, shape.dims[i], &known)) {
      return cs_onnx_refuse(node, "input shape: found extents that do not fit a constant");
    }
  }
  if (open >= 0) shape.dims[open] = total / known;
  if (total % known != 0 || (open < 0 && total != known)) {
    return cs_onnx_refuse(node, "input shape: found another number of elements than the %lld there",
                          (long long)total);
  }
  return alias_as(node, inputs[0], &shape);
}

static cs_status fold_squeeze(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  const cs_shape *from = &inputs[0]->data.shape;
  int64_t axes[CS_MAX_RANK];
  int n;
  cs_shape shape = {0};
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 1, 13, from->rank, axes, &n));
  if (node->refused) return CS_OK;
  for (int i = 0; i < from->rank; i++) {
    bool listed = n < 0 && from->dims[i] == 1;
    for (int k = 0; k < n; k++) listed = listed || axes[k] == i;
    if (listed && from->dims[i] != 1)
      return cs_onnx_refuse(node, "axes: found one not of extent 1");
    if (!listed) shape.dims[shape.rank++] = from->dims[i];
  }
  return alias_as(node, inputs[0], &shape);
}

static cs_status fold_unsqueeze(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  const cs_shape *from = &inputs[0]->data.shape;
  int64_t axes[CS_MAX_RANK], n_listed = 0;
  int n, next = 0;
  const Onnx__AttributeProto *attribute = cs_onnx_attribute(node, "axes");
  if (node->import->opset < 13) {
    n_listed = attribute ? (int64_t)attribute->n_ints : 0;
  } else if (inputs[1]) {
    n_listed = cs_onnx_count(&inputs[1]->data.shape);
  }
  if (n_listed < 1 || from->rank + n_listed > CS_MAX_RANK) {
    return cs_onnx_refuse(node, "axes: found %lld for %d axes, wanted at most 8 in all",
                          (long long)n_listed, from->rank);
  }
  cs_shape shape = {.rank = from->rank + (int)n_listed};
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 1, 13, shape.rank, axes, &n));
  if (node->refused || n < 0) return CS_OK;
  for (int i = 0; i < shape.rank; i++) {
    bool listed = false;
    for (int k = 0; k < n; k++) listed = listed || axes[k] == i;
    shape.dims[i] = listed ? 1 : from->dims[next++];
  }
  return alias_as(node, inputs[0], &shape);
}

/* Of a stored matrix, by reading it the other way round; of a vector, nothing; else computed. */
static cs_status fold_transpose(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  const cs_shape *from = &inputs[0]->data.shape;
  const Onnx__AttributeProto *perm = cs_onnx_attribute(node, "perm");
  if (from->rank < 2) return fold_identity(node, inputs);
  bool swaps = !perm || (perm->n_ints == 2 && perm->ints[0] == 1 && perm->ints[1] == 0);
  if (from->rank != 2 || !swaps || !(inputs[0]->tensor.message || inputs[0]->filled)) {
    const cs_onnx_item *items;
    CS_RETURN_IF_ERROR(cs_onnx_items(node->import, inputs[0], &items));
    if (items) return cs_onnx_fold_permutation(node, inputs[0]);
    return cs_onnx_refuse(
        node,
        "found a constant of %d axes and %lld numbers, wanted a stored matrix, or "
        "at most %d numbers",
        from->rank, (long long)cs_onnx_count(from), CS_ONNX_MOST_ITEMS);
  }
  cs_onnx_value other = *inputs[0];
  cs_shape shape = {2, {from->dims[1], from->dims[0]}};
  other.transposed = other.tensor.message && !other.transposed;
  other.items = NULL; /* in the old order */
  return cs_onnx_give_alias(node, &other, &shape, other.dtype);
}

/* A real number as a whole one of that type: towards 0, of bool whether it is not 0. */
static int64_t whole_from(int32_t dtype, double real) {
  if (dtype == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL) return real != 0.0;
  double bounded = real > 9e18 ? 9e18 : real < -9e18 ? -9e18 : real;
  return bounded == bounded ? (int64_t)bounded : 0;
}

/* Between floating-point types: what reads it converts. Else element by element. */
static cs_status fold_cast(cs_onnx_node *node, cs_onnx_value *const *inputs) {
  cs_onnx_value *from = inputs[0];
  const cs_onnx_item *items;
  cs_onnx_item *cast = NULL;
  int64_t to, n = cs_onnx_count(&from->data.shape);
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "to", 0, &to));
  bool real = to > 0 && to < 64 && cs_onnx_dtype_is_real((int32_t)to);
  bool whole = to > 0 && to < 64 && cs_onnx_dtype_is_whole((int32_t)to);
  if (real && is_real(from)) return cs_onnx_give_alias(node, from, &from->data.shape, (int32_t)to);
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, from, &items));
  if (!items || !(real || whole)) {
    return cs_onnx_refuse(node, "attribute to: found type %lld for %lld elements", (long long)to,
                          (long long)n);
  }
  CS_RETURN_IF_ERROR(new_items(n, &cast));
  for (int64_t i = 0; i < n; i++) {
    cast[i] = items[i];
    if (real) cast[i].real = cs_onnx_rounded((int32_t)to, (double)items[i].whole);
    if (whole && is_real(from)) cast[i].whole = whole_from((int32_t)to, items[i].real);
    /* A multiple of the batch stays one: extents fit every type that files compute them with. */
    if (whole && !cast[i].times_n) cast[i].whole = cs_onnx_wrapped((int32_t)to, cast[i].whole);
  }
  cs_onnx_give_items(node, (int32_t)to, &from->data.shape, cast);
  return CS_OK;
}

/* ---- Which ---- */

typedef struct folding {
  const char *op;
  cs_status (*fold)(cs_onnx_node *node, cs_onnx_value *const *inputs);
  bool reads_items; /* of every input; too many refuse the node */
  int first_read;   /* … from this input on */
} folding;

static const folding foldings[] = {
    {"Constant", fold_constant, false, 0},
    {"ConstantOfShape", fold_constant_of_shape, true, 0},
    {"Identity", fold_identity, false, 0},
    {"Dropout", fold_identity, false, 0},
    {"Reshape", fold_reshape, true, 1},
    {"Squeeze", fold_squeeze, false, 0},
    {"Unsqueeze", fold_unsqueeze, false, 0},
    {"Transpose", fold_transpose, false, 0},
    {"Cast", fold_cast, false, 0},
    {"Gather", cs_onnx_fold_gather, true, 0},
    {"Slice", cs_onnx_fold_slice, true, 0},
    {"Concat", cs_onnx_fold_concat, true, 0},
    {"Add", cs_onnx_fold_arithmetic, true, 0},
    {"Sub", cs_onnx_fold_arithmetic, true, 0},
    {"Mul", cs_onnx_fold_arithmetic, true, 0},
    {"Div", cs_onnx_fold_arithmetic, true, 0},
    {"Pow", cs_onnx_fold_arithmetic, true, 0},
    {"Max", cs_onnx_fold_arithmetic, true, 0},
    {"Min", cs_onnx_fold_arithmetic, true, 0},
    {"Clip", cs_onnx_fold_clip, true, 0},
    {"ReduceProd", cs_onnx_fold_product, true, 0},
    {"Neg", cs_onnx_fold_rounding, true, 0},
    {"Floor", cs_onnx_fold_rounding, true, 0},
    {"Ceil", cs_onnx_fold_rounding, true, 0},
};

static cs_status run_folding(cs_onnx_node *node, const folding *row, cs_onnx_value **inputs) {
  const cs_onnx_operator *known = cs_onnx_operator_of(row->op);
  for (size_t i = 0; i < node->proto->n_input; i++) {
    const cs_onnx_item *items;
    if (!inputs[i] && i < (size_t)known->min_inputs) {
      return cs_onnx_refuse(node, "input %zu: found none, wanted a constant", i);
    }
    if (!row->reads_items || !inputs[i] || i < (size_t)row->first_read) continue;
    CS_RETURN_IF_ERROR(cs_onnx_items(node->import, inputs[i], &items));
    if (items) continue;
    return cs_onnx_refuse(node,
                          "input %zu (\"%.80s\"): found %lld numbers to compute with while "
                          "importing, wanted at most %d",
                          i, inputs[i]->name, (long long)cs_onnx_count(&inputs[i]->data.shape),
                          CS_ONNX_MOST_ITEMS);
  }
  return row->fold(node, inputs);
}

cs_status cs_onnx_fold(cs_onnx_node *node, bool *done) {
  const Onnx__NodeProto *proto = node->proto;
  const char *op = proto->op_type;
  *done = false;
  if (strcmp(op, "Shape") == 0 || strcmp(op, "Size") == 0) {
    const cs_onnx_value *input = cs_onnx_input(node, 0);
    if (!input || input->kind == CS_ONNX_UNKNOWN) return CS_OK;
    *done = true;
    bool shape = strcmp(op, "Shape") == 0;
    return shape ? fold_shape(node, &input->data.shape) : fold_size(node, &input->data.shape);
  }
  const folding *found = NULL;
  for (size_t i = 0; i < sizeof foldings / sizeof foldings[0] && !found; i++) {
    if (strcmp(foldings[i].op, op) == 0) found = &foldings[i];
  }
  if (!found || (proto->n_input == 0 && strcmp(op, "Constant") != 0)) return CS_OK;
  for (size_t i = 0; i < proto->n_input; i++) {
    const cs_onnx_value *input = cs_onnx_input(node, i);
    if (input && input->kind != CS_ONNX_CONSTANT) return CS_OK;
  }
  *done = true;
  cs_onnx_value **inputs = cs_calloc(proto->n_input + 2, sizeof(cs_onnx_value *));
  if (!inputs) return cs_no_memory("inputs", proto->n_input * sizeof(cs_onnx_value *));
  for (size_t i = 0; i < proto->n_input; i++) inputs[i] = cs_onnx_input(node, i);
  cs_status st = run_folding(node, found, inputs);
  free(inputs);
  return st;
}
