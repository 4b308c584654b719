/* Sum, Mean, Max, Min of any number of inputs: chains of operators of two. */
#include <string.h>

#include "onnx/import.h"

static cs_op pair_op(const char *name) {
  if (strcmp(name, "Max") == 0) return CS_OP_MAX;
  return strcmp(name, "Min") == 0 ? CS_OP_MIN : CS_OP_ADD;
}

/* The first input that the network computes; n: none, or one that is behind a refused node. */
static cs_status first_data(cs_onnx_node *node, size_t *first) {
  size_t n = node->proto->n_input;
  *first = n;
  for (size_t i = 0; i < n; i++) {
    const cs_onnx_value *input = cs_onnx_input(node, i);
    if (!input) return cs_onnx_refuse(node, "input %zu: found none, wanted a tensor", i);
    if (input->kind == CS_ONNX_UNKNOWN) {
      *first = n;
      return CS_OK;
    }
    if (input->kind == CS_ONNX_DATA && *first == n) *first = i;
  }
  if (*first < n) return CS_OK;
  return cs_onnx_refuse(node, "found %zu constants, wanted what the network computes", n);
}

/* The last one of the chain has the node's name. */
cs_status cs_onnx_nary(cs_onnx_node *node) {
  const char *name = node->proto->op_type;
  size_t n = node->proto->n_input, first, left = n - 1;
  bool mean = strcmp(name, "Mean") == 0;
  cs_op op = pair_op(name);
  if (node->import->model->as_written && n == 2 && op != CS_OP_ADD) return cs_onnx_binary(node);
  CS_RETURN_IF_ERROR(first_data(node, &first));
  if (first == n) return CS_OK;
  cs_onnx_data made = cs_onnx_input(node, first)->data;
  if (n == 1) return cs_onnx_become(node, CS_OP_IDENTITY, NULL, &made, 1);
  for (size_t i = 0; i < n && !node->refused; i++) {
    if (i == first) continue;
    const cs_onnx_value *input = cs_onnx_input(node, i);
    const char *suffix = --left > 0 || mean ? cs_op_name(op) : NULL;
    cs_onnx_data pair[2] = {made, input->data};
    if (input->kind == CS_ONNX_DATA) {
      CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, op, NULL, pair, 2, &made));
    } else {
      CS_RETURN_IF_ERROR(cs_onnx_emit_operand(node, suffix, op, &pair[0], input, false, &made));
    }
  }
  if (mean && !node->refused) {
    CS_RETURN_IF_ERROR(
        cs_onnx_emit_number(node, NULL, CS_OP_MUL, &made, 1.0 / (double)n, false, &made));
  }
  cs_onnx_give(node, &made);
  return CS_OK;
}
