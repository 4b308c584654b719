/* `convsched trace`: a plan as it was predicted and as it ran, for Perfetto. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "commit.h"

/* "models/googlenet.json" → "googlenet.trace.json", in the working folder. */
static cs_status default_path(const char *model, char **out) {
  const char *slash = strrchr(model, '/');
  const char *name = slash ? slash + 1 : model;
  const char *dot = strrchr(name, '.');
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%.*s.trace.json",
                   dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
  return cs_strbuf_take(&text, out);
}

/* ---- The file: an event a line ---- */

static cs_status append_json(cs_strbuf *text, const char *before, const json_t *value) {
  char *one = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
  if (!one) return cs_no_memory("a trace", text->length);
  cs_strbuf_printf(text, "%s%s", before, one);
  free(one);
  return CS_OK;
}

static cs_status format_trace(const json_t *trace, cs_strbuf *text) {
  const json_t *events = json_object_get(trace, "traceEvents");
  const char *separator = "\n";
  size_t i;
  json_t *event;
  CS_RETURN_IF_ERROR(append_json(text, "{\"schema\":", json_object_get(trace, "schema")));
  CS_RETURN_IF_ERROR(
      append_json(text, ",\"displayTimeUnit\":", json_object_get(trace, "displayTimeUnit")));
  CS_RETURN_IF_ERROR(append_json(text, ",\n\"otherData\":", json_object_get(trace, "otherData")));
  cs_strbuf_printf(text, ",\n\"traceEvents\":[");
  json_array_foreach(events, i, event) {
    CS_RETURN_IF_ERROR(append_json(text, separator, event));
    separator = ",\n";
  }
  cs_strbuf_printf(text, "\n]}\n");
  return CS_OK;
}

static cs_status write_trace(json_t *trace, const char *path) {
  cs_strbuf text = {0};
  json_t *other = json_object_get(trace, "otherData");
  if (json_object_set_new(other, "commit", json_string(CS_COMMIT)) != 0 ||
      json_object_set_new(other, "command", json_string(cli_command_line)) != 0) {
    return cs_no_memory("a trace", 0);
  }
  cs_status st = format_trace(trace, &text);
  if (st != CS_OK) {
    cs_strbuf_free(&text);
    return st;
  }
  return cli_write_buffer(path, &text);
}

/* ---- What is said of it ---- */

static double number_of(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static cs_status say(const json_t *trace, const char *path) {
  cs_strbuf text = {0};
  const json_t *other = json_object_get(trace, "otherData");
  const json_t *plan = json_object_get(other, "plan"), *traced = json_object_get(other, "traced");
  const json_t *latency = json_object_get(other, "latency_us");
  if (json_is_object(traced)) {
    cs_strbuf_printf(&text,
                     "latency %.1f us (median of %zu, without a tracer), predicted %.1f us; the "
                     "traced run spans %.1f us\n",
                     number_of(latency, "median"),
                     json_array_size(json_object_get(latency, "samples")),
                     number_of(plan, "predicted_us"), number_of(traced, "span_us"));
  } else {
    cs_strbuf_printf(&text,
                     "the device is simulated: nothing was run, the trace is the prediction of "
                     "%.1f us\n",
                     number_of(plan, "predicted_us"));
  }
  double ambiguous = number_of(traced, "kernels_ambiguous");
  if (ambiguous > 0) {
    cs_strbuf_printf(&text,
                     "%.0f kernels could be another one of the same kind that ran at that time\n",
                     ambiguous);
  }
  cs_strbuf_printf(&text, "%s: open it at https://ui.perfetto.dev or chrome://tracing\n", path);
  return cli_write_buffer(NULL, &text);
}

/* ---- The command ---- */

static cs_status trace_session(const cli_options *options, cs_session *session, const char *path) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_trace_json(session, options->samples, options->runs, &text));
  cli_end_progress();
  json_t *trace = json_loads(text, 0, NULL);
  cs_string_free(text);
  if (!trace) return cli_error(CS_CODE_INTERNAL, "a trace is not JSON");
  cs_status st = write_trace(trace, path);
  if (st == CS_OK) st = say(trace, path);
  json_decref(trace);
  return st;
}

/* As the options say, `options->output` given. What cannot work is found out first. */
static cs_status trace_to(const cli_options *options) {
  cs_status st = CS_OK;
  cs_device *device = NULL;
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_session_options session_options;
  CS_RETURN_IF_ERROR(cli_check_files(options));
  CS_RETURN_IF_ERROR(cli_check_writable(options->output));
  char *plan_policy = options->plan ? cli_plan_policy(options->plan) : NULL;
  const char *policy = plan_policy ? plan_policy : options->policy;
  CS_TRY(st, cli_load_graph(options->models.items[0], &graph), done);
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &device), done);
  if (!cli_device_is_simulated(options)) {
    CS_TRY(st, cs_device_check_trace(device, "trace"), done);
  }
  cli_session_options(options, options->batches[0], options->precisions[0],
                      policy ? policy : CLI_DEFAULT_POLICY, &session_options);
  CS_TRY(st, cs_session_create(device, graph, &session_options, &session), done);
  CS_TRY(st, cli_check_interrupt(), done);
  st = trace_session(options, session, options->output);
done:
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  cs_device_close(device);
  free(plan_policy);
  return st;
}

static cs_status trace_command(const cli_options *options) {
  char *path = NULL;
  cli_options with_path = *options;
  CS_RETURN_IF_ERROR(cli_check_one_plan(options));
  CS_RETURN_IF_ERROR(cli_check_plan_options(options));
  CS_RETURN_IF_ERROR(cli_check_search(options));
  if (!options->output) {
    CS_RETURN_IF_ERROR(default_path(options->models.items[0], &path));
    with_path.output = path;
  }
  cs_status st = trace_to(&with_path);
  free(path);
  return st;
}

const cli_command cli_trace = {
    .name = "trace",
    .arguments = "MODEL.json",
    .summary = "Run a plan and write when its kernels ran, for Perfetto",
    .help =
        "Plans a network (or takes --plan FILE), measures its latency, then runs it under a tracer "
        "and writes a trace in Chrome's format: every kernel as it ran, named by its node, beside "
        "the same as the plan predicted it; dependencies, SM resources and arena bytes. On a "
        "simulated device there is the prediction alone.\v"
        "Examples:\n"
        "  convsched trace models/googlenet.json --dtype f16 --policy coselect -o "
        "googlenet.trace.json\n"
        "  convsched trace models/googlenet.json --dtype f16 --plan googlenet.plan.json "
        "--no-graph\n"
        "  convsched trace models/googlenet.json --dtype f16 --device sim:h100.jsonl.gz\n\n"
        "Times under the tracer are no latencies; docs/traces.md tells what the trace holds.",
    .options = CLI_PLANNING | CLI_TRACING,
    .min_models = 1,
    .max_models = 1,
    .run = trace_command,
    .asks = true};
