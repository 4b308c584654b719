/* BatchNormalization, InstanceNormalization, LRN, Softmax. */
#include "graph/op_family.h"

static cs_status batch_norm_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  double *epsilon = &attrs->batch_norm.epsilon;
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "epsilon", 1e-5, epsilon));
  if (*epsilon >= 0) return CS_OK;
  return cs_place_error(reader->place, "attrs.epsilon", "found %.17g, wanted at least 0", *epsilon);
}

static int batch_norm_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "epsilon", json_real(attrs->batch_norm.epsilon));
}

static cs_status batch_norm_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                                  const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)attrs;
  (void)n_inputs;
  if (inputs->rank != 2) CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  *out = *inputs;
  return CS_OK;
}

static cs_shape batch_norm_weight(cs_op op, const cs_attrs *attrs, const cs_shape *input) {
  (void)op;
  (void)attrs;
  return (cs_shape){1, {input->dims[1]}};
}

static bool batch_norm_has_bias(const cs_attrs *attrs) {
  (void)attrs;
  return true;
}

static double batch_norm_flops(const cs_op_desc *desc) {
  return 2.0 * cs_shape_count(&desc->output.shape);
}

const cs_op_family cs_family_batch_norm = {.min_inputs = 1,
                                           .max_inputs = 1,
                                           .parse = batch_norm_parse,
                                           .save = batch_norm_save,
                                           .infer = batch_norm_infer,
                                           .weight_shape = batch_norm_weight,
                                           .has_bias = batch_norm_has_bias,
                                           .flops = batch_norm_flops};

static cs_status instance_norm_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                                     const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)attrs;
  (void)n_inputs;
  *out = *inputs;
  return cs_want_rank(place, inputs, 4);
}

/* Mean, deviations, their squares' sum, scale and shift. */
static double instance_norm_flops(const cs_op_desc *desc) {
  return 6.0 * cs_shape_count(&desc->output.shape);
}

static int64_t instance_norm_reduction(const cs_op_desc *desc) {
  return desc->inputs[0].shape.dims[2] * desc->inputs[0].shape.dims[3];
}

/* Statistics are the input's own, so that epsilon is not in the weights. */
static void instance_norm_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  cs_strbuf_printf(out, " epsilon=%.17g", attrs->batch_norm.epsilon);
}

const cs_op_family cs_family_instance_norm = {.min_inputs = 1,
                                              .max_inputs = 1,
                                              .parse = batch_norm_parse,
                                              .save = batch_norm_save,
                                              .infer = instance_norm_infer,
                                              .weight_shape = batch_norm_weight,
                                              .has_bias = batch_norm_has_bias,
                                              .flops = instance_norm_flops,
                                              .reduction = instance_norm_reduction,
                                              .sign = instance_norm_sign};

static cs_status lrn_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_lrn_attrs *lrn = &attrs->lrn;
  CS_RETURN_IF_ERROR(cs_attr_int(reader, "size", CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT, &lrn->size));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "alpha", 1e-4, &lrn->alpha));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "beta", 0.75, &lrn->beta));
  return cs_attr_double(reader, "bias", 1.0, &lrn->bias);
}

static int lrn_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_lrn_attrs *lrn = &attrs->lrn;
  return json_object_set_new(object, "size", json_integer(lrn->size)) ||
                 json_object_set_new(object, "alpha", json_real(lrn->alpha)) ||
                 json_object_set_new(object, "beta", json_real(lrn->beta)) ||
                 json_object_set_new(object, "bias", json_real(lrn->bias))
             ? -1
             : 0;
}

static cs_status lrn_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                           int n_inputs, cs_shape *out) {
  (void)op;
  (void)attrs;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 4));
  *out = *inputs;
  return CS_OK;
}

/* Channels a window really sees. */
static int64_t lrn_reduction(const cs_op_desc *desc) {
  return cs_min_i64(desc->attrs.lrn.size, desc->inputs[0].shape.dims[1]);
}

/* A square and an addition per channel of the window; the scaling and the power count four. */
static double lrn_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape) * (2.0 * (double)lrn_reduction(desc) + 4.0);
}

static void lrn_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_lrn_attrs *lrn = &attrs->lrn;
  cs_strbuf_printf(out, " size=%lld alpha=%.17g beta=%.17g bias=%.17g", (long long)lrn->size,
                   lrn->alpha, lrn->beta, lrn->bias);
}

const cs_op_family cs_family_lrn = {.min_inputs = 1,
                                    .max_inputs = 1,
                                    .parse = lrn_parse,
                                    .save = lrn_save,
                                    .infer = lrn_infer,
                                    .flops = lrn_flops,
                                    .reduction = lrn_reduction,
                                    .sign = lrn_sign};

static cs_status softmax_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  return cs_attr_int(reader, "axis", -1, -CS_MAX_RANK, CS_MAX_RANK - 1, &attrs->axis.axis);
}

static int softmax_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "axis", json_integer(attrs->axis.axis));
}

static cs_status softmax_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                               const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_make_axis(place, &attrs->axis.axis, inputs->rank, inputs->rank - 1));
  *out = *inputs;
  return CS_OK;
}

static int64_t softmax_reduction(const cs_op_desc *desc) {
  return desc->inputs[0].shape.dims[desc->attrs.axis.axis];
}

/* Maximum, subtraction, exponential, sum, division. */
static double softmax_flops(const cs_op_desc *desc) {
  return 5.0 * cs_shape_count(&desc->output.shape);
}

static void softmax_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  cs_strbuf_printf(out, " axis=%lld", (long long)attrs->axis.axis);
}

const cs_op_family cs_family_softmax = {.min_inputs = 1,
                                        .max_inputs = 1,
                                        .parse = softmax_parse,
                                        .save = softmax_save,
                                        .infer = softmax_infer,
                                        .flops = softmax_flops,
                                        .reduction = softmax_reduction,
                                        .sign = softmax_sign};
