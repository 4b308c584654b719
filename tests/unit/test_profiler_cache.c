/* The folder of the profile database: what is in it, the limit on its size, and removal. */
#include "database_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "profiler/cache.h"

/* A device's file with one record, last used at `seconds` after 1970; its path is released by the
 * caller. */
static char *file_used_at(fixture *f, const char *device, time_t seconds) {
  cs_profile *profile = open_profile(f, device);
  add(profile, "conv", "a", 1);
  char *path = cs_strdup(cs_profile_path(profile));
  cs_profile_close(profile);
  const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  return path;
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

static int64_t size_of(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return (int64_t)info.st_size;
}

static void test_list(void **state) {
  fixture *f = *state;
  cs_cache_files files;
  ok(cs_cache_list("/nonexistent/folder", &files));
  assert_int_equal(files.n, 0);
  char *old = file_used_at(f, "old", 1000), *recent = file_used_at(f, "recent", 2000);
  char other[128], damaged[160];
  snprintf(other, sizeof other, "%s/notes.txt", f->directory);
  append_text(other, "not ours");
  snprintf(damaged, sizeof damaged, "%s.damaged", old);
  append_text(damaged, "12345\n");
  ok(cs_cache_list(f->directory, &files));
  assert_int_equal(files.n, 2);
  assert_string_equal(files.items[0].path, recent);
  assert_string_equal(files.items[1].path, old);
  assert_int_equal(files.items[0].last_use, 2000);
  assert_int_equal(files.items[0].bytes, size_of(recent));
  assert_int_equal(files.items[1].bytes, size_of(old) + 6);
  assert_int_equal(files.bytes, size_of(recent) + size_of(old) + 6);
  cs_cache_files_clear(&files);
  ok(cs_cache_remove(old));
  ok(cs_cache_remove(old)); /* gone already */
  assert_false(exists(old) || exists(damaged));
  assert_true(exists(recent) && exists(other));
  free(old);
  free(recent);
}

static void test_opening_is_use(void **state) {
  fixture *f = *state;
  cs_cache_files files;
  char *path = file_used_at(f, "a", 1000);
  cs_profile_close(open_profile(f, "a"));
  ok(cs_cache_list(f->directory, &files));
  assert_true(files.items[0].last_use > 1000000000);
  cs_cache_files_clear(&files);
  free(path);
}

static void test_limit(void **state) {
  fixture *f = *state;
  char *oldest = file_used_at(f, "oldest", 1000), *older = file_used_at(f, "older", 2000);
  char *recent = file_used_at(f, "recent", 3000), *own = file_used_at(f, "own", 500);
  char cap[32];
  int64_t bytes = size_of(recent) + size_of(own) + size_of(older) / 2;
  snprintf(cap, sizeof cap, "%lld", (long long)bytes);
  assert_int_equal(setenv(CS_CACHE_CAP_VARIABLE, cap, 1), 0);
  cs_profile *profile = open_profile(f, "own");
  assert_false(exists(oldest) || exists(older));
  assert_true(exists(recent) && exists(own));
  assert_non_null(record_of(profile, "conv", "a"));
  assert_int_equal(f->warnings, 1);
  assert_non_null(strstr(f->last_warning, "2 profiles of other devices"));
  cs_profile_close(profile);
  cs_profile_close(open_profile(f, "own"));
  assert_int_equal(f->warnings, 1); /* it fits now */
  /* The file in use stays, however large. */
  assert_int_equal(setenv(CS_CACHE_CAP_VARIABLE, "1", 1), 0);
  profile = open_profile(f, "own");
  assert_false(exists(recent));
  assert_non_null(record_of(profile, "conv", "a"));
  cs_profile_close(profile);
  assert_int_equal(unsetenv(CS_CACHE_CAP_VARIABLE), 0);
  free(oldest);
  free(older);
  free(recent);
  free(own);
}

static void test_limit_as_text(void **state) {
  fixture *f = *state;
  const struct {
    const char *text;
    int64_t bytes;
  } good[] = {{"", CS_CACHE_CAP_DEFAULT}, {"0", 0}, {"12", 12}, {"3k", 3072}, {"2M", 2 << 20},
              {"1G", INT64_C(1) << 30}};
  const char *bad[] = {"lots", "-1", "3x", "99999999999G", "1.5G"};
  int64_t bytes = -1;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(setenv(CS_CACHE_CAP_VARIABLE, good[i].text, 1), 0);
    ok(cs_cache_cap(&bytes));
    assert_int_equal(bytes, good[i].bytes);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(setenv(CS_CACHE_CAP_VARIABLE, bad[i], 1), 0);
    fails(cs_cache_cap(&bytes), CS_CODE_USAGE, bad[i]);
  }
  cs_profile *profile = NULL;
  fails(cs_profile_open(f->directory, DEVICE, &f->logger, &profile), CS_CODE_USAGE, "1.5G");
  assert_null(profile);
  assert_int_equal(unsetenv(CS_CACHE_CAP_VARIABLE), 0);
}

static void test_summary(void **state) {
  fixture *f = *state;
  cs_kernel_profile kernel = {.info = {.name = "k"}};
  cs_corun_member members[] = {{(char *)(uintptr_t) "conv", (char *)(uintptr_t) "a"},
                               {(char *)(uintptr_t) "pool", (char *)(uintptr_t) "b"}};
  cs_corun corun = {.members = members, .n = 2, .serial_us = 2, .concurrent_us = 1};
  cs_profile *profile = open_profile(f, DEVICE);
  cs_profile_summary summary;
  add(profile, "conv", "a", 1);
  add(profile, "conv", "c", 2);
  reject(profile, "conv", "bad", "wrong result");
  add(profile, "pool", "b", 3);
  ok(cs_profile_mark_complete(profile, "conv", 5));
  ok(cs_profile_add_kernels(profile, "conv", "a", &kernel, 1));
  ok(cs_profile_add_corun(profile, &corun));
  append_text(cs_profile_path(profile), "garbage\n{\"schema\":\"convsched.profile/2\"}\n");
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  ok(cs_profile_summarise(profile, &summary));
  assert_int_equal(summary.method, CS_MEASURE_VERSION);
  assert_int_equal(summary.operations, 2);
  assert_int_equal(summary.complete, 1);
  assert_int_equal(summary.records, 4);
  assert_int_equal(summary.rejected, 1);
  assert_int_equal(summary.kernels, 1);
  assert_int_equal(summary.coruns, 1);
  assert_int_equal(summary.damaged, 1);
  assert_int_equal(summary.foreign, 1);
  cs_profile_close(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_list),          TEST(test_opening_is_use), TEST(test_limit),
      TEST(test_limit_as_text), TEST(test_summary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
