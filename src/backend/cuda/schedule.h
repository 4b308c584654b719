/* A realised schedule: bound launches, their events, and (unless plain) the CUDA graph captured
 * from them. */
#ifndef CONVSCHED_BACKEND_CUDA_SCHEDULE_H_
#define CONVSCHED_BACKEND_CUDA_SCHEDULE_H_

#include "backend/cuda/exec.h"

struct cs_schedule {
  cs_cuda_backend *backend;
  cs_bound *launches;
  int n_launches;
  int *waits; /* all launches' waits, one after the other */
  int n_streams;
  cudaStream_t streams[CS_CUDA_MAX_STREAMS]; /* NULL where unused */
  /* Where a run begins and ends: stream 0, but never one of a part or of high priority. */
  cudaStream_t origin;
  bool split, urgent; /* some stream keeps to a part, some launch has a priority */
  bool early;         /* kernels that wait themselves may begin before what they wait for ended */
  bool hints;         /* kernels that do not are told whose blocks to let go first */
  bool stream_used[CS_CUDA_MAX_STREAMS], stream_cudnn[CS_CUDA_MAX_STREAMS];
  cudaEvent_t fork, *done;               /* done[i]: NULL unless another stream waits for it */
  cudaEvent_t join[CS_CUDA_MAX_STREAMS]; /* ends of streams; NULL where unused, of the origin */
  cudaGraphExec_t executable;            /* NULL: plain stream calls */
  cudaGraph_t graph;                     /* NULL: plain stream calls */
  int *node_launch, n_nodes;             /* launch of each node of `graph`, in its node order */
  bool beside; /* keeps its handles: what a handle owns, the captured kernels go on using */
  cs_cudnn_slot *handles[CS_CUDA_MAX_STREAMS]; /* beside: per stream, once acquired */
  double enqueue_us; /* that the host takes for one launch (timing.c); 0: unknown yet */
};

cs_status cs_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                             const cs_stream_set *streams, bool use_graph,
                             cs_schedule **out) CS_MUST_USE;
void cs_schedule_destroy(cs_schedule *schedule);
cs_status cs_schedule_run(cs_schedule *schedule) CS_MUST_USE;
cs_status cs_schedule_run_on(cs_schedule *schedule, void *native_stream) CS_MUST_USE;

/* Captures a graph of the launches, with early beginnings and hints, and makes it executable: what
 * a schedule runs. free() releases *node_launch; it and *graph are the caller's even on an error.
 */
cs_status cs_schedule_build(cs_schedule *schedule, cudaGraph_t *graph, int **node_launch,
                            int *n_nodes, cudaGraphExec_t *out) CS_MUST_USE;
/* Enqueues one run behind what is on the origin; its end is there. */
cs_status cs_schedule_enqueue(cs_schedule *schedule) CS_MUST_USE;
cs_status cs_schedule_synchronize(cs_schedule *schedule) CS_MUST_USE;

/* issue.c */
cs_status cs_cuda_record(cudaEvent_t event, cudaStream_t stream) CS_MUST_USE;
cs_status cs_cuda_wait_for(cudaStream_t stream, cudaEvent_t event) CS_MUST_USE;
/* The launches as stream calls. `issued`, if given, is called after each launch. */
typedef cs_status (*cs_issued_fn)(void *user, int launch, cudaStream_t stream);
cs_status cs_schedule_issue(cs_schedule *schedule, cs_issued_fn issued, void *user) CS_MUST_USE;
/* Every launch once, in order, on the origin, with the handle of its own stream. */
cs_status cs_schedule_issue_serial(cs_schedule *schedule) CS_MUST_USE;

/* capture.c */
cs_status cs_schedule_capture(cs_schedule *schedule, cudaGraph_t *graph, int **node_launch,
                              int *n_nodes) CS_MUST_USE;
/* Calls `each` for every kernel node of a captured graph that a launch made. */
typedef cs_status (*cs_kernel_node_fn)(const cs_schedule *schedule, cudaGraph_t graph,
                                       cudaGraphNode_t node, int launch);
cs_status cs_schedule_each_kernel(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes,
                                  cs_kernel_node_fn each) CS_MUST_USE;

/* Makes a captured graph executable, its kernel nodes with their launches' priorities. */
cs_status cs_schedule_instantiate(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes,
                                  cudaGraphExec_t *out) CS_MUST_USE;

/* early.c: kernels of a captured graph that wait themselves begin before what they wait for ended.
 */
cs_status cs_schedule_begin_early(const cs_schedule *schedule, cudaGraph_t graph,
                                  const int *node_launch, int n_nodes) CS_MUST_USE;
/* Whether a kernel node begins before some kernel that it waits for has ended. */
cs_status cs_node_begins_early(cudaGraphNode_t node, bool *out) CS_MUST_USE;

/* An edge of a graph. */
cs_status cs_graph_add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to,
                            const cudaGraphEdgeData *data) CS_MUST_USE;

/* hints.c: between streams, blocks of a captured graph begin in the order of its launches. */
cs_status cs_schedule_add_hints(const cs_schedule *schedule, cudaGraph_t graph,
                                const int *node_launch, int n_nodes) CS_MUST_USE;

/* timing.c */
cs_status cs_schedule_latency(cs_schedule *schedule, int count, double *us) CS_MUST_USE;
cs_status cs_schedule_b2b(cs_schedule *schedule, int n, double *us) CS_MUST_USE;

/* kernels_info.c */
cs_status cs_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                              int *count) CS_MUST_USE;

#endif
