#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/schedule.h"

static cs_status function_of(const cs_cuda_driver *driver, const CUDA_KERNEL_NODE_PARAMS_v2 *params,
                             CUfunction *out) {
  *out = params->func;
  if (*out) return CS_OK;
  return cs_driver_status((int)driver->kernel_get_function(out, params->kern),
                          "asking for a kernel's function");
}

static cs_status attribute(const cs_cuda_driver *driver, CUfunction function,
                           CUfunction_attribute name, int *out) {
  return cs_driver_status((int)driver->func_get_attribute(out, name, function),
                          "asking for attribute %d of a kernel", (int)name);
}

static cs_status describe(const cs_cuda_driver *driver, CUgraphNode node, cs_kernel_info *out) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  memset(&p, 0, sizeof(p));
  CS_RETURN_IF_ERROR(cs_driver_status((int)driver->graph_kernel_node_get_params(node, &p),
                                      "asking for a kernel node's parameters"));
  CUfunction function = NULL;
  CS_RETURN_IF_ERROR(function_of(driver, &p, &function));
  const char *name = NULL;
  CS_RETURN_IF_ERROR(
      cs_driver_status((int)driver->func_get_name(&name, function), "asking for a kernel's name"));
  snprintf(out->name, sizeof(out->name), "%s", name ? name : "");
  const unsigned grid[3] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const unsigned block[3] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  for (int i = 0; i < 3; i++) {
    out->grid[i] = (int)grid[i];
    out->block[i] = (int)block[i];
    out->cluster[i] = 1;
  }
  out->dynamic_shared = (int)p.sharedMemBytes;
  CUlaunchAttributeValue cluster;
  memset(&cluster, 0, sizeof(cluster));
  if (driver->graph_kernel_node_get_attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                              &cluster) == CUDA_SUCCESS &&
      cluster.clusterDim.x > 0) {
    out->cluster[0] = (int)cluster.clusterDim.x;
    out->cluster[1] = (int)cluster.clusterDim.y;
    out->cluster[2] = (int)cluster.clusterDim.z;
  }
  CS_RETURN_IF_ERROR(attribute(driver, function, CU_FUNC_ATTRIBUTE_NUM_REGS, &out->registers));
  CS_RETURN_IF_ERROR(
      attribute(driver, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &out->static_shared));
  CS_RETURN_IF_ERROR(
      attribute(driver, function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &out->local_bytes));
  return cs_driver_status(
      (int)driver->occupancy(&out->blocks_per_unit, function,
                             out->block[0] * out->block[1] * out->block[2], p.sharedMemBytes),
      "asking for the occupancy of %s", out->name);
}

static cs_status walk(const cs_cuda_driver *driver, cudaGraph_t graph, const int *node_launch,
                      int n_nodes, cs_kernel_info *out, int capacity, int *count) {
  cs_status st = CS_OK;
  size_t n = (size_t)n_nodes;
  if (n == 0) return CS_OK;
  cudaGraphNode_t *nodes = cs_calloc(n, sizeof(*nodes));
  if (!nodes) return cs_no_memory("a graph's nodes", n * sizeof(*nodes));
  CS_TRY(st, cs_cuda_status(cudaGraphGetNodes(graph, nodes, &n), "listing graph nodes"), done);
  for (size_t i = 0; i < n; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    CS_TRY(st, cs_cuda_status(cudaGraphNodeGetType(nodes[i], &type), "asking for a node's type"),
           done);
    if (type != cudaGraphNodeTypeKernel) continue;
    if (*count < capacity) {
      cs_kernel_info *info = &out[*count];
      memset(info, 0, sizeof(*info));
      info->launch = node_launch[i];
      CS_TRY(st, describe(driver, (CUgraphNode)nodes[i], info), done);
      CS_TRY(st, cs_node_begins_early(nodes[i], &info->early), done);
    }
    (*count)++;
  }
done:
  free(nodes);
  return st;
}

cs_status cs_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                              int *count) {
  *count = 0;
  const cs_cuda_driver *driver = &schedule->backend->driver;
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  if (schedule->graph) {
    return walk(driver, schedule->graph, schedule->node_launch, schedule->n_nodes, out, capacity,
                count);
  }
  cudaGraph_t graph = NULL;
  int *node_launch = NULL, n_nodes = 0;
  CS_RETURN_IF_ERROR(cs_schedule_capture(schedule, &graph, &node_launch, &n_nodes));
  cs_status st = walk(driver, graph, node_launch, n_nodes, out, capacity, count);
  (void)cudaGraphDestroy(graph);
  free(node_launch);
  return st;
}
