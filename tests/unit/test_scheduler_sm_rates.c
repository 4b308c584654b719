/* The SM model: kernels that share pipes, L2 and DRAM; how kernels are made ready; bad input. */
#include "unit/sm_fixture.h"

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
    add_counted(&f, quarter(2), &busy, 10, 0); /* two SMs each: a pipe of their own */
    add_counted(&f, quarter(2), &busy, 10, 1);
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
  for (int k = 0; k < 2; k++) { /* one unknown: none are used */
    kernels[k].counted = false;
    kernels[1 - k].counted = true;
    assert_ok(cs_sm_kernels_prepare(f.model, &record, 8, f.kernels));
    assert_near(f.kernels[0].block_us, 2);
  }
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
      cmocka_unit_test(test_bandwidth),
      cmocka_unit_test(test_cache_and_dram),
      cmocka_unit_test(test_pipes),
      cmocka_unit_test(test_unconcerned_kernel_keeps_its_pace),
      cmocka_unit_test(test_split_of_time),
      cmocka_unit_test(test_bad_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
