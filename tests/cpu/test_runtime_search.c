/* The search of `coselect`: whole schedules are measured, kept, and used again. */
#define DEVICE_SPEC "cpu"
#include "cpu/search_fixture.h"

#include "runtime/planning.h"

static cs_session_options coselect_options(void) {
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = "coselect";
  options.cache_dir = cache_folder;
  options.batch = 2;
  options.search_seconds = 5;
  options.search_steps = 6;
  return options;
}

/* Whether it has all cores for one stream, which is found faster when the machine is busy. */
static bool has_one_stream(const cs_session *session) {
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  const cs_plan *plan = session->planned.plan;
  int most = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    int threads = plan->tasks[p].candidate.threads;
    if (threads > most) most = threads;
  }
  return most > cs_threads_per_stream(info, info->default_streams);
}

static void assert_is_planned(const cs_session *session, const char *wanted) {
  cs_configuration configuration;
  char *text = NULL;
  assert_ok(
      cs_configuration_of_plan(session->planned.plan, session->planned.choices, &configuration));
  assert_ok(cs_configuration_text(&configuration, session->planned.choices, &text));
  assert_string_equal(text, wanted);
  cs_configuration_free(&configuration);
  free(text);
}

/* Every measured schedule is in the profile; the plan is the best of the confirmed ones (or one
 * stream), is right, and comes again without measuring, frozen too. */
static void test_what_is_measured_is_kept_and_used(void **state) {
  (void)state;
  cs_session *first = NULL, *again = NULL, *streams = NULL;
  cs_session_options options = coselect_options();
  assert_ok(cs_session_create(test_device, test_graph, &options, &first));
  assert_verified(first, CS_VERIFY_FULL);
  options.policy = "streams";
  assert_ok(cs_session_create(test_device, test_graph, &options, &streams));
  options.policy = "coselect";
  const cs_op_profile *known = schedules_of(streams);
  assert_non_null(known);
  assert_true(known->complete);
  assert_in_range(confirmed(known), 2, 6); /* the best and the other policies' */
  int measured = known->n_records;
  assert_in_range(measured, 2, 6 + 5);
  const cs_record *best = NULL;
  for (int r = 0; r < known->n_records && !best; r++) {
    if (known->records[r].measured.samples >= CS_SCHEDULE_CONFIRMED) best = &known->records[r];
  }
  if (!has_one_stream(first)) assert_is_planned(first, best->candidate.id);

  options.search_seconds = -1; /* as by default: it was searched before */
  options.search_steps = 0;
  double started = cs_now_seconds();
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_true(cs_now_seconds() - started < 5); /* far from the default of 20 s */
  assert_int_equal(schedules_of(streams)->n_records, measured);
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);

  options.frozen = true;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);
  cs_session_destroy(first);
  cs_session_destroy(streams);
}

/* No measuring: the model's choice, or the times alone where there is no model. */
static void test_no_time_no_search(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = coselect_options();
  options.batch = 3;
  options.search_seconds = 0;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_null(schedules_of(session));
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

/* An ablation has a search of candidates of its own, which confirms nothing: the plan stays. */
static void test_an_ablation_searches_candidates(void **state) {
  (void)state;
  cs_session *session = NULL, *again = NULL;
  char *json = NULL;
  cs_session_options options = coselect_options();
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_ok(cs_session_ablate(session, "streams", &json));
  assert_non_null(strstr(json, "\"candidates_alone\""));
  cs_string_free(json);
  options.search_seconds = -1;
  options.search_steps = 0;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_same_plan(session->planned.plan, again->planned.plan);
  cs_session_destroy(session);
  cs_session_destroy(again);
}

static bool now(void *user) {
  return --*(int *)user < 0;
}

static void test_interrupted(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = coselect_options();
  int calls = 0;
  options.cancelled = now;
  options.cancelled_user = &calls;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_CANCELLED,
                "interrupted");
  assert_null(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_measured_is_kept_and_used),
      cmocka_unit_test(test_an_ablation_searches_candidates),
      cmocka_unit_test(test_no_time_no_search),
      cmocka_unit_test(test_interrupted),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
