/* What the fuzz targets share. A target is one fuzz_<name>.c with LLVMFuzzerTestOneInput: libFuzzer
 * calls it in a build with CS_FUZZ=on, replay.c over the corpus in every other. */
#ifndef CONVSCHED_TESTS_FUZZ_FUZZ_H_
#define CONVSCHED_TESTS_FUZZ_FUZZ_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A wrong result is a crash as well. */
#define FUZZ_CHECK(condition, ...)                                  \
  do {                                                              \
    if (condition) break;                                           \
    fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
    fprintf(stderr, __VA_ARGS__);                                   \
    fputc('\n', stderr);                                            \
    abort();                                                        \
  } while (0)

/* What must succeed. */
static inline void fuzz_want_ok(cs_status st, const char *what) {
  FUZZ_CHECK(st == CS_OK, "%s: %s", what, cs_status_message(st));
}

/* True where the step succeeded. An input can only be bad: any other error blames something else,
 * and a message that says nothing helps nobody. */
static inline bool fuzz_taken(cs_status st, cs_code refusal) {
  if (st == CS_OK) return true;
  const char *message = cs_status_message(st);
  FUZZ_CHECK(cs_status_code(st) == refusal, "code %d, wanted %d: %s", (int)cs_status_code(st),
             (int)refusal, message);
  FUZZ_CHECK(message[0] != '\0', "an error without a message");
  cs_status_free(st);
  return false;
}

/* A file of these contents that only this process has. */
typedef struct fuzz_file {
  int fd;
  char path[32];
} fuzz_file;

static inline fuzz_file fuzz_file_of(const uint8_t *data, size_t size) {
  fuzz_file file = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
  FUZZ_CHECK(file.fd >= 0 && (size == 0 || write(file.fd, data, size) == (ssize_t)size),
             "no memory file");
  snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
  return file;
}

/* Formats messages, and lets go of them. */
static inline void fuzz_log(void *user, cs_log_level level, const char *message) {
  (void)user;
  (void)level;
  FUZZ_CHECK(message[0] != '\0', "an empty log message");
}
static const cs_logger fuzz_logger = {.write = fuzz_log};

#ifdef CS_FUZZ
/* For mutators of a target's own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static inline size_t fuzz_below(cs_rng *rng, size_t n) {
  return cs_rng_u32(rng) % (uint32_t)n;
}
#endif

#endif
