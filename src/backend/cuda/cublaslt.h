/* Dense layers by cuBLASLt: its handle, prepared products, launching. */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_H_

#include <cuda_runtime_api.h>

#include "backend/backend.h"
#include "backend/cuda/cublaslt_id.h"
#include "backend/cuda/cublaslt_library.h"
#include "backend/cuda/cublaslt_problem.h"

/* A device's handle, which any thread and stream may use at any time. Zeroed: not made yet. */
typedef struct cs_cublaslt {
  const cs_cublaslt_api *api;
  cublasLtHandle_t handle;
  bool told; /* that the library is not there */
} cs_cublaslt;

/* Loads the library and makes the handle, on the current device, when first called. Without the
 * library `api` stays NULL, which is not an error and logged once. Thread-safe. */
cs_status cs_cublaslt_open(cs_cublaslt *lt, const cs_logger *logger) CS_MUST_USE;
void cs_cublaslt_close(cs_cublaslt *lt);

/* What a product is to cuBLASLt. */
typedef struct cs_cublaslt_operation {
  cublasLtMatmulDesc_t product; /* with a bias of 256-aligned address where there is one */
  cublasLtMatrixLayout_t a, b, c, d;
} cs_cublaslt_operation;
cs_status cs_cublaslt_operation_create(const cs_cublaslt_api *api,
                                       const cs_cublaslt_problem *problem,
                                       cs_cublaslt_operation *out) CS_MUST_USE;
void cs_cublaslt_operation_clear(const cs_cublaslt_api *api, cs_cublaslt_operation *operation);

/* Appends "cublaslt.v…:algo…" of the picks of cuBLASLt's heuristics (8 of a Gemm, 3 of a 1×1
 * convolution), under `full` of every algorithm and attribute. None without the library. */
cs_status cs_cublaslt_enumerate(cs_cublaslt *lt, const cs_logger *logger,
                                const cs_cublaslt_problem *problem,
                                const cs_enumerate_options *options,
                                cs_candidate_list *out) CS_MUST_USE;

/* Of a recorded candidate, where `api` is the library's (NULL: it is not installed); UNTOLD for
 * what is no candidate of cuBLASLt. */
cs_presence cs_cublaslt_presence(const cs_cublaslt_api *api, const char *candidate);

/* ---- Prepared products; immutable ---- */

typedef struct cs_cublaslt_plan cs_cublaslt_plan;
/* BAD_INPUT: no such algorithm here (no library, another version of it, or not for this problem);
 * the message says which. */
cs_status cs_cublaslt_plan_create(cs_cublaslt *lt, const cs_logger *logger,
                                  const cs_cublaslt_problem *problem, const char *id,
                                  cs_cublaslt_plan **out) CS_MUST_USE;
void cs_cublaslt_plan_destroy(cs_cublaslt_plan *plan);
int64_t cs_cublaslt_plan_workspace(const cs_cublaslt_plan *plan);

/* A product with its bias's address: what differs between launches of one plan. */
cs_status cs_cublaslt_bind(const cs_cublaslt_plan *plan, const void *bias,
                           cublasLtMatmulDesc_t *out) CS_MUST_USE;
void cs_cublaslt_unbind(cublasLtMatmulDesc_t product);
/* `weights` and `input` are A and B: a MatMul's second and first factor, of planes pixels and
 * weights. `residual` NULL where the
 * problem has none. Asynchronous on `stream`; allocates nothing. */
cs_status cs_cublaslt_launch(const cs_cublaslt_plan *plan, cublasLtMatmulDesc_t product,
                             const void *weights, const void *input, const void *residual,
                             void *output, void *workspace, cudaStream_t stream) CS_MUST_USE;

#endif
