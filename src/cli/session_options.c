#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

bool cli_device_is_simulated(const cli_options *options) {
  return options->device && strncmp(options->device, "sim:", 4) == 0;
}

cs_status cli_check_search(const cli_options *options) {
  bool simulated = cli_device_is_simulated(options);
  if (options->search_seconds <= 0 || (!simulated && !options->profile)) return CS_OK;
  return cli_error(CS_CODE_USAGE,
                   "%s %s: the device is simulated and runs nothing, so --search-seconds %g cannot "
                   "measure schedules; leave it out: policies plan by the SM model there, coselect "
                   "in as many moves as --search-steps says. Or search on the GPU and export its "
                   "profile again (convsched profile --export FILE), with what was found",
                   simulated ? "--device" : "--profile",
                   simulated ? options->device : options->profile, options->search_seconds);
}

/* Takes the text over. */
static cs_status read_json(char *text, const char *what, json_t **out) {
  *out = json_loads(text, 0, NULL);
  cs_string_free(text);
  return *out ? CS_OK : cli_error(CS_CODE_INTERNAL, "%s is not JSON", what);
}

cs_status cli_device_json(const cs_device *device, json_t **out) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_device_info_json(device, &text));
  return read_json(text, "device info", out);
}

cs_status cli_session_json(const cs_session *session, json_t **out) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_session_info_json(session, &text));
  return read_json(text, "session info", out);
}

cs_status cli_device_backend(const cs_device *device, char *out, size_t size) {
  json_t *info = NULL;
  CS_RETURN_IF_ERROR(cli_device_json(device, &info));
  const char *name = json_string_value(json_object_get(info, "backend"));
  snprintf(out, size, "%s", name ? name : "");
  json_decref(info);
  return CS_OK;
}

void cli_session_options(const cli_options *options, int64_t batch, cs_precision precision,
                         const char *policy, cs_session_options *out) {
  cs_session_options_init(out);
  out->batch = batch;
  out->precision = precision;
  out->policy = policy;
  out->weights_path = options->weights;
  out->seed = options->seed;
  out->workspace_limit = options->workspace_limit;
  out->memory_limit = options->memory_limit;
  out->max_streams = options->streams;
  out->search_seconds = options->search_seconds;
  out->search_steps = options->search_steps;
  out->in_flight = options->in_flight;
  out->no_graph = options->no_graph;
  out->partition = options->partition;
  out->micro_batches = options->micro_batches;
  out->frozen = options->frozen;
  out->refresh = options->refresh;
  out->deterministic = options->deterministic;
  out->cache_dir = options->cache_dir;
  out->pins = options->pins.items;
  out->n_pins = options->pins.n;
  out->bans = options->bans.items;
  out->n_bans = options->bans.n;
  out->allows = options->allows.items;
  out->n_allows = options->allows.n;
  out->plan_path = options->plan;
  out->cancelled = cli_interrupted;
}

char *cli_plan_policy(const char *path) {
  json_t *plan = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
  char *policy = cs_strdup(json_string_value(json_object_get(plan, "policy")));
  json_decref(plan);
  return policy;
}

static cs_status check_policy_name(const char *path, const char *policy) {
  int count;
  cs_strbuf wanted = {0};
  const char *const *names = cs_policy_names(&count);
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], policy) == 0) {
      cs_strbuf_free(&wanted);
      return CS_OK;
    }
    cs_strbuf_printf(&wanted, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", names[i]);
  }
  char *list = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&wanted, &list));
  cs_status st =
      cli_error(CS_CODE_BAD_INPUT, "%s: $.policy: found \"%s\", wanted %s", path, policy, list);
  free(list);
  return st;
}

/* The plan's row is its policy's, and so is what is planned anew. */
static cs_status check_policy(const cli_options *options) {
  char *policy = cli_plan_policy(options->plan);
  cs_status st = policy ? check_policy_name(options->plan, policy) : CS_OK;
  if (st == CS_OK && policy && options->policy && strcmp(policy, options->policy) != 0) {
    st = cli_error(CS_CODE_USAGE, "--plan %s: the plan is by %s, so it goes without --policy %s",
                   options->plan, policy, options->policy);
  }
  free(policy);
  return st;
}

cs_status cli_check_plan_options(const cli_options *options) {
  if (!options->plan) return CS_OK;
  cs_strbuf names = {0};
  if (options->pins.n > 0) cs_strbuf_printf(&names, " --algorithm");
  if (options->bans.n > 0) cs_strbuf_printf(&names, " --ban");
  if (options->allows.n > 0) cs_strbuf_printf(&names, " --allow");
  if (options->streams > 0) cs_strbuf_printf(&names, " --streams");
  if (options->deterministic) cs_strbuf_printf(&names, " --deterministic");
  if (options->micro_batches != 0) cs_strbuf_printf(&names, " --micro-batches");
  if (options->search_seconds > 0) cs_strbuf_printf(&names, " --search-seconds");
  if (options->search_steps > 0) cs_strbuf_printf(&names, " --search-steps");
  char *given = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&names, &given));
  cs_status st = CS_OK;
  if (given[0]) {
    st = cli_error(CS_CODE_USAGE,
                   "--plan %s: the plan fixes candidates, streams and order, so it goes without%s",
                   options->plan, given);
  }
  free(given);
  return st == CS_OK ? check_policy(options) : st;
}

cs_status cli_check_one_plan(const cli_options *options) {
  if (options->policy && strcmp(options->policy, "all") == 0) {
    return cli_error(CS_CODE_USAGE, "--policy all: a plan is of one policy");
  }
  if (options->n_batches > 1 || options->n_precisions > 1) {
    return cli_error(CS_CODE_USAGE, "one --batch and one --dtype at a time, %d and %d given",
                     options->n_batches, options->n_precisions);
  }
  return CS_OK;
}

cs_status cli_tell_plan(const cli_options *options, cli_tell_fn tell) {
  cs_status st = CS_OK;
  cs_device *device = NULL;
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_session_options session_options;
  CS_RETURN_IF_ERROR(cli_check_search(options));
  CS_RETURN_IF_ERROR(cli_check_writable(options->json));
  CS_TRY(st, cli_load_graph(options->models.items[0], &graph), done);
  CS_TRY(st, cs_device_open(options->device, cli_logger(options), &device), done);
  cli_session_options(options, options->batches[0], options->precisions[0],
                      options->policy ? options->policy : CLI_DEFAULT_POLICY, &session_options);
  CS_TRY(st, cs_session_create(device, graph, &session_options, &session), done);
  cli_end_progress();
  st = tell(options, session);
done:
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  cs_device_close(device);
  return st;
}
