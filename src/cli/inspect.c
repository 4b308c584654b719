/* `convsched inspect`: what a graph consists of, and the kernels of a plan. */
#include "cli/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The graph ---- */

static void print_shape(cs_strbuf *text, const char *name, int rank, const int64_t *dims) {
  cs_strbuf_printf(text, "  %s [", name);
  for (int d = 0; d < rank; d++) {
    if (dims[d] == CS_DIM_N) {
      cs_strbuf_printf(text, "%sN", d ? ", " : "");
    } else {
      cs_strbuf_printf(text, "%s%" PRId64, d ? ", " : "", dims[d]);
    }
  }
  cs_strbuf_printf(text, "]\n");
}

static void count_operators(const json_t *nodes, json_t *counts) {
  size_t i;
  json_t *node;
  json_array_foreach(nodes, i, node) {
    const char *op = json_string_value(json_object_get(node, "op"));
    json_int_t count = json_integer_value(json_object_get(counts, op));
    json_object_set_new(counts, op, json_integer(count + 1));
  }
}

static cs_status inspect_graph(const cli_options *options) {
  cs_graph *graph = NULL;
  char *json = NULL;
  int64_t dims[8];
  CS_RETURN_IF_ERROR(cli_load_graph(options->models.items[0], &graph));
  cs_status st = cs_graph_to_json(graph, &json);
  if (st != CS_OK) {
    cs_graph_destroy(graph);
    return st;
  }
  json_t *root = json_loads(json, 0, NULL), *counts = json_object();
  cs_string_free(json);
  const json_t *nodes = json_object_get(root, "nodes");
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%s: %zu nodes, %" PRId64 " parameters\ninputs\n", cs_graph_name(graph),
                   json_array_size(nodes), cs_graph_parameter_count(graph));
  for (int i = 0; i < cs_graph_input_count(graph); i++) {
    int rank = cs_graph_input_shape(graph, i, dims);
    print_shape(&text, cs_graph_input_name(graph, i), rank, dims);
  }
  cs_strbuf_printf(&text, "outputs\n");
  for (int i = 0; i < cs_graph_output_count(graph); i++) {
    int rank = cs_graph_output_shape(graph, i, dims);
    print_shape(&text, cs_graph_output_name(graph, i), rank, dims);
  }
  cs_strbuf_printf(&text, "operators\n");
  count_operators(nodes, counts);
  const char *op;
  json_t *count;
  json_object_foreach(counts, op, count) {
    cs_strbuf_printf(&text, "  %-20s %lld\n", op, (long long)json_integer_value(count));
  }
  json_decref(counts);
  json_decref(root);
  cs_graph_destroy(graph);
  return cli_write_buffer(NULL, &text);
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
  if (options->kernels) return inspect_kernels(options);
  if (options->planning) {
    return cli_error(CS_CODE_USAGE, "inspect: --%s goes with --kernels", options->planning);
  }
  if (options->json) return cli_error(CS_CODE_USAGE, "inspect: --json goes with --kernels");
  return inspect_graph(options);
}

const cli_command cli_inspect = {
    .name = "inspect",
    .arguments = "MODEL.json",
    .summary = "Show what a graph consists of, or the kernels of its plan",
    .help =
        "Shows a graph's shapes, operators and parameters. With --kernels it plans the network (or "
        "takes --plan FILE) and lists every kernel in launch order, with what it is there for, and "
        "how many only copy or change layouts.\v"
        "Examples:\n  convsched inspect models/resnet50.json\n"
        "  convsched inspect models/googlenet.json --kernels --dtype f16 --policy coselect\n"
        "  convsched inspect models/googlenet.json --kernels --dtype f16 --device "
        "sim:h100.jsonl.gz --format json",
    .options = CLI_PLANNING | CLI_INSPECTING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = inspect_command};
