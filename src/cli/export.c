/* export: a graph with its weights in another system's format. */
#include "base/base.h"
#include "cli/cli.h"

static cs_status export_command(const cli_options *options) {
  cs_graph *graph = NULL;
  if (!options->onnx) return cli_error(CS_CODE_USAGE, "export: --onnx FILE is missing");
  CS_RETURN_IF_ERROR(cli_check_writable(options->onnx));
  CS_RETURN_IF_ERROR(cli_load_graph(options->models.items[0], &graph));
  cs_status st = cs_graph_export_onnx(graph, options->weights, options->seed, options->onnx);
  cs_graph_destroy(graph);
  return st;
}

const cli_command cli_export = {
    .name = "export",
    .arguments = "MODEL.json",
    .summary = "Write a graph and its weights as an ONNX model",
    .help =
        "Writes the graph, before any pass, as an ONNX model with its weights in it: to be looked "
        "at "
        "or run elsewhere. Importing it gives the same graph.\v"
        "Examples:\n  convsched export models/googlenet.json --onnx googlenet.onnx\n"
        "  convsched export models/resnet50.json --weights resnet50.safetensors --onnx "
        "resnet50.onnx",
    .options = CLI_EXPORTING | CLI_SEED,
    .min_models = 1,
    .max_models = 1,
    .run = export_command};
