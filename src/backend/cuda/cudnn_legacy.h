/* cuDNN's named convolution algorithms: forward (8) and backward data (6), times math types; an
 * epilogue kernel follows where the operation has an epilogue. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_LEGACY_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_LEGACY_H_

#include "backend/backend.h"
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cudnn_way.h"

typedef struct cs_cudnn_legacy cs_cudnn_legacy; /* one prepared algorithm */

/* Appends "cudnn.legacy:ALGORITHM/math" for each whose workspace size cuDNN tells and the limit
 * allows, and where the output is a channel slice "cudnn.legacy.dense:…" too. None where the pads
 * differ at the two ends of an axis. */
cs_status cs_cudnn_legacy_enumerate(cudnnHandle_t handle, const cs_cudnn_problem *problem,
                                    const cs_enumerate_options *options,
                                    cs_candidate_list *out) CS_MUST_USE;
/* `problem`: the bare convolution, in the way that the family says. `name`: "ALGORITHM/math".
 * BAD_INPUT: no such algorithm for this problem. */
cs_status cs_cudnn_legacy_create(cudnnHandle_t handle, const cs_cudnn_problem *problem,
                                 const char *name, cs_cudnn_legacy **out) CS_MUST_USE;
void cs_cudnn_legacy_destroy(cs_cudnn_legacy *legacy);
int64_t cs_cudnn_legacy_workspace(const cs_cudnn_legacy *legacy);
/* Runs the bare convolution on the handle's stream. */
cs_status cs_cudnn_legacy_launch(const cs_cudnn_legacy *legacy, cudnnHandle_t handle,
                                 const void *input, const void *filter, void *output,
                                 void *workspace) CS_MUST_USE;

#endif
