/* Explanations of plans: blocks, pairs, limiters and alternatives by hand, and their JSON. */
#include "scheduler/explain.h"

#include <math.h>

#include "scheduler/configuration.h"
#include "unit/h100_sm.h"
#include "unit/scheduler_fixture.h"

static cs_kernel_profile kernel(int blocks, int threads, int registers, int per_unit) {
  return (cs_kernel_profile){.info = {.grid = {blocks, 1, 1},
                                      .block = {threads, 1, 1},
                                      .cluster = {1, 1, 1},
                                      .registers = registers,
                                      .blocks_per_unit = per_unit}};
}

static void add_counted(fixture *f, int task, double us, const cs_kernel_profile *kernel_of) {
  add_choice(f, task, us, 0);
  cs_choice *choice = &f->choices[task].choices[f->choices[task].n - 1];
  choice->kernels = kernel_of;
  choice->n_kernels = kernel_of ? 1 : 0;
}

/* Task t on stream streams[t] with its choice chosen[t], in program order. */
typedef struct placing {
  const int *streams, *chosen;
} placing;
static placing where;

static cs_status place_all(const cs_policy_input *input, cs_plan *out) {
  CS_RETURN_IF_ERROR(cs_plan_begin(input->program, out));
  out->n_streams = input->max_streams;
  for (int t = 0; t < out->n_tasks; t++)
    CS_RETURN_IF_ERROR(
        cs_plan_place(out, t, t, where.streams[t],
                      input->choices[t].choices[where.chosen ? where.chosen[t] : 0].candidate));
  return cs_plan_fill_waits(out, input->program);
}

static cs_plan *place(const cs_policy_input *input, const int *streams, const int *chosen) {
  static const cs_policy policy = {.name = "placed", .plan = place_all};
  cs_plan *plan = NULL;
  where = (placing){streams, chosen};
  assert_ok(cs_plan_make(&policy, input, &plan));
  return plan;
}

/* Task 0, then 1 and 2 side by side, then 3. */
static void diamond(fixture *f) {
  fixture_init(f, 4);
  int a = task_behind(f, NULL, 0, 2);
  int both[] = {simple_task(f, &a, 1, 0), simple_task(f, &a, 1, 0)};
  task_behind(f, both, 2, 1);
}

static void assert_alternative(const cs_alternative *found, int task, int choice,
                               const char *limiter, double cost_us, const fixture *f) {
  assert_int_equal(found->task, task);
  assert_ptr_equal(found->choice, &f->choices[task].choices[choice]);
  assert_string_equal(found->limiter, limiter);
  assert_float_equal(found->cost_us, cost_us, 1e-9);
}

static void a_pair_is_told_with_what_else_there_was(void **state) {
  (void)state;
  fixture f;
  cs_explanation told;
  /* Half of an SM's registers a block: eight blocks fill all four SMs, four two, two one. */
  cs_kernel_profile eight = kernel(8, 256, 128, 2), fours = kernel(4, 256, 128, 2),
                    two = kernel(2, 256, 128, 2), threads = kernel(8, 1024, 16, 2);
  diamond(&f);
  add_counted(&f, 1, 10, &eight);
  add_counted(&f, 1, 11, &threads); /* all threads, half of the registers of every SM */
  add_counted(&f, 1, 13, &fours);
  add_counted(&f, 2, 5, &two);
  add_counted(&f, 2, 6, &fours);
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  input.device = &four;
  const int streams[] = {0, 0, 1, 0}, chosen[] = {0, 0, 1, 0};
  cs_plan *plan = place(&input, streams, chosen);
  assert_ok(cs_explain(plan, &input, CS_EXPLAIN_PAIRS, &told));
  assert_int_equal(told.n_blocks, 3);
  const cs_explained_block *block = &told.blocks[1];
  assert_int_equal(block->n_tasks, 2);
  assert_int_equal(block->n_streams, 2);
  assert_true(block->start_us == 2 && block->end_us == 12 && block->serial_us == 16);
  assert_int_equal(block->n_pairs, 1);
  const cs_explained_pair *pair = &block->pairs[0];
  assert_true(pair->a == 1 && pair->b == 2 && pair->most_us == 6);
  assert_string_equal(pair->limiter, "registers");
  assert_int_equal(pair->n_alternatives, 3);
  assert_alternative(&pair->alternatives[0], 1, 1, "registers", 1, &f);
  assert_alternative(&pair->alternatives[1], 1, 2, "none", 3, &f);
  assert_alternative(&pair->alternatives[2], 2, 0, "registers", -1, &f); /* faster, and no help */
  assert_true(block->tasks[0].demand.known && block->tasks[0].demand.units == 4);
  assert_false(told.blocks[0].tasks[0].demand.known);
  cs_explanation_free(&told);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

static void cores_limit_a_cpu_and_nothing_is_known_without_kernels(void **state) {
  (void)state;
  fixture f;
  cs_explanation told;
  diamond(&f);
  add_choice(&f, 1, 10, 0);
  add_choice(&f, 2, 10, 0);
  add_choice(&f, 2, 12, 0);
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  const int streams[] = {0, 0, 1, 0};
  cs_plan *plan = place(&input, streams, NULL);
  static const struct {
    int a, b, other;
    const char *limiter, *with_other;
  } cases[] = {{0, 0, 0, "", ""}, {2, 3, 2, "cores", "none"}, {2, 2, 3, "none", "cores"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    input.device = &four;
    ((cs_candidate *)(uintptr_t)f.choices[1].choices[0].candidate)->threads = cases[i].a;
    ((cs_candidate *)(uintptr_t)f.choices[2].choices[0].candidate)->threads = cases[i].b;
    ((cs_candidate *)(uintptr_t)f.choices[2].choices[1].candidate)->threads = cases[i].other;
    assert_ok(cs_explain(plan, &input, 1, &told));
    const cs_explained_pair *pair = &told.blocks[1].pairs[0];
    assert_string_equal(pair->limiter, cases[i].limiter);
    assert_int_equal(pair->n_alternatives, 1);
    assert_alternative(&pair->alternatives[0], 2, 1, cases[i].with_other, 2, &f);
    cs_explanation_free(&told);
    input.device = NULL;
    assert_ok(cs_explain(plan, &input, 1, &told));
    assert_string_equal(told.blocks[1].pairs[0].limiter, "");
    cs_explanation_free(&told);
  }
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Of five tasks side by side the pairs that can overlap longest are told. */
static void the_longest_pairs_are_told(void **state) {
  (void)state;
  fixture f;
  cs_explanation told;
  fixture_init(&f, 5);
  const double us[] = {3, 9, 5, 9, 1};
  for (int t = 0; t < 5; t++) task_behind(&f, NULL, 0, us[t]);
  cs_policy_input input = fixture_input(&f, 5, 0, 0);
  const int streams[] = {0, 1, 2, 3, 4};
  cs_plan *plan = place(&input, streams, NULL);
  assert_ok(cs_explain(plan, &input, 4, &told));
  const int wanted[][2] = {{1, 3}, {1, 2}, {2, 3}, {0, 1}};
  assert_int_equal(told.n_blocks, 1);
  assert_int_equal(told.blocks[0].n_pairs, 4);
  assert_int_equal(told.blocks[0].n_more_pairs, 6);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(told.blocks[0].pairs[i].a, wanted[i][0]);
    assert_int_equal(told.blocks[0].pairs[i].b, wanted[i][1]);
  }
  cs_explanation_free(&told);
  assert_ok(cs_explain(plan, &input, 0, &told));
  assert_int_equal(told.blocks[0].n_more_pairs, 10);
  cs_explanation_free(&told);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

static bool block_ends(const cs_program *program, int task) {
  bool depends[ORACLE_MAX];
  for (int t = task + 1; t < program->n_tasks; t++) {
    for (int u = 0; u < t; u++) depends[u] = false;
    for (int v = t; v >= 0; v--) /* ancestors of t, in descending order */
      if (v == t || depends[v])
        for (int i = 0; i < program->tasks[v].n_preds; i++)
          depends[program->tasks[v].preds[i]] = true;
    for (int u = 0; u <= task; u++)
      if (!depends[u]) return false;
  }
  return true;
}

/* Blocks cut the program where all later tasks depend on all earlier ones; pairs are those of
 * different streams that the plan leaves unordered, and there are none across blocks. */
static void blocks_and_pairs_are_right(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 81, 1);
  for (int i = 0; i < 200; i++) {
    fixture f;
    cs_plan *plan = NULL;
    cs_explanation told;
    closure c;
    random_program(&f, &rng, 5 + below(&rng, 30), 1 + below(&rng, 6));
    cs_policy_input input = fixture_input(&f, 1 + below(&rng, 6), 0, 0);
    assert_ok(cs_plan_make(i % 2 ? &cs_policy_streams : &cs_policy_opara, &input, &plan));
    close_plan(plan, &c);
    assert_ok(cs_explain(plan, &input, ORACLE_MAX * ORACLE_MAX, &told));
    int pairs = 0, wanted = 0, tasks = 0, ends = 0;
    for (int b = 0; b < told.n_blocks; b++) {
      int last = -1;
      for (int k = 0; k < told.blocks[b].n_tasks; k++)
        last = told.blocks[b].tasks[k].task > last ? told.blocks[b].tasks[k].task : last;
      tasks += told.blocks[b].n_tasks;
      pairs += told.blocks[b].n_pairs;
      assert_int_equal(last, tasks - 1); /* program order, without a gap */
      assert_true(block_ends(&f.program, last));
      assert_int_equal(told.blocks[b].n_more_pairs, 0);
    }
    for (int t = 0; t < f.program.n_tasks; t++) ends += block_ends(&f.program, t);
    for (int p = 0; p < plan->n_tasks; p++)
      for (int q = 0; q < p; q++)
        wanted += !c.before[p][q] && plan->tasks[p].stream != plan->tasks[q].stream;
    assert_int_equal(ends, told.n_blocks);
    assert_int_equal(tasks, f.program.n_tasks);
    assert_int_equal(pairs, wanted);
    cs_explanation_free(&told);
    cs_plan_destroy(plan);
    fixture_free(&f);
  }
}

static void json_tells_names_and_unknowns(void **state) {
  (void)state;
  fixture f;
  cs_explanation told;
  json_t *json = NULL;
  cs_kernel_profile eight = kernel(8, 256, 128, 2), threads = kernel(8, 1024, 16, 2);
  diamond(&f);
  add_counted(&f, 1, 10, &eight);
  add_counted(&f, 2, 12, &threads);
  add_counted(&f, 2, 14, NULL);
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  input.device = &four;
  const int streams[] = {0, 0, 1, 0};
  cs_plan *plan = place(&input, streams, NULL);
  assert_ok(cs_explain(plan, &input, CS_EXPLAIN_PAIRS, &told));
  assert_ok(cs_explanation_json(&told, plan, &f.program, &json));
  json_t *block = json_array_get(json_object_get(json, "blocks"), 1), *demand;
  json_t *pair = json_array_get(json_object_get(block, "pairs"), 0);
  json_t *wanted = json_pack("{s:[s, s], s:s, s:f, s:[{s:s, s:s, s:n, s:f}]}", "tasks", "t1", "t2",
                             "limiter", "registers", "most_us", 10.0, "alternatives", "task", "t2",
                             "candidate", "test:1", "limiter", "cost_us", 2.0);
  assert_true(json_equal(pair, wanted));
  demand = json_object_get(json_array_get(json_object_get(block, "tasks"), 1), "demand");
  assert_true(json_number_value(json_object_get(demand, "threads")) == 1);
  assert_true(json_number_value(json_object_get(demand, "registers")) == 0.5);
  block = json_array_get(json_object_get(json, "blocks"), 0);
  assert_true(
      json_is_null(json_object_get(json_array_get(json_object_get(block, "tasks"), 0), "demand")));
  json_decref(wanted);
  json_decref(json);
  cs_explanation_free(&told);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Tasks 1 and 2 in one launch of high priority, on half of the device. */
static void merges_priorities_and_parts_are_told(void **state) {
  (void)state;
  fixture f;
  cs_explanation told;
  json_t *json = NULL;
  diamond(&f);
  add_choice(&f, 1, 10, 0);
  add_choice(&f, 2, 12, 0);
  for (int t = 1; t < 3; t++)
    ((cs_candidate *)(uintptr_t)f.choices[t].choices[0].candidate)->merges = true;
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  cs_placement places[] = {{.task = 0},
                           {.task = 1, .priority = 1},
                           {.task = 2, .priority = 1, .joined = true},
                           {.task = 3}};
  cs_configuration configuration = {.places = places, .n = 4, .n_parts = 2, .parts = {2, 66}};
  cs_plan *plan = NULL;
  configuration.part_of[0] = 1;
  assert_ok(cs_configuration_plan(&configuration, "placed", &input, &plan));
  assert_float_equal(plan->predicted_us, 15, 1e-9); /* 2, the longer one of 10 and 12, 1 */
  assert_true(plan->tasks[1].start_us == 2 && plan->tasks[2].start_us == 2);
  assert_ok(cs_explain(plan, &input, CS_EXPLAIN_PAIRS, &told));
  assert_ok(cs_explanation_json(&told, plan, &f.program, &json));
  json_t *block = json_array_get(json_object_get(json, "blocks"), 1);
  assert_int_equal(json_array_size(json_object_get(block, "pairs")), 0); /* one kernel */
  for (size_t i = 0; i < 2; i++) {
    json_t *task = json_array_get(json_object_get(block, "tasks"), i);
    const char *merged = json_string_value(json_object_get(task, "merged"));
    if (i == 0) assert_true(json_is_null(json_object_get(task, "merged")));
    if (i == 1) assert_string_equal(merged, "t1");
    assert_int_equal(json_integer_value(json_object_get(task, "priority")), 1);
    assert_int_equal(json_integer_value(json_object_get(task, "part")), 66);
  }
  json_decref(json);
  cs_explanation_free(&told);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pair_is_told_with_what_else_there_was),
      cmocka_unit_test(cores_limit_a_cpu_and_nothing_is_known_without_kernels),
      cmocka_unit_test(the_longest_pairs_are_told),
      cmocka_unit_test(blocks_and_pairs_are_right),
      cmocka_unit_test(json_tells_names_and_unknowns),
      cmocka_unit_test(merges_priorities_and_parts_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
