/* A ConvTranspose of an input of one pixel: every output is a product of its own, so all outputs of
 * an image are a dense layer, in the order in which they lie in memory. */
#ifndef CONVSCHED_BACKEND_CUDA_DENSE_LAYER_H_
#define CONVSCHED_BACKEND_CUDA_DENSE_LAYER_H_

#include "graph/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The same as a Gemm with filters · height · width outputs. False: the input has more than a pixel,
 * or an image's outputs are not one row. */
bool cs_dense_layer(const cs_op_desc *desc, cs_op_desc *gemm);
/* Its weights and, where there is one, its bias, made from desc's: [output][channel], then
 * [output]. free() releases. */
cs_status cs_dense_layer_weights(const cs_op_desc *desc, const float *weight, const float *bias,
                                 float **out_weight, const float **out_bias) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
