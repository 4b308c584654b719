/* Measuring a cell of an experiment, as `run` measures a case; profiling a case of it. */
#include <stdlib.h>
#include <string.h>

#include "cli/experiment.h"
#include "cli/members.h"
#include "cli/run.h"

/* ---- Options ---- */

static void fill_list(const json_t *array, cli_list *out) {
  out->n = (int)json_array_size(array);
  for (int i = 0; i < out->n; i++) {
    out->items[i] = json_string_value(json_array_get(array, (size_t)i));
  }
}

/* What holds for all cells. */
static void common_options(const experiment_run *run, cli_options *out) {
  const char *verify = string(run->told, "verify");
  *out = *run->options;
  out->seed = (uint64_t)integer(run->told, "seed");
  out->samples = (int)integer(run->told, "samples");
  out->memory_limit = integer(run->told, "memory_limit");
  out->search_seconds = run->simulated ? -1 : number(run->told, "search_seconds");
  out->verify = strcmp(verify, "none") == 0   ? -1
                : strcmp(verify, "full") == 0 ? CS_VERIFY_FULL
                                              : CS_VERIFY_SAMPLE;
}

static void cell_options(const experiment_run *run, const json_t *cell, cli_options *out) {
  const json_t *families = json_object_get(run->told, "families");
  const json_t *family = json_object_get(families, string(cell, "family"));
  common_options(run, out);
  out->workspace_limit = integer(cell, "workspace_limit");
  out->streams = (int)integer(cell, "streams");
  out->partition = json_string_value(json_object_get(cell, "partition"));
  fill_list(json_object_get(family, "allow"), &out->allows);
  fill_list(json_object_get(family, "ban"), &out->bans);
}

/* ---- Outcomes ---- */

static const char *code_name(cs_code code) {
  static const char *const names[] = {
#define CS_CODE_NAME(name, exit_code, text) #name,
      CS_CODES(CS_CODE_NAME)
#undef CS_CODE_NAME
  };
  return names[code];
}

/* Consumes `failure`: what of a cell is recorded; interruptions are no outcome of a cell. */
static cs_status record_failure(cs_status failure, json_t *record) {
  if (failure == CS_OK) return CS_OK;
  if (cs_status_code(failure) == CS_CODE_CANCELLED) return failure;
  int failed =
      json_object_set_new(record, "outcome", json_string("failed")) ||
      json_object_set_new(record, "code", json_string(code_name(cs_status_code(failure)))) ||
      json_object_set_new(record, "reason", json_string(cs_status_message(failure)));
  cs_status_free(failure);
  return failed ? cs_no_memory("a record", 0) : CS_OK;
}

/* ---- A cell ---- */

static cs_status run_cell(const experiment_run *run, const cs_graph *graph, const json_t *cell,
                          json_t **out) {
  const char *policies[RUN_MAX_POLICIES];
  cli_options options;
  const json_t *named = json_object_get(cell, "policies");
  run_case one = {.options = &options,
                  .device = run->device,
                  .graph = graph,
                  .path = string(cell, "path"),
                  .batch = integer(cell, "batch"),
                  .policies = policies,
                  .simulated = run->simulated};
  *out = NULL;
  cell_options(run, cell, &options);
  for (size_t i = 0; i < json_array_size(named) && i < RUN_MAX_POLICIES; i++) {
    policies[one.n_policies++] = json_string_value(json_array_get(named, i));
  }
  cs_status st = cs_precision_parse(string(cell, "dtype"), &one.precision);
  if (st == CS_OK) st = run_do_case(&one);
  cli_end_progress();
  one.first_result_s = 0; /* of the process, not of the cell */
  if (st == CS_OK) st = run_record(&one, out);
  run_free_case(&one);
  return st;
}

/* Takes over the reference to `measured`. */
static cs_status record_run(json_t *measured, json_t *record) {
  const json_t *passed = json_object_get(json_object_get(measured, "verification"), "passed");
  int failed =
      json_is_false(passed) && json_object_set_new(record, "outcome", json_string("wrong"));
  failed = json_object_set_new(record, "run", measured) || failed;
  return failed ? cs_no_memory("a record", 0) : CS_OK;
}

cs_status experiment_measure(const experiment_run *run, const cs_graph *graph, const json_t *cell,
                             json_t **out) {
  double started = cli_now();
  json_t *measured = NULL, *coordinates = json_copy((json_t *)(uintptr_t)cell);
  if (!coordinates) return cs_no_memory("a record", 0);
  json_object_del(coordinates, "path");
  json_t *record = json_pack("{s:s, s:o, s:s, s:n, s:n, s:n}", "schema",
                             "convsched.experiment-cell/1", "cell", coordinates, "outcome",
                             run->simulated ? "predicted" : "measured", "code", "reason", "run");
  if (!record) return cs_no_memory("a record", 0);
  cs_status st = record_failure(run_cell(run, graph, cell, &measured), record);
  if (st == CS_OK && measured) st = record_run(measured, record);
  if (st == CS_OK && json_object_set_new(record, "seconds", json_real(cli_now() - started)) != 0) {
    st = cs_no_memory("a record", 0);
  }
  if (st != CS_OK) {
    json_decref(record);
    return st;
  }
  *out = record;
  return CS_OK;
}

/* ---- A case: what is profiled, and tables of it ---- */

static cs_status case_options(const experiment_run *run, const json_t *one, cli_options *options,
                              cs_session_options *out) {
  cs_precision precision;
  common_options(run, options);
  options->workspace_limit = integer(one, "workspace_limit");
  CS_RETURN_IF_ERROR(cs_precision_parse(string(one, "dtype"), &precision));
  cli_session_options(options, integer(one, "batch"), precision, "all", out);
  return CS_OK;
}

cs_status experiment_profile(const experiment_run *run, const cs_graph *graph, const json_t *one,
                             bool counters, json_t **report) {
  const json_t *wanted = json_object_get(run->told, "profile");
  cli_options options;
  cs_session_options session_options;
  cs_profile_options profile_options;
  char *text = NULL;
  *report = NULL;
  if (run->simulated || !json_is_object(wanted)) return CS_OK;
  CS_RETURN_IF_ERROR(case_options(run, one, &options, &session_options));
  cs_profile_options_init(&profile_options);
  profile_options.full = json_is_true(json_object_get(wanted, "full"));
  profile_options.corun = json_is_true(json_object_get(wanted, "corun"));
  profile_options.counters = counters;
  CS_RETURN_IF_ERROR(
      cs_profile_model(run->device, graph, &session_options, &profile_options, &text));
  cli_end_progress();
  *report = json_loads(text, 0, NULL);
  cs_string_free(text);
  return *report ? CS_OK : cs_no_memory("a report", 0);
}

static int index_of(const char *name, const char *const *names) {
  int i = 0;
  while (names[i] && strcmp(names[i], name) != 0) i++;
  return i;
}

static cs_status make_table(const experiment_run *run, const cs_graph *graph, const json_t *one,
                            const json_t *wanted, json_t **out) {
  static const char *const kinds[] = {"resources", "workspace", "complementary", NULL};
  static const char *const candidates[] = {"fastest", "pareto", "all", NULL};
  cli_options options;
  cs_session_options session_options;
  cs_report_options report_options;
  cs_report *report = NULL;
  cli_list nodes;
  char *text = NULL;
  CS_RETURN_IF_ERROR(case_options(run, one, &options, &session_options));
  cs_report_options_init(&report_options);
  fill_list(json_object_get(wanted, "nodes"), &nodes);
  report_options.kind = (cs_report_kind)index_of(string(wanted, "table"), kinds);
  report_options.candidates =
      (cs_report_candidates)index_of(string(wanted, "candidates"), candidates);
  report_options.nodes = nodes.items;
  report_options.n_nodes = nodes.n;
  report_options.paper = json_is_true(json_object_get(wanted, "paper"));
  report_options.logger = *cli_logger(run->options);
  CS_RETURN_IF_ERROR(
      cs_report_create(run->device, graph, &session_options, &report_options, &report));
  cs_status st = cs_report_format_text(report, CS_REPORT_JSON, &text);
  cs_report_destroy(report);
  CS_RETURN_IF_ERROR(st);
  *out = json_loads(text, 0, NULL);
  cs_string_free(text);
  return *out ? CS_OK : cs_no_memory("a table", 0);
}

/* A table that cannot be made is recorded with the reason: {"table", "failed"}. */
static cs_status add_table(const experiment_run *run, const cs_graph *graph, const json_t *one,
                           const json_t *wanted, json_t *tables) {
  json_t *table = NULL;
  cs_status st = make_table(run, graph, one, wanted, &table);
  if (cs_status_code(st) == CS_CODE_CANCELLED) return st;
  if (st != CS_OK) {
    table =
        json_pack("{s:s, s:s}", "table", string(wanted, "table"), "failed", cs_status_message(st));
    cs_status_free(st);
  }
  return json_array_append_new(tables, table) == 0 ? CS_OK : cs_no_memory("a table", 0);
}

cs_status experiment_case_record(const experiment_run *run, const cs_graph *graph,
                                 const json_t *one, json_t *report, cs_status failure,
                                 json_t **out) {
  size_t i;
  json_t *wanted, *tables = json_array(), *coordinates = json_copy((json_t *)(uintptr_t)one);
  if (coordinates) json_object_del(coordinates, "path");
  json_t *record =
      json_pack("{s:s, s:o, s:s, s:n, s:n, s:O?, s:o}", "schema", "convsched.experiment-profile/1",
                "case", coordinates, "outcome", run->simulated ? "predicted" : "measured", "code",
                "reason", "report", report, "tables", tables);
  cs_status st = record ? record_failure(failure, record) : cs_no_memory("a record", 0);
  json_array_foreach(json_object_get(run->told, "tables"), i, wanted) {
    if (st == CS_OK) st = add_table(run, graph, one, wanted, tables);
  }
  if (st != CS_OK) {
    json_decref(record);
    return st;
  }
  *out = record;
  return CS_OK;
}
