/* Early beginnings by measuring, in the search of `coselect` and in other policies' plans, up to
 * the plan: on a CPU that is told that its kernels can begin early, and whose schedules take
 * made-up times. */
#define DEVICE_SPEC "cpu"
#include "cpu/search_fixture.h"

#include <jansson.h>

#define ALL_EARLY_US 1000
#define HINTS_US (-15) /* what launch-order hints add */

/* ---- The backend: the CPU's, but for what it tells of early beginnings and of times ---- */

static const cs_backend_vtable *cpu;
static cs_backend_vtable told;
static double late_us[2]; /* what a late launch adds: of a task r…, of any other */

static struct {
  const cs_schedule *schedule;
  double us;
} known[64]; /* schedules that are there */

static bool all_begin_early(const cs_backend *backend, const cs_candidate *candidate) {
  (void)backend, (void)candidate;
  return true;
}

static cs_status create(cs_backend *backend, const cs_launch *launches, int n,
                        const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  double us = ALL_EARLY_US + (streams->hints ? HINTS_US : 0);
  int free_one = 0;
  for (int i = 0; i < n; i++) {
    if (launches[i].late) us += late_us[launches[i].name[0] != 'r'];
  }
  cs_status st = cpu->schedule_create(backend, launches, n, streams, use_graph, out);
  if (st != CS_OK) return st;
  while (known[free_one].schedule) free_one++;
  assert_in_range(free_one, 0, sizeof known / sizeof known[0] - 1);
  known[free_one].schedule = *out;
  known[free_one].us = us;
  return CS_OK;
}

static int find(const cs_schedule *schedule) {
  int i = 0;
  while (known[i].schedule != schedule) i++;
  return i;
}

static void destroy(cs_schedule *schedule) {
  known[find(schedule)].schedule = NULL;
  cpu->schedule_destroy(schedule);
}

static cs_status latency(cs_schedule *schedule, int count, double *us) {
  for (int i = 0; i < count; i++) us[i] = known[find(schedule)].us;
  return CS_OK;
}

static void tell(double late_r_us, double late_other_us) {
  cpu = test_device->backend->vtable;
  told = *cpu;
  told.begins_early = all_begin_early;
  told.schedule_create = create;
  told.schedule_destroy = destroy;
  told.schedule_latency = latency;
  test_device->backend->vtable = &told;
  late_us[0] = late_r_us;
  late_us[1] = late_other_us;
}

static void tell_no_more(void) {
  test_device->backend->vtable = cpu;
}

/* steps 0: without measuring; −1: by what was measured before. */
static cs_session *open_by(const char *policy, int64_t batch, int steps) {
  cs_session *session = NULL;
  cs_session_options options;
  cs_session_options_init(&options);
  options.policy = policy;
  options.cache_dir = cache_folder;
  options.batch = batch;
  options.search_seconds = steps > 0 ? 60 : steps;
  options.search_steps = steps < 0 ? 0 : steps;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  return session;
}

static cs_session *open_session(int64_t batch, int steps) {
  return open_by("coselect", batch, steps);
}

/* ---- What is planned ---- */

/* Late: the tasks r… if so, and all others if so. */
static void assert_late(const cs_session *session, bool r, bool others) {
  const cs_planned *planned = &session->planned;
  for (int p = 0; p < planned->plan->n_tasks; p++) {
    const char *name = planned->program->tasks[planned->plan->tasks[p].task].name;
    bool wanted = name[0] == 'r' ? r : others;
    if (planned->plan->tasks[p].late != wanted)
      fail_msg("%s is %slate", name, wanted ? "not " : "");
  }
}

/* Two launches gain, the others lose: these two are found, kept in the profile and taken again, and
 * a later search, too short to find them, begins with them. */
static void what_gains_is_planned_and_kept(void **state) {
  (void)state;
  tell(-20, 10);
  cs_session *session = open_session(1, 250);
  assert_late(session, true, false);
  assert_verified(session, CS_VERIFY_FULL);
  char *json = NULL;
  assert_ok(cs_session_plan_json(session, &json));
  assert_non_null(strstr(json, "\"early\": false"));
  cs_string_free(json);
  cs_session_destroy(session);
  session = open_session(1, -1); /* by the profile alone */
  assert_late(session, true, false);
  cs_session_destroy(session);
  session = open_session(1, 6);
  assert_late(session, true, false);
  cs_session_destroy(session);
  tell_no_more();
}

static void what_loses_is_not_planned(void **state) {
  (void)state;
  tell(5, 5);
  cs_session *session = open_session(2, 60);
  assert_late(session, false, false);
  cs_session_destroy(session);
  tell_no_more();
}

/* Where it gains for all, a search of a few schedules finds it. */
static void all_at_once_comes_early(void **state) {
  (void)state;
  tell(-10, -10);
  cs_session *session = open_session(3, 12);
  assert_late(session, true, true);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
  tell_no_more();
}

/* Policies that do not search begin early with all launches or none; what is known is not measured
 * again, and what may not be measured begins early. */
static void other_policies_plan_the_faster_of_two_ways(void **state) {
  (void)state;
  tell(-10, -10);
  cs_session *session = open_by("streams", 4, 0);
  assert_late(session, false, false);
  cs_session_destroy(session);
  for (int again = 0; again < 2; again++) {
    session = open_by("streams", 4, again ? 0 : 5);
    assert_late(session, true, true);
    assert_verified(session, CS_VERIFY_FULL);
    cs_session_destroy(session);
    late_us[0] = late_us[1] = 10;
  }
  session = open_by("sequential", 4, 5);
  assert_late(session, false, false);
  cs_session_destroy(session);
  tell_no_more();
}

/* ---- The ablation ---- */

static double latency_of(const json_t *ablation, const char *name) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(ablation, "variants"), i, row) {
    if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) {
      return json_number_value(json_object_get(row, "latency_us"));
    }
  }
  return -1;
}

static json_t *ablate(cs_session *session) {
  char *text = NULL;
  session->settings.options.search_seconds = 0; /* no search of candidates */
  assert_ok(cs_session_ablate(session, "streams", &text));
  json_t *ablation = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(ablation);
  return ablation;
}

static void the_ablation_tells_of_it(void **state) {
  (void)state;
  tell(-20, 10);
  cs_session *session = open_session(1, -1);
  int n = session->planned.plan->n_tasks;
  json_t *ablation = ablate(session);
  assert_float_equal(latency_of(ablation, "all"), ALL_EARLY_US - 40, 0.01);
  assert_float_equal(latency_of(ablation, "both"), ALL_EARLY_US, 0.01);
  assert_float_equal(latency_of(ablation, "early_everywhere"), ALL_EARLY_US, 0.01);
  assert_float_equal(latency_of(ablation, "early_nowhere"),
                     (float)(ALL_EARLY_US - 40 + 10 * (n - 2)), 0.01);
  assert_float_equal(latency_of(ablation, "no_hints"), -1, 0);
  json_decref(ablation);
  session->planned.plan->hints = true; /* as if they had been found */
  ablation = ablate(session);
  assert_float_equal(latency_of(ablation, "all"), ALL_EARLY_US - 40 + HINTS_US, 0.01);
  assert_float_equal(latency_of(ablation, "no_hints"), ALL_EARLY_US - 40, 0.01);
  json_decref(ablation);
  cs_session_destroy(session);
  tell_no_more();
  session = open_session(2, 0); /* on a device where nothing begins early */
  assert_late(session, false, false);
  ablation = ablate(session);
  assert_float_equal(latency_of(ablation, "early_everywhere"), -1, 0);
  assert_float_equal(latency_of(ablation, "early_nowhere"), -1, 0);
  assert_true(latency_of(ablation, "both") > 0);
  json_decref(ablation);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_gains_is_planned_and_kept),
      cmocka_unit_test(what_loses_is_not_planned),
      cmocka_unit_test(all_at_once_comes_early),
      cmocka_unit_test(other_policies_plan_the_faster_of_two_ways),
      cmocka_unit_test(the_ablation_tells_of_it),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
