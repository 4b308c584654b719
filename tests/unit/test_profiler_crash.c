/* The profile database under writers of every kind of line that are killed at any moment. */
#include "database_fixture.h"

#include <signal.h>

#include "profiler/cache.h"

#define KILLS 200

/* Per pair of operations written: two records, the first one's kernels, and the co-run of both. */
enum { STEP_FIRST, STEP_SECOND, STEP_KERNELS, STEP_CORUN, N_STEPS };

typedef struct names {
  char first[32], second[32];
} names;

/* Operations of their own for every writer and pair: nothing overrides anything. */
static names names_of(int writer, int pair) {
  names n;
  snprintf(n.first, sizeof n.first, "a%d.%d", writer, pair);
  snprintf(n.second, sizeof n.second, "b%d.%d", writer, pair);
  return n;
}

static char *text(const char *constant) {
  return (char *)(uintptr_t)constant;
}

/* ---- Writing ---- */

static cs_status write_record(cs_profile *profile, const char *op) {
  const cs_candidate candidate = {.id = text("x"), .family = text("test")};
  const cs_measurement measured = {.cold_us = 10, .warm_us = 5, .samples = 5};
  return cs_profile_add(profile, op, &candidate, &measured);
}

static cs_status write_kernels(cs_profile *profile, const char *op) {
  cs_kernel_profile kernels[2] = {{.info = {.registers = 168}}, {.info = {.registers = 40}}};
  snprintf(kernels[0].info.name, sizeof kernels[0].info.name, "first");
  snprintf(kernels[1].info.name, sizeof kernels[1].info.name, "second");
  return cs_profile_add_kernels(profile, op, "x", kernels, 2);
}

static cs_status write_corun(cs_profile *profile, names *n) {
  cs_corun_member members[] = {{n->first, text("x")}, {n->second, text("x")}};
  const cs_corun corun = {
      .members = members, .n = 2, .serial_us = 20, .concurrent_us = 15, .samples = 7};
  return cs_profile_add_corun(profile, &corun);
}

static cs_status write_step(cs_profile *profile, int writer, int step) {
  names n = names_of(writer, step / N_STEPS);
  switch (step % N_STEPS) {
    case STEP_FIRST:
      return write_record(profile, n.first);
    case STEP_SECOND:
      return write_record(profile, n.second);
    case STEP_KERNELS:
      return write_kernels(profile, n.first);
    default:
      return write_corun(profile, &n);
  }
}

/* Writes step after step and says so after each one, until it is killed. */
static pid_t start_doomed(fixture *f, int writer, int *said) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) {
    close(ends[1]);
    *said = ends[0];
    return pid;
  }
  cs_profile *profile = NULL;
  cs_status st = cs_profile_open(f->directory, DEVICE, NULL, &profile);
  for (int step = 0; st == CS_OK; step++) {
    st = write_step(profile, writer, step);
    if (st == CS_OK && write(ends[1], "", 1) != 1) _exit(2);
  }
  _exit(1);
}

/* Lets a writer say up to `n` steps (what it says later counts too), then kills it; returns how
 * many it said. That many bytes never fill the pipe. */
static int kill_after(pid_t writer, int said, int n, useconds_t then_us) {
  char bytes[4096];
  int sum = 0, status = 0;
  ssize_t got;
  while (sum < n && read(said, bytes, 1) == 1) sum++;
  usleep(then_us);
  assert_int_equal(kill(writer, SIGKILL), 0);
  assert_int_equal(waitpid(writer, &status, 0), writer);
  assert_true(WIFSIGNALED(status)); /* it did not end by itself: no write failed */
  while ((got = read(said, bytes, sizeof bytes)) > 0) sum += (int)got;
  close(said);
  return sum;
}

/* ---- Reading ---- */

static bool has_kernels(const cs_profile *profile, const char *op) {
  const cs_record *record = record_of(profile, op, "x");
  if (!record || record->n_kernels != 2) return false;
  return strcmp(record->kernels[1].info.name, "second") == 0 &&
         record->kernels[0].info.registers == 168;
}

static bool has_corun(const cs_profile *profile, const names *n) {
  const char *members[] = {n->first, n->second};
  const cs_corun **found = NULL;
  int count = 0;
  ok(cs_profile_coruns(profile, members, 2, &found, &count));
  bool there = count == 1 && found[0]->concurrent_us == 15 && found[0]->serial_us == 20;
  free(found);
  return there;
}

static bool has_step(const cs_profile *profile, int writer, int step) {
  names n = names_of(writer, step / N_STEPS);
  switch (step % N_STEPS) {
    case STEP_FIRST:
      return record_of(profile, n.first, "x") != NULL;
    case STEP_SECOND:
      return record_of(profile, n.second, "x") != NULL;
    case STEP_KERNELS:
      return has_kernels(profile, n.first);
    default:
      return has_corun(profile, &n);
  }
}

static bool starts_as_ours(const char *line, size_t length) {
  static const char start[] = "{\"schema\":\"convsched.profile/1\"";
  size_t n = length < sizeof start - 1 ? length : sizeof start - 1;
  return memcmp(line, start, n) == 0;
}

/* Every line of the file is whole, or the beginning of one (torn); returns how many are torn. */
static int count_torn(const char *path) {
  char *all = NULL;
  size_t length = 0;
  int torn = 0;
  ok(cs_file_read(path, 1 << 30, &all, &length));
  for (size_t at = 0; at < length;) {
    const char *line = all + at, *end = memchr(line, '\n', length - at);
    size_t n = end ? (size_t)(end - line) : length - at;
    assert_true(n > 0);
    assert_true(starts_as_ours(line, n));
    torn += !end || n < 2 || memcmp(line + n - 2, "}}", 2) != 0;
    at += n + 1;
  }
  free(all);
  return torn;
}

static void test_killed_writers_of_all_kinds(void **state) {
  fixture *f = *state;
  cs_rng rng;
  int said[KILLS], kinds[N_STEPS] = {0}, total = 0;
  cs_rng_init(&rng, 11, 0);
  for (int w = 0; w < KILLS; w++) {
    int end = -1;
    pid_t writer = start_doomed(f, w, &end);
    /* Every fourth may die before it has written anything, even while it opens. */
    int n = w % 4 == 0 ? 0 : 1 + (int)(cs_rng_u32(&rng) % 12);
    said[w] = kill_after(writer, end, n, cs_rng_u32(&rng) % 1500);
    total += said[w];
  }
  cs_profile *profile = open_profile(f, DEVICE);
  for (int w = 0; w < KILLS; w++) {
    for (int s = 0; s < said[w]; s++) {
      if (!has_step(profile, w, s)) fail_msg("step %d of writer %d was said and is lost", s, w);
      kinds[s % N_STEPS]++;
    }
    /* The one in flight may have come through; the one behind it was never begun. */
    assert_false(has_step(profile, w, said[w] + 1));
  }
  for (int k = 0; k < N_STEPS; k++) assert_in_range(kinds[k], KILLS / 4, total);
  /* Nothing is damaged but what a death tore, one line each at most. */
  cs_profile_summary summary;
  int torn = count_torn(cs_profile_path(profile));
  ok(cs_profile_summarise(profile, &summary));
  assert_in_range(torn, 0, KILLS);
  assert_int_equal(summary.damaged, torn);
  assert_int_equal(summary.foreign, 0);
  assert_int_equal(f->warnings, torn > 0);
  cs_profile_close(profile);
}

/* A line torn inside, of each kind, costs that line alone: what follows starts afresh. */
static void test_torn_lines(void **state) {
  fixture *f = *state;
  for (int cut = 0; cut < N_STEPS; cut++) {
    cs_profile *profile = open_profile(f, DEVICE);
    char *path = cs_strdup(cs_profile_path(profile));
    for (int s = 0; s <= cut; s++) ok(write_step(profile, cut, s));
    cs_profile_close(profile);
    char *all = NULL;
    size_t length = 0;
    ok(cs_file_read(path, 1 << 20, &all, &length));
    assert_int_equal(truncate(path, (off_t)length - 20), 0);
    profile = open_profile(f, DEVICE);
    ok(write_step(profile, cut + N_STEPS, 0));
    cs_profile_close(profile);
    f->warnings = 0;
    profile = open_profile(f, DEVICE);
    for (int s = 0; s < cut; s++) assert_true(has_step(profile, cut, s));
    assert_false(has_step(profile, cut, cut));
    assert_true(has_step(profile, cut + N_STEPS, 0));
    assert_int_equal(f->warnings, 1);
    assert_int_equal(count_torn(path), cut + 1);
    cs_profile_close(profile);
    free(all);
    free(path);
  }
}

/* Two at once, one of which dies again and again: the other loses nothing. */
static void test_a_writer_beside_killed_ones(void **state) {
  fixture *f = *state;
  enum { STEPS = 1200, ROUNDS = 25 };
  int status = 0;
  pid_t living = fork();
  assert_true(living >= 0);
  if (living == 0) {
    cs_profile *profile = NULL;
    cs_status st = cs_profile_open(f->directory, DEVICE, NULL, &profile);
    for (int s = 0; st == CS_OK && s < STEPS; s++) st = write_step(profile, KILLS, s);
    _exit(st == CS_OK && cs_profile_path(profile) ? 0 : 1);
  }
  int said[ROUNDS];
  for (int w = 0; w < ROUNDS; w++) {
    int end = -1;
    pid_t writer = start_doomed(f, w, &end);
    said[w] = kill_after(writer, end, 4, 500);
  }
  assert_int_equal(waitpid(living, &status, 0), living);
  assert_int_equal(status, 0);
  cs_profile *profile = open_profile(f, DEVICE);
  for (int s = 0; s < STEPS; s++) assert_true(has_step(profile, KILLS, s));
  for (int w = 0; w < ROUNDS; w++) {
    for (int s = 0; s < said[w]; s++) assert_true(has_step(profile, w, s));
  }
  cs_profile_close(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_killed_writers_of_all_kinds),
      TEST(test_torn_lines),
      TEST(test_a_writer_beside_killed_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
