/* A finalized execution plan, from an engine configuration, from engine + knobs, or from JSON. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_PLAN_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_PLAN_H_

#include "backend/cuda/cudnn_engine_id.h"
#include "backend/cuda/cudnn_graph.h"

typedef struct cs_cudnn_plan {
  cudnnBackendDescriptor_t plan;
  cudnnBackendDescriptor_t engine, config; /* what it was built from; NULL for a plan from JSON */
  cs_cudnn_graph *graph;
  int64_t workspace_bytes;
} cs_cudnn_plan;

/* Engine `index` of the graph for the target; the result says whether it exists there. */
cudnnStatus_t cs_cudnn_engine_open(const cs_cudnn_target *target, const cs_cudnn_graph *graph,
                                   int64_t index, cudnnBackendDescriptor_t *out);
/* A configuration of an engine with the given knob choices. */
cudnnStatus_t cs_cudnn_config_open(cudnnBackendDescriptor_t engine, const cs_engine_id *id,
                                   cudnnBackendDescriptor_t *out);
/* Finalizes a plan for a configuration; the result says whether the device can run it. */
cudnnStatus_t cs_cudnn_plan_finalize(const cs_cudnn_target *target, cudnnBackendDescriptor_t config,
                                     cudnnBackendDescriptor_t *out);
int64_t cs_cudnn_plan_workspace(cudnnBackendDescriptor_t plan);
/* The plan's JSON; *out is NULL where the plan has none. free() releases. */
cs_status cs_cudnn_plan_json(cudnnBackendDescriptor_t plan, char **out) CS_MUST_USE;

/* BAD_INPUT: this cuDNN or this device does not take the plan. */
cs_status cs_cudnn_plan_from_json(const cs_cudnn_target *target, const char *json,
                                  cs_cudnn_plan **out) CS_MUST_USE;
cs_status cs_cudnn_plan_from_id(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                                const cs_engine_id *id, cs_cudnn_plan **out) CS_MUST_USE;
void cs_cudnn_plan_destroy(cs_cudnn_plan *plan);

#endif
