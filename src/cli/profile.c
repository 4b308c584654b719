/* `convsched profile`: measures into the cache, and says what was found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static long long integer_of(const json_t *object, const char *key) {
  return (long long)json_integer_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* ---- Tables ---- */

static void add_head(const json_t *report, cs_strbuf *out) {
  const json_t *measured = json_object_get(report, "measured");
  const json_t *kernels = json_object_get(report, "kernels");
  cs_strbuf_printf(out,
                   "\n%s  batch %lld  %s: %lld operations (%lld from the cache), %lld candidates "
                   "measured, %lld rejected, %.1f s\n",
                   text_of(report, "model"), integer_of(report, "batch"), text_of(report, "dtype"),
                   integer_of(measured, "operations"), integer_of(measured, "operations_cached"),
                   integer_of(measured, "candidates"), integer_of(measured, "candidates_rejected"),
                   number_of(measured, "seconds"));
  if (integer_of(kernels, "recorded") + integer_of(kernels, "counted") > 0) {
    cs_strbuf_printf(out, "Kernels added of %lld candidates, counters of %lld.\n",
                     integer_of(kernels, "recorded"), integer_of(kernels, "counted"));
  }
  const char *unavailable = text_of(kernels, "unavailable");
  if (unavailable[0]) cs_strbuf_printf(out, "No counters: %s.\n", unavailable);
}

static void add_operations(const json_t *report, cs_strbuf *out) {
  size_t i;
  json_t *operation;
  cs_strbuf_printf(out, "%-28s %-17s %-8s %5s %10s %10s %8s %6s  %s\n", "operation", "kind",
                   "layout", "tasks", "cold us", "candidates", "rejected", "pareto", "fastest");
  json_array_foreach(json_object_get(report, "operations"), i, operation) {
    const json_t *best = json_object_get(operation, "best");
    cs_strbuf_printf(out, "%-28s %-17s %-8s %5lld %10.2f %10lld %8lld %6zu  %s\n",
                     text_of(operation, "task"), text_of(operation, "op"),
                     text_of(operation, "layout"), integer_of(operation, "tasks"),
                     number_of(best, "cold_us"), integer_of(operation, "candidates"),
                     integer_of(operation, "rejected"),
                     json_array_size(json_object_get(operation, "pareto")), text_of(best, "id"));
  }
}

static void add_set(const json_t *set, cs_strbuf *out) {
  cs_strbuf names = {0};
  size_t i;
  json_t *task;
  json_array_foreach(json_object_get(set, "tasks"), i, task) {
    cs_strbuf_printf(&names, "%s%s", i > 0 ? " + " : "", json_string_value(task));
  }
  const json_t *best = json_object_get(set, "best");
  const json_t *overlap = json_object_get(best, "overlap");
  char share[16] = "-";
  if (json_is_number(overlap)) {
    snprintf(share, sizeof share, "%.0f%%", 100 * json_number_value(overlap));
  }
  char warm[16] = "-";
  if (json_object_get(set, "gain_warm")) {
    snprintf(warm, sizeof warm, "%.2fx%s", number_of(set, "gain_warm"),
             json_is_true(json_object_get(set, "win_warm")) ? "*" : " ");
  }
  cs_strbuf_printf(
      out, "%10.2f %10.2f %10.2f %6.2fx%s %8s %8s %-9s  %s\n", number_of(set, "serial_us"),
      number_of(set, "fastest_alone_us"), number_of(set, "best_us"), number_of(set, "gain"),
      json_is_true(json_object_get(set, "win")) ? "*" : " ", warm, share,
      text_of(json_object_get(set, "fastest_alone"), "limiter"), names.data ? names.data : "");
  cs_strbuf_free(&names);
}

static void add_coruns(const json_t *report, cs_strbuf *out) {
  const json_t *coruns = json_object_get(report, "coruns");
  size_t i;
  json_t *set;
  if (!coruns) return;
  cs_strbuf_printf(out,
                   "\n%lld sets of independent convolutions (%lld from the cache, %lld skipped), "
                   "%lld combinations measured, %.1f s; jointly chosen candidates win in %lld, "
                   "with all in the cache in %lld (*: by 3%% or more).\n",
                   integer_of(coruns, "sets"), integer_of(coruns, "sets_cached"),
                   integer_of(coruns, "sets_skipped"), integer_of(coruns, "combinations"),
                   number_of(coruns, "seconds"), integer_of(coruns, "wins"),
                   integer_of(coruns, "wins_warm"));
  if (json_array_size(json_object_get(coruns, "list")) == 0) return;
  cs_strbuf_printf(out, "%10s %10s %10s %7s  %8s %8s %-9s  %s\n", "serial us", "fastest us",
                   "chosen us", "gain", "warm", "overlap", "limiter", "together");
  json_array_foreach(json_object_get(coruns, "list"), i, set) add_set(set, out);
}

static cs_status print_report(const json_t *report) {
  cs_strbuf table = {0};
  add_head(report, &table);
  add_operations(report, &table);
  add_coruns(report, &table);
  return cli_write_buffer(NULL, &table);
}

/* ---- Cases ---- */

static cs_status profile_case(const cli_options *options, cs_device *device, const cs_graph *graph,
                              int64_t batch, cs_precision precision, json_t *reports) {
  cs_session_options session_options;
  cs_profile_options profile_options;
  char *text = NULL;
  cli_session_options(options, batch, precision, options->policy ? options->policy : "all",
                      &session_options);
  cs_profile_options_init(&profile_options);
  profile_options.full = options->full;
  profile_options.corun = options->corun;
  profile_options.counters = options->counters >= 0 ? options->counters > 0 : options->corun;
  profile_options.nodes = options->nodes.items;
  profile_options.n_nodes = options->nodes.n;
  CS_RETURN_IF_ERROR(cs_profile_model(device, graph, &session_options, &profile_options, &text));
  cli_end_progress();
  json_t *report = json_loads(text, 0, NULL);
  cs_string_free(text);
  if (!report) return cs_no_memory("a report", 0);
  int n_cases = options->models.n * options->n_batches * options->n_precisions;
  CS_RETURN_IF_ERROR(cli_add_record(options, n_cases, reports, report));
  bool printed = options->json && strcmp(options->json, "-") == 0;
  return printed ? CS_OK : print_report(report);
}

static cs_status profile_graph(const cli_options *options, cs_device *device, const char *path,
                               json_t *reports) {
  cs_graph *graph = NULL;
  CS_RETURN_IF_ERROR(cli_load_graph(path, &graph));
  cs_status st = CS_OK;
  for (int p = 0; p < options->n_precisions && st == CS_OK; p++) {
    for (int b = 0; b < options->n_batches && st == CS_OK; b++) {
      st = cli_check_interrupt();
      if (st != CS_OK) break;
      st = profile_case(options, device, graph, options->batches[b], options->precisions[p],
                        reports);
    }
  }
  cs_graph_destroy(graph);
  return st;
}

/* ---- The device's measurements as a whole ---- */

/* What an earlier profile has left behind. */
static cs_status say_resumed(const cli_options *options, cs_device *device) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_device_profile_json(device, options->cache_dir, &text));
  json_t *known = json_loads(text, 0, NULL);
  cs_string_free(text);
  if (!known) return cs_no_memory("a profile's description", 0);
  long long operations = integer_of(known, "operations"), complete = integer_of(known, "complete");
  if (operations == 0) {
    cs_log(cli_logger(options), CS_LOG_INFO, "nothing to resume: nothing is measured yet on %s",
           text_of(known, "device"));
  } else {
    cs_log(cli_logger(options), CS_LOG_INFO,
           "resumes: %lld operations of %s are measured, %lld were interrupted and are measured "
           "anew, %lld co-runs are there",
           complete, text_of(known, "device"), operations - complete, integer_of(known, "coruns"));
  }
  json_decref(known);
  return CS_OK;
}

static cs_status import_profile(const cli_options *options, cs_device *device) {
  int taken = 0;
  CS_RETURN_IF_ERROR(
      cs_device_import_profile(device, options->cache_dir, options->import_path, &taken));
  cs_log(cli_logger(options), CS_LOG_INFO, "%s: %d line%s of it %s news", options->import_path,
         taken, taken == 1 ? "" : "s", taken == 1 ? "was" : "were");
  return CS_OK;
}

static cs_status check_use(const cli_options *options) {
  if (cli_device_is_simulated(options)) {
    return cli_error(CS_CODE_USAGE,
                     "profile --device %s: a simulated device measures nothing, all there is of it "
                     "is in that file; profile on the GPU itself, `convsched profile MODEL.json "
                     "--export FILE` there, and give --device sim:FILE here",
                     options->device);
  }
  if (options->resume && options->refresh) {
    return cli_error(CS_CODE_USAGE,
                     "--resume with --refresh: one keeps what is measured, the other does not");
  }
  if (options->models.n > 0) return CS_OK;
  if (!options->import_path && !options->export_path) {
    return cli_error(CS_CODE_USAGE, "profile: no model given, and neither --import nor --export");
  }
  if (options->json) return cli_error(CS_CODE_USAGE, "profile --json: no model given to report on");
  return CS_OK;
}

static cs_status profile_models(const cli_options *options, cs_device *device) {
  json_t *reports = json_array();
  int n_cases = options->models.n * options->n_batches * options->n_precisions;
  cs_status st = CS_OK;
  for (int m = 0; m < options->models.n && st == CS_OK; m++) {
    st = profile_graph(options, device, options->models.items[m], reports);
  }
  if (st == CS_OK) st = cli_write_records(options, n_cases, reports);
  json_decref(reports);
  return st;
}

static cs_status profile_command(const cli_options *options) {
  cs_status st = CS_OK;
  cs_device *device = NULL;
  CS_RETURN_IF_ERROR(check_use(options));
  CS_RETURN_IF_ERROR(cli_check_writable(options->json));
  CS_RETURN_IF_ERROR(cli_check_writable(options->export_path));
  CS_RETURN_IF_ERROR(cs_device_open(options->device, cli_logger(options), &device));
  if (options->import_path) CS_TRY(st, import_profile(options, device), done);
  if (options->resume) CS_TRY(st, say_resumed(options, device), done);
  if (options->models.n > 0) CS_TRY(st, profile_models(options, device), done);
  if (options->export_path) {
    st = cs_device_export_profile(device, options->cache_dir, options->export_path);
  }
done:
  cs_device_close(device);
  return st;
}

const cli_command cli_profile = {
    .name = "profile",
    .arguments = "[MODEL.json…]",
    .summary = "Measure every operation's candidates into the cache",
    .help =
        "Measures every candidate of every operation of a network, in each layout the device "
        "likes, and keeps the measurements for later runs; what is there already is not measured "
        "again. --corun adds sets of independent convolutions, run together. --import and --export "
        "carry measurements from and to other machines with the same device; without a model "
        "nothing is measured.\v"
        "Examples:\n  convsched profile models/googlenet.json --dtype f16 --batch 32 --corun\n"
        "  convsched profile --export h100.jsonl.gz",
    .options = CLI_PLANNING | CLI_JSON | CLI_PROFILING,
    .max_models = CLI_MAX_LIST,
    .run = profile_command,
    .asks = true};
