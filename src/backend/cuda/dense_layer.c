#include "backend/cuda/dense_layer.h"

#include <stdlib.h>

static bool strides_are(const cs_tensor_desc *tensor, int64_t c, int64_t h, int64_t w) {
  return tensor->strides[1] == c && tensor->strides[2] == h && tensor->strides[3] == w;
}

static bool channels_last(const cs_op_desc *desc) {
  int64_t filters = desc->attrs.conv.out_channels;
  return strides_are(&desc->output, 1, desc->output.shape.dims[3] * filters, filters);
}

bool cs_dense_layer(const cs_op_desc *desc, cs_op_desc *gemm) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  const cs_tensor_desc *x = &desc->inputs[0], *y = &desc->output;
  if (desc->op != CS_OP_CONV_TRANSPOSE || conv->group != 1 || desc->has_residual ||
      y->shape.rank != 4 || x->shape.dims[2] != 1 || x->shape.dims[3] != 1) {
    return false;
  }
  int64_t height = y->shape.dims[2], width = y->shape.dims[3];
  bool whole = height == conv->kernel[0] && width == conv->kernel[1] && conv->pads[0] == 0 &&
               conv->pads[1] == 0 && conv->dilations[0] == 1 && conv->dilations[1] == 1;
  if (!whole || !(channels_last(desc) || strides_are(y, height * width, width, 1))) return false;
  *gemm = *desc;
  gemm->op = CS_OP_GEMM;
  gemm->attrs.gemm =
      (cs_gemm_attrs){.out_features = conv->out_channels * height * width, .bias = desc->has_bias};
  gemm->inputs[0].shape.rank = gemm->output.shape.rank = 2;
  gemm->output.shape.dims[1] = gemm->attrs.gemm.out_features;
  gemm->output.strides[1] = 1;
  return true;
}

cs_status cs_dense_layer_weights(const cs_op_desc *desc, const float *weight, const float *bias,
                                 float **out_weight, const float **out_bias) {
  int64_t filters = desc->attrs.conv.out_channels, channels = desc->inputs[0].shape.dims[1];
  int64_t taps = desc->attrs.conv.kernel[0] * desc->attrs.conv.kernel[1], outputs = filters * taps;
  bool last = channels_last(desc);
  size_t bytes = (size_t)(outputs * (channels + 1)) * sizeof(float);
  float *own = cs_calloc(1, bytes);
  *out_weight = own;
  *out_bias = NULL;
  if (!own) return cs_no_memory("weights", bytes);
  float *own_bias = own + outputs * channels;
  for (int64_t o = 0; o < outputs; o++) {
    int64_t filter = last ? o % filters : o / taps, tap = last ? o / filters : o % taps;
    if (bias) own_bias[o] = bias[filter];
    for (int64_t c = 0; c < channels; c++) {
      own[o * channels + c] = weight[(c * filters + filter) * taps + tap];
    }
  }
  if (bias) *out_bias = own_bias;
  return CS_OK;
}
