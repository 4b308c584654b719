/* The search of `coselect`: whole schedules are measured, kept, and used again. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "scheduler/configuration.h"

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

static const cs_op_profile *schedules_of(const cs_session *session) {
  char *signature = NULL;
  cs_profile *profile = NULL;
  assert_ok(cs_program_signature(session->planned.program, true, &signature));
  assert_ok(cs_device_profile(session->device, cache_folder, &profile));
  const cs_op_profile *known = cs_profile_find(profile, signature);
  free(signature);
  return known;
}

static int confirmed(const cs_op_profile *known) {
  int n = 0;
  for (int r = 0; r < known->n_records; r++) {
    n += known->records[r].measured.samples >= CS_SCHEDULE_CONFIRMED;
  }
  return n;
}

/* Every measured schedule is in the profile; the plan is the best of the confirmed ones, is right,
 * and comes again without measuring, frozen too. */
static void test_what_is_measured_is_kept_and_used(void **state) {
  (void)state;
  cs_session *first = NULL, *again = NULL;
  cs_session_options options = coselect_options();
  assert_ok(cs_session_create(test_device, test_graph, &options, &first));
  assert_verified(first, CS_VERIFY_FULL);
  const cs_op_profile *known = schedules_of(first);
  assert_non_null(known);
  assert_true(known->complete);
  assert_in_range(confirmed(known), 2, 6); /* the best and the other policies' */
  int measured = known->n_records;
  assert_in_range(measured, 2, 6 + 5);
  const cs_record *best = NULL;
  for (int r = 0; r < known->n_records && !best; r++) {
    if (known->records[r].measured.samples >= CS_SCHEDULE_CONFIRMED) best = &known->records[r];
  }
  cs_configuration configuration;
  char *text = NULL;
  assert_ok(cs_configuration_of_plan(first->planned.plan, first->planned.choices, &configuration));
  assert_ok(cs_configuration_text(&configuration, first->planned.choices, &text));
  assert_string_equal(text, best->candidate.id);
  cs_configuration_free(&configuration);
  free(text);

  options.search_seconds = -1; /* as by default: it was searched before */
  options.search_steps = 0;
  double started = cs_now_seconds();
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_true(cs_now_seconds() - started < 5); /* far from the default of 20 s */
  assert_int_equal(schedules_of(again)->n_records, measured);
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);

  options.frozen = true;
  assert_ok(cs_session_create(test_device, test_graph, &options, &again));
  assert_same_plan(first->planned.plan, again->planned.plan);
  cs_session_destroy(again);
  cs_session_destroy(first);
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
      cmocka_unit_test(test_no_time_no_search),
      cmocka_unit_test(test_interrupted),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
