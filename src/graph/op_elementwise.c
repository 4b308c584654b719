/* Operators of one number each: Relu … Gelu. */
#include <float.h>

#include "graph/op_family.h"

static const cs_unary_info unary[CS_OP_COUNT] = {
    [CS_OP_RELU] = {CS_ACT_RELU, {NULL, NULL}, {0, 0}},
    [CS_OP_LEAKY_RELU] = {CS_ACT_LEAKY_RELU, {"alpha", NULL}, {0.01, 0}},
    [CS_OP_CLIP] = {CS_ACT_CLIP, {"min", "max"}, {-(double)FLT_MAX, (double)FLT_MAX}},
    [CS_OP_SIGMOID] = {CS_ACT_SIGMOID, {NULL, NULL}, {0, 0}},
    [CS_OP_TANH] = {CS_ACT_TANH, {NULL, NULL}, {0, 0}},
    [CS_OP_ELU] = {CS_ACT_ELU, {"alpha", NULL}, {1, 0}},
    [CS_OP_SELU] = {CS_ACT_SELU,
                    {"alpha", "gamma"},
                    {1.67326319217681884765625, 1.05070102214813232421875}},
    [CS_OP_HARD_SIGMOID] = {CS_ACT_HARD_SIGMOID, {"alpha", "beta"}, {0.2, 0.5}},
    [CS_OP_HARD_SWISH] = {CS_ACT_HARD_SWISH, {NULL, NULL}, {0, 0}},
    [CS_OP_SWISH] = {CS_ACT_SWISH, {"alpha", NULL}, {1, 0}},
    [CS_OP_SQRT] = {CS_ACT_SQRT, {NULL, NULL}, {0, 0}},
    [CS_OP_ABS] = {CS_ACT_ABS, {NULL, NULL}, {0, 0}},
    [CS_OP_NEG] = {CS_ACT_NEG, {NULL, NULL}, {0, 0}},
    [CS_OP_EXP] = {CS_ACT_EXP, {NULL, NULL}, {0, 0}},
    [CS_OP_SOFTPLUS] = {CS_ACT_SOFTPLUS, {NULL, NULL}, {0, 0}},
    [CS_OP_ERF] = {CS_ACT_ERF, {NULL, NULL}, {0, 0}},
    [CS_OP_GELU] = {CS_ACT_GELU, {NULL, NULL}, {0, 0}},
};

const cs_unary_info *cs_op_unary(cs_op op) {
  return &unary[op];
}

cs_activation cs_op_own_activation(cs_op op, const cs_attrs *attrs) {
  cs_activation own = {.kind = unary[op].act};
  if (cs_act_params(own.kind) > 0) own.alpha = attrs->unary.alpha;
  if (cs_act_params(own.kind) > 1) own.beta = attrs->unary.beta;
  return own;
}

static cs_status unary_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  const cs_unary_info *info = &unary[op];
  double *values[] = {&attrs->unary.alpha, &attrs->unary.beta};
  for (int i = 0; i < 2 && info->names[i]; i++) {
    CS_RETURN_IF_ERROR(cs_attr_double(reader, info->names[i], info->defaults[i], values[i]));
  }
  if (op != CS_OP_CLIP || attrs->clip.min <= attrs->clip.max) return CS_OK;
  return cs_place_error(reader->place, "attrs.min", "found %.17g, wanted at most max, %.17g",
                        attrs->clip.min, attrs->clip.max);
}

static int unary_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  const cs_unary_info *info = &unary[op];
  const double values[] = {attrs->unary.alpha, attrs->unary.beta};
  for (int i = 0; i < 2 && info->names[i]; i++) {
    if (json_object_set_new(object, info->names[i], json_real(values[i])) != 0) return -1;
  }
  return 0;
}

static double element_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape);
}

static void unary_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  const cs_unary_info *info = &unary[op];
  const double values[] = {attrs->unary.alpha, attrs->unary.beta};
  for (int i = 0; i < 2 && info->names[i]; i++) {
    cs_strbuf_printf(out, " %s=%.17g", info->names[i], values[i]);
  }
}

const cs_op_family cs_family_unary = {.min_inputs = 1,
                                      .max_inputs = 1,
                                      .parse = unary_parse,
                                      .save = unary_save,
                                      .infer = cs_same_infer,
                                      .flops = element_flops,
                                      .sign = unary_sign};
