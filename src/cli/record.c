/* `convsched.run/1`: one JSON object per (model, batch, dtype). */
#include <string.h>

#include "base/json.h"
#include "cli/run.h"
#include "commit.h"

double run_info_number(const run_contender *contender, const char *key) {
  return json_number_value(json_object_get(contender->info, key));
}

double run_latency_us(const run_case *run, const run_contender *contender) {
  return run->simulated ? contender->predicted_us : contender->stats.median;
}

double run_bound(const run_contender *contender, const char *key) {
  return json_number_value(json_object_get(json_object_get(contender->info, "bounds"), key));
}

static json_t *verification_json(const run_contender *contender) {
  const cs_verification *v = &contender->verification;
  json_t *json = json_object();
  json_object_set_new(json, "passed", json_boolean(v->passed));
  json_object_set_new(json, "nodes_checked", json_integer(v->nodes_checked));
  json_object_set_new(json, "rel_l2", cs_json_number(v->rel_l2));
  json_object_set_new(json, "max_scaled", cs_json_number(v->max_scaled));
  json_object_set_new(json, "tolerance", cs_json_number(v->tolerance));
  json_object_set_new(json, "worst_node", json_string(v->worst_node));
  json_object_set_new(json, "worst_ratio", cs_json_number(v->worst_ratio));
  json_object_set_new(json, "bitwise_equal",
                      v->bitwise_applies ? json_boolean(v->bitwise_equal) : json_null());
  json_object_set_new(json, "end_to_end", cs_json_number(v->end_to_end));
  json_object_set_new(json, "end_to_end_limit", cs_json_number(v->end_to_end_limit));
  if (!v->passed) json_object_set_new(json, "problem", json_string(v->problem));
  return json;
}

static json_t *latency_json(const run_contender *contender) {
  json_t *samples = json_array();
  for (int s = 0; s < contender->n_samples; s++) {
    json_array_append_new(samples, json_real(contender->samples[s]));
  }
  return json_pack("{s:f, s:f, s:f, s:f, s:o}", "median", contender->stats.median, "p10",
                   contender->stats.p10, "p90", contender->stats.p90, "variation",
                   contender->stats.variation, "samples", samples);
}

static json_t *policy_json(const run_case *run, const run_contender *contender) {
  json_t *json = json_object();
  json_object_set_new(json, "name", json_string(contender->policy));
  if (!run->simulated) {
    json_object_set_new(json, "latency_us", latency_json(contender));
    json_object_set_new(json, "latency_b2b_us", json_real(contender->b2b_us));
  }
  const char *copied[] = {"streams",         "kernels",       "copies",        "arena_bytes",
                          "workspace_bytes", "weights_bytes", "memory",        "prepare_s",
                          "predicted_us",    "layouts",       "tasks",         "fallbacks",
                          "comparisons",     "stages",        "micro_batches", "split"};
  for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) {
    json_t *value = json_object_get(contender->info, copied[i]);
    if (value) json_object_set(json, copied[i], value);
  }
  if (run->simulated) {
    json_object_set_new(json, "predicted", json_true());
    json_object_set_new(json, "predicted_us", json_real(contender->predicted_us));
  }
  json_object_set_new(
      json, "speedup_vs_sequential",
      json_real(run_latency_us(run, &run->contenders[0]) / run_latency_us(run, contender)));
  if (contender->pipeline) json_object_set(json, "pipeline", contender->pipeline);
  if (contender->overlap) json_object_set(json, "overlap", contender->overlap);
  if (contender->verified) {
    json_object_set_new(json, "verification", verification_json(contender));
  }
  return json;
}

static json_t *seconds_json(double seconds) {
  return seconds > 0 ? json_real(seconds) : json_null();
}

json_t *run_timings_json(const run_case *run) {
  json_t *timings = json_copy(json_object_get(run->contenders[run->n - 1].info, "timings_s"));
  double load = json_number_value(json_object_get(timings, "load")) + run->load_s;
  json_object_set_new(timings, "load", json_real(load));
  json_object_set_new(timings, "open", json_real(run->open_s));
  json_object_set_new(timings, "first_run", seconds_json(run->first_run_s));
  json_object_set_new(timings, "first_result", seconds_json(run->first_result_s));
  json_object_set_new(timings, "verify", seconds_json(run->verify_s));
  return timings;
}

cs_status run_record(const run_case *run, json_t **out) {
  json_t *device = NULL;
  CS_RETURN_IF_ERROR(cli_device_json(run->device, &device));
  const run_contender *chosen = &run->contenders[run->n - 1];
  json_t *policies = json_array();
  for (int i = 0; i < run->n; i++) {
    json_array_append_new(policies, policy_json(run, &run->contenders[i]));
  }
  json_t *record = json_pack(
      "{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:O, s:o, s:o, s:O, s:{s:b}, s:o, s:O, s:O}", "schema",
      "convsched.run/1", "model", cs_graph_name(run->graph), "batch", (json_int_t)run->batch,
      "dtype", cs_precision_name(run->precision), "commit", CS_COMMIT, "command", cli_command_line,
      "seed", (json_int_t)run->options->seed, "graph_hash",
      json_object_get(chosen->info, "graph_hash"), "device", device, "policies", policies, "bounds",
      json_object_get(chosen->info, "bounds") ? json_object_get(chosen->info, "bounds")
                                              : json_null(),
      "verification", "passed", run->passed, "timings_s", run_timings_json(run), "passes",
      json_object_get(chosen->info, "passes"), "measured",
      json_object_get(chosen->info, "measured"));
  if (!record) return cs_no_memory("a record", 0);
  if (run->ablation) json_object_set(record, "ablation", run->ablation);
  if (run->simulated) json_object_set_new(record, "predicted", json_true());
  if (run->options->verify < 0 || run->simulated) {
    json_object_set_new(record, "verification", json_null());
  }
  *out = record;
  return CS_OK;
}
