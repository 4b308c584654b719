/* The SM model against timelines worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <string.h>

#include "scheduler/sm_model.h"

#define NEAR 1e-5 /* microseconds */

/* Four SMs as an H100's; nothing costs anything but the blocks themselves. */
static const cs_device_info four = {.name = "four SMs",
                                    .units = 4,
                                    .unit = {.registers = 65536,
                                             .threads = 2048,
                                             .blocks = 32,
                                             .shared_bytes = 233472,
                                             .reserved_shared_bytes = 1024,
                                             .warp_size = 32}};
static const cs_sm_constants ideal = {
    .pipe_capacity = 1, .l2_capacity = 1, .dram_capacity = 1, .cache_share = 0.5};

static void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

static void assert_fails(cs_status status, cs_code code, const char *part) {
  assert_true(status != CS_OK);
  assert_int_equal(cs_status_code(status), code);
  if (!strstr(cs_status_message(status), part)) print_error("%s\n", cs_status_message(status));
  assert_non_null(strstr(cs_status_message(status), part));
  cs_status_free(status);
}

static void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= NEAR)) print_error("found %.9g, wanted %.9g\n", found, wanted);
  assert_true(fabs(found - wanted) <= NEAR);
}

typedef struct fixture {
  cs_sm_model *model;
  cs_sm_kernel kernels[8];
  cs_sm_launch launches[8];
  cs_sm_span spans[8];
  cs_sm_timeline timeline;
  int n;
} fixture;

static void open_model(fixture *f, const cs_sm_constants *constants) {
  *f = (fixture){0};
  assert_ok(cs_sm_model_create(&four, constants, &f->model));
}

static cs_kernel_info kernel(int blocks, int threads, int registers, int shared) {
  return (cs_kernel_info){.name = "k",
                          .grid = {blocks, 1, 1},
                          .block = {threads, 1, 1},
                          .cluster = {1, 1, 1},
                          .registers = registers,
                          .dynamic_shared = shared};
}

/* One block of these fills the registers of an SM; of the others a quarter. */
static cs_kernel_info filling(int blocks) {
  return kernel(blocks, 256, 255, 0);
}
static cs_kernel_info quarter(int blocks) {
  return kernel(blocks, 256, 64, 0);
}

static int add_counted(fixture *f, cs_kernel_info info, const cs_counters *counters, double solo_us,
                       int stream) {
  int i = f->n++;
  assert_ok(cs_sm_kernel_prepare(f->model, &info, counters, solo_us, &f->kernels[i]));
  f->launches[i] = (cs_sm_launch){.kernel = &f->kernels[i], .stream = stream};
  return i;
}

static int add(fixture *f, cs_kernel_info info, double solo_us, int stream) {
  return add_counted(f, info, NULL, solo_us, stream);
}

static void wait_for(fixture *f, int i, const int *waits, int n) {
  f->launches[i].waits = waits;
  f->launches[i].n_waits = n;
}

/* Simulates; the whole must take `total_us`. */
static void takes(fixture *f, double total_us) {
  assert_ok(cs_sm_simulate(f->model, f->launches, f->n, 1, f->spans, &f->timeline));
  assert_near(f->timeline.total_us, total_us);
}

static void runs(const fixture *f, int i, double start_us, double end_us) {
  assert_near(f->spans[i].start_us, start_us);
  assert_near(f->spans[i].end_us, end_us);
}

/* All SMs active for all of `solo_us`, and one rate at `percent` of its peak. */
static cs_counters counters_of(double solo_us, cs_counter counter, double percent) {
  cs_counters counters;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) counters.value[i] = NAN;
  counters.value[CS_COUNTER_duration_us] = solo_us;
  counters.value[CS_COUNTER_sm_active_pct] = 100;
  counters.value[counter] = percent;
  return counters;
}

/* ---- Alone ---- */

static void test_alone(void **state) {
  (void)state;
  static const int grids[] = {1, 3, 4, 5, 16, 17, 100, 1000, 123457};
  for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
    for (int cluster = 1; cluster <= 4; cluster++) {
      fixture f;
      cs_kernel_info info = quarter(grids[g]);
      cs_counters busy = counters_of(12.5, CS_COUNTER_dram_pct, 100);
      info.cluster[0] = cluster;
      for (int i = 0; i < 4; i++) busy.value[CS_COUNTER_issue_pct + i] = 100;
      open_model(&f, NULL);
      add_counted(&f, info, &busy, 12.5, 0);
      takes(&f, 12.5);
      add_counted(&f, filling(grids[g]), &busy, 0.4, 0); /* shorter than a launch gap */
      takes(&f, 12.9);
      assert_near(f.timeline.overlap, 0);
      assert_string_equal(cs_sm_timeline_limiter(&f.timeline), "none");
      cs_sm_model_destroy(f.model);
    }
  }
}

/* ---- Room ---- */

static void test_side_by_side(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  add(&f, filling(2), 10, 0); /* two SMs each */
  add(&f, filling(2), 7, 1);
  takes(&f, 10);
  runs(&f, 1, 0, 7);
  assert_near(f.timeline.overlap, 0.7);
  assert_string_equal(cs_sm_timeline_limiter(&f.timeline), "none");
  cs_sm_model_destroy(f.model);
}

static void test_share_an_sm(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  add(&f, quarter(8), 10, 0); /* half of every SM each */
  add(&f, quarter(8), 7, 1);
  takes(&f, 10);
  runs(&f, 1, 0, 7);
  cs_sm_model_destroy(f.model);
}

static void test_registers_keep_apart(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  add(&f, filling(4), 10, 0);
  add(&f, filling(4), 7, 1);
  takes(&f, 17);
  runs(&f, 1, 10, 17);
  assert_near(f.timeline.overlap, 0);
  assert_string_equal(cs_sm_timeline_limiter(&f.timeline), "registers");
  assert_near(f.timeline.held[CS_RESOURCE_REGISTERS], 4 * 10);
  cs_sm_model_destroy(f.model);
}

static void test_other_resources_keep_apart(void **state) {
  (void)state;
  const struct {
    cs_kernel_info a, b;
    const char *limiter;
  } cases[] = {{kernel(4, 128, 32, 200000), kernel(4, 128, 32, 40000), "shared"},
               {kernel(8, 1024, 32, 0), kernel(4, 256, 32, 0), "registers"},
               {kernel(8, 1024, 16, 0), kernel(4, 256, 16, 0), "threads"},
               {kernel(128, 32, 16, 0), kernel(4, 32, 16, 0), "blocks"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    open_model(&f, &ideal);
    add(&f, cases[i].a, 3, 0);
    add(&f, cases[i].b, 4, 1);
    takes(&f, 7);
    assert_string_equal(cs_sm_timeline_limiter(&f.timeline), cases[i].limiter);
    cs_sm_model_destroy(f.model);
  }
}

/* Six blocks on four SMs are two waves of 5 us; the second leaves two SMs. */
static void test_partial_wave(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  add(&f, filling(6), 10, 0);
  add(&f, filling(3), 8, 1); /* three blocks of 8 us: two start at 5 us, the third at 10 us */
  takes(&f, 18);
  runs(&f, 0, 0, 10);
  runs(&f, 1, 5, 18);
  assert_near(f.timeline.overlap, 5 / 18.0);
  cs_sm_model_destroy(f.model);
}

/* Blocks are handed out in order: what does not fit keeps the ones behind it waiting. */
static void test_launch_order(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  add(&f, filling(2), 10, 0);
  add(&f, filling(4), 5, 1); /* two at 0, two at 5 */
  add(&f, filling(2), 3, 2); /* at 10: behind the one above until its last blocks have ended */
  takes(&f, 13);
  runs(&f, 1, 0, 10);
  runs(&f, 2, 10, 13);
  f.n = 0;
  add(&f, filling(2), 10, 0);
  add(&f, filling(2), 3, 2);
  add(&f, filling(4), 5, 1); /* two at 3, two at 8 */
  takes(&f, 13);
  runs(&f, 2, 3, 13);
  cs_sm_model_destroy(f.model);
}

static void test_clusters_start_whole(void **state) {
  (void)state;
  fixture f;
  cs_kernel_info three = filling(3);
  three.cluster[0] = 3;
  open_model(&f, &ideal);
  add(&f, filling(2), 10, 0);
  add(&f, three, 4, 1); /* two SMs are free: not enough for a cluster of three */
  takes(&f, 14);
  runs(&f, 1, 10, 14);
  cs_sm_model_destroy(f.model);
}

/* ---- Rates ---- */

static void test_bandwidth(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  cs_counters a = counters_of(10, CS_COUNTER_dram_pct, 80);
  cs_counters b = counters_of(10, CS_COUNTER_dram_pct, 80);
  add_counted(&f, filling(2), &a, 10, 0); /* on SMs of their own */
  add_counted(&f, filling(2), &b, 10, 1);
  takes(&f, 16); /* 0.8 + 0.8 of the DRAM for 10 us */
  runs(&f, 0, 0, 16);
  assert_near(f.timeline.slowed[CS_SM_DRAM], 4 * 16 * (1 - 10.0 / 16));
  /* 0.6 + 0.6: 1/1.2 of the pace until the second ends at 6 us; then 5 us of the first are left. */
  f.n = 0;
  a = counters_of(10, CS_COUNTER_dram_pct, 60);
  b = counters_of(5, CS_COUNTER_dram_pct, 60);
  add_counted(&f, filling(2), &a, 10, 0);
  add_counted(&f, filling(2), &b, 5, 1);
  takes(&f, 11);
  runs(&f, 1, 0, 6);
  cs_sm_model_destroy(f.model);
}

static void test_cache_and_dram(void **state) {
  (void)state;
  fixture f;
  open_model(&f, &ideal);
  cs_counters a = counters_of(10, CS_COUNTER_l2_pct, 90);
  cs_counters b = counters_of(10, CS_COUNTER_dram_pct, 90);
  add_counted(&f, filling(2), &a, 10, 0); /* different resources: neither slows the other */
  add_counted(&f, filling(2), &b, 10, 1);
  takes(&f, 10);
  b.value[CS_COUNTER_l2_pct] = 60; /* 1.5 of the L2 */
  f.n = 0;
  add_counted(&f, filling(2), &a, 10, 0);
  add_counted(&f, filling(2), &b, 10, 1);
  takes(&f, 15);
  cs_sm_model_destroy(f.model);
}

static void test_pipes(void **state) {
  (void)state;
  static const cs_counter counters[] = {CS_COUNTER_issue_pct, CS_COUNTER_alu_pct,
                                        CS_COUNTER_fma_pct, CS_COUNTER_tensor_pct};
  for (int r = 0; r < CS_SM_UNIT_RATES; r++) {
    fixture f;
    cs_counters busy = counters_of(10, counters[r], 75);
    open_model(&f, &ideal);
    add_counted(&f, quarter(4), &busy, 10, 0);
    add_counted(&f, quarter(4), &busy, 10, 1);
    takes(&f, 15); /* 1.5 of the pipe of every SM */
    assert_true(f.timeline.slowed[r] > 0);
    f.n = 0;
    busy.value[CS_COUNTER_sm_active_pct] = 50;
    add_counted(&f, filling(2), &busy, 10, 0); /* two SMs each: a pipe of their own */
    add_counted(&f, filling(2), &busy, 10, 1);
    takes(&f, 10);
    cs_sm_model_destroy(f.model);
  }
}

/* Of two slowed by different pipes each follows its own. */
static void test_unconcerned_kernel_keeps_its_pace(void **state) {
  (void)state;
  fixture f;
  cs_counters tensor = counters_of(10, CS_COUNTER_tensor_pct, 75);
  cs_counters fma = counters_of(10, CS_COUNTER_fma_pct, 20);
  open_model(&f, &ideal);
  add_counted(&f, quarter(4), &tensor, 10, 0);
  add_counted(&f, quarter(4), &tensor, 10, 1);
  add_counted(&f, quarter(4), &fma, 10, 2);
  takes(&f, 15);
  runs(&f, 2, 0, 10);
  cs_sm_model_destroy(f.model);
}

/* ---- Order and costs of launching ---- */

static void test_dependencies(void **state) {
  (void)state;
  fixture f;
  const int fork[] = {0}, join[] = {1, 2};
  open_model(&f, &ideal);
  add(&f, quarter(4), 2, 0);
  wait_for(&f, add(&f, quarter(4), 5, 0), fork, 1); /* said twice: stream and wait */
  wait_for(&f, add(&f, quarter(4), 3, 1), fork, 1);
  wait_for(&f, add(&f, quarter(4), 1, 1), join, 2);
  takes(&f, 8);
  runs(&f, 1, 2, 7);
  runs(&f, 2, 2, 5);
  runs(&f, 3, 7, 8);
  assert_near(f.timeline.overlap, 3 / 8.0);
  cs_sm_model_destroy(f.model);
}

static void test_launch_costs(void **state) {
  (void)state;
  fixture f;
  cs_sm_constants constants = ideal;
  constants.gap_us = 1;
  constants.launch_us = 0.5;
  constants.edge_warm_us = 0.25;
  constants.edge_cold_us = 0.75;
  open_model(&f, &constants);
  add(&f, quarter(4), 4, 0); /* ready at 1, 3 us long */
  add(&f, quarter(4), 6, 1); /* launched 0.5 later */
  add(&f, quarter(4), 3, 0); /* waits for the first: 4 + 0.75 + 1 */
  takes(&f, 7.75);
  runs(&f, 0, 1, 4);
  runs(&f, 1, 1.5, 6.5);
  runs(&f, 2, 5.75, 7.75);
  assert_ok(cs_sm_simulate(f.model, f.launches, f.n, 0, f.spans, &f.timeline));
  runs(&f, 2, 5.25, 7.25);
  f.launches[1].stream = 0; /* one stream: the times alone have it all */
  takes(&f, 13);
  cs_sm_model_destroy(f.model);
}

/* ---- A candidate's kernels ---- */

static void test_split_of_time(void **state) {
  (void)state;
  fixture f;
  cs_kernel_profile kernels[2] = {{.info = filling(4)}, {.info = filling(10)}};
  cs_record record = {.kernels = kernels, .n_kernels = 2};
  open_model(&f, &ideal);
  /* One wave and three. */
  assert_ok(cs_sm_kernels_prepare(f.model, &record, 8, f.kernels));
  assert_near(f.kernels[0].block_us, 2);
  assert_near(f.kernels[1].block_us, 2);
  for (int k = 0; k < 2; k++) {
    kernels[k].counted = true;
    kernels[k].counters = counters_of(k == 0 ? 3 : 1, CS_COUNTER_l2_pct, 10);
  }
  assert_ok(cs_sm_kernels_prepare(f.model, &record, 8, f.kernels));
  assert_near(f.kernels[0].block_us, 6);
  assert_near(f.kernels[1].block_us, 2 / 3.0);
  kernels[1].counted = false; /* one unknown: none are used */
  assert_ok(cs_sm_kernels_prepare(f.model, &record, 8, f.kernels));
  assert_near(f.kernels[0].block_us, 2);
  record.candidate.id = (char *)(uintptr_t) "some:id";
  record.n_kernels = 0;
  assert_fails(cs_sm_kernels_prepare(f.model, &record, 8, f.kernels), CS_CODE_NOT_FOUND, "some:id");
  cs_sm_model_destroy(f.model);
}

/* ---- Bad input ---- */

static void test_bad_input(void **state) {
  (void)state;
  fixture f;
  cs_sm_model *none;
  cs_device_info unknown = {.name = "a CPU", .units = 4};
  cs_kernel_info large = kernel(4, 1024, 255, 0), info = filling(4);
  cs_kernel_info wide = filling(10);
  const int late[] = {1};
  assert_fails(cs_sm_model_create(&unknown, NULL, &none), CS_CODE_BAD_INPUT, "a CPU");
  assert_null(none);
  open_model(&f, &ideal);
  assert_fails(cs_sm_kernel_prepare(f.model, &large, NULL, 1, &f.kernels[0]), CS_CODE_BAD_INPUT,
               "kernel k");
  wide.cluster[0] = 5;
  assert_fails(cs_sm_kernel_prepare(f.model, &wide, NULL, 1, &f.kernels[0]), CS_CODE_BAD_INPUT,
               "cluster of 5");
  assert_fails(cs_sm_kernel_prepare(f.model, &info, NULL, NAN, &f.kernels[0]), CS_CODE_BAD_INPUT,
               "nan");
  assert_fails(cs_sm_simulate(f.model, f.launches, 0, 1, NULL, &f.timeline), CS_CODE_BAD_INPUT,
               "0 launches");
  add(&f, info, 1, 0);
  add(&f, info, 1, 0);
  f.launches[1].stream = 2;
  assert_fails(cs_sm_simulate(f.model, f.launches, 2, 1, NULL, &f.timeline), CS_CODE_BAD_INPUT,
               "stream 2");
  f.launches[1].stream = 0;
  wait_for(&f, 1, late, 1);
  assert_fails(cs_sm_simulate(f.model, f.launches, 2, 1, NULL, &f.timeline), CS_CODE_BAD_INPUT,
               "launch 1 waits for launch 1");
  cs_sm_model_destroy(f.model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alone),
      cmocka_unit_test(test_side_by_side),
      cmocka_unit_test(test_share_an_sm),
      cmocka_unit_test(test_registers_keep_apart),
      cmocka_unit_test(test_other_resources_keep_apart),
      cmocka_unit_test(test_partial_wave),
      cmocka_unit_test(test_launch_order),
      cmocka_unit_test(test_clusters_start_whole),
      cmocka_unit_test(test_bandwidth),
      cmocka_unit_test(test_cache_and_dram),
      cmocka_unit_test(test_pipes),
      cmocka_unit_test(test_unconcerned_kernel_keeps_its_pace),
      cmocka_unit_test(test_dependencies),
      cmocka_unit_test(test_launch_costs),
      cmocka_unit_test(test_split_of_time),
      cmocka_unit_test(test_bad_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
