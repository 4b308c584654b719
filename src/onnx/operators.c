/* The table of ONNX operators that are imported; docs/onnx.md is its text. */
#include <limits.h>
#include <string.h>

#include "onnx/import.h"

#define WINDOW "auto_pad kernel_shape pads strides "
#define REDUCE "keepdims axes:-17 #1:18- noop_with_empty_axes:18-"

static const cs_onnx_operator operators[] = {
    {"Abs", cs_onnx_unary, 1, 1, ""},
    {"Add", cs_onnx_binary, 2, 2, ""},
    {"AveragePool", cs_onnx_pool, 1, 1, WINDOW "dilations:19- ceil_mode:10- count_include_pad"},
    {"BatchNormalization", cs_onnx_batch_norm, 5, 5,
     "epsilon momentum spatial:-8 training_mode:14-"},
    {"Cast", cs_onnx_cast, 1, 1, "to saturate:19- round_mode:19-"},
    {"Ceil", NULL, 1, 1, ""},
    {"Clip", cs_onnx_clip, 1, 3, "min:-10 max:-10 #1:11- #2:11-"},
    {"Concat", cs_onnx_concat, 1, INT_MAX, "axis"},
    {"Constant", NULL, 0, 0, "value value_float:12- value_floats:12- value_int:12- value_ints:12-"},
    {"ConstantOfShape", NULL, 1, 1, "value *:9-"},
    {"Conv", cs_onnx_conv, 2, 3, WINDOW "dilations group"},
    {"ConvTranspose", cs_onnx_conv_transpose, 2, 3,
     WINDOW "dilations group output_padding output_shape"},
    {"DepthToSpace", cs_onnx_depth_to_space, 1, 1, "blocksize mode:11-"},
    {"Div", cs_onnx_binary, 2, 2, ""},
    {"Dropout", cs_onnx_dropout, 1, 3, "ratio:-11 seed:12- #1:12- #2:12-"},
    {"Elu", cs_onnx_unary, 1, 1, "alpha"},
    {"Erf", cs_onnx_unary, 1, 1, "*:9-"},
    {"Exp", cs_onnx_unary, 1, 1, ""},
    {"Expand", cs_onnx_expand, 2, 2, "*:8-"},
    {"Flatten", cs_onnx_flatten, 1, 1, "axis"},
    {"Floor", NULL, 1, 1, ""},
    {"Gather", cs_onnx_gather, 2, 2, "axis"},
    {"Gelu", cs_onnx_gelu, 1, 1, "approximate *:20-"},
    {"Gemm", cs_onnx_gemm, 2, 3, "alpha beta transA transB"},
    {"GlobalAveragePool", cs_onnx_global_pool, 1, 1, ""},
    {"GlobalMaxPool", cs_onnx_global_pool, 1, 1, ""},
    {"GroupNormalization", cs_onnx_group_norm, 3, 3, "epsilon num_groups stash_type:21- *:18-"},
    {"HardSigmoid", cs_onnx_unary, 1, 1, "alpha beta"},
    {"HardSwish", cs_onnx_unary, 1, 1, "*:14-"},
    {"Identity", cs_onnx_identity, 1, 1, ""},
    {"InstanceNormalization", cs_onnx_instance_norm, 3, 3, "epsilon"},
    {"LRN", cs_onnx_lrn, 1, 1, "alpha beta bias size"},
    {"LayerNormalization", cs_onnx_layer_norm, 2, 3, "axis epsilon stash_type *:17-"},
    {"LeakyRelu", cs_onnx_unary, 1, 1, "alpha"},
    {"MatMul", cs_onnx_matmul, 2, 2, ""},
    {"Max", cs_onnx_nary, 1, INT_MAX, ""},
    {"MaxPool", cs_onnx_pool, 1, 1, WINDOW "dilations:10- ceil_mode:10- storage_order:8-"},
    {"Mean", cs_onnx_nary, 1, INT_MAX, ""},
    {"Min", cs_onnx_nary, 1, INT_MAX, ""},
    {"Mish", cs_onnx_mish, 1, 1, "*:18-"},
    {"Mul", cs_onnx_binary, 2, 2, ""},
    {"Neg", cs_onnx_unary, 1, 1, ""},
    {"PRelu", cs_onnx_binary, 2, 2, ""},
    {"Pad", cs_onnx_pad, 1, 4, "mode pads:-10 value:-10 #1:11- #2:11- #3:18-"},
    {"Pow", cs_onnx_binary, 2, 2, ""},
    {"Reciprocal", cs_onnx_reciprocal, 1, 1, ""},
    {"ReduceL1", cs_onnx_reduce_norm, 1, 2, REDUCE},
    {"ReduceL2", cs_onnx_reduce_norm, 1, 2, REDUCE},
    {"ReduceMax", cs_onnx_reduce, 1, 2, REDUCE},
    {"ReduceMean", cs_onnx_reduce, 1, 2, REDUCE},
    {"ReduceMin", cs_onnx_reduce, 1, 2, REDUCE},
    {"ReduceProd", NULL, 1, 2, REDUCE},
    {"ReduceSum", cs_onnx_reduce, 1, 2, "keepdims axes:-12 #1:13- noop_with_empty_axes:13-"},
    {"ReduceSumSquare", cs_onnx_reduce_norm, 1, 2, REDUCE},
    {"Relu", cs_onnx_unary, 1, 1, ""},
    {"Reshape", cs_onnx_reshape, 2, 2, "allowzero:14-"},
    {"Resize", cs_onnx_resize, 1, 4,
     "mode antialias:18- axes:18- coordinate_transformation_mode:11- cubic_coeff_a:11- "
     "exclude_outside:11- extrapolation_value:11- keep_aspect_ratio_policy:18- nearest_mode:11- "
     "#2:11- #3:11- *:10-"},
    {"Selu", cs_onnx_unary, 1, 1, "alpha gamma"},
    {"Shape", NULL, 1, 1, "start:15- end:15-"},
    {"Sigmoid", cs_onnx_unary, 1, 1, ""},
    {"Size", NULL, 1, 1, ""},
    {"Slice", cs_onnx_slice, 1, 5, "starts:-9 ends:-9 axes:-9 #1:10- #2:10- #3:10- #4:10-"},
    {"Softmax", cs_onnx_softmax, 1, 1, "axis"},
    {"Softplus", cs_onnx_unary, 1, 1, ""},
    {"Softsign", cs_onnx_softsign, 1, 1, ""},
    {"SpaceToDepth", cs_onnx_space_to_depth, 1, 1, "blocksize"},
    {"Split", cs_onnx_split, 1, 2, "axis split:-12 num_outputs:18- #1:13-"},
    {"Sqrt", cs_onnx_unary, 1, 1, ""},
    {"Squeeze", cs_onnx_squeeze, 1, 2, "axes:-12 #1:13-"},
    {"Sub", cs_onnx_binary, 2, 2, ""},
    {"Sum", cs_onnx_nary, 1, INT_MAX, ""},
    {"Swish", cs_onnx_unary, 1, 1, "alpha *:24-"},
    {"Tanh", cs_onnx_unary, 1, 1, ""},
    {"Tile", cs_onnx_tile, 2, 2, ""},
    {"Transpose", cs_onnx_transpose, 1, 1, "perm"},
    {"Unsqueeze", cs_onnx_unsqueeze, 1, 2, "axes:-12 #1:13-"},
    {"Upsample", cs_onnx_upsample, 1, 2, "mode scales:-8 #1:9- *:-9"},
};

const cs_onnx_operator *cs_onnx_operator_of(const char *name) {
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
    if (strcmp(operators[i].name, name) == 0) return &operators[i];
  }
  return NULL;
}
