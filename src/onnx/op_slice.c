/* Slice, Split, Gather of constant indices; Tile, Expand. */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/import.h"

/* Parts that one node may be made of. */
#define MOST_PARTS 64

static cs_attrs slice_of(int64_t axis, int64_t start, int64_t end, int64_t step) {
  return (cs_attrs){.slice = {1, {axis}, {start}, {end}, {step}}};
}

/* ---- Slice ---- */

/* Lists of as many numbers: what is given as inputs from opset 10 on. */
cs_status cs_onnx_read_slice(cs_onnx_node *node, int rank, cs_slice_attrs *slice) {
  int n_ends, n_axes, n_steps = -1;
  CS_RETURN_IF_ERROR(
      cs_onnx_list(node, "starts", 1, 10, CS_MAX_RANK, slice->starts, &slice->n_axes));
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "ends", 2, 10, CS_MAX_RANK, slice->ends, &n_ends));
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 3, 10, rank, slice->axes, &n_axes));
  if (node->import->opset >= 10) {
    CS_RETURN_IF_ERROR(cs_onnx_list(node, "steps", 4, 10, CS_MAX_RANK, slice->steps, &n_steps));
  }
  if (node->refused) return CS_OK;
  int n = slice->n_axes;
  for (int i = 0; i < n && n_axes < 0; i++) slice->axes[i] = i;
  for (int i = 0; i < n && n_steps < 0; i++) slice->steps[i] = 1;
  bool moves = true;
  for (int i = 0; i < n; i++) moves = moves && slice->steps[i] != 0;
  bool alike = moves && n_ends == n && (n_axes < 0 || n_axes == n) && (n_steps < 0 || n_steps == n);
  if (n > 0 && n <= rank && alike) return CS_OK;
  return cs_onnx_refuse(
      node,
      "found %d starts, %d ends, %d axes and %d steps, wanted as many of each, no step of 0, "
      "for a tensor of %d axes",
      n, n_ends, n_axes, n_steps, rank);
}

/* Leaves out the axes of which everything is taken, the batch's among them. */
static void drop_whole_axes(cs_slice_attrs *slice, const cs_shape *shape) {
  int n = 0;
  for (int k = 0; k < slice->n_axes; k++) {
    int64_t extent = shape->dims[slice->axes[k]];
    bool whole = slice->steps[k] == 1 && slice->starts[k] == 0 && slice->ends[k] == CS_MAX_EXTENT;
    if (extent != CS_DIM_N && slice->steps[k] == 1) {
      whole = cs_slice_range_of(slice, k, extent).count == extent;
    }
    if (whole) continue;
    slice->axes[n] = slice->axes[k], slice->starts[n] = slice->starts[k];
    slice->ends[n] = slice->ends[k], slice->steps[n++] = slice->steps[k];
  }
  slice->n_axes = n;
}

cs_status cs_onnx_slice(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_read_slice(node, input.shape.rank, &attrs.slice));
  if (node->refused) return CS_OK;
  if (!node->import->model->as_written) drop_whole_axes(&attrs.slice, &input.shape);
  if (!attrs.slice.n_axes) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &input, 1);
  return cs_onnx_become(node, CS_OP_SLICE, &attrs, &input, 1);
}

/* ---- Split ---- */

/* The extent of each output: a list, or equal parts of which the last may be smaller (opset 18). */
static cs_status split_sizes(cs_onnx_node *node, int64_t extent, int64_t sizes[MOST_PARTS]) {
  int n, parts = (int)node->proto->n_output;
  int64_t told, sum = 0;
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "split", 1, 13, MOST_PARTS, sizes, &n));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "num_outputs", parts, &told));
  if (node->refused) return CS_OK;
  int64_t part = (extent + parts - 1) / parts;
  for (int i = 0; i < parts && n < 0; i++) sizes[i] = cs_min_i64(part, extent - i * part);
  bool good = (n < 0 || n == parts) && told == parts;
  good = good && (n >= 0 || node->import->opset >= 18 || extent % parts == 0);
  for (int i = 0; i < parts && good; i++) good = sizes[i] >= 1 && (sum += sizes[i]) <= extent;
  if (good && sum == extent) return CS_OK;
  return cs_onnx_refuse(node,
                        "found %d outputs of an axis of %lld, wanted as many parts, each of "
                        "one element or more, that add up to it",
                        parts, (long long)extent);
}

/* What makes an output of the model is called as that. */
static cs_status name_as_output(cs_onnx_node *node, const cs_onnx_value *value,
                                const cs_onnx_data *part) {
  char *name = NULL;
  if (!value->is_output || part->source < 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_new_name(node->import, value->name, "node", &name));
  cs_onnx_draft *draft = &node->import->drafts[part->source];
  free(draft->name);
  draft->name = name;
  return CS_OK;
}

/* A Slice for each output that is read; the first has the node's name. */
cs_status cs_onnx_split(cs_onnx_node *node) {
  cs_onnx_data input, part;
  int64_t axis, sizes[MOST_PARTS] = {0}, at = 0;
  size_t n = node->proto->n_output;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "axis", 0, &axis));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  int rank = input.shape.rank;
  if (axis < -rank || axis >= rank || n < 1 || n > MOST_PARTS ||
      input.shape.dims[axis < 0 ? axis + rank : axis] == CS_DIM_N) {
    return cs_onnx_refuse(node,
                          "found axis %lld of %d and %zu outputs, wanted an axis, not of a "
                          "symbolic batch, and 1 to %d outputs",
                          (long long)axis, rank, n, MOST_PARTS);
  }
  if (axis < 0) axis += rank;
  CS_RETURN_IF_ERROR(split_sizes(node, input.shape.dims[axis], sizes));
  for (size_t i = 0; i < n && !node->refused; at += sizes[i++]) {
    const cs_onnx_value *value = cs_onnx_output(node, i);
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    if (!value || !value->readers) continue;
    cs_attrs attrs = slice_of(axis, at, at + sizes[i], 1);
    const char *suffix = i ? number : NULL;
    if (n == 1) {
      CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, CS_OP_IDENTITY, NULL, &input, 1, &part));
    } else {
      CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, CS_OP_SLICE, &attrs, &input, 1, &part));
    }
    if (i) CS_RETURN_IF_ERROR(name_as_output(node, value, &part));
    cs_onnx_give_output(node, i, &part);
  }
  return CS_OK;
}

/* ---- Gather ---- */

typedef struct runs {
  cs_attrs slices[MOST_PARTS];
  int n;
} runs;

/* Indices as ranges with a step each. false: one is outside, or there are too many ranges. */
static bool find_runs(const cs_onnx_item *items, int64_t n, int64_t axis, int64_t extent,
                      runs *out) {
  out->n = 0;
  for (int64_t i = 0; i < n; i++) {
    if (items[i].times_n || items[i].whole < -extent || items[i].whole >= extent) return false;
  }
  for (int64_t i = 0; i < n;) {
    if (out->n == MOST_PARTS) return false;
    int64_t first = (items[i].whole + extent) % extent, step = 1, last = first, count = 1;
    for (; i + count < n; count++) {
      int64_t next = (items[i + count].whole + extent) % extent;
      if (count == 1) step = next - first;
      if (step == 0 || next - last != step) break;
      last = next;
    }
    if (count == 1) step = 1;
    int64_t end = step > 0 ? last + 1 : last == 0 ? -extent - 1 : last - 1;
    out->slices[out->n++] = slice_of(axis, first, end, step);
    i += count;
  }
  return true;
}

/* The ranges one behind the other. `suffix`: of what the node ends in, NULL if it is the node. */
static cs_status emit_runs(cs_onnx_node *node, const runs *parts, const cs_onnx_data *input,
                           const char *suffix, cs_onnx_data *out) {
  cs_onnx_data made[MOST_PARTS];
  cs_attrs concat = {.axis = {parts->slices[0].slice.axes[0]}};
  for (int i = 0; i < parts->n; i++) {
    const char *own = parts->n > 1 ? "Slice" : suffix;
    CS_RETURN_IF_ERROR(cs_onnx_emit(node, own, CS_OP_SLICE, &parts->slices[i], input, 1, &made[i]));
  }
  *out = made[0];
  if (parts->n == 1) return CS_OK;
  return cs_onnx_emit(node, suffix, CS_OP_CONCAT, &concat, made, parts->n, out);
}

/* The list's shape in the axis' place. */
static cs_shape gathered_shape(const cs_shape *data, const cs_shape *indices, int axis) {
  cs_shape shape = {.rank = axis};
  for (int i = 0; i < axis; i++) shape.dims[i] = data->dims[i];
  for (int i = 0; i < indices->rank; i++) shape.dims[shape.rank++] = indices->dims[i];
  for (int i = axis + 1; i < data->rank; i++) shape.dims[shape.rank++] = data->dims[i];
  return shape;
}

cs_status cs_onnx_gather(cs_onnx_node *node) {
  cs_onnx_data input, made;
  cs_onnx_value *indices;
  const cs_onnx_item *items = NULL;
  int64_t axis;
  runs parts;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "axis", 0, &axis));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &indices));
  if (!there || !indices) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, indices, &items));
  int rank = input.shape.rank;
  if (axis < -rank || axis >= rank || input.shape.dims[axis < 0 ? axis + rank : axis] == CS_DIM_N ||
      rank + indices->data.shape.rank - 1 > CS_MAX_RANK) {
    return cs_onnx_refuse(node,
                          "attribute axis: found %lld of %d axes, wanted one, not of a "
                          "symbolic batch",
                          (long long)axis, rank);
  }
  if (axis < 0) axis += rank;
  int64_t n = cs_onnx_count(&indices->data.shape);
  if (!items || n < 1 || !cs_onnx_dtype_is_whole(indices->dtype) ||
      !find_runs(items, n, axis, input.shape.dims[axis], &parts)) {
    return cs_onnx_refuse(node,
                          "input indices: found %lld of %s, wanted some of an axis of %lld, "
                          "in at most %d ranges",
                          (long long)n, cs_onnx_dtype_name(indices->dtype),
                          (long long)input.shape.dims[axis], MOST_PARTS);
  }
  bool reshapes = indices->data.shape.rank != 1;
  cs_shape shape = gathered_shape(&input.shape, &indices->data.shape, (int)axis);
  CS_RETURN_IF_ERROR(emit_runs(node, &parts, &input, reshapes ? "Gather" : NULL, &made));
  if (!reshapes) cs_onnx_give(node, &made);
  return reshapes && !node->refused ? cs_onnx_as_shape(node, &made, &shape) : CS_OK;
}

/* ---- Tile, Expand ---- */

/* Concats of one tensor with itself, an axis after the other. */
cs_status cs_onnx_tile(cs_onnx_node *node) {
  cs_onnx_data made, copies[MOST_PARTS];
  int64_t repeats[CS_MAX_RANK];
  int n, left = 0;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &made, &there));
  CS_RETURN_IF_ERROR(cs_onnx_list(node, "repeats", 1, 0, CS_MAX_RANK, repeats, &n));
  if (!there || node->refused) return CS_OK;
  if (n != made.shape.rank) {
    return cs_onnx_refuse(node, "input repeats: found %d numbers, wanted %d", n, made.shape.rank);
  }
  for (int i = 0; i < n; i++) {
    left += repeats[i] > 1;
    if (repeats[i] >= 1 && repeats[i] <= MOST_PARTS) continue;
    return cs_onnx_refuse(node, "input repeats: found %lld, wanted 1 to %d", (long long)repeats[i],
                          MOST_PARTS);
  }
  if (left == 0) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &made, 1);
  for (int axis = n - 1; axis >= 0 && !node->refused; axis--) {
    if (repeats[axis] == 1) continue;
    cs_attrs attrs = {.axis = {axis}};
    for (int64_t i = 0; i < repeats[axis]; i++) copies[i] = made;
    const char *suffix = --left > 0 ? "Concat" : NULL;
    CS_RETURN_IF_ERROR(
        cs_onnx_emit(node, suffix, CS_OP_CONCAT, &attrs, copies, (int)repeats[axis], &made));
  }
  cs_onnx_give(node, &made);
  return CS_OK;
}

/* The extents that an axis of 1 grows to, without those before the first of them. *good: it fits.
 */
static cs_shape grown_extents(const cs_shape *input, const cs_onnx_item *items, int n, bool *good) {
  cs_shape grown = {0};
  for (int i = 0; i < n; i++) {
    int from = i - (n - input->rank);
    int64_t extent = from < 0 ? 1 : input->dims[from], wanted = items[i].whole;
    bool same =
        items[i].times_n ? wanted == 1 && extent == CS_DIM_N : wanted == 1 || wanted == extent;
    if (!same && (items[i].times_n || extent != 1 || wanted < 1 || wanted > CS_MAX_EXTENT)) {
      *good = false;
    }
    if (grown.rank == 0 && same && from >= 0) continue;
    grown.dims[grown.rank++] = same ? 1 : wanted;
  }
  return grown;
}

/* The tensor times ones of that shape, which changes no number. */
cs_status cs_onnx_expand(cs_onnx_node *node) {
  cs_onnx_data input, made;
  cs_onnx_value *value;
  const cs_onnx_item *items = NULL;
  bool there, good = true;
  cs_attrs attrs = {0};
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &value));
  if (!there || !value) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, value, &items));
  int64_t n = cs_onnx_count(&value->data.shape);
  good = items && n <= CS_MAX_RANK && cs_onnx_dtype_is_whole(value->dtype);
  if (good) attrs.binary.operand = grown_extents(&input.shape, items, (int)n, &good);
  if (!good) {
    return cs_onnx_refuse(node,
                          "input shape: found %lld numbers, wanted a shape that the tensor "
                          "broadcasts to",
                          (long long)n);
  }
  if (!attrs.binary.operand.rank) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &input, 1);
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, NULL, CS_OP_MUL, &attrs, &input, 1, &made));
  cs_onnx_param param = {.fill = 1.0, .count = cs_onnx_count(&attrs.binary.operand)};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &made, "weight", NULL, param));
  cs_onnx_give(node, &made);
  return CS_OK;
}
