/* The small commands: doctor, generate-weights. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

/* ---- doctor ---- */

static void print_findings(cs_strbuf *text, json_t *object, int indent) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    cs_strbuf_printf(text, "%*s%s: ", indent, "", key);
    if (json_is_object(value)) {
      cs_strbuf_printf(text, "\n");
      print_findings(text, value, indent + 2);
      continue;
    }
    char *plain = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    cs_strbuf_printf(text, "%s\n", plain ? plain : json_string_value(value));
    free(plain);
  }
}

static cs_status doctor_command(const cli_options *options) {
  char *json = NULL;
  CS_RETURN_IF_ERROR(cs_doctor_json(&json));
  cs_status st;
  if (options->json) {
    st = cli_write(options->json, json);
  } else {
    json_t *root = json_loads(json, 0, NULL);
    cs_strbuf text = {0};
    cs_strbuf_printf(&text, "convsched %s\n", cs_version_string());
    print_findings(&text, root, 0);
    json_decref(root);
    st = cli_write_buffer(NULL, &text);
  }
  cs_string_free(json);
  return st;
}

const cli_command cli_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "Say what was found on this machine and what to do about what is missing",
    .help =
        "Says which devices and libraries were found and what to do about what is missing.\v"
        "Example:\n  convsched doctor",
    .options = CLI_JSON,
    .run = doctor_command};

/* ---- generate-weights ---- */

static cs_status generate_weights_command(const cli_options *options) {
  cs_graph *graph = NULL;
  if (!options->output)
    return cli_error(CS_CODE_USAGE, "generate-weights: --output FILE is missing");
  CS_RETURN_IF_ERROR(cli_load_graph(options->models.items[0], &graph));
  cs_status st = cs_graph_write_generated_weights(graph, options->seed, options->output);
  cs_graph_destroy(graph);
  return st;
}

const cli_command cli_generate_weights = {
    .name = "generate-weights",
    .arguments = "MODEL.json",
    .summary = "Write the parameters generated from a seed as safetensors",
    .help =
        "Writes the parameters that a run without weights would use.\v"
        "Example:\n  convsched generate-weights models/resnet50.json --seed 7 --output "
        "resnet50.safetensors",
    .options = CLI_SEED | CLI_OUTPUT,
    .min_models = 1,
    .max_models = 1,
    .run = generate_weights_command};
