#include "backend/cuda/cudnn_problem.h"

#include <string.h>

cudnnDataType_t cs_cudnn_data_type(cs_dtype dtype) {
  switch (dtype) {
    case CS_DTYPE_F16:
      return CUDNN_DATA_HALF;
    case CS_DTYPE_BF16:
      return CUDNN_DATA_BFLOAT16;
    case CS_DTYPE_F32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

static cs_cudnn_tensor tensor_from_desc(const cs_tensor_desc *desc) {
  /* No vector access is wider than 16 bytes, and signatures make no finer difference. */
  cs_cudnn_tensor t = {.alignment = cs_min_i64(desc->alignment, 16)};
  for (int i = 0; i < 4; i++) {
    t.dims[i] = i < desc->shape.rank ? desc->shape.dims[i] : 1;
    t.strides[i] = desc->strides[i];
  }
  /* A matrix is an image of one pixel with its channels innermost. */
  for (int i = desc->shape.rank; i < 4; i++) t.strides[i] = t.dims[1] * t.strides[1];
  return t;
}

static cs_cudnn_tensor filter_dense(const cs_shape *shape, bool krsc) {
  cs_cudnn_tensor t = {.alignment = 256};
  for (int i = 0; i < 4; i++) t.dims[i] = i < shape->rank ? shape->dims[i] : 1;
  const int64_t *d = t.dims;
  if (krsc) {
    t.strides[1] = 1;
    t.strides[3] = d[1];
    t.strides[2] = d[1] * d[3];
  } else {
    t.strides[3] = 1;
    t.strides[2] = d[3];
    t.strides[1] = d[2] * d[3];
  }
  t.strides[0] = d[1] * d[2] * d[3];
  return t;
}

/* Backward data needs the forward convolution of `output` to have exactly `input`'s extents. */
static bool is_backward_data(const cs_op_desc *desc) {
  const cs_conv_attrs *a = &desc->attrs.conv;
  for (int i = 0; i < 2; i++) {
    int64_t extent = cs_window_extent(desc->output.shape.dims[2 + i], a->kernel[i], a->strides[i],
                                      a->dilations[i], a->pads[i], a->pads[2 + i], false);
    if (extent != desc->inputs[0].shape.dims[2 + i]) return false;
  }
  return true;
}

bool cs_cudnn_problem_make(const cs_op_desc *desc, cs_cudnn_problem *out) {
  memset(out, 0, sizeof(*out));
  bool gemm = desc->op == CS_OP_GEMM;
  if (!gemm && desc->op != CS_OP_CONV && desc->op != CS_OP_CONV_TRANSPOSE) return false;
  if (desc->has_prologue) return false;
  int rank = gemm ? 2 : 4;
  int n_inputs = desc->has_residual ? 2 : 1;
  if (desc->n_inputs != n_inputs || desc->output.shape.rank != rank) return false;
  for (int i = 0; i < n_inputs; i++) {
    const cs_tensor_desc *t = &desc->inputs[i];
    if (t->shape.rank != rank || t->dtype != desc->output.dtype) return false;
    if (cs_layout_granule(t->layout) != 1) return false;
  }
  if (cs_layout_granule(desc->output.layout) != 1) return false;
  if (desc->op == CS_OP_CONV_TRANSPOSE && !is_backward_data(desc)) return false;

  out->backward_data = desc->op == CS_OP_CONV_TRANSPOSE;
  out->filter_krsc = gemm || desc->inputs[0].layout == CS_LAYOUT_NHWC;
  out->preferred_layout = gemm || out->filter_krsc == (desc->precision != CS_PRECISION_F32);
  out->input = tensor_from_desc(&desc->inputs[0]);
  out->output = tensor_from_desc(&desc->output);
  if (desc->has_residual) out->residual = tensor_from_desc(&desc->inputs[1]);
  cs_shape weight = cs_op_weight_shape(desc);
  out->filter = filter_dense(&weight, out->filter_krsc);
  out->data_type = cs_cudnn_data_type(desc->output.dtype);
  out->groups = gemm ? 1 : desc->attrs.conv.group;
  for (int i = 0; i < 2; i++) {
    out->pre_pads[i] = gemm ? 0 : desc->attrs.conv.pads[i];
    out->post_pads[i] = gemm ? 0 : desc->attrs.conv.pads[2 + i];
    out->strides[i] = gemm ? 1 : desc->attrs.conv.strides[i];
    out->dilations[i] = gemm ? 1 : desc->attrs.conv.dilations[i];
  }
  out->has_bias = desc->has_bias;
  out->has_residual = desc->has_residual;
  out->activation = desc->activation;
  out->precision = desc->precision;
  return true;
}

cs_cudnn_problem cs_cudnn_problem_bare(const cs_cudnn_problem *problem) {
  cs_cudnn_problem bare = *problem;
  bare.has_bias = bare.has_residual = false;
  bare.activation = (cs_activation){.kind = CS_ACT_NONE};
  return bare;
}

bool cs_cudnn_problem_dense(const cs_cudnn_problem *problem, cs_cudnn_problem *out) {
  cs_cudnn_tensor *t = &out->output;
  *out = *problem;
  if (t->strides[1] != 1 || t->dims[1] == 1) return false;
  t->strides[3] = t->dims[1];
  t->strides[2] = t->dims[3] * t->strides[3];
  t->strides[0] = t->dims[2] * t->strides[2];
  t->alignment = 16;
  for (int i = 0; i < 4; i++) {
    if (t->dims[i] > 1 && t->strides[i] != problem->output.strides[i]) return true;
  }
  return false;
}

int64_t cs_cudnn_problem_output_bytes(const cs_cudnn_problem *problem) {
  const int64_t *d = problem->output.dims;
  int64_t element = problem->data_type == CUDNN_DATA_FLOAT ? 4 : 2;
  return d[0] * d[1] * d[2] * d[3] * element;
}

bool cs_cudnn_problem_has_epilogue(const cs_cudnn_problem *problem) {
  return problem->has_bias || problem->has_residual || problem->activation.kind != CS_ACT_NONE;
}
