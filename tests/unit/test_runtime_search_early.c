/* Which early beginnings, and hints of the launch order, a measured search tries: against a
 * stand-in for the measuring, by made-up gains of launches that begin late. No device needed. */
#include "runtime/search_state.h"
#include "unit/scheduler_fixture.h"

#define TASKS 9
#define MOST_TRIES 200

/* ---- The stand-in ---- */

static double gain[TASKS];      /* of each task that begins late, microseconds */
static double hint_gain;        /* of hints */
static int late_of[MOST_TRIES]; /* tasks that were late in each that was tried */
static int n_tried;

static double cost(const cs_configuration *configuration) {
  double us = 100;
  for (int p = 0; p < configuration->n; p++) {
    if (configuration->places[p].late) us -= gain[configuration->places[p].task];
  }
  return configuration->hints ? us - hint_gain : us;
}

cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) {
  assert_true(cs_configuration_valid(configuration, s->input));
  assert_false(cs_configuration_equal(configuration, &s->best));
  assert_true(n_tried < MOST_TRIES);
  late_of[n_tried] = 0;
  for (int p = 0; p < TASKS; p++) late_of[n_tried] += configuration->places[p].late;
  n_tried++;
  if (cost(configuration) > s->best_us - 0.2) return CS_OK;
  s->best_us = cost(configuration);
  s->accepted++;
  cs_configuration_free(&s->best);
  return cs_configuration_copy(configuration, &s->best);
}

bool cs_search_is_over(const cs_search *s) {
  return s->round < 0;
}

/* ---- Nine independent tasks: every third of a library, the others of two own kernels; two of the
 * second one, 7 and 8, may be one launch ---- */

static const char *const ids[3] = {"library", "own.a", "own.b"};

typedef struct subject {
  fixture f;
  cs_policy_input input;
  cs_search search;
} subject;

static int kind_of(int task) {
  return task == 7 ? 2 : task % 3;
}

static void make(subject *s) {
  memset(s, 0, sizeof *s);
  memset(gain, 0, sizeof gain);
  n_tried = 0;
  fixture_init(&s->f, 2 * TASKS);
  for (int t = 0; t < TASKS; t++) {
    simple_task(&s->f, NULL, 0, 10);
    cs_choice *choice = &s->f.choices[t].choices[0];
    cs_candidate *candidate = (cs_candidate *)(uintptr_t)choice->candidate;
    free(candidate->id);
    assert_ok(cs_strdup_to(ids[kind_of(t)], &candidate->id));
    candidate->merges = kind_of(t) == 2;
    choice->early = kind_of(t) > 0;
  }
  s->input = fixture_input(&s->f, 2, 0, 0);
  s->search.input = &s->input;
  assert_ok(cs_configuration_make(TASKS, &s->search.best));
  for (int t = 0; t < TASKS; t++) s->search.best.places[t].task = t;
  s->search.best_us = cost(&s->search.best);
}

static void destroy(subject *s) {
  cs_configuration_free(&s->search.best);
  fixture_free(&s->f);
}

static bool is_late(const subject *s, int task) {
  return s->search.best.places[cs_configuration_position(&s->search.best, task)].late;
}

/* ---- Tests ---- */

/* Launches that cannot begin early now are late with all others: another candidate of theirs is,
 * then. */
static void all_at_once_is_one_trial(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) gain[t] = 1;
  assert_ok(cs_search_early_at_all(&s.search));
  assert_int_equal(n_tried, 2); /* and back */
  assert_int_equal(late_of[0], TASKS);
  assert_int_equal(late_of[1], 0);
  assert_int_equal(s.search.accepted, 1);
  for (int t = 0; t < TASKS; t++) assert_true(is_late(&s, t));
  destroy(&s);
}

static void what_is_slower_is_not_taken(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) gain[t] = -1;
  assert_ok(cs_search_early_at_all(&s.search));
  assert_ok(cs_search_early(&s.search));
  assert_int_equal(s.search.accepted, 0);
  for (int t = 0; t < TASKS; t++) assert_false(is_late(&s, t));
  /* Of six: two candidates, then 2 of three, 3 of two and 6 of one. */
  assert_int_equal(n_tried, 1 + 2 + 2 + 3 + 6);
  destroy(&s);
}

/* From a best with none early: those that gain by beginning early do, all others stay. */
static void late_launches_begin_early_where_that_gains(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) s.search.best.places[t].late = true;
  for (int t = 0; t < TASKS; t++) gain[t] = t == 4 ? -2 : 0.5;
  s.search.best_us = cost(&s.search.best);
  assert_ok(cs_search_early_at_all(&s.search));
  assert_ok(cs_search_early(&s.search));
  for (int t = 0; t < TASKS; t++) assert_int_equal(is_late(&s, t), t != 4);
  destroy(&s);
}

/* Gains that are too small one by one. */
static void launches_of_one_candidate_come_together(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) gain[t] = kind_of(t) == 2 ? 0.1 : -0.5;
  assert_ok(cs_search_early_at_all(&s.search));
  assert_int_equal(s.search.accepted, 0);
  assert_ok(cs_search_early(&s.search));
  assert_int_equal(s.search.accepted, 1);
  for (int t = 0; t < TASKS; t++) assert_int_equal(is_late(&s, t), kind_of(t) == 2);
  destroy(&s);
}

static void single_launches_are_reached(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) gain[t] = t == 5 ? 1 : -2;
  assert_ok(cs_search_early(&s.search));
  assert_int_equal(s.search.accepted, 1);
  for (int t = 0; t < TASKS; t++) assert_int_equal(is_late(&s, t), t == 5);
  destroy(&s);
}

/* Its tasks begin as one, and count as one. */
static void a_merged_launch_is_one(void **state) {
  (void)state;
  subject s;
  make(&s);
  for (int t = 0; t < TASKS; t++) gain[t] = t == 8 ? 3 : t == 7 ? -1 : -5;
  s.search.best.places[8].joined = true;
  assert_true(cs_configuration_valid(&s.search.best, &s.input));
  assert_ok(cs_search_early(&s.search));
  for (int t = 0; t < TASKS; t++) assert_int_equal(is_late(&s, t), t >= 7);
  destroy(&s);
}

/* On where they gain, off again where they do not any more; not where nothing could have them. */
static void hints_are_tried_on_and_off(void **state) {
  (void)state;
  subject s;
  make(&s);
  hint_gain = 1;
  assert_ok(cs_search_hints(&s.search)); /* a device that has none */
  s.input.hints = true;
  assert_ok(cs_search_hints(&s.search)); /* one stream */
  assert_int_equal(n_tried, 0);
  for (int t = 0; t < TASKS; t++) s.search.best.places[t].stream = t % 2;
  assert_ok(cs_search_hints(&s.search));
  assert_int_equal(n_tried, 1);
  assert_true(s.search.best.hints);
  hint_gain = -1;
  s.search.best_us = cost(&s.search.best);
  assert_ok(cs_search_hints(&s.search));
  assert_false(s.search.best.hints);
  assert_ok(cs_search_hints(&s.search)); /* rejected */
  assert_false(s.search.best.hints);
  assert_int_equal(n_tried, 3);
  for (int t = 0; t < TASKS; t++) s.f.choices[t].choices[0].early = true; /* they wait themselves */
  assert_ok(cs_search_hints(&s.search));
  for (int t = 0; t < TASKS; t++) s.f.choices[t].choices[0].early = false;
  s.search.best.n_parts = 1;
  assert_ok(cs_search_hints(&s.search));
  assert_int_equal(n_tried, 3);
  hint_gain = 0;
  destroy(&s);
}

static void nothing_is_tried_where_nothing_can_begin_early(void **state) {
  (void)state;
  subject s;
  make(&s);
  s.search.round = -1; /* over */
  assert_ok(cs_search_early_at_all(&s.search));
  assert_ok(cs_search_early(&s.search));
  s.search.round = 0;
  s.search.best.n_parts = 1; /* a device that is split */
  assert_ok(cs_search_early_at_all(&s.search));
  assert_ok(cs_search_early(&s.search));
  s.search.best.n_parts = 0;
  for (int t = 0; t < TASKS; t++) s.f.choices[t].choices[0].early = false; /* one that cannot */
  assert_ok(cs_search_early_at_all(&s.search));
  assert_ok(cs_search_early(&s.search));
  assert_int_equal(n_tried, 0);
  destroy(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_at_once_is_one_trial),
      cmocka_unit_test(what_is_slower_is_not_taken),
      cmocka_unit_test(late_launches_begin_early_where_that_gains),
      cmocka_unit_test(launches_of_one_candidate_come_together),
      cmocka_unit_test(single_launches_are_reached),
      cmocka_unit_test(a_merged_launch_is_one),
      cmocka_unit_test(hints_are_tried_on_and_off),
      cmocka_unit_test(nothing_is_tried_where_nothing_can_begin_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
