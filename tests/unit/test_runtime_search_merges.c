/* Which merged launches a measured search tries: against a stand-in for the measuring, which takes
 * what the model expects to be faster. No device needed. */
#include <math.h>

#include "runtime/search_state.h"
#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

#define MOST_TRIES 200

static const cs_device_info device = {
    .name = "sixteen SMs", .backend = "cuda", .units = 16, .unit = H100_SM};

/* ---- The stand-in ---- */

static struct {
  int launches[MOST_TRIES], joined[MOST_TRIES]; /* of each configuration that was tried */
  int n;
} tried;

static double predicted(cs_search *s, const cs_configuration *configuration) {
  double us = 0;
  assert_ok(cs_coselect_predict(s->model, configuration->places, configuration->n, &us));
  return us;
}

cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) {
  assert_true(cs_configuration_valid(configuration, s->input));
  if (cs_configuration_equal(configuration, &s->best)) return CS_OK;
  assert_true(tried.n < MOST_TRIES);
  int joined = 0;
  for (int p = 0; p < configuration->n; p++) joined += configuration->places[p].joined;
  tried.joined[tried.n] = joined;
  tried.launches[tried.n++] = configuration->n - joined;
  if (predicted(s, configuration) > 0.999 * s->best_us) return CS_OK;
  s->best_us = predicted(s, configuration);
  s->accepted++;
  cs_configuration_free(&s->best);
  return cs_configuration_copy(configuration, &s->best);
}

bool cs_search_is_over(const cs_search *s) {
  return s->round < 0;
}

/* ---- Tasks that read one input, and one that reads what the first of them wrote ---- */

typedef struct subject {
  fixture f;
  cs_policy_input input;
  cs_kernel_profile kernels[16];
  int n_kernels;
  cs_search search;
} subject;

static void add_kernel_choice(subject *s, int task, const char *id, double us, bool merges) {
  cs_kernel_profile *kernel = &s->kernels[s->n_kernels++];
  *kernel = (cs_kernel_profile){.info = {.grid = {4, 1, 1},
                                         .block = {256, 1, 1},
                                         .cluster = {1, 1, 1},
                                         .registers = 64,
                                         .name = "k"}};
  add_choice(&s->f, task, us, 0);
  cs_choice *choice = &s->f.choices[task].choices[s->f.choices[task].n - 1];
  cs_candidate *candidate = (cs_candidate *)(uintptr_t)choice->candidate;
  free(candidate->id);
  candidate->id = cs_strdup(id);
  candidate->merges = merges;
  choice->kernels = kernel;
  choice->n_kernels = 1;
}

/* `slow`: how much slower the kernel that merges is. A long reader makes every change of the others
 * a small one, which the model lets pass. */
static void make(subject *s, double slow, double reader_us, int streams) {
  cs_plan *plan = NULL;
  memset(s, 0, sizeof *s);
  memset(&tried, 0, sizeof tried);
  fixture_init(&s->f, 6);
  int input = add_tensor(&s->f, add_buffer(&s->f, 1024, CS_BUFFER_INPUT)), first = 0;
  for (int t = 0; t < 3; t++) {
    int output = add_tensor(&s->f, add_buffer(&s->f, 1024, CS_BUFFER_INTERMEDIATE));
    add_task(&s->f, &input, 1, output, NULL, 0);
    add_kernel_choice(s, t, "library", 4, false);
    add_kernel_choice(s, t, "merging", 4 * slow, true);
  }
  int output = add_tensor(&s->f, add_buffer(&s->f, 1024, CS_BUFFER_INTERMEDIATE));
  add_task(&s->f, &s->f.program.tasks[0].output, 1, output, &first, 1);
  add_kernel_choice(s, 3, "merging", reader_us, true);
  s->input = fixture_input(&s->f, streams, 0, 0);
  s->input.device = &device;
  s->search.input = &s->input;
  assert_ok(cs_coselect_create(&s->input, &s->search.model));
  assert_int_equal(s->search.model->windows.n, 1);
  assert_ok(cs_plan_make(&cs_policy_sequential, &s->input, &plan));
  assert_ok(cs_configuration_of_plan(plan, s->f.choices, &s->search.best));
  cs_plan_destroy(plan);
  s->search.best_us = predicted(&s->search, &s->search.best);
}

static void destroy(subject *s) {
  cs_coselect_destroy(s->search.model);
  cs_configuration_free(&s->search.best);
  fixture_free(&s->f);
}

/* Four launches become two; the reader cannot be merged with what it reads. */
static void siblings_come_first_and_win(void **state) {
  (void)state;
  subject s;
  make(&s, 1.05, 4, 1);
  assert_ok(cs_search_merges(&s.search));
  assert_int_equal(tried.joined[0], 2); /* all three of one input at once */
  assert_int_equal(s.search.accepted, 1);
  for (int p = 0; p < 4; p++) {
    const cs_placement *place = &s.search.best.places[p];
    bool sibling = place->task < 3;
    assert_int_equal(place->joined, sibling && p > 0);
    if (sibling)
      assert_string_equal(s.f.choices[place->task].choices[place->choice].candidate->id, "merging");
  }
  destroy(&s);
}

static void what_is_merged_to_no_use_comes_apart(void **state) {
  (void)state;
  subject s;
  make(&s, 3, 4, 1);
  const int tasks[] = {0, 1, 2};
  assert_true(cs_coselect_join_tasks(s.search.model, s.search.best.places, 4, tasks, 3, "merging"));
  s.search.best_us = predicted(&s.search, &s.search.best) * 4; /* worse than the model expects */
  assert_ok(cs_search_merges(&s.search));
  for (int i = 0; i < tried.n; i++) assert_true(tried.launches[i] >= 2);
  assert_true(s.search.accepted > 0);
  destroy(&s);
}

static void nothing_is_tried_when_it_is_over(void **state) {
  (void)state;
  subject s;
  make(&s, 1.05, 4, 1);
  s.search.round = -1;
  assert_ok(cs_search_merges(&s.search));
  assert_int_equal(tried.n, 0);
  destroy(&s);
}

/* Moves of what is merged: candidates and streams change for all of a launch. */
static void other_moves_keep_launches(void **state) {
  (void)state;
  subject s;
  make(&s, 1.05, 1000, 2);
  const int tasks[] = {0, 1, 2};
  assert_true(cs_coselect_join_tasks(s.search.model, s.search.best.places, 4, tasks, 3, "merging"));
  s.search.best_us = 0; /* nothing is taken */
  assert_ok(cs_search_streams(&s.search));
  assert_ok(cs_search_order(&s.search));
  assert_ok(cs_search_candidates(&s.search));
  assert_ok(cs_search_pairs(&s.search));
  int whole = 0, apart = 0;
  for (int i = 0; i < tried.n; i++) {
    whole += tried.joined[i] == 2;
    apart += tried.joined[i] < 2;
  }
  assert_true(whole > 0 && apart > 0);
  destroy(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(siblings_come_first_and_win),
      cmocka_unit_test(what_is_merged_to_no_use_comes_apart),
      cmocka_unit_test(nothing_is_tried_when_it_is_over),
      cmocka_unit_test(other_moves_keep_launches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
