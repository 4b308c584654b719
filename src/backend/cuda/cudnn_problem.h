/* A convolution as cuDNN sees it, made from Conv, ConvTranspose (as backward data) or Gemm (as a
 * 1×1 convolution over [N, C, 1, 1]). Pure data. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_PROBLEM_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_PROBLEM_H_

#include <cudnn.h>

#include "graph/op.h"

typedef struct cs_cudnn_tensor { /* logical NCHW (filters: KCRS) extents, strides in elements */
  int64_t dims[4], strides[4];
  int64_t alignment; /* bytes */
} cs_cudnn_tensor;

typedef struct cs_cudnn_problem {
  bool backward_data;       /* ConvTranspose: `input` is the gradient's, `output` the data's side */
  cs_cudnn_tensor input;    /* what the operation reads */
  cs_cudnn_tensor filter;   /* [K, C/g, R, S] of the forward convolution */
  cs_cudnn_tensor output;   /* what the operation writes */
  cs_cudnn_tensor residual; /* read where has_residual */
  bool filter_krsc;         /* channels innermost in the filter */
  bool preferred_layout;    /* the one that the precision's engines are written for */
  cudnnDataType_t data_type; /* of input, filter, output, residual */
  int64_t pre_pads[2], post_pads[2], strides[2], dilations[2];
  int64_t groups;
  bool has_bias, has_residual;
  cs_activation activation;
  cs_precision precision;
} cs_cudnn_problem;

/* False: not a convolution that cuDNN can express (another operator; a ConvTranspose whose
 * output_padding makes it no backward-data problem; a blocked layout). */
bool cs_cudnn_problem_make(const cs_op_desc *desc, cs_cudnn_problem *out);
/* The same without bias, residual and activation. */
cs_cudnn_problem cs_cudnn_problem_bare(const cs_cudnn_problem *problem);
bool cs_cudnn_problem_has_epilogue(const cs_cudnn_problem *problem);
/* cuDNN's kernels write NHWC outputs densely: for a channel slice it copies the slice out before
 * and back after the convolution. True where `problem` has such an output; then *out is the same
 * problem with a dense one, which some other kernel has to move to its place. */
bool cs_cudnn_problem_dense(const cs_cudnn_problem *problem, cs_cudnn_problem *out);
/* Bytes of a dense output. */
int64_t cs_cudnn_problem_output_bytes(const cs_cudnn_problem *problem);

cudnnDataType_t cs_cudnn_data_type(cs_dtype dtype);

#endif
