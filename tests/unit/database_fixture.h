/* What the tests of the profile database share: a folder of their own, and ways to fill it. */
#ifndef CONVSCHED_TESTS_DATABASE_FIXTURE_H_
#define CONVSCHED_TESTS_DATABASE_FIXTURE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka wants the four above first */
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/profile.h"

#define DEVICE "a device; driver 1.2"

typedef struct fixture {
  char directory[64];
  int warnings;
  char last_warning[1024];
  cs_logger logger;
} fixture;

static inline void count_warnings(void *user, cs_log_level level, const char *message) {
  fixture *f = user;
  if (level != CS_LOG_WARNING) return;
  f->warnings++;
  snprintf(f->last_warning, sizeof f->last_warning, "%s", message);
}

static inline int set_up(void **state) {
  fixture *f = cs_calloc(1, sizeof *f);
  snprintf(f->directory, sizeof f->directory, "/tmp/cs-profile-XXXXXX");
  if (!mkdtemp(f->directory)) return -1;
  f->logger = (cs_logger){count_warnings, f};
  *state = f;
  return 0;
}

static inline int tear_down(void **state) {
  fixture *f = *state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", f->directory);
  int rc = system(command);
  free(f);
  return rc;
}

static inline void ok(cs_status status) {
  if (status != CS_OK) fail_msg("%s", cs_status_message(status));
}

static inline cs_profile *open_profile(fixture *f, const char *device) {
  cs_profile *profile = NULL;
  ok(cs_profile_open(f->directory, device, &f->logger, &profile));
  return profile;
}

static inline void add(cs_profile *profile, const char *op, const char *id, double us) {
  cs_candidate candidate = {.id = (char *)(uintptr_t)id,
                            .family = (char *)(uintptr_t) "test",
                            .workspace_bytes = 4096,
                            .deterministic = true,
                            .notes = CS_NOTE_WINOGRAD,
                            .threads = 2};
  cs_measurement measured = {
      .cold_us = us, .warm_us = us / 2, .p10_us = us, .p90_us = us, .samples = 5};
  ok(cs_profile_add(profile, op, &candidate, &measured));
}

static inline void reject(cs_profile *profile, const char *op, const char *id, const char *reason) {
  cs_candidate candidate = {.id = (char *)(uintptr_t)id, .family = (char *)(uintptr_t) "test"};
  cs_measurement measured = {.rejected = true, .reason = (char *)(uintptr_t)reason};
  ok(cs_profile_add(profile, op, &candidate, &measured));
}

/* The path of the only database file; released by the caller. */
static inline char *path_of(fixture *f, const char *device) {
  cs_profile *profile = open_profile(f, device);
  char *path = cs_strdup(cs_profile_path(profile));
  assert_non_null(path);
  cs_profile_close(profile);
  return path;
}

static inline void append_text(const char *path, const char *text) {
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static inline int count_lines(const char *path) {
  char *text = NULL;
  size_t length = 0;
  int lines = 0;
  ok(cs_file_read(path, 1 << 30, &text, &length));
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  free(text);
  return lines;
}

static inline const cs_record *record_of(const cs_profile *profile, const char *op,
                                         const char *id) {
  const cs_op_profile *known = cs_profile_find(profile, op);
  for (int i = 0; known && i < known->n_records; i++) {
    if (strcmp(known->records[i].candidate.id, id) == 0) return &known->records[i];
  }
  return NULL;
}

static inline void fails(cs_status status, cs_code code, const char *fragment) {
  assert_int_equal(cs_status_code(status), code);
  if (!strstr(cs_status_message(status), fragment)) {
    fail_msg("\"%s\" is not in \"%s\"", fragment, cs_status_message(status));
  }
  cs_status_free(status);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
