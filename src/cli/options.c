/* One argp parser for all commands; each takes the options its bits name. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/help.h"
#include "cli/options.h"

typedef struct parse_state {
  const cli_command *command;
  cli_options *out;
} parse_state;

/* ---- Values; argp_error ends the program with status 2 ---- */

static int64_t parse_integer(struct argp_state *state, const char *option, const char *text,
                             int64_t least, int64_t most) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end != text && !*end && value > most) {
    argp_error(state, "--%s \"%s\": wanted a whole number from %lld to %lld", option, text,
               (long long)least, (long long)most);
  } else if (end == text || *end || errno || value < least) {
    argp_error(state, "--%s \"%s\": wanted a whole number from %lld%s", option, text,
               (long long)least, least == 0 ? "" : " on");
  }
  return value;
}

static int parse_requests(struct argp_state *state, const char *option, const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (end == text || *end || errno || value < 1 || value > CS_PIPELINE_MOST_SLOTS) {
    argp_error(state, "--%s \"%s\": wanted requests in flight, 1 to %d", option, text,
               CS_PIPELINE_MOST_SLOTS);
  }
  return (int)value;
}

static int parse_runs(struct argp_state *state, const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (end == text || *end || errno || value < 1 || value > CS_TRACE_MOST_RUNS) {
    argp_error(state, "--runs \"%s\": wanted traced runs, 1 to %d", text, CS_TRACE_MOST_RUNS);
  }
  return (int)value;
}

static double parse_seconds(struct argp_state *state, const char *option, const char *text) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (end == text || *end || errno || !(value >= 0 && value <= 1e6)) {
    argp_error(state, "--%s \"%s\": wanted seconds from 0 on", option, text);
  }
  return value;
}

static double parse_percent(struct argp_state *state, const char *option, const char *text) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (*end == '%') end++;
  if (end == text || *end || errno || !(value >= 0 && value <= 1e6)) {
    argp_error(state, "--%s \"%s\": wanted percent from 0 on, as 3 or 2.5%%", option, text);
  }
  return value;
}

static int64_t parse_bytes(struct argp_state *state, const char *option, const char *text) {
  int64_t bytes = 0;
  if (!cs_parse_bytes(text, &bytes)) {
    argp_error(state, "--%s \"%s\": wanted bytes, as 1048576, 1024k, 64M or 2G", option, text);
  }
  return bytes;
}

static void add_item(struct argp_state *state, cli_list *list, const char *item) {
  if (list->n == CLI_MAX_LIST) argp_error(state, "more than %d of one option", CLI_MAX_LIST);
  list->items[list->n++] = item;
}

/* Cuts `text` at commas (in place: argv is ours) and hands each part on. */
static void each_part(struct argp_state *state, char *text,
                      void (*part)(struct argp_state *, cli_options *, const char *)) {
  cli_options *out = ((parse_state *)state->input)->out;
  for (char *start = text;;) {
    char *comma = strchr(start, ',');
    if (comma) *comma = '\0';
    part(state, out, start);
    if (!comma) return;
    start = comma + 1;
  }
}

static void add_batch(struct argp_state *state, cli_options *out, const char *text) {
  if (out->n_batches == CLI_MAX_LIST) argp_error(state, "more than %d batches", CLI_MAX_LIST);
  out->batches[out->n_batches++] = parse_integer(state, "batch", text, 1, INT64_MAX);
}

static void add_precision(struct argp_state *state, cli_options *out, const char *text) {
  cs_precision precision = CS_PRECISION_F32;
  cs_status st = cs_precision_parse(text, &precision);
  if (st != CS_OK) argp_error(state, "--dtype: %s", cs_status_message(st));
  if (out->n_precisions == CLI_MAX_LIST) argp_error(state, "more than %d dtypes", CLI_MAX_LIST);
  out->precisions[out->n_precisions++] = precision;
}

static void set_policy(struct argp_state *state, cli_options *out, const char *text) {
  int count;
  const char *const *names = cs_policy_names(&count);
  out->policy = text;
  if (strcmp(text, "all") == 0) return;
  char known[256] = "";
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], text) == 0) return;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s, ", names[i]);
  }
  argp_error(state, "--policy \"%s\": wanted %sor all", text, known);
}

static void add_policy(struct argp_state *state, cli_options *out, const char *text) {
  set_policy(state, out, text);
  add_item(state, &out->policies, text);
}

static void set_device(struct argp_state *state, cli_options *out, const char *text) {
  bool known = strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0;
  bool file = strncmp(text, "sim:", 4) == 0 && text[4];
  if (!known && !file &&
      (strncmp(text, "cuda:", 5) != 0 || !text[5] || text[5 + strspn(text + 5, "0123456789")])) {
    argp_error(state, "--device \"%s\": wanted auto, cpu, cuda:N or sim:FILE", text);
  }
  out->device = text;
}

/* What the device can have is said once it is open. */
static void set_partition(struct argp_state *state, cli_options *out, const char *text) {
  bool good = strcmp(text, "none") == 0;
  int parts = 0;
  for (const char *at = text; !good && *at >= '1' && *at <= '9'; at++) {
    at += strspn(at, "0123456789");
    parts++;
    good = *at == '\0' && parts > 1;
    if (*at != ',') break;
  }
  if (!good) argp_error(state, "--partition \"%s\": wanted none or SMs, as 32,100", text);
  out->partition = text;
}

static void set_micro_batches(struct argp_state *state, cli_options *out, const char *text) {
  char *end;
  errno = 0;
  long parts = strtol(text, &end, 10);
  bool number = text[0] >= '0' && text[0] <= '9' && !*end && !errno;
  if (strcmp(text, "auto") == 0) {
    out->micro_batches = 0;
  } else if (strcmp(text, "none") == 0) {
    out->micro_batches = 1;
  } else if (number && parts >= 2 && parts <= 1024) {
    out->micro_batches = (int)parts;
  } else {
    argp_error(state, "--micro-batches \"%s\": wanted auto, none or a number of parts, 2 to 1024",
               text);
  }
}

static void set_verify(struct argp_state *state, cli_options *out, const char *text) {
  if (strcmp(text, "none") == 0) {
    out->verify = -1;
  } else if (strcmp(text, "sample") == 0) {
    out->verify = CS_VERIFY_SAMPLE;
  } else if (strcmp(text, "full") == 0) {
    out->verify = CS_VERIFY_FULL;
  } else {
    argp_error(state, "--verify \"%s\": wanted none, sample or full", text);
  }
}

static void set_depth(struct argp_state *state, cli_options *out, const char *text) {
  out->full = strcmp(text, "full") == 0;
  if (!out->full && strcmp(text, "default") != 0) {
    argp_error(state, "--depth \"%s\": wanted default or full", text);
  }
}

static error_t parse_flag(int key, cli_options *out) {
  switch (key) {
    case KEY_FROZEN:
      out->frozen = true;
      return 0;
    case KEY_REFRESH:
      out->refresh = true;
      return 0;
    case KEY_DETERMINISTIC:
      out->deterministic = true;
      return 0;
    case KEY_QUIET:
      out->quiet = true;
      return 0;
    case KEY_VERBOSE:
      out->verbose = true;
      return 0;
    case KEY_CORUN:
      out->corun = true;
      return 0;
    case KEY_RESUME:
      out->resume = true;
      return 0;
    case KEY_DIFF:
      out->diff = true;
      return 0;
    case KEY_OVERLAP:
      out->overlap = true;
      return 0;
    case KEY_CHECK:
      out->check = true;
      return 0;
    case KEY_KERNELS:
      out->kernels = true;
      return 0;
    case KEY_DOT:
      out->dot = true;
      return 0;
    case KEY_EXPLAIN:
      out->explain = true;
      return 0;
    case KEY_TRADEOFF:
      out->tradeoff = true;
      return 0;
    case KEY_DRY_RUN:
      out->dry_run = true;
      return 0;
    case KEY_RETRY:
      out->retry = true;
      return 0;
    case KEY_COUNTERS:
    case KEY_NO_COUNTERS:
      out->counters = key == KEY_COUNTERS;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* The command's own; that of a NULL name: none. */
static const cli_option_entry *entry_of(const cli_command *command, int key) {
  const cli_option_entry *entry = cli_option_entries;
  while (entry->option.name && (entry->option.key != key || !cli_takes(command, entry))) entry++;
  return entry;
}

static void check_file_name(struct argp_state *state, int key, const char *text) {
  if (!text || text[0]) return;
  argp_error(state, "--%s \"\": wanted a name",
             entry_of(((parse_state *)state->input)->command, key)->option.name);
}

static error_t parse_file(int key, char *text, cli_options *out) {
  switch (key) {
    case KEY_WEIGHTS:
      out->weights = text;
      return 0;
    case 'o':
      out->output = text;
      return 0;
    case KEY_LATENTS:
      out->latents = text;
      return 0;
    case KEY_FORCE:
      out->force = true;
      return 0;
    case KEY_TIME:
      out->time = true;
      return 0;
    case KEY_JSON:
      out->json = text;
      return 0;
    case KEY_PLAN:
      out->plan = text;
      return 0;
    case KEY_CACHE:
      out->cache_dir = text;
      return 0;
    case KEY_IMPORT:
      out->import_path = text;
      return 0;
    case KEY_EXPORT:
      out->export_path = text;
      return 0;
    case KEY_ONNX:
      out->onnx = text;
      return 0;
    case KEY_FROM:
      out->from = text;
      return 0;
    case KEY_PAGE:
      out->page = text;
      return 0;
    case KEY_DEVICES:
      out->devices = text;
      return 0;
    case KEY_SIZES:
      out->sizes = text;
      return 0;
    case KEY_LAYERS:
      out->layers = text;
      return 0;
    case KEY_RUNGS:
      out->rungs = text;
      return 0;
    default:
      return parse_flag(key, out);
  }
}

/* Of `report`: what only a page takes. */
static bool is_planning(const cli_command *command, int key, const cli_option_entry *entry) {
  bool of_graph = key == KEY_BATCH || key == KEY_DTYPE || key == KEY_FORMAT || key == KEY_DOT;
  if (!entry->option.name || of_graph || key == KEY_KERNELS) return false;
  if (!(command->options & CLI_REPORTING)) return entry->needs & (CLI_PLANNING | CLI_INSPECTING);
  bool for_both = entry->needs & CLI_REPORTING;
  return ((entry->needs & CLI_PLANNING) && !for_both) || key == KEY_POLICY || key == KEY_SAMPLES ||
         key == KEY_PEERS;
}

/* argp would break the lines of what stands behind the options, examples too. */
static void print_help(struct argp_state *state, const cli_command *command) {
  cs_strbuf notes = {0};
  cli_add_notes(command->help, &notes);
  argp_state_help(state, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG);
  bool failed = notes.failed || printf("\n%s", notes.data ? notes.data : "") < 0;
  cs_strbuf_free(&notes);
  exit(failed || fflush(stdout) != 0 ? 4 : 0);
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
  parse_state *parse = state->input;
  cli_options *out = parse->out;
  const cli_option_entry *entry = entry_of(parse->command, key);
  if (is_planning(parse->command, key, entry) && !out->planning) out->planning = entry->option.name;
  switch (key) {
    case KEY_BATCH:
      each_part(state, text, add_batch);
      return 0;
    case KEY_DTYPE:
      each_part(state, text, add_precision);
      return 0;
    case KEY_POLICY:
      if (parse->command->options & CLI_REPORTING) {
        each_part(state, text, add_policy);
      } else {
        set_policy(state, out, text);
      }
      return 0;
    case KEY_DEVICE:
      set_device(state, out, text);
      return 0;
    case KEY_PARTITION:
      set_partition(state, out, text);
      return 0;
    case KEY_MICRO_BATCHES:
      set_micro_batches(state, out, text);
      return 0;
    case KEY_VERIFY:
      set_verify(state, out, text);
      return 0;
    case KEY_SEED:
      out->seed = (uint64_t)parse_integer(state, "seed", text, 0, INT64_MAX);
      return 0;
    case KEY_STREAMS:
      out->streams = (int)parse_integer(state, "streams", text, 1, 1024);
      return 0;
    case KEY_SEARCH_SECONDS:
      out->search_seconds = parse_seconds(state, "search-seconds", text);
      return 0;
    case KEY_TIME_LIMIT:
      out->time_limit = parse_seconds(state, "time-limit", text);
      return 0;
    case KEY_NAIVE_SECONDS:
      out->naive_seconds = parse_seconds(state, "naive-seconds", text);
      return 0;
    case KEY_ONLY:
      add_item(state, &out->only, text);
      return 0;
    case KEY_SEARCH_STEPS:
      out->search_steps = (int)parse_integer(state, "search-steps", text, 1, INT_MAX);
      return 0;
    case KEY_ABLATE:
      out->ablate = true;
      return 0;
    case KEY_PIPELINE:
      out->pipeline = parse_requests(state, "pipeline", text);
      return 0;
    case KEY_IN_FLIGHT:
      out->in_flight = parse_requests(state, "in-flight", text);
      return 0;
    case KEY_NO_GRAPH:
      out->no_graph = true;
      return 0;
    case KEY_COUNT:
      out->count = parse_integer(state, "count", text, 1, INT64_C(1) << 40);
      return 0;
    case KEY_COLUMNS:
      out->columns = parse_integer(state, "columns", text, 1, INT64_C(1) << 31);
      return 0;
    case KEY_SAMPLES:
      out->samples = (int)parse_integer(state, "samples", text, 1, 1000000);
      return 0;
    case KEY_RUNS:
      out->runs = parse_runs(state, text);
      return 0;
    case KEY_MAX_REGRESSION:
      out->max_regression = parse_percent(state, "max-regression", text);
      return 0;
    case KEY_OLDER_THAN:
      out->older_than = (int)parse_integer(state, "older-than", text, 1, 36500);
      return 0;
    case KEY_WORKSPACE:
      out->workspace_limit = parse_bytes(state, "workspace-limit", text);
      return 0;
    case KEY_MEMORY:
      out->memory_limit = parse_bytes(state, "memory-limit", text);
      return 0;
    case KEY_ALGORITHM:
      if (!strchr(text, '=')) argp_error(state, "--algorithm \"%s\": wanted NODE=ID", text);
      add_item(state, &out->pins, text);
      return 0;
    case KEY_BAN:
      add_item(state, &out->bans, text);
      return 0;
    case KEY_ALLOW:
      add_item(state, &out->allows, text);
      return 0;
    case KEY_DUMP:
      add_item(state, &out->dumps, text);
      return 0;
    case KEY_NODE:
      add_item(state, &out->nodes, text);
      return 0;
    case KEY_INPUT:
      check_file_name(state, key, text);
      add_item(state, &out->inputs, text);
      return 0;
    case KEY_RESULT:
      check_file_name(state, key, text);
      add_item(state, &out->outputs, text);
      return 0;
    case KEY_DEPTH:
      set_depth(state, out, text);
      return 0;
    case KEY_HELP:
      print_help(state, parse->command);
      return 0;
    case KEY_USAGE:
      argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
      return 0;
    case ARGP_KEY_ARG:
      if (out->models.n == parse->command->max_models) {
        argp_error(state, "unexpected argument \"%s\"", text);
      }
      add_item(state, &out->models, text);
      return 0;
    case ARGP_KEY_END:
      if (out->models.n < parse->command->min_models) {
        argp_error(state, parse->command->min_models == 1 ? "no model given" : "wanted two files");
      }
      return 0;
    case KEY_TABLE:
    case KEY_FORMAT:
    case KEY_CANDIDATES:
    case KEY_PROFILE:
    case KEY_PAPER:
    case KEY_FIGURE:
    case KEY_PEERS:
      return cli_parse_report_option(parse->command, key, text, state, out);
    default:
      check_file_name(state, key, text);
      return parse_file(key, text, out);
  }
}

static void set_defaults(cli_options *out) {
  out->batch_given = out->n_batches > 0;
  if (out->n_batches == 0) out->batches[out->n_batches++] = 1;
  if (out->n_precisions == 0) out->precisions[out->n_precisions++] = CS_PRECISION_F32;
}

bool cli_takes(const cli_command *command, const cli_option_entry *entry) {
  if (entry->needs & CLI_BUT(command->options)) return false;
  return entry->needs == 0 || (entry->needs & command->options);
}

void cli_parse(const cli_command *command, int argc, char **argv, cli_options *out) {
  *out = (cli_options){.policy = NULL,
                       .device = "auto",
                       .samples = 50,
                       .runs = 5,
                       .search_seconds = -1,
                       .max_regression = -1,
                       .time_limit = -1,
                       .naive_seconds = 10,
                       .workspace_limit = INT64_C(256) << 20,
                       .counters = -1,
                       .verify = CS_VERIFY_SAMPLE,
                       .table = -1};
  struct argp_option taken[CLI_MAX_ENTRIES + 1] = {{0}};
  int n = 0;
  for (const cli_option_entry *entry = cli_option_entries; entry->option.name; entry++) {
    if (cli_takes(command, entry) && n < CLI_MAX_ENTRIES) taken[n++] = entry->option;
  }
  struct argp argp = {.options = taken,
                      .parser = parse_option,
                      .args_doc = command->arguments,
                      .doc = command->help};
  parse_state state = {command, out};
  char name[64];
  snprintf(name, sizeof name, "convsched %s", command->name);
  argv[0] = name;
  argp_err_exit_status = 2;
  argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &state);
  set_defaults(out);
}
