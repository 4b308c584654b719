/* Priorities: of streams, and of the kernel nodes of a captured graph. */
#include <string.h>

#include "backend/cuda/schedule.h"

cs_status cs_cuda_priority(bool urgent, int *out) {
  int least = 0, greatest = 0;
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                    "asking for the range of stream priorities"));
  *out = urgent ? greatest : least;
  return CS_OK;
}

/* By the driver: the runtime does not know the functions of cuDNN's kernels. */
static cs_status set_priority(const cs_schedule *s, cudaGraph_t graph, cudaGraphNode_t node,
                              int launch) {
  CUlaunchAttributeValue value;
  const cs_launch *l = &s->launches[launch].launch;
  (void)graph;
  memset(&value, 0, sizeof(value));
  CS_RETURN_IF_ERROR(cs_cuda_priority(l->priority != 0, &value.priority));
  return cs_driver_status((int)s->backend->driver.graph_kernel_node_set_attribute(
                              (CUgraphNode)node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
                          "%s: giving its kernel priority %d", l->name, value.priority);
}

cs_status cs_schedule_instantiate(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes, cudaGraphExec_t *out) {
  unsigned long long flags = 0;
  if (schedule->urgent) {
    CS_RETURN_IF_ERROR(
        cs_schedule_each_kernel(schedule, graph, node_launch, n_nodes, set_priority));
    flags = cudaGraphInstantiateFlagUseNodePriority;
  }
  return cs_cuda_status(cudaGraphInstantiate(out, graph, flags),
                        "instantiating a CUDA graph of %d nodes", n_nodes);
}
