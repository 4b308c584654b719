/* cuBLASLt as a table of functions, loaded when a candidate of it is first enumerated or prepared:
 * a program that needs none does not pay for it, and a machine without it runs all the rest. */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_LIBRARY_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_LIBRARY_H_

#include <cublasLt.h>

#include "base/base.h"

/* X(member, function) */
#define CS_CUBLASLT_FUNCTIONS(X)                             \
  X(get_version, cublasLtGetVersion)                         \
  X(status_name, cublasLtGetStatusName)                      \
  X(create, cublasLtCreate)                                  \
  X(destroy, cublasLtDestroy)                                \
  X(layout_create, cublasLtMatrixLayoutCreate)               \
  X(layout_destroy, cublasLtMatrixLayoutDestroy)             \
  X(layout_set, cublasLtMatrixLayoutSetAttribute)            \
  X(operation_create, cublasLtMatmulDescCreate)              \
  X(operation_destroy, cublasLtMatmulDescDestroy)            \
  X(operation_set, cublasLtMatmulDescSetAttribute)           \
  X(preference_create, cublasLtMatmulPreferenceCreate)       \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy)     \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute)    \
  X(algorithm_heuristic, cublasLtMatmulAlgoGetHeuristic)     \
  X(algorithm_ids, cublasLtMatmulAlgoGetIds)                 \
  X(algorithm_init, cublasLtMatmulAlgoInit)                  \
  X(algorithm_check, cublasLtMatmulAlgoCheck)                \
  X(algorithm_capability, cublasLtMatmulAlgoCapGetAttribute) \
  X(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute)     \
  X(algorithm_set, cublasLtMatmulAlgoConfigSetAttribute)     \
  X(matmul, cublasLtMatmul)

typedef struct cs_cublaslt_api {
#define CS_CUBLASLT_MEMBER(member, function) __typeof__ (&(function))(member);
  CS_CUBLASLT_FUNCTIONS(CS_CUBLASLT_MEMBER)
#undef CS_CUBLASLT_MEMBER
  int64_t version; /* 130100 */
} cs_cublaslt_api;

/* Loads the first library of `paths` that opens. NOT_FOUND says what was tried, or which function
 * the library lacks. What was loaded stays loaded. */
cs_status cs_cublaslt_load(const char *const *paths, int n, cs_cublaslt_api *out) CS_MUST_USE;
/* The process's cuBLASLt, looked for once: where the system looks, beside libcudart, in the CUDA
 * folders of /usr/local. `*out` is valid for ever. Thread-safe. */
cs_status cs_cublaslt_get(const cs_cublaslt_api **out) CS_MUST_USE;
/* "13.1.0"; "" without cuBLASLt. Needs no driver. */
void cs_cublaslt_version(char *out, size_t size);
void cs_cublaslt_version_text(int64_t version, char *out, size_t size);

/* `format` says what was being done. Clears the thread's last CUDA error. */
cs_status cs_cublaslt_status(const cs_cublaslt_api *api, cublasStatus_t result, const char *format,
                             ...) CS_PRINTF(3, 4) CS_MUST_USE;
/* True for results that mean "not for this problem on this device" and not a failure. */
bool cs_cublaslt_unsupported(cublasStatus_t result);

#endif
