#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"

cs_status cs_cuda_reference(cs_backend *backend, const cs_op_desc *desc, const void *const *inputs,
                            const float *weight, const float *bias, double *value,
                            double *magnitude) {
  cs_status st = CS_OK;
  void *device_weight = NULL, *device_bias = NULL, *results = NULL;
  int64_t n = 0, n_weight = weight ? cs_op_weight_elements(desc) : 0;
  int64_t n_bias = bias ? cs_op_bias_elements(desc) : 0;
  const int64_t size = (int64_t)sizeof(double);
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->output.shape, &n));
  if (n_weight) {
    CS_TRY(st, cs_cuda_allocate(backend, n_weight * 4, &device_weight), done);
    CS_TRY(st, cs_cuda_upload(backend, device_weight, weight, n_weight * 4), done);
  }
  if (n_bias) {
    CS_TRY(st, cs_cuda_allocate(backend, n_bias * 4, &device_bias), done);
    CS_TRY(st, cs_cuda_upload(backend, device_bias, bias, n_bias * 4), done);
  }
  CS_TRY(st, cs_cuda_allocate(backend, 2 * n * size, &results), done);
  double *device_value = results, *device_magnitude = device_value + n;
  cudaStream_t stream;
  CS_TRY(st, cs_cuda_stream(cs_cuda(backend), 0, false, &stream), done);
  CS_TRY(st,
         cs_cuda_reference_launch(desc, inputs, device_weight, device_bias, device_value,
                                  device_magnitude, stream),
         done);
  CS_TRY(st, cs_cuda_status(cudaStreamSynchronize(stream), "running the reference"), done);
  CS_TRY(st, cs_cuda_download(backend, value, device_value, n * size), done);
  if (magnitude) CS_TRY(st, cs_cuda_download(backend, magnitude, device_magnitude, n * size), done);
done:
  cs_cuda_release(backend, device_weight);
  cs_cuda_release(backend, device_bias);
  cs_cuda_release(backend, results);
  return st;
}
