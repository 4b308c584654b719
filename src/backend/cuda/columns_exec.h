/* Candidates of transposed convolutions that take several steps: columns by cuBLASLt, then
 * gathered; and scattering. */
#ifndef CONVSCHED_BACKEND_CUDA_COLUMNS_EXEC_H_
#define CONVSCHED_BACKEND_CUDA_COLUMNS_EXEC_H_

#include "backend/cuda/exec.h"

/* "cuda.col2im/4:cublaslt.v130100:algo…": in four pieces of the batch, by that algorithm;
 * "cuda.col2im/1:cuda.gemm.register.v1": by that rung of the ladder. */
#define CS_COLUMNS_PREFIX "cuda.col2im/"
/* The algorithm's or rung's id, and the pieces; NULL: no such id. */
const char *cs_columns_id_parse(const char *id, int *pieces);

/* Appends the picks of cuBLASLt's heuristics, with as few pieces as the workspace limit allows, and
 * where that differs with pieces whose columns stay in the L2 cache. None without the library. */
cs_status cs_columns_enumerate(cs_cuda_backend *cuda, const cs_op_desc *desc,
                               const cs_enumerate_options *options,
                               cs_candidate_list *out) CS_MUST_USE;
/* Baselines: scattering, and columns by the ladder's rungs. */
cs_status cs_columns_baselines(const cs_op_desc *desc, const cs_enumerate_options *options,
                               cs_candidate_list *out) CS_MUST_USE;

/* Of kinds COLUMNS and SCATTER. Prepare sets kind's members, workspace_bytes and what weights take.
 */
cs_status cs_columns_prepare(cs_exec *exec) CS_MUST_USE;
cs_status cs_scatter_prepare(cs_exec *exec) CS_MUST_USE;
void cs_columns_plan_weights(cs_exec *exec);
void cs_columns_pack(const cs_exec *exec, const float *weight, const float *bias, void *host_out);
cs_status cs_columns_launch(const cs_bound *bound, cudaStream_t stream) CS_MUST_USE;

#endif
