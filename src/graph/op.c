/* The operator table and the names of operators, activations, types and layouts. */
#include "graph/op.h"

#include <string.h>

#include "graph/op_family.h"

static const struct {
  const char *name;
  const cs_op_family *family;
} operators[CS_OP_COUNT] = {
    [CS_OP_CONV] = {"Conv", &cs_family_conv},
    [CS_OP_CONV_TRANSPOSE] = {"ConvTranspose", &cs_family_conv_transpose},
    [CS_OP_GEMM] = {"Gemm", &cs_family_gemm},
    [CS_OP_MATMUL] = {"MatMul", &cs_family_matmul},
    [CS_OP_BATCH_NORM] = {"BatchNormalization", &cs_family_batch_norm},
    [CS_OP_RELU] = {"Relu", &cs_family_unary},
    [CS_OP_LEAKY_RELU] = {"LeakyRelu", &cs_family_unary},
    [CS_OP_CLIP] = {"Clip", &cs_family_unary},
    [CS_OP_SIGMOID] = {"Sigmoid", &cs_family_unary},
    [CS_OP_TANH] = {"Tanh", &cs_family_unary},
    [CS_OP_ADD] = {"Add", &cs_family_binary},
    [CS_OP_MUL] = {"Mul", &cs_family_binary},
    [CS_OP_SUB] = {"Sub", &cs_family_binary},
    [CS_OP_DIV] = {"Div", &cs_family_binary},
    [CS_OP_MAX] = {"Max", &cs_family_binary},
    [CS_OP_MIN] = {"Min", &cs_family_binary},
    [CS_OP_POW] = {"Pow", &cs_family_binary},
    [CS_OP_PRELU] = {"PRelu", &cs_family_binary},
    [CS_OP_ELU] = {"Elu", &cs_family_unary},
    [CS_OP_SELU] = {"Selu", &cs_family_unary},
    [CS_OP_HARD_SIGMOID] = {"HardSigmoid", &cs_family_unary},
    [CS_OP_HARD_SWISH] = {"HardSwish", &cs_family_unary},
    [CS_OP_SWISH] = {"Swish", &cs_family_unary},
    [CS_OP_SQRT] = {"Sqrt", &cs_family_unary},
    [CS_OP_ABS] = {"Abs", &cs_family_unary},
    [CS_OP_NEG] = {"Neg", &cs_family_unary},
    [CS_OP_EXP] = {"Exp", &cs_family_unary},
    [CS_OP_SOFTPLUS] = {"Softplus", &cs_family_unary},
    [CS_OP_ERF] = {"Erf", &cs_family_unary},
    [CS_OP_GELU] = {"Gelu", &cs_family_unary},
    [CS_OP_MAX_POOL] = {"MaxPool", &cs_family_pool},
    [CS_OP_AVERAGE_POOL] = {"AveragePool", &cs_family_pool},
    [CS_OP_GLOBAL_AVERAGE_POOL] = {"GlobalAveragePool", &cs_family_global_pool},
    [CS_OP_GLOBAL_MAX_POOL] = {"GlobalMaxPool", &cs_family_global_pool},
    [CS_OP_REDUCE_MEAN] = {"ReduceMean", &cs_family_reduce},
    [CS_OP_REDUCE_SUM] = {"ReduceSum", &cs_family_reduce},
    [CS_OP_REDUCE_MAX] = {"ReduceMax", &cs_family_reduce},
    [CS_OP_REDUCE_MIN] = {"ReduceMin", &cs_family_reduce},
    [CS_OP_INSTANCE_NORM] = {"InstanceNormalization", &cs_family_instance_norm},
    [CS_OP_LRN] = {"LRN", &cs_family_lrn},
    [CS_OP_SOFTMAX] = {"Softmax", &cs_family_softmax},
    [CS_OP_CONCAT] = {"Concat", &cs_family_concat},
    [CS_OP_FLATTEN] = {"Flatten", &cs_family_flatten},
    [CS_OP_PAD] = {"Pad", &cs_family_pad},
    [CS_OP_RESHAPE] = {"Reshape", &cs_family_reshape},
    [CS_OP_TRANSPOSE] = {"Transpose", &cs_family_transpose},
    [CS_OP_SLICE] = {"Slice", &cs_family_slice},
    [CS_OP_RESIZE] = {"Resize", &cs_family_resize},
    [CS_OP_IDENTITY] = {"Identity", &cs_family_identity},
    [CS_OP_DROPOUT] = {"Dropout", &cs_family_identity},
    [CS_OP_COPY] = {"Copy", &cs_family_copy},
};

const char *cs_op_name(cs_op op) {
  return operators[op].name;
}

const cs_op_family *cs_op_family_of(cs_op op) {
  return operators[op].family;
}

bool cs_op_parse(const char *name, cs_op *out) {
  for (int op = 0; op < CS_OP_COUNT; op++) {
    if (op == CS_OP_COPY || strcmp(operators[op].name, name) != 0) continue;
    *out = (cs_op)op;
    return true;
  }
  return false;
}

static const struct {
  const char *name;
  int params;
} acts[] = {[CS_ACT_NONE] = {"none", 0},
            [CS_ACT_RELU] = {"relu", 0},
            [CS_ACT_LEAKY_RELU] = {"leaky_relu", 1},
            [CS_ACT_CLIP] = {"clip", 2},
            [CS_ACT_SIGMOID] = {"sigmoid", 0},
            [CS_ACT_TANH] = {"tanh", 0},
            [CS_ACT_ELU] = {"elu", 1},
            [CS_ACT_HARD_SIGMOID] = {"hard_sigmoid", 2},
            [CS_ACT_HARD_SWISH] = {"hard_swish", 0},
            [CS_ACT_SWISH] = {"swish", 1},
            [CS_ACT_SELU] = {"selu", 2},
            [CS_ACT_SQRT] = {"sqrt", 0},
            [CS_ACT_ABS] = {"abs", 0},
            [CS_ACT_NEG] = {"neg", 0},
            [CS_ACT_EXP] = {"exp", 0},
            [CS_ACT_SOFTPLUS] = {"softplus", 0},
            [CS_ACT_ERF] = {"erf", 0},
            [CS_ACT_GELU] = {"gelu", 0}};

const char *cs_act_name(cs_act_kind kind) {
  return acts[kind].name;
}

int cs_act_params(cs_act_kind kind) {
  return acts[kind].params;
}

bool cs_act_fuses(cs_act_kind kind) {
  return kind != CS_ACT_NONE && kind <= CS_ACT_SWISH;
}

int64_t cs_dtype_size(cs_dtype dtype) {
  return dtype == CS_DTYPE_F32 ? 4 : 2;
}

const char *cs_dtype_name(cs_dtype dtype) {
  static const char *const names[] = {
      [CS_DTYPE_F32] = "f32", [CS_DTYPE_F16] = "f16", [CS_DTYPE_BF16] = "bf16"};
  return names[dtype];
}

cs_dtype cs_precision_storage(cs_precision precision) {
  switch (precision) {
    case CS_PRECISION_F16:
      return CS_DTYPE_F16;
    case CS_PRECISION_BF16:
      return CS_DTYPE_BF16;
    case CS_PRECISION_F32:
    case CS_PRECISION_TF32:
      break;
  }
  return CS_DTYPE_F32;
}

static const struct {
  const char *name;
  int64_t granule;
} layouts[CS_LAYOUT_COUNT] = {
    [CS_LAYOUT_NCHW] = {"nchw", 1},
    [CS_LAYOUT_NHWC] = {"nhwc", 1},
    [CS_LAYOUT_NCHW16C] = {"nchw16c", 16},
    [CS_LAYOUT_NCHW8C] = {"nchw8c", 8},
};

const char *cs_layout_name(cs_layout layout) {
  return layouts[layout].name;
}

int64_t cs_layout_granule(cs_layout layout) {
  return layouts[layout].granule;
}

bool cs_layout_parse(const char *name, cs_layout *out) {
  for (int layout = 0; layout < CS_LAYOUT_COUNT; layout++) {
    if (strcmp(layouts[layout].name, name) != 0) continue;
    *out = (cs_layout)layout;
    return true;
  }
  return false;
}
