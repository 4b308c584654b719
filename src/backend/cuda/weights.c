#include <stdlib.h>
#include <string.h>

#include "backend/cuda/columns_exec.h"
#include "backend/cuda/dense_layer.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/winograd_exec.h"

#define BIAS_ALIGNMENT 256

void cs_exec_plan_weights(cs_exec *exec) {
  exec->bias_offset = -1;
  if (exec->kind == CS_EXEC_KERNEL) {
    exec->weight_bytes = cs_cuda_kernel_weight_bytes(&exec->kernel, &exec->desc);
    return;
  }
  if (exec->kind == CS_EXEC_COLUMNS || exec->kind == CS_EXEC_SCATTER) {
    cs_columns_plan_weights(exec);
    return;
  }
  if (exec->kind == CS_EXEC_WINOGRAD) {
    cs_winograd_plan_weights(exec);
    return;
  }
  cs_dtype storage = exec->desc.output.dtype;
  if (exec->kind == CS_EXEC_CUBLASLT) {
    exec->bias_dtype = storage;
    exec->bias_offset = cs_cublaslt_bias_offset(&exec->product);
    exec->weight_bytes = cs_cublaslt_weight_bytes(&exec->product);
    return;
  }
  bool bias = exec->epilogue ? exec->desc.has_bias : cs_cudnn_graph_has_bias(&exec->problem);
  exec->bias_dtype = exec->epilogue ? CS_DTYPE_F32 : storage;
  exec->weight_bytes = cs_op_weight_elements(&exec->desc) * cs_dtype_size(storage);
  if (!bias) return;
  exec->bias_offset = cs_round_up(exec->weight_bytes, BIAS_ALIGNMENT);
  exec->weight_bytes =
      exec->bias_offset + exec->problem.output.dims[1] * cs_dtype_size(exec->bias_dtype);
}

static void store(cs_dtype dtype, void *out, int64_t index, float value) {
  switch (dtype) {
    case CS_DTYPE_F32:
      ((float *)out)[index] = value;
      break;
    case CS_DTYPE_F16:
      ((uint16_t *)out)[index] = cs_f32_to_f16(value);
      break;
    case CS_DTYPE_BF16:
      ((uint16_t *)out)[index] = cs_f32_to_bf16(value);
      break;
  }
}

/* Rows of W, padded to whole vectors; a MatMul's constant as it is. */
static void pack_matrix(const cs_exec *exec, const float *weight, void *host_out) {
  for (int64_t i = 0; exec->product.matmul && i < exec->product.constant; i++) {
    store(exec->product.storage, host_out, i, weight[i]);
  }
  if (exec->product.matmul) return;
  const cs_cublaslt_matrix *a = &exec->product.a;
  for (int64_t row = 0; row < a->columns; row++) {
    for (int64_t i = 0; i < a->rows; i++) {
      store(exec->product.storage, host_out, row * a->pitch + i, *weight++);
    }
  }
}

/* A product's weights, then its bias in the storage type. */
static void pack_product(const cs_exec *exec, const float *weight, const float *bias,
                         void *host_out) {
  pack_matrix(exec, weight, host_out);
  for (int64_t i = 0; exec->bias_offset >= 0 && bias && i < exec->product.m; i++) {
    store(exec->bias_dtype, (char *)host_out + exec->bias_offset, i, bias[i]);
  }
}

/* The same of what is a dense layer by another name. */
static cs_status pack_dense(const cs_exec *exec, const float *weight, const float *bias,
                            void *host_out) {
  float *own_weight = NULL;
  const float *own_bias = NULL;
  CS_RETURN_IF_ERROR(cs_dense_layer_weights(&exec->desc, weight, bias, &own_weight, &own_bias));
  pack_product(exec, own_weight, own_bias, host_out);
  free(own_weight);
  return CS_OK;
}

static void pack_filter(const cs_exec *exec, const float *weight, void *host_out) {
  cs_dtype storage = exec->desc.output.dtype;
  const int64_t *d = exec->problem.filter.dims, *s = exec->problem.filter.strides;
  for (int64_t k = 0; k < d[0]; k++) {
    for (int64_t c = 0; c < d[1]; c++) {
      for (int64_t y = 0; y < d[2]; y++) {
        for (int64_t x = 0; x < d[3]; x++) {
          store(storage, host_out, k * s[0] + c * s[1] + y * s[2] + x * s[3], *weight++);
        }
      }
    }
  }
}

cs_status cs_exec_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                               void *host_out) {
  if (exec->kind == CS_EXEC_KERNEL) {
    return cs_cuda_kernel_pack_weights(&exec->kernel, &exec->desc, weight, bias, host_out);
  }
  if (exec->weight_bytes == 0) return CS_OK; /* a MatMul of two inputs */
  if (!weight || (exec->desc.has_bias && !bias)) {
    return cs_error(CS_CODE_INTERNAL, "%s needs weights%s", exec->id,
                    exec->desc.has_bias ? " and a bias" : "");
  }
  if (exec->kind == CS_EXEC_COLUMNS || exec->kind == CS_EXEC_SCATTER) {
    cs_columns_pack(exec, weight, bias, host_out);
    return CS_OK;
  }
  if (exec->kind == CS_EXEC_WINOGRAD) {
    cs_winograd_pack(&exec->winograd, weight, exec->desc.has_bias ? bias : NULL, host_out);
    return CS_OK;
  }
  memset(host_out, 0, (size_t)exec->weight_bytes);
  if (exec->kind == CS_EXEC_CUBLASLT) {
    if (exec->desc.op == CS_OP_CONV_TRANSPOSE) return pack_dense(exec, weight, bias, host_out);
    pack_product(exec, weight, bias, host_out);
    return CS_OK;
  }
  pack_filter(exec, weight, host_out);
  if (exec->bias_offset < 0 || !bias) return CS_OK;
  char *bias_out = (char *)host_out + exec->bias_offset;
  for (int64_t k = 0; k < exec->problem.output.dims[1]; k++) {
    store(exec->bias_dtype, bias_out, k, bias[k]);
  }
  return CS_OK;
}
