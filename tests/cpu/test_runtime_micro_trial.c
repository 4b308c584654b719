/* `coselect` on a CPU beside a divided program that the profile promises much of: it is planned,
 * timed beside the undivided plan, and takes its place only where that says so. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "runtime/micro_batches.h"
#include "scheduler/configuration.h"

#define BATCH 8

static const char chain_json[] =
    "{\"schema\":\"convsched.graph/1\",\"name\":\"chain\","
    "\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\",16,16,16],\"dtype\":\"f32\"}],\"nodes\":["
    MODULE_CONV("a", "x", "16", "3", "1")
    MODULE_CONV("b", "a.relu", "16", "3", "1")
    "{\"name\":\"gap\",\"op\":\"GlobalAveragePool\",\"inputs\":[\"b.relu\"]}],\"outputs\":[\"gap\"]}";

#include "chain_fixture.h"

static cs_session *open_session(int micro_batches, bool frozen) {
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  options.batch = BATCH;
  options.micro_batches = micro_batches;
  options.frozen = frozen;
  options.search_steps = 3;
  assert_ok(cs_session_create(test_device, chain, &options, &session));
  return session;
}

/* Every way to run a part of this operation takes so much of what it took. */
static void scale(const cs_op_desc *desc, double factor) {
  char *signature = NULL;
  assert_ok(cs_op_signature(desc, &signature));
  const cs_op_profile *known = cs_profile_find(test_device->profile, signature);
  size_t n = known ? (size_t)known->n_records : 0; /* none in a layout without candidates */
  cs_candidate *candidates = calloc(n + 1, sizeof *candidates);
  cs_measurement *measured = calloc(n + 1, sizeof *measured);
  for (size_t i = 0; i < n; i++) {
    assert_ok(cs_candidate_copy(&known->records[i].candidate, &candidates[i]));
    measured[i] = known->records[i].measured;
    measured[i].cold_us *= factor;
    measured[i].warm_us *= factor;
    measured[i].reason = NULL;
  }
  for (size_t i = 0; i < n; i++) {
    if (!measured[i].rejected) {
      assert_ok(cs_profile_add(test_device->profile, signature, &candidates[i], &measured[i]));
    }
    cs_candidate_clear(&candidates[i]);
  }
  free(candidates);
  free(measured);
  free(signature);
}

static void scale_layout(const cs_session *halves, cs_layout layout) {
  const cs_graph *graph = halves->planned.graph;
  cs_program *program = NULL;
  cs_layout layouts[16];
  assert_true(graph->n_values <= 16);
  for (int v = 0; v < graph->n_values; v++) {
    layouts[v] = cs_graph_layout_allowed(graph, v, layout) ? layout : CS_LAYOUT_NCHW;
  }
  assert_ok(cs_program_lower_divided(graph, CS_PRECISION_F32, layouts, halves->planned.division,
                                     &program));
  for (int t = 0; t < program->n_tasks; t++) {
    if (program->tasks[t].part == 0) scale(&program->tasks[t].desc, 0.01);
  }
  cs_program_destroy(program);
}

/* Parts of half the batch, in every layout for the whole graph, seem to cost next to nothing. */
static void promise_much(void) {
  cs_session *halves = open_session(2, false);
  cs_layout available[CS_MAX_DEVICE_LAYOUTS];
  int n = test_device->backend->vtable->layouts(test_device->backend, CS_PRECISION_F32, available);
  for (int i = 0; i < n; i++) scale_layout(halves, available[i]);
  assert_verified(halves, CS_VERIFY_FULL);
  cs_session_destroy(halves);
}

static void what_is_measured_decides(void **state) {
  (void)state;
  promise_much();
  cs_session *session = open_session(0, false);
  const cs_micro_report *report = &session->micro;
  assert_true(report->considered);
  assert_int_equal(report->n_trials, 1);
  const cs_micro_trial *trial = &report->trials[0];
  assert_true(trial->measured && trial->known);
  assert_true(trial->nodes >= 2 && trial->divided_us < 0.9 * trial->whole_us);
  assert_true(trial->ratio.samples >= 9);
  /* Whatever was promised: taken where the whole interval of the measured ratio is below 1. */
  assert_int_equal(trial->taken, trial->ratio.high < 1);
  assert_int_equal(session->planned.plan->division != NULL, trial->taken);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session *again = open_session(0, true);
  assert_int_equal(again->micro.n_trials, 1);
  assert_true(again->micro.trials[0].known && !again->micro.trials[0].measured);
  assert_int_equal(again->micro.trials[0].taken, trial->taken);
  assert_same_plan(again->planned.plan, session->planned.plan);
  cs_session_destroy(again);
  cs_session_destroy(session);
}

/* The profile has the pair: what it says is planned, by the upper end of the interval. */
static void what_is_known_decides(void **state) {
  (void)state;
  cs_session *session = open_session(0, true);
  bool taken = session->micro.trials[0].taken;
  cs_session_destroy(session);
  /* The other way round. */
  cs_session *whole = open_session(1, true);
  char *signature = NULL, pair[256];
  assert_ok(cs_program_signature(whole->planned.program, true, &signature));
  snprintf(pair, sizeof pair, "%s beside micro-batches", signature);
  free(signature);
  cs_session_destroy(whole);
  const cs_op_profile *both = cs_profile_find(test_device->profile, pair);
  assert_non_null(both);
  assert_int_equal(both->n_records, 2);
  char *ids[2] = {strdup(both->records[0].candidate.id), strdup(both->records[1].candidate.id)};
  for (int i = 0; i < 2; i++) {
    bool divided = strncmp(ids[i], "divided ", 8) == 0;
    cs_candidate candidate = {.id = ids[i], .family = (char *)(uintptr_t) "schedule"};
    double us = divided == taken ? 200 : 100;
    cs_measurement measured;
    assert_ok(cs_measurement_of(&us, 1, 1, &measured));
    assert_ok(cs_profile_add(test_device->profile, pair, &candidate, &measured));
    free(ids[i]);
  }
  session = open_session(0, true);
  assert_int_equal(session->micro.trials[0].taken, !taken);
  assert_int_equal(session->planned.plan->division != NULL, !taken);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_measured_decides),
      cmocka_unit_test(what_is_known_decides),
  };
  return cmocka_run_group_tests(tests, open_chain, close_chain);
}
