/* MaxPool, AveragePool, GlobalAveragePool. */
#include "graph/op_family.h"

static cs_status pool_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  cs_pool_attrs *pool = &attrs->pool;
  CS_RETURN_IF_ERROR(
      cs_attr_ints(reader, "kernel_shape", 2, CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT, pool->kernel));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "strides", 2, 1, 1, CS_MAX_EXTENT, pool->strides));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "pads", 4, 0, 0, CS_MAX_EXTENT, pool->pads));
  CS_RETURN_IF_ERROR(cs_attr_ints(reader, "dilations", 2, 1, 1, CS_MAX_EXTENT, pool->dilations));
  CS_RETURN_IF_ERROR(cs_attr_bool(reader, "ceil_mode", false, &pool->ceil_mode));
  if (op == CS_OP_MAX_POOL) return CS_OK;
  return cs_attr_bool(reader, "count_include_pad", false, &pool->count_include_pad);
}

static int pool_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  const cs_pool_attrs *pool = &attrs->pool;
  bool failed = json_object_set_new(object, "kernel_shape", cs_attr_save_ints(pool->kernel, 2)) ||
                json_object_set_new(object, "strides", cs_attr_save_ints(pool->strides, 2)) ||
                json_object_set_new(object, "pads", cs_attr_save_ints(pool->pads, 4)) ||
                json_object_set_new(object, "dilations", cs_attr_save_ints(pool->dilations, 2)) ||
                json_object_set_new(object, "ceil_mode", json_boolean(pool->ceil_mode));
  if (!failed && op == CS_OP_AVERAGE_POOL) {
    failed = json_object_set_new(object, "count_include_pad",
                                 json_boolean(pool->count_include_pad)) != 0;
  }
  return failed ? -1 : 0;
}

static cs_window window_of(const cs_pool_attrs *pool) {
  return (cs_window){pool->kernel, pool->strides, pool->pads, pool->dilations, pool->ceil_mode};
}

static cs_status pool_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                            const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  const cs_pool_attrs *pool = &attrs->pool;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  *out = *inputs;
  for (int axis = 0; axis < 2; axis++) {
    int64_t window = (pool->kernel[axis] - 1) * pool->dilations[axis] + 1;
    if (pool->pads[axis] >= window || pool->pads[2 + axis] >= window) {
      return cs_place_error(place, "attrs.pads",
                            "found %lld and %lld along %s, wanted less than the window's %lld",
                            (long long)pool->pads[axis], (long long)pool->pads[2 + axis],
                            axis ? "W" : "H", (long long)window);
    }
  }
  cs_window window = window_of(pool);
  return cs_window_infer(place, &window, inputs, out);
}

static double pool_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape) * (double)desc->attrs.pool.kernel[0] *
         (double)desc->attrs.pool.kernel[1];
}

static int64_t pool_reduction(const cs_op_desc *desc) {
  if (desc->op == CS_OP_MAX_POOL) return 1;
  return desc->attrs.pool.kernel[0] * desc->attrs.pool.kernel[1];
}

static void pool_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  const cs_pool_attrs *pool = &attrs->pool;
  cs_window window = window_of(pool);
  cs_window_sign(&window, out);
  if (pool->ceil_mode) cs_strbuf_printf(out, " ceil");
  if (op == CS_OP_AVERAGE_POOL && pool->count_include_pad) cs_strbuf_printf(out, " include_pad");
}

const cs_op_family cs_family_pool = {.min_inputs = 1,
                                     .max_inputs = 1,
                                     .parse = pool_parse,
                                     .save = pool_save,
                                     .infer = pool_infer,
                                     .flops = pool_flops,
                                     .reduction = pool_reduction,
                                     .sign = pool_sign};

static cs_status global_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)attrs;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  *out = (cs_shape){.rank = 4, .dims = {inputs->dims[0], inputs->dims[1], 1, 1}};
  return CS_OK;
}

static double global_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->inputs[0].shape);
}

static int64_t global_reduction(const cs_op_desc *desc) {
  if (desc->op == CS_OP_GLOBAL_MAX_POOL) return 1;
  return desc->inputs[0].shape.dims[2] * desc->inputs[0].shape.dims[3];
}

const cs_op_family cs_family_global_pool = {.min_inputs = 1,
                                            .max_inputs = 1,
                                            .infer = global_infer,
                                            .flops = global_flops,
                                            .reduction = global_reduction};
