/* Merged launches as a choice of coselect: what the SM model expects of them, moves that keep
 * placements valid, and where they win and lose. */
#include <math.h>

#include "scheduler/coselect.h"
#include "scheduler/sm_schedule.h"
#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

#define UNITS 16
#define NEAR 1e-9

#define assert_near(found, wanted, within) assert_true(fabs((found) - (wanted)) <= (within))

static const cs_device_info device = {
    .name = "sixteen SMs", .backend = "cuda", .units = UNITS, .unit = H100_SM};

/* ---- Choices: one kernel each, of which an SM holds two blocks ---- */

static cs_kernel_profile kernels[512];
static int n_kernels;

static const cs_kernel_profile *kernel_of(int blocks) {
  cs_kernel_profile *kernel = &kernels[n_kernels++];
  *kernel = (cs_kernel_profile){
      .info = {
          .grid = {blocks, 1, 1}, .block = {1024, 1, 1}, .cluster = {1, 1, 1}, .registers = 32}};
  snprintf(kernel->info.name, sizeof kernel->info.name, "k%d", n_kernels);
  return kernel;
}

static void add_kernel_choice(fixture *f, int task, const char *id, double us, int blocks,
                              bool merges) {
  add_choice(f, task, us, 0);
  cs_choice *choice = &f->choices[task].choices[f->choices[task].n - 1];
  cs_candidate *candidate = (cs_candidate *)(uintptr_t)choice->candidate;
  free(candidate->id);
  candidate->id = cs_strdup(id);
  candidate->merges = merges;
  choice->kernels = kernel_of(blocks);
  choice->n_kernels = 1;
}

/* n tasks that read one input. */
static void siblings(fixture *f, int n) {
  fixture_init(f, 2 * n);
  n_kernels = 0;
  int input = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INPUT));
  for (int t = 0; t < n; t++)
    add_task(f, &input, 1, add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INTERMEDIATE)), NULL, 0);
}

static int behind(fixture *f, int task) {
  int tensor = f->program.tasks[task].output;
  int output = add_tensor(f, add_buffer(f, 1024, CS_BUFFER_INTERMEDIATE));
  return add_task(f, &tensor, 1, output, &task, 1);
}

static cs_policy_input input_of(const fixture *f, int streams) {
  cs_policy_input input = fixture_input(f, streams, 0, 0);
  input.device = &device;
  return input;
}

static cs_plan *coselected(const cs_policy_input *input) {
  cs_plan *plan = NULL;
  assert_ok(cs_plan_make(&cs_policy_coselect, input, &plan));
  return plan;
}

static int members(const cs_plan *plan) {
  int n = 0;
  for (int p = 0; p < plan->n_tasks; p++) n += plan->tasks[p].merged >= 0;
  return n;
}

/* ---- The SM model ---- */

static double alone_us(cs_sm_model *model, const cs_sm_kernel *kernel) {
  cs_sm_launch launch = {.kernel = kernel};
  cs_sm_timeline timeline;
  assert_ok(cs_sm_simulate(model, &launch, 1, 1, NULL, &timeline));
  return timeline.total_us;
}

/* What n kernels of so many blocks and such times take as one. */
static double together_us(cs_sm_model *model, int n, const int *blocks, const double *us) {
  cs_sm_kernel made[CS_MERGE_MOST], merged;
  const cs_sm_kernel *list[CS_MERGE_MOST];
  n_kernels = 0;
  for (int i = 0; i < n; i++) {
    assert_ok(cs_sm_kernel_prepare(model, &kernel_of(blocks[i])->info, NULL, us[i], &made[i]));
    assert_near(alone_us(model, &made[i]), us[i], 1e-6);
    list[i] = &made[i];
  }
  cs_sm_kernel_merge(model, list, n, &merged);
  return alone_us(model, &merged);
}

static void kernels_as_one_share_waves_and_a_gap(void **state) {
  (void)state;
  cs_sm_model *model = NULL;
  assert_ok(cs_sm_model_create(&device, NULL, &model));
  double gap = cs_sm_model_constants(model)->gap_us;
  /* An SM holds two blocks, so a wave is 32 of them. */
  const int small[] = {8, 8, 8}, full[] = {32, 32}, odd[] = {33, 31};
  const double same[] = {10, 10, 10}, unlike[] = {10, 4, 4}, waves[] = {gap + 20, gap + 10};
  assert_near(together_us(model, 1, small, same), 10, 1e-6);
  assert_near(together_us(model, 3, small, same), 10, 1e-6);      /* side by side in a wave */
  assert_near(together_us(model, 3, small, unlike), 10, 1e-6);    /* no faster than one */
  assert_near(together_us(model, 2, full, same), 20 - gap, 1e-6); /* two waves, one gap */
  /* Three waves by themselves, two together: what the second one had left is used. */
  double shared = together_us(model, 2, odd, waves);
  assert_true(shared < waves[0] + waves[1] - gap - 1 && shared >= waves[0] - 1e-6);
  cs_sm_model_destroy(model);
}

static void a_step_may_be_part_of_a_launch(void **state) {
  (void)state;
  cs_sm_model *model = NULL;
  cs_sm_operation made[3], merged;
  cs_sm_span spans[4];
  double us = 0;
  int before = 1;
  assert_ok(cs_sm_model_create(&device, NULL, &model));
  n_kernels = 0;
  for (int i = 0; i < 3; i++)
    assert_ok(cs_sm_operation_prepare(model, "test", kernel_of(8), 1, 10, &made[i]));
  const cs_sm_operation *both[] = {&made[0], &made[1]};
  assert_ok(cs_sm_operation_merge(model, both, 2, &merged));
  cs_sm_step steps[] = {{.operation = &merged},
                        {.operation = NULL},
                        {.operation = &made[2], .stream = 1, .waits = &before, .n_waits = 1}};
  assert_ok(cs_sm_schedule_simulate(model, NULL, steps, 3, spans, &us));
  assert_true(spans[0].start_us == spans[1].start_us && spans[0].end_us == spans[1].end_us);
  assert_true(spans[2].start_us >= spans[1].end_us);
  assert_true(us >= 20 - NEAR);
  steps[0].operation = NULL;
  assert_fails(cs_sm_schedule_simulate(model, NULL, steps, 3, spans, &us), CS_CODE_BAD_INPUT,
               "step 0 is part of the launch before");
  cs_sm_operation_clear(&merged);
  for (int i = 0; i < 3; i++) cs_sm_operation_clear(&made[i]);
  cs_sm_model_destroy(model);
}

/* ---- Where it wins ---- */

/* Four short siblings on one stream: the gaps in front of three of them are saved. */
static void siblings_are_merged_where_gaps_dominate(void **state) {
  (void)state;
  for (int streams = 1; streams <= 4; streams += 3) {
    fixture f;
    siblings(&f, 4);
    for (int t = 0; t < 4; t++) {
      add_kernel_choice(&f, t, "library", 3, 4, false);
      add_kernel_choice(&f, t, "one", 3.2, 4, true);
      add_kernel_choice(&f, t, "other", 3.4, 4, true);
    }
    cs_policy_input input = input_of(&f, streams);
    assert_ok(cs_sm_model_create(&device, NULL, &input.model));
    cs_plan *plan = coselected(&input);
    assert_int_equal(members(plan), 3);
    for (int p = 0; p < 4; p++) assert_string_equal(plan->tasks[p].candidate.id, "one");
    assert_near(plan->predicted_us, 3.2, 1e-6);
    cs_plan_destroy(plan);
    cs_sm_model_destroy(input.model);
    fixture_free(&f);
  }
}

/* The id that one sibling is fastest with is not the one that both have. */
static void the_shared_candidate_is_found(void **state) {
  (void)state;
  fixture f;
  siblings(&f, 2);
  add_kernel_choice(&f, 0, "one", 3, 4, true);
  add_kernel_choice(&f, 0, "two", 3.1, 4, true);
  add_kernel_choice(&f, 0, "three", 3.2, 4, true);
  add_kernel_choice(&f, 1, "four", 3, 4, true);
  add_kernel_choice(&f, 1, "five", 3.1, 4, true);
  add_kernel_choice(&f, 1, "three", 3.2, 4, true);
  cs_policy_input input = input_of(&f, 1);
  cs_plan *plan = coselected(&input);
  assert_int_equal(members(plan), 1);
  assert_string_equal(plan->tasks[0].candidate.id, "three");
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* ---- Where it loses ---- */

/* A short task that a long chain waits for, and a long one beside it: as one launch, the chain
 * would begin when the long one ends. */
static void what_would_serialise_is_not_merged(void **state) {
  (void)state;
  fixture f;
  siblings(&f, 2);
  add_kernel_choice(&f, 0, "one", 5, 4, true);
  add_kernel_choice(&f, 1, "one", 60, 4, true);
  int next = behind(&f, 0);
  add_kernel_choice(&f, next, "library", 60, 4, false);
  cs_policy_input input = input_of(&f, 2);
  cs_plan *plan = coselected(&input);
  assert_int_equal(members(plan), 0);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Nor where the kernel that merges is much slower, whatever the gaps. */
static void slow_kernels_are_not_merged(void **state) {
  (void)state;
  fixture f;
  siblings(&f, 3);
  for (int t = 0; t < 3; t++) {
    add_kernel_choice(&f, t, "library", 10, 32, false);
    add_kernel_choice(&f, t, "one", 30, 32, true);
  }
  cs_policy_input input = input_of(&f, 3);
  cs_plan *plan = coselected(&input);
  assert_int_equal(members(plan), 0);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* ---- Moves ---- */

static void random_program_that_merges(fixture *f, cs_rng *rng, int n) {
  static const char *const ids[] = {"a", "b", "c"};
  random_program(f, rng, n, 3 + below(rng, 10));
  n_kernels = 0;
  for (int t = 0; t < n; t++)
    for (int i = below(rng, 3); i < 3; i++)
      add_kernel_choice(f, t, ids[i], 5 + below(rng, 20), 4 + below(rng, 40), true);
}

static void assert_unchanged_or_valid(const cs_configuration *now, const cs_configuration *before,
                                      bool changed, const cs_policy_input *input) {
  if (!changed) assert_true(cs_configuration_equal(now, before));
  assert_true(cs_configuration_valid(now, input));
}

/* One random change; whether there was one. */
static bool one_move(cs_coselect *c, cs_configuration *now, cs_rng *rng, int *joins) {
  cs_placement *places = now->places;
  int p = below(rng, now->n), q = below(rng, now->n), tasks[] = {places[p].task, places[q].task};
  cs_placement to = places[p];
  const char *id = NULL;
  switch (below(rng, 4)) {
    case 0:
      return cs_launch_end(places, now->n, p) - cs_launch_first(places, p) > 1 &&
             cs_coselect_leave(places, now->n, p) >= 0;
    case 1:
      to.stream = below(rng, c->input->max_streams);
      to.choice = c->tasks[to.task].choices[below(rng, c->tasks[to.task].n)];
      cs_coselect_change(c, places, now->n, p, to);
      return true;
    default:
      id = p == q ? NULL : cs_coselect_common(c, tasks, 2, below(rng, 2));
      if (!id || !cs_coselect_join(c, places, now->n, p, q, id)) return false;
      ++*joins;
      return true;
  }
}

static void moves_keep_placements_valid(void **state) {
  (void)state;
  cs_rng rng;
  int joins = 0, refused = 0, most = 0;
  cs_rng_init(&rng, 11, 1);
  for (int i = 0; i < 100; i++) {
    fixture f;
    cs_coselect *c = NULL;
    cs_plan *plan = NULL;
    cs_configuration now, before;
    random_program_that_merges(&f, &rng, 4 + below(&rng, 26));
    cs_policy_input input = input_of(&f, 3);
    assert_ok(cs_coselect_create(&input, &c));
    assert_ok(cs_plan_make(&cs_policy_streams, &input, &plan));
    assert_ok(cs_configuration_of_plan(plan, f.choices, &now));
    for (int m = 0; m < 60; m++) {
      assert_ok(cs_configuration_copy(&now, &before));
      bool changed = one_move(c, &now, &rng, &joins);
      refused += !changed;
      assert_unchanged_or_valid(&now, &before, changed, &input);
      cs_configuration_free(&before);
      /* In window order it is as valid, though launches across windows come apart. */
      assert_ok(cs_coselect_window_order(c, &now, &before));
      assert_true(cs_configuration_valid(&before, &input));
      for (int p = 0; p < now.n; p++) {
        int size = p + 1 - cs_launch_first(now.places, p);
        if (size > most) most = size;
      }
      cs_configuration_free(&before);
    }
    cs_configuration_free(&now);
    cs_plan_destroy(plan);
    cs_coselect_destroy(c);
    fixture_free(&f);
  }
  print_message("%d joins, of at most %d tasks; %d moves refused\n", joins, most, refused);
  assert_true(joins > 400 && refused > 400 && most >= 4);
}

/* What the other one's tasks need is launched before the joint launch, the rest behind it. */
static void joining_moves_what_is_between(void **state) {
  (void)state;
  fixture f;
  cs_coselect *c = NULL;
  siblings(&f, 2);
  int reads_first = behind(&f, 0), reads_second = behind(&f, 1);
  for (int t = 0; t < 4; t++) add_kernel_choice(&f, t, "one", 5, 4, true);
  cs_policy_input input = input_of(&f, 2);
  assert_ok(cs_coselect_create(&input, &c));
  cs_placement places[] = {
      {.task = 0, .stream = 1}, {.task = reads_first}, {.task = 1}, {.task = reads_second}};
  assert_false(cs_coselect_join(c, places, 4, 0, 1, "one")); /* depends */
  assert_false(cs_coselect_join(c, places, 4, 0, 3, "two")); /* no such candidate */
  assert_true(cs_coselect_join(c, places, 4, 3, 0, "one"));
  const int wanted[] = {1, 0, reads_second, reads_first};
  for (int p = 0; p < 4; p++) {
    assert_int_equal(places[p].task, wanted[p]);
    assert_int_equal(places[p].joined, p == 2);
    assert_int_equal(places[p].stream, p == 1 || p == 2);
  }
  /* 1 is needed before the launch, and reads_first behind it: they cannot be one. */
  assert_false(cs_coselect_join(c, places, 4, 0, 3, "one"));
  cs_coselect_destroy(c);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_as_one_share_waves_and_a_gap),
      cmocka_unit_test(a_step_may_be_part_of_a_launch),
      cmocka_unit_test(siblings_are_merged_where_gaps_dominate),
      cmocka_unit_test(the_shared_candidate_is_found),
      cmocka_unit_test(what_would_serialise_is_not_merged),
      cmocka_unit_test(slow_kernels_are_not_merged),
      cmocka_unit_test(moves_keep_placements_valid),
      cmocka_unit_test(joining_moves_what_is_between),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
