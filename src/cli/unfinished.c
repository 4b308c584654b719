/* The end of a process whose other threads go on, and the files that they are writing. */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"

/* Everything here may run in a signal handler: system calls and memory of its own alone. */

#define MOST_FILES 1024 /* descriptors looked at; the command has a few dozen */
#define DIGITS 24
#define MAKING_MS 10 /* what making a file may take */

/* Appends a number to text that has room for it. */
static void append_number(char *text, long number) {
  char digits[DIGITS];
  size_t n = 0, at = strlen(text);
  do {
    digits[n++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (n > 0) text[at++] = digits[--n];
  text[at] = '\0';
}

static bool is_written(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_WRONLY;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), wanted = strlen(end);
  return length > wanted && strcmp(text + length - wanted, end) == 0;
}

static void remove_once(const char *suffix) {
  char path[4352];
  for (int fd = STDERR_FILENO + 1; fd < MOST_FILES; fd++) {
    char link[DIGITS + 24] = "/proc/self/fd/";
    if (!is_written(fd)) continue;
    append_number(link, fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) continue;
    path[length] = '\0';
    if (ends_with(path, suffix)) unlink(path);
  }
}

/* What a thread was making just then is found the second time. */
static void remove_unfinished(void) {
  char suffix[DIGITS + 8] = ".tmp.";
  append_number(suffix, getpid());
  remove_once(suffix);
  (void)poll(NULL, 0, MAKING_MS);
  remove_once(suffix);
}

static atomic_bool ending;

/* The others shall open nothing more, and nobody shall read of the errors that this makes. */
void cli_end_at_once(const char *message, int code) {
  const struct rlimit none = {0, 0};
  atomic_store(&ending, true);
  int terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  (void)setrlimit(RLIMIT_NOFILE, &none);
  if (terminal >= 0) (void)close(STDERR_FILENO);
  remove_unfinished();
  ssize_t written = write(terminal >= 0 ? terminal : STDERR_FILENO, message, strlen(message));
  (void)written;
  _exit(code);
}

void cli_stay_while_ending(void) {
  while (atomic_load(&ending)) pause();
}
