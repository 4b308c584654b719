/* Ctrl-C and SIGTERM: the first asks to stop and sets a deadline, the second stops, and so does the
 * deadline; commands that do not ask stop at once.
 */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

/* A signal sent to the process and to its group arrives twice and counts once. */
#define SAME_INTERRUPT_S 0.1

static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t interrupting_signal; /* SIGINT or SIGTERM */
static timer_t deadline;
static volatile sig_atomic_t has_deadline;

/* Handlers: system calls and memory of their own alone. What was measured is in the database by
 * then, an appended record after the other; other files are temporary until they are renamed. */
static void end_at_once(int signal_number) {
  static const char message[] = "convsched: interrupted\n";
  cli_erase_progress_at_once();
  ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
  (void)written;
  cli_remove_unfinished();
  _exit(128 + signal_number);
}

static void on_deadline(int signal_number) {
  (void)signal_number;
  if (interrupts > 0) end_at_once((int)interrupting_signal);
}

static void on_interrupt(int signal_number) {
  static double first;
  if (interrupts == 0) {
    struct itimerspec grace = {.it_value = {.tv_nsec = (long)(CLI_GRACE_S * 1e9)}};
    first = cli_now();
    interrupting_signal = signal_number;
    interrupts = 1;
    if (!has_deadline || timer_settime(deadline, 0, &grace, NULL) != 0) end_at_once(signal_number);
  } else if (cli_now() - first > SAME_INTERRUPT_S) {
    end_at_once(signal_number);
  }
}

void cli_catch_interrupts(bool asks) {
  /* Calls that a signal interrupts go on: they are no errors, and the deadline ends them. */
  struct sigaction action = {.sa_handler = asks ? on_interrupt : end_at_once,
                             .sa_flags = SA_RESTART};
  struct sigaction at_deadline = {.sa_handler = on_deadline, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  sigaction(SIGALRM, &at_deadline, NULL);
  has_deadline = timer_create(CLOCK_MONOTONIC, &event, &deadline) == 0;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void *unused) {
  (void)unused;
  return interrupts > 0;
}

cs_status cli_check_interrupt(void) {
  return interrupts ? cs_error(CS_CODE_CANCELLED, "interrupted") : CS_OK;
}

int cli_exit_code(cs_status status) {
  bool cancelled = cs_status_code(status) == CS_CODE_CANCELLED;
  return cancelled && interrupts ? 128 + (int)interrupting_signal : cs_status_exit_code(status);
}
