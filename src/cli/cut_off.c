/* Mapped files that end, or cannot be read, under the reader: SIGBUS. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Everything here runs in a signal handler: system calls and memory of its own alone. */

#define LINE_BYTES 4352 /* of /proc/self/maps: up to 100 bytes before a path of PATH_MAX */

/* One line of `fd`, cut where it is longer; false at the end. */
static bool read_line(int fd, char line[LINE_BYTES]) {
  size_t n = 0;
  char c;
  while (read(fd, &c, 1) == 1) {
    if (c == '\n') {
      line[n] = '\0';
      return true;
    }
    if (n + 1 < LINE_BYTES) line[n++] = c;
  }
  return false;
}

/* Hexadecimal digits at *text, which is moved behind them. */
static uintptr_t read_hex(const char **text) {
  uintptr_t value = 0;
  for (;; (*text)++) {
    char c = **text;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return value;
    value = value * 16 + (uintptr_t)digit;
  }
}

/* The path of the file that is mapped at `address`; NULL where none is. */
static const char *mapped_file(uintptr_t address, char line[LINE_BYTES]) {
  const char *path = NULL;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  while (!path && read_line(fd, line)) { /* "begin-end rwxp offset device inode   path" */
    const char *text = line;
    uintptr_t begin = read_hex(&text);
    text += *text == '-';
    uintptr_t end = read_hex(&text);
    if (begin <= address && address < end) {
      path = strchr(text, '/');
      if (!path) break;
    }
  }
  close(fd);
  return path;
}

static void say(const char *text) {
  size_t done = 0, length = strlen(text);
  while (done < length) {
    ssize_t n = write(STDERR_FILENO, text + done, length - done);
    if (n <= 0) return;
    done += (size_t)n;
  }
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context) {
  (void)context;
  static atomic_flag told = ATOMIC_FLAG_INIT;
  char line[LINE_BYTES];
  while (atomic_flag_test_and_set(&told))
    pause(); /* threads read weights side by side: one tells */
  const char *path = mapped_file((uintptr_t)info->si_addr, line);
  if (!path) { /* a fault of our own: it ends the process as it would have */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return;
  }
  say("convsched: ");
  say(path);
  say(": found its end, or an unreadable disk, where it had data when it was opened; wanted a file "
      "that stays as it is while it is read\n");
  cli_end_at_once("", 4);
}

void cli_tell_cut_off_files(void) {
  struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
  sigaction(SIGBUS, &action, NULL);
}
