/* Concurrency of intervals and of blocks, and which block a traced kernel belongs to. */
#include "scheduler/overlap.h"

#include <math.h>

#include "scheduler_fixture.h"

static void assert_overlap(const cs_overlap *o, double busy, double active, double overlapped,
                           double span) {
  if (fabs(o->busy_us - busy) > 1e-9 || fabs(o->active_us - active) > 1e-9 ||
      fabs(o->overlapped_us - overlapped) > 1e-9 || fabs(o->span_us - span) > 1e-9 ||
      fabs(o->concurrency - busy / active) > 1e-9) {
    fail_msg("busy %g, active %g, overlapped %g, span %g, concurrency %g", o->busy_us, o->active_us,
             o->overlapped_us, o->span_us, o->concurrency);
  }
}

/* ---- Intervals ---- */

static void test_intervals(void **state) {
  (void)state;
  cs_overlap o;
  const cs_interval one[] = {{3, 8}};
  assert_ok(cs_overlap_of(one, 1, &o));
  assert_overlap(&o, 5, 5, 0, 5);
  /* One behind the other, the second where the first ends, then a gap. */
  const cs_interval row[] = {{0, 4}, {4, 6}, {10, 11}};
  assert_ok(cs_overlap_of(row, 3, &o));
  assert_overlap(&o, 7, 7, 0, 11);
  /* Two beside each other for 3 of them, a third inside of the first: 3 run at once for 1. */
  const cs_interval nested[] = {{0, 10}, {7, 12}, {8, 9}};
  assert_ok(cs_overlap_of(nested, 3, &o));
  assert_overlap(&o, 16, 12, 3, 12);
  const cs_interval equal[] = {{1, 2}, {1, 2}, {1, 2}};
  assert_ok(cs_overlap_of(equal, 3, &o));
  assert_overlap(&o, 3, 1, 1, 1);
}

static void test_nothing_ran(void **state) {
  (void)state;
  cs_overlap o;
  assert_ok(cs_overlap_of(NULL, 0, &o));
  assert_true(isnan(o.concurrency));
  assert_true(o.busy_us == 0 && o.span_us == 0);
}

static void test_predicted_by_block(void **state) {
  (void)state;
  /* Launch order 0, 2, 1, 3; tasks 1 and 2 are one block. */
  cs_plan_task tasks[] = {{.task = 0, .merged = -1, .start_us = 0, .end_us = 2},
                          {.task = 2, .merged = -1, .start_us = 2, .end_us = 5},
                          {.task = 1, .merged = -1, .start_us = 3, .end_us = 6},
                          {.task = 3, .merged = -1, .start_us = 6, .end_us = 7}};
  cs_plan plan = {.tasks = tasks, .n_tasks = 4};
  const int block_of[] = {0, 1, 1, 2};
  cs_overlap out[4];
  assert_ok(cs_overlap_predicted(&plan, block_of, 3, out));
  assert_overlap(&out[0], 2, 2, 0, 2);
  assert_overlap(&out[1], 6, 4, 2, 4);
  assert_overlap(&out[2], 1, 1, 0, 1);
  assert_overlap(&out[3], 9, 7, 2, 7);
  tasks[2].merged = 1; /* one kernel, which nothing runs beside */
  tasks[2].start_us = 2;
  tasks[1].end_us = 6;
  assert_ok(cs_overlap_predicted(&plan, block_of, 3, out));
  assert_overlap(&out[1], 4, 4, 0, 4);
  assert_overlap(&out[3], 7, 7, 0, 7);
}

/* ---- Kernels ---- */

/* Launches 0 | 1, 2 | 3 in three blocks; "gemm" of the same shape runs in two of them. */
static const int launch_blocks[] = {0, 1, 1, 2};

static cs_kernel_info told(int launch, const char *name, int grid) {
  cs_kernel_info k = {.launch = launch, .grid = {grid, 1, 1}, .block = {128, 1, 1}};
  snprintf(k.name, sizeof k.name, "%s", name);
  return k;
}
static cs_kernel_trace traced(double start, double end, const char *name, int grid) {
  cs_kernel_trace k = {
      .start_us = start, .end_us = end, .grid = {grid, 1, 1}, .block = {128, 1, 1}};
  snprintf(k.name, sizeof k.name, "%s", name);
  return k;
}

#define KERNELS 6
static void make_kernels(cs_kernel_info t[KERNELS], cs_kernel_trace r[KERNELS]) {
  /* The graph's order is not the order of start, and the two of launch 1 come apart. */
  t[0] = told(3, "gemm", 8);
  t[1] = told(0, "copy", 4);
  t[2] = told(1, "gemm", 8);
  t[3] = told(2, "gemm", 8);
  t[4] = told(1, "sum", 2);
  t[5] = told(2, "gemm", 16);
  r[0] = traced(0, 1, "copy", 4);
  r[1] = traced(2, 5, "gemm", 8);
  r[2] = traced(3, 6, "gemm", 8);
  r[3] = traced(5, 7, "sum", 2);
  r[4] = traced(6, 8, "gemm", 16);
  r[5] = traced(9, 10, "gemm", 8);
}

static void test_kernels_find_their_blocks(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  cs_kernel_trace r[KERNELS];
  int block_of[KERNELS];
  const int wanted[] = {0, 1, 1, 1, 1, 2};
  cs_overlap out[4];
  make_kernels(t, r);
  assert_ok(cs_overlap_match(t, KERNELS, launch_blocks, 4, r, KERNELS, block_of));
  for (int i = 0; i < KERNELS; i++) assert_int_equal(block_of[i], wanted[i]);
  assert_ok(cs_overlap_traced(r, block_of, KERNELS, 3, out));
  assert_overlap(&out[0], 1, 1, 0, 1);
  assert_overlap(&out[1], 3 + 3 + 2 + 2, 6, 4, 6);
  assert_overlap(&out[2], 1, 1, 0, 1);
  assert_overlap(&out[3], 12, 8, 4, 10);
}

static void assert_no_match(const cs_kernel_info *t, int n, const cs_kernel_trace *r, int n_traced,
                            const char *fragment) {
  int block_of[KERNELS];
  assert_fails(cs_overlap_match(t, n, launch_blocks, 4, r, n_traced, block_of), CS_CODE_NOT_FOUND,
               fragment);
}

static void test_what_cannot_be_told_is_said(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  cs_kernel_trace r[KERNELS];
  make_kernels(t, r);
  assert_no_match(t, KERNELS, r, KERNELS - 1, "kernel gemm (grid 8x1x1, 128x1x1 threads)");
  assert_no_match(t, KERNELS - 1, r, KERNELS, "not in the schedule as often as it was traced");
  strcpy(r[3].name, "other");
  assert_no_match(t, KERNELS, r, KERNELS, "kernel other");
  make_kernels(t, r);
  r[4].grid[0] = 17;
  assert_no_match(t, KERNELS, r, KERNELS, "grid 16x1x1");
  make_kernels(t, r);
  t[2].launch = -1;
  assert_no_match(t, KERNELS, r, KERNELS, "launch -1");
  t[2].launch = 4;
  assert_no_match(t, KERNELS, r, KERNELS, "launch 4; wanted: 0 to 3");
}

/* A run that was not of this plan: the block's own kernel starts before the block in front. */
static void test_out_of_order(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  cs_kernel_trace r[KERNELS];
  make_kernels(t, r);
  r[0].start_us = 2.5; /* block 0's copy, with block 1 begun at 2 */
  assert_no_match(t, KERNELS, r, KERNELS,
                  "kernel gemm of block 1 started 0.500 us before kernel copy of block 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_intervals),
      cmocka_unit_test(test_nothing_ran),
      cmocka_unit_test(test_predicted_by_block),
      cmocka_unit_test(test_kernels_find_their_blocks),
      cmocka_unit_test(test_what_cannot_be_told_is_said),
      cmocka_unit_test(test_out_of_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
