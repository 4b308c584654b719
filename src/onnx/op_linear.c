/* Gemm and MatMul; Add and its kin (with constants: a bias, or an affine map). */
#include <math.h>
#include <string.h>

#include "onnx/import.h"

/* ---- Gemm ---- */

/* A vector of `features`, [1, features], or one number. */
static bool is_vector(const cs_shape *shape, int64_t features) {
  int64_t count = cs_onnx_count(shape);
  if (count == 1) return true;
  return count == features && shape->rank >= 1 && shape->dims[shape->rank - 1] == features;
}

/* beta times a constant that is no vector: one for each image, or such. */
static cs_status add_matrix(cs_onnx_node *node, const cs_onnx_value *matrix, double beta,
                            cs_onnx_data *data) {
  const cs_attrs attrs = {.binary = {.operand = matrix->data.shape}};
  const cs_onnx_data product = *data;
  const cs_onnx_param param = {.scale = beta, .count = cs_onnx_count(&matrix->data.shape)};
  if (node->refused) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, NULL, CS_OP_ADD, &attrs, &product, 1, data));
  return cs_onnx_add_param(node, data, "weight", matrix, param);
}

/* y = alpha · x · W + beta · c; `transposed`: the constant is Wᵀ. */
static cs_status emit_gemm(cs_onnx_node *node, const cs_onnx_data *input,
                           const cs_onnx_value *weight, bool transposed, const cs_onnx_value *bias,
                           double alpha, double beta) {
  const cs_shape *shape = &weight->data.shape;
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  bool fits = shape->rank == 2 && input->shape.rank == 2 &&
              shape->dims[transposed ? 1 : 0] == input->shape.dims[1];
  int64_t features = fits ? shape->dims[transposed ? 0 : 1] : 0;
  if (features < 1 || features > CS_MAX_EXTENT) {
    return cs_onnx_refuse(node, "found shapes %s and %s%s, wanted [N, in] and a matrix that fits",
                          cs_shape_text(&input->shape, a), cs_shape_text(shape, b),
                          transposed ? " (transposed)" : "");
  }
  bool vector = bias && is_vector(&bias->data.shape, features);
  const char *suffix = bias && !vector ? cs_op_name(CS_OP_GEMM) : NULL;
  cs_attrs attrs = {.gemm = {.out_features = features, .bias = vector}};
  cs_onnx_data data;
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, CS_OP_GEMM, &attrs, input, 1, &data));
  cs_onnx_param param = {.transposed = !transposed, .scale = alpha, .count = cs_onnx_count(shape)};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "weight", weight, param));
  param = (cs_onnx_param){.scale = beta, .count = features};
  if (vector) CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &data, "bias", bias, param));
  if (suffix) CS_RETURN_IF_ERROR(add_matrix(node, bias, beta, &data));
  cs_onnx_give(node, &data);
  return CS_OK;
}

/* A matrix with its axes the other way round; refused where the batch is symbolic. */
static cs_status turn(cs_onnx_node *node, cs_onnx_data *data) {
  const cs_attrs attrs = {.transpose = {.perm = {1, 0}, .n_perm = 2}};
  const cs_onnx_data input = *data;
  if (input.shape.rank != 2) return cs_onnx_refuse(node, "transA: found %d axes", input.shape.rank);
  return cs_onnx_emit(node, cs_op_name(CS_OP_TRANSPOSE), CS_OP_TRANSPOSE, &attrs, &input, 1, data);
}

cs_status cs_onnx_gemm(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_onnx_value *weight, *bias;
  double alpha, beta;
  int64_t transposed, turned;
  bool there;
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "transA", 0, &turned));
  CS_RETURN_IF_ERROR(cs_onnx_int(node, "transB", 0, &transposed));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "alpha", 1.0, &alpha));
  CS_RETURN_IF_ERROR(cs_onnx_real(node, "beta", 1.0, &beta));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &weight));
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 2, true, &bias));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || !weight) return CS_OK;
  if (turned) CS_RETURN_IF_ERROR(turn(node, &input));
  if (node->refused) return CS_OK;
  return emit_gemm(node, &input, weight, transposed != 0, bias, alpha, beta);
}

/* The last of three or four axes times a matrix: a 1×1 convolution, whose channels are that axis
 * meanwhile. */
static cs_status emit_matmul_of_images(cs_onnx_node *node, const cs_onnx_data *input,
                                       const cs_onnx_value *weight) {
  const cs_shape *matrix = &weight->data.shape;
  const int64_t *dims = input->shape.dims;
  bool deep = input->shape.rank == 4;
  int64_t in = dims[input->shape.rank - 1];
  char a[CS_TEXT_SIZE], b[CS_TEXT_SIZE];
  if (matrix->rank != 2 || matrix->dims[0] != in || matrix->dims[1] < 1 ||
      matrix->dims[1] > CS_MAX_EXTENT) {
    return cs_onnx_refuse(node, "found shapes %s and %s, wanted a matrix that fits the last axis",
                          cs_shape_text(&input->shape, a), cs_shape_text(matrix, b));
  }
  cs_attrs there = {.transpose = {.perm = {0, 3, 1, 2}, .n_perm = 4}};
  cs_attrs back = {.transpose = {.perm = {0, 2, 3, 1}, .n_perm = 4}};
  cs_attrs wide = {.reshape = {4, {dims[0], dims[1], 1, in}}};
  cs_attrs conv = {.conv = {.out_channels = matrix->dims[1],
                            .group = 1,
                            .kernel = {1, 1},
                            .strides = {1, 1},
                            .dilations = {1, 1}}};
  cs_onnx_data x = *input;
  if (!deep) CS_RETURN_IF_ERROR(cs_onnx_emit(node, "Reshape", CS_OP_RESHAPE, &wide, &x, 1, &x));
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, "Transpose", CS_OP_TRANSPOSE, &there, &x, 1, &x));
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, "Conv", CS_OP_CONV, &conv, &x, 1, &x));
  const cs_onnx_param param = {.transposed = true, .scale = 1.0, .count = cs_onnx_count(matrix)};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &x, "weight", weight, param));
  if (deep) return cs_onnx_become(node, CS_OP_TRANSPOSE, &back, &x, 1);
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, "Transpose", CS_OP_TRANSPOSE, &back, &x, 1, &x));
  const cs_shape flat = {3, {dims[0], dims[1], matrix->dims[1]}};
  return cs_onnx_as_shape(node, &x, &flat);
}

cs_status cs_onnx_matmul(cs_onnx_node *node) {
  cs_onnx_data input;
  cs_onnx_value *weight;
  bool there;
  if (!cs_onnx_is_layer(node)) return cs_onnx_product(node);
  CS_RETURN_IF_ERROR(cs_onnx_constant_in(node, 1, false, &weight));
  CS_RETURN_IF_ERROR(cs_onnx_data_in(node, 0, &input, &there));
  if (!there || !weight) return CS_OK;
  bool images = input.shape.rank == 3 || input.shape.rank == 4;
  if (images && !node->refused) return emit_matmul_of_images(node, &input, weight);
  return emit_gemm(node, &input, weight, false, NULL, 1.0, 1.0);
}

/* ---- Add, Sub, Mul, Div, Pow, PRelu ---- */

/* Whether a constant is one number, or one per channel of [N, C] or [N, C, H, W]. ONNX lines axes
 * up from the last one. */
static bool is_per_channel(const cs_shape *constant, const cs_shape *input) {
  if (cs_onnx_count(constant) == 1) return constant->rank <= input->rank;
  if (constant->rank > input->rank) return false;
  for (int i = 0; i < constant->rank; i++) {
    int axis = input->rank - constant->rank + i;
    if (constant->dims[i] != (axis == 1 ? input->dims[1] : 1)) return false;
  }
  return true;
}

/* A layer without a bias that is read by this node alone takes scale × constant for one. It keeps
 * its name. */
static cs_status take_as_bias(cs_onnx_node *node, const cs_onnx_value *layer,
                              const cs_onnx_value *constant, double scale, bool *taken) {
  *taken = false;
  if (layer->data.source < 0 || layer->readers != 1) return CS_OK;
  cs_onnx_draft *draft = &node->import->drafts[layer->data.source];
  bool *bias = NULL;
  if (draft->op == CS_OP_GEMM) bias = &draft->attrs.gemm.bias;
  if (draft->op == CS_OP_CONV || draft->op == CS_OP_CONV_TRANSPOSE) bias = &draft->attrs.conv.bias;
  if (!bias || *bias) return CS_OK;
  *taken = *bias = true;
  cs_onnx_param param = {.scale = scale, .count = draft->shape.dims[1]};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, &layer->data, "bias", constant, param));
  cs_onnx_give(node, &layer->data);
  return CS_OK;
}

/* y = weight · x + bias per channel; NULL: 1 or 0; each times its scale. */
typedef struct affine_map {
  const cs_onnx_value *weight, *bias;
  double weight_scale, bias_scale;
} affine_map;

/* It is a BatchNormalization of mean 0 and variance 1. */
static cs_status put_affine(cs_onnx_node *node, const char *suffix, const cs_onnx_data *data,
                            const affine_map *map, cs_onnx_data *out) {
  const cs_attrs attrs = {.batch_norm = {.epsilon = 0.0}};
  const cs_onnx_data input = *data; /* *out may be the same */
  if (input.shape.rank != 2 && input.shape.rank != 4) {
    return cs_onnx_refuse(node, "found a constant and a tensor of %d axes, wanted 2 or 4 axes",
                          input.shape.rank);
  }
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, CS_OP_BATCH_NORM, &attrs, &input, 1, out));
  int64_t channels = input.shape.dims[1];
  double scale = map->weight_scale;
  cs_onnx_param param = {.scale = scale, .fill = scale, .count = channels};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, out, "weight", map->weight, param));
  param = (cs_onnx_param){.scale = map->bias_scale, .count = channels};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, out, "bias", map->bias, param));
  param = (cs_onnx_param){.scale = 1.0, .count = channels};
  CS_RETURN_IF_ERROR(cs_onnx_add_param(node, out, "running_mean", NULL, param));
  param.fill = 1.0;
  return cs_onnx_add_param(node, out, "running_var", NULL, param);
}

cs_status cs_onnx_emit_affine(cs_onnx_node *node, const char *suffix, const cs_onnx_data *input,
                              const cs_onnx_value *weight, const cs_onnx_value *bias,
                              cs_onnx_data *out) {
  const affine_map map = {weight, bias, 1.0, 1.0};
  return put_affine(node, suffix, input, &map, out);
}

static cs_status emit_affine(cs_onnx_node *node, const cs_onnx_data *input,
                             const cs_onnx_value *weight, double weight_scale,
                             const cs_onnx_value *bias, double bias_scale) {
  const affine_map map = {weight, bias, weight_scale, bias_scale};
  cs_onnx_data data = {.source = CS_ONNX_NOWHERE};
  CS_RETURN_IF_ERROR(put_affine(node, NULL, input, &map, &data));
  cs_onnx_give(node, &data);
  return CS_OK;
}

/* *out: the only element of a constant. */
static cs_status only_number(cs_onnx_node *node, cs_onnx_value *constant, double *out) {
  const cs_onnx_item *items;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, constant, &items));
  *out = !items || items[0].times_n               ? 0.0
         : cs_onnx_dtype_is_real(constant->dtype) ? items[0].real
                                                  : (double)items[0].whole;
  return CS_OK;
}

/* Can it be an affine map per channel, or a bias? */
static bool is_affine(const char *op, const cs_onnx_data *data) {
  bool linear = strcmp(op, "Add") == 0 || strcmp(op, "Sub") == 0 || strcmp(op, "Mul") == 0 ||
                strcmp(op, "Div") == 0;
  return linear && (data->shape.rank == 2 || data->shape.rank == 4);
}

/* x · x rounds once, and needs no constant. */
static bool is_square(cs_op op, const cs_onnx_data *data, const cs_onnx_value *constant,
                      const cs_onnx_item *items) {
  if (op != CS_OP_POW || !items || cs_onnx_count(&constant->data.shape) != 1) return false;
  if (items[0].times_n || constant->data.shape.rank > data->shape.rank) return false;
  bool real = cs_onnx_dtype_is_real(constant->dtype);
  return real ? items[0].real == 2.0 : items[0].whole == 2;
}

cs_status cs_onnx_emit_operand(cs_onnx_node *node, const char *suffix, cs_op op,
                               const cs_onnx_data *data, const cs_onnx_value *constant,
                               bool constant_first, cs_onnx_data *out) {
  cs_attrs attrs = {.binary = {.operand = constant->data.shape, .operand_first = constant_first}};
  cs_shape *operand = &attrs.binary.operand;
  const cs_onnx_data input = *data; /* *out may be the same */
  *out = (cs_onnx_data){.source = CS_ONNX_NOWHERE};
  if (operand->rank == 0) *operand = (cs_shape){1, {1}};
  if (cs_onnx_count(operand) < 1) {
    return cs_onnx_refuse(node, "input (\"%.80s\"): found a constant without elements",
                          constant->name);
  }
  CS_RETURN_IF_ERROR(cs_onnx_emit(node, suffix, op, &attrs, &input, 1, out));
  cs_onnx_param param = {.scale = 1.0, .count = cs_onnx_count(operand)};
  return cs_onnx_add_param(node, out, "weight", constant, param);
}

/* The constant becomes the node's weight. */
static cs_status with_operand(cs_onnx_node *node, const cs_onnx_value *data,
                              cs_onnx_value *constant, bool constant_first) {
  const cs_onnx_item *items;
  cs_onnx_data made;
  cs_op op;
  if (!cs_op_parse(node->proto->op_type, &op)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, constant, &items));
  if (!constant_first && !node->import->model->as_written &&
      is_square(op, &data->data, constant, items)) {
    const cs_onnx_data twice[2] = {data->data, data->data};
    return cs_onnx_become(node, CS_OP_MUL, NULL, twice, 2);
  }
  CS_RETURN_IF_ERROR(
      cs_onnx_emit_operand(node, NULL, op, &data->data, constant, constant_first, &made));
  cs_onnx_give(node, &made);
  return CS_OK;
}

/* Of numbers that are few enough to be read: an affine map of an infinite one gives NaN where the
 * operator alone gives none. */
static cs_status is_finite(cs_onnx_node *node, cs_onnx_value *constant, bool *out) {
  const cs_onnx_item *items;
  *out = true;
  CS_RETURN_IF_ERROR(cs_onnx_items(node->import, constant, &items));
  for (int64_t i = 0; items && i < cs_onnx_count(&constant->data.shape); i++) {
    *out = *out && isfinite((float)items[i].real);
  }
  return CS_OK;
}

static cs_status with_constant(cs_onnx_node *node, const cs_onnx_value *data,
                               cs_onnx_value *constant, bool constant_first) {
  const char *op = node->proto->op_type;
  bool taken = false;
  bool mapped = !node->import->model->as_written &&
                is_per_channel(&constant->data.shape, &data->data.shape) &&
                is_affine(op, &data->data);
  if (mapped) CS_RETURN_IF_ERROR(is_finite(node, constant, &mapped));
  if (!mapped) return with_operand(node, data, constant, constant_first);
  if (strcmp(op, "Mul") == 0) return emit_affine(node, &data->data, constant, 1.0, NULL, 0.0);
  if (strcmp(op, "Div") == 0) {
    double divisor = 0.0;
    if (cs_onnx_count(&constant->data.shape) == 1) {
      CS_RETURN_IF_ERROR(only_number(node, constant, &divisor));
    }
    bool invertible = divisor != 0.0 && isfinite((float)(1.0 / divisor));
    if (constant_first || !invertible) return with_operand(node, data, constant, constant_first);
    return emit_affine(node, &data->data, NULL, 1.0 / divisor, NULL, 0.0);
  }
  bool subtract = strcmp(op, "Sub") == 0;
  double of_constant = subtract && !constant_first ? -1.0 : 1.0;
  double of_data = subtract && constant_first ? -1.0 : 1.0;
  if (of_data == 1.0) {
    CS_RETURN_IF_ERROR(take_as_bias(node, data, constant, of_constant, &taken));
  }
  if (taken) return CS_OK;
  return emit_affine(node, &data->data, NULL, of_data, constant, of_constant);
}

cs_status cs_onnx_binary(cs_onnx_node *node) {
  cs_onnx_data inputs[2];
  const char *op = node->proto->op_type;
  /* Until opset 6 broadcasting was asked for; opset 7 has it always. */
  for (size_t i = 0; i < 2; i++) {
    cs_onnx_value *constant = cs_onnx_input(node, i), *data = cs_onnx_input(node, 1 - i);
    if (!constant || !data)
      return cs_onnx_refuse(node, "input %zu: found none", constant ? 1 - i : i);
    if (constant->kind != CS_ONNX_CONSTANT) continue;
    if (data->kind != CS_ONNX_DATA) return CS_OK;
    return with_constant(node, data, constant, i == 0);
  }
  for (size_t i = 0; i < 2; i++) {
    bool there;
    CS_RETURN_IF_ERROR(cs_onnx_data_in(node, i, &inputs[i], &there));
    if (!there) return CS_OK;
  }
  cs_op ours;
  return cs_op_parse(op, &ours) ? cs_onnx_become(node, ours, NULL, inputs, 2) : CS_OK;
}
