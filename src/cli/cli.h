/* The command: what its files share. It uses the public API, argp and jansson only. */
#ifndef CONVSCHED_CLI_CLI_H_
#define CONVSCHED_CLI_CLI_H_

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "convsched/convsched.h"

#define CLI_MAX_LIST 64
#define CLI_DEFAULT_POLICY "streams"

typedef struct cli_list {
  const char *items[CLI_MAX_LIST];
  int n;
} cli_list;

/* Everything the options of any command can say. Strings are argv's. */
typedef struct cli_options {
  cli_list models;
  int64_t batches[CLI_MAX_LIST];
  int n_batches;
  bool batch_given;
  cs_precision precisions[CLI_MAX_LIST];
  int n_precisions;
  const char *policy; /* "all" or a name; NULL: not given */
  cli_list policies;  /* of report: names, or "all" */
  const char *device;
  const char *weights, *output /* but of run */, *json, *plan, *cache_dir, *onnx;
  cli_list pins, bans, allows, dumps, nodes;
  cli_list inputs, outputs; /* of run: "FILE" or "NAME=FILE" */
  uint64_t seed;
  int64_t workspace_limit, memory_limit;
  int streams, samples, search_steps;
  int runs;              /* of trace: traced ones */
  int pipeline;          /* requests in flight; 0: not given */
  int in_flight;         /* of them, that are planned for; 0: not given */
  double search_seconds; /* -1: not given */
  bool ablate, overlap, no_graph;
  const char *partition; /* NULL: not given */
  int micro_batches;     /* 0: auto; 1: none; more: parts */
  bool frozen, refresh, deterministic, quiet, verbose, full, corun;
  int counters; /* -1 not said, else 0 or 1 */
  int verify;   /* -1 none, else cs_verify_level */
  int table;    /* -1 not said, else cs_report_kind */
  cs_report_format format;
  bool format_given;
  cs_report_candidates candidates;
  const char *profile;
  const char *figure, *peers; /* of a page */
  const char *latents;        /* of generate; so are these: */
  int64_t count, columns;     /* 0: not given */
  bool force, time;
  bool paper;
  const char *import_path, *export_path;
  int older_than; /* days; 0: not said */
  bool resume;
  bool diff, explain, tradeoff; /* of plan */
  bool check;                   /* of import */
  bool kernels, dot;            /* of inspect */
  double max_regression;        /* of compare, percent; -1: not given */
  /* Of experiment. */
  cli_list only; /* "DIMENSION=VALUE[,…]" */
  const char *from, *page;
  double time_limit; /* seconds; -1: not given */
  /* Of bench, as given; NULL: not given. */
  const char *devices, *sizes, *layers, *rungs;
  double naive_seconds;
  bool dry_run, retry;
  const char *planning; /* the first option that only planning (of report: a page) takes that was
                           given; NULL: none */
} cli_options;

/* Which options a command takes (bits), for one parser that serves all. */
enum {
  CLI_PLANNING = 1 << 0, /* device, batch, dtype, policy, limits, pins, cache, … */
  CLI_RUNNING = 1 << 1,  /* weights, input, output, dump, samples, verify */
  CLI_JSON = 1 << 2,
  CLI_SEED = 1 << 3,
  CLI_OUTPUT = 1 << 4,
  CLI_DEVICE = 1 << 5,
  CLI_PROFILING = 1 << 6, /* depth, counters, co-runs, nodes */
  CLI_CACHE = 1 << 8,     /* the folder of measurements, what is old */
  CLI_PLANS = 1 << 9,     /* what is told of plans */
  CLI_IMPORTING = 1 << 10,
  CLI_INSPECTING = 1 << 11,    /* --kernels, a plan file, format */
  CLI_EXPORTING = 1 << 12,     /* --onnx, weights */
  CLI_COMPARING = 1 << 13,     /* --max-regression, format */
  CLI_EXPERIMENTING = 1 << 14, /* device, cache, output, page, what of it is to be done */
  CLI_TRACING = 1 << 15,       /* --output, --runs, --samples, a plan file, weights */
  CLI_GENERATING = 1 << 20,    /* count, latents, pictures */
  CLI_BENCHING = 1 << 21,      /* devices, sizes, layers, rungs, output */
  CLI_REPORTING = 1 << 7, /* table, format, profile, candidates, nodes; device, batch, dtype, … */
};

typedef struct cli_command {
  const char *name;
  const char *arguments; /* "MODEL.json…" */
  const char *summary;   /* one line */
  const char *help;      /* longer, with an example */
  int options;           /* CLI_* bits */
  int min_models, max_models;
  cs_status (*run)(const cli_options *options);
  /* Asks whether it was interrupted, and keeps what it has measured; any other command ends at
   * once.
   */
  bool asks;
} cli_command;

extern const cli_command cli_run, cli_profile, cli_plan, cli_inspect, cli_doctor, cli_cache,
    cli_generate_weights, cli_report, cli_import, cli_export, cli_compare, cli_experiment,
    cli_generate, cli_trace, cli_bench;

/* All of them, in the order in which they are told. */
const cli_command *const *cli_commands(int *n);
/* NULL: there is none of that name. */
const cli_command *cli_find_command(const char *name);

/* Parses argv[1…] of a command; exits with 2 after a message when the use is wrong. */
void cli_parse(const cli_command *command, int argc, char **argv, cli_options *out);

/* The command line as given, for records. */
extern const char *cli_command_line;
extern double cli_started; /* seconds, monotonic, when the process started */
double cli_now(void);

/* Logger that writes to stderr, honouring --quiet and --verbose; progress.c. */
const cs_logger *cli_logger(const cli_options *options);
/* Shows what this thread's calls of the library report, on a terminal as a line that is redrawn,
 * with --verbose elsewhere as a line a stage, with --quiet not at all. */
void cli_show_progress(const cli_options *options);
/* A step of the command's own: `done` of `total` units. Not while something is timed. */
void cli_tell_progress(const char *stage, const char *unit, int64_t done, int64_t total);
/* Erases the line, before anything else is written. */
void cli_end_progress(void);
/* Whether the terminal shows a line of progress now. */
bool cli_progress_is_shown(void);

/* Ctrl-C, SIGTERM and SIGHUP end the process at once or, of a command that asks, within
 * CLI_GRACE_S: by then it has kept what it measured, or it is ended. A second one is not waited
 * for. */
#define CLI_GRACE_S 0.25
void cli_catch_interrupts(bool asks);
/* As a shell tells a command that a signal ended, where one did. */
int cli_exit_code(cs_status status);
/* True once Ctrl-C was pressed or SIGTERM or SIGHUP came (of commands that ask). */
bool cli_interrupted(void *unused);
cs_status cli_check_interrupt(void) CS_MUST_USE;

/* From now on a mapped file (weights, an ONNX model) that another process cuts off, or whose disk
 * fails, while it is read ends the process with a message that names it and exit code 4. */
void cli_tell_cut_off_files(void);

/* Ends the process while other threads go on, which may hold any lock: removes the temporary files
 * that are being written and says `message`, the last that is said. For signal handlers too. */
_Noreturn void cli_end_at_once(const char *message, int code);
/* Before the main thread tells its own end: does not come back where the above is under way. */
void cli_stay_while_ending(void);

/* A graph's JSON, or an ONNX file (by the extension .onnx), which is imported in memory. */
cs_status cli_load_graph(const char *path, cs_graph **out) CS_MUST_USE;

/* --device sim:FILE. */
bool cli_device_is_simulated(const cli_options *options);
/* USAGE where --search-seconds wants schedules measured and only a recorded profile is there. */
cs_status cli_check_search(const cli_options *options) CS_MUST_USE;
/* cs_device_info_json and cs_session_info_json, parsed; the caller releases *out. */
cs_status cli_device_json(const cs_device *device, json_t **out) CS_MUST_USE;
cs_status cli_session_json(const cs_session *session, json_t **out) CS_MUST_USE;
/* The name of an open device's backend: "cpu", "cuda", … */
cs_status cli_device_backend(const cs_device *device, char *out, size_t size) CS_MUST_USE;

/* Fills session options from the command's. */
void cli_session_options(const cli_options *options, int64_t batch, cs_precision precision,
                         const char *policy, cs_session_options *out);

/* A plan says which candidates run on which streams: USAGE where --plan is given with options that
 * choose them. */
cs_status cli_check_plan_options(const cli_options *options) CS_MUST_USE;
/* For what is of one plan: not of all policies, several batches or dtypes. */
cs_status cli_check_one_plan(const cli_options *options) CS_MUST_USE;
/* Opens model and device, plans as the options say, and calls `tell`. */
typedef cs_status (*cli_tell_fn)(const cli_options *options, const cs_session *session);
cs_status cli_tell_plan(const cli_options *options, cli_tell_fn tell) CS_MUST_USE;
/* The policy that a plan's file names; NULL where it cannot be read as one (which loading it then
 * says). free() releases. */
char *cli_plan_policy(const char *path);

/* IO where the file that --json names could not be written in the end ("-" and NULL: nothing to
 * check). Found out before anything is measured; leaves an existing file as it is. */
cs_status cli_check_writable(const char *path) CS_MUST_USE;

/* USAGE where a file that is written (--json, --output, --onnx) is one that is read, or the other.
 */
cs_status cli_check_files(const cli_options *options) CS_MUST_USE;
/* The same of another file that `option` writes; USAGE also where it is that of --json. */
cs_status cli_check_written_file(const cli_options *options, const char *option,
                                 const char *path) CS_MUST_USE;
/* USAGE where two options write one file. */
cs_status cli_check_other_file(const char *option, const char *path, const char *other_option,
                               const char *other) CS_MUST_USE;
/* USAGE where the file that `option` writes is the one read. NULL: not given. */
cs_status cli_check_kept_file(const char *option, const char *written,
                              const char *read) CS_MUST_USE;

/* Appends text and a newline to stdout; IO error when it cannot be written. */
cs_status cli_print(const char *text) CS_MUST_USE;

/* The same to a file that is replaced; "-" and NULL are stdout. */
cs_status cli_write(const char *path, const char *text) CS_MUST_USE;
/* Says on stderr that a page, figure or table is there; nothing where it went to stdout. */
void cli_tell_written(const cli_options *options, const char *path);
struct cs_strbuf;
/* cli_write of a buffer, which is released. */
cs_status cli_write_buffer(const char *path, struct cs_strbuf *text) CS_MUST_USE;

/* "12.3 MiB". */
void cli_bytes_text(char *out, size_t size, double bytes);
/* Sentences for a person on `bounds` of cs_session_info_json (nothing for NULL), and on `memory` of
 * all of it. */
void cli_print_bounds(const json_t *bounds, struct cs_strbuf *text);
void cli_print_memory(const char *policy, const json_t *info, struct cs_strbuf *text);
/* The same of `split`; nothing where the device is not split. */
void cli_print_split(const char *policy, const json_t *split, struct cs_strbuf *text);
/* The same of `micro_batches`; nothing where no node is divided. */
void cli_print_micro_batches(const char *policy, const json_t *micro, struct cs_strbuf *text);

/* Takes a case's record over. Where it is one of several it is written at once, so that whatever
 * ends the process later leaves it. */
cs_status cli_add_record(const cli_options *options, int n_cases, json_t *records,
                         json_t *record) CS_MUST_USE;
/* Writes what --json asks for, if it was given: one case as a document, several as JSON lines. At
 * last, once all were added. */
cs_status cli_write_records(const cli_options *options, int n_cases,
                            const json_t *records) CS_MUST_USE;

/* ---- report_page.c ---- */
/* `report` without --table: a page, or a figure of one. */
cs_status cli_report_page(const cli_options *options) CS_MUST_USE;
/* Prints a table as --format says, and writes what --json asks for (- : that alone). */
cs_status cli_write_report(const cli_options *options, const cs_report *report) CS_MUST_USE;

/* An error status (the library's constructor is not public). */
cs_status cli_error(cs_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3))) CS_MUST_USE;

#endif
