/* Every operator case, every candidate of the CUDA backend, against the plain C reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>

#include "conformance.h"
#include "gpu/open_device.h"

static cs_backend *device;

static void every_candidate_is_right(void **state) {
  (void)state;
  conformance_options options = {
      .only = getenv("CS_TEST_ONLY"),
      .enumerate = {.workspace_limit = (int64_t)256 << 20, .full = getenv("CS_TEST_FULL") != NULL},
      .verbose = getenv("CS_TEST_VERBOSE") != NULL};
  conformance_report report = cs_conformance_run(device, &options);
  assert_int_equal(report.failures, 0);
  if (!options.only) assert_true(report.cases >= 300);
}

int main(void) {
  device = open_or_skip(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_candidate_is_right)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->vtable->close(device);
  return failed;
}
