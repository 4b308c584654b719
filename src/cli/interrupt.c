/* Ctrl-C, SIGTERM and SIGHUP: the first asks to stop and sets a deadline, the second stops, and so
 * does the deadline; commands that do not ask stop at once.
 *
 * A thread of its own waits for the signals, which are blocked everywhere else: a handler would run
 * on the stack of whatever thread it meets, and code that libraries make while they run (oneDNN's
 * kernels) keeps other things than a stack in the stack pointer's register.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/base.h"
#include "cli/cli.h"

/* A signal sent to the process and to its group arrives twice and counts once. */
#define SAME_INTERRUPT_S 0.1
#define STACK_BYTES ((size_t)256 << 10)

static atomic_int interrupting_signal; /* the first of the signals below; 0: none came */
static bool hangs_up;                  /* SIGHUP is not ignored, as nohup has it */

/* What was measured is in the database by then, an appended record after the other; other files are
 * temporary until they are renamed. */
static void end_interrupted(int signal_number) {
  static const char message[] = "convsched: interrupted\n",
                    erasing[] = "\r\033[Kconvsched: interrupted\n";
  const char *text = cli_progress_is_shown() ? erasing : message;
  cli_end_at_once(text, 128 + signal_number);
}

static void fill_signals(sigset_t *out) {
  sigemptyset(out);
  sigaddset(out, SIGINT);
  sigaddset(out, SIGTERM);
  if (hangs_up) sigaddset(out, SIGHUP);
}

/* Until a second signal, which is not the first one's twin, or the deadline. */
static void wait_for_deadline(const sigset_t *signals, double first) {
  for (;;) {
    double left = first + CLI_GRACE_S - cli_now();
    if (left <= 0) return;
    struct timespec wait = {.tv_nsec = (long)(left * 1e9)};
    int got = sigtimedwait(signals, NULL, &wait);
    if (got > 0 && cli_now() - first > SAME_INTERRUPT_S) return;
  }
}

static void *watch(void *asks) {
  sigset_t signals;
  int got = 0;
  fill_signals(&signals);
  while (sigwait(&signals, &got) != 0) continue;
  if (asks) {
    double first = cli_now();
    atomic_store(&interrupting_signal, got);
    wait_for_deadline(&signals, first);
  }
  end_interrupted(got);
  return NULL;
}

static bool begin_watching(bool asks) {
  static int some;
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool begun = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
               pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
               pthread_create(&thread, &attributes, watch, asks ? &some : NULL) == 0;
  (void)pthread_attr_destroy(&attributes);
  return begun;
}

/* Before any other thread is there: they inherit what is blocked. */
void cli_catch_interrupts(bool asks) {
  const struct sigaction as_usual = {.sa_handler =
                                         SIG_DFL}; /* what is ignored is never waited for */
  struct sigaction hang_up;
  sigset_t signals;
  hangs_up = sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN;
  fill_signals(&signals);
  sigaction(SIGINT, &as_usual, NULL);
  sigaction(SIGTERM, &as_usual, NULL);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
  /* Without a thread the signals end the process as they do any other. */
  if (!begin_watching(asks)) (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

bool cli_interrupted(void *unused) {
  (void)unused;
  return atomic_load(&interrupting_signal) != 0;
}

cs_status cli_check_interrupt(void) {
  return cli_interrupted(NULL) ? cs_error(CS_CODE_CANCELLED, "interrupted") : CS_OK;
}

int cli_exit_code(cs_status status) {
  int signal_number = atomic_load(&interrupting_signal);
  bool cancelled = cs_status_code(status) == CS_CODE_CANCELLED;
  return cancelled && signal_number ? 128 + signal_number : cs_status_exit_code(status);
}
