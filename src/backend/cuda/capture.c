#include <stdlib.h>
#include <string.h>

#include "backend/cuda/schedule.h"

/* Which launch each node came from: after a launch, the nodes not seen before are its own. */
typedef struct node_map {
  cudaGraphNode_t *known, *now;
  int *launch;
  size_t n, known_capacity, now_capacity, launch_capacity;
} node_map;

static bool is_known(const node_map *map, cudaGraphNode_t node, size_t guess) {
  if (guess < map->n && map->known[guess] == node) return true;
  for (size_t i = 0; i < map->n; i++) {
    if (map->known[i] == node) return true;
  }
  return false;
}

static cs_status note_nodes(node_map *map, cudaGraph_t graph, int launch) {
  size_t n = 0;
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaGraphGetNodes(graph, NULL, &n), "counting the nodes of a capture"));
  if (n == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_grow(&map->now, &map->now_capacity, n, sizeof(*map->now)));
  CS_RETURN_IF_ERROR(cs_grow(&map->known, &map->known_capacity, n, sizeof(*map->known)));
  CS_RETURN_IF_ERROR(cs_grow(&map->launch, &map->launch_capacity, n, sizeof(*map->launch)));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaGraphGetNodes(graph, map->now, &n), "listing the nodes of a capture"));
  size_t before = map->n;
  for (size_t i = 0; i < n; i++) {
    if (before > 0 && is_known(map, map->now[i], i)) continue;
    map->known[map->n] = map->now[i];
    map->launch[map->n++] = launch;
  }
  return CS_OK;
}

static cs_status launch_issued(void *user, int launch, cudaStream_t stream) {
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = NULL;
  const cudaGraphNode_t *dependencies = NULL;
  const cudaGraphEdgeData *edges = NULL; /* not asking for these fails where a kernel has any */
  size_t n = 0;
#if CUDART_VERSION >= 13000
  cudaError_t result =
      cudaStreamGetCaptureInfo(stream, &capturing, NULL, &graph, &dependencies, &edges, &n);
#else
  cudaError_t result =
      cudaStreamGetCaptureInfo_v3(stream, &capturing, NULL, &graph, &dependencies, &edges, &n);
#endif
  CS_RETURN_IF_ERROR(cs_cuda_status(result, "asking about a capture"));
  if (capturing != cudaStreamCaptureStatusActive) {
    return cs_error(CS_CODE_DEVICE, "launch %d ended the capture of its stream", launch);
  }
  return note_nodes(user, graph, launch);
}

/* The launches of the graph's nodes in the graph's own order. */
static cs_status order_nodes(node_map *map, cudaGraph_t graph, int **node_launch, int *n_nodes) {
  size_t n = 0;
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaGraphGetNodes(graph, NULL, &n), "counting graph nodes"));
  CS_RETURN_IF_ERROR(cs_grow(&map->now, &map->now_capacity, n ? n : 1, sizeof(*map->now)));
  int *launches = cs_calloc(n ? n : 1, sizeof(*launches));
  if (!launches) return cs_no_memory("a graph's node list", n);
  cs_status st =
      cs_cuda_status(cudaGraphGetNodes(graph, n ? map->now : NULL, &n), "listing graph nodes");
  if (st != CS_OK) {
    free(launches);
    return st;
  }
  for (size_t i = 0; i < n; i++) {
    launches[i] = -1;
    if (i < map->n && map->known[i] == map->now[i]) launches[i] = map->launch[i];
    for (size_t k = 0; k < map->n && launches[i] < 0; k++) {
      if (map->known[k] == map->now[i]) launches[i] = map->launch[k];
    }
  }
  *node_launch = launches;
  *n_nodes = (int)n;
  return CS_OK;
}

cs_status cs_schedule_capture(cs_schedule *schedule, cudaGraph_t *graph, int **node_launch,
                              int *n_nodes) {
  *graph = NULL;
  *node_launch = NULL;
  cs_status st = CS_OK;
  node_map map = {0};
  /* Thread-local: other threads of the process may allocate meanwhile. */
  CS_TRY(st,
         cs_cuda_status(cudaStreamBeginCapture(schedule->origin, cudaStreamCaptureModeThreadLocal),
                        "starting a capture"),
         done);
  st = cs_schedule_issue(schedule, launch_issued, &map);
  cudaError_t ended = cudaStreamEndCapture(schedule->origin, graph);
  if (st != CS_OK) {
    (void)cudaGetLastError();
    goto done;
  }
  CS_TRY(st, cs_cuda_status(ended, "ending a capture of %d launches", schedule->n_launches), done);
  CS_TRY(st, order_nodes(&map, *graph, node_launch, n_nodes), done);
done:
  if (st != CS_OK && *graph) {
    (void)cudaGraphDestroy(*graph);
    *graph = NULL;
  }
  free(map.known);
  free(map.now);
  free(map.launch);
  return st;
}

cs_status cs_schedule_each_kernel(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes, cs_kernel_node_fn each) {
  cs_status st = CS_OK;
  size_t n = (size_t)n_nodes;
  cudaGraphNode_t *nodes = cs_calloc(n ? n : 1, sizeof *nodes);
  if (!nodes) return cs_no_memory("a graph's nodes", n * sizeof *nodes);
  CS_TRY(st, cs_cuda_status(cudaGraphGetNodes(graph, nodes, &n), "listing graph nodes"), done);
  for (size_t i = 0; i < n; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    if (node_launch[i] < 0) continue;
    CS_TRY(st, cs_cuda_status(cudaGraphNodeGetType(nodes[i], &type), "asking for a node's type"),
           done);
    if (type == cudaGraphNodeTypeKernel) {
      CS_TRY(st, each(schedule, graph, nodes[i], node_launch[i]), done);
    }
  }
done:
  free(nodes);
  return st;
}
