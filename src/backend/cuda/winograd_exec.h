/* Candidates of convolutions by Winograd's way (winograd.h). */
#ifndef CONVSCHED_BACKEND_CUDA_WINOGRAD_EXEC_H_
#define CONVSCHED_BACKEND_CUDA_WINOGRAD_EXEC_H_

#include "backend/cuda/exec.h"

cs_status cs_winograd_enumerate(const cs_op_desc *desc, const cs_enumerate_options *options,
                                cs_candidate_list *out) CS_MUST_USE;

/* Of kind WINOGRAD. Prepare sets kind's members and workspace_bytes. */
cs_status cs_winograd_prepare(cs_exec *exec) CS_MUST_USE;
void cs_winograd_plan_weights(cs_exec *exec);
cs_status cs_winograd_launch(const cs_bound *bound, cudaStream_t stream) CS_MUST_USE;

#endif
