/* The SM model against timelines worked out by hand: what runs beside what, and when. */
#include <limits.h>

#include "unit/sm_fixture.h"

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

/* ---- What is no device ---- */

/* A device that a file made up: the model's memory follows its numbers. */
static void test_impossible_devices(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    cs_device_info device = four;
    cs_sm_model *model = NULL;
    int *const numbers[] = {&device.units, &device.unit.registers, &device.unit.shared_bytes,
                            &device.unit.threads, &device.unit.blocks};
    *numbers[i / 2] = i % 2 ? INT_MAX : 0;
    assert_fails(cs_sm_model_create(&device, NULL, &model), CS_CODE_BAD_INPUT,
                 i % 2 ? "2147483647" : "wanted: at least one of each");
    assert_null(model);
  }
}

/* A block that takes more than an int holds of something is one that does not fit. */
static void test_more_than_a_number_holds(void **state) {
  (void)state;
  fixture f;
  cs_sm_kernel prepared;
  cs_kernel_info info = quarter(4);
  open_model(&f, &ideal);
  info.static_shared = info.dynamic_shared = INT_MAX;
  assert_fails(cs_sm_kernel_prepare(f.model, &info, NULL, 5, &prepared), CS_CODE_BAD_INPUT,
               "2147483647 bytes of shared memory");
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
      cmocka_unit_test(test_dependencies),
      cmocka_unit_test(test_launch_costs),
      cmocka_unit_test(test_impossible_devices),
      cmocka_unit_test(test_more_than_a_number_holds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
