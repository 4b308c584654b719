/* Schedules against a stand-in for the CUDA runtime: streams and events that only remember what
 * happens before what. Every launch must come after the start of the run and after all it waits
 * for, every run must end on stream 0 after all launches, and a capture must tell whose node is
 * whose. No device needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/cuda/schedule.h"

#define STREAMS 6
#define LAUNCHES 40
#define START (UINT64_C(1) << 63)

/* ---- The stand-in: a set of launches (bits) that happened before the end of each stream ---- */

struct CUstream_st {
  uint64_t before;
};
struct CUevent_st {
  uint64_t before;
  bool recorded;
};
static struct CUstream_st streams[STREAMS], urgent_streams[STREAMS];
static int events_alive, graphs_alive, launched, fail_at;
static bool capturing, shuffled;
static char node_storage[3 * LAUNCHES + 1];
static int n_nodes, node_priority[3 * LAUNCHES + 1];
static unsigned long long instantiated_with;
/* How a node waits for the one before it and the one before that. */
static cudaGraphEdgeData edge[3 * LAUNCHES + 1][2];
static int begins_behind[3 * LAUNCHES + 1]; /* node, by a hint; −1: none */

static cudaGraphNode_t node_at(int index) {
  return (cudaGraphNode_t)(void *)&node_storage[index];
}

cs_status cs_cuda_enter(const cs_cuda_backend *backend) {
  (void)backend;
  return CS_OK;
}
cs_status cs_cuda_stream(cs_cuda_backend *backend, int index, bool urgent, cudaStream_t *out) {
  (void)backend;
  *out = urgent ? &urgent_streams[index] : &streams[index];
  return CS_OK;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  assert_int_equal(flags, cudaEventDisableTiming);
  *event = calloc(1, sizeof(**event));
  events_alive++;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  events_alive--;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->before = stream->before;
  event->recorded = true;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  assert_int_equal(flags, 0);
  assert_true(event->recorded); /* CUDA would not wait at all */
  stream->before |= event->before;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  assert_ptr_equal(stream, &streams[0]);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  assert_ptr_equal(stream, &streams[0]);
  assert_int_equal(mode, cudaStreamCaptureModeThreadLocal);
  memset(streams, 0, sizeof(streams));
  memset(urgent_streams, 0, sizeof(urgent_streams));
  streams[0].before = START;
  capturing = true;
  n_nodes = launched = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *n) {
  (void)id, (void)dependencies, (void)edges, (void)n;
  /* A stream is part of the capture once it has waited for an event of it. */
  bool joined = capturing && (stream->before & START);
  *status = joined ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  *graph = (cudaGraph_t)(void *)node_storage;
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n) {
  assert_ptr_equal(graph, node_storage);
  for (int i = 0; nodes && i < n_nodes; i++) {
    nodes[i] = node_at(shuffled ? n_nodes - 1 - i : i);
  }
  *n = (size_t)n_nodes;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  assert_ptr_equal(stream, &streams[0]);
  capturing = false;
  if (fail_at >= 0) return cudaErrorStreamCaptureInvalidated;
  *graph = (cudaGraph_t)(void *)node_storage;
  graphs_alive++;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  instantiated_with = flags;
  *executable = (cudaGraphExec_t)(void *)graph;
  graphs_alive++;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  /* Every fifth is a memset, which has no priority. */
  *type = (((char *)(void *)node - node_storage) % 5 == 4) ? cudaGraphNodeTypeMemset
                                                           : cudaGraphNodeTypeKernel;
  return cudaSuccess;
}
static int index_of(cudaGraphNode_t node) {
  return (int)((char *)(void *)node - node_storage);
}
/* Node n waits for n − 1, and n − 2 where there are two. */
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *from,
                                         cudaGraphEdgeData *edges, size_t *n) {
  int index = index_of(node), count = index < 2 ? index : 2;
  for (int i = 0; from && i < count; i++) {
    from[i] = node_at(index - 1 - i);
    edges[i] = edge[index][i];
  }
  *n = (size_t)count;
  return cudaSuccess;
}
static cudaGraphEdgeData *the_edge(cudaGraph_t graph, const cudaGraphNode_t *from,
                                   const cudaGraphNode_t *to, size_t n) {
  assert_ptr_equal(graph, node_storage);
  assert_int_equal(n, 1);
  return &edge[index_of(*to)][index_of(*to) - 1 - index_of(*from)];
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t n) {
  cudaGraphEdgeData *there = the_edge(graph, from, to, n);
  assert_memory_equal(there, edges, sizeof *edges);
  there->reserved[0] = 1; /* removed */
  return cudaSuccess;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t n) {
  if (edges->from_port == cudaGraphKernelNodePortLaunchCompletion) {
    assert_int_equal(n, 1);
    assert_int_equal(edges->type, cudaGraphDependencyTypeProgrammatic);
    assert_int_equal(begins_behind[index_of(*to)], -1);
    begins_behind[index_of(*to)] = index_of(*from);
    return cudaSuccess;
  }
  cudaGraphEdgeData *there = the_edge(graph, from, to, n);
  assert_int_equal(there->reserved[0], 1);
  *there = *edges;
  return cudaSuccess;
}
static CUresult set_attribute(CUgraphNode node, CUlaunchAttributeID id,
                              const CUlaunchAttributeValue *value) {
  assert_int_equal(id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
  node_priority[(char *)(void *)node - node_storage] = value->priority;
  return CUDA_SUCCESS;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  (void)executable, (void)stream;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  assert_ptr_equal(executable, node_storage);
  assert_ptr_equal(stream, &streams[0]);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  assert_ptr_equal(executable, node_storage);
  graphs_alive--;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  assert_ptr_equal(graph, node_storage);
  graphs_alive--;
  return cudaSuccess;
}

/* ---- Launches that check the order they come in; launch i makes i % 3 nodes ---- */

static bool serial;           /* the warm run: all on stream 0 */
static bool urgent_by_stream; /* there are no nodes to have a priority */

cs_status cs_bound_create(const cs_launch *launch, cs_bound *out) {
  *out = (cs_bound){.launch = *launch};
  return CS_OK;
}
void cs_bound_clear(cs_bound *bound) {
  (void)bound;
}
cs_status cs_bound_join(cs_bound *leader, const cs_bound *member) {
  assert_int_equal(member->launch.merged, (int)(intptr_t)leader->launch.output);
  leader->n_parts += leader->n_parts == 0 ? 2 : 1;
  return CS_OK;
}
bool cs_bound_needs_cudnn(const cs_bound *bound) {
  (void)bound;
  return false;
}
bool cs_bound_waits_itself(const cs_bound *bound) {
  return (intptr_t)bound->launch.output % 2 == 1;
}
/* Nothing is launched; the leader's kernel is on its stream already, and computed it. */
static cs_status member_issued(const cs_launch *l, cudaStream_t stream) {
  int index = (int)(intptr_t)l->output;
  if (!serial && !(stream->before >> index & 1)) fail_msg("launch %d came to nothing", index);
  return CS_OK;
}

cs_status cs_bound_launch(const cs_bound *bound, cs_cudnn_slot *slot, cudaStream_t stream) {
  const cs_launch *l = &bound->launch;
  int index = (int)(intptr_t)l->output;
  assert_null(slot);
  if (index == fail_at && capturing) return cs_error(CS_CODE_DEVICE, "launch %d fails", index);
  launched++;
  if (l->merged >= 0) return member_issued(l, stream);
  if (serial && !capturing) {
    assert_ptr_equal(stream, &streams[0]);
    return CS_OK;
  }
  assert_ptr_equal(
      stream, urgent_by_stream && l->priority ? &urgent_streams[l->stream] : &streams[l->stream]);
  if (!(stream->before & START)) fail_msg("launch %d may run before the start", index);
  for (int w = 0; w < l->n_waits; w++) {
    if (!(stream->before >> l->waits[w] & 1)) {
      fail_msg("launch %d may run before %d", index, l->waits[w]);
    }
  }
  for (int i = index; i < index + (bound->n_parts > 1 ? bound->n_parts : 1); i++) {
    stream->before |= UINT64_C(1) << i;
  }
  if (capturing) n_nodes += index % 3;
  return CS_OK;
}

/* ---- Random schedules ---- */

typedef struct problem {
  cs_launch launches[LAUNCHES];
  int waits[LAUNCHES][LAUNCHES];
  int n;
} problem;

static void make(problem *p, uint64_t seed) {
  cs_rng rng;
  cs_rng_init(&rng, seed, 0);
  memset(p, 0, sizeof(*p));
  p->n = 1 + (int)(cs_rng_u32(&rng) % LAUNCHES);
  int n_streams = 1 + (int)(cs_rng_u32(&rng) % STREAMS);
  for (int i = 0; i < p->n; i++) {
    cs_launch *l = &p->launches[i];
    l->name = "launch";
    l->merged = -1;
    l->output = (void *)(intptr_t)i;
    l->stream = (int)(cs_rng_u32(&rng) % (unsigned)n_streams);
    l->waits = p->waits[i];
    const cs_launch *before = l - 1;
    int leader = i == 0 ? 0 : before->merged >= 0 ? before->merged : i - 1;
    if (i > leader && i - leader < 8 && cs_rng_u32(&rng) % 4 == 0) {
      l->merged = leader;
      l->stream = before->stream;
      continue;
    }
    for (int w = 0; w < i; w++) {
      if (cs_rng_u32(&rng) % 8 == 0) p->waits[i][l->n_waits++] = w;
    }
  }
}

static void begin_run(void) {
  memset(streams, 0, sizeof(streams));
  memset(urgent_streams, 0, sizeof(urgent_streams));
  streams[0].before = START;
  launched = 0;
}

static void check_end(const problem *p) {
  uint64_t all = (UINT64_C(1) << p->n) - 1;
  assert_int_equal(launched, p->n);
  assert_true((streams[0].before & all) == all);
}

static bool hints;

static cs_schedule *create_on(const problem *p, bool use_graph, int capability, bool early) {
  static cs_cuda_backend backend = {.driver.graph_kernel_node_set_attribute = set_attribute};
  const cs_stream_set all = {.n = STREAMS, .early = early, .hints = hints};
  cs_schedule *schedule = NULL;
  serial = true;
  backend.info.compute_capability = capability;
  backend.info.hints = capability >= 90;
  cs_status st = cs_schedule_create(&backend.base, p->launches, p->n, &all, use_graph, &schedule);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  return schedule;
}

static cs_schedule *create(const problem *p, bool use_graph) {
  return create_on(p, use_graph, 90, false);
}

static void run_twice(const problem *p, cs_schedule *schedule) {
  serial = false;
  for (int repeat = 0; repeat < 2; repeat++) {
    begin_run();
    cs_status st = cs_schedule_run(schedule);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    check_end(p);
  }
  cs_schedule_destroy(schedule);
  launched = 0;
}

static void plain_runs_keep_every_dependency(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  for (uint64_t seed = 0; seed < 200; seed++) {
    make(p, seed);
    cs_schedule *schedule = create(p, false);
    assert_int_equal(launched, p->n);
    run_twice(p, schedule);
  }
  assert_int_equal(events_alive, 0);
  free(p);
}

static void captures_keep_every_dependency_and_know_their_nodes(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  for (uint64_t seed = 0; seed < 200; seed++) {
    make(p, seed);
    shuffled = seed % 2 == 1;
    cs_schedule *schedule = create(p, false);
    serial = false;
    cudaGraph_t graph = NULL;
    int *node_launch = NULL, n = 0, expected = 0;
    cs_status st = cs_schedule_capture(schedule, &graph, &node_launch, &n);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
    check_end(p);
    for (int i = 0; i < p->n; i++) {
      for (int k = 0; k < i % 3 && p->launches[i].merged < 0; k++, expected++) {
        int at = shuffled ? n - 1 - expected : expected;
        assert_int_equal(node_launch[at], i);
      }
    }
    assert_int_equal(n, expected);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    free(node_launch);
    cs_schedule_destroy(schedule);
    launched = 0;
  }
  shuffled = false;
  assert_int_equal(events_alive, 0);
  assert_int_equal(graphs_alive, 0);
  free(p);
}

static void a_failing_capture_leaves_nothing_behind(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  make(p, 7);
  cs_schedule *schedule = create(p, false);
  serial = false;
  fail_at = p->n / 2;
  cudaGraph_t graph = NULL;
  int *node_launch = NULL, n = 0;
  cs_status st = cs_schedule_capture(schedule, &graph, &node_launch, &n);
  fail_at = -1;
  assert_int_equal(cs_status_code(st), CS_CODE_DEVICE);
  assert_non_null(strstr(cs_status_message(st), "fails"));
  cs_status_free(st);
  assert_null(graph);
  assert_null(node_launch);
  cs_schedule_destroy(schedule);
  assert_int_equal(events_alive, 0);
  assert_int_equal(graphs_alive, 0);
  free(p);
}

/* Every kernel node of a launch has its launch's priority, and the graph is told to keep them; a
 * graph without priorities is made as before. */
static void nodes_carry_their_launches_priority(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  for (uint64_t seed = 0; seed < 100; seed++) {
    make(p, seed);
    bool any = false;
    for (int i = 0; i < p->n; i++) {
      int leader = p->launches[i].merged >= 0 ? p->launches[i].merged : i;
      p->launches[i].priority = seed % 4 != 0 && leader % 3 == 1;
      any = any || p->launches[i].priority;
    }
    for (int i = 0; i <= 3 * LAUNCHES; i++) node_priority[i] = 1;
    shuffled = seed % 2 == 1;
    cs_schedule *schedule = create(p, true);
    assert_int_equal(instantiated_with, any ? cudaGraphInstantiateFlagUseNodePriority : 0);
    for (int i = 0, node = 0; i < p->n; i++) {
      for (int k = 0; k < i % 3 && p->launches[i].merged < 0; k++, node++) {
        int wanted = !any || node % 5 == 4 ? 1 : p->launches[i].priority ? -5 : 0;
        assert_int_equal(node_priority[node], wanted);
      }
    }
    cs_schedule_destroy(schedule);
    launched = 0;
  }
  shuffled = false;
  assert_int_equal(events_alive, 0);
  assert_int_equal(graphs_alive, 0);
  free(p);
}

/* Edges between kernels, into those that wait themselves and are not to begin late, and no others,
 * where the device can. */
static void kernels_that_wait_themselves_begin_early(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  for (uint64_t seed = 0; seed < 100; seed++) {
    bool wanted = seed % 4 < 2, can = seed % 2 == 0;
    make(p, seed);
    for (int i = 0; i < p->n; i++) p->launches[i].late = seed % 3 == 0 && i % 4 == 1;
    memset(edge, 0, sizeof edge);
    cs_schedule_destroy(create_on(p, true, can ? 90 : 80, wanted));
    for (int i = 0, node = 0; i < p->n; i++) {
      for (int k = 0; k < i % 3 && p->launches[i].merged < 0; k++, node++) {
        for (int before = 0; before < 2 && node - 1 - before >= 0; before++) {
          bool kernels = node % 5 != 4 && (node - 1 - before) % 5 != 4;
          bool early = wanted && can && kernels && i % 2 == 1 && !p->launches[i].late;
          assert_int_equal(edge[node][before].type, early ? cudaGraphDependencyTypeProgrammatic
                                                          : cudaGraphDependencyTypeDefault);
          assert_int_equal(edge[node][before].from_port,
                           early ? cudaGraphKernelNodePortProgrammatic : 0);
        }
      }
    }
    launched = 0;
  }
  assert_int_equal(graphs_alive, 0);
  free(p);
}

/* Whether launch `from` has always ended when `to` begins: by its stream or what it waits for, or
 * because one of these has it behind it. */
static bool is_behind(const problem *p, int from, int to) {
  if (from == to) return true;
  for (int i = from; i < to; i++) {
    bool direct = p->launches[i].stream == p->launches[to].stream;
    for (int w = 0; w < p->launches[to].n_waits; w++) direct = direct || p->waits[to][w] == i;
    if (direct && is_behind(p, from, i)) return true;
  }
  return false;
}

/* The first kernel node of a launch, as many nodes behind `node`; −1: it has none. */
static int kernel_of(const problem *p, int launch, int node) {
  for (int k = 0; k < launch % 3 && p->launches[launch].merged < 0; k++) {
    if ((node + k) % 5 != 4) return node + k;
  }
  return -1;
}

/* Each launch that does not wait itself begins behind the beginning of the latest one before that
 * it shares no order with; no other does, and none where the device has no hints. */
static void hints_order_what_has_no_order(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  int hinted = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    int kernel[LAUNCHES], node = 0;
    bool can = seed % 5 > 0;
    make(p, seed);
    p->n = p->n < 14 ? p->n : 14; /* is_behind() takes its time */
    for (size_t i = 0; i < sizeof begins_behind / sizeof *begins_behind; i++) begins_behind[i] = -1;
    shuffled = false;
    hints = true;
    cs_schedule_destroy(create_on(p, true, can ? 90 : 80, false));
    hints = false;
    for (int i = 0; i < p->n; i++) {
      kernel[i] = kernel_of(p, i, node);
      node += p->launches[i].merged < 0 ? i % 3 : 0;
    }
    for (int i = 0; i < p->n; i++) {
      int wanted = -1;
      for (int m = 0; m < i && can && i % 2 == 0; m++) {
        bool beside = p->launches[m].stream != p->launches[i].stream && !is_behind(p, m, i);
        if (kernel[m] >= 0 && beside) wanted = kernel[m];
      }
      if (kernel[i] < 0) continue;
      assert_int_equal(begins_behind[kernel[i]], wanted);
      hinted += wanted >= 0;
    }
    launched = 0;
  }
  assert_true(hinted > 50);
  assert_int_equal(graphs_alive, 0);
  free(p);
}

/* Without a graph the streams have them: one for all launches of a stream, also of stream 0. */
static void without_a_graph_streams_have_the_priority(void **state) {
  (void)state;
  problem *p = malloc(sizeof(*p));
  urgent_by_stream = true;
  for (uint64_t seed = 0; seed < 100; seed++) {
    make(p, seed);
    for (int i = 0; i < p->n; i++) {
      p->launches[i].priority = seed >> p->launches[i].stream & 1;
    }
    cs_schedule *schedule = create(p, false);
    run_twice(p, schedule);
  }
  urgent_by_stream = false;
  cs_launch launches[2] = {{.name = "first", .merged = -1},
                           {.name = "second", .merged = -1, .priority = 1}};
  cs_cuda_backend backend = {.device = 0};
  cs_schedule *schedule = NULL;
  cs_status st = cs_schedule_create(&backend.base, launches, 2, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "stream 0: first has priority 0 and second 1"));
  cs_status_free(st);
  assert_null(schedule);
  assert_int_equal(events_alive, 0);
  free(p);
}

static void impossible_schedules_are_refused(void **state) {
  (void)state;
  cs_cuda_backend backend = {.device = 0};
  int forward[] = {1};
  cs_launch launches[2] = {{.name = "a", .n_waits = 1, .waits = forward, .merged = -1},
                           {.name = "b", .merged = -1}};
  cs_schedule *schedule = NULL;
  cs_status st = cs_schedule_create(&backend.base, launches, 2, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  launches[0].n_waits = 0;
  launches[0].merged = 0; /* with itself */
  st = cs_schedule_create(&backend.base, launches, 2, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  launches[0].merged = -1;
  launches[1].merged = 0;
  launches[1].waits = forward; /* 0: what it is launched with */
  forward[0] = 0;
  launches[1].n_waits = 1;
  st = cs_schedule_create(&backend.base, launches, 2, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  assert_non_null(strstr(cs_status_message(st), "b: launch 1 is merged with launch 0"));
  cs_status_free(st);
  launches[1].n_waits = 0;
  launches[1].merged = -1;
  launches[1].stream = 1;
  st = cs_schedule_create(&backend.base, launches, 2, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  st =
      cs_schedule_create(&backend.base, launches, 2, &(cs_stream_set){.n = 1000}, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  assert_null(schedule);
  assert_int_equal(events_alive, 0);
}

int main(void) {
  fail_at = -1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_runs_keep_every_dependency),
      cmocka_unit_test(captures_keep_every_dependency_and_know_their_nodes),
      cmocka_unit_test(a_failing_capture_leaves_nothing_behind),
      cmocka_unit_test(nodes_carry_their_launches_priority),
      cmocka_unit_test(kernels_that_wait_themselves_begin_early),
      cmocka_unit_test(hints_order_what_has_no_order),
      cmocka_unit_test(without_a_graph_streams_have_the_priority),
      cmocka_unit_test(impossible_schedules_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
