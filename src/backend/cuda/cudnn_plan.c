#include "backend/cuda/cudnn_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

cudnnStatus_t cs_cudnn_engine_open(const cs_cudnn_target *target, const cs_cudnn_graph *graph,
                                   int64_t index, cudnnBackendDescriptor_t *out) {
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cs_descriptor_child(&d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, cs_cudnn_graph_descriptor(graph));
  cs_descriptor_int(&d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  if (target->properties) {
    cs_descriptor_child(&d, CUDNN_ATTR_ENGINE_DEVICEPROP, target->properties);
  }
  return cs_descriptor_finish_raw(&d, out);
}

static cudnnStatus_t open_knob_choice(const cs_knob *knob, cudnnBackendDescriptor_t *out) {
  cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)knob->type;
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  cs_descriptor_set(&d, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
  cs_descriptor_int(&d, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob->value);
  return cs_descriptor_finish_raw(&d, out);
}

cudnnStatus_t cs_cudnn_config_open(cudnnBackendDescriptor_t engine, const cs_engine_id *id,
                                   cudnnBackendDescriptor_t *out) {
  *out = NULL;
  cudnnBackendDescriptor_t choices[CS_MAX_KNOBS] = {NULL};
  cudnnStatus_t result = CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < id->n_knobs && result == CUDNN_STATUS_SUCCESS; i++) {
    result = open_knob_choice(&id->knobs[i], &choices[i]);
  }
  if (result == CUDNN_STATUS_SUCCESS) {
    cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cs_descriptor_child(&d, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (id->n_knobs) {
      cs_descriptor_set(&d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        id->n_knobs, choices);
    }
    result = cs_descriptor_finish_raw(&d, out);
  }
  for (int i = 0; i < id->n_knobs; i++) cs_descriptor_destroy(&choices[i]);
  return result;
}

static void set_target(cs_descriptor *d, const cs_cudnn_target *target) {
  if (target->properties) {
    cs_descriptor_child(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target->properties);
  } else {
    cs_descriptor_set(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
  }
}

cudnnStatus_t cs_cudnn_plan_finalize(const cs_cudnn_target *target, cudnnBackendDescriptor_t config,
                                     cudnnBackendDescriptor_t *out) {
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_target(&d, target);
  cs_descriptor_child(&d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  return cs_descriptor_finish_raw(&d, out);
}

int64_t cs_cudnn_plan_workspace(cudnnBackendDescriptor_t plan) {
  int64_t bytes = 0;
  (void)cs_descriptor_get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes);
  return bytes;
}

cs_status cs_cudnn_plan_json(cudnnBackendDescriptor_t plan, char **out) {
  *out = NULL;
  const cudnnBackendAttributeName_t name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int length = cs_descriptor_count(plan, name, CUDNN_TYPE_CHAR);
  if (length <= 0) return CS_OK;
  char *text = cs_calloc((size_t)length + 1, 1);
  if (!text) return cs_no_memory("a plan's JSON", (size_t)length + 1);
  if (cs_descriptor_get_many(plan, name, CUDNN_TYPE_CHAR, length, text) <= 0) {
    free(text);
    return CS_OK;
  }
  *out = text;
  return CS_OK;
}

cs_status cs_cudnn_plan_from_json(const cs_cudnn_target *target, const char *json,
                                  cs_cudnn_plan **out) {
  *out = NULL;
  cs_cudnn_plan *plan = cs_calloc(1, sizeof(*plan));
  if (!plan) return cs_no_memory("a cuDNN plan", sizeof(*plan));
  cs_descriptor d = cs_descriptor_begin(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_target(&d, target);
  cs_descriptor_set(&d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                    (int64_t)strlen(json), json);
  cudnnStatus_t result = cs_descriptor_finish_raw(&d, &plan->plan);
  if (result != CUDNN_STATUS_SUCCESS) {
    cs_cudnn_plan_destroy(plan);
    return cs_error(CS_CODE_BAD_INPUT, "cuDNN refuses the stored plan (error %d, %s)", (int)result,
                    cudnnGetErrorString(result));
  }
  plan->workspace_bytes = cs_cudnn_plan_workspace(plan->plan);
  *out = plan;
  return CS_OK;
}

cs_status cs_cudnn_plan_from_id(const cs_cudnn_target *target, const cs_cudnn_problem *problem,
                                const cs_engine_id *id, cs_cudnn_plan **out) {
  *out = NULL;
  cs_status st = CS_OK;
  cs_cudnn_plan *plan = cs_calloc(1, sizeof(*plan));
  if (!plan) return cs_no_memory("a cuDNN plan", sizeof(*plan));
  CS_TRY(st, cs_cudnn_graph_create(target, problem, &plan->graph), done);
  cudnnStatus_t result = cs_cudnn_engine_open(target, plan->graph, id->engine, &plan->engine);
  if (result == CUDNN_STATUS_SUCCESS) {
    result = cs_cudnn_config_open(plan->engine, id, &plan->config);
  }
  if (result == CUDNN_STATUS_SUCCESS) {
    result = cs_cudnn_plan_finalize(target, plan->config, &plan->plan);
  }
  if (result != CUDNN_STATUS_SUCCESS && !cs_cudnn_unsupported(result)) {
    CS_TRY(st, cs_cudnn_status(result, "building a plan of engine %" PRId64, id->engine), done);
  }
  if (result != CUDNN_STATUS_SUCCESS) {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT,
            "engine %" PRId64 " with these knobs is not there for this operation (cuDNN: %s)",
            id->engine, cudnnGetErrorString(result));
  }
  plan->workspace_bytes = cs_cudnn_plan_workspace(plan->plan);
  *out = plan;
  plan = NULL;
done:
  cs_cudnn_plan_destroy(plan);
  return st;
}

void cs_cudnn_plan_destroy(cs_cudnn_plan *plan) {
  if (!plan) return;
  cs_descriptor_destroy(&plan->plan);
  cs_descriptor_destroy(&plan->config);
  cs_descriptor_destroy(&plan->engine);
  cs_cudnn_graph_destroy(plan->graph);
  free(plan);
}
