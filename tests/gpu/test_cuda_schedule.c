/* Schedules on the GPU: dependencies over streams, graph against plain calls, timing, kernels, the
 * caller's stream, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "backend/cuda/schedule.h"
#include "gpu/schedule_fixture.h"

#define STREAMS 4
#define STEPS 24
#define CHANNELS 64
#define SIZE 128

static const cs_stream_set all_streams = {.n = STREAMS};

/* A chain of sums over streams: step i adds x to what step i − 1 left, so that the last one holds
 * (STEPS + 1)·x exactly, and any step that starts early holds less. */
typedef struct chain {
  cs_exec *exec;
  int64_t elements;
  float *x, *out[STEPS];
  cs_launch launches[STEPS];
  int waits[STEPS];
  char names[STEPS][16];
} chain;

static void chain_create(chain *c) {
  memset(c, 0, sizeof(*c));
  cs_shape shape = {.rank = 4, .dims = {1, CHANNELS, SIZE, SIZE}};
  cs_op_desc d = {.op = CS_OP_ADD, .n_inputs = 2, .precision = CS_PRECISION_F32};
  d.inputs[0] = d.inputs[1] = d.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  c->exec = prepare(&d, NULL);
  c->elements = (int64_t)CHANNELS * SIZE * SIZE;
  c->x = allocate(c->elements * 4);
  float *host = malloc((size_t)c->elements * 4);
  for (int64_t i = 0; i < c->elements; i++) host[i] = (float)(i % 1001 - 500);
  ok(device->vtable->upload(device, c->x, host, c->elements * 4));
  free(host);
  for (int i = 0; i < STEPS; i++) {
    c->out[i] = allocate(c->elements * 4);
    snprintf(c->names[i], sizeof(c->names[i]), "step%d", i);
    c->waits[i] = i - 1;
    c->launches[i] = (cs_launch){.merged = -1,
                                 .exec = c->exec,
                                 .name = c->names[i],
                                 .inputs = {i ? c->out[i - 1] : c->x, c->x},
                                 .output = c->out[i],
                                 .stream = i % STREAMS,
                                 .n_waits = i ? 1 : 0,
                                 .waits = &c->waits[i]};
  }
}

static void chain_poison(const chain *c) {
  for (int i = 0; i < STEPS; i++)
    ok(device->vtable->fill(device, c->out[i], 0xFF, c->elements * 4));
}

static void chain_check(const chain *c) {
  float *host = malloc((size_t)c->elements * 4);
  ok(device->vtable->download(device, host, c->out[STEPS - 1], c->elements * 4));
  for (int64_t i = 0; i < c->elements; i++) {
    float wanted = (float)(i % 1001 - 500) * (float)(STEPS + 1);
    if (host[i] != wanted) fail_msg("element %ld: %g, wanted %g", (long)i, host[i], wanted);
  }
  free(host);
}

static void chain_destroy(chain *c) {
  for (int i = 0; i < STEPS; i++) device->vtable->release(device, c->out[i]);
  device->vtable->release(device, c->x);
  device->vtable->exec_destroy(c->exec);
}

/* Of the chain's kernels those begin early that may and have something to wait for, where the
 * device can: so says the graph. */
static void check_early(cs_schedule *schedule, const chain *c, bool wanted) {
  cs_kernel_info kernels[STEPS];
  int count = 0;
  bool can = device->vtable->info(device)->compute_capability >= 90;
  ok(device->vtable->schedule_kernels(schedule, kernels, STEPS, &count));
  assert_int_equal(count, STEPS);
  for (int i = 0; i < count; i++) {
    int step = kernels[i].launch;
    assert_int_equal(kernels[i].early, wanted && can && step > 0 && !c->launches[step].late);
  }
}

static void dependencies_over_streams_hold(void **state) {
  (void)state;
  chain c;
  chain_create(&c);
  /* By calls, in a graph, beginning early in a graph: all, all but every third, none. */
  for (int way = 0; way < 5; way++) {
    cs_stream_set streams = all_streams;
    streams.early = way >= 2;
    for (int i = 0; i < STEPS; i++) c.launches[i].late = way == 4 || (way == 3 && i % 3 == 0);
    cs_schedule *schedule = NULL;
    ok(device->vtable->schedule_create(device, c.launches, STEPS, &streams, way > 0, &schedule));
    check_early(schedule, &c, way >= 2);
    for (int repeat = 0; repeat < 20; repeat++) {
      chain_poison(&c);
      ok(device->vtable->schedule_run(schedule));
      chain_check(&c);
    }
    device->vtable->schedule_destroy(schedule);
  }
  chain_destroy(&c);
}

/* Without waits the steps race: shows that the test above can fail at all, and that streams do run
 * side by side. */
static void streams_do_overlap(void **state) {
  (void)state;
  chain c;
  chain_create(&c);
  double us[2];
  for (int serial = 0; serial < 2; serial++) {
    for (int i = 0; i < STEPS; i++) {
      c.launches[i].n_waits = 0;
      c.launches[i].inputs[0] = c.x;
      if (serial) c.launches[i].stream = 0;
    }
    cs_schedule *schedule = NULL;
    ok(device->vtable->schedule_create(device, c.launches, STEPS, &all_streams, true, &schedule));
    double samples[9];
    cs_stats stats;
    ok(device->vtable->schedule_latency(schedule, 9, samples));
    ok(cs_stats_of(samples, 9, &stats));
    us[serial] = stats.median;
    device->vtable->schedule_destroy(schedule);
  }
  print_message("independent steps: %.1f us on %d streams, %.1f us on one\n", us[0], STREAMS,
                us[1]);
  assert_true(us[0] < us[1]);
  chain_destroy(&c);
}

static void timing_is_sane(void **state) {
  (void)state;
  chain c;
  chain_create(&c);
  for (int use_graph = 0; use_graph < 2; use_graph++) {
    cs_schedule *schedule = NULL;
    ok(device->vtable->schedule_create(device, c.launches, STEPS, &all_streams, use_graph,
                                       &schedule));
    double samples[15], b2b = 0;
    cs_stats stats;
    ok(device->vtable->schedule_latency(schedule, 15, samples));
    ok(device->vtable->schedule_b2b(schedule, 50, &b2b));
    ok(cs_stats_of(samples, 15, &stats));
    print_message("graph %d: latency %.1f us (p10 %.1f, p90 %.1f), back to back %.1f us\n",
                  use_graph, stats.median, stats.p10, stats.p90, b2b);
    /* 24 dependent kernels move 12 MiB each: more than 1 us apiece, less than a millisecond. */
    assert_true(stats.median > STEPS * 1.0 && stats.median < STEPS * 1000.0);
    assert_true(b2b > STEPS * 1.0 && b2b < STEPS * 1000.0);
    chain_check(&c);
    device->vtable->schedule_destroy(schedule);
  }
  chain_destroy(&c);
}

static void kernels_are_listed(void **state) {
  (void)state;
  chain c;
  chain_create(&c);
  for (int use_graph = 0; use_graph < 2; use_graph++) {
    cs_schedule *schedule = NULL;
    cs_kernel_info kernels[4 * STEPS];
    int count = 0, seen[STEPS] = {0};
    ok(device->vtable->schedule_create(device, c.launches, STEPS, &all_streams, use_graph,
                                       &schedule));
    ok(device->vtable->schedule_kernels(schedule, kernels, 4 * STEPS, &count));
    assert_in_range(count, STEPS, 4 * STEPS);
    for (int i = 0; i < count; i++) {
      const cs_kernel_info *k = &kernels[i];
      assert_in_range(k->launch, 0, STEPS - 1);
      seen[k->launch]++;
      assert_true(strlen(k->name) > 0);
      assert_in_range(k->registers, 1, 255);
      assert_in_range(k->block[0] * k->block[1] * k->block[2], 1, 1024);
      assert_true(k->grid[0] > 0 && k->grid[1] > 0 && k->grid[2] > 0);
      assert_in_range(k->blocks_per_unit, 1, 32);
      assert_true(k->cluster[0] >= 1);
    }
    for (int i = 0; i < STEPS; i++) assert_true(seen[i] > 0);
    int told = 0;
    ok(device->vtable->schedule_kernels(schedule, kernels, 1, &told));
    assert_int_equal(told, count);
    device->vtable->schedule_destroy(schedule);
  }
  chain_destroy(&c);
}

static void runs_on_the_callers_stream(void **state) {
  (void)state;
  chain c;
  chain_create(&c);
  cudaStream_t stream;
  assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int use_graph = 0; use_graph < 2; use_graph++) {
    cs_schedule *schedule = NULL;
    ok(device->vtable->schedule_create(device, c.launches, STEPS, &all_streams, use_graph,
                                       &schedule));
    for (int repeat = 0; repeat < 5; repeat++) {
      for (int i = 0; i < STEPS; i++) {
        size_t bytes = (size_t)c.elements * 4;
        assert_int_equal(cudaMemsetAsync(c.out[i], 0xFF, bytes, stream), cudaSuccess);
      }
      ok(device->vtable->schedule_run_on(schedule, stream));
      assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
      chain_check(&c);
    }
    device->vtable->schedule_destroy(schedule);
  }
  cudaStreamDestroy(stream);
  chain_destroy(&c);
}

/* Edges of the schedule's graph that are launch-order hints. */
static int hints_of(const cs_schedule *schedule) {
  int hints = 0;
#if CUDART_VERSION >= 13000
  cudaGraphNode_t from[64], to[64];
  cudaGraphEdgeData edges[64];
  size_t n = 0;
  if (!schedule->graph) return 0;
  assert_int_equal(cudaGraphGetEdges(schedule->graph, NULL, NULL, NULL, &n), cudaSuccess);
  assert_in_range(n, 0, 64);
  assert_int_equal(cudaGraphGetEdges(schedule->graph, from, to, edges, &n), cudaSuccess);
  for (size_t i = 0; i < n; i++) {
    hints += edges[i].from_port == cudaGraphKernelNodePortLaunchCompletion;
  }
#endif
  return hints;
}

/* Three convolutions of one input, one per family of implementation, by plain calls, in a graph and
 * in one with launch-order hints (of which the second one, cuDNN's, gets one): the same bits, and
 * each kernel belongs to its launch. */
static void cudnn_in_a_graph_gives_the_same_bits(void **state) {
  (void)state;
  convs c;
  convs_create(&c, 2, 28);
  float *results[3];
  bool can = CUDART_VERSION >= 13000 && device->vtable->info(device)->hints;
  for (int way = 0; way < 3; way++) {
    cs_schedule *schedule = NULL;
    cs_kernel_info kernels[64];
    int count = 0, seen[CONVS] = {0};
    const cs_stream_set streams = {.n = CONVS, .hints = way == 2};
    ok(device->vtable->schedule_create(device, c.launches, CONVS, &streams, way > 0, &schedule));
    assert_int_equal(hints_of(schedule), way == 2 && can);
    results[way] = convs_results(&c, schedule);
    ok(device->vtable->schedule_kernels(schedule, kernels, 64, &count));
    assert_in_range(count, CONVS, 64);
    for (int i = 0; i < count; i++) {
      assert_in_range(kernels[i].launch, 0, CONVS - 1);
      seen[kernels[i].launch]++;
      print_message("launch %d: %.60s regs %d smem %d+%d blocks/SM %d\n", kernels[i].launch,
                    kernels[i].name, kernels[i].registers, kernels[i].static_shared,
                    kernels[i].dynamic_shared, kernels[i].blocks_per_unit);
    }
    for (int i = 0; i < CONVS; i++) assert_true(seen[i] > 0);
    device->vtable->schedule_destroy(schedule);
  }
  for (int way = 0; way < 3; way++) {
    assert_memory_equal(results[0], results[way], (size_t)(CONVS * c.n_out) * 4);
  }
  for (int way = 0; way < 3; way++) free(results[way]);
  convs_destroy(&c);
}

static void import_and_export_are_inverse(void **state) {
  (void)state;
  cs_shape shape = {.rank = 4, .dims = {2, 5, 7, 3}};
  cs_tensor_desc desc = cs_tensor_dense(&shape, CS_DTYPE_F16, CS_LAYOUT_NHWC);
  int64_t n = 2 * 5 * 7 * 3;
  float host[2 * 5 * 7 * 3], back[2 * 5 * 7 * 3];
  uint16_t stored[2 * 5 * 7 * 3];
  for (int i = 0; i < n; i++) host[i] = (float)(i - 100) * 0.25f;
  float *plain = allocate(n * 4), *returned = allocate(n * 4);
  void *tensor = allocate(n * 2);
  ok(device->vtable->upload(device, plain, host, n * 4));
  ok(device->vtable->import_tensor(device, plain, &desc, tensor, NULL));
  assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
  ok(device->vtable->download(device, stored, tensor, n * 2));
  /* [1, 2, 3, 1] lies at ((1·7 + 3)·3 + 1)·5 + 2. */
  assert_int_equal(stored[((1 * 7 + 3) * 3 + 1) * 5 + 2],
                   cs_f32_to_f16(host[((1 * 5 + 2) * 7 + 3) * 3 + 1]));
  ok(device->vtable->export_tensor(device, &desc, tensor, returned, NULL));
  assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
  ok(device->vtable->download(device, back, returned, n * 4));
  assert_memory_equal(host, back, sizeof(host));
  device->vtable->release(device, plain);
  device->vtable->release(device, returned);
  device->vtable->release(device, tensor);
}

static void too_much_memory_is_one_clear_error(void **state) {
  (void)state;
  void *memory = NULL;
  cs_status st = device->vtable->allocate(device, (int64_t)1 << 46, &memory);
  assert_null(memory);
  assert_int_equal(cs_status_code(st), CS_CODE_NO_MEMORY);
  assert_non_null(strstr(cs_status_message(st), "70368744177664"));
  cs_status_free(st);
  memory = allocate(1 << 20);
  device->vtable->release(device, memory);
}

static void unknown_candidates_are_bad_input(void **state) {
  (void)state;
  cs_shape shape = {.rank = 4, .dims = {1, 8, 8, 8}};
  cs_op_desc d = {.op = CS_OP_RELU, .n_inputs = 1, .precision = CS_PRECISION_F32};
  d.inputs[0] = d.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  const char *ids[] = {"nonsense", "cudnn.graph:eng1{}", "cudnn.legacy:GEMM/fma", ""};
  for (int i = 0; i < 4; i++) {
    char id[64];
    snprintf(id, sizeof(id), "%s", ids[i]);
    cs_candidate candidate = {.id = id, .family = id};
    cs_exec *exec = NULL;
    cs_status st = device->vtable->prepare(device, &d, &candidate, &exec);
    assert_null(exec);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    cs_status_free(st);
  }
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dependencies_over_streams_hold),
      cmocka_unit_test(streams_do_overlap),
      cmocka_unit_test(timing_is_sane),
      cmocka_unit_test(kernels_are_listed),
      cmocka_unit_test(runs_on_the_callers_stream),
      cmocka_unit_test(cudnn_in_a_graph_gives_the_same_bits),
      cmocka_unit_test(import_and_export_are_inverse),
      cmocka_unit_test(too_much_memory_is_one_clear_error),
      cmocka_unit_test(unknown_candidates_are_bad_input),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
