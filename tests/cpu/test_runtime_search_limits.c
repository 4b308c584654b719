/* The search of `coselect` within limits, beside other searches, and where the device is full. */
#define DEVICE_SPEC "cpu"
#include "cpu/search_fixture.h"

#include "runtime/planning.h"
#include "runtime/search_state.h"

static cs_session_options coselect_options(int64_t batch) {
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = "coselect";
  options.cache_dir = cache_folder;
  options.batch = batch;
  options.search_seconds = 5;
  options.search_steps = 6;
  return options;
}

static cs_session *open_session(const cs_session_options *options) {
  cs_session *session = NULL;
  assert_ok(cs_session_create(test_device, test_graph, options, &session));
  return session;
}

/* A limit that no policy's plan holds without being made smaller. */
static void test_a_memory_limit_is_searched_within(void **state) {
  (void)state;
  int64_t least = 0;
  cs_session *session = NULL;
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  session = open_session(&options);
  cs_policy_input input = cs_planning_input(session);
  assert_ok(cs_plan_least_memory(&input, &least));
  cs_session_destroy(session);

  options.search_seconds = 5;
  options.memory_limit = least;
  session = open_session(&options);
  assert_in_range(session->planned.plan->arena_bytes, 1, least);
  assert_verified(session, CS_VERIFY_FULL);
  assert_true(schedules_of(session)->n_records > 0);
  assert_false(schedules_of(session)->complete); /* what has no limit is still to be searched */
  cs_session_destroy(session);

  options.memory_limit = least / 2;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "reads and writes takes"); /* before anything is measured */
  options.frozen = true;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "the smallest possible is");
}

/* What was pinned says nothing of a run without pins. */
static void test_a_pinned_search_is_none_of_the_whole(void **state) {
  (void)state;
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  cs_session *session = open_session(&options);
  const cs_task_choices *choices = &session->planned.choices[0];
  char pin[512];
  snprintf(pin, sizeof pin, "%s=%s", session->planned.program->tasks[0].name,
           choices->choices[choices->n - 1].candidate->id);
  cs_session_destroy(session);

  const char *pins[] = {pin};
  options.pins = pins;
  options.n_pins = 1;
  options.search_seconds = -1;
  session = open_session(&options);
  int measured = schedules_of(session)->n_records;
  cs_session_destroy(session);
  session = open_session(&options); /* the same again: searched already */
  assert_int_equal(schedules_of(session)->n_records, measured);
  assert_false(schedules_of(session)->complete);
  cs_session_destroy(session);

  options.n_pins = 0;
  session = open_session(&options);
  assert_true(schedules_of(session)->n_records > measured);
  assert_true(schedules_of(session)->complete);
  cs_session_destroy(session);
}

#define PLANTED_WORKSPACE (1 << 20)

/* Not every processor has a candidate with a workspace for these operations: the slowest of the
 * first task that has several is recorded as one. */
static void plant_workspace(const cs_session_options *options) {
  char *signature = NULL;
  cs_session *session = open_session(options);
  const cs_task_choices *choices = session->planned.choices;
  int t = 0;
  while (choices[t].n < 2) t++;
  const cs_choice *slowest = &choices[t].choices[choices[t].n - 1];
  cs_candidate candidate = *slowest->candidate;
  candidate.workspace_bytes = PLANTED_WORKSPACE;
  cs_measurement measured = {
      .cold_us = slowest->cold_us, .warm_us = slowest->warm_us, .samples = 5};
  assert_ok(cs_op_signature(&session->planned.program->tasks[t].desc, &signature));
  assert_ok(cs_profile_add(session->device->profile, signature, &candidate, &measured));
  free(signature);
  cs_session_destroy(session);
}

/* The task and choice with most workspace: of all choices. */
static int64_t take_most_workspace(const cs_policy_input *input, cs_configuration *into) {
  cs_placement *taker = NULL;
  int64_t most = 0;
  for (int p = 0; p < into->n; p++) {
    const cs_task_choices *choices = &input->choices[into->places[p].task];
    for (int i = 0; i < choices->n; i++) {
      if (choices->choices[i].candidate->workspace_bytes <= most) continue;
      most = choices->choices[i].candidate->workspace_bytes;
      taker = &into->places[p];
      taker->choice = i;
    }
  }
  assert_non_null(taker);
  return most;
}

/* Where the workspace limit exchanges a candidate, the record is of what ran: what is planned from
 * it without a limit takes what was recorded. */
static void test_a_record_is_of_what_ran(void **state) {
  (void)state;
  const double samples[] = {0.01, 0.01, 0.01};
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  plant_workspace(&options);
  cs_session *session = open_session(&options);
  cs_policy_input input = cs_planning_input(session), free_input = input;
  cs_configuration wanted, recorded;
  cs_plan *plan = NULL;
  bool valid = false;
  cs_search s = {.session = session,
                 .input = &input,
                 .profile = session->device->profile,
                 .signature = "Schedule of a test"};
  assert_ok(cs_configuration_of_plan(session->planned.plan, input.choices, &wanted));
  input.workspace_limit = take_most_workspace(&input, &wanted) - 1;
  assert_ok(cs_bench_create(session, &input, 1, &s.bench));
  assert_ok(cs_bench_set(s.bench, CS_BENCH_TRIAL, &wanted));
  assert_ok(cs_search_record(&s, CS_BENCH_TRIAL, samples, 3));
  const cs_op_profile *known = cs_profile_find(s.profile, s.signature);
  assert_int_equal(known->n_records, 1);
  const cs_candidate *kept = &known->records[0].candidate;
  assert_in_range(kept->workspace_bytes, 0, input.workspace_limit);
  free_input.workspace_limit = 0;
  assert_ok(cs_configuration_parse(kept->id, &free_input, &recorded, &valid));
  assert_true(valid);
  assert_ok(cs_configuration_plan(&recorded, "coselect", &free_input, &plan));
  assert_int_equal(plan->workspace_peak, kept->workspace_bytes);
  cs_plan_destroy(plan);
  cs_configuration_free(&recorded);
  cs_configuration_free(&wanted);
  cs_bench_destroy(s.bench);
  cs_session_destroy(session);
}

/* ---- Interrupted ---- */

static bool after(void *user) {
  return --*(int *)user < 0;
}

static void test_an_interrupted_search_keeps_what_was_confirmed(void **state) {
  (void)state;
  cs_session_options options = coselect_options(2);
  cs_session *session = open_session(&options), *again = NULL;
  int before = confirmed(schedules_of(session));
  assert_true(before > 0);
  for (int calls = 0; calls < 8; calls++) {
    int left = calls;
    options.cancelled = after;
    options.cancelled_user = &left;
    assert_status(cs_session_create(test_device, test_graph, &options, &again), CS_CODE_CANCELLED,
                  "interrupted");
    assert_int_equal(confirmed(schedules_of(session)), before);
  }
  cs_session_destroy(session);
}

/* The fastest that an interrupted search has seen is measured again by the next one. */
static void test_the_next_search_goes_on_from_unconfirmed_ones(void **state) {
  (void)state;
  cs_session_options options = coselect_options(2);
  options.policy = "streams";
  cs_session *session = open_session(&options);
  cs_configuration slow;
  char *text = NULL, *signature = signature_of(session);
  cs_task_choices *choices = session->planned.choices;
  assert_ok(cs_configuration_of_plan(session->planned.plan, choices, &slow));
  for (int p = 0; p < slow.n; p++) slow.places[p].choice = choices[slow.places[p].task].n - 1;
  assert_ok(cs_configuration_text(&slow, choices, &text));
  cs_candidate candidate = {.id = text, .family = (char *)(uintptr_t) "schedule"};
  cs_measurement seen = {
      .cold_us = 0.01, .warm_us = 0.01, .p10_us = 0.01, .p90_us = 0.01, .samples = 5};
  assert_ok(cs_profile_add(session->device->profile, signature, &candidate, &seen));
  cs_configuration_free(&slow);

  options.policy = "coselect";
  cs_session *next = open_session(&options);
  const cs_record *record = cs_op_profile_record(schedules_of(next), text);
  assert_non_null(record);
  assert_true(record->measured.cold_us > 0.01);
  free(text);
  free(signature);
  cs_session_destroy(next);
  cs_session_destroy(session);
}

/* ---- A full device ---- */

static const cs_backend_vtable *real;
static int refusals; /* of the next allocations */

static cs_status refuse(cs_backend *backend, int64_t bytes, void **out) {
  if (refusals == 0) return real->allocate(backend, bytes, out);
  refusals--;
  return cs_error(CS_CODE_NO_MEMORY, "the device is full");
}

/* Puts a vtable whose allocations are refused when told so. */
static void plant(cs_backend_vtable *faulty) {
  real = test_device->backend->vtable;
  *faulty = *real;
  faulty->allocate = refuse;
  test_device->backend->vtable = faulty;
}

static void test_weights_that_did_not_fit_are_not_taken_for_there(void **state) {
  (void)state;
  cs_backend_vtable faulty;
  cs_bench *bench = NULL;
  cs_configuration own;
  cs_bench_pairs pairs;
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  cs_session *session = open_session(&options);
  cs_policy_input input = cs_planning_input(session);
  assert_ok(cs_configuration_of_plan(session->planned.plan, input.choices, &own));
  plant(&faulty);
  assert_ok(cs_bench_create(session, &input, 1, &bench));
  refusals = 1;
  assert_status(cs_bench_set(bench, CS_BENCH_TRIAL, &own), CS_CODE_NO_MEMORY, "full");
  assert_ok(cs_bench_set(bench, CS_BENCH_BEST, &own));
  assert_ok(cs_bench_set(bench, CS_BENCH_TRIAL, &own));
  assert_ok(cs_bench_compare(bench, 2, &pairs));
  assert_true(pairs.best[1] > 0 && pairs.trial[1] > 0);
  cs_bench_destroy(bench);
  test_device->backend->vtable = real;
  cs_configuration_free(&own);
  cs_session_destroy(session);
}

static void test_no_room_no_search(void **state) {
  (void)state;
  cs_backend_vtable faulty;
  int policies = 0;
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  cs_session_destroy(open_session(&options)); /* operations are measured */
  options.search_seconds = 5;
  (void)cs_policy_all(&policies);
  plant(&faulty);
  refusals = policies - 1; /* each of the others', which the search would begin with */
  cs_session *session = open_session(&options);
  assert_int_equal(refusals, 0);
  assert_null(schedules_of(session));
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
  test_device->backend->vtable = real;
}

/* ---- A profile that grows ---- */

/* Records of an operation move when more of it is measured, as by a session with other threads; a
 * session's choices stay. */
static void test_choices_stay_while_more_is_measured(void **state) {
  (void)state;
  char *signature = NULL, *json = NULL, first[512], id[32];
  cs_session_options options = coselect_options(2);
  options.search_seconds = 0;
  cs_session *session = open_session(&options);
  const cs_task_choices *choices = &session->planned.choices[0];
  assert_ok(cs_op_signature(&session->planned.program->tasks[0].desc, &signature));
  snprintf(first, sizeof first, "%s", choices->choices[0].candidate->id);
  for (int i = 0; i < 100; i++) {
    snprintf(id, sizeof id, "planted%d", i);
    cs_candidate candidate = {.id = id, .family = (char *)(uintptr_t) "test", .threads = 77};
    cs_measurement measured = {.cold_us = 0.01, .warm_us = 0.01, .samples = 5};
    assert_ok(cs_profile_add(session->device->profile, signature, &candidate, &measured));
  }
  assert_string_equal(choices->choices[0].candidate->id, first);
  assert_ok(cs_session_ablate(session, "streams", &json));
  static const char *const told[] = {"base", "candidates", "order", "streams_and_order", "both"};
  for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
    snprintf(id, sizeof id, "\"name\":\"%s\"", told[i]);
    assert_non_null(strstr(json, id));
  }
  assert_null(
      strstr(json, "merge")); /* no candidate of a CPU merges, so there is nothing to tell */
  assert_null(strstr(json, "\"all\""));
  cs_string_free(json);
  free(signature);
  cs_session_destroy(session);
}

/* ---- A drifting clock ---- */

static double clock_us;

/* Every schedule takes the same, but the clock slows down all the time. */
static cs_status slow_down(cs_schedule *schedule, int n, double *us) {
  (void)schedule;
  (void)n;
  clock_us *= 1.01;
  *us = clock_us;
  return CS_OK;
}

/* Whatever is measured second looks slower, so what the search began with is best, and stays so
 * though the others were recorded earlier, at a faster clock. */
static void test_the_winner_is_planned_whatever_the_clock_does(void **state) {
  (void)state;
  cs_backend_vtable faulty;
  cs_session_options options = coselect_options(4);
  options.search_seconds = 0;
  cs_session_destroy(open_session(&options)); /* operations are measured */
  options.search_seconds = 5;
  plant(&faulty);
  faulty.schedule_latency = slow_down;
  clock_us = 1;
  cs_session *session = open_session(&options);
  test_device->backend->vtable = real;
  const cs_op_profile *known = schedules_of(session);
  assert_true(confirmed(known) > 1);
  assert_int_equal(session->planned.plan->n_streams, 1); /* as `sequential`, where it begins */
  cs_session_destroy(session);
}

/* Two schedules that were confirmed on a machine that was faster then: a search that ends with
 * another one has timed both, so that what it ends with is what is planned. */
static void test_records_of_a_faster_clock_are_timed_again(void **state) {
  (void)state;
  char *ids[2] = {NULL};
  cs_session_options options = coselect_options(2);
  cs_session *session = open_session(&options);
  const cs_op_profile *known = schedules_of(session);
  int n = 0;
  for (int r = known->n_records - 1; r >= 0 && n < 2; r--) {
    if (known->records[r].measured.rejected) continue;
    ids[n] = strdup(known->records[r].candidate.id);
    assert_non_null(ids[n++]);
  }
  assert_int_equal(n, 2);
  char *signature = signature_of(session);
  for (int i = 0; i < 2; i++) {
    cs_candidate candidate = {.id = ids[i], .family = (char *)(uintptr_t) "schedule"};
    cs_measurement measured = {.cold_us = 0.01 + 0.001 * i, .warm_us = 0.01, .samples = 40};
    assert_ok(cs_profile_add(session->device->profile, signature, &candidate, &measured));
    free(ids[i]);
  }
  free(signature);
  cs_session_destroy(session);
  session = open_session(&options);
  known = schedules_of(session);
  for (int r = 0; r < known->n_records; r++) {
    const cs_measurement *measured = &known->records[r].measured;
    if (measured->samples >= CS_SCHEDULE_CONFIRMED) assert_true(measured->cold_us > 1);
  }
  cs_session_destroy(session);
}

/* The first one wants that nothing was searched yet, the third that nothing was to the end. */
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_room_no_search),
      cmocka_unit_test(test_weights_that_did_not_fit_are_not_taken_for_there),
      cmocka_unit_test(test_a_memory_limit_is_searched_within),
      cmocka_unit_test(test_a_pinned_search_is_none_of_the_whole),
      cmocka_unit_test(test_a_record_is_of_what_ran),
      cmocka_unit_test(test_an_interrupted_search_keeps_what_was_confirmed),
      cmocka_unit_test(test_the_next_search_goes_on_from_unconfirmed_ones),
      cmocka_unit_test(test_choices_stay_while_more_is_measured),
      cmocka_unit_test(test_the_winner_is_planned_whatever_the_clock_does),
      cmocka_unit_test(test_records_of_a_faster_clock_are_timed_again),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
