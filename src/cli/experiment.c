/* `convsched experiment`: the cross product of a specification's lists, measured cell by cell into
 * a file that can be gone on with, and told as a table and a page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/experiment.h"
#include "cli/members.h"
#include "commit.h"

static const char help[] =
    "Measures every cell of an experiment: the cross product of models, batches, dtypes, policies, "
    "workspace limits, families of candidates, numbers of streams and partitions that a "
    "specification (docs/experiments.md) lists. The policies of a cell are sampled in turn in one "
    "process, as by `run`. A record is appended for each cell that is done, so that the same "
    "command "
    "goes on where an interrupted one stopped. A cell that cannot be measured is recorded with the "
    "reason; the exit code is then 1.\v"
    "Examples:\n"
    "  convsched experiment experiments/policies_batch.json --dry-run\n"
    "  convsched experiment experiments/policies_batch.json --output batch.jsonl --page "
    "batch.html\n"
    "  convsched experiment experiments/policies_batch.json --output batch.jsonl --only batch=8 "
    "--time-limit 600\n"
    "  convsched experiment --from batch.jsonl --format md\n\n"
    "With --device sim:FILE times are those that the SM model predicts, and told as such.";

typedef struct experiment {
  const cli_options *options;
  json_t *told;          /* cs_experiment_json */
  json_t *cells, *cases; /* of it */
  size_t n_cells, n_cases;
  bool *chosen;      /* per cell */
  cs_graph **graphs; /* per case; shared by cases of one model */
  experiment_file file;
  experiment_run run;
  double deadline; /* seconds, as of cli_now; 0: none */
  int done_before, measured, failed, wrong, left;
} experiment;

/* ---- Before anything is measured ---- */

static cs_status read_specification(const char *path, experiment *e) {
  char *text = NULL;
  CS_RETURN_IF_ERROR(cs_experiment_json(path, &text));
  e->told = json_loads(text, 0, NULL);
  cs_string_free(text);
  if (!e->told) return cs_no_memory("an experiment", 0);
  e->cells = json_object_get(e->told, "cells");
  e->cases = json_object_get(e->told, "cases");
  e->n_cells = json_array_size(e->cells);
  e->n_cases = json_array_size(e->cases);
  e->chosen = calloc(e->n_cells, sizeof *e->chosen);
  e->graphs = calloc(e->n_cases, sizeof *e->graphs);
  if (!e->chosen || !e->graphs) return cs_no_memory("cells", e->n_cells);
  return experiment_choose(e->options, e->cells, e->chosen);
}

/* Nothing that is written may take the place of a model, nor one file that of the other. */
static cs_status check_files(const experiment *e, const char *output) {
  CS_RETURN_IF_ERROR(cli_check_kept_file("--page", e->options->page, output));
  CS_RETURN_IF_ERROR(cli_check_kept_file("--output", output, e->options->models.items[0]));
  for (size_t c = 0; c < e->n_cases; c++) {
    const char *path = string(json_array_get(e->cases, c), "path");
    CS_RETURN_IF_ERROR(cli_check_kept_file("--page", e->options->page, path));
    CS_RETURN_IF_ERROR(cli_check_kept_file("--output", output, path));
  }
  return CS_OK;
}

/* A model that does not load is found out before the long work starts. */
static cs_status load_graphs(experiment *e) {
  for (size_t c = 0; c < e->n_cases; c++) {
    const char *path = string(json_array_get(e->cases, c), "path");
    const char *before = c ? string(json_array_get(e->cases, c - 1), "path") : "";
    if (strcmp(path, before) == 0) {
      e->graphs[c] = e->graphs[c - 1];
    } else {
      CS_RETURN_IF_ERROR(cli_load_graph(path, &e->graphs[c]));
    }
  }
  return CS_OK;
}

static cs_status make_header(const experiment *e, json_t **out) {
  char started[32];
  json_t *device = NULL;
  time_t now = time(NULL);
  struct tm utc;
  CS_RETURN_IF_ERROR(cli_device_json(e->run.device, &device));
  strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  *out =
      json_pack("{s:s, s:O, s:O, s:O, s:s, s:s, s:s, s:b, s:o, s:I, s:I, s:O}", "schema",
                "convsched.experiment-head/1", "name", json_object_get(e->told, "name"), "title",
                json_object_get(e->told, "title"), "hash", json_object_get(e->told, "hash"),
                "commit", CS_COMMIT, "command", cli_command_line, "started", started, "predicted",
                e->run.simulated, "device", device, "cells", (json_int_t)e->n_cells, "cases",
                (json_int_t)(json_is_object(json_object_get(e->told, "profile")) ||
                                     json_array_size(json_object_get(e->told, "tables"))
                                 ? e->n_cases
                                 : 0),
                "spec", json_object_get(e->told, "spec"));
  return *out ? CS_OK : cs_no_memory("a header", 0);
}

static cs_status begin(experiment *e) {
  json_t *header = NULL;
  CS_RETURN_IF_ERROR(make_header(e, &header));
  cs_status st = experiment_file_begin(&e->file, header);
  json_decref(header);
  return st;
}

/* ---- Steps ---- */

static bool is_done(const experiment *e, const char *key) {
  const char *outcome = experiment_file_outcome(&e->file, key);
  return outcome && !(e->options->retry && strcmp(outcome, "failed") == 0);
}

static bool out_of_time(const experiment *e) {
  return e->deadline > 0 && cli_now() >= e->deadline;
}

/* Of what is there now, or was before. */
static void count_outcome(experiment *e, const char *key) {
  const char *outcome = experiment_file_outcome(&e->file, key);
  e->failed += strcmp(outcome, "failed") == 0;
  e->wrong += strcmp(outcome, "wrong") == 0;
}

/* Consumes the record. A device that failed gives no more cells. */
static cs_status append(experiment *e, const char *key, json_t *record) {
  cs_status st = json_object_set_new(record, "key", json_string(key)) == 0
                     ? experiment_file_append(&e->file, record)
                     : cs_no_memory("a record", 0);
  if (st == CS_OK) count_outcome(e, key);
  const char *reason = json_string_value(json_object_get(record, "reason"));
  if (st == CS_OK && reason) {
    cs_log(cli_logger(e->options), CS_LOG_WARNING, "%s: %s", key, reason);
    if (strcmp(string(record, "code"), "DEVICE") == 0) {
      st = cli_error(CS_CODE_DEVICE, "%s: %s (--retry begins again with it)", key, reason);
    }
  }
  json_decref(record);
  return st;
}

static cs_graph *graph_of(const experiment *e, const json_t *cell) {
  for (size_t c = 0; c < e->n_cases; c++) {
    if (experiment_same_case(cell, json_array_get(e->cases, c))) return e->graphs[c];
  }
  return NULL;
}

static cs_status do_cell(experiment *e, size_t c) {
  const json_t *cell = json_array_get(e->cells, c);
  char *key = NULL;
  json_t *record = NULL;
  CS_RETURN_IF_ERROR(experiment_cell_key(cell, &key));
  cs_status st = cli_check_interrupt();
  if (st == CS_OK && is_done(e, key)) {
    e->done_before++;
    count_outcome(e, key);
  } else if (st == CS_OK && out_of_time(e)) {
    e->left++;
  } else if (st == CS_OK) {
    cs_log(cli_logger(e->options), CS_LOG_INFO, "cell %zu of %zu: %s", c + 1, e->n_cells, key);
    st = experiment_measure(&e->run, graph_of(e, cell), cell, &record);
    if (st == CS_OK) {
      e->measured++;
      st = append(e, key, record);
    }
  }
  free(key);
  return st;
}

static bool case_is_chosen(const experiment *e, const json_t *one) {
  for (size_t c = 0; c < e->n_cells; c++) {
    if (e->chosen[c] && experiment_same_case(json_array_get(e->cells, c), one)) return true;
  }
  return false;
}

/* Nothing is timed once counters were on, so what is profiled is timed before the cells are, and
 * counted behind them; the record comes with what is last. */
static cs_status do_case(experiment *e, size_t c, bool last) {
  const json_t *one = json_array_get(e->cases, c);
  bool counters = json_is_true(json_object_get(json_object_get(e->told, "profile"), "counters"));
  char *key = NULL;
  json_t *report = NULL, *record = NULL;
  CS_RETURN_IF_ERROR(experiment_case_key(one, &key));
  cs_status st = cli_check_interrupt(), failure = CS_OK;
  bool done = is_done(e, key), skip = done || !case_is_chosen(e, one);
  if (last && done) count_outcome(e, key);
  if (st == CS_OK && !skip && out_of_time(e)) {
    e->left += last;
  } else if (st == CS_OK && !skip) {
    cs_log(cli_logger(e->options), CS_LOG_INFO, "%s%s", key, last && counters ? ", counters" : "");
    failure = experiment_profile(&e->run, e->graphs[c], one, last && counters, &report);
    bool interrupted = cs_status_code(failure) == CS_CODE_CANCELLED;
    if (last || interrupted) {
      st = experiment_case_record(&e->run, e->graphs[c], one, report, failure, &record);
      failure = CS_OK;
    }
    if (st == CS_OK && record) st = append(e, key, record);
  }
  cs_status_free(failure); /* of the first time; the last one tells it */
  json_decref(report);
  free(key);
  return st;
}

static cs_status do_cases(experiment *e, bool last) {
  bool wanted = json_is_object(json_object_get(e->told, "profile"));
  bool tables = json_array_size(json_object_get(e->told, "tables")) > 0;
  for (size_t c = 0; c < e->n_cases && (wanted || (last && tables)); c++) {
    CS_RETURN_IF_ERROR(do_case(e, c, last));
  }
  return CS_OK;
}

static cs_status do_all(experiment *e) {
  CS_RETURN_IF_ERROR(do_cases(e, false));
  for (size_t c = 0; c < e->n_cells; c++) {
    if (e->chosen[c]) CS_RETURN_IF_ERROR(do_cell(e, c));
  }
  return do_cases(e, true);
}

/* ---- What is told ---- */

static cs_status tell_records(const cli_options *options, const char *path) {
  cs_report *report = NULL;
  CS_RETURN_IF_ERROR(cs_experiment_table(path, &report));
  cs_status st = cli_write_report(options, report);
  cs_report_destroy(report);
  if (st != CS_OK || !options->page) return st;
  char *page = NULL;
  CS_RETURN_IF_ERROR(cs_experiment_page(path, &page));
  st = cs_text_save(options->page, page);
  cs_string_free(page);
  if (st == CS_OK) cli_tell_written(options, options->page);
  return st;
}

static void tell_counts(const experiment *e) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%s: %d %s, %d there before", e->file.path, e->measured,
                   e->run.simulated ? "predicted" : "measured", e->done_before);
  if (e->failed) cs_strbuf_printf(&text, ", %d failed", e->failed);
  if (e->left) {
    cs_strbuf_printf(&text, ", %d left (the same command goes on with them)", e->left);
  }
  cs_log(cli_logger(e->options), CS_LOG_INFO, "%s", text.data ? text.data : "");
  cs_strbuf_free(&text);
}

/* Seconds a cell: the mean of those recorded, else what searching takes alone; *known: recorded. */
static double seconds_of_cell(const experiment *e, const json_t *cell, double mean) {
  static const char *const searching[] = {"ios", "coselect"};
  size_t i;
  json_t *policy;
  double seconds = 0;
  if (mean > 0) return mean;
  json_array_foreach(json_object_get(cell, "policies"), i, policy) {
    for (int s = 0; s < 2; s++) {
      if (strcmp(json_string_value(policy), searching[s]) == 0) {
        seconds += number(e->told, "search_seconds");
      }
    }
  }
  return seconds;
}

static void list_cell(const experiment *e, size_t c, const char *key, cs_strbuf *text) {
  size_t i;
  json_t *policy;
  const char *outcome = experiment_file_outcome(&e->file, key);
  cs_strbuf_printf(text, "%-9s %s policies=", outcome ? outcome : "to do", key);
  json_array_foreach(json_object_get(json_array_get(e->cells, c), "policies"), i, policy) {
    cs_strbuf_printf(text, "%s%s", i ? "," : "", json_string_value(policy));
  }
  cs_strbuf_printf(text, "\n");
}

static cs_status list_cells(experiment *e) {
  cs_strbuf text = {0};
  double seconds = 0, mean = e->file.timed ? e->file.seconds / e->file.timed : 0;
  int todo = 0, chosen = 0;
  for (size_t c = 0; c < e->n_cells; c++) {
    char *key = NULL;
    if (!e->chosen[c]) continue;
    cs_status st = experiment_cell_key(json_array_get(e->cells, c), &key);
    if (st != CS_OK) {
      cs_strbuf_free(&text);
      return st;
    }
    list_cell(e, c, key, &text);
    chosen++;
    if (!is_done(e, key)) {
      todo++;
      seconds += seconds_of_cell(e, json_array_get(e->cells, c), mean);
    }
    free(key);
  }
  cs_strbuf_printf(&text, "%d of %zu cells, %d of them to do; ", chosen, e->n_cells, todo);
  if (mean > 0) {
    cs_strbuf_printf(&text, "about %.0f s, by those recorded.\n", seconds);
  } else if (cli_device_is_simulated(e->options)) {
    cs_strbuf_printf(&text, "nothing is searched or sampled on a simulated device.\n");
  } else {
    cs_strbuf_printf(&text, "searches take %.0f s; profiling, sampling and checking come on top.\n",
                     seconds);
  }
  return cli_write_buffer(NULL, &text);
}

/* ---- The command ---- */

static void close_experiment(experiment *e) {
  for (size_t c = 0; c < e->n_cases && e->graphs; c++) {
    if (c == 0 || e->graphs[c] != e->graphs[c - 1]) cs_graph_destroy(e->graphs[c]);
  }
  free(e->graphs);
  free(e->chosen);
  cs_device_close(e->run.device);
  experiment_file_close(&e->file);
  json_decref(e->told);
}

static cs_status measure(experiment *e, const char *output) {
  CS_RETURN_IF_ERROR(check_files(e, output));
  CS_RETURN_IF_ERROR(load_graphs(e));
  CS_RETURN_IF_ERROR(experiment_file_open(output, &e->file));
  CS_RETURN_IF_ERROR(cs_device_open(e->options->device, cli_logger(e->options), &e->run.device));
  e->run.options = e->options;
  e->run.told = e->told;
  e->run.simulated = cli_device_is_simulated(e->options);
  if (e->options->time_limit >= 0) e->deadline = cli_now() + e->options->time_limit;
  CS_RETURN_IF_ERROR(begin(e));
  cs_status st = do_all(e);
  cli_end_progress();
  tell_counts(e);
  return st;
}

static cs_status run_experiment(const cli_options *options) {
  experiment e = {.options = options, .file = {.fd = -1}};
  char name[300];
  cs_status st = read_specification(options->models.items[0], &e);
  if (st == CS_OK) snprintf(name, sizeof name, "%s.jsonl", string(e.told, "name"));
  const char *output = options->output ? options->output : name;
  if (st == CS_OK && options->dry_run) {
    st = experiment_file_read(output, &e.file);
    if (st == CS_OK) st = list_cells(&e);
  } else if (st == CS_OK) {
    st = measure(&e, output);
    if (st == CS_OK) st = tell_records(options, output);
  }
  int failed = e.failed, wrong = e.wrong;
  close_experiment(&e);
  if (st == CS_OK && failed + wrong > 0) {
    st = cli_error(CS_CODE_WRONG_RESULT,
                   "%d cells or profiles failed and %d have wrong results; the table says why",
                   failed, wrong);
  }
  return st;
}

static cs_status experiment_command(const cli_options *options) {
  if (options->from && options->models.n > 0) {
    return cli_error(CS_CODE_USAGE,
                     "--from %s: the records hold the specification, so it goes "
                     "without %s",
                     options->from, options->models.items[0]);
  }
  if (!options->from && options->models.n == 0) {
    return cli_error(CS_CODE_USAGE, "experiment: wanted SPEC.json, or --from FILE.jsonl");
  }
  CS_RETURN_IF_ERROR(cli_check_writable(options->page));
  return options->from ? tell_records(options, options->from) : run_experiment(options);
}

const cli_command cli_experiment = {
    .name = "experiment",
    .arguments = "SPEC.json",
    .summary = "Measure a cross product of models, batches, policies, limits; resumable",
    .help = help,
    .options = CLI_EXPERIMENTING,
    .min_models = 0,
    .max_models = 1,
    .run = experiment_command,
    .asks = true};
