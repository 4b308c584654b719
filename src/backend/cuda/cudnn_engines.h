/* Enumeration of graph-API candidates: heuristics' picks, or every engine and knob. Works with a
 * handle or with a device-property descriptor. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_ENGINES_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_ENGINES_H_

#include "backend/backend.h"
#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/cudnn_way.h"

/* Appends the admissible configurations of the problem: within the workspace limit, with the
 * precision asked for (f32: no tensor cores; never narrowed inputs or narrowed sums), deterministic
 * where wanted, runtime-compiled engines only under options->full. Where the fused graph has few,
 * the bare convolution followed by the epilogue kernel is offered too. An output that cuDNN would
 * only write by way of copies is computed densely and moved; few picks write to it themselves. */
cs_status cs_cudnn_enumerate(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                             const cs_enumerate_options *options,
                             cs_candidate_list *out) CS_MUST_USE;

#endif
