/* Predictions of co-run records: what they are made of, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sm_corun.h"

#define PROFILE CS_SOURCE_DIR "/tests/data/profiles/h100-f16-b1.jsonl.gz"

static void assert_ok(cs_status status) {
  if (status != CS_OK) print_error("%s\n", cs_status_message(status));
  assert_true(status == CS_OK);
}

static void assert_fails(cs_status status, cs_code code, const char *part) {
  assert_true(status != CS_OK);
  assert_int_equal(cs_status_code(status), code);
  if (!strstr(cs_status_message(status), part)) print_error("%s\n", cs_status_message(status));
  assert_non_null(strstr(cs_status_message(status), part));
  cs_status_free(status);
}

/* ---- Bytes and the cache ---- */

static void assert_bytes(const char *signature, int64_t wanted) {
  int64_t bytes = 0;
  assert_ok(cs_sm_signature_bytes(signature, &bytes));
  assert_int_equal(bytes, wanted);
}

static void test_signature_bytes(void **state) {
  (void)state;
  int64_t bytes;
  /* Two bytes an element: input, output, weights of a slice. */
  assert_bytes(
      "Conv f16 x=1x24x14x14/nhwc y=1x64x14x14/nhwc/s100352,1,7168,512 k=5x5 s=1x1 "
      "p=2,2,2,2 d=1x1 g=1 bias act=relu",
      2 * (24 * 196 + 64 * 196 + 24 * 64 * 25));
  /* Residual and groups; four bytes. */
  assert_bytes(
      "Conv tf32 x=2x8x4x4/nchw r=2x6x4x4/nchw y=2x6x4x4/nchw k=3x3 s=1x1 p=1,1,1,1 "
      "d=1x1 g=2",
      4 * (2 * 8 * 16 + 2 * 6 * 16 + 2 * 6 * 16 + 8 * 6 * 9 / 2));
  /* A window, but no weights. */
  assert_bytes("MaxPool f16 x=1x128x55x55/nchw y=1x128x27x27/nchw k=3x3 s=2x2 p=0,0,0,0 d=1x1 ceil",
               2 * 128 * (55 * 55 + 27 * 27));
  assert_bytes("Softmax f32 x=1x1000/row y=1x1000/row axis=1", 4 * 2000);
  assert_fails(cs_sm_signature_bytes("Conv", &bytes), CS_CODE_BAD_INPUT,
               "nothing after the operator");
  assert_fails(cs_sm_signature_bytes("Conv f17 x=1x1 y=1x1", &bytes), CS_CODE_BAD_INPUT,
               "f17 after the operator; wanted: a precision");
  assert_fails(cs_sm_signature_bytes("Conv f16 x=1x0x4 y=1x1", &bytes), CS_CODE_BAD_INPUT,
               "no extents of the input x");
  assert_fails(cs_sm_signature_bytes("Conv f16 x=1x4", &bytes), CS_CODE_BAD_INPUT,
               "no extents of the output y");
}

static void test_coldness(void **state) {
  (void)state;
  cs_sm_model *model;
  cs_device_info device = {.name = "d",
                           .units = 2,
                           .cache_bytes = 1000,
                           .unit = {.registers = 1, .threads = 1, .blocks = 1, .shared_bytes = 1}};
  cs_sm_constants constants = cs_sm_h100;
  constants.cache_share = 0.6;
  assert_ok(cs_sm_model_create(&device, &constants, &model));
  assert_true(cs_sm_coldness(model, 0) == 0);
  assert_true(cs_sm_coldness(model, 600) == 0);
  assert_true(fabs(cs_sm_coldness(model, 700) - 0.25) < 1e-12);
  assert_true(cs_sm_coldness(model, 1000) == 1);
  assert_true(cs_sm_coldness(model, 5000) == 1);
  cs_sm_model_destroy(model);
  device.cache_bytes = 0; /* not known: nothing is found there again */
  assert_ok(cs_sm_model_create(&device, &constants, &model));
  assert_true(cs_sm_coldness(model, 10) == 1);
  cs_sm_model_destroy(model);
}

/* ---- Co-runs ---- */

typedef struct fixture {
  cs_profile *profile;
  cs_sm_model *model;
  const cs_corun **coruns;
  int n;
} fixture;

static void set_up(fixture *f) {
  assert_ok(cs_profile_open_file(PROFILE, NULL, &f->profile));
  assert_ok(cs_sm_model_create(cs_profile_device(f->profile), NULL, &f->model));
  assert_ok(cs_profile_coruns(f->profile, NULL, 0, &f->coruns, &f->n));
  assert_true(f->n > 0);
}

static void tear_down(fixture *f) {
  free(f->coruns);
  cs_sm_model_destroy(f->model);
  cs_profile_close(f->profile);
}

static const cs_measurement *measured(const fixture *f, const cs_corun_member *member) {
  const cs_op_profile *operation = cs_profile_find(f->profile, member->signature);
  const cs_record *record = cs_op_profile_record(operation, member->candidate);
  assert_non_null(record);
  return &record->measured;
}

static void test_a_single_member_takes_its_time_alone(void **state) {
  (void)state;
  fixture f;
  cs_sm_prediction p;
  set_up(&f);
  int first = 0; /* one whose warm time was measured, too */
  while (measured(&f, &f.coruns[first]->members[0])->cold_us <=
         measured(&f, &f.coruns[first]->members[0])->warm_us) {
    assert_true(++first < f.n);
  }
  cs_corun alone = {.members = f.coruns[first]->members, .n = 1};
  assert_ok(cs_sm_predict_corun(f.model, f.profile, &alone, &p));
  double cold = measured(&f, &alone.members[0])->cold_us;
  double warm = measured(&f, &alone.members[0])->warm_us;
  assert_true(fabs(p.cold.together_us - cold) < 1e-4 && p.cold.longest_us == cold);
  assert_true(fabs(p.warm.together_us - warm) < 1e-4 && p.warm.serial_us == warm);
  tear_down(&f);
}

static void test_longest_and_serial(void **state) {
  (void)state;
  fixture f;
  cs_sm_prediction p;
  set_up(&f);
  for (int i = 0; i < f.n; i += 97) {
    double longest = 0, sum = 0;
    assert_ok(cs_sm_predict_corun(f.model, f.profile, f.coruns[i], &p));
    for (int k = 0; k < f.coruns[i]->n; k++) {
      double us = measured(&f, &f.coruns[i]->members[k])->cold_us;
      longest = fmax(longest, us);
      sum += us;
    }
    assert_true(p.cold.longest_us == longest && fabs(p.cold.serial_us - sum) < 1e-9);
    assert_true(p.cold.together_us >= longest - 1e-4);
  }
  tear_down(&f);
}

/* The members are launched longest first, each kernel behind the one before on its stream. */
static void test_order_of_launches(void **state) {
  (void)state;
  fixture f;
  cs_sm_prediction p;
  cs_sm_timeline timeline;
  cs_sm_kernel kernels[32];
  cs_sm_launch launches[32];
  set_up(&f);
  for (int i = 0; i < f.n; i += 211) {
    const cs_corun_member *m = f.coruns[i]->members;
    int n = 0, first = measured(&f, &m[0])->cold_us >= measured(&f, &m[1])->cold_us ? 0 : 1;
    cs_corun pair = {.members = f.coruns[i]->members, .n = 2};
    for (int stream = 0; stream < 2; stream++) {
      const cs_corun_member *member = &m[stream == 0 ? first : 1 - first];
      const cs_record *record =
          cs_op_profile_record(cs_profile_find(f.profile, member->signature), member->candidate);
      assert_true(n + record->n_kernels <= 32);
      assert_ok(cs_sm_kernels_prepare(f.model, record, record->measured.cold_us, &kernels[n]));
      for (int k = 0; k < record->n_kernels; k++, n++) {
        launches[n] = (cs_sm_launch){.kernel = &kernels[n], .stream = stream};
      }
    }
    assert_ok(cs_sm_simulate(f.model, launches, n, 1, NULL, &timeline));
    assert_ok(cs_sm_predict_corun(f.model, f.profile, &pair, &p));
    assert_true(p.cold.together_us == timeline.total_us);
    assert_true(p.cold.timeline.overlap == timeline.overlap);
  }
  tear_down(&f);
}

static void test_unknown_members(void **state) {
  (void)state;
  fixture f;
  cs_sm_prediction p;
  set_up(&f);
  cs_corun_member members[2] = {f.coruns[0]->members[0], f.coruns[0]->members[1]};
  cs_corun corun = {.members = members, .n = 2};
  members[1].candidate = (char *)(uintptr_t) "no.such:candidate";
  assert_fails(cs_sm_predict_corun(f.model, f.profile, &corun, &p), CS_CODE_NOT_FOUND,
               "no.such:candidate has no time");
  members[1].candidate = f.coruns[0]->members[1].candidate;
  members[1].signature = (char *)(uintptr_t) "Conv f16 x=1x1x1x1/nchw y=1x1x1x1/nchw";
  assert_fails(cs_sm_predict_corun(f.model, f.profile, &corun, &p), CS_CODE_NOT_FOUND,
               "co-run of Conv f16 x=1x1x1x1/nchw");
  tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_signature_bytes),
      cmocka_unit_test(test_coldness),
      cmocka_unit_test(test_a_single_member_takes_its_time_alone),
      cmocka_unit_test(test_longest_and_serial),
      cmocka_unit_test(test_order_of_launches),
      cmocka_unit_test(test_unknown_members),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
