/* import: an ONNX file to a graph and weights of our own; and ONNX files wherever a model is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

cs_status cli_load_graph(const char *path, cs_graph **out) {
  const char *dot = strrchr(path, '.');
  return dot && strcmp(dot, ".onnx") == 0 ? cs_graph_import(path, out) : cs_graph_load(path, out);
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static long long number_of(const json_t *object, const char *key) {
  return (long long)json_integer_value(json_object_get(object, key));
}

/* *refused: nodes (and inputs or outputs) that cannot be imported. */
static void print_table(const json_t *root, cs_strbuf *text) {
  size_t i;
  json_t *row;
  cs_strbuf_printf(text, "%s: IR version %lld, opset %lld, by %s\n\n", text_of(root, "model"),
                   number_of(root, "ir_version"), number_of(root, "opset"),
                   *text_of(root, "producer") ? text_of(root, "producer") : "an unnamed producer");
  cs_strbuf_printf(text, "%-28s %6s %12s\n", "operator", "nodes", "not imported");
  json_array_foreach(json_object_get(root, "operators"), i, row) {
    const char *domain = text_of(row, "domain");
    cs_strbuf name = {0};
    cs_strbuf_printf(&name, "%s%s%s", domain, *domain ? ":" : "", text_of(row, "op"));
    cs_strbuf_printf(text, "%-28s %6lld %12lld\n", name.data ? name.data : "?",
                     number_of(row, "nodes"), number_of(row, "unsupported"));
    cs_strbuf_free(&name);
  }
  json_array_foreach(json_object_get(root, "unsupported"), i, row) {
    if (i == 0) cs_strbuf_printf(text, "\nWhat is in the way:\n");
    if (json_is_string(json_object_get(row, "node"))) {
      cs_strbuf_printf(text, "  node \"%s\" (%s): ", text_of(row, "node"), text_of(row, "op"));
    } else {
      cs_strbuf_printf(text, "  ");
    }
    cs_strbuf_printf(text, "%s\n", text_of(row, "reason"));
  }
  if (number_of(root, "following") > 0) {
    cs_strbuf_printf(text, "  and %lld nodes behind these, of which too little is known to tell\n",
                     number_of(root, "following"));
  }
}

static cs_status check(const cli_options *options) {
  const char *path = options->models.items[0];
  char *json = NULL;
  cs_strbuf text = {0};
  CS_RETURN_IF_ERROR(cs_import_check_json(path, &json));
  json_t *root = json_loads(json, 0, NULL);
  bool only_json = options->json && strcmp(options->json, "-") == 0;
  cs_status st = options->json ? cli_write(options->json, json) : CS_OK;
  if (st == CS_OK && !only_json) {
    print_table(root, &text);
    st = cli_write_buffer(NULL, &text);
  }
  if (st == CS_OK && !json_is_true(json_object_get(root, "importable"))) {
    st = cli_error(CS_CODE_BAD_INPUT, "%s: cannot be imported; %s says why", path,
                   only_json ? "`unsupported`" : "the table");
  }
  json_decref(root);
  cs_string_free(json);
  return st;
}

static cs_status import_command(const cli_options *options) {
  cs_graph *graph = NULL;
  if (options->check && options->output) {
    return cli_error(CS_CODE_USAGE,
                     "import: --check converts nothing, so it goes without --output");
  }
  if (options->json && !options->check) {
    return cli_error(CS_CODE_USAGE, "import: --json goes with --check");
  }
  if (options->check) return check(options);
  if (!options->output) {
    return cli_error(CS_CODE_USAGE, "import: --output FILE is missing (or --check)");
  }
  CS_RETURN_IF_ERROR(cs_graph_import(options->models.items[0], &graph));
  cs_status st = cs_graph_save(graph, options->output);
  cs_graph_destroy(graph);
  return st;
}

const cli_command cli_import = {
    .name = "import",
    .arguments = "MODEL.onnx",
    .summary = "Convert an ONNX model to a graph and its weights, or check whether it can be",
    .help =
        "Converts an ONNX model (opset 7 and later) to convsched.graph/1 with its weights as "
        "safetensors beside it. The other commands take MODEL.onnx as it is. What of the model is "
        "not supported is told in one message, with the nodes' names.\v"
        "Example:\n  convsched import model.onnx -o model.json\n  convsched import model.onnx "
        "--check",
    .options = CLI_IMPORTING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = import_command};
