/* How an operation is told to oneDNN 2.x: shared by the two files that speak to it. */
#ifndef CONVSCHED_BACKEND_CPU_DNN_H_
#define CONVSCHED_BACKEND_CPU_DNN_H_

#include <oneapi/dnnl/dnnl.h>

#include "backend/cpu/cpu.h"

/* X: where an argument of a primitive comes from. */
typedef enum dnn_source {
  DNN_FROM_INPUT0,
  DNN_FROM_INPUT1,
  DNN_FROM_INPUT2,
  DNN_FROM_OUTPUT,
  DNN_FROM_WEIGHTS, /* at the start of the packed weights */
  DNN_FROM_BIAS,    /* behind the weights */
  DNN_FROM_MEAN,    /* BatchNormalization: zeros, then ones */
  DNN_FROM_VARIANCE,
  DNN_FROM_SCRATCHPAD
} dnn_source;

#define DNN_MAX_ARGS 7
typedef struct dnn_arg {
  int arg; /* DNNL_ARG_* */
  dnn_source source;
  dnnl_memory_desc_t md;
} dnn_arg;

/* An operation descriptor with its attributes and arguments. `weights` of Conv, ConvTranspose and
 * Gemm has format any: its argument is filled in from the primitive descriptor. */
typedef struct dnn_description {
  union {
    dnnl_convolution_desc_t conv;
    dnnl_deconvolution_desc_t deconv;
    dnnl_inner_product_desc_t inner_product;
    dnnl_matmul_desc_t matmul;
    dnnl_pooling_v2_desc_t pool;
    dnnl_lrn_desc_t lrn;
    dnnl_eltwise_desc_t eltwise;
    dnnl_binary_desc_t binary;
    dnnl_softmax_desc_t softmax;
    dnnl_batch_normalization_desc_t batch_norm;
  } op;
  bool is_reorder;
  dnnl_primitive_attr_t attr;
  dnn_arg args[DNN_MAX_ARGS];
  int n_args;
  bool has_weights;                 /* a weight array that must be reordered */
  dnnl_memory_desc_t plain_weights; /* PyTorch's layout */
  int64_t bias_elements;
} dnn_description;

/* false: oneDNN has no such operation (not an error). Attributes are to be destroyed. */
bool dnn_describe(const cs_op_desc *desc, bool winograd, dnn_description *out);
void dnn_description_clear(dnn_description *description);

cs_status dnn_status(dnnl_status_t status, const char *what) CS_MUST_USE;

#endif
