/* Inside of parsing options: their keys, their table, and those of `report`. */
#ifndef CONVSCHED_CLI_OPTIONS_H_
#define CONVSCHED_CLI_OPTIONS_H_

#include <argp.h>

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
  KEY_SEARCH_SECONDS,
  KEY_SEARCH_STEPS,
  KEY_ABLATE,
  KEY_OVERLAP,
  KEY_PIPELINE,
  KEY_IN_FLIGHT,
  KEY_NO_GRAPH,
  KEY_PARTITION,
  KEY_MICRO_BATCHES,
  KEY_ALGORITHM,
  KEY_BAN,
  KEY_ALLOW,
  KEY_FROZEN,
  KEY_REFRESH,
  KEY_DETERMINISTIC,
  KEY_CACHE,
  KEY_PLAN,
  KEY_INPUT,
  KEY_RESULT, /* --output of run */
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
  KEY_IMPORT,
  KEY_EXPORT,
  KEY_RESUME,
  KEY_OLDER_THAN,
  KEY_DIFF,
  KEY_EXPLAIN,
  KEY_TRADEOFF,
  KEY_CHECK,
  KEY_KERNELS,
  KEY_DOT,
  KEY_MAX_REGRESSION,
  KEY_ONNX,
  KEY_FIGURE,
  KEY_PEERS,
  KEY_ONLY,
  KEY_FROM,
  KEY_PAGE,
  KEY_TIME_LIMIT,
  KEY_DRY_RUN,
  KEY_RETRY,
  KEY_COUNT,
  KEY_LATENTS,
  KEY_COLUMNS,
  KEY_FORCE,
  KEY_TIME,
  KEY_RUNS,
  KEY_DEVICES,
  KEY_SIZES,
  KEY_LAYERS,
  KEY_RUNGS,
  KEY_NAIVE_SECONDS,
  KEY_HELP = '?',
  KEY_USAGE = 0x200,
};

typedef struct cli_option_entry {
  struct argp_option option;
  int64_t needs; /* any of these CLI_* bits; 0: every command; CLI_BUT of others */
} cli_option_entry;
/* But no command with any of these bits: it has an entry of its own. */
#define CLI_BUT(bits) ((int64_t)(bits) << 32)
#define CLI_MAX_ENTRIES 112
extern const cli_option_entry cli_option_entries[CLI_MAX_ENTRIES]; /* ended by a name of NULL */

/* Whether the command takes the option. */
bool cli_takes(const cli_command *command, const cli_option_entry *entry);

/* Ends the program with status 2 where the value is wrong. */
error_t cli_parse_report_option(const cli_command *command, int key, char *text,
                                struct argp_state *state, cli_options *out);

#endif
