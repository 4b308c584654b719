/* What moves no elements, or can be told as a Flatten: Flatten, Reshape, Squeeze, Transpose. */
#include <stdlib.h>

#include "onnx/import.h"

cs_status cs_onnx_flatten(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "axis", 1, &attrs.axis.axis));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  if (attrs.axis.axis < -input.shape.rank || attrs.axis.axis > input.shape.rank) {
    return cs_onnx_refuse(node, "attribute axis: found %lld, wanted one of a tensor of %d axes",
                          (long long)attrs.axis.axis, input.shape.rank);
  }
  return cs_onnx_become(node, CS_OP_FLATTEN, &attrs, &input, 1);
}

/* The input as `wanted`: nothing, or a Flatten. The number of elements is the same. */
static cs_status become_shape(cs_onnx_node *node, const cs_onnx_data *input,
                              const cs_shape *wanted) {
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  if (cs_shape_equal(&input->shape, wanted)) {
    return cs_onnx_become(node, CS_OP_IDENTITY, NULL, input, 1);
  }
  int64_t head = 1;
  for (int axis = 0; wanted->rank == 2 && axis <= input->shape.rank; axis++) {
    bool symbolic = input->shape.dims[0] == CS_DIM_N;
    bool batch = symbolic && axis == 1 && wanted->dims[0] == CS_DIM_N;
    if (batch || (!symbolic && head == wanted->dims[0])) {
      cs_attrs attrs = {.axis = {axis}};
      return cs_onnx_become(node, CS_OP_FLATTEN, &attrs, input, 1);
    }
    if (!symbolic && axis < input->shape.rank) head *= input->shape.dims[axis];
  }
  return cs_onnx_refuse(node,
                        "from shape %s to %s: wanted the same shape, or two axes as of a Flatten",
                        cs_shape_text(&input->shape, a), cs_shape_text(wanted, b));
}

/* ---- Reshape ---- */

/* Elements for each image of a symbolic batch, or all. */
static int64_t elements_of(const cs_shape *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; i++) count *= shape->dims[i] == CS_DIM_N ? 1 : shape->dims[i];
  return count;
}

/* The shape that a list of extents means: 0 copies, −1 is what is left. *good: it fits. */
static bool resolve(const cs_shape *input, const cs_onnx_item *items, int n, bool zero_is_zero,
                    cs_shape *out) {
  bool symbolic = input->rank > 0 && input->dims[0] == CS_DIM_N, has_batch = false;
  int64_t known = 1, total = elements_of(input);
  int open = -1;
  *out = (cs_shape){.rank = n};
  for (int i = 0; i < n; i++) {
    int64_t extent = items[i].whole;
    if (extent == 0 && !zero_is_zero && i < input->rank) {
      out->dims[i] = input->dims[i];
    } else if (items[i].times_n && extent == 1) {
      out->dims[i] = CS_DIM_N;
    } else if (extent == -1 && !items[i].times_n && open < 0) {
      open = i;
      continue;
    } else if (items[i].times_n || extent < 1) {
      return false;
    } else {
      out->dims[i] = extent;
    }
    if (out->dims[i] == CS_DIM_N) {
      if (has_batch || i > 0 || !symbolic) return false;
      has_batch = true;
    } else if (!cs_mul_i64(known, out->dims[i], &known)) {
      return false;
    }
  }
  if (open < 0) return known == total && has_batch == symbolic;
  if (known < 1 || total % known != 0) return false;
  out->dims[open] = total / known;
  if (has_batch == symbolic) return true;
  /* The batch is in what is left: it has to be all that is, in the first place. */
  out->dims[open] = CS_DIM_N;
  return open == 0 && total == known;
}

cs_status cs_onnx_reshape(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_onnx_value *value;
  const cs_onnx_item *items = NULL;
  cs_shape wanted;
  int64_t zero_is_zero;
  bool there;
  char text[CS_TEXT_SIZE];
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "allowzero", 0, &zero_is_zero));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &value));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || !value) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, value, &items));
  int64_t n = cs_onnx_count(&value->data.shape);
  if (!items || n < 1 || n > CS_MAX_RANK || !cs_onnx_dtype_is_whole(value->dtype)) {
    return cs_onnx_refuse(node, "input shape: found %lld numbers, wanted 1 to 8 integers",
                          (long long)n);
  }
  if (!resolve(&input.shape, items, (int)n, zero_is_zero != 0, &wanted)) {
    cs_strbuf list = {0};
    char *extents = NULL;
    for (int64_t i = 0; i < n; i++) {
      cs_strbuf_printf(&list, "%s%lld%s", i ? ", " : "", (long long)items[i].whole,
                       items[i].times_n ? "·N" : "");
    }
    CS_RETURN_IF_ERROR(cs_strbuf_take(&list, &extents));
    cs_status st = cs_onnx_refuse(node,
                                  "input shape: found [%s] for a tensor of %s, wanted one that "
                                  "fits it and keeps the batch first",
                                  extents, cs_shape_text(&input.shape, text));
    free(extents);
    return st;
  }
  return become_shape(node, &input, &wanted);
}

/* ---- Squeeze, Transpose ---- */

cs_status cs_onnx_squeeze(cs_onnx_node *node) {
  cs_onnx_data input;
  int64_t axes[CS_MAX_RANK];
  int n;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 1, 13, input.shape.rank, axes, &n));
  if (node->refused) return CS_OK;
  cs_shape wanted = {0};
  for (int i = 0; i < input.shape.rank; i++) {
    bool listed = n < 0 && input.shape.dims[i] == 1;
    for (int k = 0; k < n; k++) listed = listed || axes[k] == i;
    if (listed && input.shape.dims[i] != 1) {
      return cs_onnx_refuse(node, "axes: found axis %d of extent %lld, wanted axes of extent 1", i,
                            (long long)input.shape.dims[i]);
    }
    if (!listed) wanted.dims[wanted.rank++] = input.shape.dims[i];
  }
  return become_shape(node, &input, &wanted);
}

/* Only one that leaves the order of elements: axes of extent 1 may move. */
cs_status cs_onnx_transpose(cs_onnx_node *node) {
  cs_onnx_data input;
  int64_t order[CS_MAX_RANK];
  bool there, seen[CS_MAX_RANK] = {false};
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  int rank = input.shape.rank, last = -1;
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "perm", rank, 0, 0, order));
  if (node->refused) return CS_OK;
  cs_shape wanted = {.rank = rank};
  bool moves = false;
  for (int i = 0; i < rank; i++) {
    if (!cs_onnx_attribute(node, "perm")) order[i] = rank - 1 - i;
    if (order[i] >= rank || seen[order[i]]) {
      return cs_onnx_refuse(node, "attribute perm: found %lld, wanted every axis once",
                            (long long)order[i]);
    }
    seen[order[i]] = true;
    wanted.dims[i] = input.shape.dims[order[i]];
    if (wanted.dims[i] == 1) continue;
    moves = moves || order[i] < last;
    last = (int)order[i];
  }
  if (moves) return cs_onnx_refuse(node, "found axes that change places, wanted none to");
  return become_shape(node, &input, &wanted);
}
