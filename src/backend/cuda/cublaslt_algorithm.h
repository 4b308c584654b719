/* Algorithms of cuBLASLt and their identities. */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_ALGORITHM_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_ALGORITHM_H_

#include "backend/cuda/cublaslt.h"

/* CUBLAS_STATUS_SUCCESS, or why there is no such algorithm for these types. */
cublasStatus_t cs_cublaslt_algorithm_init(const cs_cublaslt *lt, const cs_cublaslt_problem *problem,
                                          int algorithm, cublasLtMatmulAlgo_t *out);
cublasStatus_t cs_cublaslt_algorithm_of_id(const cs_cublaslt *lt,
                                           const cs_cublaslt_problem *problem,
                                           const cs_cublaslt_id *id, cublasLtMatmulAlgo_t *out);
/* The identity from which _of_id makes exactly this algorithm. */
cublasStatus_t cs_cublaslt_id_of_algorithm(const cs_cublaslt *lt,
                                           const cs_cublaslt_problem *problem,
                                           const cublasLtMatmulAlgo_t *algorithm,
                                           cs_cublaslt_id *out);
cublasStatus_t cs_cublaslt_set_attribute(const cs_cublaslt_api *api,
                                         cublasLtMatmulAlgo_t *algorithm,
                                         cs_cublaslt_attribute attribute, uint32_t value);

/* A capability of up to 4 bytes; `absent` where the algorithm does not tell it. */
int cs_cublaslt_capability(const cs_cublaslt_api *api, const cublasLtMatmulAlgo_t *algorithm,
                           cublasLtMatmulAlgoCapAttributes_t capability, int absent);

/* Whether the algorithm computes as precisely as is asked for and fits the addresses; `notes`:
 * CS_NOTE_*. */
bool cs_cublaslt_admissible(const cs_cublaslt_api *api, const cs_cublaslt_problem *problem,
                            const cublasLtMatmulAlgo_t *algorithm, uint32_t *notes);
/* The same for what an algorithm's capabilities say of its arithmetic (a mask of
 * CUBLASLT_NUMERICAL_IMPL_FLAGS_*). */
bool cs_cublaslt_precise(cs_precision precision, uint64_t flags);

#endif
