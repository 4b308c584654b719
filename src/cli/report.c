/* `convsched report`: what is known of a network, as a page, a figure of it, or a table. */
#include <string.h>

#include "base/status.h"
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
  const char *path = options->table >= 0 ? options->output : NULL; /* else it is not the table's */
  if (st != CS_OK || printed) return st;
  st = print_as(report, options->format, path);
  if (st == CS_OK) cli_tell_written(options, path);
  return st;
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

static cs_status check_options(const cli_options *options) {
  if (options->n_batches > 1 || options->n_precisions > 1) {
    return cli_error(CS_CODE_USAGE, "one --batch and one --dtype at a time, %d and %d given",
                     options->n_batches, options->n_precisions);
  }
  bool page = options->output || options->figure || options->format == CS_REPORT_HTML;
  if (options->table < 0 && page) return CS_OK;
  if (options->table < 0) {
    return cli_error(
        CS_CODE_USAGE,
        "report: wanted --table resources, workspace or complementary, or -o FILE.html "
        "for a page of all");
  }
  if (options->figure || options->format == CS_REPORT_HTML || options->format == CS_REPORT_SVG) {
    return cli_error(CS_CODE_USAGE,
                     "--table is no figure, and a part of the page: it goes without --figure and "
                     "--format svg or html");
  }
  if (options->planning) {
    return cli_error(CS_CODE_USAGE, "--table plans nothing, so it goes without --%s",
                     options->planning);
  }
  return CS_OK;
}

static cs_status report_command(const cli_options *options) {
  cs_device *device = NULL;
  cs_graph *graph = NULL;
  cs_report *report = NULL;
  CS_RETURN_IF_ERROR(check_options(options));
  if (options->table < 0) return cli_report_page(options);
  cs_status st = cli_check_writable(options->json);
  if (st == CS_OK) st = cli_check_writable(options->output);
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
    .summary = "A page of what is known of a network, figures and tables of it",
    .help =
        "Makes one HTML page that needs nothing else: latencies and plans of every policy, "
        "timelines, what kernels take of the SMs, all candidates, memory, the graph, other systems "
        "(-o FILE.html). It measures as `run` does what the cache lacks, and traces runs at last; "
        "with --device sim:FILE or --profile FILE nothing is run, and the page says what is "
        "missing. --figure is one figure of it. --table is one table of what a profile "
        "knows, and measures nothing: what kernels take of an SM (resources), what workspace and "
        "time every algorithm takes (workspace), which nodes run faster together with candidates "
        "that are slower alone (complementary).\v"
        "Examples:\n  convsched report models/googlenet.json --dtype tf32 -o googlenet.html\n"
        "  convsched report models/googlenet.json --dtype tf32 --policy streams,coselect "
        "--figure gantt --format svg -o gantt.svg --profile h100.jsonl.gz\n"
        "  convsched report models/googlenet.json --table resources "
        "--node 'inception_3a/*' --dtype f16 --profile h100.jsonl.gz --format md",
    .options = CLI_REPORTING | CLI_JSON | CLI_PLANNING,
    .min_models = 1,
    .max_models = 1,
    .run = report_command,
    .asks = true};
