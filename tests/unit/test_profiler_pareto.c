/* Shares of an SM, Pareto sets, limiters and overlap: pure functions against values by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <string.h>

#include "profiler/pareto.h"
#include "unit/h100_sm.h"

static const cs_device_info h100 = {.units = 132, .unit = H100_SM};

static cs_kernel_info kernel(int blocks, int threads, int registers, int shared, int per_unit) {
  return (cs_kernel_info){.grid = {blocks, 1, 1},
                          .block = {threads, 1, 1},
                          .registers = registers,
                          .dynamic_shared = shared,
                          .blocks_per_unit = per_unit};
}

/* ---- Shares ---- */

static void test_demand(void **state) {
  (void)state;
  /* 2 blocks of 256 threads: 8 warps × round256(32 × round8(90) = 3072) = 24576 registers each;
   * shared memory round128(49,200) + 1024 = 50,304 bytes each. */
  cs_kernel_info info = kernel(1000, 256, 90, 49200, 2);
  cs_demand d = cs_kernel_demand(&h100.unit, h100.units, &info);
  assert_true(fabs(d.share[CS_RESOURCE_REGISTERS] - 2 * 24576.0 / 65536) < 1e-12);
  assert_true(fabs(d.share[CS_RESOURCE_SHARED] - 2 * 50304.0 / 233472) < 1e-12);
  assert_true(fabs(d.share[CS_RESOURCE_THREADS] - 512.0 / 2048) < 1e-12);
  assert_true(fabs(d.share[CS_RESOURCE_BLOCKS] - 2.0 / 32) < 1e-12);
  assert_int_equal(d.resident, 2);
  assert_int_equal(d.units, 132);
  assert_true(fabs(d.waves - 1000.0 / 264) < 1e-12);
}

/* Fewer blocks than the device holds: only as many units, only as many resident. */
static void test_small_grid(void **state) {
  (void)state;
  cs_kernel_info info = kernel(3, 100, 32, 0, 8);
  cs_demand d = cs_kernel_demand(&h100.unit, h100.units, &info);
  assert_int_equal(d.resident, 3);
  assert_int_equal(d.units, 1);
  /* 100 threads are 4 warps. */
  assert_true(fabs(d.share[CS_RESOURCE_THREADS] - 3 * 128.0 / 2048) < 1e-12);
  info = kernel(17, 128, 32, 0, 8);
  assert_int_equal(cs_kernel_demand(&h100.unit, h100.units, &info).units, 3);
}

static void test_maximum_of_kernels(void **state) {
  (void)state;
  cs_kernel_profile kernels[2] = {{.info = kernel(1000, 128, 255, 0, 2)},
                                  {.info = kernel(10, 1024, 32, 100000, 2)}};
  cs_demand d = cs_kernels_demand(&h100, kernels, 2);
  assert_true(d.known);
  assert_true(fabs(d.share[CS_RESOURCE_REGISTERS] - 2 * 4 * 8192.0 / 65536) < 1e-12);
  assert_true(fabs(d.share[CS_RESOURCE_THREADS] - 1) < 1e-12);
  assert_int_equal(d.units, 132);
  assert_false(cs_kernels_demand(&h100, NULL, 0).known);
  cs_device_info unknown = {.units = 4};
  assert_false(cs_kernels_demand(&unknown, kernels, 2).known);
}

/* ---- Limiters ---- */

static void test_limiter(void **state) {
  (void)state;
  cs_kernel_profile registers = {.info = kernel(1000, 256, 120, 1000, 2)};
  cs_kernel_profile shared = {.info = kernel(1000, 128, 32, 100000, 2)};
  cs_kernel_profile small = {.info = kernel(8, 128, 32, 0, 8)};
  cs_demand r = cs_kernels_demand(&h100, &registers, 1), s = cs_kernels_demand(&h100, &shared, 1);
  cs_demand few = cs_kernels_demand(&h100, &small, 1), unknown = {0};
  assert_string_equal(cs_demands_limiter(&h100, (const cs_demand *[]){&r, &r}, 2), "registers");
  assert_string_equal(cs_demands_limiter(&h100, (const cs_demand *[]){&s, &s}, 2), "shared");
  assert_string_equal(cs_demands_limiter(&h100, (const cs_demand *[]){&few, &few}, 2), "none");
  /* One unit too many for both; registers: 2 × 8 × 3840 and 8 × 4 × 1024 of 65536. */
  assert_string_equal(cs_demands_limiter(&h100, (const cs_demand *[]){&r, &few}, 2), "registers");
  assert_string_equal(cs_demands_limiter(&h100, (const cs_demand *[]){&r, &unknown}, 2), "");
}

static void test_counted_limiter(void **state) {
  (void)state;
  cs_counters counters;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) counters.value[i] = NAN;
  assert_string_equal(cs_counters_limiter(&counters), "");
  counters.value[CS_COUNTER_stall_registers] = 0;
  assert_string_equal(cs_counters_limiter(&counters), "none");
  counters.value[CS_COUNTER_stall_shared] = 690;
  assert_string_equal(cs_counters_limiter(&counters), "shared");
}

/* ---- Pareto sets ---- */

static cs_pareto_point point(double time, double registers, double shared, double workspace) {
  cs_pareto_point p = {{0}};
  p.cost[CS_COST_TIME] = time;
  p.cost[CS_COST_REGISTERS] = registers;
  p.cost[CS_COST_SHARED] = shared;
  p.cost[CS_COST_WORKSPACE] = workspace;
  return p;
}

static void test_front(void **state) {
  (void)state;
  int out[CS_PARETO_MOST];
  const cs_pareto_point points[] = {
      point(12, 0.5, 0.2, 0), /* worth it: fewer registers */
      point(10, 1.0, 0.2, 0), /* the fastest */
      point(11, 1.0, 0.3, 0), /* dominated by the fastest */
      point(12, 0.5, 0.2, 0), /* the first again */
      point(31, 0.1, 0.1, 0), /* more than 3 times slower */
      point(29, 0.6, 0.1, 0), /* worth it: less shared memory */
  };
  assert_int_equal(cs_pareto_select(points, 6, 3, 6, out), 3);
  assert_int_equal(out[0], 1);
  assert_int_equal(out[1], 0);
  assert_int_equal(out[2], 5);
  assert_int_equal(cs_pareto_select(points, 0, 3, 6, out), 0);
}

/* The fastest always stays; the next to stay has the least dominant share; results come by time. */
static void test_thinning(void **state) {
  (void)state;
  int out[CS_PARETO_MOST];
  cs_pareto_point points[9];
  for (int i = 0; i < 9; i++) points[i] = point(10 + i, 0.9 - 0.1 * i, 0.1 * i, 0);
  assert_int_equal(cs_pareto_select(points, 9, 3, 1, out), 1);
  assert_int_equal(out[0], 0);
  /* max(0.9 − 0.1 i, 0.1 i) is least at i = 4 (0.5, as at 5, but faster). */
  assert_int_equal(cs_pareto_select(points, 9, 3, 2, out), 2);
  assert_int_equal(out[0], 0);
  assert_int_equal(out[1], 4);
  assert_int_equal(cs_pareto_select(points, 9, 3, 3, out), 3);
  assert_int_equal(out[2], 8); /* the fewest registers */
  assert_int_equal(cs_pareto_select(points, 9, 3, 100, out), CS_PARETO_MOST);
  for (int i = 1; i < CS_PARETO_MOST; i++) assert_true(out[i - 1] < out[i]);
}

/* Records without kernels are left out where others have some, but not the fastest; what may not be
 * planned with is left out. */
static void test_of_operation(void **state) {
  (void)state;
  cs_kernel_profile lean = {.info = kernel(1000, 128, 32, 0, 4)};
  cs_record records[4];
  memset(records, 0, sizeof records);
  for (int i = 0; i < 4; i++) records[i].measured.cold_us = 10 + i;
  records[1].kernels = &lean, records[1].n_kernels = 1;
  records[2].candidate.workspace_bytes = 1 << 20;
  records[2].kernels = &lean, records[2].n_kernels = 1;
  cs_op_profile operation = {.records = records, .n_records = 4};
  cs_measure_options options = {.workspace_limit = 1 << 10};
  const cs_record *out[CS_PARETO_MOST];
  assert_int_equal(cs_op_pareto(&operation, &h100, &options, CS_PARETO_MOST, out), 2);
  assert_ptr_equal(out[0], &records[0]);
  assert_ptr_equal(out[1], &records[1]);
  assert_int_equal(cs_op_pareto(NULL, &h100, &options, CS_PARETO_MOST, out), 0);
}

/* ---- Overlap ---- */

static void test_overlap(void **state) {
  (void)state;
  cs_kernel_trace trace[3] = {{.start_us = 0, .end_us = 10, .stream = 7},
                              {.start_us = 4, .end_us = 9, .stream = 8},
                              {.start_us = 12, .end_us = 20, .stream = 8}};
  assert_true(fabs(cs_trace_overlap(trace, 3) - 5.0 / 20) < 1e-12);
  trace[1].stream = 7; /* two kernels of one stream are one member */
  assert_true(cs_trace_overlap(trace, 3) == 0);
  for (int i = 0; i < 3; i++) trace[i].stream = -1;
  assert_true(fabs(cs_trace_overlap(trace, 3) - 5.0 / 20) < 1e-12);
  assert_true(isnan(cs_trace_overlap(trace, 0)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_demand),
      cmocka_unit_test(test_small_grid),
      cmocka_unit_test(test_maximum_of_kernels),
      cmocka_unit_test(test_limiter),
      cmocka_unit_test(test_counted_limiter),
      cmocka_unit_test(test_front),
      cmocka_unit_test(test_thinning),
      cmocka_unit_test(test_of_operation),
      cmocka_unit_test(test_overlap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
