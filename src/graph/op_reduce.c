/* ReduceMean, ReduceSum, ReduceMax, ReduceMin over any axes. */
#include <stdlib.h>

#include "graph/op_family.h"

static cs_status reduce_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_reduce_attrs *reduce = &attrs->reduce;
  CS_RETURN_IF_ERROR(
      cs_attr_list(reader, "axes", -CS_MAX_RANK, CS_MAX_RANK - 1, reduce->axes, &reduce->n_axes));
  return cs_attr_bool(reader, "keepdims", true, &reduce->keepdims);
}

static int reduce_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_reduce_attrs *reduce = &attrs->reduce;
  json_t *axes = cs_attr_save_ints(reduce->axes, reduce->n_axes);
  return json_object_set_new(object, "axes", axes) ||
                 json_object_set_new(object, "keepdims", json_boolean(reduce->keepdims))
             ? -1
             : 0;
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* None given: all of them. */
static cs_status make_axes(const cs_place *place, cs_reduce_attrs *reduce, int rank) {
  if (reduce->n_axes == 0) {
    for (int i = 0; i < rank; i++) reduce->axes[i] = i;
    reduce->n_axes = rank;
  }
  for (int i = 0; i < reduce->n_axes; i++) {
    CS_RETURN_IF_ERROR(cs_make_axis(place, &reduce->axes[i], rank, rank - 1));
  }
  qsort(reduce->axes, (size_t)reduce->n_axes, sizeof *reduce->axes, ascending);
  for (int i = 1; i < reduce->n_axes; i++) {
    if (reduce->axes[i] != reduce->axes[i - 1]) continue;
    return cs_place_error(place, "attrs.axes", "found %lld twice, wanted each axis once",
                          (long long)reduce->axes[i]);
  }
  return CS_OK;
}

static cs_status reduce_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  cs_reduce_attrs *reduce = &attrs->reduce;
  CS_RETURN_IF_ERROR(make_axes(place, reduce, inputs->rank));
  *out = (cs_shape){0};
  for (int axis = 0, next = 0; axis < inputs->rank; axis++) {
    bool reduced = next < reduce->n_axes && reduce->axes[next] == axis;
    if (reduced && inputs->dims[axis] == CS_DIM_N) {
      return cs_place_error(place, "attrs.axes",
                            "found axis 0 of a symbolic batch, wanted other axes");
    }
    if (reduced) next++;
    if (!reduced || reduce->keepdims) out->dims[out->rank++] = reduced ? 1 : inputs->dims[axis];
  }
  if (out->rank > 0) return CS_OK;
  return cs_place_error(place, "attrs.keepdims",
                        "found false for all %d axes, wanted at least one axis left", inputs->rank);
}

static double reduce_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->inputs[0].shape);
}

static int64_t reduce_length(const cs_op_desc *desc) {
  const cs_reduce_attrs *reduce = &desc->attrs.reduce;
  int64_t length = 1;
  if (desc->op == CS_OP_REDUCE_MAX || desc->op == CS_OP_REDUCE_MIN) return 1;
  for (int i = 0; i < reduce->n_axes; i++) length *= desc->inputs[0].shape.dims[reduce->axes[i]];
  return length;
}

static void reduce_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_reduce_attrs *reduce = &attrs->reduce;
  for (int i = 0; i < reduce->n_axes; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "," : " axes=", (long long)reduce->axes[i]);
  }
  if (!reduce->keepdims) cs_strbuf_printf(out, " dropped");
}

const cs_op_family cs_family_reduce = {.min_inputs = 1,
                                       .max_inputs = 1,
                                       .parse = reduce_parse,
                                       .save = reduce_save,
                                       .infer = reduce_infer,
                                       .flops = reduce_flops,
                                       .reduction = reduce_length,
                                       .sign = reduce_sign};

bool cs_op_reduces(const cs_op_desc *desc, bool reduced[CS_MAX_RANK]) {
  bool global = desc->op == CS_OP_GLOBAL_AVERAGE_POOL || desc->op == CS_OP_GLOBAL_MAX_POOL;
  for (int i = 0; i < CS_MAX_RANK; i++) reduced[i] = global && (i == 2 || i == 3);
  if (cs_op_family_of(desc->op) != &cs_family_reduce) return global;
  for (int i = 0; i < desc->attrs.reduce.n_axes; i++) reduced[desc->attrs.reduce.axes[i]] = true;
  return true;
}

cs_tensor_desc cs_op_kept_output(const cs_op_desc *desc) {
  const cs_shape *in = &desc->inputs[0].shape;
  bool reduced[CS_MAX_RANK];
  cs_tensor_desc kept = desc->output;
  if (!cs_op_reduces(desc, reduced) || in->rank == desc->output.shape.rank) return kept;
  kept.shape.rank = in->rank;
  for (int axis = 0, from = 0; axis < in->rank; axis++) {
    kept.shape.dims[axis] = reduced[axis] ? 1 : desc->output.shape.dims[from];
    kept.strides[axis] = reduced[axis] ? 0 : desc->output.strides[from];
    if (!reduced[axis]) from++;
  }
  return kept;
}
