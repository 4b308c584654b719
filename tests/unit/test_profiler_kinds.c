/* The kinds of lines beside records: kernels, co-runs and the device, kept through closing,
 * compaction, export and import. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/profile.h"

#define DEVICE "a device; driver 1.2"
#define KILLS 200

typedef struct fixture {
  char directory[64], other[64], file[96];
} fixture;

static int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  strcpy(f->directory, "/tmp/cs-kinds-XXXXXX");
  strcpy(f->other, "/tmp/cs-kinds-XXXXXX");
  if (!mkdtemp(f->directory) || !mkdtemp(f->other)) return -1;
  snprintf(f->file, sizeof f->file, "%s/export.jsonl.gz", f->other);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[192];
  snprintf(command, sizeof command, "rm -rf %s %s", f->directory, f->other);
  int rc = system(command);
  free(f);
  return rc;
}

static void ok(cs_status status) {
  if (status != CS_OK) fail_msg("%s", cs_status_message(status));
}

static cs_profile *open_in(const char *directory, const char *device) {
  cs_profile *profile = NULL;
  ok(cs_profile_open(directory, device, NULL, &profile));
  return profile;
}

static char *writable(const char *text) {
  return (char *)(uintptr_t)text;
}

static void add(cs_profile *profile, const char *op, const char *id, double us) {
  cs_candidate candidate = {.id = writable(id), .family = writable("test"), .deterministic = true};
  cs_measurement measured = {
      .cold_us = us, .warm_us = us / 2, .p10_us = us, .p90_us = us, .samples = 5};
  ok(cs_profile_add(profile, op, &candidate, &measured));
}

static void add_kernels(cs_profile *profile, const char *op, const char *id, bool counted) {
  cs_kernel_profile kernels[2] = {
      {.info = {.name = "first", .grid = {8, 4, 1}, .block = {128, 1, 1}, .cluster = {1, 1, 1}}},
      {.info = {.name = "second", .grid = {1, 1, 1}, .block = {64, 2, 1}, .cluster = {2, 1, 1}}}};
  for (int k = 0; k < 2; k++) {
    kernels[k].info.registers = 168 + k;
    kernels[k].info.dynamic_shared = 49152;
    kernels[k].info.blocks_per_unit = 2;
    kernels[k].counted = counted;
    for (int c = 0; c < CS_COUNTER_COUNT; c++) kernels[k].counters.value[c] = NAN;
    if (counted) kernels[k].counters.value[CS_COUNTER_issue_pct] = 41.25;
  }
  ok(cs_profile_add_kernels(profile, op, id, kernels, 2));
}

static void add_corun(cs_profile *profile, const char *a, const char *b, double us) {
  cs_corun_member members[2] = {{writable("op2"), writable(b)}, {writable("op1"), writable(a)}};
  cs_corun corun = {.members = members,
                    .n = 2,
                    .serial_us = 2 * us,
                    .concurrent_us = us,
                    .p10_us = us,
                    .p90_us = us,
                    .samples = 7,
                    .serial_warm_us = NAN,
                    .concurrent_warm_us = NAN,
                    .overlap = 0.75,
                    .limiter = "shared"};
  cs_corun_sort(&corun);
  ok(cs_profile_add_corun(profile, &corun));
}

static void fill(cs_profile *profile) {
  cs_device_info device = {.name = "a card", .backend = "cuda", .units = 132};
  device.unit.registers = 65536;
  ok(cs_profile_set_device(profile, &device));
  add(profile, "op1", "x", 10);
  add(profile, "op2", "y", 20);
  add_kernels(profile, "op1", "x", true);
  add_corun(profile, "x", "y", 15);
  add_corun(profile, "x", "z", 14);
  add_corun(profile, "x", "y", 16); /* overrides */
}

static void check_filled(cs_profile *profile) {
  const cs_record *record = &cs_profile_find(profile, "op1")->records[0];
  const char *both[] = {"op1", "op2"}, *one[] = {"op1", "op1"};
  const cs_corun **coruns = NULL;
  int n = 0;
  assert_int_equal(record->n_kernels, 2);
  assert_string_equal(record->kernels[1].info.name, "second");
  assert_int_equal(record->kernels[0].info.registers, 168);
  assert_int_equal(record->kernels[1].info.block[1], 2);
  assert_int_equal(record->kernels[1].info.cluster[0], 2);
  assert_true(record->kernels[0].counted);
  assert_true(record->kernels[0].counters.value[CS_COUNTER_issue_pct] == 41.25);
  assert_true(isnan(record->kernels[0].counters.value[CS_COUNTER_alu_pct]));
  assert_int_equal(cs_profile_device(profile)->units, 132);
  assert_int_equal(cs_profile_device(profile)->unit.registers, 65536);
  ok(cs_profile_coruns(profile, both, 2, &coruns, &n));
  assert_int_equal(n, 2);
  for (int i = 0; i < n; i++) {
    bool first = strcmp(coruns[i]->members[1].candidate, "y") == 0;
    assert_string_equal(coruns[i]->members[0].signature, "op1");
    assert_true(coruns[i]->concurrent_us == (first ? 16 : 14));
    assert_true(coruns[i]->overlap == 0.75 && isnan(coruns[i]->concurrent_warm_us));
    assert_string_equal(coruns[i]->limiter, "shared");
  }
  free(coruns);
  ok(cs_profile_coruns(profile, one, 2, &coruns, &n));
  assert_int_equal(n, 0);
  free(coruns);
  ok(cs_profile_coruns(profile, NULL, 0, &coruns, &n));
  assert_int_equal(n, 2);
  free(coruns);
}

static void test_all_kinds_are_read_back(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_in(f->directory, DEVICE);
  fill(profile);
  check_filled(profile);
  cs_profile_close(profile);
  profile = open_in(f->directory, DEVICE);
  check_filled(profile);
  /* Neither a new time nor kernels without counters forget what was counted. */
  add(profile, "op1", "x", 9);
  add_kernels(profile, "op1", "x", false);
  check_filled(profile);
  cs_profile_close(profile);
  profile = open_in(f->directory, DEVICE);
  check_filled(profile);
  assert_true(cs_profile_find(profile, "op1")->records[0].measured.cold_us == 9);
  cs_profile_close(profile);
}

static void test_compaction_keeps_all_kinds(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_in(f->directory, DEVICE);
  fill(profile);
  for (int i = 0; i < 100; i++) {
    add(profile, "op2", "y", 20 + i);
    add_corun(profile, "x", "y", 16);
  }
  char *path = cs_strdup(cs_profile_path(profile));
  cs_profile_close(profile);
  profile = open_in(f->directory, DEVICE);
  check_filled(profile);
  cs_profile_close(profile);
  char *text = NULL;
  size_t length = 0, lines = 0;
  ok(cs_file_read(path, 1 << 30, &text, &length));
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  assert_int_equal(lines, 6); /* device, two records, kernels, two co-runs */
  free(text);
  free(path);
}

static void test_kernels_need_a_record(void **state) {
  fixture *f = *state;
  cs_kernel_profile kernel = {.info = {.name = "k"}};
  cs_profile *profile = open_in(f->directory, DEVICE);
  cs_status st = cs_profile_add_kernels(profile, "op1", "x", &kernel, 1);
  assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
  cs_status_free(st);
  cs_profile_close(profile);
}

static void test_export_and_import(void **state) {
  fixture *f = *state;
  char *first = NULL, *second = NULL;
  size_t n_first, n_second;
  int taken = 0;
  cs_profile *profile = open_in(f->directory, DEVICE), *other = open_in(f->other, DEVICE);
  fill(profile);
  ok(cs_profile_export(profile, f->file));
  ok(cs_file_read(f->file, 1 << 20, &first, &n_first));
  ok(cs_profile_import(other, f->file, &taken));
  assert_int_equal(taken, 6);
  check_filled(other);
  ok(cs_profile_export(other, f->file));
  ok(cs_file_read(f->file, 1 << 20, &second, &n_second));
  assert_int_equal(n_first, n_second);
  assert_memory_equal(first, second, n_first);
  cs_profile_close(other);
  ok(cs_profile_open_file(f->file, NULL, &other));
  assert_string_equal(cs_profile_identity(other), DEVICE);
  check_filled(other);
  cs_profile_close(other);
  cs_profile_close(profile);
  free(first);
  free(second);
}

static void test_another_devices_profile_is_refused(void **state) {
  fixture *f = *state;
  int taken = 0;
  cs_profile *profile = open_in(f->directory, DEVICE), *other = open_in(f->other, "another device");
  fill(profile);
  ok(cs_profile_export(profile, f->file));
  cs_status st = cs_profile_import(other, f->file, &taken);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), DEVICE));
  assert_non_null(strstr(cs_status_message(st), "another device"));
  assert_int_equal(taken, 0);
  cs_status_free(st);
  cs_profile_close(other);
  cs_profile_close(profile);
}

/* ---- Killed writers ---- */

static void write_until_killed(const fixture *f, int round, int acknowledged) {
  cs_profile *profile = open_in(f->directory, DEVICE);
  for (int i = 0;; i++) {
    char id[32];
    snprintf(id, sizeof id, "r%d.%d", round, i);
    add(profile, "op1", id, 10);
    if (write(acknowledged, &i, sizeof i) != sizeof i) _exit(1);
  }
}

/* A writer killed 200 times at any moment: all that it acknowledged is there, and of what it had in
 * flight at most one record. */
static void test_killed_writers_lose_at_most_one(void **state) {
  fixture *f = *state;
  unsigned seed = 1;
  int written[KILLS];
  for (int round = 0; round < KILLS; round++) {
    int ends[2], last = -1, i;
    assert_int_equal(pipe(ends), 0);
    pid_t writer = fork();
    if (writer == 0) write_until_killed(f, round, ends[1]);
    close(ends[1]);
    seed = seed * 1103515245u + 12345u;
    usleep(200 + (seed >> 16) % 6000);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    while (read(ends[0], &i, sizeof i) == sizeof i) last = i;
    close(ends[0]);
    written[round] = last + 1;
  }
  cs_profile *profile = open_in(f->directory, DEVICE);
  const cs_op_profile *known = cs_profile_find(profile, "op1");
  int found[KILLS] = {0}, total = 0;
  for (int r = 0; known && r < known->n_records; r++) {
    int round, i;
    assert_int_equal(sscanf(known->records[r].candidate.id, "r%d.%d", &round, &i), 2);
    found[round]++;
  }
  for (int round = 0; round < KILLS; round++) {
    assert_in_range(found[round], written[round], written[round] + 1);
    total += found[round];
  }
  assert_true(total > KILLS); /* the writers did get to write */
  cs_profile_close(profile);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_all_kinds_are_read_back),
      TEST(test_compaction_keeps_all_kinds),
      TEST(test_kernels_need_a_record),
      TEST(test_export_and_import),
      TEST(test_another_devices_profile_is_refused),
      TEST(test_killed_writers_lose_at_most_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
