/* Which nodes the members of a co-run are, where several nodes are the same operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* clang-format off: cmocka wants its headers first */
#include <cmocka.h>
/* clang-format on */

#include "report/members.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))
#define A "Conv f32 x=1x8x4x4/nchw y=1x8x4x4/nchw k=1x1"
#define B "Conv f32 x=1x8x4x4/nchw y=1x9x4x4/nchw k=1x1"
#define C "Conv f32 x=1x8x4x4/nchw y=1x7x4x4/nchw k=3x3"

/* Two blocks: A B, then A C A; a view, which is no operation, first. */
static const char *const operations[] = {NULL, A, B, A, C, A};
#define N_NODES 6

static void assert_places(const char *const *signatures, int n, const int *wanted) {
  cs_report_node items[N_NODES] = {{0}};
  cs_report_nodes nodes = {items, N_NODES};
  cs_corun_member members[N_NODES] = {{0}};
  cs_corun corun = {.members = members, .n = n};
  int *places;
  for (int i = 0; i < N_NODES; i++) {
    items[i].n_ops = operations[i] ? 1 : 0;
    items[i].ops[0].signature = TEXT(operations[i]);
  }
  for (int i = 0; i < n; i++) members[i].signature = TEXT(signatures[i]);
  assert_true(cs_report_places(&nodes, &corun, &places) == CS_OK);
  if (!wanted) {
    assert_null(places);
    return;
  }
  assert_non_null(places);
  for (int i = 0; i < n; i++) assert_int_equal(places[i], wanted[i]);
  free(places);
}

static void test_the_closest_nodes(void **state) {
  (void)state;
  assert_places((const char *const[]){A, B}, 2, (const int[]){1, 2});
  assert_places((const char *const[]){A, C}, 2, (const int[]){3, 4});
}

static void test_a_node_is_one_member(void **state) {
  (void)state;
  assert_places((const char *const[]){A, A, C}, 3, (const int[]){3, 5, 4});
  assert_places((const char *const[]){B, B}, 2, NULL);
}

static void test_layouts_may_differ(void **state) {
  (void)state;
  const char *mixed = "Conv f32 x=1x8x4x4/nhwc y=1x9x4x4/nhwc/s512,1,64,8 k=1x1";
  assert_places(&mixed, 1, (const int[]){2});
}

static void test_other_operations_have_no_place(void **state) {
  (void)state;
  assert_places((const char *const[]){A, "Conv f16 x=1x8x4x4/nchw y=1x9x4x4/nchw k=1x1"}, 2, NULL);
  assert_places((const char *const[]){A " act=relu"}, 1, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_closest_nodes),
      cmocka_unit_test(test_a_node_is_one_member),
      cmocka_unit_test(test_layouts_may_differ),
      cmocka_unit_test(test_other_operations_have_no_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
