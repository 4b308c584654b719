/* Flatten, Reshape, Squeeze, Unsqueeze; Transpose, DepthToSpace, SpaceToDepth. */
#include <stdlib.h>
#include <string.h>

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

/* A Flatten's axis that makes `wanted` of the input; −1: none does. */
static int flatten_axis(const cs_shape *input, const cs_shape *wanted) {
  int64_t head = 1;
  for (int axis = 0; wanted->rank == 2 && axis <= input->rank; axis++) {
    bool symbolic = input->dims[0] == CS_DIM_N;
    bool batch = symbolic && axis == 1 && wanted->dims[0] == CS_DIM_N;
    if (batch || (!symbolic && head == wanted->dims[0])) return axis;
    if (!symbolic && axis < input->rank) head *= input->dims[axis];
  }
  return -1;
}

cs_status cs_onnx_as_shape(cs_onnx_node *node, const cs_onnx_data *input, const cs_shape *wanted) {
  cs_attrs attrs = {0};
  if (wanted->rank < 1 || wanted->rank > CS_MAX_RANK) {
    return cs_onnx_refuse(node, "found a result of %d axes, wanted 1 to 8", wanted->rank);
  }
  bool free = !node->import->model->as_written;
  if (free && cs_shape_equal(&input->shape, wanted)) {
    return cs_onnx_become(node, CS_OP_IDENTITY, NULL, input, 1);
  }
  int axis = free ? flatten_axis(&input->shape, wanted) : -1;
  if (axis >= 0) {
    attrs.axis.axis = axis;
    return cs_onnx_become(node, CS_OP_FLATTEN, &attrs, input, 1);
  }
  attrs.reshape = *wanted;
  return cs_onnx_become(node, CS_OP_RESHAPE, &attrs, input, 1);
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
  return cs_onnx_as_shape(node, &input, &wanted);
}

/* ---- Squeeze, Unsqueeze ---- */

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
  return cs_onnx_as_shape(node, &input, &wanted);
}

cs_status cs_onnx_unsqueeze(cs_onnx_node *node) {
  cs_onnx_data input;
  int64_t list[CS_MAX_RANK], axes[CS_MAX_RANK];
  int n, next = 0;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "axes", 1, 13, CS_MAX_RANK, list, &n));
  if (node->refused) return CS_OK;
  cs_shape wanted = {.rank = input.shape.rank + n};
  if (n < 1 || wanted.rank > CS_MAX_RANK) {
    return cs_onnx_refuse(node, "axes: found %d for a tensor of %d axes, wanted at most 8 in all",
                          n, input.shape.rank);
  }
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 1, 13, wanted.rank, axes, &n));
  if (node->refused) return CS_OK;
  for (int i = 0; i < wanted.rank; i++) {
    bool listed = false;
    for (int k = 0; k < n; k++) listed = listed || axes[k] == i;
    wanted.dims[i] = listed ? 1 : input.shape.dims[next++];
  }
  return cs_onnx_as_shape(node, &input, &wanted);
}

/* ---- Transpose ---- */

/* One that leaves the order of elements, since only axes of extent 1 move, is another shape. */
cs_status cs_onnx_transpose(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  int64_t *perm = attrs.transpose.perm;
  bool there, seen[CS_MAX_RANK] = {false};
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  int rank = input.shape.rank, last = -1;
  CS_RETURN_IF_ERROR(cs_onnx_ints(node, "perm", rank, 0, 0, perm));
  if (node->refused) return CS_OK;
  cs_shape wanted = {.rank = rank};
  bool moves = node->import->model->as_written;
  for (int i = 0; i < rank; i++) {
    if (!cs_onnx_attribute(node, "perm")) perm[i] = rank - 1 - i;
    if (perm[i] >= rank || seen[perm[i]]) {
      return cs_onnx_refuse(node, "attribute perm: found %lld, wanted every axis once",
                            (long long)perm[i]);
    }
    seen[perm[i]] = true;
    wanted.dims[i] = input.shape.dims[perm[i]];
    if (wanted.dims[i] == 1) continue;
    moves = moves || perm[i] < last;
    last = (int)perm[i];
  }
  if (!moves) return cs_onnx_as_shape(node, &input, &wanted);
  attrs.transpose.n_perm = rank;
  return cs_onnx_become(node, CS_OP_TRANSPOSE, &attrs, &input, 1);
}

/* ---- DepthToSpace, SpaceToDepth: Transposes of six axes ---- */

/* The input of four axes and the block's extent, which divides the channels (its square), or H and
 * W. */
static cs_status read_blocks(cs_onnx_node *node, cs_onnx_data *input, int64_t *block, bool *there) {
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "blocksize", 0, block));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, input, there));
  if (!*there) return CS_OK;
  const int64_t *dims = input->shape.dims;
  bool depth = strcmp(node->proto->op_type, "DepthToSpace") == 0, good = input->shape.rank == 4;
  int64_t b = *block;
  good = good && b >= 1 && b <= CS_MAX_EXTENT;
  if (good && depth) good = dims[1] % (b * b) == 0;
  if (good && !depth) good = dims[2] % b == 0 && dims[3] % b == 0;
  char text[CS_TEXT_SIZE];
  *there = good;
  if (good) return CS_OK;
  return cs_onnx_refuse(node,
                        "attribute blocksize: found %lld for shape %s, wanted one that divides "
                        "%s of four axes",
                        (long long)b, cs_shape_text(&input->shape, text),
                        depth ? "the channels, squared," : "H and W");
}

static cs_status become_transpose(cs_onnx_node *node, const cs_onnx_data *input, cs_shape from,
                                  const int64_t perm[6], cs_shape to) {
  cs_attrs attrs = {.transpose = {.n_perm = 6, .input_shape = from, .output_shape = to}};
  memcpy(attrs.transpose.perm, perm, 6 * sizeof *perm);
  return cs_onnx_become(node, CS_OP_TRANSPOSE, &attrs, input, 1);
}

cs_status cs_onnx_depth_to_space(cs_onnx_node *node) {
  static const int64_t dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
  cs_onnx_data input;
  int64_t b;
  bool there;
  char mode[16];
  CS_RETURN_IF_ERROR(cs_onnx_text(node, "mode", "DCR", mode, sizeof mode));
  bool depth_first = strcmp(mode, "DCR") == 0;
  if (!depth_first && strcmp(mode, "CRD") != 0) {
    CS_RETURN_IF_ERROR(cs_onnx_refuse(node, "attribute mode: found %s, wanted DCR or CRD", mode));
  }
  CS_RETURN_IF_ERROR(read_blocks(node, &input, &b, &there));
  if (!there || node->refused) return CS_OK;
  const int64_t *dims = input.shape.dims;
  int64_t depth = dims[1] / (b * b);
  cs_shape from = {6, {dims[0], b, b, depth, dims[2], dims[3]}};
  if (!depth_first) from = (cs_shape){6, {dims[0], depth, b, b, dims[2], dims[3]}};
  cs_shape to = {4, {dims[0], depth, dims[2] * b, dims[3] * b}};
  return become_transpose(node, &input, from, depth_first ? dcr : crd, to);
}

cs_status cs_onnx_space_to_depth(cs_onnx_node *node) {
  static const int64_t perm[6] = {0, 3, 5, 1, 2, 4};
  cs_onnx_data input;
  int64_t b;
  bool there;
  CS_RETURN_IF_ERROR(read_blocks(node, &input, &b, &there));
  if (!there || node->refused) return CS_OK;
  const int64_t *dims = input.shape.dims;
  cs_shape from = {6, {dims[0], dims[1], dims[2] / b, b, dims[3] / b, b}};
  cs_shape to = {4, {dims[0], dims[1] * b * b, dims[2] / b, dims[3] / b}};
  return become_transpose(node, &input, from, perm, to);
}
