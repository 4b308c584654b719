/* What candidates, streams and order each bring: the session's plan and another policy's, mixed,
 * and timed in turn as whole schedules. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/planning.h"
#include "runtime/search.h"

typedef enum variant { BASE, CANDIDATES, SCHEDULE, BOTH, N_VARIANTS } variant;
static const char *const names[N_VARIANTS] = {"base", "candidates", "streams_and_order", "both"};

static void take_candidates(const cs_configuration *from, cs_configuration *into) {
  for (int p = 0; p < into->n; p++) {
    for (int q = 0; q < from->n; q++) {
      if (from->places[q].task == into->places[p].task) {
        into->places[p].choice = from->places[q].choice;
      }
    }
  }
}

static cs_status make_variants(const cs_configuration *base, const cs_configuration *own,
                               cs_configuration out[N_VARIANTS]) {
  CS_RETURN_IF_ERROR(cs_configuration_copy(base, &out[BASE]));
  CS_RETURN_IF_ERROR(cs_configuration_copy(base, &out[CANDIDATES]));
  CS_RETURN_IF_ERROR(cs_configuration_copy(own, &out[SCHEDULE]));
  CS_RETURN_IF_ERROR(cs_configuration_copy(own, &out[BOTH]));
  take_candidates(own, &out[CANDIDATES]);
  take_candidates(base, &out[SCHEDULE]);
  return CS_OK;
}

/* Each variant beside the base. */
static cs_status measure(cs_bench *bench, const cs_configuration *variants, double us[N_VARIANTS],
                         double gain[N_VARIANTS]) {
  cs_bench_pairs pairs;
  CS_RETURN_IF_ERROR(cs_bench_set(bench, CS_BENCH_BEST, &variants[BASE]));
  for (int v = 0; v < N_VARIANTS; v++) {
    CS_RETURN_IF_ERROR(
        cs_annotate(cs_bench_set(bench, CS_BENCH_TRIAL, &variants[v]), "%s: ", names[v]));
    CS_RETURN_IF_ERROR(cs_bench_compare(bench, CS_BENCH_SAMPLES, &pairs));
    us[v] = pairs.trial_us;
    gain[v] = 1 / pairs.ratio;
  }
  return CS_OK;
}

static cs_status base_of(const cs_policy_input *input, const char *policy, cs_configuration *out) {
  cs_plan *plan = NULL;
  const cs_policy *found = cs_policy_find(policy);
  if (!found) return cs_error(CS_CODE_USAGE, "unknown policy \"%s\" to compare with", policy);
  CS_RETURN_IF_ERROR(cs_plan_make(found, input, &plan));
  cs_status st = cs_configuration_of_plan(plan, input->choices, out);
  cs_plan_destroy(plan);
  return st;
}

static cs_status to_text(const char *policy, const double us[N_VARIANTS],
                         const double gain[N_VARIANTS], char **out) {
  json_t *root = json_pack("{s:s, s:i}", "base", policy, "samples", CS_BENCH_SAMPLES);
  json_t *list = json_array();
  for (int v = 0; v < N_VARIANTS; v++) {
    json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", names[v], "latency_us", us[v],
                                          "speedup_vs_base", gain[v]));
  }
  json_object_set_new(root, "variants", list);
  *out = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
  json_decref(root);
  return *out ? CS_OK : cs_no_memory("an ablation", 0);
}

cs_status cs_session_ablate(cs_session *session, const char *policy, char **json) {
  cs_status st = CS_OK;
  cs_policy_input input;
  cs_configuration base = {0}, own = {0}, variants[N_VARIANTS] = {{0}};
  cs_bench *bench = NULL;
  double us[N_VARIANTS], gain[N_VARIANTS];
  *json = NULL;
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "cs_session_ablate"));
  if (!session->planned.choices) {
    return cs_error(CS_CODE_USAGE, "a loaded plan is run without the profile: nothing to ablate");
  }
  input = cs_planning_input(session);
  CS_TRY(st, base_of(&input, policy, &base), done);
  CS_TRY(st, cs_configuration_of_plan(session->planned.plan, input.choices, &own), done);
  CS_TRY(st, make_variants(&base, &own, variants), done);
  CS_TRY(st, cs_bench_create(session, &input, &bench), done);
  CS_TRY(st, measure(bench, variants, us, gain), done);
  st = to_text(policy, us, gain, json);
done:
  cs_bench_destroy(bench);
  cs_configuration_free(&base);
  cs_configuration_free(&own);
  for (int v = 0; v < N_VARIANTS; v++) cs_configuration_free(&variants[v]);
  return st;
}
