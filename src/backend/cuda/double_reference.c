#include <stdlib.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"

/* Weight and bias as f32 arrays on the device; NULL where there is none. */
typedef struct device_params {
  void *weight, *bias;
} device_params;

static void release_params(cs_backend *backend, device_params *params) {
  cs_cuda_release(backend, params->weight);
  cs_cuda_release(backend, params->bias);
}

static cs_status upload_array(cs_backend *backend, const float *array, int64_t n, void **out) {
  if (!array || n == 0) return CS_OK;
  const int64_t bytes = n * (int64_t)sizeof *array;
  CS_RETURN_IF_ERROR(cs_cuda_allocate(backend, bytes, out));
  return cs_cuda_upload(backend, *out, array, bytes);
}

/* release_params() releases what there is of them, also after an error. */
static cs_status upload_params(cs_backend *backend, const cs_op_desc *desc, const float *weight,
                               const float *bias, device_params *out) {
  CS_RETURN_IF_ERROR(upload_array(backend, weight, cs_op_weight_elements(desc), &out->weight));
  return upload_array(backend, bias, cs_op_bias_elements(desc), &out->bias);
}

cs_status cs_cuda_reference(cs_backend *backend, const cs_op_desc *desc, const void *const *inputs,
                            const float *weight, const float *bias, double *value,
                            double *magnitude) {
  cs_status st = CS_OK;
  device_params params = {0};
  void *results = NULL;
  int64_t n = 0;
  const int64_t size = (int64_t)sizeof(double);
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->output.shape, &n));
  CS_TRY(st, upload_params(backend, desc, weight, bias, &params), done);
  CS_TRY(st, cs_cuda_allocate(backend, 2 * n * size, &results), done);
  double *device_value = results, *device_magnitude = device_value + n;
  cudaStream_t stream;
  CS_TRY(st, cs_cuda_stream(cs_cuda(backend), 0, false, &stream), done);
  CS_TRY(st,
         cs_cuda_reference_launch(desc, inputs, params.weight, params.bias, device_value,
                                  device_magnitude, stream),
         done);
  CS_TRY(st, cs_cuda_status(cudaStreamSynchronize(stream), "running the reference"), done);
  CS_TRY(st, cs_cuda_download(backend, value, device_value, n * size), done);
  if (magnitude) CS_TRY(st, cs_cuda_download(backend, magnitude, device_magnitude, n * size), done);
done:
  release_params(backend, &params);
  cs_cuda_release(backend, results);
  return st;
}

cs_status cs_cuda_reference_error(cs_backend *backend, const cs_op_desc *desc,
                                  const void *const *inputs, const float *weight, const float *bias,
                                  const void *output, cs_error_measure *out) {
  cs_status st = CS_OK;
  device_params params = {0};
  void *device_sums = NULL;
  const int64_t bytes = CS_CUDA_ERROR_SUMS * (int64_t)sizeof(cs_error_sums);
  cs_error_sums *sums = cs_calloc(1, (size_t)bytes), whole = cs_no_error();
  int n = 0;
  if (!sums) return cs_no_memory("the sums of an error", (size_t)bytes);
  CS_TRY(st, upload_params(backend, desc, weight, bias, &params), done);
  CS_TRY(st, cs_cuda_allocate(backend, bytes, &device_sums), done);
  cudaStream_t stream;
  CS_TRY(st, cs_cuda_stream(cs_cuda(backend), 0, false, &stream), done);
  CS_TRY(st,
         cs_cuda_reference_error_launch(desc, inputs, params.weight, params.bias, output,
                                        device_sums, &n, stream),
         done);
  CS_TRY(st, cs_cuda_status(cudaStreamSynchronize(stream), "running the reference"), done);
  CS_TRY(st, cs_cuda_download(backend, sums, device_sums, n * (int64_t)sizeof *sums), done);
  for (int i = 0; i < n; i++) cs_error_merge(&whole, &sums[i]);
  *out = cs_error_of(&whole);
done:
  release_params(backend, &params);
  cs_cuda_release(backend, device_sums);
  free(sums);
  return st;
}

/* ---- Kept to compare with ---- */

struct cs_expected {
  cs_backend *backend;
  cs_op_desc desc;
  int n;
  int64_t elements;          /* of one output */
  void *memory;              /* of the device; all that follows */
  double *value, *magnitude; /* [n × elements] */
  cs_error_sums *scratch;
  cs_cuda_compared *compared; /* [n] */
};

static cs_status allocate_expected(cs_expected *e) {
  const int64_t reference = 2 * e->n * e->elements * (int64_t)sizeof(double);
  const int64_t scratch = CS_CUDA_COMPARE_SUMS * (int64_t)sizeof *e->scratch;
  CS_RETURN_IF_ERROR(cs_cuda_allocate(
      e->backend, reference + scratch + e->n * (int64_t)sizeof *e->compared, &e->memory));
  e->value = e->memory;
  e->magnitude = e->value + e->n * e->elements;
  e->scratch = (cs_error_sums *)(e->magnitude + e->n * e->elements);
  e->compared = (cs_cuda_compared *)(e->scratch + CS_CUDA_COMPARE_SUMS);
  return CS_OK;
}

static cs_status fill_expected(cs_expected *e, const void *const *inputs, const float *weight,
                               const float *bias) {
  cs_status st = CS_OK;
  device_params params = {0};
  cudaStream_t stream;
  CS_TRY(st, upload_params(e->backend, &e->desc, weight, bias, &params), done);
  CS_TRY(st, cs_cuda_stream(cs_cuda(e->backend), 0, false, &stream), done);
  for (int i = 0; i < e->n; i++) {
    CS_TRY(st,
           cs_cuda_reference_launch(&e->desc, inputs + i * e->desc.n_inputs, params.weight,
                                    params.bias, e->value + i * e->elements,
                                    e->magnitude + i * e->elements, stream),
           done);
  }
  st = cs_cuda_status(cudaStreamSynchronize(stream), "running the reference");
done:
  release_params(e->backend, &params);
  return st;
}

cs_status cs_cuda_expected_create(cs_backend *backend, const cs_op_desc *desc,
                                  const void *const *inputs, int n, const float *weight,
                                  const float *bias, cs_expected **out) {
  cs_status st = CS_OK;
  *out = NULL;
  if (n < 1 || n > CS_MAX_EXPECTED) {
    return cs_error(CS_CODE_INTERNAL, "found %d operations to compare with, wanted 1 to %d", n,
                    CS_MAX_EXPECTED);
  }
  cs_expected *e = cs_calloc(1, sizeof *e);
  if (!e) return cs_no_memory("a reference", sizeof *e);
  e->backend = backend;
  e->desc = *desc;
  e->n = n;
  CS_TRY(st, cs_shape_elements(&desc->output.shape, &e->elements), done);
  CS_TRY(st, allocate_expected(e), done);
  CS_TRY(st, fill_expected(e, inputs, weight, bias), done);
  *out = e;
  e = NULL;
done:
  cs_cuda_expected_destroy(e);
  return st;
}

void cs_cuda_expected_destroy(cs_expected *e) {
  if (!e) return;
  cs_cuda_release(e->backend, e->memory);
  free(e);
}

cs_status cs_cuda_expected_compare(cs_expected *e, const void *const *outputs, int gap_byte,
                                   cs_compared *out) {
  cs_cuda_compared found[CS_MAX_EXPECTED];
  cudaStream_t stream;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(e->backend)));
  CS_RETURN_IF_ERROR(cs_cuda_stream(cs_cuda(e->backend), 0, false, &stream));
  for (int i = 0; i < e->n; i++) {
    CS_RETURN_IF_ERROR(cs_cuda_compare_launch(
        &e->desc.output, outputs[i], e->value + i * e->elements, e->magnitude + i * e->elements,
        gap_byte, e->scratch, &e->compared[i], stream));
  }
  /* On the same stream, so behind them. */
  CS_RETURN_IF_ERROR(
      cs_cuda_download(e->backend, found, e->compared, e->n * (int64_t)sizeof *e->compared));
  for (int i = 0; i < e->n; i++) {
    out[i].error = cs_error_of(&found[i].sums);
    out[i].gaps_kept = !found[i].gaps_written;
  }
  return CS_OK;
}
