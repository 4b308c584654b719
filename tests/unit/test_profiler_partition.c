/* Which splits of a device there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "profiler/partition.h"

static const cs_device_info h100 = {
    .name = "H100", .units = 132, .part_least = 8, .part_step = 8, .compute_capability = 90};

static void possible_splits_pass(void **state) {
  (void)state;
  const struct {
    int n, parts[CS_MAX_PARTS];
  } good[] = {{2, {16, 116}}, {2, {64, 64}},     {2, {124 - 4, 12}},    {2, {8, 8}},
              {3, {8, 8, 8}}, {3, {32, 32, 68}}, {4, {32, 32, 32, 36}}, {4, {8, 16, 24, 32}}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    cs_status st = cs_parts_check(&h100, good[i].parts, good[i].n);
    if (st != CS_OK) fail_msg("%s", cs_status_message(st));
  }
}

static void impossible_splits_say_why(void **state) {
  (void)state;
  const struct {
    int n, parts[CS_MAX_PARTS];
    const char *says;
  } bad[] = {
      {2,
       {4, 128},
       "partition 4,128: part 0 has 4 units; wanted on H100: 8 or more, in steps of 8"},
      {2, {20, 112}, "part 0 has 20 units"},
      {2, {16, 115}, "part 1 has 115 units; wanted on H100: 8 or more, in steps of 8, or all"},
      {2, {112, 24}, "part 1 has 24 units where 20 of the 132 of H100 are left"},
      {2, {136, 8}, "part 0 has 136 units where 132 of the 132"},
      {2, {128, 4}, "part 1 has 4 units"},
      {2, {0, 132}, "part 0 has 0 units"},
      {2, {-8, 132}, "part 0 has -8 units"},
      {1, {64}, "1 parts; wanted: 2 to 4"},
      {5, {8, 8, 8, 8}, "5 parts; wanted: 2 to 4"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cs_status st = cs_parts_check(&h100, bad[i].parts, bad[i].n);
    assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
    if (!strstr(cs_status_message(st), bad[i].says))
      fail_msg("%s; wanted: %s", cs_status_message(st), bad[i].says);
    cs_status_free(st);
  }
  const cs_device_info cpu = {.name = "CPU", .units = 8};
  const int halves[] = {4, 4};
  cs_status st = cs_parts_check(&cpu, halves, 2);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "partition 4,4: CPU cannot be split; wanted: no"));
  cs_status_free(st);
}

/* What is tried by default is possible on any device that can be split at all. */
static void default_splits_are_possible(void **state) {
  (void)state;
  int splits[CS_DEFAULT_SPLITS][2];
  assert_int_equal(cs_parts_default(&h100, splits), 2);
  assert_int_equal(splits[0][0], 32);
  assert_int_equal(splits[0][1], 100);
  assert_int_equal(splits[1][0], 64);
  assert_int_equal(splits[1][1], 68);
  for (int capability = 50; capability <= 120; capability += 10) {
    for (int units = 1; units < 200; units++) {
      cs_device_info device = {.name = "GPU", .units = units};
      cs_part_units(capability, &device.part_least, &device.part_step);
      int n = cs_parts_default(&device, splits);
      assert_true(capability >= 60 || n == 0);
      assert_true(capability < 60 || units < 2 * device.part_least + device.part_step || n > 0);
      for (int i = 0; i < n; i++) {
        cs_status st = cs_parts_check(&device, splits[i], 2);
        if (st != CS_OK) fail_msg("%s", cs_status_message(st));
      }
    }
  }
}

static void streams_name_parts_that_there_are(void **state) {
  (void)state;
  const int good[] = {-1, 1, 0}, bad[] = {0, 2, -1};
  cs_stream_set set = {.n = 3, .n_parts = 2, .parts = {32, 100}, .part_of = good};
  assert_null(cs_stream_set_check(&set, &h100));
  assert_int_equal(cs_stream_part(&set, 0), -1);
  assert_int_equal(cs_stream_part(&set, 1), 1);
  assert_int_equal(cs_stream_part(&cs_one_stream, 0), -1);
  set.part_of = bad;
  cs_status st = cs_stream_set_check(&set, &h100);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  set.part_of = good;
  set.parts[0] = 33;
  st = cs_stream_set_check(&set, &h100);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  set.n_parts = 0; /* its streams are on parts of nothing */
  st = cs_stream_set_check(&set, &h100);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
  st = cs_stream_set_check(&(cs_stream_set){.n = 0}, &h100);
  assert_int_equal(cs_status_code(st), CS_CODE_INTERNAL);
  cs_status_free(st);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(possible_splits_pass),
      cmocka_unit_test(impossible_splits_say_why),
      cmocka_unit_test(default_splits_are_possible),
      cmocka_unit_test(streams_name_parts_that_there_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
