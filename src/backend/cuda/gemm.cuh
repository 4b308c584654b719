/* What the kernels of dense layers share (gemm.cu, gemm_ladder.cu). */
#ifndef CONVSCHED_BACKEND_CUDA_GEMM_CUH_
#define CONVSCHED_BACKEND_CUDA_GEMM_CUH_

#include "backend/cuda/kernel_util.cuh"

struct GemmParams {
  const void *x, *w, *residual;
  const float *bias;
  void *y;
  int64_t batch;
  int in, out, w_row; /* w_row: elements between rows of W */
  int64_t x_row, x_col, y_row, y_col, residual_row, residual_col;
  Activation act;
};

/* OUT: the type of y where it is not that of the factors. */
template <typename T, typename OUT = T>
__device__ __forceinline__ void gemm_store(const GemmParams &p, int64_t row, int column,
                                           float sum) {
  float v[1] = {sum};
  if (p.bias != nullptr) v[0] += p.bias[column];
  if (p.residual != nullptr)
    v[0] += Convert<T>::from(
        static_cast<const T *>(p.residual)[row * p.residual_row + column * p.residual_col]);
  activate<1>(p.act, v);
  static_cast<OUT *>(p.y)[row * p.y_row + column * p.y_col] = Convert<OUT>::to(v[0]);
}

/* Of an operation that cs_gemm_family takes, with weights packed as it does: rows of W, padded to
 * 16 elements with zeros. */
GemmParams gemm_params(const cs_op_desc *desc, const void *const *inputs, const void *weights,
                       void *output);
bool gemm_takes(const cs_op_desc *desc);

#endif
