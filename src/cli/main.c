/* convsched: dispatch and output. One file per command beside this one. */
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
#include "base/json.h"
#include "cli/cli.h"
#include "cli/help.h"

static const cli_command *const commands[] = {
    &cli_run,     &cli_profile, &cli_plan,       &cli_report, &cli_trace,
    &cli_inspect, &cli_compare, &cli_experiment, &cli_bench,  &cli_generate,
    &cli_import,  &cli_export,  &cli_doctor,     &cli_cache,  &cli_generate_weights};
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

/* ---- Messages ---- */

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
  bool lines = n_cases > 1;
  if (!options->json || (lines && strcmp(options->json, "-") == 0)) return CS_OK; /* printed */
  cs_strbuf text = {0};
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

static cs_status print_line(const json_t *record) {
  cs_strbuf text = {0};
  char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
  if (!line) return cs_no_memory("a record", 0);
  cs_strbuf_printf(&text, "%s\n", line);
  free(line);
  return cli_write_buffer(NULL, &text);
}

cs_status cli_add_record(const cli_options *options, int n_cases, json_t *records, json_t *record) {
  if (json_array_append_new(records, record) != 0) return cs_no_memory("a record", 0);
  if (!options->json || n_cases < 2) return CS_OK;
  if (strcmp(options->json, "-") == 0) return print_line(record);
  if (cs_file_is_in_place(options->json)) return CS_OK; /* a pipe: once, at last */
  return cli_write_records(options, n_cases, records);
}

cs_status cli_print(const char *text) {
  cli_end_progress();
  if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
    return cs_io_error("stdout", "write", errno);
  }
  return CS_OK;
}

cs_status cli_write(const char *path, const char *text) {
  return path && strcmp(path, "-") != 0 ? cs_text_save(path, text) : cli_print(text);
}

void cli_tell_written(const cli_options *options, const char *path) {
  if (path && strcmp(path, "-") != 0) cs_log(cli_logger(options), CS_LOG_INFO, "wrote %s", path);
}

cs_status cli_write_buffer(const char *path, struct cs_strbuf *text) {
  char *all = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(text, &all));
  cs_status st = cli_write(path, all);
  free(all);
  return st;
}

/* ---- Dispatch ---- */

const cli_command *const *cli_commands(int *n) {
  *n = (int)N_COMMANDS;
  return commands;
}

const cli_command *cli_find_command(const char *name) {
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

/* Options in a command's place. Those that --help does not list are for shells' completion, for
 * packaging, and for tests. */
static bool told_of_itself(int argc, char **argv, int *code) {
  cs_status st = CS_OK;
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    st = cli_print_help();
  } else if (strcmp(argv[1], "--version") == 0) {
    printf("convsched %s\n", cs_version_string());
  } else if (strcmp(argv[1], "--complete") == 0) {
    st = cli_complete(argc - 2, argv + 2);
  } else if (strcmp(argv[1], "--man-pages") == 0 && argc == 3) {
    st = cli_write_man_pages(argv[2]);
  } else {
    return false;
  }
  *code = cs_status_exit_code(st);
  if (st != CS_OK) fprintf(stderr, "convsched: %s\n", cs_status_message(st));
  cs_status_free(st);
  return true;
}

int main(int argc, char **argv) {
  cli_started = process_started();
  if (argc < 2) {
    fputs("convsched: no command given; `convsched --help` lists them\n", stderr);
    return 2;
  }
  int code = 0;
  if (told_of_itself(argc, argv, &code)) return code;
  bool parse_only = strcmp(argv[1], "--parse-only") == 0 && argc > 2;
  if (parse_only) {
    argc--;
    argv++;
  }
  const cli_command *command = cli_find_command(argv[1]);
  if (!command) {
    fprintf(stderr, "convsched: unknown command \"%s\"; `convsched --help` lists them\n", argv[1]);
    return 2;
  }
  cli_catch_interrupts(command->asks);
  cli_tell_cut_off_files();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a write beyond `ulimit -f` is an error like that of a full disk */
  char *line = join_arguments(argc, argv);
  if (line) cs_make_utf8(line); /* it is recorded */
  cli_command_line = line ? line : "convsched";
  cli_options options;
  cli_parse(command, argc - 1, argv + 1, &options);
  if (parse_only) {
    free(line);
    return 0;
  }
  cli_show_progress(&options);
  cs_status status = cli_check_files(&options);
  if (status == CS_OK) status = command->run(&options);
  cli_stay_while_ending();
  cli_end_progress();
  code = cli_exit_code(status);
  if (status != CS_OK) fprintf(stderr, "convsched: %s\n", cs_status_message(status));
  cs_status_free(status);
  free(line);
  return code;
}
