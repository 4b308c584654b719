/* What `coselect` found out about micro-batches, and how the plan's nodes are divided, as JSON. */
#include <jansson.h>

#include "runtime/micro_batches.h"
#include "scheduler/plan_division.h"

static json_t *ratio_json(const cs_ratio *ratio) {
  if (ratio->samples == 0) return json_null();
  return json_pack("{s:f, s:f, s:f, s:i}", "median", ratio->median, "low", ratio->low, "high",
                   ratio->high, "samples", ratio->samples);
}

static json_t *trial_json(const cs_micro_trial *trial) {
  double gain = trial->whole_us - trial->divided_us;
  return json_pack("{s:i, s:i, s:i, s:f, s:f, s:{s:f, s:f}, s:o, s:b, s:b}", "streams",
                   trial->streams, "nodes", trial->nodes, "tasks", trial->tasks, "undivided_us",
                   trial->whole_us, "expected_us", trial->divided_us, "gain_us", "candidates",
                   gain - trial->cache_us, "cache", trial->cache_us, "ratio",
                   ratio_json(&trial->ratio), "known", trial->known, "taken", trial->taken);
}

static json_t *trials_json(const cs_micro_report *report) {
  json_t *trials = json_array();
  for (int i = 0; i < report->n_trials; i++) {
    json_array_append_new(trials, trial_json(&report->trials[i]));
  }
  return trials;
}

cs_status cs_micro_report_json(const cs_session *session, json_t *into) {
  const cs_micro_report *report = &session->micro;
  const cs_division *division = session->planned.plan->division;
  if (!report->considered && !division) return CS_OK;
  json_t *divided = division ? cs_division_json(division, session->planned.graph) : json_array();
  json_t *told =
      json_pack("{s:o, s:o, s:i, s:f}", "divided", divided, "trials", trials_json(report),
                "operations", report->operations, "seconds", report->seconds);
  if (!told || json_object_set_new(into, "micro_batches", told) != 0) {
    return cs_no_memory("micro-batches as JSON", 0);
  }
  return CS_OK;
}
