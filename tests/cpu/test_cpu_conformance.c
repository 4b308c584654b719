/* Every operator case on the CPU, every candidate, against the plain C reference. An argument is a
 * shell pattern of the cases to run, told one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conformance.h"

static const char *only;

static cs_backend *open_cpu(void) {
  cs_backend *backend = NULL;
  cs_status st = cs_cpu_backend_open(0, NULL, &backend);
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  return backend;
}

static const conformance_unsupported unsupported[] = {
    {"conv_pre*", "oneDNN has no prologues, and no pass makes one for the CPU"}, {NULL, NULL}};

static conformance_options options_for(int threads) {
  return (conformance_options){
      .only = only,
      .unsupported = unsupported,
      .verbose = only != NULL,
      .enumerate = {.workspace_limit = (int64_t)256 << 20, .threads = threads}};
}

static void every_case_on_its_own_layouts(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  assert_null(backend->vtable->takes_prologue); /* as the list of what is not supported says */
  conformance_options options = options_for(cs_cpu_count());
  conformance_report report = cs_conformance_run(backend, &options);
  backend->vtable->close(backend);
  assert_int_equal(report.failures, 0);
  if (!only) assert_true(report.cases >= 300);
}

/* Eight-lane blocks are what AVX2 machines use; they must work wherever a plan asks for them. */
static void every_case_in_blocks_of_eight(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  cs_layout layout = CS_LAYOUT_NCHW8C;
  conformance_options options = options_for(1);
  options.layouts = &layout;
  options.n_layouts = 1;
  conformance_report report = cs_conformance_run(backend, &options);
  backend->vtable->close(backend);
  assert_int_equal(report.failures, 0);
}

static void every_implementation(void **state) {
  (void)state;
  cs_backend *backend = open_cpu();
  conformance_options options = options_for(1);
  options.enumerate.full = true;
  if (!only) options.only = "conv_3x3*/f32/*";
  conformance_report report = cs_conformance_run(backend, &options);
  backend->vtable->close(backend);
  assert_int_equal(report.failures, 0);
  if (!only) assert_true(report.candidates > 2 * report.cases);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_case_on_its_own_layouts),
      cmocka_unit_test(every_case_in_blocks_of_eight),
      cmocka_unit_test(every_implementation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
