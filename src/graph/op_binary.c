/* Add, Mul, Sub, Div, Max, Min, Pow, PRelu of two inputs, or of one and a constant that is the
 * weight; what MatMul shares with them. */
#include "graph/op_family.h"

cs_status cs_operand_parse(cs_attr_reader *reader, cs_op op, cs_attrs *attrs) {
  (void)op;
  cs_binary_attrs *binary = &attrs->binary;
  CS_RETURN_IF_ERROR(cs_attr_shape(reader, "operand", &binary->operand));
  CS_RETURN_IF_ERROR(cs_attr_bool(reader, "operand_first", false, &binary->operand_first));
  if (binary->operand.rank || !binary->operand_first) return CS_OK;
  return cs_place_error(reader->place, "attrs.operand_first",
                        "found true without operand, wanted attrs.operand too");
}

int cs_operand_save(cs_op op, const cs_attrs *attrs, json_t *object) {
  (void)op;
  const cs_binary_attrs *binary = &attrs->binary;
  if (!binary->operand.rank) return 0;
  json_t *extents = cs_attr_save_ints(binary->operand.dims, binary->operand.rank);
  if (json_object_set_new(object, "operand", extents) != 0) return -1;
  if (!binary->operand_first) return 0;
  return json_object_set_new(object, "operand_first", json_true());
}

/* ONNX broadcasts the slope alone. */
static cs_status prelu_infer(const cs_place *place, const cs_binary_attrs *binary,
                             const cs_shape *x, const cs_shape *slope, const cs_shape *out) {
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  if (cs_shape_equal(x, out) && !binary->operand_first) return CS_OK;
  return cs_place_error(place, "inputs",
                        "found shape %s and a slope of %s%s, wanted one that broadcasts to the "
                        "tensor's shape, and second",
                        cs_shape_text(x, a), cs_shape_text(slope, b),
                        binary->operand_first ? " in the first place" : "");
}

cs_status cs_operand_want_inputs(const cs_place *place, cs_op op, const cs_attrs *attrs,
                                 int n_inputs) {
  bool constant = attrs->binary.operand.rank > 0;
  if (n_inputs == (constant ? 1 : 2)) return CS_OK;
  return cs_place_error(place, "inputs", "found %d inputs %s attrs.operand, wanted %s for %s",
                        n_inputs, constant ? "and" : "without",
                        constant ? "one" : "2, or one and attrs.operand", cs_op_name(op));
}

static cs_status binary_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  CS_RETURN_IF_ERROR(cs_operand_want_inputs(place, op, attrs, n_inputs));
  const cs_shape *operand = &attrs->binary.operand;
  const cs_shape *second = operand->rank ? operand : &inputs[1];
  if (cs_shape_broadcast(&inputs[0], second, out)) {
    if (op != CS_OP_PRELU) return CS_OK;
    return prelu_infer(place, &attrs->binary, inputs, second, out);
  }
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  return cs_place_error(place, "inputs",
                        "found shapes %s and %s, wanted ones that broadcast: axes lined up from "
                        "the last, extents equal or 1, the batch on the first",
                        cs_shape_text(&inputs[0], a), cs_shape_text(second, b));
}

cs_shape cs_operand_shape(cs_op op, const cs_attrs *attrs, const cs_shape *input) {
  (void)op;
  (void)input;
  return attrs->binary.operand;
}

static double binary_flops(const cs_op_desc *desc) {
  return cs_shape_count(&desc->output.shape);
}

static int64_t binary_reduction(const cs_op_desc *desc) {
  return desc->op == CS_OP_ADD || desc->op == CS_OP_SUB ? 2 : 1;
}

void cs_operand_sign(cs_op op, const cs_attrs *attrs, cs_strbuf *out) {
  (void)op;
  const cs_shape *operand = &attrs->binary.operand;
  for (int i = 0; i < operand->rank; i++) {
    cs_strbuf_printf(out, "%s%lld", i ? "x" : " operand=", (long long)operand->dims[i]);
  }
  if (attrs->binary.operand_first) cs_strbuf_printf(out, " first");
}

const cs_op_family cs_family_binary = {.min_inputs = 1,
                                       .max_inputs = 2,
                                       .parse = cs_operand_parse,
                                       .save = cs_operand_save,
                                       .infer = binary_infer,
                                       .weight_shape = cs_operand_shape,
                                       .flops = binary_flops,
                                       .reduction = binary_reduction,
                                       .sign = cs_operand_sign};

bool cs_op_is_binary(cs_op op) {
  return cs_op_family_of(op) == &cs_family_binary;
}

bool cs_op_takes_operand(cs_op op) {
  return cs_op_is_binary(op) || op == CS_OP_MATMUL;
}

bool cs_op_has_operand(const cs_op_desc *desc) {
  return cs_op_takes_operand(desc->op) && desc->attrs.binary.operand.rank > 0;
}

cs_tensor_desc cs_op_operand(const cs_op_desc *desc, cs_dtype dtype) {
  const cs_shape *given = &desc->attrs.binary.operand;
  cs_shape shape = {.rank = desc->output.shape.rank};
  for (int i = 0; i < shape.rank; i++) {
    int from = i - (shape.rank - given->rank);
    shape.dims[i] = from < 0 ? 1 : given->dims[from];
  }
  cs_layout layout = desc->op == CS_OP_MATMUL ? CS_LAYOUT_NCHW : desc->output.layout;
  return cs_tensor_dense(&shape, dtype, layout);
}

bool cs_op_wants_positive(const cs_op_desc *desc, int index) {
  bool first = index == 0;
  if (cs_op_has_operand(desc))
    first = (index == desc->n_inputs) == desc->attrs.binary.operand_first;
  if (desc->op == CS_OP_SQRT) return index == 0;
  if (desc->op == CS_OP_DIV) return !first;
  return desc->op == CS_OP_POW && first;
}
