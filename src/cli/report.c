/* `convsched report`: tables of what a profile tells of a network. */
#include <string.h>

#include "cli/cli.h"

static cs_status print_as(const cs_report *report, cs_report_format format, const char *path) {
  char *text = NULL;
  cs_status st = cs_report_format_text(report, format, &text);
  if (st != CS_OK) return st;
  st = cli_write(path, text);
  cs_string_free(text);
  return st;
}

cs_status cli_write_report(const cli_options *options, const cs_report *report) {
  cs_status st = options->json ? print_as(report, CS_REPORT_JSON, options->json) : CS_OK;
  bool printed = options->json && strcmp(options->json, "-") == 0;
  return st != CS_OK || printed ? st : print_as(report, options->format, NULL);
}

static cs_status make_report(const cli_options *options, cs_device *device, const cs_graph *graph,
                             cs_report **out) {
  cs_session_options session_options;
  cs_report_options report_options;
  cli_session_options(options, options->batches[0], options->precisions[0], NULL, &session_options);
  cs_report_options_init(&report_options);
  report_options.kind = (cs_report_kind)options->table;
  report_options.profile_path = options->profile;
  report_options.nodes = options->nodes.items;
  report_options.n_nodes = options->nodes.n;
  report_options.candidates = options->candidates;
  report_options.paper = options->paper;
  report_options.logger = *cli_logger(options);
  return cs_report_create(device, graph, &session_options, &report_options, out);
}

static cs_status report_command(const cli_options *options) {
  cs_device *device = NULL;
  cs_graph *graph = NULL;
  cs_report *report = NULL;
  if (options->table < 0) {
    return cli_error(CS_CODE_USAGE, "report: wanted --table resources, workspace or complementary");
  }
  if (options->n_batches > 1 || options->n_precisions > 1) {
    return cli_error(CS_CODE_USAGE, "one --batch and one --dtype at a time, %d and %d given",
                     options->n_batches, options->n_precisions);
  }
  cs_status st = cli_check_writable(options->json);
  if (st == CS_OK) st = cli_load_graph(options->models.items[0], &graph);
  if (st == CS_OK && !options->profile) {
    st = cs_device_open(options->device, cli_logger(options), &device);
  }
  if (st == CS_OK) st = make_report(options, device, graph, &report);
  if (st == CS_OK) st = cli_write_report(options, report);
  cs_report_destroy(report);
  cs_graph_destroy(graph);
  cs_device_close(device);
  return st;
}

const cli_command cli_report = {
    .name = "report",
    .arguments = "MODEL.json",
    .summary = "Tables of what was measured: resources, workspace, complementary algorithms",
    .help =
        "Tells what a profile knows of a network: what kernels take of an SM's resources "
        "(resources), what workspace and time every algorithm takes (workspace), which nodes run "
        "faster together with candidates that are slower alone (complementary). Measures nothing; "
        "with --profile no device is needed.\v"
        "Example:\n  convsched report models/googlenet.json --table resources \\\n"
        "    --node 'inception_3a/*' --dtype f16 --profile h100.jsonl.gz --format md",
    .options = CLI_REPORTING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = report_command};
