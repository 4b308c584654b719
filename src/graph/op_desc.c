/* What the families say about one operation: checks, parameters, work, signature. */
#include <math.h>

#include "graph/op_family.h"

cs_status cs_want_rank(const cs_place *place, const cs_shape *input, int rank) {
  if (input->rank == rank) return CS_OK;
  char text[CS_TEXT_SIZE];
  return cs_place_error(place, "inputs", "found an input of shape %s, wanted rank %d",
                        cs_shape_text(input, text), rank);
}

cs_status cs_make_axis(const cs_place *place, int64_t *axis, int rank, int max) {
  int64_t made = *axis < 0 ? *axis + rank : *axis;
  if (made < 0 || made > max) {
    return cs_place_error(place, "attrs.axis", "found %lld, wanted from %d to %d (rank %d)",
                          (long long)*axis, -rank, max, rank);
  }
  *axis = made;
  return CS_OK;
}

double cs_shape_count(const cs_shape *shape) {
  double count = 1;
  for (int i = 0; i < shape->rank; i++) count *= (double)shape->dims[i];
  return count;
}

cs_status cs_shape_fits(const cs_shape *shape) {
  char text[CS_TEXT_SIZE];
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dims[i] <= CS_MAX_EXTENT) continue;
    return cs_error(CS_CODE_BAD_INPUT, "found shape %s, wanted extents of at most %lld",
                    cs_shape_text(shape, text), (long long)CS_MAX_EXTENT);
  }
  int64_t elements, bytes;
  cs_status status = cs_shape_elements(shape, &elements);
  bool fits = status == CS_OK && cs_mul_i64(elements, 64, &bytes);
  cs_status_free(status);
  if (fits) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "found shape %s, wanted one whose size fits 64 bits",
                  cs_shape_text(shape, text));
}

static cs_status check_size(const cs_place *place, const char *what, const cs_shape *shape) {
  cs_status too_large = cs_shape_fits(shape);
  if (too_large == CS_OK) return CS_OK;
  cs_status status = cs_place_error(place, NULL, "%s: %s", what, cs_status_message(too_large));
  cs_status_free(too_large);
  return status;
}

cs_status cs_op_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                      int n_inputs, cs_shape *out) {
  CS_RETURN_IF_ERROR(cs_op_family_of(op)->infer(place, op, attrs, inputs, n_inputs, out));
  CS_RETURN_IF_ERROR(check_size(place, "output", out));
  cs_shape weight = cs_op_param_shape(op, attrs, inputs);
  return check_size(place, "weight", &weight);
}

bool cs_op_has_weight(cs_op op) {
  return cs_op_family_of(op)->weight_shape != NULL;
}

bool cs_op_has_bias(cs_op op, const cs_attrs *attrs) {
  const cs_op_family *family = cs_op_family_of(op);
  return family->has_bias && family->has_bias(attrs);
}

cs_shape cs_op_param_shape(cs_op op, const cs_attrs *attrs, const cs_shape *input) {
  if (!cs_op_has_weight(op)) return (cs_shape){.rank = 0};
  return cs_op_family_of(op)->weight_shape(op, attrs, input);
}

cs_shape cs_op_weight_shape(const cs_op_desc *desc) {
  return cs_op_param_shape(desc->op, &desc->attrs, &desc->inputs[0].shape);
}

int64_t cs_op_weight_elements(const cs_op_desc *desc) {
  cs_shape shape = cs_op_weight_shape(desc);
  int64_t elements = shape.rank ? 1 : 0;
  for (int i = 0; i < shape.rank; i++) elements *= shape.dims[i];
  return elements;
}

static int64_t own_bias_elements(const cs_op_desc *desc) {
  return desc->has_bias ? desc->output.shape.dims[1] : 0;
}

int64_t cs_op_bias_elements(const cs_op_desc *desc) {
  int64_t prologue = desc->has_prologue ? 2 * desc->inputs[0].shape.dims[1] : 0;
  return own_bias_elements(desc) + prologue;
}

const float *cs_op_prologue(const cs_op_desc *desc, const float *bias) {
  return bias + own_bias_elements(desc);
}

double cs_op_flops(const cs_op_desc *desc) {
  const cs_op_family *family = cs_op_family_of(desc->op);
  double flops = family->flops ? family->flops(desc) : 0;
  if (desc->has_prologue) flops += 2.0 * cs_shape_count(&desc->inputs[0].shape);
  return flops;
}

double cs_op_bytes(const cs_op_desc *desc) {
  double element = (double)cs_dtype_size(cs_precision_storage(desc->precision));
  double bytes = element * (double)(cs_op_weight_elements(desc) + cs_op_bias_elements(desc)) +
                 cs_shape_count(&desc->output.shape) * (double)cs_dtype_size(desc->output.dtype);
  const cs_op_family *family = cs_op_family_of(desc->op);
  if (family->reads) {
    return bytes + family->reads(desc) * (double)cs_dtype_size(desc->inputs[0].dtype);
  }
  for (int i = 0; i < desc->n_inputs; i++) {
    bytes += cs_shape_count(&desc->inputs[i].shape) * (double)cs_dtype_size(desc->inputs[i].dtype);
  }
  return bytes;
}

double cs_window_reads(const cs_op_desc *desc, int64_t taps) {
  const cs_shape *in = &desc->inputs[0].shape, *out = &desc->output.shape;
  double count = 1;
  for (int i = 0; i < in->rank; i++) {
    count *= fmin((double)in->dims[i], (double)(out->dims[i]) * (double)taps);
  }
  return count;
}

void cs_shape_sign(const char *label, const cs_shape *shape, cs_strbuf *out) {
  for (int i = 0; i < shape->rank; i++) {
    if (i == 0) cs_strbuf_printf(out, " %s=", label);
    if (i > 0) cs_strbuf_printf(out, "x");
    if (shape->dims[i] == CS_DIM_N) cs_strbuf_printf(out, "N");
    if (shape->dims[i] != CS_DIM_N) cs_strbuf_printf(out, "%lld", (long long)shape->dims[i]);
  }
}

int64_t cs_op_reduction(const cs_op_desc *desc) {
  const cs_op_family *family = cs_op_family_of(desc->op);
  return family->reduction ? family->reduction(desc) : 1;
}

void cs_op_sign_attrs(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  const cs_op_family *family = cs_op_family_of(op);
  if (family->sign) family->sign(op, attrs, out);
}

cs_status cs_same_infer(const cs_place *place, cs_op op, cs_attrs *attrs, const cs_shape *inputs,
                        int n_inputs, cs_shape *out) {
  (void)place;
  (void)op;
  (void)attrs;
  (void)n_inputs;
  *out = *inputs;
  return CS_OK;
}
