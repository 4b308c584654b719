/* The profile database: kernels, co-runs, the device, and lines of kinds that are not known. */
#include "database_fixture.h"

#include <math.h>

static cs_kernel_profile kernel(const char *name, double issue) {
  cs_kernel_profile k = {.info = {.launch = 3,
                                  .grid = {8, 4, 1},
                                  .block = {128, 1, 1},
                                  .cluster = {2, 1, 1},
                                  .registers = 168,
                                  .static_shared = 16,
                                  .dynamic_shared = 49152,
                                  .local_bytes = 8,
                                  .blocks_per_unit = 2},
                         .counted = !isnan(issue)};
  snprintf(k.info.name, sizeof k.info.name, "%s", name);
  for (int i = 0; i < CS_COUNTER_COUNT; i++) k.counters.value[i] = NAN;
  k.counters.value[CS_COUNTER_issue_pct] = issue;
  return k;
}

static int count_text(const char *path, const char *wanted) {
  char *text = NULL;
  size_t length = 0;
  int n = 0;
  ok(cs_file_read(path, 1 << 20, &text, &length));
  for (const char *at = text; (at = strstr(at, wanted)); at++) n++;
  free(text);
  return n;
}

/* ---- Kernels ---- */

static void check_kernels(cs_profile *profile) {
  const cs_record *record = record_of(profile, "conv", "a");
  assert_int_equal(record->n_kernels, 2);
  const cs_kernel_info *info = &record->kernels[0].info;
  assert_string_equal(info->name, "first<int>(\"x\\y\")");
  assert_int_equal(info->grid[1], 4);
  assert_int_equal(info->block[0], 128);
  assert_int_equal(info->cluster[0], 2);
  assert_int_equal(info->registers, 168);
  assert_int_equal(info->static_shared, 16);
  assert_int_equal(info->dynamic_shared, 49152);
  assert_int_equal(info->local_bytes, 8);
  assert_int_equal(info->blocks_per_unit, 2);
  assert_true(record->kernels[0].counted);
  assert_true(record->kernels[0].counters.value[CS_COUNTER_issue_pct] == 41.2346);
  assert_true(isnan(record->kernels[0].counters.value[CS_COUNTER_dram_pct]));
  assert_string_equal(record->kernels[1].info.name, "second");
  assert_false(record->kernels[1].counted);
  assert_true(isnan(record->kernels[1].counters.value[CS_COUNTER_issue_pct]));
}

static void test_kernels(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  const cs_kernel_profile list[] = {kernel("first<int>(\"x\\y\")", 41.23456789),
                                    kernel("second", NAN)};
  fails(cs_profile_add_kernels(profile, "conv", "a", list, 2), CS_CODE_NOT_FOUND, "conv");
  add(profile, "conv", "a", 10);
  fails(cs_profile_add_kernels(profile, "conv", "a", list, 0), CS_CODE_INTERNAL, "0 kernels");
  ok(cs_profile_add_kernels(profile, "conv", "a", list, 2));
  check_kernels(profile);
  ok(cs_profile_add_kernels(profile, "conv", "a", list, 2));
  assert_int_equal(count_lines(cs_profile_path(profile)), 2); /* no news: no line */
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  check_kernels(profile);
  add(profile, "conv", "a", 20); /* measured again: the kernels stay */
  check_kernels(profile);
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  check_kernels(profile);
  assert_true(record_of(profile, "conv", "a")->measured.cold_us == 20);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
}

static void test_counters_are_kept(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 10);
  cs_kernel_profile counted = kernel("k", 50), plain = kernel("k", NAN), other = kernel("l", NAN);
  ok(cs_profile_add_kernels(profile, "conv", "a", &counted, 1));
  ok(cs_profile_add_kernels(profile, "conv", "a", &plain, 1));
  assert_true(record_of(profile, "conv", "a")->kernels[0].counters.value[CS_COUNTER_issue_pct] ==
              50);
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  assert_true(record_of(profile, "conv", "a")->kernels[0].counted);
  counted.counters.value[CS_COUNTER_issue_pct] = 60;
  ok(cs_profile_add_kernels(profile, "conv", "a", &counted, 1));
  assert_true(record_of(profile, "conv", "a")->kernels[0].counters.value[CS_COUNTER_issue_pct] ==
              60);
  ok(cs_profile_add_kernels(profile, "conv", "a", &other, 1)); /* another kernel altogether */
  assert_false(record_of(profile, "conv", "a")->kernels[0].counted);
  assert_string_equal(record_of(profile, "conv", "a")->kernels[0].info.name, "l");
  cs_profile_close(profile);
}

/* A process that does not know of the counters appends kernels without: compaction keeps both. */
static void test_compaction_keeps_counters(void **state) {
  fixture *f = *state;
  cs_profile *one = open_profile(f, DEVICE), *two = NULL;
  cs_kernel_profile counted = kernel("k", 50), plain = kernel("k", NAN);
  add(one, "conv", "a", 1);
  two = open_profile(f, DEVICE);
  ok(cs_profile_add_kernels(one, "conv", "a", &counted, 1));
  ok(cs_profile_add_kernels(two, "conv", "a", &plain, 1));
  for (int i = 0; i < 100; i++) add(one, "conv", "a", i + 1);
  char *path = cs_strdup(cs_profile_path(one));
  cs_profile_close(one);
  cs_profile_close(two);
  one = open_profile(f, DEVICE);
  assert_int_equal(count_lines(path), 3); /* a record, kernels with and without */
  const cs_record *record = record_of(one, "conv", "a");
  assert_true(record->measured.cold_us == 100);
  assert_int_equal(record->n_kernels, 1); /* though its line comes before the record's */
  assert_true(record->kernels[0].counters.value[CS_COUNTER_issue_pct] == 50);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(one);
  free(path);
}

/* ---- Co-runs ---- */

static cs_corun_member member(const char *signature, const char *candidate) {
  return (cs_corun_member){(char *)(uintptr_t)signature, (char *)(uintptr_t)candidate};
}

static void add_corun(cs_profile *profile, cs_corun_member a, cs_corun_member b, double us) {
  cs_corun_member members[] = {a, b};
  cs_corun corun = {.members = members,
                    .n = 2,
                    .serial_us = 2 * us,
                    .concurrent_us = us,
                    .p10_us = us,
                    .p90_us = us,
                    .samples = 7,
                    .overlap = 0.75,
                    .limiter = "shared"};
  cs_corun_sort(&corun);
  ok(cs_profile_add_corun(profile, &corun));
}

static int count_coruns(const cs_profile *profile, const char *a, const char *b,
                        const cs_corun **first) {
  const char *signatures[] = {a, b};
  const cs_corun **found = NULL;
  int n = 0;
  ok(cs_profile_coruns(profile, a ? signatures : NULL, a ? 2 : 0, &found, &n));
  if (first && n > 0) *first = found[0];
  free(found);
  return n;
}

static void test_coruns(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  const cs_corun *first = NULL;
  assert_int_equal(count_coruns(profile, NULL, NULL, NULL), 0);
  add_corun(profile, member("conv b", "x"), member("conv a", "y"), 10);
  add_corun(profile, member("conv a", "y"), member("conv b", "z"), 11);
  add_corun(profile, member("conv a", "y"), member("conv a", "y"), 12); /* beside itself */
  add_corun(profile, member("conv a", "y"), member("conv b", "x"), 9);  /* again */
  for (int opened = 0; opened < 2; opened++) {
    assert_int_equal(count_coruns(profile, NULL, NULL, NULL), 3);
    assert_int_equal(count_coruns(profile, "conv a", "conv b", &first), 2);
    assert_non_null(first);
    if (!first) return; /* static analysis does not know what an assertion does */
    assert_string_equal(first->members[0].signature, "conv a");
    assert_string_equal(first->members[0].candidate, "y");
    assert_string_equal(first->members[1].candidate, "x");
    assert_true(first->concurrent_us == 9 && first->serial_us == 18 && first->samples == 7);
    assert_true(first->overlap == 0.75);
    assert_string_equal(first->limiter, "shared");
    assert_false(first->counted);
    assert_int_equal(count_coruns(profile, "conv a", "conv a", NULL), 1);
    assert_int_equal(count_coruns(profile, "conv a", "conv c", NULL), 0);
    assert_null(cs_profile_find(profile, "conv a")); /* no time alone */
    cs_profile_close(profile);
    profile = open_profile(f, DEVICE);
  }
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
}

static void test_coruns_that_are_refused(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  cs_corun_member members[] = {member("b", "x"), member("a", "x")};
  cs_corun corun = {.members = members, .n = 2, .overlap = NAN};
  fails(cs_profile_add_corun(profile, &corun), CS_CODE_INTERNAL, "sorted");
  cs_corun_sort(&corun);
  corun.concurrent_us = NAN;
  fails(cs_profile_add_corun(profile, &corun), CS_CODE_INTERNAL, "nan");
  corun.concurrent_us = 1;
  corun.n = 1;
  fails(cs_profile_add_corun(profile, &corun), CS_CODE_INTERNAL, "1");
  assert_int_equal(count_coruns(profile, NULL, NULL, NULL), 0);
  cs_profile_close(profile);
}

/* ---- The device ---- */

static void test_device(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  cs_device_info info = {.backend = "cuda",
                         .name = "A \"GPU\"",
                         .units = 132,
                         .memory_bytes = INT64_C(85) << 30,
                         .cache_bytes = 50 << 20,
                         .compute_capability = 90,
                         .clock_mhz = 1980,
                         .unit = {65536, 2048, 32, 233472, 1024, 32}};
  assert_null(cs_profile_device(profile));
  ok(cs_profile_set_device(profile, &info));
  ok(cs_profile_set_device(profile, &info));
  char *path = cs_strdup(cs_profile_path(profile));
  assert_int_equal(count_lines(path), 1); /* recorded once */
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  ok(cs_profile_set_device(profile, &info));
  assert_int_equal(count_lines(path), 1);
  const cs_device_info *known = cs_profile_device(profile);
  assert_string_equal(known->name, "A \"GPU\"");
  assert_string_equal(known->backend, "cuda");
  assert_string_equal(known->identity, DEVICE);
  assert_int_equal(known->units, 132);
  assert_true(known->memory_bytes == info.memory_bytes && known->cache_bytes == info.cache_bytes);
  assert_int_equal(known->compute_capability, 90);
  assert_memory_equal(&known->unit, &info.unit, sizeof info.unit);
  info.clock_mhz = 1755;
  ok(cs_profile_set_device(profile, &info));
  assert_int_equal(cs_profile_device(profile)->clock_mhz, 1755);
  cs_profile_close(profile);
  free(path);
}

/* ---- Kinds that are not known, and damage inside those that are ---- */

static void append_line(const char *path, const char *op, const char *members) {
  char line[1024];
  snprintf(
      line, sizeof line,
      "{\"schema\":\"convsched.profile/1\",\"method\":%d,\"device\":\"%s\",\"op\":\"%s\",%s}\n",
      CS_MEASURE_VERSION, DEVICE, op, members);
  append_text(path, line);
}

static void test_later_kinds(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE);
  append_line(path, "conv", "\"energy\":{\"joules\":3}");
  cs_profile *profile = open_profile(f, DEVICE);
  for (int i = 0; i < 100; i++) add(profile, "conv", "a", i + 1);
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE); /* compacts */
  assert_int_equal(count_lines(path), 2);
  assert_int_equal(count_text(path, "energy"), 1); /* kept */
  assert_int_equal(f->warnings, 0);                /* and no damage */
  cs_profile_close(profile);
  free(path);
}

static void test_damage_inside(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE);
  append_line(path, "conv", "\"kernels\":{\"candidate\":\"a\",\"list\":[{\"name\":\"k\"}]}");
  append_line(path, "corun:a&b",
              "\"corun\":{\"members\":[{\"op\":\"a\",\"candidate\":\"x\"},{\"op\":\"c\","
              "\"candidate\":\"x\"}],\"serial_us\":1,\"concurrent_us\":1,\"p10_us\":1,"
              "\"p90_us\":1,\"variation\":0,\"samples\":1}");
  append_line(path, "device", "\"device_info\":{\"name\":\"x\"}");
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  assert_int_equal(f->warnings, 1);
  assert_non_null(strstr(f->last_warning, "(line 1)"));
  assert_int_equal(record_of(profile, "conv", "a")->n_kernels, 0);
  assert_int_equal(count_coruns(profile, NULL, NULL, NULL), 0); /* filed under the wrong name */
  assert_int_equal(f->warnings, 2);
  assert_non_null(strstr(f->last_warning, "(line 2)"));
  assert_null(cs_profile_device(profile));
  assert_non_null(strstr(f->last_warning, "(line 3)"));
  cs_profile_close(profile);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_kernels),
      TEST(test_counters_are_kept),
      TEST(test_compaction_keeps_counters),
      TEST(test_coruns),
      TEST(test_coruns_that_are_refused),
      TEST(test_device),
      TEST(test_later_kinds),
      TEST(test_damage_inside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
