/* Kernels as the driver tells of them against kernels as traced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "profiler/kernel_compare.h"

/* Two kernels of one name in other order than traced; 165 registers are handed out as 168. */
static const cs_kernel_info told[] = {
    {.name = "a", .grid = {4, 1, 1}, .block = {128, 1, 1}, .registers = 32},
    {.name = "a", .grid = {8, 1, 1}, .block = {128, 1, 1}, .registers = 32},
    {.name = "b", .grid = {1, 1, 1}, .block = {64, 1, 1}, .registers = 165, .static_shared = 48}};
static const cs_kernel_trace as_told[] = {
    {.name = "b", .grid = {1, 1, 1}, .block = {64, 1, 1}, .registers = 168, .static_shared = 48},
    {.name = "a", .grid = {8, 1, 1}, .block = {128, 1, 1}, .registers = 32},
    {.name = "a", .grid = {4, 1, 1}, .block = {128, 1, 1}, .registers = 32}};

/* Compares and checks that the lines are `wanted`. */
static cs_kernel_comparison compare(const cs_kernel_info *kernels, int n,
                                    const cs_kernel_trace *traced, int n_traced,
                                    const char *wanted) {
  cs_kernel_comparison found;
  cs_strbuf lines = {0};
  char *text = NULL;
  assert_null(cs_compare_kernels(kernels, n, traced, n_traced, &lines, &found));
  assert_null(cs_strbuf_take(&lines, &text));
  assert_string_equal(text, wanted);
  free(text);
  return found;
}

static void test_equal_in_any_order(void **state) {
  (void)state;
  cs_kernel_comparison found = compare(told, 3, as_told, 3, "");
  assert_int_equal(found.differences, 0);
  assert_int_equal(found.untold_local, 0);
  found = compare(told, 0, as_told, 0, "");
  assert_int_equal(found.differences, 0);
}

static void test_each_difference_has_a_line(void **state) {
  (void)state;
  cs_kernel_trace traced[3];
  memcpy(traced, as_told, sizeof traced);
  traced[0].registers = 160;
  traced[0].static_shared = 64;
  traced[0].dynamic_shared = 1024;
  traced[0].block[2] = 3;
  traced[2].grid[1] = 2;
  cs_kernel_comparison found = compare(told, 3, traced, 3,
                                       "a: grid 4x1x1 by the driver, 4x2x1 as traced\n"
                                       "b: registers 165 by the driver, 160 as traced\n"
                                       "b: static shared bytes 48 by the driver, 64 as traced\n"
                                       "b: dynamic shared bytes 0 by the driver, 1024 as traced\n"
                                       "b: block 64x1x1 by the driver, 64x1x3 as traced\n");
  assert_int_equal(found.differences, 5);
}

static void test_kernels_of_one_side(void **state) {
  (void)state;
  cs_kernel_trace traced[3];
  memcpy(traced, as_told, sizeof traced);
  strcpy(traced[0].name, "c");
  cs_kernel_comparison found = compare(told, 3, traced, 3,
                                       "b: told by the driver, not traced\n"
                                       "c: traced, not told by the driver\n");
  assert_int_equal(found.differences, 2);
  found = compare(told, 3, as_told, 2, "a: told by the driver, not traced\n");
  assert_int_equal(found.differences, 1);
}

/* None traced where the driver tells some is known of tracers; any other amount is a difference. */
static void test_local_memory(void **state) {
  (void)state;
  cs_kernel_info kernels[] = {{.name = "dgrad", .registers = 255, .local_bytes = 48},
                              {.name = "dgrad", .registers = 255, .local_bytes = 32}};
  cs_kernel_trace traced[] = {{.name = "dgrad", .registers = 255, .local_bytes = 32},
                              {.name = "dgrad", .registers = 255}};
  cs_kernel_comparison found = compare(kernels, 1, &traced[1], 1, "");
  assert_int_equal(found.differences, 0);
  assert_int_equal(found.untold_local, 1);
  found = compare(kernels, 1, traced, 1, "dgrad: local bytes 48 by the driver, 32 as traced\n");
  assert_int_equal(found.differences, 1);
  assert_int_equal(found.untold_local, 0);
  kernels[1].local_bytes = 0;
  found = compare(&kernels[1], 1, traced, 1, "dgrad: local bytes 0 by the driver, 32 as traced\n");
  assert_int_equal(found.differences, 1);
  assert_int_equal(found.untold_local, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_in_any_order),
      cmocka_unit_test(test_each_difference_has_a_line),
      cmocka_unit_test(test_kernels_of_one_side),
      cmocka_unit_test(test_local_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
