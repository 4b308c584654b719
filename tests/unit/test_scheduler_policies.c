/* What each policy promises, the workspace limit's choices, timelines and bounds. */
#include "unit/scheduler_fixture.h"

static cs_plan *make(const cs_policy *policy, const fixture *f, int streams, int64_t limit) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, streams, limit, 0);
  assert_ok(cs_plan_make(policy, &input, &plan));
  return plan;
}

/* ---- Registry ---- */

static void policies_are_found_by_name(void **state) {
  (void)state;
  int n = 0;
  const cs_policy *const *all = cs_policy_all(&n);
  assert_int_equal(n, 5);
  for (int i = 0; i < n; i++) assert_ptr_equal(cs_policy_find(all[i]->name), all[i]);
  assert_ptr_equal(cs_policy_find("sequential"), &cs_policy_sequential);
  assert_ptr_equal(cs_policy_find("streams"), &cs_policy_streams);
  assert_ptr_equal(cs_policy_find("opara"), &cs_policy_opara);
  assert_ptr_equal(cs_policy_find("ios"), &cs_policy_ios);
  assert_ptr_equal(cs_policy_find("coselect"), &cs_policy_coselect);
  assert_null(cs_policy_find("stream"));
}

static void wrong_inputs_are_refused(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  fixture_init(&f, 4);
  int a = simple_task(&f, NULL, 0, 3);
  simple_task(&f, &a, 1, 0);
  cs_policy_input input = fixture_input(&f, 2, 0, 0);
  assert_fails(cs_plan_make(&cs_policy_streams, &input, &plan), CS_CODE_NOT_FOUND,
               "task t1 has no admissible measured candidate");
  add_choice(&f, 1, 1, 0);
  input.max_streams = 0;
  assert_fails(cs_plan_make(&cs_policy_streams, &input, &plan), CS_CODE_USAGE, "found 0 streams");
  input.max_streams = 1;
  input.workspace_limit = -1;
  assert_fails(cs_plan_make(&cs_policy_streams, &input, &plan), CS_CODE_USAGE,
               "workspace limit of -1");
  fixture_free(&f);
}

static void nothing_to_do_is_a_plan(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f, 1);
  add_buffer(&f, 100, CS_BUFFER_INPUT);
  int n = 0;
  const cs_policy *const *all = cs_policy_all(&n);
  for (int i = 0; i < n; i++) {
    cs_plan *plan = make(all[i], &f, 4, 10);
    assert_true(plan->n_streams == 1 && plan->arena_bytes == 256 && plan->predicted_us == 0);
    cs_plan_destroy(plan);
  }
  fixture_free(&f);
}

/* ---- Policies ---- */

static void sequential_is_one_stream_with_the_fastest(void **state) {
  (void)state;
  cs_rng rng;
  fixture f;
  cs_rng_init(&rng, 21, 1);
  random_program(&f, &rng, 40, 6);
  cs_plan *plan = make(&cs_policy_sequential, &f, 8, 0);
  double sum = 0;
  assert_int_equal(plan->n_streams, 1);
  for (int p = 0; p < plan->n_tasks; p++) {
    assert_int_equal(plan->tasks[p].task, p);
    assert_int_equal(plan->tasks[p].n_waits, 0);
    assert_string_equal(plan->tasks[p].candidate.id, f.choices[p].choices[0].candidate->id);
    assert_true(plan->tasks[p].start_us == sum);
    sum += f.choices[p].choices[0].cold_us;
    assert_true(plan->tasks[p].end_us == sum);
  }
  assert_true(plan->predicted_us == sum);
  assert_string_equal(plan->policy, "sequential");
  assert_true(plan->seed == 7 && plan->graph_hash == 42 && plan->batch == 1);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* With streams enough, tasks that do not depend on one another are on different streams: the plan
 * orders no two tasks that the program does not order. */
static void streams_keeps_all_concurrency(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 22, 1);
  for (int i = 0; i < 300; i++) {
    fixture f;
    closure c;
    cs_dag dag;
    int waits = 0, meg_edges = 0, same_stream = 0;
    random_program(&f, &rng, 1 + below(&rng, 40), 1 + below(&rng, 12));
    cs_plan *plan = make(&cs_policy_streams, &f, 64, 0);
    close_plan(plan, &c);
    assert_ok(cs_dag_of_program(&f.program, &dag));
    uint64_t *ancestors = cs_dag_ancestors(&dag);
    assert_non_null(ancestors);
    size_t words = cs_bit_words(dag.n);
    for (int p = 0; p < plan->n_tasks; p++) {
      waits += plan->tasks[p].n_waits;
      for (int q = 0; q < p; q++)
        assert_int_equal(c.before[p][q], cs_bit_get(ancestors + (size_t)plan->tasks[p].task * words,
                                                    plan->tasks[q].task));
    }
    /* A synchronisation for exactly the edges of the minimum equivalent graph that cross streams.
     */
    cs_dag meg;
    int position[ORACLE_MAX];
    cs_plan_positions(plan, position);
    assert_ok(cs_dag_reduce(&dag, &meg));
    meg_edges = meg.n_edges;
    for (int v = 0; v < meg.n; v++)
      for (int e = meg.first[v]; e < meg.first[v + 1]; e++)
        same_stream += plan->tasks[position[v]].stream == plan->tasks[position[meg.from[e]]].stream;
    assert_int_equal(waits, meg_edges - same_stream);
    cs_dag_free(&meg);
    cs_dag_free(&dag);
    free(ancestors);
    cs_plan_destroy(plan);
    fixture_free(&f);
  }
}

/* fork → three branches of two → join, four times: as many streams as branches. */
static void streams_are_as_many_as_the_graph_is_wide(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f, 64);
  int head = simple_task(&f, NULL, 0, 1);
  for (int m = 0; m < 4; m++) {
    int ends[3];
    for (int b = 0; b < 3; b++) {
      int middle = simple_task(&f, &head, 1, 2 + b);
      ends[b] = simple_task(&f, &middle, 1, 3);
    }
    head = simple_task(&f, ends, 3, 1);
  }
  cs_plan *wide = make(&cs_policy_streams, &f, 16, 0), *narrow = make(&cs_policy_streams, &f, 2, 0);
  assert_int_equal(wide->n_streams, 3);
  assert_true(wide->predicted_us == 1 + 4 * (4 + 3 + 1));
  assert_int_equal(narrow->n_streams, 2);
  assert_true(narrow->predicted_us > wide->predicted_us);
  /* per module two of the three branches share a stream: 2 + 3 + 3 + 3 beside 4 + 3 */
  assert_true(narrow->predicted_us == 1 + 4 * (11 + 1));
  cs_plan_destroy(wide);
  cs_plan_destroy(narrow);
  fixture_free(&f);
}

/* The width of the real models: the branches of their widest module. */
static void models_take_as_many_streams_as_branches(void **state) {
  (void)state;
  static const struct {
    const char *model;
    int streams;
  } models[] = {{"googlenet", 4},     {"googlenet_bn", 4}, {"inception_v3", 6},
                {"squeezenet1_1", 2}, {"densenet121", 1},  {"dcgan_generator", 1}};
  for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
    char path[512];
    cs_graph *graph = NULL, *bound = NULL, *passed = NULL;
    cs_program *program = NULL;
    cs_plan *plan = NULL;
    cs_pass_report report;
    fixture f;
    snprintf(path, sizeof path, "%s/models/%s.json", CS_SOURCE_DIR, models[m].model);
    assert_ok(cs_graph_load(path, &graph));
    assert_ok(cs_graph_bind(graph, 1, &bound));
    assert_ok(cs_graph_apply_passes(bound, CS_PASSES_ALL, &report, &passed));
    cs_layout *layouts = cs_calloc((size_t)passed->n_values, sizeof *layouts); /* all NCHW */
    assert_ok(cs_program_lower(passed, CS_PRECISION_F32, layouts, &program));
    fixture_init(&f, program->n_tasks);
    for (int t = 0; t < program->n_tasks; t++) add_choice(&f, t, 1, 0);
    cs_policy_input input = fixture_input(&f, 64, 0, 0);
    input.program = program;
    assert_ok(cs_plan_make(&cs_policy_streams, &input, &plan));
    if (plan->n_streams != models[m].streams)
      fail_msg("%s: %d streams, wanted %d", models[m].model, plan->n_streams, models[m].streams);
    f.program.n_tasks = program->n_tasks;
    fixture_free(&f);
    cs_plan_destroy(plan);
    cs_program_destroy(program);
    free(layouts);
    cs_graph_destroy(passed);
    cs_graph_destroy(bound);
    cs_graph_destroy(graph);
  }
}

/* Of tasks that can start at the same time the one with the longest way to the end is launched
 * first. */
static void the_longest_path_is_launched_first(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f, 16);
  int head = simple_task(&f, NULL, 0, 1);
  int quick = simple_task(&f, &head, 1, 5);
  int slow = simple_task(&f, &head, 1, 5), behind = simple_task(&f, &slow, 1, 9);
  int middle = simple_task(&f, &head, 1, 7);
  cs_plan *plan = make(&cs_policy_streams, &f, 8, 0);
  assert_int_equal(plan->tasks[0].task, head);
  assert_int_equal(plan->tasks[1].task, slow);
  assert_int_equal(plan->tasks[2].task, middle);
  assert_int_equal(plan->tasks[3].task, quick);
  assert_int_equal(plan->tasks[4].task, behind);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

static void plans_are_repeatable(void **state) {
  (void)state;
  cs_rng rng;
  fixture f;
  cs_rng_init(&rng, 23, 1);
  random_program(&f, &rng, 200, 30);
  cs_plan *a = make(&cs_policy_streams, &f, 5, 60000), *b = make(&cs_policy_streams, &f, 5, 60000);
  char *text_a = NULL, *text_b = NULL;
  assert_ok(cs_plan_to_json(a, &f.program, &text_a));
  assert_ok(cs_plan_to_json(b, &f.program, &text_b));
  assert_string_equal(text_a, text_b);
  free(text_a);
  free(text_b);
  cs_plan_destroy(a);
  cs_plan_destroy(b);
  fixture_free(&f);
}

/* ---- Workspace limit ---- */

/* Two tasks side by side, each 1000 bytes; t1 gives up 600 bytes for 1 us, t2 600 for 4 us. */
static void two_side_by_side(fixture *f) {
  fixture_init(f, 8);
  int head = simple_task(f, NULL, 0, 1);
  for (int b = 0; b < 2; b++) {
    int t = simple_task(f, &head, 1, 0);
    add_choice(f, t, 10, 1000);
    add_choice(f, t, b ? 14 : 11, 400);
    add_choice(f, t, 30, 100);
  }
}

static const char *chosen(const cs_plan *plan, int task) {
  for (int p = 0; p < plan->n_tasks; p++)
    if (plan->tasks[p].task == task) return plan->tasks[p].candidate.id;
  return "";
}

static void the_cheapest_bytes_go_first(void **state) {
  (void)state;
  static const struct {
    int64_t limit, peak;
    const char *first, *second;
  } cases[] = {{2000, 2000, "test:0", "test:0"}, {1999, 1400, "test:1", "test:0"},
               {1400, 1400, "test:1", "test:0"}, {1399, 800, "test:1", "test:1"},
               {799, 500, "test:1", "test:2"},   {499, 200, "test:2", "test:2"}};
  fixture f;
  two_side_by_side(&f);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cs_plan *plan = make(&cs_policy_streams, &f, 4, cases[i].limit);
    assert_true(plan->workspace_peak == cases[i].peak);
    assert_string_equal(chosen(plan, 1), cases[i].first);
    assert_string_equal(chosen(plan, 2), cases[i].second);
    cs_plan_destroy(plan);
  }
  /* One after the other the two never count together. */
  cs_plan *plan = make(&cs_policy_sequential, &f, 4, 1000);
  assert_true(plan->workspace_peak == 1000);
  assert_string_equal(chosen(plan, 2), "test:0");
  cs_plan_destroy(plan);
  cs_policy_input input = fixture_input(&f, 4, 199, 0);
  assert_fails(cs_plan_make(&cs_policy_streams, &input, &plan), CS_CODE_NOT_FOUND,
               "wanted at most 199 bytes, the smallest possible is 200");
  fixture_free(&f);
}

/* ---- Bounds ---- */

static void bounds_are_roofline_and_longest_path(void **state) {
  (void)state;
  fixture f;
  cs_bounds bounds;
  fixture_init(&f, 8);
  int a = simple_task(&f, NULL, 0, 2), b = simple_task(&f, &a, 1, 0), c = simple_task(&f, &a, 1, 4);
  add_choice(&f, b, 9, 0);
  add_choice(&f, b, 3, 0); /* the fastest counts, wherever it stands */
  int both[] = {b, c};
  simple_task(&f, both, 2, 1);
  for (int t = 0; t < f.program.n_tasks; t++) {
    cs_shape shape = {.rank = 4, .dims = {1, 4, 10, 10}};
    cs_op_desc *desc = &f.program.tasks[t].desc;
    desc->op = CS_OP_RELU;
    desc->n_inputs = 1;
    desc->inputs[0] = desc->output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  }
  double flops = 0, bytes = 0;
  cs_program_totals(&f.program, &flops, &bytes);
  assert_true(bytes == 4 * 2 * 1600 && flops > 0);
  assert_ok(cs_bounds_of(&f.program, f.choices, 1e15, 1e9, &bounds));
  assert_true(bounds.critical_path_us == 2 + 4 + 1);
  assert_float_equal(bounds.roofline_us, 12.8, 1e-9); /* 12800 bytes at 1e9 bytes/s */
  assert_ok(cs_bounds_of(&f.program, f.choices, 1e6, 1e12, &bounds));
  assert_float_equal(bounds.roofline_us, flops, 1e-9);
  assert_fails(cs_bounds_of(&f.program, f.choices, 0, 1e12, &bounds), CS_CODE_BAD_INPUT,
               "wanted more than 0");
  fixture_free(&f);
}

/* Streams without number reach the critical path, one stream the sum: everything else lies
 * between. */
static void predictions_lie_between_path_and_sum(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 24, 1);
  for (int i = 0; i < 100; i++) {
    fixture f;
    cs_bounds bounds;
    random_program(&f, &rng, 40, 10);
    assert_ok(cs_bounds_of(&f.program, f.choices, 1, 1, &bounds));
    cs_plan *one = make(&cs_policy_streams, &f, 1, 0), *few = make(&cs_policy_streams, &f, 3, 0);
    cs_plan *all = make(&cs_policy_streams, &f, 64, 0);
    cs_plan *sequential = make(&cs_policy_sequential, &f, 1, 0);
    assert_true(all->predicted_us == bounds.critical_path_us);
    assert_true(one->predicted_us == sequential->predicted_us);
    assert_true(all->predicted_us <= few->predicted_us && few->predicted_us <= one->predicted_us);
    cs_plan_destroy(one);
    cs_plan_destroy(few);
    cs_plan_destroy(all);
    cs_plan_destroy(sequential);
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(policies_are_found_by_name),
      cmocka_unit_test(wrong_inputs_are_refused),
      cmocka_unit_test(nothing_to_do_is_a_plan),
      cmocka_unit_test(sequential_is_one_stream_with_the_fastest),
      cmocka_unit_test(streams_keeps_all_concurrency),
      cmocka_unit_test(streams_are_as_many_as_the_graph_is_wide),
      cmocka_unit_test(models_take_as_many_streams_as_branches),
      cmocka_unit_test(the_longest_path_is_launched_first),
      cmocka_unit_test(plans_are_repeatable),
      cmocka_unit_test(the_cheapest_bytes_go_first),
      cmocka_unit_test(bounds_are_roofline_and_longest_path),
      cmocka_unit_test(predictions_lie_between_path_and_sum),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
