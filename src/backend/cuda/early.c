/* Kernels that begin before what they wait for has ended (programmatic dependent launch): the edges
 * of a captured graph that lead to kernels of our own, which wait themselves (begin_kernel() in
 * kernel_util.cuh). An edge to a library's kernel, which would not wait, stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/schedule.h"

static cs_status edges_to(cudaGraphNode_t node, cudaGraphNode_t *from, cudaGraphEdgeData *edges,
                          size_t *n) {
#if CUDART_VERSION >= 13000
  cudaError_t result = cudaGraphNodeGetDependencies(node, from, edges, n);
#else
  cudaError_t result = cudaGraphNodeGetDependencies_v2(node, from, edges, n);
#endif
  return cs_cuda_status(result, "asking what a node waits for");
}

/* What a node waits for; free() releases both, also where it fails. */
static cs_status list_edges(cudaGraphNode_t node, cudaGraphNode_t **from, cudaGraphEdgeData **edges,
                            size_t *n) {
  CS_RETURN_IF_ERROR(edges_to(node, NULL, NULL, n));
  if (*n == 0) return CS_OK;
  *from = cs_calloc(*n, sizeof **from);
  *edges = cs_calloc(*n, sizeof **edges);
  if (!*from || !*edges) return cs_no_memory("a node's edges", *n * sizeof **edges);
  return edges_to(node, *from, *edges, n);
}

cs_status cs_graph_add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to,
                            const cudaGraphEdgeData *data) {
#if CUDART_VERSION >= 13000
  cudaError_t result = cudaGraphAddDependencies(graph, &from, &to, data, 1);
#else
  cudaError_t result = cudaGraphAddDependencies_v2(graph, &from, &to, data, 1);
#endif
  return cs_cuda_status(result, "adding an edge (port %d) to a CUDA graph", data->from_port);
}

static cs_status replace_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to,
                              const cudaGraphEdgeData *old, const cudaGraphEdgeData *new) {
#if CUDART_VERSION >= 13000
  cudaError_t result = cudaGraphRemoveDependencies(graph, &from, &to, old, 1);
#else
  cudaError_t result = cudaGraphRemoveDependencies_v2(graph, &from, &to, old, 1);
#endif
  CS_RETURN_IF_ERROR(cs_cuda_status(result, "letting a kernel begin early"));
  return cs_graph_add_edge(graph, from, to, new);
}

static bool is_plain(const cudaGraphEdgeData *edge) {
  static const cudaGraphEdgeData plain = {0};
  return memcmp(edge, &plain, sizeof plain) == 0;
}

/* The node's edges from kernels, where it waits itself and is not to begin late. */
static cs_status begin_early(const cs_schedule *schedule, cudaGraph_t graph, cudaGraphNode_t node,
                             int launch) {
  static const cudaGraphEdgeData early = {.from_port = cudaGraphKernelNodePortProgrammatic,
                                          .type = cudaGraphDependencyTypeProgrammatic};
  cs_status st = CS_OK;
  cudaGraphNode_t *from = NULL;
  cudaGraphEdgeData *edges = NULL;
  size_t n = 0;
  const cs_bound *bound = &schedule->launches[launch];
  if (bound->launch.late || !cs_bound_waits_itself(bound)) return CS_OK;
  CS_TRY(st, list_edges(node, &from, &edges, &n), done);
  for (size_t i = 0; i < n; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    CS_TRY(st, cs_cuda_status(cudaGraphNodeGetType(from[i], &type), "asking for a node's type"),
           done);
    if (type != cudaGraphNodeTypeKernel || !is_plain(&edges[i])) continue;
    CS_TRY(st, replace_edge(graph, from[i], node, &edges[i], &early), done);
  }
done:
  free(from);
  free(edges);
  return st;
}

cs_status cs_node_begins_early(cudaGraphNode_t node, bool *out) {
  cs_status st = CS_OK;
  cudaGraphNode_t *from = NULL;
  cudaGraphEdgeData *edges = NULL;
  size_t n = 0;
  *out = false;
  CS_TRY(st, list_edges(node, &from, &edges, &n), done);
  for (size_t i = 0; i < n && !*out; i++) {
    *out = edges[i].from_port == cudaGraphKernelNodePortProgrammatic;
  }
done:
  free(from);
  free(edges);
  return st;
}

cs_status cs_schedule_begin_early(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes) {
  return cs_schedule_each_kernel(schedule, graph, node_launch, n_nodes, begin_early);
}
