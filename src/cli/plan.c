/* `convsched plan`: the stages before execution. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

/* What the session says of the plan, below its table. */
static cs_status print_summary(const cs_session *session, cs_strbuf *text) {
  char *info_text = NULL;
  CS_RETURN_IF_ERROR(cs_session_info_json(session, &info_text));
  json_t *info = json_loads(info_text, 0, NULL);
  cs_string_free(info_text);
  const char *policy = json_string_value(json_object_get(info, "policy"));
  cs_strbuf_printf(text, "\nPredicted: %.1f us on %lld streams.\n",
                   json_number_value(json_object_get(info, "predicted_us")),
                   (long long)json_integer_value(json_object_get(info, "streams")));
  cli_print_bounds(json_object_get(info, "bounds"), text);
  cli_print_memory(policy, json_object_get(info, "memory"), text);
  json_decref(info);
  return CS_OK;
}

static cs_status print_plan(const cs_session *session, const char *text) {
  json_t *plan = json_loads(text, 0, NULL);
  cs_strbuf table = {0};
  cs_strbuf_printf(&table, "%4s %6s %10s %10s %12s  %-32s %s\n", "#", "stream", "start us",
                   "end us", "workspace", "task", "candidate");
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(plan, "tasks"), i, task) {
    cs_strbuf_printf(&table, "%4zu %6lld %10.1f %10.1f %12lld  %-32s %s\n", i,
                     (long long)json_integer_value(json_object_get(task, "stream")),
                     json_number_value(json_object_get(task, "start_us")),
                     json_number_value(json_object_get(task, "end_us")),
                     (long long)json_integer_value(
                         json_object_get(json_object_get(task, "candidate"), "workspace_bytes")),
                     json_string_value(json_object_get(task, "name")),
                     json_string_value(json_object_get(json_object_get(task, "candidate"), "id")));
  }
  json_decref(plan);
  cs_status st = print_summary(session, &table);
  if (st == CS_OK) st = cli_write_buffer(NULL, &table);
  cs_strbuf_free(&table);
  return st;
}

static cs_status plan_command(const cli_options *options) {
  cs_status st = CS_OK;
  cs_device *device = NULL;
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_session_options session_options;
  char *text = NULL;
  const char *policy = options->policy ? options->policy : CLI_DEFAULT_POLICY;
  if (strcmp(policy, "all") == 0) {
    return cli_error(CS_CODE_USAGE, "--policy all: a plan is of one policy");
  }
  if (options->n_batches > 1 || options->n_precisions > 1) {
    return cli_error(CS_CODE_USAGE, "one --batch and one --dtype at a time, %d and %d given",
                     options->n_batches, options->n_precisions);
  }
  CS_RETURN_IF_ERROR(cli_check_writable(options->json));
  CS_TRY(st, cs_graph_load(options->models.items[0], &graph), done);
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &device), done);
  cli_session_options(options, options->batches[0], options->precisions[0], policy,
                      &session_options);
  CS_TRY(st, cs_session_create(device, graph, &session_options, &session), done);
  cli_end_progress();
  CS_TRY(st, cs_session_plan_json(session, &text), done);
  st = options->json ? cli_write(options->json, text) : print_plan(session, text);
done:
  cs_string_free(text);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  cs_device_close(device);
  return st;
}

const cli_command cli_plan = {
    .name = "plan",
    .arguments = "MODEL.json",
    .summary = "Plan a network and print or write the plan",
    .help =
        "Plans a network and prints the plan, or writes it as convsched.plan/1 with --json; "
        "`run --plan FILE` executes it.\v"
        "Example:\n  convsched plan models/googlenet.json --dtype f16 --json googlenet.plan.json",
    .options = CLI_PLANNING | CLI_JSON,
    .min_models = 1,
    .max_models = 1,
    .run = plan_command};
