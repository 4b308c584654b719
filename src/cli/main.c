/* convsched: dispatch, interrupts, logging. One file per command beside this one. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "cli/cli.h"

static const cli_command *const commands[] = {
    &cli_run,     &cli_profile, &cli_plan,       &cli_report,          &cli_trace,
    &cli_inspect, &cli_compare, &cli_experiment, &cli_generate,        &cli_import,
    &cli_export,  &cli_doctor,  &cli_cache,      &cli_generate_weights};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

const char *cli_command_line = "";
double cli_started;

double cli_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* When this process started, on the clock of cli_now (to a tick of 10 ms); now where /proc does not
 * tell. */
static double process_started(void) {
  char text[1024];
  double now = cli_now();
  struct timespec boot;
  FILE *file = fopen("/proc/self/stat", "r");
  if (!file) return now;
  char *got = fgets(text, sizeof text, file);
  fclose(file);
  if (!got || clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return now;
  char *field = strrchr(text, ')'); /* the command's name may hold spaces */
  for (int i = 2; field && i < 22; i++) field = strchr(field + 1, ' ');
  if (!field) return now;
  double since_boot = strtod(field, NULL) / (double)sysconf(_SC_CLK_TCK);
  double age = (double)boot.tv_sec + 1e-9 * (double)boot.tv_nsec - since_boot;
  return age >= 0 && age < 60 ? now - age : now;
}

/* ---- Interrupts: the first asks to stop, the second stops; commands that do not ask stop ---- */

static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t interrupting_signal; /* SIGINT or SIGTERM */

#define SAME_INTERRUPT_S 0.5

/* A signal sent to the process and to its group arrives twice and counts once. */
static void on_interrupt(int signal_number) {
  static double first;
  if (interrupts == 0) {
    first = cli_now();
    interrupting_signal = signal_number;
    interrupts = 1;
  } else if (cli_now() - first > SAME_INTERRUPT_S) {
    cli_remove_unfinished();
    _exit(128 + signal_number);
  }
}

static void end_at_once(int signal_number) {
  static const char message[] = "convsched: interrupted\n";
  ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
  (void)written;
  cli_remove_unfinished();
  _exit(128 + signal_number);
}

bool cli_interrupted(void *unused) {
  (void)unused;
  return interrupts > 0;
}

cs_status cli_check_interrupt(void) {
  return interrupts ? cs_error(CS_CODE_CANCELLED, "interrupted") : CS_OK;
}

/* As a shell tells a command that a signal ended. */
static int exit_code(cs_status status) {
  bool cancelled = cs_status_code(status) == CS_CODE_CANCELLED;
  return cancelled && interrupts ? 128 + (int)interrupting_signal : cs_status_exit_code(status);
}

/* ---- Messages ---- */

static struct { bool quiet, verbose, terminal, line_open; } console;

void cli_end_progress(void) {
  if (console.line_open) fputs("\r\033[K", stderr);
  console.line_open = false;
}

static void write_log(void *user, cs_log_level level, const char *message) {
  (void)user;
  if (level == CS_LOG_PROGRESS) {
    if (console.quiet || !console.terminal) return;
    fprintf(stderr, "\r%s\033[K", message);
    fflush(stderr);
    console.line_open = true;
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
  console.terminal = isatty(STDERR_FILENO);
  return &logger;
}

cs_status cli_error(cs_code code, const char *format, ...) {
  char message[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return cs_error(code, "%s", message);
}

cs_status cli_check_writable(const char *path) {
  if (!path || strcmp(path, "-") == 0) return CS_OK;
  return cs_file_check_replace(path);
}

cs_status cli_write_records(const cli_options *options, int n_cases, const json_t *records) {
  if (!options->json) return CS_OK;
  cs_strbuf text = {0};
  bool lines = n_cases > 1;
  for (size_t i = 0; i < json_array_size(records); i++) {
    char *one = json_dumps(json_array_get(records, i),
                           (lines ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(9));
    if (!one) {
      cs_strbuf_free(&text);
      return cs_no_memory("a record", 0);
    }
    cs_strbuf_printf(&text, "%s\n", one);
    free(one);
  }
  return cli_write_buffer(options->json, &text);
}

cs_status cli_print(const char *text) {
  if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
    return cs_io_error("stdout", "write", errno);
  }
  return CS_OK;
}

cs_status cli_write(const char *path, const char *text) {
  return path && strcmp(path, "-") != 0 ? cs_text_save(path, text) : cli_print(text);
}

cs_status cli_write_buffer(const char *path, struct cs_strbuf *text) {
  char *all = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(text, &all));
  cs_status st = cli_write(path, all);
  free(all);
  return st;
}

/* ---- Dispatch ---- */

static void print_help(FILE *to) {
  fputs(
      "Usage: convsched COMMAND [ARGUMENT…] [OPTION…]\n\n"
      "Runs non-linear CNNs with algorithm, stream, order and memory chosen together.\n\n"
      "Commands:\n",
      to);
  for (size_t i = 0; i < N_COMMANDS; i++) {
    fprintf(to, "  %-18s %s\n", commands[i]->name, commands[i]->summary);
  }
  fputs(
      "\n`convsched COMMAND --help` tells a command's options, with an example.\n"
      "Where a MODEL.json is wanted, a MODEL.onnx is imported in memory.\n"
      "Exit codes: 0 ok, 1 wrong result or missed requirement, 2 usage, 3 bad input,\n"
      "4 device, library or disk failure, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM);\n"
      "what was measured until then is kept.\n",
      to);
}

static const cli_command *find_command(const char *name) {
  for (size_t i = 0; i < N_COMMANDS; i++) {
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  }
  return NULL;
}

static char *join_arguments(int argc, char **argv) {
  size_t length = 1;
  for (int i = 0; i < argc; i++) length += strlen(argv[i]) + 1;
  char *line = calloc(length, 1);
  for (int i = 0; line && i < argc; i++) {
    if (i > 0) strcat(line, " ");
    strcat(line, argv[i]);
  }
  return line;
}

int main(int argc, char **argv) {
  cli_started = process_started();
  if (argc < 2) {
    fputs("convsched: no command given; `convsched --help` lists them\n", stderr);
    return 2;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_help(stdout);
    return 0;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("convsched %s\n", cs_version_string());
    return 0;
  }
  const cli_command *command = find_command(argv[1]);
  if (!command) {
    fprintf(stderr, "convsched: unknown command \"%s\"; `convsched --help` lists them\n", argv[1]);
    return 2;
  }
  struct sigaction action = {.sa_handler = command->asks ? on_interrupt : end_at_once};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  cli_tell_cut_off_files();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a write beyond `ulimit -f` is an error like that of a full disk */
  char *line = join_arguments(argc, argv);
  cli_command_line = line ? line : "convsched";
  cli_options options;
  cli_parse(command, argc - 1, argv + 1, &options);
  cs_status status = cli_check_files(&options);
  if (status == CS_OK) status = command->run(&options);
  cli_end_progress();
  int code = exit_code(status);
  if (status != CS_OK) fprintf(stderr, "convsched: %s\n", cs_status_message(status));
  cs_status_free(status);
  free(line);
  return code;
}
