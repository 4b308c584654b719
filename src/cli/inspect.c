/* `convsched inspect`: what a graph consists of, and the kernels of a plan. */
#include "cli/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The graph ---- */

static cs_status print_dot(const cs_graph *graph, int64_t batch, cs_precision precision) {
  char *text = NULL;
  cs_status st = cs_graph_dot(graph, batch, precision, &text);
  if (st == CS_OK) st = cli_print(text);
  cs_string_free(text);
  return st;
}

static cs_status inspect_graph(const cli_options *options) {
  cs_graph *graph = NULL;
  cs_report *layers = NULL;
  int64_t batch = options->batch_given ? options->batches[0] : 0;
  cs_precision precision = options->precisions[0];
  cs_status st = cli_check_one_plan(options);
  if (st == CS_OK) st = cli_check_writable(options->json);
  if (st == CS_OK) st = cli_load_graph(options->models.items[0], &graph);
  if (st == CS_OK && options->dot) {
    st = print_dot(graph, batch, precision);
  } else if (st == CS_OK) {
    st = cs_graph_layers(graph, batch, precision, &layers);
    if (st == CS_OK) st = cli_write_report(options, layers);
  }
  cs_report_destroy(layers);
  cs_graph_destroy(graph);
  return st;
}

/* ---- The kernels of a plan ---- */

static cs_status tell_kernels(const cli_options *options, const cs_session *session) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_kernels_json(session, &text));
  bool only_json = options->json && strcmp(options->json, "-") == 0;
  cs_status st = CS_OK;
  if (options->json) st = cli_write(options->json, text);
  if (st == CS_OK && !only_json) {
    st = options->format == CS_REPORT_JSON ? cli_print(text) : inspect_print_kernels(text);
  }
  cs_string_free(text);
  return st;
}

static cs_status inspect_kernels(const cli_options *options) {
  CS_RETURN_IF_ERROR(cli_check_one_plan(options));
  if (options->format != CS_REPORT_TEXT && options->format != CS_REPORT_JSON) {
    return cli_error(CS_CODE_USAGE, "inspect: --format wanted text or json");
  }
  CS_RETURN_IF_ERROR(cli_check_plan_options(options));
  return cli_tell_plan(options, tell_kernels);
}

static cs_status inspect_command(const cli_options *options) {
  if (options->kernels && options->dot) {
    return cli_error(CS_CODE_USAGE, "inspect: wanted --kernels or --dot, not both");
  }
  if (options->kernels) return inspect_kernels(options);
  if (options->planning) {
    return cli_error(CS_CODE_USAGE, "inspect: --%s goes with --kernels", options->planning);
  }
  if (options->dot && (options->json || options->format != CS_REPORT_TEXT)) {
    return cli_error(CS_CODE_USAGE, "inspect: --dot goes without --format and --json");
  }
  return inspect_graph(options);
}

const cli_command cli_inspect = {
    .name = "inspect",
    .arguments = "MODEL.json",
    .summary = "Show a graph's layers, or the kernels of its plan",
    .help =
        "Shows a graph's layers: operators, windows, shapes, parameters, FLOPs, bytes, blocks, "
        "which "
        "are on the critical path; how wide the graph is. With --dot the graph is printed for "
        "Graphviz. With --kernels it plans the network (or "
        "takes --plan FILE) and lists every kernel in launch order, with what it is there for, and "
        "how many only copy or change layouts.\v"
        "Examples:\n  convsched inspect models/resnet50.json --batch 32 --dtype f16\n"
        "  convsched inspect models/googlenet.json --dot | dot -Tsvg -o googlenet.svg\n"
        "  convsched inspect models/googlenet.json --kernels --dtype f16 --policy coselect\n"
        "  convsched inspect models/googlenet.json --kernels --dtype f16 --device "
        "sim:h100.jsonl.gz --format json",
    .options = CLI_PLANNING | CLI_INSPECTING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = inspect_command,
    .asks = true};
