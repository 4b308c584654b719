/* The CUDA backend's own struct, shared by the files that implement its vtable. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDA_BACKEND_H_
#define CONVSCHED_BACKEND_CUDA_CUDA_BACKEND_H_

#include "backend/backend.h"
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cudnn_pool.h"
#include "backend/cuda/cupti_metrics.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/nvml.h"
#include "backend/cuda/start.h"

#define CS_CUDA_MAX_STREAMS 32
#define CS_CUDA_DEFAULT_STREAMS 8

struct cs_cuda_backend {
  cs_backend base;
  int device; /* CUDA's index */
  cs_device_info info;
  cs_cuda_driver driver;
  cs_cudnn_pool pool;
  cs_cublaslt cublaslt;                      /* made when a candidate of it is first asked for */
  cudaStream_t streams[CS_CUDA_MAX_STREAMS]; /* non-blocking, made when first needed */
  cudaStream_t urgent[CS_CUDA_MAX_STREAMS];  /* the same with the greatest priority */
  struct cs_cuda_split *splits;              /* of the SMs, made when first needed */
  cudaEvent_t start, stop;                   /* of timings */
  cs_cuda_start *starting;                   /* makes context, handle, stream 0 and events */
  cs_metric_set metrics;                     /* of counters; empty until the first count */
  cs_nvml *nvml;                             /* NULL until the state is first asked for */
};

static inline cs_cuda_backend *cs_cuda(const cs_backend *backend) {
  return (cs_cuda_backend *)(uintptr_t)backend;
}

/* Waits for the device's start and makes it the calling thread's current one. */
cs_status cs_cuda_enter(const cs_cuda_backend *backend) CS_MUST_USE;
/* Stream `index` of the whole device, made when first asked for. */
cs_status cs_cuda_stream(cs_cuda_backend *backend, int index, bool urgent,
                         cudaStream_t *out) CS_MUST_USE;

/* priority.c: the number that CUDA has for the greatest priority, or for the normal (least) one. */
cs_status cs_cuda_priority(bool urgent, int *out) CS_MUST_USE;

/* enumerate.c */
cs_presence cs_cuda_presence(cs_backend *backend, const char *candidate);
int cs_cuda_layouts(const cs_backend *backend, cs_precision precision,
                    cs_layout out[CS_MAX_DEVICE_LAYOUTS]);
bool cs_cuda_takes_prologue(cs_backend *backend, const cs_op_desc *desc);
cs_status cs_cuda_baselines(cs_backend *backend, const cs_op_desc *desc,
                            const cs_enumerate_options *options,
                            cs_candidate_list *out) CS_MUST_USE;
cs_status cs_cuda_enumerate(cs_backend *backend, const cs_op_desc *desc,
                            const cs_enumerate_options *options,
                            cs_candidate_list *out) CS_MUST_USE;

/* memory.c */
cs_status cs_cuda_allocate(cs_backend *backend, int64_t bytes, void **out) CS_MUST_USE;
void cs_cuda_release(cs_backend *backend, void *memory);
cs_status cs_cuda_upload(cs_backend *backend, void *device, const void *host,
                         int64_t bytes) CS_MUST_USE;
cs_status cs_cuda_download(cs_backend *backend, void *host, const void *device,
                           int64_t bytes) CS_MUST_USE;
cs_status cs_cuda_fill(cs_backend *backend, void *device, int byte, int64_t bytes) CS_MUST_USE;
cs_status cs_cuda_import(cs_backend *backend, const float *nchw, const cs_tensor_desc *desc,
                         void *tensor, void *native_stream) CS_MUST_USE;
cs_status cs_cuda_export(cs_backend *backend, const cs_tensor_desc *desc, const void *tensor,
                         float *nchw, void *native_stream) CS_MUST_USE;

/* state.c */
cs_status cs_cuda_state(cs_backend *backend, cs_device_state *out) CS_MUST_USE;
cs_status cs_cuda_energy(cs_backend *backend, double *joules) CS_MUST_USE;

/* double_reference.c */
cs_status cs_cuda_reference(cs_backend *backend, const cs_op_desc *desc, const void *const *inputs,
                            const float *weight, const float *bias, double *value,
                            double *magnitude) CS_MUST_USE;
cs_status cs_cuda_reference_error(cs_backend *backend, const cs_op_desc *desc,
                                  const void *const *inputs, const float *weight, const float *bias,
                                  const void *output, cs_error_measure *out) CS_MUST_USE;
cs_status cs_cuda_expected_create(cs_backend *backend, const cs_op_desc *desc,
                                  const void *const *inputs, int n, const float *weight,
                                  const float *bias, cs_expected **out) CS_MUST_USE;
void cs_cuda_expected_destroy(cs_expected *expected);
cs_status cs_cuda_expected_compare(cs_expected *expected, const void *const *outputs, int gap_byte,
                                   cs_compared *out) CS_MUST_USE;

#endif
