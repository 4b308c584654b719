/* The table of ONNX operators that are imported; docs/onnx.md is its text. */
#include <limits.h>
#include <string.h>

#include "onnx/import.h"

#define WINDOW "auto_pad kernel_shape pads strides dilations"

static const cs_onnx_operator operators[] = {
    {"Abs", cs_onnx_unary, 1, 1, ""},
    {"Add", cs_onnx_binary, 2, 2, ""},
    {"AveragePool", cs_onnx_pool, 1, 1, WINDOW " ceil_mode count_include_pad"},
    {"BatchNormalization", cs_onnx_batch_norm, 5, 5, "epsilon momentum spatial training_mode"},
    {"Cast", cs_onnx_cast, 1, 1, "to saturate round_mode"},
    {"Ceil", NULL, 1, 1, ""},
    {"Clip", cs_onnx_clip, 1, 3, "min max"},
    {"Concat", cs_onnx_concat, 1, INT_MAX, "axis"},
    {"Constant", NULL, 0, 0, "value value_float value_floats value_int value_ints"},
    {"ConstantOfShape", NULL, 1, 1, "value"},
    {"Conv", cs_onnx_conv, 2, 3, WINDOW " group"},
    {"ConvTranspose", cs_onnx_conv_transpose, 2, 3, WINDOW " group output_padding output_shape"},
    {"DepthToSpace", cs_onnx_depth_to_space, 1, 1, "blocksize mode"},
    {"Div", cs_onnx_binary, 2, 2, ""},
    {"Dropout", cs_onnx_dropout, 1, 3, "ratio seed"},
    {"Elu", cs_onnx_unary, 1, 1, "alpha"},
    {"Erf", cs_onnx_unary, 1, 1, ""},
    {"Exp", cs_onnx_unary, 1, 1, ""},
    {"Expand", cs_onnx_expand, 2, 2, ""},
    {"Flatten", cs_onnx_flatten, 1, 1, "axis"},
    {"Floor", NULL, 1, 1, ""},
    {"Gather", cs_onnx_gather, 2, 2, "axis"},
    {"Gelu", cs_onnx_gelu, 1, 1, "approximate"},
    {"Gemm", cs_onnx_gemm, 2, 3, "alpha beta transA transB"},
    {"GlobalAveragePool", cs_onnx_global_pool, 1, 1, ""},
    {"GlobalMaxPool", cs_onnx_global_pool, 1, 1, ""},
    {"HardSigmoid", cs_onnx_unary, 1, 1, "alpha beta"},
    {"HardSwish", cs_onnx_unary, 1, 1, ""},
    {"Identity", cs_onnx_identity, 1, 1, ""},
    {"InstanceNormalization", cs_onnx_instance_norm, 3, 3, "epsilon"},
    {"LRN", cs_onnx_lrn, 1, 1, "alpha beta bias size"},
    {"LayerNormalization", cs_onnx_layer_norm, 2, 3, "axis epsilon stash_type"},
    {"LeakyRelu", cs_onnx_unary, 1, 1, "alpha"},
    {"MatMul", cs_onnx_matmul, 2, 2, ""},
    {"Max", cs_onnx_nary, 1, INT_MAX, ""},
    {"MaxPool", cs_onnx_pool, 1, 1, WINDOW " ceil_mode storage_order"},
    {"Mean", cs_onnx_nary, 1, INT_MAX, ""},
    {"Min", cs_onnx_nary, 1, INT_MAX, ""},
    {"Mul", cs_onnx_binary, 2, 2, ""},
    {"Neg", cs_onnx_unary, 1, 1, ""},
    {"PRelu", cs_onnx_binary, 2, 2, ""},
    {"Pad", cs_onnx_pad, 1, 4, "mode pads value"},
    {"Pow", cs_onnx_binary, 2, 2, ""},
    {"ReduceMax", cs_onnx_reduce, 1, 2, "axes keepdims noop_with_empty_axes"},
    {"ReduceMean", cs_onnx_reduce, 1, 2, "axes keepdims noop_with_empty_axes"},
    {"ReduceMin", cs_onnx_reduce, 1, 2, "axes keepdims noop_with_empty_axes"},
    {"ReduceSum", cs_onnx_reduce, 1, 2, "axes keepdims noop_with_empty_axes"},
    {"Relu", cs_onnx_unary, 1, 1, ""},
    {"Reshape", cs_onnx_reshape, 2, 2, "allowzero"},
    {"Resize", cs_onnx_resize, 1, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"Selu", cs_onnx_unary, 1, 1, "alpha gamma"},
    {"Shape", NULL, 1, 1, "start end"},
    {"Sigmoid", cs_onnx_unary, 1, 1, ""},
    {"Size", NULL, 1, 1, ""},
    {"Slice", cs_onnx_slice, 1, 5, "starts ends axes"},
    {"Softmax", cs_onnx_softmax, 1, 1, "axis"},
    {"Softplus", cs_onnx_unary, 1, 1, ""},
    {"SpaceToDepth", cs_onnx_space_to_depth, 1, 1, "blocksize"},
    {"Split", cs_onnx_split, 1, 2, "axis split num_outputs"},
    {"Sqrt", cs_onnx_unary, 1, 1, ""},
    {"Squeeze", cs_onnx_squeeze, 1, 2, "axes"},
    {"Sub", cs_onnx_binary, 2, 2, ""},
    {"Sum", cs_onnx_nary, 1, INT_MAX, ""},
    {"Swish", cs_onnx_unary, 1, 1, "alpha"},
    {"Tanh", cs_onnx_unary, 1, 1, ""},
    {"Tile", cs_onnx_tile, 2, 2, ""},
    {"Transpose", cs_onnx_transpose, 1, 1, "perm"},
    {"Unsqueeze", cs_onnx_unsqueeze, 1, 2, "axes"},
    {"Upsample", cs_onnx_upsample, 1, 2, "mode scales"},
};

const cs_onnx_operator *cs_onnx_operator_of(const char *name) {
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
    if (strcmp(operators[i].name, name) == 0) return &operators[i];
  }
  return NULL;
}
