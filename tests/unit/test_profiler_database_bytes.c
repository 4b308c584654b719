/* Lines that differ from what this program writes by a byte or two: found by tests/fuzz. */
#include "unit/database_fixture.h"

#define HEAD "{\"schema\":\"convsched.profile/1\",\"method\":1,\"device\":\"" DEVICE "\",\"op\":\""
#define TAIL(us)                                                                                  \
  "\",\"candidate\":{\"id\":\"c\",\"family\":\"f\",\"workspace_bytes\":0,\"deterministic\":true," \
  "\"fused\":true,\"notes\":0,\"threads\":0},\"measured\":{\"cold_us\":" us                       \
  ",\"warm_us\":1,\"p10_us\":1,\"p90_us\":1,\"variation\":0,\"samples\":5}}\n"

/* A profile of DEVICE whose file is `text`. */
static cs_profile *profile_of(fixture *f, const char *text, size_t length) {
  char *path = path_of(f, DEVICE);
  ok(cs_file_replace(path, text, length));
  free(path);
  return open_profile(f, DEVICE);
}

/* A text cannot hold a NUL, so that an operation of "a\0b" would be taken for one of "a". */
static void test_nul_in_a_signature(void **state) {
  fixture *f = *state;
  static const char text[] = HEAD "a\0b" TAIL("2.5") HEAD "a" TAIL("3.5") HEAD "a\0b" TAIL("4.5");
  cs_profile *profile = profile_of(f, text, sizeof text - 1);
  const cs_record *record = record_of(profile, "a", "c");
  assert_non_null(record);
  assert_true(record->measured.cold_us == 3.5);
  assert_non_null(strstr(f->last_warning, "2 damaged (lines 1, 3)"));
  cs_profile_close(profile);
}

/* The same lines are damaged whether they are read fast or by the JSON parser, as when the file is
 * compacted. */
static void test_numbers_are_those_of_json(void **state) {
  fixture *f = *state;
  static const char *const good[] = {"2.5", "25e-1", "0.25E+1", "2.50"};
  static const char *const bad[] = {"0x2", "02.5", "2.", "2.e1", "2e", "2e+",
                                    ".5",  "inf",  "-1", "0",    "0.0"};
  for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
    bool is_good = i < sizeof good / sizeof good[0];
    const char *number = is_good ? good[i] : bad[i - sizeof good / sizeof good[0]];
    char text[512];
    snprintf(text, sizeof text, HEAD "a" TAIL("%s"), number);
    cs_profile *profile = profile_of(f, text, strlen(text));
    const cs_record *record = record_of(profile, "a", "c");
    if ((record != NULL) != is_good) fail_msg("%s is %staken", number, record ? "" : "not ");
    if (record) assert_true(record->measured.cold_us == 2.5);
    cs_profile_close(profile);
  }
}

/* Extents whose product no 64 bits hold belong to no kernel. */
static void test_kernels_that_no_device_launches(void **state) {
  fixture *f = *state;
  static const char *const parts[] = {
      "\"grid\":[2147483647,65535,65535],\"block\":[1024,1,1],\"cluster\":[1,1,1],\"registers\":"
      "255",
      "\"grid\":[1,65536,1],\"block\":[1024,1,1],\"cluster\":[1,1,1],\"registers\":255",
      "\"grid\":[1,1,65536],\"block\":[1024,1,1],\"cluster\":[1,1,1],\"registers\":255",
      "\"grid\":[1,1,1],\"block\":[1,1025,1],\"cluster\":[1,1,1],\"registers\":255",
      "\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[1,1,1025],\"registers\":255",
      "\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[1,1,1],\"registers\":65537"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        HEAD "a" TAIL("2.5") HEAD
        "a\",\"kernels\":{\"candidate\":\"c\",\"list\":[{\"name\":\"k\",%s,"
        "\"static_shared\":0,\"dynamic_shared\":0,\"local_bytes\":0,\"blocks_per_unit\":1}]}}\n",
        parts[i]);
    cs_profile *profile = profile_of(f, text, strlen(text));
    const cs_record *record = record_of(profile, "a", "c");
    assert_non_null(record);
    assert_int_equal(record->n_kernels, i == 0 ? 1 : 0);
    if (i > 0) assert_non_null(strstr(f->last_warning, "1 damaged (line 2)"));
    cs_profile_close(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_nul_in_a_signature),
      TEST(test_numbers_are_those_of_json),
      TEST(test_kernels_that_no_device_launches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
