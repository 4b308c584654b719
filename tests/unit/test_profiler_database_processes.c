/* The profile database under several processes, some of which are killed. */
#include "database_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Writers that are killed, and the most records that one of them could write. */
#define KILLS 200
#define MOST 100000

/* ---- At the same time ---- */

static pid_t start_writer(fixture *f, const char *op, int n) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  cs_profile *profile = NULL;
  cs_status st = cs_profile_open(f->directory, DEVICE, NULL, &profile);
  for (int i = 0; st == CS_OK && i < n; i++) {
    char id[32];
    cs_candidate candidate = {.id = id, .family = (char *)(uintptr_t)op};
    cs_measurement measured = {.cold_us = i + 1, .warm_us = 1, .samples = 1};
    snprintf(id, sizeof id, "c%d", i);
    st = cs_profile_add(profile, op, &candidate, &measured);
  }
  _exit(st == CS_OK && cs_profile_path(profile) ? 0 : 1);
}

static void finish(pid_t writer) {
  int status = 0;
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_int_equal(status, 0);
}

static void test_two_writers(void **state) {
  fixture *f = *state;
  pid_t one = start_writer(f, "one", 300), two = start_writer(f, "two", 300);
  finish(one);
  finish(two);
  cs_profile *profile = open_profile(f, DEVICE);
  assert_int_equal(cs_profile_find(profile, "one")->n_records, 300);
  assert_int_equal(cs_profile_find(profile, "two")->n_records, 300);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
}

/* Opening compacts while another process appends. */
static void test_compaction_beside_a_writer(void **state) {
  fixture *f = *state;
  pid_t writer = start_writer(f, "beside", 1000);
  for (int round = 0; round < 30; round++) {
    cs_profile *profile = open_profile(f, DEVICE);
    for (int i = 0; i < 150; i++) add(profile, "conv", "same", i + 1);
    cs_profile_close(profile);
  }
  finish(writer);
  cs_profile *profile = open_profile(f, DEVICE);
  assert_int_equal(cs_profile_find(profile, "beside")->n_records, 1000);
  assert_int_equal(cs_profile_find(profile, "conv")->n_records, 1);
  assert_int_equal(f->warnings, 0);
  cs_profile_close(profile);
}

/* A writer waits for the lock, also where its file is another one by the time it gets it. */
static void test_lock(void **state) {
  fixture *f = *state;
  cs_profile *profile = open_profile(f, DEVICE);
  char lock_path[160];
  add(profile, "conv", "a", 1);
  snprintf(lock_path, sizeof lock_path, "%s.lock", cs_profile_path(profile));
  int lock = open(lock_path, O_RDWR);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  pid_t writer = start_writer(f, "waits", 1);
  usleep(50000);
  assert_int_equal(waitpid(writer, NULL, WNOHANG), 0);
  assert_int_equal(count_lines(cs_profile_path(profile)), 1);
  assert_int_equal(unlink(lock_path), 0);
  assert_int_equal(flock(lock, LOCK_UN), 0); /* the writer has inherited it */
  close(lock);
  finish(writer);
  assert_int_equal(count_lines(cs_profile_path(profile)), 2);
  assert_int_equal(access(lock_path, F_OK), 0);
  cs_profile_close(profile);
}

/* ---- Killed ---- */

/* Writes c0, c1, … with times that tell the round, and says so after each one. Opening compacts
 * again and again, as every round replaces what the ones before have written. */
static pid_t start_doomed(fixture *f, int round, int *said) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    *said = ends[0];
    return pid;
  }
  cs_profile *profile = NULL;
  cs_status st = cs_profile_open(f->directory, DEVICE, NULL, &profile);
  for (int i = 0; st == CS_OK && i < MOST; i++) {
    char id[32];
    cs_candidate candidate = {.id = id, .family = (char *)(uintptr_t) "test"};
    cs_measurement measured = {.cold_us = round + 1, .warm_us = 1, .samples = 1};
    snprintf(id, sizeof id, "c%d", i);
    st = cs_profile_add(profile, "conv", &candidate, &measured);
    if (st == CS_OK && write(ends[1], "", 1) != 1) _exit(2);
  }
  _exit(1);
}

/* How many records a writer said it had written. */
static int count_said(int said) {
  char bytes[4096];
  ssize_t n;
  int sum = 0;
  while ((n = read(said, bytes, sizeof bytes)) > 0) sum += (int)n;
  close(said);
  return sum;
}

static double time_of(const cs_profile *profile, int i) {
  char id[32];
  snprintf(id, sizeof id, "c%d", i);
  const cs_record *record = record_of(profile, "conv", id);
  return record ? record->measured.cold_us : 0;
}

/* A death tears one line at most, and opening what it left behind adds nothing. */
static void assert_no_growth(fixture *f, const cs_profile *profile) {
  char aside[160];
  struct stat before, after;
  const char *path = cs_profile_path(profile);
  snprintf(aside, sizeof aside, "%s.damaged", path);
  if (access(aside, F_OK) == 0) assert_true(count_lines(aside) <= KILLS);
  assert_int_equal(stat(path, &before), 0);
  for (int i = 0; i < 3; i++) cs_profile_close(open_profile(f, DEVICE));
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(before.st_size, after.st_size);
}

/* What was said to be written is there, at most the one record in flight is not or is ahead. */
static void test_killed_writers(void **state) {
  fixture *f = *state;
  cs_rng rng;
  int *latest = cs_calloc(MOST, sizeof *latest); /* round + 1 that was said last for c<i> */
  int in_flight[KILLS]; /* i of the record that a round's writer may have written when it died */
  int most = 0, total = 0;
  char first;
  assert_non_null(latest);
  cs_rng_init(&rng, 7, 0);
  for (int round = 0; round < KILLS; round++) {
    int said = -1;
    pid_t writer = start_doomed(f, round, &said);
    /* Every fourth dies at any time, while it opens or compacts too; the others while they write.
     */
    int n = round % 4 == 0 ? 0 : (int)read(said, &first, 1);
    usleep(cs_rng_u32(&rng) % 4000);
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    n += count_said(said);
    for (int i = 0; i < n; i++) latest[i] = round + 1;
    in_flight[round] = n;
    total += n;
    most = n > most ? n : most;
  }
  cs_profile *profile = open_profile(f, DEVICE);
  for (int i = 0; i <= most; i++) {
    double time = time_of(profile, i);
    bool ahead = time > latest[i] && time <= KILLS && in_flight[(int)time - 1] == i;
    if (time != latest[i] && !ahead) {
      fail_msg("c%d is of round %g, where it was not in flight; said was %d", i, time - 1,
               latest[i] - 1);
    }
  }
  assert_true(total >= KILLS / 4 * 3);
  assert_no_growth(f, profile);
  cs_profile_close(profile);
  free(latest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_two_writers),
      TEST(test_lock),
      TEST(test_compaction_beside_a_writer),
      TEST(test_killed_writers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
