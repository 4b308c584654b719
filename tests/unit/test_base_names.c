/* Near names in messages, and NODE=ID where both may hold a '='. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/names.h"

static void test_nearest_first_each_once(void **state) {
  (void)state;
  const char *names[] = {"pool", "conv11", "conv2", "conv1", "conv1", "fc", "conf2"};
  cs_near near = {.wanted = "conf1"};
  char text[256];
  for (int i = 0; i < 7; i++) cs_near_offer(&near, names[i]);
  assert_string_equal(cs_near_text(&near, text, sizeof text), "; near it: conv1, conf2, conv11");
}

/* "eng10" is meant where only the family is missing, however long the id. */
static void test_parts_of_names_are_nearest(void **state) {
  (void)state;
  cs_near near = {.wanted = "eng10"};
  char text[256];
  cs_near_offer(&near, "eng1");
  cs_near_offer(&near, "cudnn.graph:eng10{2=5,3=1}");
  assert_string_equal(cs_near_text(&near, text, sizeof text),
                      "; near it: cudnn.graph:eng10{2=5,3=1}, eng1");
}

static void test_nothing_offered(void **state) {
  (void)state;
  cs_near near = {.wanted = "x"};
  char text[8];
  assert_string_equal(cs_near_text(&near, text, sizeof text), "");
}

static void test_name_before_equals(void **state) {
  (void)state;
  assert_int_equal(cs_name_before_equals("a=b=c", "a"), 1);
  assert_int_equal(cs_name_before_equals("a=b=c", "a=b"), 3);
  assert_int_equal(cs_name_before_equals("a=b=c", "a=b=c"), -1);
  assert_int_equal(cs_name_before_equals("ab=c", "a"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nearest_first_each_once),
      cmocka_unit_test(test_parts_of_names_are_nearest),
      cmocka_unit_test(test_nothing_offered),
      cmocka_unit_test(test_name_before_equals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
