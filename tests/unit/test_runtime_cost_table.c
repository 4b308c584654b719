/* The layout search's table of times: of several entries of one key the least counts, whatever the
 * order they came in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/cost_table.h"

static void fill(cs_cost_table *table, const double *times, int n) {
  for (int i = 0; i < n; i++) {
    assert_true(cs_cost_table_add(table, UINT64_C(0xFFFFFFFFFFFFFFF0) + (uint64_t)(i % 3),
                                  times[i]) == CS_OK);
  }
  cs_cost_table_sort(table);
}

static void test_least_time_of_a_key(void **state) {
  (void)state;
  const double times[][6] = {{5, 8, 3, 2, 9, 4}, {2, 9, 4, 5, 8, 3}, {5, 9, 3, 2, 8, 4}};
  for (int order = 0; order < 3; order++) {
    cs_cost_table table = {0};
    fill(&table, times[order], 6);
    assert_int_equal(table.n, 3);
    assert_true(cs_cost_table_find(&table, UINT64_C(0xFFFFFFFFFFFFFFF0)) == 2);
    assert_true(cs_cost_table_find(&table, UINT64_C(0xFFFFFFFFFFFFFFF1)) == 8);
    assert_true(cs_cost_table_find(&table, UINT64_C(0xFFFFFFFFFFFFFFF2)) == 3);
    assert_true(cs_cost_table_find(&table, 7) == -1);
    cs_cost_table_free(&table);
  }
}

static void test_empty(void **state) {
  (void)state;
  cs_cost_table table = {0};
  cs_cost_table_sort(&table);
  assert_true(cs_cost_table_find(&table, 1) == -1);
  cs_cost_table_free(&table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_least_time_of_a_key),
                                     cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
