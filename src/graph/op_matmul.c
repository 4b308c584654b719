/* MatMul: y = a · b over the last two axes, the others broadcast; one factor may be a constant that
 * is the weight. */
#include "graph/op_family.h"

/* The factors' shapes: a, then b. */
static void factor_shapes(const cs_attrs *attrs, const cs_shape *inputs, cs_shape out[2]) {
  const cs_binary_attrs *binary = &attrs->binary;
  bool constant = binary->operand.rank > 0, first = constant && binary->operand_first;
  out[0] = first ? binary->operand : inputs[0];
  out[1] = first ? inputs[0] : constant ? binary->operand : inputs[1];
}

/* The shape without its matrices. */
static cs_shape batch_axes(const cs_shape *shape) {
  cs_shape batch = *shape;
  batch.rank -= 2;
  return batch;
}

static cs_status matmul_infer(const cs_place *place, cs_op op, cs_attrs *attrs,
                              const cs_shape *inputs, int n_inputs, cs_shape *out) {
  char first[CS_TEXT_SIZE], second[CS_TEXT_SIZE];
  cs_shape of[2];
  CS_RETURN_IF_ERROR(cs_operand_want_inputs(place, op, attrs, n_inputs));
  factor_shapes(attrs, inputs, of);
  const cs_shape *a = &of[0], *b = &of[1];
  bool fit = a->rank >= 2 && b->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 2];
  if (fit) {
    cs_shape batch_a = batch_axes(a), batch_b = batch_axes(b);
    fit = cs_shape_broadcast(&batch_a, &batch_b, out);
  }
  if (fit) {
    /* Rows that are the batch are the first axis only where they are all there is before columns.
     */
    fit = a->dims[a->rank - 2] != CS_DIM_N || out->rank == 0;
    out->dims[out->rank++] = a->dims[a->rank - 2];
    out->dims[out->rank++] = b->dims[b->rank - 1];
  }
  if (fit) return CS_OK;
  return cs_place_error(place, "inputs",
                        "found shapes %s and %s, wanted [..., M, K] and [..., K, N]: two axes or "
                        "more, those before the last two broadcast, the batch first",
                        cs_shape_text(a, first), cs_shape_text(b, second));
}

static int64_t matmul_reduction(const cs_op_desc *desc) {
  const cs_shape *input = &desc->inputs[0].shape;
  bool first = desc->attrs.binary.operand.rank > 0 && desc->attrs.binary.operand_first;
  return input->dims[input->rank - (first ? 2 : 1)];
}

static double matmul_flops(const cs_op_desc *desc) {
  return 2.0 * cs_shape_count(&desc->output.shape) * (double)matmul_reduction(desc);
}

const cs_op_family cs_family_matmul = {.min_inputs = 1,
                                       .max_inputs = 2,
                                       .parse = cs_operand_parse,
                                       .save = cs_operand_save,
                                       .infer = matmul_infer,
                                       .weight_shape = cs_operand_shape,
                                       .flops = matmul_flops,
                                       .reduction = matmul_reduction,
                                       .sign = cs_operand_sign};

/* With the output's batch axes; the matrix stays. */
static cs_tensor_desc with_batch(const cs_tensor_desc *factor, const cs_shape *output) {
  cs_shape shape = *output;
  for (int i = 1; i <= 2; i++) {
    shape.dims[shape.rank - i] = factor->shape.dims[factor->shape.rank - i];
  }
  return cs_tensor_broadcast(factor, &shape);
}

cs_matmul_factors cs_op_factors(const cs_op_desc *desc, cs_dtype constant) {
  const cs_binary_attrs *binary = &desc->attrs.binary;
  bool there = binary->operand.rank > 0;
  cs_tensor_desc operand = {0}, given = with_batch(&desc->inputs[0], &desc->output.shape);
  if (there) operand = cs_tensor_dense(&binary->operand, constant, CS_LAYOUT_NCHW);
  cs_tensor_desc other = with_batch(there ? &operand : &desc->inputs[1], &desc->output.shape);
  if (there && binary->operand_first) return (cs_matmul_factors){other, given, true, false};
  return (cs_matmul_factors){given, other, false, there};
}
