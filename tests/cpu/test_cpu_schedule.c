/* Schedules on the CPU: dependencies between streams hold in every one of many runs, concurrent
 * launches keep apart, faulty schedules are refused. One OpenMP thread per worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "backend/reference/reference.h"

#define NODES 60
#define STREAMS 4

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static cs_backend *open_cpu(void) {
  cs_backend *backend = NULL;
  ok(cs_cpu_backend_open(0, NULL, &backend));
  return backend;
}

/* The candidate of fewest workspace bytes or, by name, the one whose id contains `wanted`. */
static cs_exec *prepare(cs_backend *backend, const cs_op_desc *desc, const char *wanted) {
  cs_candidate_list list = {0};
  cs_exec *exec = NULL;
  cs_enumerate_options options = {.workspace_limit = INT64_C(1) << 28, .threads = 1};
  ok(backend->vtable->enumerate(backend, desc, &options, &list));
  assert_true(list.n > 0);
  size_t pick = 0;
  while (wanted && pick < list.n && !strstr(list.items[pick].id, wanted)) pick++;
  assert_true(pick < list.n);
  ok(backend->vtable->prepare(backend, desc, &list.items[pick], &exec));
  cs_candidate_list_free(&list);
  return exec;
}

static cs_op_desc add_desc(int64_t n) {
  cs_shape shape = {2, {1, n}};
  cs_op_desc d = {.op = CS_OP_ADD, .n_inputs = 2};
  d.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.inputs[0] = d.inputs[1] = d.output;
  return d;
}

/* A random directed graph of sums: node i adds two earlier values; value 0 and 1 are inputs. */
typedef struct sum_graph {
  cs_backend *backend;
  cs_exec *exec;
  int64_t elements;
  float *values[NODES + 2];
  cs_launch launches[NODES];
  int operands[NODES][2], waits[NODES][2];
  cs_schedule *schedule;
} sum_graph;

static void sum_graph_create(sum_graph *g, uint64_t seed, int64_t elements) {
  memset(g, 0, sizeof *g);
  g->backend = open_cpu();
  g->elements = elements;
  cs_op_desc desc = add_desc(elements);
  g->exec = prepare(g->backend, &desc, NULL);
  cs_rng rng;
  cs_rng_init(&rng, seed, 0);
  for (int i = 0; i < NODES + 2; i++) {
    void *memory;
    ok(g->backend->vtable->allocate(g->backend, elements * 4, &memory));
    g->values[i] = memory;
  }
  for (int i = 0; i < NODES; i++) {
    cs_launch *l = &g->launches[i];
    *l = (cs_launch){.merged = -1,
                     .exec = g->exec,
                     .name = "sum",
                     .output = g->values[i + 2],
                     .stream = (int)(cs_rng_u32(&rng) % STREAMS),
                     .waits = g->waits[i]};
    for (int j = 0; j < 2; j++) {
      int reach = i + 2 < 6 ? i + 2 : 6; /* near operands: long chains through the streams */
      int value = i + 1 - (int)(cs_rng_u32(&rng) % (uint32_t)reach);
      g->operands[i][j] = value;
      l->inputs[j] = g->values[value];
      if (value >= 2) g->waits[i][l->n_waits++] = value - 2;
    }
  }
  ok(g->backend->vtable->schedule_create(g->backend, g->launches, NODES,
                                         &(cs_stream_set){.n = STREAMS}, true, &g->schedule));
}

static void sum_graph_destroy(sum_graph *g) {
  g->backend->vtable->schedule_destroy(g->schedule);
  for (int i = 0; i < NODES + 2; i++) g->backend->vtable->release(g->backend, g->values[i]);
  g->backend->vtable->exec_destroy(g->exec);
  g->backend->vtable->close(g->backend);
}

/* Each element of a node is one f32 sum, worked out here as well. The inputs change from run to
 * run, so that an operand left over from the run before shows. */
static void check_run(sum_graph *g, int run) {
  double wanted[NODES + 2] = {1.0 + run % 64, 0x1p-3};
  for (int64_t j = 0; j < g->elements; j++) {
    g->values[0][j] = (float)wanted[0];
    g->values[1][j] = (float)wanted[1];
  }
  ok(g->backend->vtable->schedule_run(g->schedule));
  for (int i = 0; i < NODES; i++) {
    float sum = (float)wanted[g->operands[i][0]] + (float)wanted[g->operands[i][1]];
    wanted[i + 2] = (double)sum;
    const float *found = g->values[i + 2];
    if (found[0] != sum || found[g->elements - 1] != sum)
      fail_msg("run %d, node %d: found %g and %g, wanted %g", run, i, (double)found[0],
               (double)found[g->elements - 1], (double)sum);
  }
}

static void dependencies_hold_in_every_run(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 6; seed++) {
    sum_graph g;
    sum_graph_create(&g, seed, seed % 2 ? 64 : 20000);
    for (int run = 0; run < 200; run++) check_run(&g, run);
    sum_graph_destroy(&g);
  }
}

static void times_are_told(void **state) {
  (void)state;
  sum_graph g;
  sum_graph_create(&g, 3, 512);
  check_run(&g, 0);
  double us[5] = {0}, b2b = 0;
  ok(g.backend->vtable->schedule_latency(g.schedule, 5, us));
  ok(g.backend->vtable->schedule_b2b(g.schedule, 20, &b2b));
  for (int i = 0; i < 5; i++) assert_true(us[i] > 0 && us[i] < 5e6);
  assert_true(b2b > 0 && b2b < 5e6);
  sum_graph_destroy(&g);
}

/* Once each, on its own stream, after what it waits for, in order of start; and the next run is an
 * ordinary one. */
static void a_trace_tells_every_launch(void **state) {
  (void)state;
  sum_graph g;
  cs_kernel_trace traced[NODES], *of[NODES] = {NULL};
  int n = 0;
  sum_graph_create(&g, 5, 4096);
  ok(g.backend->vtable->schedule_trace(g.schedule, traced, NODES, &n));
  assert_int_equal(n, NODES);
  for (int i = 0; i < NODES; i++) {
    int launch = traced[i].launch;
    assert_true(launch >= 0 && launch < NODES);
    assert_null(of[launch]);
    of[launch] = &traced[i];
    assert_int_equal(traced[i].stream, g.launches[launch].stream);
    assert_string_equal(traced[i].name, "sum");
    assert_true(traced[i].end_us > traced[i].start_us);
    assert_true(i == 0 ? traced[i].start_us == 0 : traced[i].start_us >= traced[i - 1].start_us);
  }
  for (int i = 0; i < NODES; i++) {
    for (int w = 0; w < g.launches[i].n_waits; w++) {
      assert_true(of[i]->start_us >= of[g.waits[i][w]]->end_us);
    }
    for (int k = 0; k < i; k++) {
      bool same = g.launches[k].stream == g.launches[i].stream;
      assert_true(!same || of[i]->start_us >= of[k]->end_us);
    }
  }
  n = 0;
  ok(g.backend->vtable->schedule_trace(g.schedule, traced, 2, &n)); /* no room: counted */
  assert_int_equal(n, NODES);
  check_run(&g, 1);
  sum_graph_destroy(&g);
}

/* A schedule that is never run must end its workers too. */
static void unused_schedules_end(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    sum_graph g;
    sum_graph_create(&g, 9, 16);
    sum_graph_destroy(&g);
  }
}

static void faulty_schedules_are_refused(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  cs_op_desc desc = add_desc(8);
  cs_exec *exec = prepare(backend, &desc, NULL);
  float a[8] = {0}, y[2][8];
  const int later[] = {1}, negative[] = {-1};
  cs_launch launches[2] = {
      {.exec = exec, .name = "first", .inputs = {a, a}, .output = y[0], .merged = -1},
      {.exec = exec, .name = "second", .inputs = {a, a}, .output = y[1], .merged = -1}};
  cs_schedule *schedule = NULL;
  launches[1].n_waits = 1;
  launches[1].waits = later;
  cs_status st =
      backend->vtable->schedule_create(backend, launches, 2, &cs_one_stream, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  assert_non_null(strstr(cs_status_message(st), "second"));
  cs_status_free(st);
  launches[1].merged = 0;
  launches[1].n_waits = 0;
  st = backend->vtable->schedule_create(backend, launches, 2, &cs_one_stream, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "launch 1 (second) is merged with launch 0"));
  cs_status_free(st);
  launches[1].merged = -1;
  launches[1].n_waits = 1;
  launches[1].waits = negative;
  st = backend->vtable->schedule_create(backend, launches, 2, &cs_one_stream, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  launches[1].n_waits = 0;
  launches[1].stream = 1;
  st = backend->vtable->schedule_create(backend, launches, 2, &cs_one_stream, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  assert_non_null(strstr(cs_status_message(st), "found stream 1"));
  cs_status_free(st);
  assert_null(schedule);
  backend->vtable->exec_destroy(exec);
  backend->vtable->close(backend);
}

/* Nothing is ignored: a CPU has neither parts nor priorities. */
static void parts_and_priorities_are_refused(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  cs_op_desc desc = add_desc(8);
  cs_exec *exec = prepare(backend, &desc, NULL);
  float a[8] = {0}, y[8];
  cs_launch launch = {.merged = -1, .exec = exec, .name = "only", .inputs = {a, a}, .output = y};
  const cs_stream_set halves = {.n = 1, .n_parts = 2, .parts = {1, 1}};
  cs_schedule *schedule = NULL;
  assert_int_equal(backend->vtable->info(backend)->part_least, 0);
  assert_false(backend->vtable->info(backend)->priorities);
  cs_status st = backend->vtable->schedule_create(backend, &launch, 1, &halves, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "cannot be split"));
  cs_status_free(st);
  launch.priority = 1;
  st = backend->vtable->schedule_create(backend, &launch, 1, &cs_one_stream, true, &schedule);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "only: priority 1"));
  cs_status_free(st);
  assert_null(schedule);
  backend->vtable->exec_destroy(exec);
  backend->vtable->close(backend);
}

static cs_op_desc conv_desc(cs_precision precision) {
  cs_shape in = {4, {1, 32, 14, 14}}, out = {4, {1, 48, 14, 14}};
  cs_dtype dtype = cs_precision_storage(precision);
  cs_op_desc d = {.op = CS_OP_CONV, .n_inputs = 1, .has_bias = true, .precision = precision};
  d.attrs.conv = (cs_conv_attrs){.out_channels = 48,
                                 .group = 1,
                                 .kernel = {3, 3},
                                 .strides = {1, 1},
                                 .pads = {1, 1, 1, 1},
                                 .dilations = {1, 1},
                                 .bias = true};
  d.activation.kind = CS_ACT_RELU;
  d.inputs[0] = cs_tensor_dense(&in, dtype, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, dtype, CS_LAYOUT_NCHW);
  return d;
}

/* The same prepared convolution on every stream at once, other inputs and workspaces: each gives
 * the bits that it gives alone. */
static void concurrent_launches_keep_apart(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  const cs_backend_vtable *v = backend->vtable;
  cs_op_desc desc = conv_desc(CS_PRECISION_BF16);
  cs_exec *exec = prepare(backend, &desc, NULL);
  assert_true(v->exec_workspace(exec) > 0);
  int64_t in = cs_tensor_span_bytes(&desc.inputs[0]), out = cs_tensor_span_bytes(&desc.output);
  int64_t n_weight = cs_op_weight_elements(&desc);
  float *weight = calloc((size_t)n_weight, sizeof *weight), bias[48] = {0};
  cs_rng rng;
  cs_rng_init(&rng, 11, 0);
  cs_rng_fill_normal(&rng, weight, n_weight, 0, 0.05);
  void *packed, *x[STREAMS], *y[STREAMS], *workspace[STREAMS], *alone[STREAMS];
  ok(v->allocate(backend, v->exec_weight_bytes(exec), &packed));
  ok(v->pack_weights(exec, weight, bias, packed));
  cs_launch launches[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    ok(v->allocate(backend, in, &x[i]));
    ok(v->allocate(backend, out, &y[i]));
    ok(v->allocate(backend, v->exec_workspace(exec), &workspace[i]));
    alone[i] = malloc((size_t)out);
    for (int64_t j = 0; j < in / 2; j++)
      ((uint16_t *)x[i])[j] = cs_f32_to_bf16((float)cs_rng_normal(&rng));
    launches[i] = (cs_launch){.merged = -1,
                              .exec = exec,
                              .name = "conv",
                              .inputs = {x[i]},
                              .output = y[i],
                              .weights = packed,
                              .workspace = workspace[i]};
    cs_schedule *single;
    ok(v->schedule_create(backend, &launches[i], 1, &cs_one_stream, true, &single));
    ok(v->schedule_run(single));
    v->schedule_destroy(single);
    memcpy(alone[i], y[i], (size_t)out);
    launches[i].stream = i;
  }
  assert_memory_not_equal(alone[0], alone[1], (size_t)out);
  cs_schedule *together;
  ok(v->schedule_create(backend, launches, STREAMS, &(cs_stream_set){.n = STREAMS}, true,
                        &together));
  for (int run = 0; run < 30; run++) {
    for (int i = 0; i < STREAMS; i++) memset(y[i], 0xFF, (size_t)out);
    ok(v->schedule_run(together));
    for (int i = 0; i < STREAMS; i++) assert_memory_equal(y[i], alone[i], (size_t)out);
  }
  v->schedule_destroy(together);
  for (int i = 0; i < STREAMS; i++) {
    v->release(backend, x[i]);
    v->release(backend, y[i]);
    v->release(backend, workspace[i]);
    free(alone[i]);
  }
  v->release(backend, packed);
  free(weight);
  v->exec_destroy(exec);
  v->close(backend);
}

static void unknown_candidates_are_refused(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  cs_op_desc desc = conv_desc(CS_PRECISION_F32);
  static char *const ids[] = {"onednn:jit:imaginary/t1",
                              "onednn:x64:gemm:jit",
                              "cpu.conv/t1",
                              "onednn:x64:gemm:jit/t0",
                              "onednn:x64:gemm:jit/t1/sideways",
                              "cudnn.graph:eng1"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    cs_candidate candidate = {.id = ids[i]};
    cs_exec *exec = NULL;
    cs_status st = backend->vtable->prepare(backend, &desc, &candidate, &exec);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    assert_null(exec);
    cs_status_free(st);
  }
  backend->vtable->close(backend);
}

static void impossible_allocations_name_the_bytes(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  void *memory = &memory;
  cs_status st = backend->vtable->allocate(backend, INT64_C(1) << 60, &memory);
  assert_int_equal(cs_status_code(st), CS_CODE_NO_MEMORY);
  assert_non_null(strstr(cs_status_message(st), "1152921504606846976"));
  assert_null(memory);
  cs_status_free(st);
  backend->vtable->close(backend);
}

static void doctor_tells_the_machine(void **state) {
  (void)state;
  json_t *object = json_object();
  ok(cs_cpu_backend_doctor(object));
  assert_true(json_integer_value(json_object_get(object, "cores")) >= 1);
  assert_true(strlen(json_string_value(json_object_get(object, "onednn"))) >= 5);
  assert_non_null(json_string_value(json_object_get(object, "isa")));
  assert_non_null(json_string_value(json_object_get(object, "openmp")));
  json_decref(object);
  cs_backend *backend = NULL;
  cs_status st = cs_cpu_backend_open(1, NULL, &backend);
  assert_int_equal(cs_status_code(st), CS_CODE_DEVICE);
  assert_null(backend);
  cs_status_free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dependencies_hold_in_every_run),
      cmocka_unit_test(times_are_told),
      cmocka_unit_test(a_trace_tells_every_launch),
      cmocka_unit_test(unused_schedules_end),
      cmocka_unit_test(faulty_schedules_are_refused),
      cmocka_unit_test(parts_and_priorities_are_refused),
      cmocka_unit_test(concurrent_launches_keep_apart),
      cmocka_unit_test(unknown_candidates_are_refused),
      cmocka_unit_test(impossible_allocations_name_the_bytes),
      cmocka_unit_test(doctor_tells_the_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
