/* Files: whole reads with a limit, replacement, folders. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/convsched-file-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static const char *in_folder(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void test_replace_and_read(void **state) {
  (void)state;
  char *text;
  size_t length;
  assert_null(cs_file_replace(in_folder("a"), "one", 3));
  assert_null(cs_file_replace(in_folder("a"), "three", 5));
  assert_null(cs_file_read(in_folder("a"), 5, &text, &length));
  assert_int_equal(length, 5);
  assert_string_equal(text, "three");
  free(text);
  cs_status st = cs_file_read(in_folder("a"), 4, &text, &length);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  st = cs_file_read(in_folder("none"), 4, &text, &length);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  assert_non_null(strstr(cs_status_message(st), "none"));
  cs_status_free(st);
  st = cs_file_read(folder, 4, &text, &length);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
}

static void test_device_is_not_replaced(void **state) {
  (void)state;
  cs_status st = cs_file_replace("/dev/full", "x", 1);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  struct stat info;
  assert_int_equal(stat("/dev/full", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

static void test_folders_and_neighbours(void **state) {
  (void)state;
  assert_null(cs_make_directories(in_folder("x/y/z")));
  assert_null(cs_make_directories(in_folder("x/y/z")));
  assert_int_equal(access(in_folder("x/y/z"), W_OK), 0);
  assert_null(cs_file_replace(in_folder("plain"), "", 0));
  cs_status st = cs_make_directories(in_folder("plain/z"));
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  cs_status_free(st);
  char *path;
  assert_null(cs_path_beside("models/a.json", "w.bin", &path));
  assert_string_equal(path, "models/w.bin");
  free(path);
  assert_null(cs_path_beside("a.json", "w.bin", &path));
  assert_string_equal(path, "w.bin");
  free(path);
  assert_null(cs_path_beside("models/a.json", "/tmp/w.bin", &path));
  assert_string_equal(path, "/tmp/w.bin");
  free(path);
}

static void assert_refused(const char *path) {
  cs_status st = cs_file_check_replace(path);
  assert_int_equal(cs_status_code(st), CS_CODE_IO);
  assert_non_null(strstr(cs_status_message(st), path));
  cs_status_free(st);
}

/* A check leaves no trace: no new file, the old one as it was, a pipe's reader undisturbed. */
static void test_check_before_replacing(void **state) {
  (void)state;
  char *text = NULL;
  size_t length;
  assert_null(cs_file_check_replace(in_folder("new")));
  assert_int_equal(access(in_folder("new"), F_OK), -1);
  assert_null(cs_file_replace(in_folder("old"), "kept", 4));
  assert_null(cs_file_check_replace(in_folder("old")));
  assert_null(cs_file_read(in_folder("old"), 100, &text, &length));
  assert_string_equal(text, "kept");
  free(text);
  assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
  assert_null(cs_file_check_replace(in_folder("pipe"))); /* would wait for a reader if opened */
  assert_refused(in_folder("nowhere/file"));
  assert_refused(folder);
}

/* The number of a process that has ended. */
static long ended_process(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  assert_true(child > 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  return child;
}

static const char *left_over(const char *name, const char *tail) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s.tmp.%s", folder, name, tail);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
  return path;
}

static bool is_m(const char *name, const void *user) {
  return strncmp(name, "m", 1) == 0 && strcmp(user, "user") == 0;
}

/* Of many files at once: those wanted, whose writers are gone; their names may hold ".tmp.". */
static void test_tidy(void **state) {
  (void)state;
  char gone[32], path[4][256];
  snprintf(gone, sizeof gone, "%ld", ended_process());
  snprintf(path[0], sizeof path[0], "%s", left_over("m1", gone));
  snprintf(path[1], sizeof path[1], "%s", left_over("m.tmp.2", gone));
  snprintf(path[2], sizeof path[2], "%s", left_over("n", gone));
  snprintf(path[3], sizeof path[3], "%s", left_over("m1", "x1"));
  cs_file_tidy(folder, is_m, "user");
  for (int i = 0; i < 4; i++) assert_int_equal(access(path[i], F_OK), i < 2 ? -1 : 0);
  cs_file_tidy(in_folder("nowhere"), is_m, "user");
  for (int i = 2; i < 4; i++) assert_int_equal(unlink(path[i]), 0);
}

static void test_one_of_many(void **state) {
  (void)state;
  char gone[32];
  cs_file_writer writer;
  snprintf(gone, sizeof gone, "%ld", ended_process());
  const char *path = left_over("l", gone);
  assert_null(cs_file_writer_open_one_of_many(&writer, in_folder("l")));
  cs_file_writer_abandon(&writer);
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(unlink(path), 0);
}

static void replace_and_look(const char *path, bool stays) {
  assert_null(cs_file_replace(in_folder("l"), "x", 1));
  assert_int_equal(access(path, F_OK), stays ? 0 : -1);
  unlink(path);
}

/* What another process left beside a file goes with the next write of that file, and nothing else.
 */
static void test_leftovers(void **state) {
  (void)state;
  char gone[32], ours[32], more[48];
  snprintf(gone, sizeof gone, "%ld", ended_process());
  snprintf(ours, sizeof ours, "%ld", (long)getppid());
  snprintf(more, sizeof more, "%s.bak", gone);
  replace_and_look(left_over("l", gone), false);
  replace_and_look(left_over("l", ours), true);
  replace_and_look(left_over("l", more), true);
  replace_and_look(left_over("l", "0"), true);
  replace_and_look(left_over("l", "-5"), true);
  replace_and_look(left_over("m", gone), true);
  const char *path = left_over("l", gone); /* a process that this one cannot see still writes it */
  int fd = open(path, O_WRONLY);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  replace_and_look(path, true);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replace_and_read),
      cmocka_unit_test(test_device_is_not_replaced),
      cmocka_unit_test(test_check_before_replacing),
      cmocka_unit_test(test_leftovers),
      cmocka_unit_test(test_tidy),
      cmocka_unit_test(test_one_of_many),
      cmocka_unit_test(test_folders_and_neighbours),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
