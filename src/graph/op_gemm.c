/* Gemm: y = x·Wᵀ + b. */
#include "graph/op_family.h"

static cs_status gemm_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  CS_RETURN_IF_ERROR(cs_attr_int(reader, "out_features", CS_ATTR_REQUIRED, 1, CS_MAX_EXTENT,
                                 &attrs->gemm.out_features));
  return cs_attr_bool(reader, "bias", true, &attrs->gemm.bias);
}

static int gemm_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  return json_object_set_new(object, "out_features", json_integer(attrs->gemm.out_features)) ||
                 json_object_set_new(object, "bias", json_boolean(attrs->gemm.bias))
             ? -1
             : 0;
}

static cs_status gemm_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                            const cs_shape *inputs, int n_inputs, cs_shape *out) {
  (void)op;
  (void)n_inputs;
  CS_RETURN_IF_ERROR(cs_want_rank(place, inputs, 2));
  *out = (cs_shape){.rank = 2, .dims = {inputs->dims[0], attrs->gemm.out_features}};
  return CS_OK;
}

static cs_shape gemm_weight(cs_op op, const cs_attrs *attrs, const cs_shape *input) {
  (void)op;
  return (cs_shape){2, {attrs->gemm.out_features, input->dims[1]}};
}

static bool gemm_has_bias(const cs_attrs *attrs) {
  return attrs->gemm.bias;
}

static double gemm_flops(const cs_op_desc *desc) {
  cs_shape weight = cs_op_weight_shape(desc);
  return 2.0 * (double)desc->output.shape.dims[0] * cs_shape_count(&weight);
}

static int64_t gemm_reduction(const cs_op_desc *desc) {
  return desc->inputs[0].shape.dims[1];
}

const cs_op_family cs_family_gemm = {.min_inputs = 1,
                                     .max_inputs = 1,
                                     .parse = gemm_parse,
                                     .save = gemm_save,
                                     .infer = gemm_infer,
                                     .weight_shape = gemm_weight,
                                     .has_bias = gemm_has_bias,
                                     .flops = gemm_flops,
                                     .reduction = gemm_reduction};
