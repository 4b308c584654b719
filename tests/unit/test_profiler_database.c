/* The profile database: what is written is read back, and nothing that happens to the file loses
 * more than it must. */
#include "database_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* ---- Contents ---- */

static void test_read_back(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  assert_null(cs_profile_find(profile, "conv"));
  cs_candidate with_payload = {.id = (char *)(uintptr_t) "p",
                               .family = (char *)(uintptr_t) "test",
                               .payload = (char *)(uintptr_t) "{\"plan\": \"\\n\"}",
                               .merges = true};
  cs_measurement measured = {.cold_us = 1.23456789, .warm_us = 1, .samples = 3, .variation = 0.01};
  add(profile, "conv", "slow", 30);
  add(profile, "conv", "fast", 10);
  reject(profile, "conv", "bad", "wrong result");
  ok(cs_profile_add(profile, "conv", &with_payload, &measured));
  ok(cs_profile_mark_complete(profile, "conv", 1 << 20));
  double in_memory = cs_profile_find(profile, "conv")->records[0].measured.cold_us;
  cs_profile_close(profile);

  profile = open_profile(f, DEVICE);
  const cs_op_profile *known = cs_profile_find(profile, "conv");
  assert_non_null(known);
  assert_int_equal(known->n_records, 4);
  assert_string_equal(known->records[0].candidate.id, "p");
  assert_string_equal(known->records[0].candidate.payload, "{\"plan\": \"\\n\"}");
  assert_true(known->records[0].measured.cold_us == in_memory);
  assert_string_equal(known->records[1].candidate.id, "fast");
  assert_true(known->records[1].measured.warm_us == 5);
  assert_int_equal(known->records[1].candidate.workspace_bytes, 4096);
  assert_int_equal(known->records[1].candidate.threads, 2);
  assert_int_equal(known->records[1].candidate.notes, CS_NOTE_WINOGRAD);
  assert_true(known->records[1].candidate.deterministic);
  assert_null(known->records[1].candidate.payload);
  assert_true(known->records[0].candidate.merges && !known->records[1].candidate.merges);
  assert_string_equal(known->records[2].candidate.id, "slow");
  assert_true(known->records[3].measured.rejected);
  assert_string_equal(known->records[3].measured.reason, "wrong result");
  assert_true(known->complete);
  assert_int_equal(known->complete_limit, 1 << 20);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
}

static void test_later_lines_override(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 10);
  add(profile, "conv", "b", 20);
  add(profile, "conv", "a", 30);
  assert_string_equal(cs_profile_find(profile, "conv")->records[0].candidate.id, "b");
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 2);
  assert_true(record_of(profile, "conv", "a")->measured.cold_us == 30);
  add(profile, "conv", "b", 40); /* onto an entry that was read from the file */
  assert_string_equal(cs_profile_find(profile, "conv")->records[0].candidate.id, "a");
  cs_profile_close(profile);
}

static void test_unusual_characters(void **state) {
  fixture *f = *state;
  const char *device = "Gerät \"x\\y\" \t {,} \x7f";
  const char *op = "conv \"3×3\" \\ ,\"candidate\":{\"id\":\"x\"} \n end\\";
  cs_profile *profile = open_profile(f, device);
  add(profile, op, "id \"with\\ quotes", 5);
  cs_profile_close(profile);
  profile = open_profile(f, device);
  assert_non_null(record_of(profile, op, "id \"with\\ quotes"));
  assert_int_equal(f->warnings, 0);
  cs_candidate candidate = {.id = (char *)(uintptr_t) "x", .family = (char *)(uintptr_t) "test"};
  cs_measurement measured = {.cold_us = 1, .warm_us = 1};
  cs_status st = cs_profile_add(profile, "not \xff UTF-8", &candidate, &measured);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  reject(profile, op, "bad reason", "\xff\xfe");
  cs_profile_close(profile);
  profile = open_profile(f, device);
  assert_string_equal(record_of(profile, op, "bad reason")->measured.reason, "??");
  cs_profile_close(profile);
}

static void test_devices_apart(void **state) {
  fixture *f = *state;
  cs_profile *one = open_profile(f, "one"), *two = open_profile(f, "two");
  add(one, "conv", "a", 1);
  assert_null(cs_profile_find(two, "conv"));
  assert_string_not_equal(cs_profile_path(one), cs_profile_path(two));
  cs_profile_close(one);
  cs_profile_close(two);
}

/* ---- Damage ---- */

static void test_torn_last_line(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE);
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  add(profile, "conv", "b", 2);
  cs_profile_close(profile);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(truncate(path, info.st_size - 7), 0);

  profile = open_profile(f, DEVICE);
  assert_int_equal(f->warnings, 1);
  assert_non_null(strstr(f->last_warning, "1 damaged (line 2)"));
  assert_non_null(record_of(profile, "conv", "a"));
  assert_null(record_of(profile, "conv", "b"));
  add(profile, "conv", "c", 3); /* starts on a line of its own */
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE);
  assert_non_null(record_of(profile, "conv", "c"));
  assert_int_equal(f->warnings, 2);
  cs_profile_close(profile);
  free(path);
}

static void test_damaged_and_foreign_lines(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE);
  append_text(path, "garbage\n");
  append_text(path, "{\"schema\":\"convsched.profile/9\",\"news\":1}\n");
  append_text(path, "{\"schema\":\"convsched.profile/1\",\"method\":0,\"device\":\"" DEVICE
                    "\",\"op\":\"conv\",\"complete\":{}}\n");
  append_text(path, "[1,2]\n{\"a\":\n\n");
  /* Ours, but in another order of members: as good as any. */
  char line[512];
  snprintf(line, sizeof line,
           "{\"complete\":{\"workspace_limit\":7,\"threads\":0,\"full\":false,\"candidates\":"
           "%d},\"op\":\"pool\","
           "\"device\":\"%s\",\"method\":%d,\"schema\":\"convsched.profile/1\"}\n",
           CS_CANDIDATES_VERSION, DEVICE, CS_MEASURE_VERSION);
  append_text(path, line);
  /* The usual beginning and end, nonsense between: found when the operation is asked for. */
  snprintf(line, sizeof line,
           "{\"schema\":\"convsched.profile/1\",\"method\":%d,\"device\":\"%s\",\"op\":\"conv\","
           "\"candidate\":{\"id\":\"x\",,},\"measured\":{}}\n",
           CS_MEASURE_VERSION, DEVICE);
  append_text(path, line);
  cs_profile *profile = open_profile(f, DEVICE);
  assert_int_equal(f->warnings, 1);
  assert_non_null(strstr(f->last_warning, "3 damaged (lines 1, 4, 5)"));
  assert_non_null(strstr(f->last_warning, "2 of another version or device (lines 2, 3)"));
  assert_true(cs_profile_find(profile, "pool")->complete);
  assert_null(cs_profile_find(profile, "conv"));
  assert_int_equal(f->warnings, 2);
  assert_non_null(strstr(f->last_warning, "(line 8)"));
  assert_null(cs_profile_find(profile, "conv"));
  assert_int_equal(f->warnings, 2);
  int lines = count_lines(path);
  add(profile, "conv", "a", 1);
  assert_int_equal(count_lines(path), lines + 1); /* nothing was deleted */
  cs_profile_close(profile);
  free(path);
}

/* Any single byte changed: no crash, and every other record is still there. */
static void test_flipped_bytes(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE), *text = NULL;
  size_t length = 0;
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  add(profile, "pool", "b", 2);
  cs_profile_close(profile);
  ok(cs_file_read(path, 1 << 20, &text, &length));
  size_t first = (size_t)(strchr(text, '\n') - text);
  for (size_t i = 0; i < first; i++) {
    char keep = text[i];
    text[i] = (char)(keep ^ (1 << (i % 7)));
    ok(cs_file_replace(path, text, length));
    text[i] = keep;
    profile = open_profile(f, DEVICE);
    cs_profile_find(profile, "conv");
    assert_non_null(record_of(profile, "pool", "b"));
    cs_profile_close(profile);
  }
  free(text);
  free(path);
}

/* ---- Disks that refuse ---- */

static void test_unwritable_directory(void **state) {
  fixture *f = *state;
  char below_a_file[128];
  snprintf(below_a_file, sizeof below_a_file, "%s/file", f->directory);
  append_text(below_a_file, "x");
  strcat(below_a_file, "/cache");
  cs_profile *profile = NULL;
  ok(cs_profile_open(below_a_file, DEVICE, &f->logger, &profile));
  assert_null(cs_profile_path(profile));
  add(profile, "conv", "a", 1);
  add(profile, "conv", "b", 2);
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 2);
  assert_int_equal(f->warnings, 1);
  cs_profile_close(profile);
}

static void test_full_disk(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE);
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  struct stat before, after;
  assert_int_equal(stat(path, &before), 0);
  struct rlimit old, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = (rlim_t)before.st_size + 10;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  add(profile, "conv", "b", 2);
  add(profile, "conv", "c", 3);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(f->warnings, 1);
  assert_null(cs_profile_path(profile));
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 3);
  cs_profile_close(profile);
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(after.st_size, before.st_size); /* no torn line stays behind */
  free(path);
}

/* ---- Size and speed ---- */

static void test_compaction(void **state) {
  fixture *f = *state;
  char *path = path_of(f, DEVICE), aside[160];
  append_text(path, "damaged\n{\"schema\":\"convsched.profile/9\"}\n");
  cs_profile *profile = open_profile(f, DEVICE);
  for (int i = 0; i < 200; i++) {
    add(profile, "conv", i % 2 ? "odd" : "even", i + 1);
    ok(cs_profile_mark_complete(profile, "conv", 5));
  }
  cs_profile_close(profile);
  assert_int_equal(count_lines(path), 402);
  snprintf(aside, sizeof aside, "%s.tmp.123", path);
  append_text(aside, "half of it"); /* of a process that was killed while it did the same */
  profile = open_profile(f, DEVICE);
  assert_int_not_equal(access(aside, F_OK), 0);
  assert_int_equal(count_lines(path), 4); /* two records, the completion, the other version */
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 2);
  assert_true(record_of(profile, "conv", "odd")->measured.cold_us == 200);
  assert_true(cs_profile_find(profile, "conv")->complete);
  cs_profile_close(profile);
  snprintf(aside, sizeof aside, "%s.damaged", path);
  assert_int_equal(count_lines(aside), 1);
  free(path);
}

/* As large as GoogLeNet's on a GPU: 100 operations × 30 candidates, 3 of each with a payload. */
/* Processor time: other work on the machine does not count. */
static double processor_seconds(void) {
  return (double)clock() / CLOCKS_PER_SEC;
}

static void test_loading_is_fast(void **state) {
  fixture *f = *state;
  static char payload[8001], op[600], id[64];
  memset(payload, 'x', 8000);
  cs_profile *profile = open_profile(f, DEVICE);
  for (int i = 0; i < 100; i++) {
    snprintf(op, sizeof op, "%0500d", i);
    for (int c = 0; c < 30; c++) {
      cs_candidate candidate = {
          .id = id, .family = (char *)(uintptr_t) "test", .payload = c < 3 ? payload : NULL};
      cs_measurement measured = {.cold_us = c + 1, .warm_us = c + 0.123456, .samples = 5};
      snprintf(id, sizeof id, "cudnn.graph:eng%d{2=5,3=1}", c);
      ok(cs_profile_add(profile, op, &candidate, &measured));
    }
  }
  cs_profile_close(profile);
  double start = processor_seconds();
  profile = open_profile(f, DEVICE);
  double opened = processor_seconds();
  for (int i = 0; i < 100; i++) {
    snprintf(op, sizeof op, "%0500d", i);
    assert_int_equal(cs_profile_find(profile, op)->n_records, 30);
  }
  double read = processor_seconds();
  print_message("3000 records: opened in %.1f ms, all parsed in %.1f ms more\n",
                1e3 * (opened - start), 1e3 * (read - opened));
  assert_true(read - start < 1.0); /* far above what it takes, under sanitizers too */
  cs_profile_close(profile);
}

/* ---- What may be used ---- */

static void test_coverage(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  cs_completion two = {.workspace_limit = 100, .threads = 2}, any = {.workspace_limit = 50};
  cs_completion full = {.workspace_limit = 50, .full = true};
  assert_false(cs_op_profile_covers(cs_profile_find(profile, "conv"), &any));
  ok(cs_profile_mark_completion(profile, "conv", &two));
  const cs_op_profile *known = cs_profile_find(profile, "conv");
  assert_true(cs_op_profile_covers(known, &two));
  assert_false(cs_op_profile_covers(known, &any));
  two.workspace_limit = 99;
  assert_true(cs_op_profile_covers(known, &two));
  two.workspace_limit = 101;
  assert_false(cs_op_profile_covers(known, &two));
  ok(cs_profile_mark_completion(profile, "pool", &any));
  two.workspace_limit = 50;
  known = cs_profile_find(profile, "pool");
  assert_true(cs_op_profile_covers(known, &any));
  assert_false(cs_op_profile_covers(known, &full));
  assert_false(cs_op_profile_covers(known, &two)); /* nothing there for two threads */
  add(profile, "pool", "a", 1);                    /* prepared for two */
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "pool"), &two));
  cs_profile_close(profile);
}

/* Of an enumeration by a program that knew fewer candidates (lines that do not say: version 1) only
 * the measurements count. */
static void test_older_candidates_do_not_cover(void **state) {
  fixture *f = *state;
  cs_completion any = {.workspace_limit = 50, .threads = 2};
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  ok(cs_profile_mark_completion(profile, "conv", &any));
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "conv"), &any));
  cs_profile_close(profile);
  char *path = path_of(f, DEVICE), *text = NULL, version[32];
  size_t length = 0;
  snprintf(version, sizeof version, ",\"candidates\":%d", CS_CANDIDATES_VERSION);
  ok(cs_file_read(path, 1 << 20, &text, &length));
  char *at = strstr(text, version);
  assert_non_null(at);
  memmove(at, at + strlen(version), strlen(at + strlen(version)) + 1);
  assert_int_equal(unlink(path), 0);
  append_text(path, text);
  free(text);
  free(path);
  profile = open_profile(f, DEVICE);
  const cs_op_profile *known = cs_profile_find(profile, "conv");
  assert_non_null(known);
  assert_int_equal(known->n_records, 1);
  assert_false(known->complete);
  assert_false(cs_op_profile_covers(known, &any));
  assert_true(cs_op_profile_covered_once(known, &any));
  any.workspace_limit = 51;
  assert_false(cs_op_profile_covered_once(known, &any));
  any.workspace_limit = 50;
  ok(cs_profile_mark_completion(profile, "conv", &any));
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "conv"), &any));
  cs_profile_close(profile);
}

/* Damaged records are misses although the line that ends their enumeration can be read. */
static void test_damaged_records_are_not_covered(void **state) {
  fixture *f = *state;
  cs_completion wanted = {.workspace_limit = 1 << 20};
  cs_profile *profile = open_profile(f, DEVICE);
  add(profile, "conv", "a", 1);
  add(profile, "conv", "b", 2);
  ok(cs_profile_mark_completion(profile, "conv", &wanted));
  cs_profile_close(profile);
  char *path = path_of(f, DEVICE), *text = NULL;
  size_t length = 0;
  ok(cs_file_read(path, 1 << 20, &text, &length));
  profile = open_profile(f, DEVICE);
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "conv"), &wanted));
  cs_profile_close(profile);
  memcpy(strstr(text, "\"cold_us\""), "\"colt_us\"", 9);
  assert_int_equal(unlink(path), 0);
  append_text(path, text);
  free(text);
  profile = open_profile(f, DEVICE);
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 1);
  assert_false(cs_op_profile_covers(cs_profile_find(profile, "conv"), &wanted));
  add(profile, "conv", "a", 3);
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "conv"), &wanted));
  cs_profile_close(profile);
  profile = open_profile(f, DEVICE); /* measured once, not again and again */
  assert_true(cs_op_profile_covers(cs_profile_find(profile, "conv"), &wanted));
  cs_profile_close(profile);
  free(path);
}

static void test_admission(void **state) {
  (void)state;
  cs_record record = {.candidate = {.workspace_bytes = 100, .deterministic = false, .threads = 2}};
  assert_true(cs_record_admissible(&record, 100, false, 0));
  assert_true(cs_record_admissible(&record, 100, false, 2));
  assert_false(cs_record_admissible(&record, 99, false, 0));
  assert_false(cs_record_admissible(&record, 100, true, 0));
  assert_false(cs_record_admissible(&record, 100, false, 1));
  record.candidate.threads = 0;
  assert_true(cs_record_admissible(&record, 100, false, 1));
  record.measured.rejected = true;
  assert_false(cs_record_admissible(&record, 100, false, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_read_back),
      TEST(test_later_lines_override),
      TEST(test_unusual_characters),
      TEST(test_devices_apart),
      TEST(test_torn_last_line),
      TEST(test_damaged_and_foreign_lines),
      TEST(test_flipped_bytes),
      TEST(test_unwritable_directory),
      TEST(test_full_disk),
      TEST(test_compaction),
      TEST(test_loading_is_fast),
      TEST(test_coverage),
      TEST(test_older_candidates_do_not_cover),
      TEST(test_damaged_records_are_not_covered),
      TEST(test_admission),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
