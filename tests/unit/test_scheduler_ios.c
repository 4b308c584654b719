/* The ios policy: its dynamic program against trying everything, its limits, its barriers, and
 * what a stage costs. */
#include <math.h>

#include "scheduler/ios.h"
#include "unit/scheduler_fixture.h"

/* ---- Stage costs for tests: any number that depends on the whole stage ---- */

static uint32_t set_of(const cs_stage *stage) {
  uint32_t set = 0;
  for (int i = 0; i < stage->n; i++) set |= UINT32_C(1) << stage->tasks[i];
  return set;
}

#define MERGED 0.6 /* of what a stage costs otherwise */

static double cost_of_set(uint32_t set) {
  uint32_t mixed = (set ^ set >> 15) * UINT32_C(2246822519);
  return 1 + (double)((mixed ^ mixed >> 13) % 1000) * __builtin_popcount(set) / 500;
}

static cs_status odd_cost(void *user, const cs_stage *stage, double *us) {
  int *calls = user;
  ++*calls;
  uint32_t set = set_of(stage);
  *us = cost_of_set(set) * (stage->merged ? MERGED : 1);
  return CS_OK;
}

/* ---- Trying everything: front to back, parts by merging labels ---- */

typedef struct brute {
  const cs_program *program;
  int n, group_tasks, groups;
  bool merges;              /* stages may be merged as some_merge says */
  double least_us[1 << 10]; /* by what has run already */
} brute;

static bool is_allowed(const brute *b, uint32_t done, uint32_t set) {
  int label[10], size[10] = {0}, n_groups = 0;
  for (int t = 0; t < b->n; t++) label[t] = t;
  for (int t = 0; t < b->n; t++) {
    if (!(set >> t & 1)) continue;
    for (int i = 0; i < b->program->tasks[t].n_preds; i++) {
      int u = b->program->tasks[t].preds[i];
      if (!((done | set) >> u & 1)) return false;
      if (!(set >> u & 1) || label[u] == label[t]) continue;
      int from = label[u], to = label[t];
      for (int v = 0; v < b->n; v++)
        if (label[v] == from) label[v] = to;
    }
  }
  for (int t = 0; t < b->n; t++)
    if (set >> t & 1) n_groups += size[label[t]]++ == 0;
  for (int t = 0; t < b->n; t++)
    if (size[t] > b->group_tasks) return false;
  return n_groups <= b->groups;
}

/* Independent tasks of even numbers can be merged. */
static const char *some_merge(void *user, const int *tasks, int n) {
  (void)user;
  for (int i = 0; i < n; i++)
    if (tasks[i] % 2) return NULL;
  return "merging";
}

static bool may_merge(const brute *b, uint32_t done, uint32_t set) {
  int n = __builtin_popcount(set);
  for (int t = 0; t < b->n; t++) {
    for (int i = 0; (set >> t & 1) && i < b->program->tasks[t].n_preds; i++)
      if (!(done >> b->program->tasks[t].preds[i] & 1)) return false;
  }
  return b->merges && n >= 2 && n <= CS_MERGE_MOST && !(set & UINT32_C(0xAAAAAAAA));
}

static double cost_of_stage(const brute *b, uint32_t done, uint32_t set) {
  double us = is_allowed(b, done, set) ? cost_of_set(set) : INFINITY;
  return may_merge(b, done, set) ? fmin(us, MERGED * cost_of_set(set)) : us;
}

static double try_everything(brute *b) {
  uint32_t all = (UINT32_C(1) << b->n) - 1;
  for (uint32_t done = all + 1; done-- > 0;) {
    b->least_us[done] = done == all ? 0 : INFINITY;
    uint32_t left = all & ~done;
    for (uint32_t set = left; set; set = (set - 1) & left)
      b->least_us[done] =
          fmin(b->least_us[done], cost_of_stage(b, done, set) + b->least_us[done | set]);
  }
  return b->least_us[0];
}

static void fill_window(const fixture *f, int *tasks, cs_ios_window *out) {
  *out = (cs_ios_window){.n = f->program.n_tasks, .tasks = tasks};
  for (int t = 0; t < out->n; t++) {
    tasks[t] = t;
    for (int i = 0; i < f->program.tasks[t].n_preds; i++) {
      int u = f->program.tasks[t].preds[i];
      out->preds[t] |= UINT32_C(1) << u;
      out->succs[u] |= UINT32_C(1) << t;
    }
  }
}

static void stages_cost_the_least(void **state) {
  (void)state;
  cs_rng rng;
  int n_merged = 0;
  cs_rng_init(&rng, 31, 1);
  for (int i = 0; i < 800; i++) {
    fixture f;
    static brute b;
    cs_ios_window window;
    uint32_t stages[CS_IOS_MOST_TASKS], done = 0;
    const char *merged[CS_IOS_MOST_TASKS];
    int tasks[10], n_stages, calls = 0;
    bool solved;
    double us = 0;
    random_tasks(&f, &rng, 1 + below(&rng, 9));
    b = (brute){.program = &f.program,
                .n = f.program.n_tasks,
                .group_tasks = 1 + below(&rng, 4),
                .groups = 1 + below(&rng, 4),
                .merges = i >= 400};
    fill_window(&f, tasks, &window);
    cs_ios_options options = {
        b.group_tasks, b.groups, odd_cost, &calls, b.merges ? some_merge : NULL, NULL};
    assert_ok(cs_ios_solve(&window, &options, stages, merged, &n_stages, &solved));
    assert_true(solved);
    for (int k = 0; k < n_stages; k++) {
      assert_true(merged[k] ? may_merge(&b, done, stages[k]) : is_allowed(&b, done, stages[k]));
      us += cost_of_set(stages[k]) * (merged[k] ? MERGED : 1);
      done |= stages[k];
      n_merged += merged[k] != NULL;
    }
    assert_int_equal(done, (UINT32_C(1) << b.n) - 1);
    assert_float_equal(us, try_everything(&b), 1e-6);
    fixture_free(&f);
  }
  print_message("%d merged stages\n", n_merged);
  assert_true(n_merged > 50);
}

static cs_status unit_cost(void *user, const cs_stage *stage, double *us) {
  (void)user;
  *us = stage->n;
  return CS_OK;
}

/* Where every division costs the same the fewest stages are taken. */
static void of_equal_costs_the_fewest_stages_win(void **state) {
  (void)state;
  fixture f;
  cs_ios_window window;
  uint32_t stages[CS_IOS_MOST_TASKS];
  int tasks[12], n_stages;
  bool solved;
  fixture_init(&f, 12);
  for (int t = 0; t < 12; t++) { /* two chains of six */
    int pred = t - 2;
    task_behind(&f, &pred, t >= 2, 1);
  }
  fill_window(&f, tasks, &window);
  cs_ios_options options = {3, 2, unit_cost, NULL, NULL, NULL};
  assert_ok(cs_ios_solve(&window, &options, stages, NULL, &n_stages, &solved));
  assert_true(solved && n_stages == 2);
  assert_true(stages[0] == 0x3f && stages[1] == 0xfc0);
  fixture_free(&f);
}

/* ---- Limits of the work ---- */

static void too_much_work_is_given_up(void **state) {
  (void)state;
  fixture f;
  cs_ios_window window;
  uint32_t stages[CS_IOS_MOST_TASKS];
  int tasks[24], n_stages, calls = 0;
  bool solved = true;
  fixture_init(&f, 24);
  for (int t = 0; t < 24; t++) task_behind(&f, NULL, 0, 1);
  fill_window(&f, tasks, &window);
  cs_ios_options options = {3, 24, odd_cost, &calls, NULL, NULL};
  assert_ok(cs_ios_solve(&window, &options, stages, NULL, &n_stages, &solved));
  assert_false(solved);
  assert_in_range(calls, 1000, CS_IOS_MOST_STAGES);
  fixture_free(&f);
}

static cs_status counted_cost(void *user, const cs_stage *stage, double *us) {
  int *calls = user;
  uint32_t mixed = 0;
  for (int i = 0; i < stage->n; i++) mixed += (uint32_t)stage->tasks[i] * UINT32_C(2654435769);
  ++*calls;
  *us = 1 + (double)(mixed >> 16 & 255) * stage->n / 64;
  return CS_OK;
}

/* Six chains, tied to one another now and then: every window is too much work and is halved, and
 * the stages that are priced stay in proportion to the tasks. */
static void a_thousand_tasks_ask_for_few_stages(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  int calls = 0;
  fixture_init(&f, 1000);
  for (int t = 0; t < 1000; t++) {
    int preds[2] = {t - 7, t - 6}, skip = t % 6 == 0 || t % 5 > 0 || t < 7;
    task_behind(&f, preds + skip, t < 6 ? 0 : 2 - skip, 1 + t % 7);
  }
  cs_policy_input input = fixture_input(&f, 8, 0, 0);
  input.stage_cost = counted_cost;
  input.stage_user = &calls;
  assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
  print_message("1000 tasks: %d stages priced, %d streams\n", calls, plan->n_streams);
  assert_in_range(calls, 100 * 1000, 300 * 1000);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* What two tasks cost beside each other; a task alone costs 1. */
static cs_status cost_of_two(void *user, const cs_stage *stage, double *us) {
  const double *together = user;
  *us = stage->n == 1 ? 1 : *together;
  return CS_OK;
}

/* The callback's costs decide, whatever the times alone say, and where it knows none the estimate.
 */
static void costs_that_are_given_decide(void **state) {
  (void)state;
  static const struct {
    double together;
    int streams;
  } cases[] = {{1.9, 2}, {2.1, 1}, {CS_STAGE_ESTIMATE, 1}};
  fixture f;
  fixture_init(&f, 2);
  task_behind(&f, NULL, 0, 30);
  task_behind(&f, NULL, 0, 30); /* neither leaves room for the other: estimated one by one */
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  input.stage_cost = cost_of_two;
  for (int i = 0; i < 3; i++) {
    double together = cases[i].together;
    cs_plan *plan = NULL;
    input.stage_user = &together;
    assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
    if (plan->n_streams != cases[i].streams)
      fail_msg("%g us together: %d streams", together, plan->n_streams);
    cs_plan_destroy(plan);
  }
  fixture_free(&f);
}

static cs_status no_time(void *user, const cs_stage *stage, double *us) {
  const double *wrong = user;
  *us = stage->n == 2 ? *wrong : 1;
  return CS_OK;
}

static cs_status failing_cost(void *user, const cs_stage *stage, double *us) {
  (void)user;
  (void)us;
  return cs_error(CS_CODE_DEVICE, "no stage of %d tasks today", stage->n);
}

static void wrong_costs_are_refused(void **state) {
  (void)state;
  static double wrong[] = {-1, NAN, INFINITY};
  fixture f;
  cs_plan *plan = NULL;
  fixture_init(&f, 2);
  task_behind(&f, NULL, 0, 1);
  task_behind(&f, NULL, 0, 1);
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  input.stage_cost = no_time;
  for (int i = 0; i < 3; i++) {
    input.stage_user = &wrong[i];
    assert_fails(cs_plan_make(&cs_policy_ios, &input, &plan), CS_CODE_INTERNAL,
                 "a stage of 2 tasks in 2 groups costs");
  }
  input.stage_cost = failing_cost;
  assert_fails(cs_plan_make(&cs_policy_ios, &input, &plan), CS_CODE_DEVICE,
               "policy ios: no stage of 1 tasks today");
  assert_null(plan);
  fixture_free(&f);
}

/* ---- Plans ---- */

/* The end of the stage that begins at a position: the first position behind which all waits for all
 * before it. */
static int stage_end(const closure *c, int n, int begin) {
  for (int end = begin + 1; end < n; end++) {
    bool cut = true;
    for (int p = end; p < n && cut; p++)
      for (int q = 0; q < end && cut; q++) cut = c->before[p][q];
    if (cut) return end;
  }
  return n;
}

/* Between barriers, tasks of different streams are not ordered; groups and tasks are within the
 * limits. */
static void stages_are_groups_between_barriers(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 32, 1);
  int widest = 0;
  for (int i = 0; i < 500; i++) {
    fixture f;
    closure c;
    cs_plan *plan = NULL;
    int max_streams = 1 + below(&rng, 6);
    random_program(&f, &rng, 1 + below(&rng, 40), 1 + below(&rng, 12));
    cs_policy_input input = fixture_input(&f, max_streams, 0, 0);
    input.stage_group_tasks = 1 + below(&rng, 4);
    input.stage_groups = 1 + below(&rng, 5);
    assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
    close_plan(plan, &c);
    for (int begin = 0; begin < plan->n_tasks;) {
      int end = stage_end(&c, plan->n_tasks, begin), on_stream[8] = {0}, groups = 0;
      for (int p = begin; p < end; p++) {
        groups += on_stream[plan->tasks[p].stream]++ == 0;
        for (int q = begin; q < p; q++)
          assert_int_equal(c.before[p][q], plan->tasks[p].stream == plan->tasks[q].stream);
      }
      for (int s = 0; s < 8; s++) assert_in_range(on_stream[s], 0, input.stage_group_tasks);
      assert_in_range(groups, 1, cs_min_i64(input.stage_groups, max_streams));
      if (groups > widest) widest = groups;
      begin = end;
    }
    cs_plan_destroy(plan);
    fixture_free(&f);
  }
  assert_int_equal(widest, 5);
}

/* head → (4), (2 → 3), (1) → tail. Where each takes the whole device nothing is gained, and a stage
 * is worth the sum; where they take little of it, the longest group. */
static void stages_are_estimated_from_times_and_demands(void **state) {
  (void)state;
  static const cs_device_info device = {
      .units = 100, .unit = {.registers = 65536, .threads = 2048, .blocks = 32, .warp_size = 32}};
  cs_kernel_profile kernel = {
      .info = {.block = {256, 1, 1}, .registers = 32, .blocks_per_unit = 8}};
  fixture f;
  cs_plan *plan = NULL;
  fixture_init(&f, 8);
  int head = task_behind(&f, NULL, 0, 5), a = task_behind(&f, &head, 1, 4);
  int b = task_behind(&f, &head, 1, 2), behind_b = task_behind(&f, &b, 1, 3);
  int d = task_behind(&f, &head, 1, 1), ends[] = {a, behind_b, d};
  task_behind(&f, ends, 3, 5);
  for (int t = 0; t < f.program.n_tasks; t++) {
    f.choices[t].choices[0].kernels = &kernel;
    f.choices[t].choices[0].n_kernels = 1;
  }
  cs_policy_input input = fixture_input(&f, 8, 0, 0);
  input.device = &device;
  for (int i = 0; i < 3; i++) kernel.info.grid[i] = i ? 1 : 80; /* a tenth of the device */
  assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
  assert_int_equal(plan->n_streams, 3);
  assert_true(plan->predicted_us == 5 + 5 + 5);
  assert_int_equal(plan->tasks[1].task, b); /* the longest group leads */
  assert_int_equal(plan->tasks[2].task, a);
  assert_int_equal(plan->tasks[3].task, d);
  assert_int_equal(plan->tasks[4].task, behind_b);
  assert_int_equal(plan->tasks[4].n_waits, 0);
  assert_int_equal(plan->tasks[5].n_waits, 2);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* ---- Merging ---- */

/* Task t reads the graph's input and can run with "one"; the last one reads all of them. */
static void mergeable(fixture *f, int n, double fastest_us, double merging_us) {
  int all[8];
  fixture_init(f, n + 3);
  for (int t = 0; t < n; t++) {
    all[t] = task_behind(f, NULL, 0, fastest_us);
    add_choice(f, t, merging_us, 0);
    cs_candidate *candidate = (cs_candidate *)(uintptr_t)f->choices[t].choices[1].candidate;
    candidate->merges = true;
  }
  task_behind(f, all, n, 1);
}

static int members(const cs_plan *plan) {
  int n = 0;
  for (int p = 0; p < plan->n_tasks; p++) n += plan->tasks[p].merged >= 0;
  return n;
}

static void stages_of_one_input_may_be_one_kernel(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  mergeable(&f, 5, 10, 12);
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan)); /* checked: the reader waits for all */
  assert_int_equal(members(plan), 4);
  assert_true(plan->predicted_us == 12 + 1);
  assert_string_equal(plan->tasks[0].candidate.id, "test:1");
  cs_plan_destroy(plan);
  input.max_streams = 5; /* beside one another the faster ones are as good as it gets */
  assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
  assert_int_equal(members(plan), 0);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Too slow, a workspace, or inputs that are not the same. */
static void other_stages_are_not_merged(void **state) {
  (void)state;
  for (int what = 0; what < 3; what++) {
    fixture f;
    cs_plan *plan = NULL;
    mergeable(&f, 2, 10, what == 0 ? 21 : 12);
    cs_candidate *second = (cs_candidate *)(uintptr_t)f.choices[1].choices[1].candidate;
    if (what == 1) second->workspace_bytes = 256;
    if (what == 2)
      f.program.tasks[1].inputs[0] = add_tensor(&f, add_buffer(&f, 256, CS_BUFFER_INPUT));
    cs_policy_input input = fixture_input(&f, 1, 0, 0);
    assert_ok(cs_plan_make(&cs_policy_ios, &input, &plan));
    assert_int_equal(members(plan), 0);
    cs_plan_destroy(plan);
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_cost_the_least),
      cmocka_unit_test(of_equal_costs_the_fewest_stages_win),
      cmocka_unit_test(too_much_work_is_given_up),
      cmocka_unit_test(a_thousand_tasks_ask_for_few_stages),
      cmocka_unit_test(costs_that_are_given_decide),
      cmocka_unit_test(wrong_costs_are_refused),
      cmocka_unit_test(stages_are_groups_between_barriers),
      cmocka_unit_test(stages_are_estimated_from_times_and_demands),
      cmocka_unit_test(stages_of_one_input_may_be_one_kernel),
      cmocka_unit_test(other_stages_are_not_merged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
