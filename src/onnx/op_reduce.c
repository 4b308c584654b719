/* ReduceMean, ReduceSum, ReduceMax, ReduceMin; over the plane of an image they are global pools. */
#include <string.h>

#include "onnx/import.h"

static bool over_planes(const cs_shape *shape, const cs_reduce_attrs *reduce) {
  const int64_t *axes = reduce->axes;
  return shape->rank == 4 && reduce->n_axes == 2 && axes[0] + axes[1] == 5 &&
         cs_max_i64(axes[0], axes[1]) == 3;
}

/* With both axes kept: a pool where there is one. */
static cs_op planes_op(cs_op op) {
  if (op == CS_OP_REDUCE_MEAN) return CS_OP_GLOBAL_AVERAGE_POOL;
  return op == CS_OP_REDUCE_MAX ? CS_OP_GLOBAL_MAX_POOL : op;
}

static cs_status reduce_planes(cs_onnx_node *node, cs_op op, const cs_attrs *attrs,
                               const cs_onnx_data *input) {
  cs_op made = planes_op(op);
  cs_attrs kept = *attrs, flatten = {.axis = {1}};
  cs_onnx_data pooled;
  kept.reduce.keepdims = true;
  const cs_attrs *given = made == op ? &kept : NULL;
  if (attrs->reduce.keepdims) return cs_onnx_become(node, made, given, input, 1);
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, cs_op_name(made), made, given, input, 1, &pooled));
  return cs_onnx_become(node, CS_OP_FLATTEN, &flatten, &pooled, 1);
}

cs_status cs_onnx_read_reduce(cs_onnx_node *node, int64_t since, int rank, cs_reduce_attrs *out) {
  int64_t keep, nothing;
  int n;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "keepdims", 1, &keep));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "noop_with_empty_axes", 0, &nothing));
  CS_RETURN_IF_ERROR(cs_onnx_axes(node, 1, since, rank, out->axes, &n));
  out->n_axes = n > 0 ? n : nothing ? -1 : 0;
  out->keepdims = keep != 0;
  return CS_OK;
}

cs_status cs_onnx_reduce(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_attrs attrs = {0};
  cs_op op;
  bool there;
  if (!cs_op_parse(node->proto->op_type, &op)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  int64_t since = op == CS_OP_REDUCE_SUM ? 13 : 18;
  CS_RETURN_IF_ERROR(cs_onnx_read_reduce(node, since, input.shape.rank, &attrs.reduce));
  if (node->refused) return CS_OK;
  if (attrs.reduce.n_axes < 0) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &input, 1);
  bool free = !node->import->model->as_written;
  if (free && over_planes(&input.shape, &attrs.reduce))
    return reduce_planes(node, op, &attrs, &input);
  return cs_onnx_become(node, op, &attrs, &input, 1);
}
