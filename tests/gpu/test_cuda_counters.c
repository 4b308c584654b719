/* Counters, traces and the state of a real GPU: two convolutions and a pooling of the first one's
 * output, over two streams. Where counters are not permitted, the error is what is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "gpu/open_device.h"
#include "profiler/kernel_compare.h"

#define N 8
#define IN 64
#define OUT 128
#define SIZE 56
#define POOLED 28
#define LAUNCHES 3
#define POOL (LAUNCHES - 1)
#define MAX_KERNELS 32

static cs_backend *device;
static int warnings;

static void count_warnings(void *user, cs_log_level level, const char *message) {
  (void)user;
  if (level != CS_LOG_WARNING) return;
  warnings++;
  print_message("warning: %s\n", message);
}

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

/* True where there are counters (or traces); else the refusal must be the documented one. */
static bool permitted(cs_status st, const char *what) {
  if (cs_status_code(st) != CS_CODE_NOT_FOUND) {
    ok(st);
    return true;
  }
  char start[64];
  snprintf(start, sizeof(start), "%s: unavailable (", what);
  const char *text = cs_status_message(st);
  print_message("not permitted here: %s\n", text);
  assert_memory_equal(text, start, strlen(start));
  assert_non_null(strstr(text, "): "));
  cs_status_free(st);
  return false;
}

/* ---- The schedule ---- */

typedef struct fixture {
  cs_exec *execs[LAUNCHES];
  void *input, *outputs[LAUNCHES], *weights[LAUNCHES], *workspaces[LAUNCHES];
  cs_launch launches[LAUNCHES];
  cs_schedule *schedule;
  cs_kernel_info kernels[MAX_KERNELS];
  int n_kernels;
} fixture;

static fixture f;

static void *allocate(int64_t bytes) {
  void *memory = NULL;
  ok(device->vtable->allocate(device, bytes > 0 ? bytes : 1, &memory));
  return memory;
}

static cs_exec *prepare(const cs_op_desc *desc) {
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = (int64_t)64 << 20, .deterministic = true};
  ok(device->vtable->enumerate(device, desc, &options, &list));
  cs_exec *exec = NULL;
  if (list.n > 0) ok(device->vtable->prepare(device, desc, &list.items[0], &exec));
  assert_non_null(exec);
  cs_candidate_list_free(&list);
  return exec;
}

static cs_op_desc conv_desc(void) {
  cs_shape in = {.rank = 4, .dims = {N, IN, SIZE, SIZE}};
  cs_shape out = {.rank = 4, .dims = {N, OUT, SIZE, SIZE}};
  cs_op_desc d = {.op = CS_OP_CONV,
                  .attrs.conv = {.out_channels = OUT,
                                 .group = 1,
                                 .kernel = {3, 3},
                                 .strides = {1, 1},
                                 .pads = {1, 1, 1, 1},
                                 .dilations = {1, 1}},
                  .n_inputs = 1,
                  .precision = CS_PRECISION_TF32};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return d;
}

static cs_op_desc pool_desc(void) {
  cs_shape in = {.rank = 4, .dims = {N, OUT, SIZE, SIZE}};
  cs_shape out = {.rank = 4, .dims = {N, OUT, POOLED, POOLED}};
  cs_op_desc d = {.op = CS_OP_MAX_POOL,
                  .attrs.pool = {.kernel = {2, 2}, .strides = {2, 2}, .dilations = {1, 1}},
                  .n_inputs = 1,
                  .precision = CS_PRECISION_TF32};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return d;
}

static int64_t output_bytes(int launch) {
  int64_t side = launch == POOL ? POOLED : SIZE;
  return (int64_t)N * OUT * side * side * 4;
}

static void *upload_weights(const cs_op_desc *desc, const cs_exec *exec, uint64_t stream) {
  int64_t n = cs_op_weight_elements(desc), bytes = device->vtable->exec_weight_bytes(exec);
  float *weight = calloc((size_t)n, sizeof(float));
  void *packed = calloc(1, (size_t)bytes), *memory = allocate(bytes);
  cs_rng rng;
  cs_rng_init(&rng, 2, stream);
  cs_rng_fill_normal(&rng, weight, n, 0, 0.05);
  ok(device->vtable->pack_weights(exec, weight, NULL, packed));
  ok(device->vtable->upload(device, memory, packed, bytes));
  free(packed);
  free(weight);
  return memory;
}

static void *upload_input(void) {
  int64_t n = (int64_t)N * IN * SIZE * SIZE;
  float *host = calloc((size_t)n, sizeof(float));
  cs_rng rng;
  cs_rng_init(&rng, 1, 0);
  cs_rng_fill_normal(&rng, host, n, 0, 1);
  void *memory = allocate(n * 4);
  ok(device->vtable->upload(device, memory, host, n * 4));
  free(host);
  return memory;
}

static int create(void **state) {
  (void)state;
  static const char *const names[] = {"conv1", "conv2", "pool"};
  memset(&f, 0, sizeof(f));
  f.input = upload_input();
  for (int i = 0; i < LAUNCHES; i++) {
    cs_op_desc desc = i == POOL ? pool_desc() : conv_desc();
    f.execs[i] = prepare(&desc);
    f.outputs[i] = allocate(output_bytes(i));
    f.workspaces[i] = allocate(device->vtable->exec_workspace(f.execs[i]));
    if (i != POOL) f.weights[i] = upload_weights(&desc, f.execs[i], (uint64_t)i);
    f.launches[i] = (cs_launch){.merged = -1,
                                .exec = f.execs[i],
                                .name = names[i],
                                .inputs = {i == POOL ? f.outputs[0] : f.input},
                                .output = f.outputs[i],
                                .weights = f.weights[i],
                                .workspace = f.workspaces[i],
                                .stream = i == 1};
  }
  return 0;
}

static int destroy(void **state) {
  (void)state;
  if (f.schedule) device->vtable->schedule_destroy(f.schedule);
  for (int i = 0; i < LAUNCHES; i++) {
    device->vtable->release(device, f.outputs[i]);
    device->vtable->release(device, f.workspaces[i]);
    if (f.weights[i]) device->vtable->release(device, f.weights[i]);
    device->vtable->exec_destroy(f.execs[i]);
  }
  device->vtable->release(device, f.input);
  return 0;
}

static void realise(bool use_graph) {
  if (f.schedule) device->vtable->schedule_destroy(f.schedule);
  f.schedule = NULL;
  ok(device->vtable->schedule_create(device, f.launches, LAUNCHES, &(cs_stream_set){.n = 2},
                                     use_graph, &f.schedule));
  ok(device->vtable->schedule_kernels(f.schedule, f.kernels, MAX_KERNELS, &f.n_kernels));
  assert_in_range(f.n_kernels, LAUNCHES, MAX_KERNELS);
}

/* ---- Counters ---- */

static void print_counters(const char *name, const cs_counters *c) {
  static const char *const names[] = {
#define NAME(counter, unit, meaning) #counter " " unit,
      CS_COUNTERS(NAME)
#undef NAME
  };
  print_message("%.70s\n", name);
  for (int i = 0; i < CS_COUNTER_COUNT; i++) print_message("  %s %.3g\n", names[i], c->value[i]);
}

static void percentages_are_percentages(const cs_counters *c) {
  const cs_counter percentages[] = {CS_COUNTER_issue_pct,     CS_COUNTER_alu_pct,
                                    CS_COUNTER_fma_pct,       CS_COUNTER_tensor_pct,
                                    CS_COUNTER_occupancy_pct, CS_COUNTER_sm_active_pct,
                                    CS_COUNTER_dram_pct,      CS_COUNTER_l2_pct};
  for (size_t i = 0; i < sizeof(percentages) / sizeof(percentages[0]); i++) {
    double value = c->value[percentages[i]];
    assert_true(isfinite(value) && value >= 0 && value <= 100);
  }
  assert_true(c->value[CS_COUNTER_duration_us] > 0.5 && c->value[CS_COUNTER_duration_us] < 1e5);
  assert_true(c->value[CS_COUNTER_issue_pct] > 0 && c->value[CS_COUNTER_occupancy_pct] > 0);
  assert_true(c->value[CS_COUNTER_sm_active_pct] > 0);
  assert_true(c->value[CS_COUNTER_memory_stall_ratio] >= 0);
  for (int i = CS_COUNTER_stall_registers; i <= CS_COUNTER_stall_blocks; i++) {
    assert_true(c->value[i] >= 0);
  }
}

static void every_kernel_is_counted(void **state) {
  (void)state;
  for (int use_graph = 0; use_graph < 2; use_graph++) {
    realise(use_graph);
    cs_kernel_counts counts[MAX_KERNELS];
    int n = 0;
    double busiest_conv = 0;
    cs_status st = device->vtable->schedule_counters(f.schedule, counts, MAX_KERNELS, &n);
    if (!permitted(st, "counters")) {
      assert_int_equal(n, 0);
      return;
    }
    assert_int_equal(n, f.n_kernels);
    for (int i = 0; i < n; i++) {
      const double *v = counts[i].counters.value;
      print_counters(counts[i].name, &counts[i].counters);
      assert_string_equal(counts[i].name, f.kernels[i].name);
      percentages_are_percentages(&counts[i].counters);
      double busy = fmax(v[CS_COUNTER_tensor_pct], v[CS_COUNTER_fma_pct]);
      if (f.kernels[i].launch == POOL) {
        assert_true(v[CS_COUNTER_tensor_pct] == 0);
      } else {
        busiest_conv = fmax(busiest_conv, busy);
      }
    }
    assert_true(busiest_conv > 10); /* 3.7 GFLOP are not done by idle pipes */
    int told = 0;
    ok(device->vtable->schedule_counters(f.schedule, counts, 1, &told));
    assert_int_equal(told, n);
  }
}

static void a_whole_run(bool use_graph) {
  realise(use_graph);
  cs_counters whole;
  cs_status st = device->vtable->schedule_counters_whole(f.schedule, &whole);
  if (!permitted(st, "counters")) return;
  print_counters(use_graph ? "whole run, graph" : "whole run, stream calls", &whole);
  percentages_are_percentages(&whole);
}

static void a_whole_run_is_counted(void **state) {
  (void)state;
  a_whole_run(false);
}

static void a_whole_graph_is_counted(void **state) {
  (void)state;
  a_whole_run(true);
}

static void counting_changes_no_result(void **state) {
  (void)state;
  realise(true);
  unsigned char *results[2];
  for (int after = 0; after < 2; after++) {
    cs_kernel_counts counts[MAX_KERNELS];
    cs_counters whole;
    int n = 0;
    if (after) {
      for (int i = 0; i < LAUNCHES; i++) {
        ok(device->vtable->fill(device, f.outputs[i], 0xFF, output_bytes(i)));
      }
      cs_status st = device->vtable->schedule_counters(f.schedule, counts, MAX_KERNELS, &n);
      bool counted = permitted(st, "counters");
      st = device->vtable->schedule_counters_whole(f.schedule, &whole);
      if (!permitted(st, "counters") || !counted) ok(device->vtable->schedule_run(f.schedule));
    } else {
      ok(device->vtable->schedule_run(f.schedule));
    }
    results[after] = malloc((size_t)output_bytes(POOL));
    ok(device->vtable->download(device, results[after], f.outputs[POOL], output_bytes(POOL)));
  }
  assert_memory_equal(results[0], results[1], (size_t)output_bytes(POOL));
  free(results[0]);
  free(results[1]);
}

static double median_latency(void) {
  double samples[31];
  cs_stats stats;
  for (int i = 0; i < 300; i++) ok(device->vtable->schedule_run(f.schedule));
  ok(device->vtable->schedule_latency(f.schedule, 31, samples));
  ok(cs_stats_of(samples, 31, &stats));
  return stats.median;
}

static void times_after_counting_are_those_before(void **state) {
  (void)state;
  realise(true);
  cs_kernel_counts counts[MAX_KERNELS];
  cs_kernel_trace traced[MAX_KERNELS];
  cs_counters whole;
  int n = 0;
  double before = median_latency();
  (void)permitted(device->vtable->schedule_counters(f.schedule, counts, MAX_KERNELS, &n),
                  "counters");
  (void)permitted(device->vtable->schedule_counters_whole(f.schedule, &whole), "counters");
  double counted = median_latency();
  (void)permitted(device->vtable->schedule_trace(f.schedule, traced, MAX_KERNELS, &n), "trace");
  double traced_too = median_latency();
  print_message("latency: %.2f us before, %.2f us after counting, %.2f us after tracing\n", before,
                counted, traced_too);
  assert_true(fabs(counted - before) < 0.1 * before);
  assert_true(fabs(traced_too - before) < 0.1 * before);
}

/* ---- Traces ---- */

static void a_run_is_traced(bool use_graph) {
  realise(use_graph);
  cs_kernel_trace traced[MAX_KERNELS];
  cs_kernel_comparison found;
  int n = 0;
  warnings = 0;
  cs_status st = device->vtable->schedule_trace(f.schedule, traced, MAX_KERNELS, &n);
  if (!permitted(st, "trace")) return;
  assert_int_equal(n, f.n_kernels);
  assert_true(traced[0].start_us == 0);
  for (int i = 0; i < n; i++) {
    print_message("%8.2f to %8.2f us, stream %d: %.60s\n", traced[i].start_us, traced[i].end_us,
                  traced[i].stream, traced[i].name);
    assert_true(traced[i].end_us > traced[i].start_us && traced[i].end_us < 1e5);
    if (i > 0) assert_true(traced[i].start_us >= traced[i - 1].start_us);
  }
  cs_strbuf text = {0};
  ok(cs_compare_kernels(f.kernels, f.n_kernels, traced, n, &text, &found));
  if (found.differences > 0) print_message("%s", text.data);
  cs_strbuf_free(&text);
  assert_int_equal(found.differences, 0);
  assert_int_equal(warnings, 0);
}

static void stream_calls_are_traced(void **state) {
  (void)state;
  a_run_is_traced(false);
}

static void a_graph_is_traced(void **state) {
  (void)state;
  a_run_is_traced(true);
}

/* ---- State ---- */

static void the_device_tells_its_state(void **state) {
  (void)state;
  cs_device_state s;
  realise(true);
  for (int i = 0; i < 300; i++) ok(device->vtable->schedule_run(f.schedule));
  ok(device->vtable->state(device, &s));
  print_message(
      "%g MHz, memory %g MHz, %g C, %g W, throttle '%s', others %d, partitioned %d, '%s'\n",
      s.clock_mhz, s.memory_clock_mhz, s.temperature_c, s.power_w, s.throttle, s.other_processes,
      s.partitioned, s.unavailable);
  if (strstr(s.unavailable, "no NVML")) {
    assert_true(isnan(s.clock_mhz) && s.other_processes == -1 && s.partitioned == -1);
    return;
  }
  assert_true(s.clock_mhz > 100 && s.clock_mhz < 10000);
  assert_true(s.memory_clock_mhz > 100);
  assert_true(s.temperature_c > 0 && s.temperature_c < 120);
  assert_true(s.power_w > 0);
  assert_in_range(s.partitioned, 0, 1);
}

int main(void) {
  cs_logger logger = {.write = count_warnings};
  device = open_or_skip(&logger);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_kernel_is_counted, create, destroy),
      cmocka_unit_test_setup_teardown(a_whole_run_is_counted, create, destroy),
      cmocka_unit_test_setup_teardown(a_whole_graph_is_counted, create, destroy),
      cmocka_unit_test_setup_teardown(counting_changes_no_result, create, destroy),
      cmocka_unit_test_setup_teardown(times_after_counting_are_those_before, create, destroy),
      cmocka_unit_test_setup_teardown(stream_calls_are_traced, create, destroy),
      cmocka_unit_test_setup_teardown(a_graph_is_traced, create, destroy),
      cmocka_unit_test_setup_teardown(the_device_tells_its_state, create, destroy),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
