/* What is told on stderr while work goes on: messages, and on a terminal one line of progress that
 * is redrawn in place and erased before anything else is written. No thread of its own: it is drawn
 * when the library reports, which is between measurements. */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define REDRAW_S 0.1 /* between two drawings of a stage */

static struct {
  bool quiet, verbose, terminal;
  char stage[64];      /* that is shown, or was last named */
  int64_t done;        /* that it reported last */
  double begun, drawn; /* when the stage began, when the line was last drawn */
  volatile int open;   /* a line is on the terminal */
} console;

/* ---- The line ---- */

static int terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

static void draw(const char *line) {
  char text[CLI_PROGRESS_BYTES + 16];
  int length = snprintf(text, sizeof text, "\r%s\033[K", line);
  fflush(stderr);
  console.open = 1; /* before it is: a handler may end the process between the two */
  if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) console.open = 0;
}

static const char erase[] = "\r\033[K";

void cli_end_progress(void) {
  if (console.open) {
    ssize_t written = write(STDERR_FILENO, erase, sizeof erase - 1);
    (void)written;
  }
  console.open = 0;
}

bool cli_progress_is_shown(void) {
  return console.open;
}

/* ---- Reports ---- */

/* Also one that is gone through again, as for another layout. */
static bool is_new_stage(const cs_progress *progress) {
  return progress->done < console.done ||
         strncmp(console.stage, progress->stage, sizeof console.stage - 1) != 0;
}

static void begin_stage(const cs_progress *progress, double now) {
  snprintf(console.stage, sizeof console.stage, "%s", progress->stage);
  console.begun = now;
  if (console.terminal || !console.verbose) return;
  if (progress->total > 0) {
    fprintf(stderr, "[%7.3f] convsched: %s: %lld%s%s\n", now - cli_started, progress->stage,
            (long long)progress->total, *progress->unit ? " " : "", progress->unit);
  } else {
    fprintf(stderr, "[%7.3f] convsched: %s\n", now - cli_started, progress->stage);
  }
}

static void on_progress(void *user, const cs_progress *progress) {
  (void)user;
  char line[CLI_PROGRESS_BYTES];
  double now = cli_now();
  if (console.quiet) return;
  if (is_new_stage(progress)) begin_stage(progress, now);
  console.done = progress->done;
  if (!console.terminal || now - console.drawn < REDRAW_S) return;
  console.drawn = now;
  cli_progress_line(progress, now - console.begun, terminal_columns() - 1, line);
  draw(line);
}

void cli_show_progress(const cli_options *options) {
  const char *kind = getenv("TERM");
  console.quiet = options->quiet;
  console.verbose = options->verbose;
  console.terminal = isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
  cs_progress_watch(console.quiet || (!console.terminal && !console.verbose) ? NULL : on_progress,
                    NULL);
}

void cli_tell_progress(const char *stage, const char *unit, int64_t done, int64_t total) {
  cs_progress progress = {.stage = stage, .unit = unit, .item = "", .done = done, .total = total};
  on_progress(NULL, &progress);
}

/* ---- Messages ---- */

static void write_log(void *user, cs_log_level level, const char *message) {
  (void)user;
  if (level == CS_LOG_PROGRESS) {
    cs_progress progress = {.stage = message, .unit = "", .item = ""};
    on_progress(NULL, &progress);
    return;
  }
  if (console.quiet && level != CS_LOG_WARNING) return;
  if (level == CS_LOG_DEBUG && !console.verbose) return;
  cli_end_progress();
  if (console.verbose) fprintf(stderr, "[%7.3f] ", cli_now() - cli_started);
  fprintf(stderr, "convsched: %s%s\n", level == CS_LOG_WARNING ? "warning: " : "", message);
}

const cs_logger *cli_logger(const cli_options *options) {
  static const cs_logger logger = {write_log, NULL};
  console.quiet = options->quiet;
  console.verbose = options->verbose;
  return &logger;
}
