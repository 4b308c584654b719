/* MatMul of two factors that the network computes, or of one and a constant that is no layer's
 * matrix. */
#include "onnx/import.h"

bool cs_onnx_is_layer(const cs_onnx_node *node) {
  const cs_onnx_value *a = cs_onnx_input(node, 0), *b = cs_onnx_input(node, 1);
  if (!a || !b || a->kind != CS_ONNX_DATA || b->kind != CS_ONNX_CONSTANT) return false;
  int rank = a->data.shape.rank;
  return rank >= 2 && rank <= 4 && b->data.shape.rank == 2 && !node->import->model->as_written;
}

/* A factor of a MatMul: a tensor, or a constant; a vector is a matrix of one row or one column. */
typedef struct matmul_factor {
  const cs_onnx_value *constant; /* NULL: data */
  cs_onnx_data data;
  cs_shape shape; /* of the matrices */
  bool is_vector;
} matmul_factor;

/* *there: it is known, and has elements. */
static cs_status read_factor(cs_onnx_node *node, size_t i, matmul_factor *out, bool *there) {
  cs_onnx_value *value = cs_onnx_input(node, i);
  *out = (matmul_factor){0};
  if (value && value->kind == CS_ONNX_CONSTANT) {
    CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, i, false, &value));
    out->constant = value;
    *there = value != NULL;
    if (value) out->shape = value->data.shape;
  } else {
    CS_RETURN_IF_ERROR(cs_onnx_data_in(node, i, &out->data, there));
    out->shape = out->data.shape;
  }
  if (!*there || node->refused) return CS_OK;
  if (out->shape.rank < 1 || cs_onnx_count(&out->shape) == 0) {
    char text[CS_TEXT_SIZE];
    return cs_onnx_refuse(node, "input %zu: found shape %s, wanted a vector or matrices", i,
                          cs_shape_text(&out->shape, text));
  }
  out->is_vector = out->shape.rank == 1;
  if (!out->is_vector) return CS_OK;
  int64_t extent = out->shape.dims[0];
  out->shape = i == 0 ? (cs_shape){2, {1, extent}} : (cs_shape){2, {extent, 1}};
  if (out->constant) return CS_OK;
  const cs_attrs reshape = {.reshape = out->shape};
  return cs_onnx_emit(node, "Reshape", CS_OP_RESHAPE, &reshape, &out->data, 1, &out->data);
}

/* Without the axes that vectors were given. */
static cs_shape without_vectors(const cs_shape *made, bool no_rows, bool no_columns) {
  cs_shape out = {0};
  for (int i = 0; i < made->rank; i++) {
    bool dropped = (i == made->rank - 2 && no_rows) || (i == made->rank - 1 && no_columns);
    if (!dropped) out.dims[out.rank++] = made->dims[i];
  }
  return out;
}

/* At most one of the two is a constant, which becomes the weight. */
static cs_status emit_matmul(cs_onnx_node *node, const matmul_factor *a, const matmul_factor *b) {
  const cs_onnx_value *constant = a->constant ? a->constant : b->constant;
  const cs_onnx_data inputs[2] = {a->constant ? b->data : a->data, b->data};
  cs_attrs attrs = {0};
  cs_onnx_data made;
  if (constant) attrs.binary.operand = a->constant ? a->shape : b->shape;
  attrs.binary.operand_first = a->constant != NULL;
  bool vector = a->is_vector || b->is_vector;
  if (a->is_vector && b->is_vector) {
    return cs_onnx_refuse(node, "found two vectors, wanted a result of one axis or more");
  }
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, vector ? cs_op_name(CS_OP_MATMUL) : NULL, CS_OP_MATMUL,
                                  &attrs, inputs, constant ? 1 : 2, &made));
  if (constant) {
    const cs_onnx_param param = {.scale = 1.0, .count = cs_onnx_count(&attrs.binary.operand)};
    CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &made, "weight", constant, param));
  }
  if (!vector || node->refused) {
    cs_onnx_give(node, &made);
    return CS_OK;
  }
  const cs_shape flat = without_vectors(&made.shape, a->is_vector, b->is_vector);
  return cs_onnx_as_shape(node, &made, &flat);
}

cs_status cs_onnx_product(cs_onnx_node *node) {
  const cs_onnx_value *left = cs_onnx_input(node, 0), *right = cs_onnx_input(node, 1);
  matmul_factor a, b;
  bool there_a, there_b;
  if (left && right && left->kind == CS_ONNX_CONSTANT && right->kind == CS_ONNX_CONSTANT) {
    return cs_onnx_refuse(node, "found 2 constants, wanted a tensor that the network computes");
  }
  CS_RETURN_IF_ERROR(read_factor(node, 0, &a, &there_a));
  CS_RETURN_IF_ERROR(read_factor(node, 1, &b, &there_b));
  if (!there_a || !there_b || node->refused) return CS_OK;
  return emit_matmul(node, &a, &b);
}
