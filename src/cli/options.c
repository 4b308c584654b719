/* One argp parser for all commands; each takes the options its bits name. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum {
  KEY_BATCH = 0x100,
  KEY_DTYPE,
  KEY_POLICY,
  KEY_DEVICE,
  KEY_WEIGHTS,
  KEY_SEED,
  KEY_WORKSPACE,
  KEY_MEMORY,
  KEY_STREAMS,
  KEY_ALGORITHM,
  KEY_BAN,
  KEY_FROZEN,
  KEY_REFRESH,
  KEY_DETERMINISTIC,
  KEY_CACHE,
  KEY_PLAN,
  KEY_INPUT,
  KEY_OUTPUT,
  KEY_DUMP,
  KEY_SAMPLES,
  KEY_VERIFY,
  KEY_JSON,
  KEY_QUIET,
  KEY_VERBOSE,
  KEY_CORUN,
  KEY_COUNTERS,
  KEY_NO_COUNTERS,
  KEY_DEPTH,
  KEY_NODE,
  KEY_TABLE,
  KEY_FORMAT,
  KEY_CANDIDATES,
  KEY_PROFILE,
  KEY_PAPER,
};

typedef struct option_entry {
  struct argp_option option;
  int needs; /* any of these CLI_* bits; 0: every command */
} option_entry;

static const option_entry entries[] = {
    {{"batch", KEY_BATCH, "N[,N…]", 0, "Batch sizes (default 1)", 1}, CLI_PLANNING | CLI_REPORTING},
    {{"dtype", KEY_DTYPE, "f32|tf32|f16|bf16[,…]", 0, "Precisions (default f32)", 1},
     CLI_PLANNING | CLI_REPORTING},
    {{"policy", KEY_POLICY, "NAME|all", 0, "Scheduling policy (default streams; of profile: all)",
      1},
     CLI_PLANNING},
    {{"device", KEY_DEVICE, "auto|cpu|cuda:N", 0, "Device (default auto)", 1},
     CLI_PLANNING | CLI_DEVICE | CLI_REPORTING},
    {{"streams", KEY_STREAMS, "N", 0, "At most N streams (default: the device's)", 1},
     CLI_PLANNING},
    {{"workspace-limit", KEY_WORKSPACE, "BYTES", 0,
      "Most workspace in use at once, k/M/G allowed (default 256M); holds while profiling too", 1},
     CLI_PLANNING | CLI_REPORTING},
    {{"memory-limit", KEY_MEMORY, "BYTES", 0, "Most bytes of the arena (default: no limit)", 1},
     CLI_PLANNING},
    {{"algorithm", KEY_ALGORITHM, "NODE=ID", 0, "Pin a node to a candidate", 1}, CLI_PLANNING},
    {{"ban", KEY_BAN, "ID", 0, "Never use a candidate", 1}, CLI_PLANNING},
    {{"deterministic", KEY_DETERMINISTIC, NULL, 0,
      "Only candidates that give the same bits every time", 1},
     CLI_PLANNING | CLI_REPORTING},
    {{"frozen", KEY_FROZEN, NULL, 0, "A missing measurement is an error", 1}, CLI_PLANNING},
    {{"refresh", KEY_REFRESH, NULL, 0, "Measure again what is cached", 1}, CLI_PLANNING},
    {{"cache", KEY_CACHE, "FOLDER", 0,
      "Profile database (default $XDG_CACHE_HOME/convsched/v1 or ~/.cache/convsched/v1)", 1},
     CLI_PLANNING | CLI_REPORTING},
    {{"corun", KEY_CORUN, NULL, 0, "Measure sets of independent convolutions together, too", 2},
     CLI_PROFILING},
    {{"counters", KEY_COUNTERS, NULL, 0,
      "Read performance counters of candidates worth running beside others (default with --corun)",
      2},
     CLI_PROFILING},
    {{"no-counters", KEY_NO_COUNTERS, NULL, 0, "Read none", 2}, CLI_PROFILING},
    {{"depth", KEY_DEPTH, "default|full", 0,
      "full: every engine and knob, not only what the libraries recommend", 2},
     CLI_PROFILING},
    {{"node", KEY_NODE, "NAME", 0,
      "Only this node (may be given again; of report: * and ? allowed)", 2},
     CLI_PROFILING | CLI_REPORTING},
    {{"table", KEY_TABLE, "resources|workspace|complementary", 0, "Which table", 2}, CLI_REPORTING},
    {{"format", KEY_FORMAT, "text|md|csv", 0, "How it is written (default text)", 2},
     CLI_REPORTING},
    {{"candidates", KEY_CANDIDATES, "fastest|pareto|all", 0,
      "Of resources: the fastest of each node (default), those worth running beside others, or all",
      2},
     CLI_REPORTING},
    {{"profile", KEY_PROFILE, "FILE", 0, "Read this profile; no device is needed", 2},
     CLI_REPORTING},
    {{"paper", KEY_PAPER, NULL, 0, "Show figures of Pourghassemi et al., SPAA 2020, too", 2},
     CLI_REPORTING},
    {{"plan", KEY_PLAN, "FILE", 0, "Run this plan instead of planning", 2}, CLI_RUNNING},
    {{"weights", KEY_WEIGHTS, "FILE", 0,
      "safetensors (default: the graph's own, else generated from the seed)", 2},
     CLI_RUNNING},
    {{"input", KEY_INPUT, "FILE", 0, "Input, .npy or raw f32 (default: generated from the seed)",
      2},
     CLI_RUNNING},
    {{"output", KEY_OUTPUT, "FILE", 0, "Write the result, .npy or raw f32", 2},
     CLI_RUNNING | CLI_OUTPUT},
    {{"dump", KEY_DUMP, "NODE[=FILE]", 0, "Write a node's output as .npy (default NODE.npy)", 2},
     CLI_RUNNING},
    {{"samples", KEY_SAMPLES, "N", 0, "Latency samples of each policy (default 50)", 2},
     CLI_RUNNING},
    {{"verify", KEY_VERIFY, "none|sample|full", 0,
      "Check numbers: a sample of nodes and the whole plan (default), or every node and end to end",
      2},
     CLI_RUNNING},
    {{"seed", KEY_SEED, "N", 0, "Seed of generated weights and inputs (default 0)", 2},
     CLI_PLANNING | CLI_SEED},
    {{"json", KEY_JSON, "FILE", 0, "Write the result as JSON (- for standard output)", 3},
     CLI_JSON},
    {{"quiet", KEY_QUIET, NULL, 0, "Warnings and errors only on stderr", 3}, 0},
    {{"verbose", KEY_VERBOSE, NULL, 0, "Say more on stderr", 3}, 0},
};
#define N_ENTRIES (sizeof entries / sizeof entries[0])

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
  if (end == text || *end || errno || value < least || value > most) {
    argp_error(state, "--%s \"%s\": wanted a whole number from %lld%s", option, text,
               (long long)least, least == 0 ? "" : " on");
  }
  return value;
}

static int64_t parse_bytes(struct argp_state *state, const char *option, const char *text) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  int shift = 0;
  if (*end == 'k' || *end == 'K') shift = 10;
  if (*end == 'M') shift = 20;
  if (*end == 'G') shift = 30;
  if (shift) end++;
  if (end == text || *end || errno || value < 0 || value > INT64_MAX >> shift) {
    argp_error(state, "--%s \"%s\": wanted bytes, as 1048576, 1024k, 64M or 2G", option, text);
  }
  return (int64_t)value << shift;
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

static void set_device(struct argp_state *state, cli_options *out, const char *text) {
  bool known = strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0;
  if (!known &&
      (strncmp(text, "cuda:", 5) != 0 || !text[5] || text[5 + strspn(text + 5, "0123456789")])) {
    argp_error(state, "--device \"%s\": wanted auto, cpu or cuda:N", text);
  }
  out->device = text;
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

/* The index of `text` among n names. */
static int parse_name(struct argp_state *state, const char *option, const char *text,
                      const char *const *names, int n) {
  char known[128] = "";
  for (int i = 0; i < n; i++) {
    if (strcmp(names[i], text) == 0) return i;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s",
             i == 0       ? ""
             : i == n - 1 ? " or "
                          : ", ",
             names[i]);
  }
  argp_error(state, "--%s \"%s\": wanted %s", option, text, known);
  return 0;
}

static error_t parse_report(int key, char *text, struct argp_state *state, cli_options *out) {
  static const char *const tables[] = {"resources", "workspace", "complementary"};
  static const char *const formats[] = {"text", "md", "csv"};
  static const char *const candidates[] = {"fastest", "pareto", "all"};
  switch (key) {
    case KEY_TABLE:
      out->table = parse_name(state, "table", text, tables, 3);
      return 0;
    case KEY_FORMAT:
      out->format = (cs_report_format)parse_name(state, "format", text, formats, 3);
      return 0;
    case KEY_CANDIDATES:
      out->candidates = (cs_report_candidates)parse_name(state, "candidates", text, candidates, 3);
      return 0;
    case KEY_PROFILE:
      out->profile = text;
      return 0;
    case KEY_PAPER:
      out->paper = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
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
    case KEY_COUNTERS:
    case KEY_NO_COUNTERS:
      out->counters = key == KEY_COUNTERS;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse_file(int key, char *text, cli_options *out) {
  switch (key) {
    case KEY_WEIGHTS:
      out->weights = text;
      return 0;
    case KEY_INPUT:
      out->input = text;
      return 0;
    case KEY_OUTPUT:
      out->output = text;
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
    default:
      return parse_flag(key, out);
  }
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
  parse_state *parse = state->input;
  cli_options *out = parse->out;
  switch (key) {
    case KEY_BATCH:
      each_part(state, text, add_batch);
      return 0;
    case KEY_DTYPE:
      each_part(state, text, add_precision);
      return 0;
    case KEY_POLICY:
      set_policy(state, out, text);
      return 0;
    case KEY_DEVICE:
      set_device(state, out, text);
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
    case KEY_SAMPLES:
      out->samples = (int)parse_integer(state, "samples", text, 1, 1000000);
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
    case KEY_DUMP:
      add_item(state, &out->dumps, text);
      return 0;
    case KEY_NODE:
      add_item(state, &out->nodes, text);
      return 0;
    case KEY_DEPTH:
      set_depth(state, out, text);
      return 0;
    case ARGP_KEY_ARG:
      if (out->models.n == parse->command->max_models) {
        argp_error(state, "unexpected argument \"%s\"", text);
      }
      add_item(state, &out->models, text);
      return 0;
    case ARGP_KEY_END:
      if (out->models.n < parse->command->min_models) argp_error(state, "no model given");
      return 0;
    case KEY_TABLE:
    case KEY_FORMAT:
    case KEY_CANDIDATES:
    case KEY_PROFILE:
    case KEY_PAPER:
      return parse_report(key, text, state, out);
    default:
      return parse_file(key, text, out);
  }
}

static void set_defaults(cli_options *out) {
  if (out->n_batches == 0) out->batches[out->n_batches++] = 1;
  if (out->n_precisions == 0) out->precisions[out->n_precisions++] = CS_PRECISION_F32;
}

void cli_parse(const cli_command *command, int argc, char **argv, cli_options *out) {
  *out = (cli_options){.policy = NULL,
                       .device = "auto",
                       .samples = 50,
                       .workspace_limit = INT64_C(256) << 20,
                       .counters = -1,
                       .verify = CS_VERIFY_SAMPLE,
                       .table = -1};
  struct argp_option taken[N_ENTRIES + 1] = {{0}};
  int n = 0;
  for (size_t i = 0; i < N_ENTRIES; i++) {
    if (entries[i].needs == 0 || (entries[i].needs & command->options))
      taken[n++] = entries[i].option;
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
  argp_parse(&argp, argc, argv, 0, NULL, &state);
  set_defaults(out);
}
