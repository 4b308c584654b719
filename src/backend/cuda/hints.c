/* Hints of the launch order: on several streams, kernels that are ready at the same time begin in
 * no certain order. An edge from the port "launch completion" of an earlier launch's kernel lets a
 * later one begin only when all blocks of the earlier one have.
 *
 * Such an edge is ordering alone, and only adds to it: every edge of the capture stays. All edges
 * lead from a launch to a later one (or stay within one), these too, so there is no cycle. Kernels
 * of our own get none: they wait themselves (griddepcontrol.wait) until everything that they have
 * such an edge from has ended, which would be no hint but a dependency. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/schedule.h"

/* ---- What happens before what: `words` words a launch ---- */

static size_t words_of(const cs_schedule *s) {
  return ((size_t)s->n_launches + 63) / 64;
}

static bool is_before(const uint64_t *before, size_t words, int a, int b) {
  return before[(size_t)b * words + (size_t)a / 64] >> (a % 64) & 1;
}

/* All that a has behind it, and itself, comes before b. */
static void put_before(uint64_t *before, size_t words, int a, int b) {
  for (size_t w = 0; w < words; w++) before[(size_t)b * words + w] |= before[(size_t)a * words + w];
  before[(size_t)b * words + (size_t)a / 64] |= UINT64_C(1) << (a % 64);
}

static void order_launches(const cs_schedule *s, uint64_t *before) {
  int last[CS_CUDA_MAX_STREAMS];
  for (int i = 0; i < CS_CUDA_MAX_STREAMS; i++) last[i] = -1;
  for (int i = 0; i < s->n_launches; i++) {
    const cs_launch *l = &s->launches[i].launch;
    if (last[l->stream] >= 0) put_before(before, words_of(s), last[l->stream], i);
    for (int w = 0; w < l->n_waits; w++) put_before(before, words_of(s), l->waits[w], i);
    last[l->stream] = i;
  }
}

/* ---- Edges ---- */

/* first[n_launches]: the first kernel node of each launch, NULL where it has none. */
static cs_status find_kernels(const cs_schedule *s, cudaGraph_t graph, const int *node_launch,
                              int n_nodes, cudaGraphNode_t *first) {
  cs_status st = CS_OK;
  size_t n = (size_t)n_nodes;
  cudaGraphNode_t *nodes = cs_calloc(n, sizeof *nodes);
  if (!nodes) return cs_no_memory("a graph's nodes", n * sizeof *nodes);
  CS_TRY(st, cs_cuda_status(cudaGraphGetNodes(graph, nodes, &n), "listing graph nodes"), done);
  for (size_t i = 0; i < n; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    int launch = node_launch[i];
    if (launch < 0 || launch >= s->n_launches || first[launch]) continue;
    CS_TRY(st, cs_cuda_status(cudaGraphNodeGetType(nodes[i], &type), "asking for a node's type"),
           done);
    if (type == cudaGraphNodeTypeKernel) first[launch] = nodes[i];
  }
done:
  free(nodes);
  return st;
}

/* The latest launch before this one that has a kernel, is on another stream, and need not have
 * ended; -1: there is none. */
static int launch_beside(const cs_schedule *s, const uint64_t *before, const cudaGraphNode_t *first,
                         int launch) {
  int own = s->launches[launch].launch.stream, i = launch - 1;
  while (i >= 0 && (!first[i] || s->launches[i].launch.stream == own ||
                    is_before(before, words_of(s), i, launch))) {
    i--;
  }
  return i;
}

static cs_status add_hint(const cs_schedule *s, cudaGraph_t graph, const uint64_t *before,
                          const cudaGraphNode_t *first, int launch) {
  static const cudaGraphEdgeData begun = {.from_port = cudaGraphKernelNodePortLaunchCompletion,
                                          .type = cudaGraphDependencyTypeProgrammatic};
  if (!first[launch] || cs_bound_waits_itself(&s->launches[launch])) return CS_OK;
  int other = launch_beside(s, before, first, launch);
  if (other < 0) return CS_OK;
  return cs_annotate(cs_graph_add_edge(graph, first[other], first[launch], &begun),
                     "%s behind the beginning of %s: ", s->launches[launch].launch.name,
                     s->launches[other].launch.name);
}

cs_status cs_schedule_add_hints(const cs_schedule *schedule, cudaGraph_t graph,
                                const int *node_launch, int n_nodes) {
  const cs_schedule *s = schedule;
  cs_status st = CS_OK;
  size_t n = (size_t)s->n_launches;
  if (n_nodes == 0) return CS_OK;
  uint64_t *before = cs_calloc(n * words_of(s), sizeof *before);
  cudaGraphNode_t *first = cs_calloc(n, sizeof *first);
  if (!before || !first) {
    st = cs_no_memory("the order of launches", n * words_of(s) * sizeof *before);
    goto done;
  }
  order_launches(s, before);
  CS_TRY(st, find_kernels(s, graph, node_launch, n_nodes, first), done);
  for (int i = 0; i < s->n_launches; i++) CS_TRY(st, add_hint(s, graph, before, first, i), done);
done:
  free(before);
  free(first);
  return st;
}
