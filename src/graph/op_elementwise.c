/* Relu, LeakyRelu, Clip, Sigmoid, Tanh. */
#include <float.h>

#include "graph/op_family.h"

static cs_status unary_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  if (op == CS_OP_LEAKY_RELU) {
    return cs_attr_double(reader, "alpha", 0.01, &attrs->leaky_relu.alpha);
  }
  if (op != CS_OP_CLIP) return CS_OK;
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "min", -(double)FLT_MAX, &attrs->clip.min));
  CS_RETURN_IF_ERROR(cs_attr_double(reader, "max", (double)FLT_MAX, &attrs->clip.max));
  if (attrs->clip.min <= attrs->clip.max) return CS_OK;
  return cs_place_error(reader->place, "attrs.min", "found %.17g, wanted at most max, %.17g",
                        attrs->clip.min, attrs->clip.max);
}

static int unary_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  if (op == CS_OP_LEAKY_RELU) {
    return json_object_set_new(object, "alpha", json_real(attrs->leaky_relu.alpha));
  }
  if (op != CS_OP_CLIP) return 0;
  return json_object_set_new(object, "min", json_real(attrs->clip.min)) ||
                 json_object_set_new(object, "max", json_real(attrs->clip.max))
             ? -1
             : 0;
}

static double element_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape);
}

static void unary_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  if (op == CS_OP_LEAKY_RELU) cs_strbuf_printf(out, " alpha=%.17g", attrs->leaky_relu.alpha);
  if (op == CS_OP_CLIP) {
    cs_strbuf_printf(out, " min=%.17g max=%.17g", attrs->clip.min, attrs->clip.max);
  }
}

const cs_op_family cs_family_unary = {.min_inputs = 1,
                                      .max_inputs = 1,
                                      .parse = unary_parse,
                                      .save = unary_save,
                                      .infer = cs_same_infer,
                                      .flops = element_flops,
                                      .sign = unary_sign};
