/* Parts of the SMs and priorities on the GPU: kernels stay where they belong and compute the same,
 * nodes carry their priority, nothing is leaked, the impossible is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/cuda/schedule.h"
#include "backend/cuda/split.h"
#include "gpu/schedule_fixture.h"
#include "gpu/smid.h"
#include "profiler/partition.h"

#define MOST_SMS 512
#define LEAST_STEP 2 /* of the times on more and on fewer SMs */

/* The smallest part and the rest: what every device that can be split allows. */
static cs_stream_set uneven(int n, const int *part_of) {
  const cs_device_info *info = device->vtable->info(device);
  return (cs_stream_set){.n = n,
                         .n_parts = 2,
                         .parts = {info->part_least, info->units - info->part_least},
                         .part_of = part_of};
}

static bool can_split(void) {
  const cs_device_info *info = device->vtable->info(device);
  if (info->part_least > 0 && info->units >= 3 * info->part_least) return true;
  print_message("%s cannot be split (least part %d of %d SMs)\n", info->name, info->part_least,
                info->units);
  return false;
}

/* ---- Where kernels run ---- */

static cudaStream_t stream_of(const cs_stream_set *set, int part) {
  cs_cuda_split *split = NULL;
  cudaStream_t stream = NULL;
  ok(cs_cuda_enter(cs_cuda(device)));
  ok(cs_cuda_split_find(cs_cuda(device), set, &split));
  ok(cs_cuda_split_stream(cs_cuda(device), split, part, part, false, &stream));
  return stream;
}

static void launch_smids(unsigned *seen, int n_parts, cudaStream_t *streams) {
  int units = device->vtable->info(device)->units;
  for (int p = 0; p < n_parts; p++) {
    assert_int_equal(smid_launch(seen + p * MOST_SMS, MOST_SMS, 20 * units, streams[p]),
                     cudaSuccess);
  }
}

/* The same kernels captured from the whole device's stream, forked into the parts and back. */
static void launch_smids_in_a_graph(unsigned *seen, int n_parts, cudaStream_t *streams) {
  cudaStream_t origin = NULL;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ok(cs_cuda_stream(cs_cuda(device), 0, false, &origin));
  assert_int_equal(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
  assert_int_equal(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  assert_int_equal(cudaEventRecord(fork, origin), cudaSuccess);
  for (int p = 0; p < n_parts; p++) {
    assert_int_equal(cudaStreamWaitEvent(streams[p], fork, 0), cudaSuccess);
  }
  launch_smids(seen, n_parts, streams);
  for (int p = 0; p < n_parts; p++) {
    assert_int_equal(cudaEventRecord(join, streams[p]), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(origin, join, 0), cudaSuccess);
  }
  assert_int_equal(cudaStreamEndCapture(origin, &graph), cudaSuccess);
  assert_int_equal(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  assert_int_equal(cudaGraphLaunch(executable, origin), cudaSuccess);
  assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
  assert_int_equal(cudaGraphExecDestroy(executable), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
  assert_int_equal(cudaEventDestroy(fork), cudaSuccess);
  assert_int_equal(cudaEventDestroy(join), cudaSuccess);
}

/* Every part's kernel ran on as many SMs as the part has, and on none of another part. */
static void check_seen(const unsigned *seen, const cs_stream_set *set) {
  int parts_of_sm[MOST_SMS] = {0};
  for (int p = 0; p < set->n_parts; p++) {
    int sms = 0;
    for (int i = 0; i < MOST_SMS; i++) {
      if (seen[p * MOST_SMS + i] == 0) continue;
      sms++;
      parts_of_sm[i]++;
    }
    print_message("part %d: %d SMs, %d of them used\n", p, set->parts[p], sms);
    assert_int_equal(sms, set->parts[p]);
  }
  for (int i = 0; i < MOST_SMS; i++) assert_true(parts_of_sm[i] <= 1);
}

static void kernels_stay_in_their_part(void **state) {
  (void)state;
  if (!can_split()) skip();
  const cs_device_info *info = device->vtable->info(device);
  int least = info->part_least, halves[CS_DEFAULT_SPLITS][2];
  int n = cs_parts_default(info, halves);
  assert_true(n > 0);
  const cs_stream_set sets[] = {
      uneven(1, NULL),
      {.n = 1, .n_parts = 2, .parts = {halves[n - 1][0], halves[n - 1][1]}},
      {.n = 1, .n_parts = 3, .parts = {least, least, info->units - 2 * least}}};
  size_t bytes = CS_MAX_PARTS * MOST_SMS * sizeof(unsigned);
  unsigned *seen = allocate((int64_t)bytes), *host = malloc(bytes);
  for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
    cudaStream_t streams[CS_MAX_PARTS];
    for (int p = 0; p < sets[s].n_parts; p++) streams[p] = stream_of(&sets[s], p);
    for (int use_graph = 0; use_graph < 2; use_graph++) {
      ok(device->vtable->fill(device, seen, 0, (int64_t)bytes));
      if (use_graph) {
        launch_smids_in_a_graph(seen, sets[s].n_parts, streams);
      } else {
        launch_smids(seen, sets[s].n_parts, streams);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
      }
      ok(device->vtable->download(device, host, seen, (int64_t)bytes));
      check_seen(host, &sets[s]);
    }
  }
  free(host);
  device->vtable->release(device, seen);
}

/* ---- Schedules on parts ---- */

/* Without parts or priorities. */
static float *plain_results(const convs *c) {
  cs_schedule *schedule = NULL;
  ok(device->vtable->schedule_create(device, c->launches, CONVS, &(cs_stream_set){.n = CONVS}, true,
                                     &schedule));
  float *results = convs_results(c, schedule);
  device->vtable->schedule_destroy(schedule);
  return results;
}

static void schedules_on_parts_compute_the_same(void **state) {
  (void)state;
  if (!can_split()) skip();
  convs c;
  convs_create(&c, 2, 28);
  /* Streams 0 and 1 in parts, and all three ways of convolving in each part and outside. */
  const int places[][CONVS] = {{0, 1, -1}, {1, 0, 1}, {-1, 0, 0}, {0, 0, 0}, {-1, -1, -1}};
  cs_schedule *schedule = NULL;
  float *wanted = plain_results(&c);
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    for (int use_graph = 0; use_graph < 2; use_graph++) {
      cs_stream_set set = uneven(CONVS, places[i]);
      ok(device->vtable->schedule_create(device, c.launches, CONVS, &set, use_graph, &schedule));
      float *found = convs_results(&c, schedule);
      assert_memory_equal(found, wanted, (size_t)(CONVS * c.n_out) * 4);
      free(found);
      device->vtable->schedule_destroy(schedule);
    }
  }
  free(wanted);
  convs_destroy(&c);
}

static double latency_on(const cs_launch *launch, int part, bool use_graph) {
  cs_stream_set set = uneven(1, &part);
  cs_schedule *schedule = NULL;
  double samples[9];
  cs_stats stats;
  ok(device->vtable->schedule_create(device, launch, 1, &set, use_graph, &schedule));
  ok(device->vtable->schedule_latency(schedule, 9, samples));
  ok(cs_stats_of(samples, 9, &stats));
  device->vtable->schedule_destroy(schedule);
  return stats.median;
}

/* A convolution that fills the device takes far longer on the smallest part of it: its kernels,
 * cuDNN's as ours, do keep to the part. */
static void small_parts_are_slow(void **state) {
  (void)state;
  if (!can_split()) skip();
  convs c;
  convs_create(&c, 32, 56);
  for (int i = 0; i < CONVS; i++) {
    cs_launch alone = c.launches[i];
    alone.stream = 0;
    for (int use_graph = 0; use_graph < 2; use_graph++) {
      double small = latency_on(&alone, 0, use_graph), rest = latency_on(&alone, 1, use_graph);
      double whole = latency_on(&alone, -1, use_graph);
      print_message("%s, graph %d: smallest part %.1f us, the rest %.1f, all %.1f\n",
                    alone.exec->id, use_graph, small, rest, whole);
      assert_true(small > LEAST_STEP * rest);
      assert_true(small > LEAST_STEP * whole);
    }
  }
  convs_destroy(&c);
}

static void impossible_parts_are_refused(void **state) {
  (void)state;
  if (!can_split()) skip();
  convs c;
  convs_create(&c, 1, 14);
  const cs_device_info *info = device->vtable->info(device);
  const cs_stream_set bad[] = {
      {.n = CONVS, .n_parts = 2, .parts = {1, info->units - 1}},
      {.n = CONVS, .n_parts = 2, .parts = {info->units, info->part_least}},
      {.n = CONVS, .n_parts = 2, .parts = {info->part_least + 1, info->part_least}},
      {.n = CONVS, .n_parts = 1, .parts = {info->part_least}}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    cs_schedule *schedule = NULL;
    cs_status st =
        device->vtable->schedule_create(device, c.launches, CONVS, &bad[i], true, &schedule);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    assert_non_null(strstr(cs_status_message(st), "partition"));
    cs_status_free(st);
    assert_null(schedule);
  }
  convs_destroy(&c);
}

/* ---- Priorities ---- */

/* The priority of every kernel node, as the driver tells it. */
static void check_node_priorities(const cs_schedule *s, int seen[CONVS]) {
  cudaGraphNode_t nodes[64];
  size_t n = 64;
  assert_int_equal(cudaGraphGetNodes(s->graph, nodes, &n), cudaSuccess);
  assert_int_equal(n, s->n_nodes);
  for (size_t i = 0; i < n; i++) {
    enum cudaGraphNodeType type;
    CUlaunchAttributeValue value;
    int wanted = 0;
    memset(&value, 0, sizeof(value));
    assert_int_equal(cudaGraphNodeGetType(nodes[i], &type), cudaSuccess);
    if (type != cudaGraphNodeTypeKernel) continue;
    assert_in_range(s->node_launch[i], 0, CONVS - 1);
    assert_int_equal(cs_cuda(device)->driver.graph_kernel_node_get_attribute(
                         (CUgraphNode)nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
                     CUDA_SUCCESS);
    ok(cs_cuda_priority(s->launches[s->node_launch[i]].launch.priority, &wanted));
    assert_int_equal(value.priority, wanted);
    seen[s->node_launch[i]]++;
  }
}

static void nodes_carry_their_launches_priority(void **state) {
  (void)state;
  convs c;
  convs_create(&c, 2, 28);
  int greatest = 0, least = 0;
  ok(cs_cuda_priority(true, &greatest));
  ok(cs_cuda_priority(false, &least));
  assert_true(greatest < least);
  cs_schedule *schedule = NULL;
  float *wanted = plain_results(&c);
  for (int urgent = 1; urgent < 1 << CONVS; urgent++) {
    int seen[CONVS] = {0};
    /* All on one stream, too: then only the nodes can have priorities. */
    for (int i = 0; i < CONVS; i++) {
      c.launches[i].priority = urgent >> i & 1;
      c.launches[i].stream = urgent % 2 ? i : 0;
    }
    ok(device->vtable->schedule_create(device, c.launches, CONVS, &(cs_stream_set){.n = CONVS},
                                       true, &schedule));
    check_node_priorities(schedule, seen);
    for (int i = 0; i < CONVS; i++) assert_true(seen[i] > 0);
    float *found = convs_results(&c, schedule);
    assert_memory_equal(found, wanted, (size_t)(CONVS * c.n_out) * 4);
    free(found);
    device->vtable->schedule_destroy(schedule);
  }
  free(wanted);
  convs_destroy(&c);
}

/* Parts and priorities together, and without a graph, where streams have the priority. */
static void streams_carry_priorities_without_a_graph(void **state) {
  (void)state;
  convs c;
  convs_create(&c, 2, 28);
  const int places[CONVS] = {1, 0, -1};
  cs_stream_set sets[] = {{.n = CONVS}, {.n = CONVS}};
  if (can_split()) sets[1] = uneven(CONVS, places);
  cs_schedule *schedule = NULL;
  float *wanted = plain_results(&c);
  for (int s = 0; s < 2; s++) {
    for (int urgent = 0; urgent < CONVS; urgent++) {
      for (int i = 0; i < CONVS; i++) c.launches[i].priority = i == urgent;
      ok(device->vtable->schedule_create(device, c.launches, CONVS, &sets[s], false, &schedule));
      for (int i = 0; i < CONVS; i++) {
        int found = 1, expected = 1;
        ok(cs_cuda_priority(i == urgent, &expected));
        assert_int_equal(cudaStreamGetPriority(schedule->streams[i], &found), cudaSuccess);
        assert_int_equal(found, expected);
      }
      float *found = convs_results(&c, schedule);
      assert_memory_equal(found, wanted, (size_t)(CONVS * c.n_out) * 4);
      free(found);
      device->vtable->schedule_destroy(schedule);
    }
  }
  for (int i = 0; i < CONVS; i++) c.launches[i].stream = 0;
  schedule = NULL;
  cs_status st =
      device->vtable->schedule_create(device, c.launches, CONVS, &cs_one_stream, false, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_null(schedule);
  cs_status_free(st);
  free(wanted);
  convs_destroy(&c);
}

/* ---- Nothing is left behind ---- */

static size_t free_memory(void) {
  size_t unused = 0, total = 0;
  assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
  assert_int_equal(cudaMemGetInfo(&unused, &total), cudaSuccess);
  return unused;
}

/* Schedules on parts and on the whole device in turn; `split` false: on the whole device only. */
static void make_and_drop(const convs *c, int times, bool split) {
  const int places[CONVS] = {0, 1, -1};
  cs_stream_set sets[] = {uneven(CONVS, places), {.n = CONVS}};
  for (int i = 0; i < times; i++) {
    cs_schedule *schedule = NULL;
    ok(device->vtable->schedule_create(device, c->launches, CONVS, &sets[split ? i % 2 : 1],
                                       i % 3 != 0, &schedule));
    ok(device->vtable->schedule_run(schedule));
    device->vtable->schedule_destroy(schedule);
  }
}

/* Bytes of device memory that `rounds` of opening, using and closing the device took for good. */
static int64_t lost_by_reopening(int rounds, bool split) {
  size_t before = 0;
  for (int i = 0; i <= rounds; i++) {
    convs c;
    device->vtable->close(device);
    ok(cs_cuda_backend_open(0, NULL, &device));
    convs_create(&c, 2, 28);
    make_and_drop(&c, 6, split);
    convs_destroy(&c);
    if (i == 0) before = free_memory();
  }
  return (int64_t)before - (int64_t)free_memory();
}

/* Schedules made again and again take no more memory than the first ones; a device that is opened,
 * split and closed leaves no more behind than one that is not split, but for what the driver keeps
 * of destroyed green contexts. */
static void repeated_splits_leak_nothing(void **state) {
  (void)state;
  const int64_t slack = INT64_C(2) << 20; /* pages that the driver keeps for graphs */
  const int64_t kept = INT64_C(8) << 20;  /* of two contexts that were destroyed, by 580.159 */
  if (!can_split()) skip();
  convs c;
  convs_create(&c, 2, 28);
  make_and_drop(&c, 12, true);
  int64_t before = (int64_t)free_memory();
  make_and_drop(&c, 120, true);
  assert_true((int64_t)free_memory() + slack >= before);
  convs_destroy(&c);
  int64_t whole = lost_by_reopening(6, false), split = lost_by_reopening(6, true);
  print_message("opened and closed 6 times: %lld KiB lost whole, %lld KiB split\n",
                (long long)whole / 1024, (long long)split / 1024);
  assert_true(split <= whole + 6 * kept + slack);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_stay_in_their_part),
      cmocka_unit_test(schedules_on_parts_compute_the_same),
      cmocka_unit_test(small_parts_are_slow),
      cmocka_unit_test(impossible_parts_are_refused),
      cmocka_unit_test(nodes_carry_their_launches_priority),
      cmocka_unit_test(streams_carry_priorities_without_a_graph),
      cmocka_unit_test(repeated_splits_leak_nothing),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
