/* Measuring: who is admitted, in what order, and what is not measured again. */
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

#include "base/progress.h"
#include "profiler/measure.h"
#include "sanitized.h"
#include "unit/profiler_fake_expected.h"

#define KIB 1024

/* ---- A program of bare tasks, a profile in a folder of its own ---- */

typedef struct fixture {
  char directory[64];
  cs_profile *profile;
  cs_task tasks[4];
  cs_program program;
  cs_measure_options options;
  cs_measure_report report;
  int calls_before_cancel; /* < 0: never */
  char progress[4096];     /* a line a report */
  cs_logger logger;
  bool compares; /* the device does */
} fixture;

static void ok(cs_status status) {
  if (status != CS_OK) fail_msg("%s", cs_status_message(status));
}

static cs_op_desc conv(int64_t channels) {
  cs_op_desc desc;
  cs_shape shape = {.rank = 4, .dims = {2, channels, 5, 5}};
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_CONV;
  desc.attrs.conv = (cs_conv_attrs){.out_channels = channels,
                                    .group = 1,
                                    .kernel = {3, 3},
                                    .strides = {1, 1},
                                    .pads = {1, 1, 1, 1},
                                    .dilations = {1, 1},
                                    .bias = true};
  desc.has_bias = true;
  desc.activation.kind = CS_ACT_RELU;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return desc;
}

static cs_op_desc relu(int64_t images, int64_t extent) {
  cs_op_desc desc;
  cs_shape shape = {.rank = 4, .dims = {images, 1, extent, extent}};
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_RELU;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return desc;
}

static bool cancel_after(void *user) {
  fixture *f = user;
  return f->calls_before_cancel >= 0 && f->calls_before_cancel-- == 0;
}

static void note_progress(void *user, const cs_progress *progress) {
  fixture *f = user;
  size_t used = strlen(f->progress);
  snprintf(f->progress + used, sizeof f->progress - used, "%s %lld/%lld %s %s\n", progress->stage,
           (long long)progress->done, (long long)progress->total, progress->unit, progress->item);
}

static void add_task(fixture *f, const char *name, cs_op_desc desc) {
  cs_task *task = &f->tasks[f->program.n_tasks++];
  task->name = (char *)(uintptr_t)name;
  task->desc = desc;
}

static void open_profile(fixture *f) {
  cs_profile_close(f->profile);
  ok(cs_profile_open(f->directory, "fake device", NULL, &f->profile));
}

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  snprintf(f->directory, sizeof f->directory, "/tmp/cs-measure-XXXXXX");
  if (!mkdtemp(f->directory)) return -1;
  f->program.tasks = f->tasks;
  f->calls_before_cancel = -1;
  f->options =
      (cs_measure_options){.workspace_limit = 1024 * KIB, .cancelled = cancel_after, .user = f};
  cs_progress_set_watcher(note_progress, f);
  open_profile(f);
  *state = f;
  return 0;
}

static int set_up_comparing(void **state) {
  int rc = set_up(state);
  if (rc == 0) ((fixture *)*state)->compares = true;
  return rc;
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

/* Of a device that compares, nothing but guard bands is read. */
static cs_status profile(fixture *f, fake_backend *fake) {
  if (f->compares) fake->base.vtable = &fake_comparing_vtable;
  cs_status st =
      cs_profile_program(f->profile, &fake->base, &f->program, &f->options, &f->logger, &f->report);
  assert_int_equal(fake->allocated, 0);
  assert_int_equal(fake->expected, 0);
  if (f->compares) assert_true(fake->downloaded <= CS_GUARD_BYTES + 256);
  return st;
}

static const cs_op_profile *known(fixture *f, int task) {
  char *signature = NULL;
  ok(cs_op_signature(&f->tasks[task].desc, &signature));
  const cs_op_profile *found = cs_profile_find(f->profile, signature);
  free(signature);
  return found;
}

static const cs_measurement *measured(fixture *f, int task, const char *id) {
  const cs_op_profile *operation = known(f, task);
  for (int i = 0; operation && i < operation->n_records; i++) {
    if (strcmp(operation->records[i].candidate.id, id) == 0) {
      return &operation->records[i].measured;
    }
  }
  return NULL;
}

static void assert_rejected(fixture *f, int task, const char *id, const char *why) {
  const cs_measurement *m = measured(f, task, id);
  assert_non_null(m);
  assert_true(m->rejected);
  if (!strstr(m->reason, why)) fail_msg("%s: \"%s\" lacks \"%s\"", id, m->reason, why);
}

static const fake_candidate two_good[] = {{"slow", FAKE_RIGHT, 20, 0, 0},
                                          {"fast", FAKE_RIGHT, 10, 0, 0}};

/* ---- Admission and order ---- */

/* What an older program recorded and this one has not is rejected, once the operation is measured
 * again; what is only not enumerated now (for other threads here) stays. */
static void test_candidates_that_are_gone(void **state) {
  static const fake_candidate before[] = {{"gone", FAKE_RIGHT, 5, 0, 0},
                                          {"two threads", FAKE_RIGHT, 15, 0, 2},
                                          {"one thread", FAKE_RIGHT, 20, 0, 1}};
  fixture *f = *state;
  fake_backend fake = fake_create(before, 3);
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "gone");
  fake_backend newer = fake_create(before + 1, 2);
  f->options.refresh = true;
  f->options.threads = 1;
  ok(profile(f, &newer));
  assert_rejected(f, 0, "gone", "no such candidate any more");
  assert_false(measured(f, 0, "two threads")->rejected);
  assert_false(measured(f, 0, "one thread")->rejected);
  assert_string_equal(known(f, 0)->records[0].candidate.id, "two threads");
}

/* What takes seconds is not timed over and over. */
static void test_seconds_long_launches(void **state) {
  static const fake_candidate planted[] = {{"slow", FAKE_RIGHT, 3e6, 0, 0},
                                           {"fast", FAKE_RIGHT, 2e6, 0, 0},
                                           {"wrong", FAKE_WRONG, 1e6, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 3);
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "fast");
  assert_int_equal(measured(f, 0, "fast")->samples, 1);
  assert_int_equal(measured(f, 0, "slow")->samples, 1);
  assert_true(measured(f, 0, "slow")->cold_us >= 3e6);
  assert_rejected(f, 0, "wrong", "wrong result");
}

/* Only their first launches are slow: then candidates are timed as any others. */
static void test_first_launches_that_are_slow(void **state) {
  static const fake_candidate planted[] = {{"slower", FAKE_RIGHT, 20, 0, 0},
                                           {"faster", FAKE_RIGHT, 10, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 2);
  fake.first_run_s = 1.05;
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "faster");
  assert_true(measured(f, 0, "faster")->samples > 1);
  assert_true(measured(f, 0, "slower")->samples > 1);
  assert_true(measured(f, 0, "slower")->cold_us < 1000);
}

/* A busy machine, or code that is loaded at first use, makes one of them slow. */
static void test_a_first_launch_that_is_slow(void **state) {
  static const fake_candidate planted[] = {{"slower", FAKE_RIGHT, 20, 0, 0},
                                           {"faster", FAKE_RIGHT, 10, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 2);
  fake.first_run_s = 0.1;
  fake.first_run_of = "faster";
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "faster");
  assert_true(measured(f, 0, "faster")->samples > 1);
}

static void test_admission(void **state) {
  static const fake_candidate planted[] = {
      {"hopeless", FAKE_RIGHT, 500, 0, 0},
      {"good.slow", FAKE_RIGHT, 20, 0, 0},
      {"good.fast", FAKE_RIGHT, 10, 4 * KIB, 0},
      {"wrong", FAKE_WRONG, 1, 0, 0},
      {"unwritten", FAKE_UNWRITTEN, 1, 0, 0},
      {"past", FAKE_PAST_OUTPUT, 1, 0, 0},
      {"before", FAKE_BEFORE_OUTPUT, 1, 0, 0},
      {"past.workspace", FAKE_PAST_WORKSPACE, 1, 5000, 0},
      {"understated", FAKE_UNDERSTATED_WORKSPACE, 1, 64, 0},
      {"unprepared", FAKE_UNPREPARED, 1, 0, 0},
      {"fails", FAKE_FAILS, 1, 0, 0},
      {"too much", FAKE_RIGHT, 1, 2048 * KIB, 0},
  };
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 12);
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  const cs_op_profile *operation = known(f, 0);
  assert_true(operation->complete);
  assert_int_equal(operation->n_records, 11);
  assert_string_equal(operation->records[0].candidate.id, "good.fast");
  assert_string_equal(operation->records[1].candidate.id, "good.slow");
  assert_string_equal(operation->records[2].candidate.id, "hopeless");
  assert_false(operation->records[2].measured.rejected);
  assert_true(operation->records[3].measured.rejected);
  /* A chain costs a microsecond more than its launches. */
  const cs_measurement *fast = &operation->records[0].measured;
  assert_true(fast->cold_us > 10 && fast->cold_us < 10.3);
  assert_true(fast->warm_us > 10 && fast->warm_us < 10.3);
  assert_true(fast->samples >= 5);
  assert_true(fast->variation < 1e-6);
  assert_non_null(operation->records[0].candidate.payload);
  assert_null(operation->records[2].candidate.payload); /* too slow to be worth it */
  assert_rejected(f, 0, "wrong", "wrong result: relative L2 error");
  assert_rejected(f, 0, "unwritten", "not written");
  assert_rejected(f, 0, "past", "outside of its output");
  assert_rejected(f, 0, "before", "outside of its output");
  assert_rejected(f, 0, "past.workspace", "outside of its workspace");
  assert_rejected(f, 0, "understated", "needs 65 bytes of workspace where 64");
  assert_rejected(f, 0, "unprepared", "cannot be prepared: no such candidate");
  assert_rejected(f, 0, "fails", "failed to run: illegal instruction");
  assert_null(measured(f, 0, "too much"));
  assert_int_equal(f->report.candidates, 11);
  assert_int_equal(f->report.candidates_rejected, 8);
  assert_non_null(strstr(f->progress, "profiling 0/1 operations preparing candidates\n"));
  assert_non_null(strstr(f->progress, "profiling 0/1 operations conv1\n"));
  assert_non_null(strstr(f->progress, "profiling 0/1 operations conv1  wrong\n"));
  assert_non_null(strstr(f->progress, "profiling 0/1 operations conv1  finals\n"));
}

static void test_gaps_of_views(void **state) {
  static const fake_candidate planted[] = {{"right", FAKE_RIGHT, 1, 0, 0},
                                           {"gaps", FAKE_INTO_GAPS, 1, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 2);
  cs_op_desc desc = conv(3);
  desc.output.strides[0] = 7 * 25; /* three channels of seven */
  desc.output.alignment = 4;
  desc.inputs[0].strides[0] = 5 * 25;
  add_task(f, "view", desc);
  add_task(f, "dense", conv(3));
  ok(profile(f, &fake));
  assert_false(measured(f, 0, "right")->rejected);
  assert_rejected(f, 0, "gaps", "between the elements");
  assert_rejected(f, 1, "gaps", "wrong result"); /* no gap there: an element */
}

/* Too large to be checked whole: three images are. */
static void test_large_batches(void **state) {
  if (CS_TEST_THREADS_SANITIZED) skip();
  static const fake_candidate planted[] = {{"right", FAKE_RIGHT, 10, 0, 0},
                                           {"last", FAKE_LAST_IMAGE_WRONG, 1, 0, 0},
                                           {"first", FAKE_WRONG, 1, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 3);
  add_task(f, "relu", relu(9, 360));
  ok(profile(f, &fake));
  assert_false(measured(f, 0, "right")->rejected);
  assert_rejected(f, 0, "last", "wrong result");
  assert_rejected(f, 0, "first", "wrong result");
}

static void test_comparing_that_fails(void **state) {
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  add_task(f, "conv1", conv(3));
  fake.expects_nothing = true;
  cs_status st = profile(f, &fake);
  assert_int_equal(cs_status_code(st), CS_CODE_NO_MEMORY);
  assert_non_null(strstr(cs_status_message(st), "conv1: the reference result: out of fake"));
  cs_status_free(st);
  fake.expects_nothing = false;
  ok(profile(f, &fake));
  assert_int_equal(fake.compared, 2);
}

/* With many candidates only the promising ones get many samples, and the best ends up first. */
static void test_halving(void **state) {
  static char ids[40][16];
  static fake_candidate planted[40];
  fixture *f = *state;
  for (int i = 0; i < 40; i++) {
    snprintf(ids[i], sizeof ids[i], "c%d", i);
    planted[i] = (fake_candidate){ids[i], FAKE_RIGHT, 10 + (i * 17) % 40, 0, 0};
  }
  fake_backend fake = fake_create(planted, 40);
  add_task(f, "conv1", conv(2));
  ok(profile(f, &fake));
  const cs_op_profile *operation = known(f, 0);
  int previous = -1;
  for (int i = 0; i < 40; i++) {
    const cs_measurement *m = &operation->records[i].measured;
    assert_int_equal((int)(m->cold_us + 0.01) - 10, previous + 1);
    previous++;
    assert_true(i < 4 ? m->samples >= 15 : m->samples <= 5);
  }
}

/* For a while in the finals the clock is low: what was sampled then is replaced. */
static void test_drift_is_replaced(void **state) {
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  fake.slow_from = 20;
  fake.slow_to = 29;
  add_task(f, "conv1", conv(2));
  ok(profile(f, &fake));
  assert_true(fake.since_warm_up > 3 * 15 + 9);
  assert_true(measured(f, 0, "fast")->variation < 1e-3);
  assert_true(measured(f, 0, "slow")->variation < 1e-3);
  assert_true(measured(f, 0, "fast")->samples >= 15);
}

static void test_unsteady_device(void **state) {
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  fake.noisy = true;
  add_task(f, "conv1", conv(2));
  ok(profile(f, &fake));
  /* Never steady: everything is kept, and the record says how it varied. */
  assert_true(measured(f, 0, "fast")->variation > 0.02);
  assert_true(measured(f, 0, "fast")->samples >= 15);
}

/* ---- What is not measured again ---- */

static void test_second_call_measures_nothing(void **state) {
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  add_task(f, "conv1", conv(3));
  add_task(f, "conv2", conv(3)); /* the same operation */
  add_task(f, "conv3", conv(4));
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations, 2);
  assert_int_equal(f->report.operations_cached, 0);
  double before = measured(f, 0, "fast")->cold_us;
  int runs = fake.runs, samples = fake.samples;
  for (int reopened = 0; reopened < 2; reopened++) {
    f->options.frozen = true;
    ok(profile(f, &fake));
    assert_int_equal(f->report.operations, 2);
    assert_int_equal(f->report.operations_cached, 2);
    assert_int_equal(f->report.candidates, 0);
    assert_int_equal(fake.runs, runs);
    assert_int_equal(fake.samples, samples);
    assert_true(measured(f, 0, "fast")->cold_us == before);
    open_profile(f);
  }
}

/* Baselines are measured when they are asked for by name, or all are; then they are sampled, and
 * what is much slower than the fastest with them, however slow. */
static void test_baselines(void **state) {
  static const fake_candidate planted[] = {{"base.naive", FAKE_RIGHT, 2000, 0, 0},
                                           {"base.other", FAKE_RIGHT, 30, 0, 0},
                                           {"hopeless", FAKE_RIGHT, 1000, 0, 0},
                                           {"fast", FAKE_RIGHT, 10, 0, 0}};
  const char *const naive[] = {"base.naive*"}, *const any[] = {"base.*", "fast"};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 4);
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  assert_null(measured(f, 0, "base.naive"));
  assert_int_equal(measured(f, 0, "hopeless")->samples, 1);
  f->options.allows = any;
  f->options.n_allows = 2;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 1);
  assert_null(measured(f, 0, "base.naive"));
  f->options.allows = naive;
  f->options.n_allows = 1;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 0);
  assert_int_equal(measured(f, 0, "base.naive")->samples, 5);
  assert_int_equal(measured(f, 0, "hopeless")->samples, 5);
  assert_null(measured(f, 0, "base.other"));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "fast");
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 1);
  f->options.n_allows = 0;
  f->options.full = true;
  ok(profile(f, &fake));
  assert_false(measured(f, 0, "base.other")->rejected);
}

static void test_refresh(void **state) {
  static const fake_candidate slower[] = {{"fast", FAKE_RIGHT, 30, 0, 0},
                                          {"slow", FAKE_RIGHT, 20, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  add_task(f, "conv1", conv(3));
  ok(profile(f, &fake));
  fake.candidates = slower;
  f->options.refresh = true;
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "slow");
  assert_true(measured(f, 0, "fast")->cold_us > 29);
}

static void test_frozen_miss(void **state) {
  fixture *f = *state;
  char *signature = NULL;
  fake_backend fake = fake_create(two_good, 2);
  add_task(f, "conv1", conv(3));
  f->options.frozen = true;
  cs_status st = profile(f, &fake);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  ok(cs_op_signature(&f->tasks[0].desc, &signature));
  assert_non_null(strstr(cs_status_message(st), "conv1"));
  assert_non_null(strstr(cs_status_message(st), signature));
  assert_int_equal(fake.runs, 0);
  free(signature);
  cs_status_free(st);
}

static void test_workspace_limits(void **state) {
  static const fake_candidate planted[] = {{"small", FAKE_RIGHT, 20, 0, 0},
                                           {"large", FAKE_RIGHT, 10, 512 * KIB, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 2);
  add_task(f, "conv1", conv(3));
  f->options.workspace_limit = 64 * KIB;
  ok(profile(f, &fake));
  assert_int_equal(known(f, 0)->n_records, 1);
  f->options.workspace_limit = 1024 * KIB;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 0);
  assert_string_equal(known(f, 0)->records[0].candidate.id, "large");
  f->options.workspace_limit = 64 * KIB;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 1);
  assert_false(cs_record_admissible(&known(f, 0)->records[0], 64 * KIB, false, 0));
}

static void test_thread_counts(void **state) {
  static const fake_candidate planted[] = {{"t1", FAKE_RIGHT, 20, 0, 1},
                                           {"t2", FAKE_RIGHT, 10, 0, 2}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 2);
  add_task(f, "conv1", conv(3));
  f->options.threads = 1;
  ok(profile(f, &fake));
  assert_int_equal(known(f, 0)->n_records, 1);
  f->options.threads = 2;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 0);
  assert_int_equal(known(f, 0)->n_records, 2);
  f->options.threads = 1;
  ok(profile(f, &fake));
  assert_int_equal(f->report.operations_cached, 1);
}

/* ---- Interruptions ---- */

static void test_cancel_keeps_what_is_done(void **state) {
  fixture *f = *state;
  fake_backend fake = fake_create(two_good, 2);
  add_task(f, "conv1", conv(3));
  add_task(f, "conv2", conv(4));
  int cancelled = 0, first_kept = 0;
  for (int after = 0; after < 200; after += 7) {
    f->calls_before_cancel = after;
    cs_status st = profile(f, &fake);
    if (st == CS_OK) break;
    assert_int_equal(cs_status_code(st), CS_CODE_CANCELLED);
    cs_status_free(st);
    cancelled++;
    open_profile(f);
    first_kept += known(f, 0) && known(f, 0)->complete && !(known(f, 1) && known(f, 1)->complete);
  }
  assert_true(cancelled > 2);
  assert_true(first_kept > 0);
  assert_true(known(f, 0)->complete && known(f, 1)->complete);
}

/* What breaks the device ends the call, is noted, and is not tried in the next run. */
static void test_broken_device(void **state) {
  static const fake_candidate planted[] = {{"good", FAKE_RIGHT, 10, 0, 0},
                                           {"breaks", FAKE_BREAKS_DEVICE, 1, 0, 0},
                                           {"later", FAKE_RIGHT, 5, 0, 0}};
  fixture *f = *state;
  add_task(f, "conv1", conv(3));
  fake_backend fake = fake_create(planted, 3);
  /* The anchor takes the first candidate that works, so that only conv1 meets the bad one. */
  cs_status st = profile(f, &fake);
  assert_int_equal(cs_status_code(st), CS_CODE_DEVICE);
  assert_non_null(strstr(cs_status_message(st), "conv1"));
  assert_non_null(strstr(cs_status_message(st), "breaks"));
  cs_status_free(st);
  open_profile(f);
  assert_rejected(f, 0, "breaks", "illegal address");
  assert_false(known(f, 0)->complete);
  assert_null(measured(f, 0, "later")); /* no fault of its own */
  fake = fake_create(planted, 3);
  ok(profile(f, &fake));
  assert_string_equal(known(f, 0)->records[0].candidate.id, "later");
  assert_rejected(f, 0, "breaks", "illegal address");
}

/* ---- Peaks ---- */

/* As if by an algorithm that saves products. */
static void hurry_convolutions(void *user, const char *signature) {
  const cs_op_profile *known = cs_profile_find(((fixture *)user)->profile, signature);
  for (int i = 0; known && strncmp(signature, "Conv", 4) == 0 && i < known->n_records; i++) {
    known->records[i].measured.warm_us /= 10;
  }
}

static void test_peaks(void **state) {
  if (CS_TEST_THREADS_SANITIZED) skip();
  static const fake_candidate planted[] = {{"only", FAKE_RIGHT, 10, 0, 0}};
  fixture *f = *state;
  fake_backend fake = fake_create(planted, 1);
  double flops = 0, bandwidth = 0, again = 0;
  fake.hollow = true;
  fake.base.vtable = &fake_hollow_vtable;
  ok(cs_profile_peaks(f->profile, &fake.base, CS_PRECISION_F32, &f->options, &flops, &bandwidth));
  /* 0.27 GFLOP (the larger) in a millisecond, and 64 MiB read and written in ten microseconds. */
  assert_true(flops > 0.23e12 && flops < 0.28e12);
  assert_true(bandwidth > 0.9 * 128 * KIB * KIB / 11e-6 && bandwidth < 128.0 * KIB * KIB / 10e-6);
  int samples = fake.samples;
  f->options.frozen = true;
  ok(cs_profile_peaks(f->profile, &fake.base, CS_PRECISION_F32, &f->options, &again, &bandwidth));
  assert_true(again == flops);
  assert_int_equal(fake.samples, samples);
  cs_profile_signatures(f->profile, hurry_convolutions, f);
  ok(cs_profile_peaks(f->profile, &fake.base, CS_PRECISION_F32, &f->options, &again, &bandwidth));
  assert_true(again > 2e12 && again < 2.4e12); /* 0.23 GFLOP */
  ok(cs_profile_product_peak(f->profile, &fake.base, CS_PRECISION_F32, &again));
  assert_true(again == flops);
  ok(cs_profile_product_peak(f->profile, &fake.base, CS_PRECISION_F16, &again));
  assert_true(again == 0);
  cs_status st =
      cs_profile_peaks(f->profile, &fake.base, CS_PRECISION_F16, &f->options, &again, &bandwidth);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  cs_status_free(st);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_COMPARING(name) \
  { #name " (compared on the device)", name, set_up_comparing, tear_down, NULL }

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_admission),
      TEST(test_candidates_that_are_gone),
      TEST(test_seconds_long_launches),
      TEST(test_first_launches_that_are_slow),
      TEST(test_a_first_launch_that_is_slow),
      TEST(test_gaps_of_views),
      TEST(test_large_batches),
      TEST_COMPARING(test_admission),
      TEST_COMPARING(test_gaps_of_views),
      TEST_COMPARING(test_large_batches),
      TEST_COMPARING(test_broken_device),
      TEST_COMPARING(test_comparing_that_fails),
      TEST(test_halving),
      TEST(test_drift_is_replaced),
      TEST(test_unsteady_device),
      TEST(test_second_call_measures_nothing),
      TEST(test_baselines),
      TEST(test_refresh),
      TEST(test_frozen_miss),
      TEST(test_workspace_limits),
      TEST(test_thread_counts),
      TEST(test_cancel_keeps_what_is_done),
      TEST(test_broken_device),
      TEST(test_peaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
