/* Operators that are several of ours: ReduceL1, ReduceL2, ReduceSumSquare, Reciprocal, Mish,
 * Softsign, GroupNormalization. */
#include <string.h>

#include "onnx/import.h"

cs_status cs_onnx_step(cs_onnx_node *node, cs_op op, const cs_attrs *attrs, const cs_onnx_data *a,
                       const cs_onnx_data *b, cs_onnx_data *out) {
  const cs_onnx_data inputs[2] = {*a, b ? *b : *a}; /* *out may be one of them */
  return cs_onnx_emit(node, cs_op_name(op), op, attrs, inputs, b ? 2 : 1, out);
}

cs_status cs_onnx_emit_number(cs_onnx_node *node, const char *suffix, cs_op op,
                              const cs_onnx_data *a, double number, bool number_first,
                              cs_onnx_data *out) {
  const cs_attrs attrs = {.binary = {.operand = {1, {1}}, .operand_first = number_first}};
  const cs_onnx_param fill = {.fill = number, .count = 1};
  const cs_onnx_data input = *a; /* *out may be the same */
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, op, &attrs, &input, 1, out));
  return cs_onnx_add_param(node, out, "weight", NULL, fill);
}

/* ---- Of one tensor ---- */

cs_status cs_onnx_reciprocal(cs_onnx_node *node) {
  cs_onnx_data input, made;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_emit_number(node, NULL, CS_OP_DIV, &input, 1.0, true, &made));
  cs_onnx_give(node, &made);
  return CS_OK;
}

/* x · tanh(softplus(x)) */
cs_status cs_onnx_mish(cs_onnx_node *node) {
  cs_onnx_data input, gate;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_SOFTPLUS, NULL, &input, NULL, &gate));
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_TANH, NULL, &gate, NULL, &gate));
  const cs_onnx_data factors[2] = {input, gate};
  return cs_onnx_become(node, CS_OP_MUL, NULL, factors, 2);
}

/* x / (1 + |x|) */
cs_status cs_onnx_softsign(cs_onnx_node *node) {
  cs_onnx_data input, size;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_ABS, NULL, &input, NULL, &size));
  CS_RETURN_IF_ERROR(
      cs_onnx_emit_number(node, cs_op_name(CS_OP_ADD), CS_OP_ADD, &size, 1.0, false, &size));
  const cs_onnx_data parts[2] = {input, size};
  return cs_onnx_become(node, CS_OP_DIV, NULL, parts, 2);
}

/* ---- Reductions of sizes and squares ---- */

cs_status cs_onnx_reduce_norm(cs_onnx_node *node) {
  const char *name = node->proto->op_type;
  bool root = strcmp(name, "ReduceL2") == 0, first = strcmp(name, "ReduceL1") == 0, there;
  cs_onnx_data input, made;
  cs_attrs attrs = {0};
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_read_reduce(node, 18, input.shape.rank, &attrs.reduce));
  if (node->refused) return CS_OK;
  if (attrs.reduce.n_axes < 0) {
    return cs_onnx_refuse(node, "found no axes and noop_with_empty_axes, wanted axes");
  }
  if (first) {
    CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_ABS, NULL, &input, NULL, &made));
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_MUL, NULL, &input, &input, &made));
  }
  if (!root) return cs_onnx_become(node, CS_OP_REDUCE_SUM, &attrs, &made, 1);
  CS_RETURN_IF_ERROR(cs_onnx_step(node, CS_OP_REDUCE_SUM, &attrs, &made, NULL, &made));
  return cs_onnx_become(node, CS_OP_SQRT, NULL, &made, 1);
}
