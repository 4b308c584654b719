/* Profiling on the first GPU: kernels, co-runs, and counters where they may be read. */
#define DEVICE_SPEC "cuda:0"
#define PROFILE_PRECISION CS_PRECISION_F16
#define PROFILE_BATCH 8
#include "backend/backend.h"
#include "profile_tests.h"

/* Whatever is fastest takes registers and threads of an SM, and runs together no slower than one
 * after the other. */
static void test_gpu_resources(void **state) {
  profile_fixture *f = *state;
  size_t i;
  json_t *entry;
  f->options.corun = f->options.counters = true;
  json_t *report = profile(f);
  json_array_foreach(json_object_get(report, "operations"), i, entry) {
    const json_t *best = json_object_get(entry, "best");
    assert_true(number(best, "registers_share") > 0 && number(best, "registers_share") <= 1);
    assert_true(number(best, "shared_share") > 0 && number(best, "shared_share") <= 1);
    assert_true(number(best, "threads_share") > 0 && number(best, "threads_share") <= 1);
    assert_true(number(best, "units") >= 1);
  }
  json_array_foreach(json_object_get(json_object_get(report, "coruns"), "list"), i, entry) {
    assert_true(number(entry, "fastest_alone_us") <= 1.1 * number(entry, "serial_us"));
    const json_t *alone = json_object_get(entry, "fastest_alone");
    assert_true(strlen(json_string_value(json_object_get(alone, "limiter"))) > 0);
  }
  const json_t *kernels = json_object_get(report, "kernels");
  const char *unavailable = json_string_value(json_object_get(kernels, "unavailable"));
  assert_true(unavailable[0] || integer(report, "kernels", "counted") > 0);
  assert_int_equal(integer(report, "kernels", "differences"), 0);
  json_decref(report);
}

int main(void) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    const struct CMUnitTest tests[] = {PROFILE_TEST(test_gpu_resources)};
    return run_profile_tests() + cmocka_run_group_tests(tests, NULL, NULL);
  }
  return 77;
}
