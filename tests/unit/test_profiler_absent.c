/* Candidates of another version of their library: left out, those of the installed one measured,
 * and nothing lost for who has the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/measure.h"
#include "profiler/pareto.h"
#include "unit/profiler_fake.h"

#define LIMIT (1 << 20)

/* One operation, a profile in a folder of its own, what is said. */
typedef struct fixture {
  char directory[64];
  cs_profile *profile;
  cs_task task;
  cs_program program;
  cs_measure_options options;
  cs_measure_report report;
  int said; /* infos and warnings */
  char last[512];
  cs_logger logger;
} fixture;

static const fake_candidate first[] = {{"own", FAKE_RIGHT, 30, 0, 0},
                                       {"lib.v1:a", FAKE_RIGHT, 10, 0, 0},
                                       {"lib.v1:wrong", FAKE_WRONG, 5, 0, 0}};
static const fake_candidate second[] = {{"own", FAKE_RIGHT, 30, 0, 0},
                                        {"lib.v2:b", FAKE_RIGHT, 20, 0, 0}};

static void ok(cs_status status) {
  if (status != CS_OK) fail_msg("%s", cs_status_message(status));
}

static void note(void *user, cs_log_level level, const char *message) {
  fixture *f = user;
  if (level != CS_LOG_INFO && level != CS_LOG_WARNING) return;
  f->said++;
  snprintf(f->last, sizeof f->last, "%s", message);
}

static void open_profile(fixture *f) {
  cs_profile_close(f->profile);
  ok(cs_profile_open(f->directory, "fake device", NULL, &f->profile));
  f->said = 0;
}

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  cs_shape shape = {.rank = 4, .dims = {1, 2, 4, 4}};
  snprintf(f->directory, sizeof f->directory, "/tmp/cs-absent-XXXXXX");
  if (!mkdtemp(f->directory)) return -1;
  f->task = (cs_task){.name = (char *)(uintptr_t) "relu", .desc = {.op = CS_OP_RELU}};
  f->task.desc.n_inputs = 1;
  f->task.desc.inputs[0] = f->task.desc.output =
      cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  f->program = (cs_program){.tasks = &f->task, .n_tasks = 1};
  f->options = (cs_measure_options){.workspace_limit = LIMIT};
  f->logger = (cs_logger){note, f};
  open_profile(f);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[128];
  cs_profile_close(f->profile);
  snprintf(command, sizeof command, "rm -rf %s", f->directory);
  int rc = system(command);
  free(f);
  return rc;
}

/* Profiles on a device with that version of the library; whether anything was measured. */
static bool profile(fixture *f, const fake_candidate *candidates, int n, const char *library) {
  fake_backend fake = fake_create(candidates, n);
  fake.library = library;
  memset(&f->report, 0, sizeof f->report);
  ok(cs_profile_program(f->profile, &fake.base, &f->program, &f->options, &f->logger, &f->report));
  assert_int_equal(fake.runs > 0, f->report.operations > f->report.operations_cached);
  return fake.runs > 0;
}

static const cs_op_profile *known(fixture *f) {
  char *signature = NULL;
  ok(cs_op_signature(&f->task.desc, &signature));
  const cs_op_profile *found = cs_profile_find(f->profile, signature);
  free(signature);
  return found;
}

static bool admissible(fixture *f, const char *id) {
  const cs_record *record = cs_op_profile_record(known(f), id);
  return record && cs_record_admissible(record, LIMIT, false, 0);
}

static void said_once(const fixture *f, const char *fragment) {
  if (f->said != 1 || !strstr(f->last, fragment)) fail_msg("%d: %s", f->said, f->last);
}

/* An update: once, and nothing is measured over and over. */
static void test_another_version_is_left_out(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  assert_true(admissible(f, "lib.v1:a"));
  assert_false(profile(f, first, 3, "lib.v1"));
  assert_int_equal(f->said, 0);
  open_profile(f);
  assert_true(profile(f, second, 2, "lib.v2"));
  said_once(f, "relu: candidate lib.v1:a was recorded with another version");
  assert_non_null(strstr(f->last, "those of the installed version measured"));
  assert_true(admissible(f, "own") && admissible(f, "lib.v2:b"));
  assert_false(admissible(f, "lib.v1:a"));
  assert_false(cs_op_profile_record(known(f), "lib.v1:a")->measured.rejected);
  assert_false(profile(f, second, 2, "lib.v2"));
  assert_int_equal(f->said, 1);
  open_profile(f);
  assert_false(profile(f, second, 2, "lib.v2"));
  said_once(f, "lib.v1:a");
  assert_false(admissible(f, "lib.v1:a"));
}

/* Where several versions take turns, each finds its own. */
static void test_the_other_version_again(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  open_profile(f);
  assert_true(profile(f, second, 2, "lib.v2"));
  open_profile(f);
  assert_false(profile(f, first, 3, "lib.v1"));
  assert_true(admissible(f, "lib.v1:a") && admissible(f, "own"));
  assert_false(admissible(f, "lib.v2:b"));
  assert_false(admissible(f, "lib.v1:wrong"));
}

/* Nothing can be measured: what is there is used. */
static void test_frozen(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  open_profile(f);
  f->options.frozen = true;
  assert_false(profile(f, second, 2, "lib.v2"));
  said_once(f, "lib.v1:a");
  assert_null(strstr(f->last, "measured"));
  assert_true(admissible(f, "own"));
  assert_false(admissible(f, "lib.v1:a"));
}

/* Without the library there is nothing to measure, and what was recorded waits for it. */
static void test_no_library(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  for (int i = 0; i < 2; i++) {
    open_profile(f);
    f->options.refresh = i == 1;
    assert_int_equal(profile(f, first, 1, NULL), i == 1);
    said_once(f, "a library that is not installed");
    assert_true(admissible(f, "own"));
    assert_false(admissible(f, "lib.v1:a"));
  }
  f->options.refresh = false;
  open_profile(f);
  assert_false(profile(f, first, 3, "lib.v1"));
  assert_true(admissible(f, "lib.v1:a"));
}

/* The installed version has nothing for the operation: it is asked once. */
static void test_a_version_with_nothing(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  open_profile(f);
  assert_true(profile(f, second, 1, "lib.v3"));
  open_profile(f);
  assert_false(profile(f, second, 1, "lib.v3"));
  assert_false(admissible(f, "lib.v1:a"));
}

/* Kernels of what is not there are not looked for, and it is in no Pareto set. */
static void test_neither_kernels_nor_pareto_sets(void **state) {
  fixture *f = *state;
  assert_true(profile(f, first, 3, "lib.v1"));
  assert_true(cs_record_lacks_kernels(known(f), cs_op_profile_record(known(f), "lib.v1:a")));
  open_profile(f);
  assert_true(profile(f, second, 2, "lib.v2"));
  assert_false(cs_record_lacks_kernels(known(f), cs_op_profile_record(known(f), "lib.v1:a")));
  assert_true(cs_record_lacks_kernels(known(f), cs_op_profile_record(known(f), "lib.v2:b")));
  fake_backend fake = fake_create(second, 2);
  const cs_record *set[CS_PARETO_MOST];
  int n = cs_op_pareto(known(f), &fake.info, &f->options, CS_PARETO_MOST, set);
  assert_true(n > 0);
  assert_string_equal(set[0]->candidate.id, "lib.v2:b");
}

static void test_what_has_no_record_cannot_be_marked(void **state) {
  fixture *f = *state;
  bool marked = false;
  assert_true(profile(f, first, 1, NULL));
  cs_status st = cs_profile_mark_absent(f->profile, known(f)->signature, "lib.v1:a", &marked);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  cs_status_free(st);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_another_version_is_left_out),
                                     TEST(test_the_other_version_again),
                                     TEST(test_frozen),
                                     TEST(test_no_library),
                                     TEST(test_a_version_with_nothing),
                                     TEST(test_neither_kernels_nor_pareto_sets),
                                     TEST(test_what_has_no_record_cannot_be_marked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
