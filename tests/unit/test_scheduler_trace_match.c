/* Which launch a traced kernel is: by what it is, and by what the plan's streams and waits allow.
 */
#include "scheduler/trace_match.h"

#include "scheduler_fixture.h"

/* 0 → 1 (two kernels) on stream 0, beside 2 (two kernels) on stream 1; 3 waits for both. */
static int wait_of_2[] = {0}, wait_of_3[] = {2};
static cs_plan_task tasks[] = {
    {.task = 0, .merged = -1},
    {.task = 1, .merged = -1},
    {.task = 2, .merged = -1, .stream = 1, .waits = wait_of_2, .n_waits = 1},
    {.task = 3, .merged = -1, .waits = wait_of_3, .n_waits = 1}};
static const cs_plan plan = {.tasks = tasks, .n_tasks = 4, .n_streams = 2};

#define KERNELS 6
enum { FIRST, GEMM_1, SUM_1, GEMM_2, SUM_2, LAST };

static cs_kernel_info told(int launch, const char *name) {
  cs_kernel_info k = {.launch = launch, .grid = {8, 1, 1}, .block = {128, 1, 1}};
  snprintf(k.name, sizeof k.name, "%s", name);
  return k;
}

static cs_kernel_trace traced(double start, double end, const char *name, int stream) {
  cs_kernel_trace k = {.launch = -1,
                       .start_us = start,
                       .end_us = end,
                       .stream = stream,
                       .grid = {8, 1, 1},
                       .block = {128, 1, 1}};
  snprintf(k.name, sizeof k.name, "%s", name);
  return k;
}

static void tell(cs_kernel_info out[KERNELS]) {
  out[FIRST] = told(0, "copy");
  out[GEMM_1] = told(1, "gemm");
  out[SUM_1] = told(1, "sum");
  out[GEMM_2] = told(2, "gemm");
  out[SUM_2] = told(2, "add");
  out[LAST] = told(3, "gemm");
}

static void check(const cs_kernel_info *t, const cs_kernel_trace *r, const int wanted[KERNELS],
                  int ambiguous) {
  int told_of[KERNELS];
  cs_trace_match match;
  assert_ok(cs_trace_match_launches(&plan, t, KERNELS, r, KERNELS, told_of, &match));
  for (int i = 0; i < KERNELS; i++) assert_int_equal(told_of[i], wanted[i]);
  assert_int_equal(match.ambiguous, ambiguous);
}

/* Which of the two equal kernels was the shorter one shows by what came after it. */
static void what_follows_tells_equal_kernels_apart(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  tell(t);
  const cs_kernel_trace a[KERNELS] = {traced(0, 1, "copy", -1),  traced(2, 5, "gemm", -1),
                                      traced(3, 6, "gemm", -1),  traced(5.5, 7, "sum", -1),
                                      traced(6.5, 8, "add", -1), traced(9, 10, "gemm", -1)};
  const int as_launched[KERNELS] = {FIRST, GEMM_1, GEMM_2, SUM_1, SUM_2, LAST};
  check(t, a, as_launched, 1);
  const cs_kernel_trace b[KERNELS] = {traced(0, 1, "copy", -1),  traced(2, 5, "gemm", -1),
                                      traced(3, 6, "gemm", -1),  traced(5.5, 7, "add", -1),
                                      traced(6.5, 8, "sum", -1), traced(9, 10, "gemm", -1)};
  const int the_other_way[KERNELS] = {FIRST, GEMM_2, GEMM_1, SUM_2, SUM_1, LAST};
  check(t, b, the_other_way, 1);
}

/* Where times leave it open, a stream that served a stream of the plan goes on doing so. */
static void streams_are_kept_to(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  tell(t);
  const cs_kernel_trace r[KERNELS] = {traced(0, 1, "copy", 13), traced(2, 5, "gemm", 14),
                                      traced(3, 6, "gemm", 13), traced(7, 8, "sum", 13),
                                      traced(7, 9, "add", 14),  traced(9, 10, "gemm", 13)};
  const int wanted[KERNELS] = {FIRST, GEMM_1, GEMM_2, SUM_1, SUM_2, LAST};
  int told_of[KERNELS];
  cs_trace_match match;
  assert_ok(cs_trace_match_launches(&plan, t, KERNELS, r, KERNELS, told_of, &match));
  assert_int_equal(told_of[0], wanted[0]);
  /* The one on stream 14 starts first, so it is a guess; the one behind it is what is left. */
  assert_int_equal(told_of[1] + told_of[2], GEMM_1 + GEMM_2);
  assert_int_equal(match.ambiguous, 1);
  const cs_kernel_trace own[KERNELS] = {traced(0, 1, "copy", 13), traced(2, 5, "gemm", 13),
                                        traced(3, 6, "gemm", 14), traced(7, 8, "sum", 13),
                                        traced(7, 9, "add", 14),  traced(9, 10, "gemm", 13)};
  check(t, own, wanted, 1);
}

static void early_kernels_may_overlap(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  tell(t);
  const int wanted[KERNELS] = {FIRST, GEMM_1, GEMM_2, SUM_1, SUM_2, LAST};
  const cs_kernel_trace r[KERNELS] = {traced(0, 2.4, "copy", -1), traced(2, 5, "gemm", -1),
                                      traced(3, 6, "gemm", -1),   traced(5, 7, "sum", -1),
                                      traced(6, 8, "add", -1),    traced(9, 10, "gemm", -1)};
  check(t, r, wanted, 1); /* started 0.4 us too early: clocks differ */
  t[GEMM_1].early = true;
  check(t, r, wanted, 0); /* only the one that may begin early is it */
}

static void wrong_orders_are_refused(void **state) {
  (void)state;
  cs_kernel_info t[KERNELS];
  int told_of[KERNELS];
  cs_trace_match match;
  tell(t);
  const cs_kernel_trace r[KERNELS] = {traced(0, 1, "copy", -1), traced(2, 5, "gemm", -1),
                                      traced(3, 6, "sum", -1),  traced(4, 7, "add", -1),
                                      traced(6, 8, "gemm", -1), traced(9, 10, "gemm", -1)};
  assert_fails(cs_trace_match_launches(&plan, t, KERNELS, r, KERNELS, told_of, &match),
               CS_CODE_NOT_FOUND, "kernel add, which started 4.000 us");
  const cs_kernel_trace lost[KERNELS] = {traced(0, 1, "copy", -1), traced(2, 5, "gemm", -1),
                                         traced(3, 6, "gemm", -1), traced(7, 8, "sum", -1),
                                         traced(7, 9, "sum", -1),  traced(9, 10, "gemm", -1)};
  assert_fails(cs_trace_match_launches(&plan, t, KERNELS, lost, KERNELS, told_of, &match),
               CS_CODE_NOT_FOUND, "as often as it was");
  t[LAST].launch = 4;
  assert_fails(cs_trace_match_launches(&plan, t, KERNELS, r, KERNELS, told_of, &match),
               CS_CODE_NOT_FOUND, "is of launch 4; wanted: 0 to 3");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_follows_tells_equal_kernels_apart),
      cmocka_unit_test(streams_are_kept_to),
      cmocka_unit_test(early_kernels_may_overlap),
      cmocka_unit_test(wrong_orders_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
