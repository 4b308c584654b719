/* From what a search begins again, and which of what its descents found it ends with: against a
 * stand-in for the measuring, which takes sums of made-up times. No device needed. */
#include "runtime/search_state.h"
#include "unit/scheduler_fixture.h"

/* ---- The stand-in: candidates' times in program order, and a factor for each number of streams
 * ----
 */

static const cs_policy_input *input;
static double streams_factor[4]; /* by the number of streams, less one */
static cs_configuration slots[CS_BENCH_SLOTS];
static int recorded;

static double cost(const cs_configuration *c) {
  double us = 0;
  for (int p = 0; p < c->n; p++) {
    us += input->choices[c->places[p].task].choices[c->places[p].choice].cold_us;
  }
  return us * streams_factor[cs_configuration_streams(c) - 1];
}

cs_status cs_search_set_trial(cs_search *s, const cs_configuration *configuration, bool *fits) {
  (void)s;
  *fits = true;
  cs_configuration_free(&slots[CS_BENCH_TRIAL]);
  return cs_configuration_copy(configuration, &slots[CS_BENCH_TRIAL]);
}

cs_status cs_bench_compare(cs_bench *bench, int n, cs_bench_pairs *out) {
  (void)bench;
  *out = (cs_bench_pairs){
      .best_us = cost(&slots[CS_BENCH_BEST]), .trial_us = cost(&slots[CS_BENCH_TRIAL]), .n = n};
  out->ratio = out->trial_us / out->best_us;
  return CS_OK;
}

void cs_bench_swap(cs_bench *bench) {
  (void)bench;
  cs_configuration trial = slots[CS_BENCH_TRIAL];
  slots[CS_BENCH_TRIAL] = slots[CS_BENCH_BEST];
  slots[CS_BENCH_BEST] = trial;
}

cs_status cs_bench_configuration(const cs_bench *bench, cs_bench_slot slot, cs_configuration *out) {
  (void)bench;
  return cs_configuration_copy(&slots[slot], out);
}

cs_status cs_search_accept(cs_search *s) {
  cs_bench_swap(NULL);
  cs_configuration_free(&s->best);
  return cs_configuration_copy(&slots[CS_BENCH_BEST], &s->best);
}

cs_status cs_search_record(cs_search *s, cs_bench_slot slot, const double *samples, int n) {
  (void)s, (void)slot, (void)samples, (void)n;
  recorded++;
  return CS_OK;
}

bool cs_search_is_over(const cs_search *s) {
  return s->round < 0;
}

/* ---- Three tasks that depend on nothing, each with a slow and a fast candidate ---- */

typedef struct subject {
  fixture f;
  cs_policy_input input;
  cs_configuration starts[4]; /* on one, two, three and one stream, slow candidates */
  cs_search search;
} subject;

static cs_configuration spread(int n_streams, int choice) {
  cs_configuration c = {.n = 3};
  c.places = cs_calloc(3, sizeof *c.places);
  assert_non_null(c.places);
  for (int t = 0; t < 3; t++) {
    c.places[t] = (cs_placement){.task = t, .stream = t % n_streams, .choice = choice};
  }
  return c;
}

static void make(subject *s) {
  memset(s, 0, sizeof *s);
  memset(slots, 0, sizeof slots);
  recorded = 0;
  fixture_init(&s->f, 6);
  for (int t = 0; t < 3; t++) {
    simple_task(&s->f, NULL, 0, 20);
    add_choice(&s->f, t, 10, 0);
  }
  s->input = fixture_input(&s->f, 4, 0, 0);
  input = &s->input;
  s->search.input = &s->input;
  for (int i = 0; i < 4; i++) s->starts[i] = spread(i < 3 ? i + 1 : 1, 0);
  s->search.made = spread(4 - 1, 0);
  s->search.best = spread(2, 1); /* the fast ones on two streams */
  assert_ok(cs_configuration_copy(&s->search.best, &slots[CS_BENCH_BEST]));
  streams_factor[0] = 1.0, streams_factor[1] = 0.9, streams_factor[2] = 0.95;
  streams_factor[3] = 1.0;
}

static void destroy(subject *s) {
  for (int i = 0; i < 4; i++) cs_configuration_free(&s->starts[i]);
  for (int i = 0; i < CS_BENCH_SLOTS; i++) cs_configuration_free(&slots[i]);
  cs_configuration_free(&s->search.best);
  cs_configuration_free(&s->search.made);
  cs_configuration_free(&s->search.champion);
  fixture_free(&s->f);
}

static int streams_of_best(const subject *s) {
  return cs_configuration_streams(&s->search.best);
}

static bool has_fast_candidates(const subject *s) {
  for (int p = 0; p < 3; p++) {
    if (s->search.best.places[p].choice != 1) return false;
  }
  return true;
}

/* starts[1] is what `streams` makes; where that is the best itself the model's is next. */
static void the_schedule_of_streams_comes_first(void **state) {
  (void)state;
  subject s;
  bool begun = false;
  make(&s);
  cs_configuration_free(&s.starts[1]);
  s.starts[1] = spread(1, 0);
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_true(begun);
  assert_int_equal(streams_of_best(&s), 1);
  assert_true(has_fast_candidates(&s));
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_true(begun);
  assert_int_equal(streams_of_best(&s), 3);
  destroy(&s);
}

static void the_models_schedule_with_the_bests_candidates_comes_next(void **state) {
  (void)state;
  subject s;
  bool begun = false;
  make(&s);
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_true(begun);
  assert_int_equal(streams_of_best(&s), 3);
  assert_true(has_fast_candidates(&s));
  assert_true(cs_configuration_equal(&slots[CS_BENCH_BEST], &s.search.best));
  assert_int_equal(cs_configuration_streams(&s.search.champion), 2);
  destroy(&s);
}

/* Which launches begin early is the best's, as the candidates are. */
static void launches_begin_as_the_bests_do(void **state) {
  (void)state;
  subject s;
  bool begun = false;
  make(&s);
  s.search.best.places[1].late = true;
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_true(begun);
  for (int p = 0; p < 3; p++) {
    const cs_placement *place = &s.search.best.places[p];
    assert_int_equal(place->late, place->task == 1);
  }
  destroy(&s);
}

/* starts[3] and what is the best already (starts[1], starts[0] is not asked for) begin nothing. */
static void every_schedule_is_begun_from_once_at_most(void **state) {
  (void)state;
  subject s;
  bool begun = true;
  int times = 0;
  make(&s);
  for (; begun && times < 10; times++) {
    assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  }
  assert_false(begun);
  /* The model's and starts[2] (three streams), starts[3] (one). */
  assert_int_equal(times - 1, 3);
  assert_int_equal(recorded, 3);
  assert_ok(cs_search_settle(&s.search));
  assert_int_equal(streams_of_best(&s), 2);
  destroy(&s);
}

static void what_is_far_slower_is_left(void **state) {
  (void)state;
  subject s;
  bool begun = true;
  make(&s);
  streams_factor[0] = streams_factor[2] = 0.9 * 1.2;
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_false(begun);
  assert_int_equal(streams_of_best(&s), 2);
  assert_int_equal(s.search.champion.n, 0);
  destroy(&s);
}

static void the_faster_of_best_and_champion_stays(void **state) {
  (void)state;
  for (int wins = 0; wins < 2; wins++) {
    subject s;
    bool begun = false;
    make(&s);
    assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
    assert_true(begun);
    if (wins) streams_factor[2] = 0.5; /* the descent found something */
    assert_ok(cs_search_settle(&s.search));
    assert_int_equal(streams_of_best(&s), wins ? 3 : 2);
    assert_int_equal(s.search.champion.n, 0);
    assert_true(cs_configuration_equal(&slots[CS_BENCH_BEST], &s.search.best));
    destroy(&s);
  }
}

static void nothing_begins_when_it_is_over(void **state) {
  (void)state;
  subject s;
  bool begun = true;
  make(&s);
  s.search.round = -1;
  assert_ok(cs_search_restart(&s.search, s.starts, 4, &begun));
  assert_false(begun);
  assert_int_equal(recorded, 0);
  destroy(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_schedule_of_streams_comes_first),
      cmocka_unit_test(the_models_schedule_with_the_bests_candidates_comes_next),
      cmocka_unit_test(launches_begin_as_the_bests_do),
      cmocka_unit_test(every_schedule_is_begun_from_once_at_most),
      cmocka_unit_test(what_is_far_slower_is_left),
      cmocka_unit_test(the_faster_of_best_and_champion_stays),
      cmocka_unit_test(nothing_begins_when_it_is_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
