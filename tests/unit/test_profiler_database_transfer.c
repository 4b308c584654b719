/* Profiles as files: export, import, and opening a file without its device. */
#include "database_fixture.h"

#include <sys/stat.h>

static char *in_folder(fixture *f, const char *name) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", f->directory, name);
  return cs_strdup(path);
}

static void read_whole(const char *path, char **text, size_t *length) {
  ok(cs_file_read(path, 1 << 24, text, length));
}

static void assert_same_files(const char *a, const char *b) {
  char *x = NULL, *y = NULL;
  size_t n = 0, m = 0;
  read_whole(a, &x, &n);
  read_whole(b, &y, &m);
  assert_int_equal(n, m);
  assert_memory_equal(x, y, n);
  free(x);
  free(y);
}

static void fill(cs_profile *profile) {
  cs_kernel_profile kernel = {.info = {.name = "k", .grid = {1, 1, 1}}};
  cs_device_info info = {.name = "gpu", .backend = "cuda", .units = 132};
  add(profile, "pool", "b", 2);
  add(profile, "conv", "slow", 30);
  add(profile, "conv", "fast", 20);
  add(profile, "conv", "fast", 10);
  reject(profile, "conv", "bad", "wrong result");
  ok(cs_profile_add_kernels(profile, "conv", "fast", &kernel, 1));
  ok(cs_profile_mark_complete(profile, "conv", 1 << 20));
  ok(cs_profile_set_device(profile, &info));
}

static void check_filled(const cs_profile *profile) {
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 3);
  assert_true(record_of(profile, "conv", "fast")->measured.cold_us == 10);
  assert_int_equal(record_of(profile, "conv", "fast")->n_kernels, 1);
  assert_true(record_of(profile, "conv", "bad")->measured.rejected);
  assert_true(cs_profile_find(profile, "conv")->complete);
  assert_non_null(record_of(profile, "pool", "b"));
  assert_int_equal(cs_profile_device(profile)->units, 132);
}

/* An export of `name`, filled, released by the caller. */
static char *exported(fixture *f, const char *device, const char *name) {
  char *path = in_folder(f, name);
  cs_profile *profile = open_profile(f, device);
  fill(profile);
  ok(cs_profile_export(profile, path));
  cs_profile_close(profile);
  return path;
}

static void test_export_and_open(void **state) {
  fixture *f = *state;
  const char *names[] = {"p.jsonl", "p.jsonl.gz"};
  for (int i = 0; i < 2; i++) {
    char *path = exported(f, DEVICE, names[i]);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    cs_profile *opened = NULL;
    ok(cs_profile_open_file(path, &f->logger, &opened));
    assert_string_equal(cs_profile_identity(opened), DEVICE);
    assert_null(cs_profile_path(opened));
    check_filled(opened);
    add(opened, "conv", "more", 1); /* in memory only */
    assert_int_equal(cs_profile_find(opened, "conv")->n_records, 4);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    cs_profile_close(opened);
    free(path);
  }
  assert_int_equal(f->warnings, 0);
}

static void test_export_is_deterministic(void **state) {
  fixture *f = *state;
  char *first = exported(f, DEVICE, "1.gz"), *second = in_folder(f, "2.gz");
  char *third = in_folder(f, "3.gz"), *other = in_folder(f, "other");
  cs_profile *profile = open_profile(f, DEVICE);
  ok(cs_profile_export(profile, second));
  cs_profile_close(profile);
  assert_same_files(first, second);
  int taken = 0; /* an import, and an export from there: the same lines in another order */
  ok(cs_profile_open(other, DEVICE, &f->logger, &profile));
  add(profile, "pool", "b", 2);
  ok(cs_profile_import(profile, first, &taken));
  ok(cs_profile_export(profile, third));
  cs_profile_close(profile);
  assert_same_files(first, third);
  free(first);
  free(second);
  free(third);
  free(other);
}

static void test_import(void **state) {
  fixture *f = *state;
  char *path = exported(f, DEVICE, "p.gz"), *other = in_folder(f, "other");
  cs_profile *profile = NULL;
  int taken = 0;
  ok(cs_profile_open(other, DEVICE, &f->logger, &profile));
  add(profile, "conv", "fast", 99);
  add(profile, "conv", "own", 5);
  ok(cs_profile_import(profile, path, &taken));
  assert_int_equal(taken, 7); /* four records, a completion, kernels, the device */
  assert_non_null(record_of(profile, "conv", "own"));
  assert_true(record_of(profile, "conv", "fast")->measured.cold_us == 10);
  int lines = count_lines(cs_profile_path(profile));
  ok(cs_profile_import(profile, path, &taken)); /* no news */
  assert_int_equal(taken, 0);
  assert_int_equal(count_lines(cs_profile_path(profile)), lines);
  cs_profile_close(profile);
  ok(cs_profile_open(other, DEVICE, &f->logger, &profile));
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 4);
  assert_int_equal(cs_profile_device(profile)->units, 132);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
  free(path);
  free(other);
}

static void test_import_of_another_device(void **state) {
  fixture *f = *state;
  char *path = exported(f, "that GPU", "p.jsonl");
  cs_profile *profile = open_profile(f, DEVICE);
  int taken = 0;
  cs_status st = cs_profile_import(profile, path, &taken);
  assert_non_null(strstr(cs_status_message(st), DEVICE));
  fails(st, CS_CODE_BAD_INPUT, "that GPU");
  assert_null(cs_profile_find(profile, "conv"));
  cs_profile_close(profile);
  free(path);
}

static void test_import_of_another_method(void **state) {
  fixture *f = *state;
  char *path = in_folder(f, "old.jsonl");
  append_text(path, "{\"schema\":\"convsched.profile/1\",\"method\":0,\"device\":\"" DEVICE
                    "\",\"op\":\"conv\",\"complete\":{}}\n");
  cs_profile *profile = open_profile(f, DEVICE);
  int taken = 0;
  fails(cs_profile_import(profile, path, &taken), CS_CODE_BAD_INPUT, "version of measuring");
  cs_profile_close(profile);
  free(path);
}

/* What can be read is taken, what cannot is named. */
static void test_import_of_damaged_lines(void **state) {
  fixture *f = *state;
  char *path = exported(f, DEVICE, "p.jsonl"), *other = in_folder(f, "other");
  append_text(path, "garbage\n{\"schema\":\"convsched.prof");
  cs_profile *profile = NULL;
  int taken = 0;
  ok(cs_profile_open(other, DEVICE, &f->logger, &profile));
  ok(cs_profile_import(profile, path, &taken));
  assert_int_equal(taken, 7);
  assert_int_equal(f->warnings, 1);
  assert_non_null(strstr(f->last_warning, "2 damaged (lines 8, 9)"));
  check_filled(profile);
  cs_profile_close(profile);
  free(path);
  free(other);
}

static void test_files_that_are_refused(void **state) {
  fixture *f = *state;
  cs_profile *opened = NULL;
  char *missing = in_folder(f, "none"), *text = in_folder(f, "text"), *torn = in_folder(f, "torn");
  char *whole = exported(f, DEVICE, "p.gz"), *data = NULL;
  size_t length = 0;
  fails(cs_profile_open_file(missing, &f->logger, &opened), CS_CODE_IO, missing);
  append_text(text, "hello\n");
  fails(cs_profile_open_file(text, &f->logger, &opened), CS_CODE_BAD_INPUT, text);
  read_whole(whole, &data, &length);
  ok(cs_file_replace(torn, data, length - 20));
  fails(cs_profile_open_file(torn, &f->logger, &opened), CS_CODE_BAD_INPUT, "gzip");
  assert_null(opened);
  cs_profile *empty = open_profile(f, "nothing measured");
  fails(cs_profile_export(empty, missing), CS_CODE_NOT_FOUND, "nothing measured");
  assert_int_not_equal(access(missing, F_OK), 0);
  cs_profile_close(empty);
  free(data);
  free(missing);
  free(text);
  free(torn);
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_export_and_open),
      TEST(test_export_is_deterministic),
      TEST(test_import),
      TEST(test_import_of_another_device),
      TEST(test_import_of_another_method),
      TEST(test_import_of_damaged_lines),
      TEST(test_files_that_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
