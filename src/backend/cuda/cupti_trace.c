#include "backend/cuda/cupti_trace.h"

#include <stdlib.h>

#include "backend/cuda/cupti_activity.h"
#include "backend/cuda/cupti_counters.h"

/* A graph that was made before the tracer came may go unrecorded: a traced schedule gets one of its
 * own, captured while it is traced. */
typedef struct traced {
  cs_schedule *schedule;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
} traced;

static cs_status make_graph(traced *t) {
  int *node_launch = NULL, n_nodes = 0;
  cs_status st = cs_schedule_build(t->schedule, &t->graph, &node_launch, &n_nodes, &t->executable);
  free(node_launch);
  return st;
}

static cs_status run_traced(void *user) {
  traced *t = user;
  cs_schedule *s = t->schedule;
  if (s->executable) {
    if (!t->executable) CS_RETURN_IF_ERROR(make_graph(t));
    CS_RETURN_IF_ERROR(cs_cuda_status(cudaGraphLaunch(t->executable, s->origin),
                                      "launching a CUDA graph under the tracer"));
  } else {
    CS_RETURN_IF_ERROR(cs_schedule_issue(s, NULL, NULL));
  }
  return cs_schedule_synchronize(s);
}

static cs_status trace(cs_schedule *s, cs_activity_result *out) {
  const cs_cupti *cupti = NULL;
  traced t = {.schedule = s};
  cs_activity_request request = {.work = run_traced, .user = &t, .any_context = s->split};
  CS_RETURN_IF_ERROR(cs_cuda_context(&s->backend->driver, &request.context));
  CS_RETURN_IF_ERROR(cs_cupti_get(&cupti));
  cs_cupti_lock();
  cs_status st = cs_cupti_trace(cupti, &request, out);
  cs_cupti_unlock();
  if (t.executable) (void)cudaGraphExecDestroy(t.executable);
  if (t.graph) (void)cudaGraphDestroy(t.graph);
  return st;
}

cs_status cs_schedule_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity, int *count) {
  *count = 0;
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  cs_status st = CS_OK;
  cs_activity_result result = {0};
  int n = 0;
  CS_TRY(st, cs_schedule_kernels(schedule, NULL, 0, &n), done);
  if (n == 0) goto done;
  CS_TRY(st, trace(schedule, &result), done);
  if (result.n != n) {
    CS_FAIL(st, done, CS_CODE_DEVICE,
            "trace: %d kernels with times and %d without; the schedule has %d", result.n,
            result.untimed, n);
  }
  for (int i = 0; i < result.n && i < capacity; i++) out[i] = result.kernels[i];
  *count = result.n;
done:
  free(result.kernels);
  return st;
}
