/* Plans under a memory limit: what is given up, in which order, and what the least is. */
#include "sanitized.h"
#include "scheduler_fixture.h"

/* n tasks side by side that read the input (256 bytes) and write 256 bytes each; each has a fast
 * candidate (10 us) with a workspace of 1 MiB and a slow one (15 us) without. */
static void side_by_side(fixture *f, int n) {
  fixture_init(f, n);
  for (int t = 0; t < n; t++) {
    task_behind(f, NULL, 0, 15);
    f->choices[t].n = 0;
    cs_candidate *slow = (cs_candidate *)(uintptr_t)f->choices[t].choices[0].candidate;
    cs_candidate_clear(slow);
    free(slow);
    add_choice(f, t, 10, 1 << 20);
    add_choice(f, t, 15, 0);
  }
}

static cs_plan *plan_in(const fixture *f, const cs_policy *policy, int64_t limit) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, 4, 0, limit);
  assert_ok(cs_plan_make(policy, &input, &plan));
  assert_ok(cs_plan_check(plan, &f->program, 0, limit));
  return plan;
}

static void workspace_goes_first(void **state) {
  (void)state;
  fixture f;
  side_by_side(&f, 4);
  int64_t buffers = 256 * 5, workspace = 1 << 20;
  cs_plan *plan = plan_in(&f, &cs_policy_streams, 0);
  assert_true(plan->arena_bytes == buffers + 4 * workspace && plan->predicted_us == 10);
  cs_plan_destroy(plan);
  /* All but two give their workspace up, and keep streams of their own. */
  plan = plan_in(&f, &cs_policy_streams, buffers + 2 * workspace + 100);
  assert_true(plan->workspace_peak == 2 * workspace && plan->predicted_us == 15);
  assert_int_equal(plan->n_streams, 4);
  cs_plan_destroy(plan);
  plan = plan_in(&f, &cs_policy_streams, buffers);
  assert_true(plan->workspace_peak == 0 && plan->predicted_us == 15);
  assert_true(plan->arena_bytes == buffers);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

/* Four chains of three tasks: on one stream the buffers of one chain serve the next. */
static void chains(fixture *f) {
  fixture_init(f, 13);
  int ends[4];
  for (int c = 0; c < 4; c++) {
    int a = task_behind(f, NULL, 0, 10), b = task_behind(f, &a, 1, 10);
    ends[c] = task_behind(f, &b, 1, 10);
    f->program.tasks[b].inputs[0] = f->program.tasks[a].output;
    f->program.tasks[ends[c]].inputs[0] = f->program.tasks[b].output;
    for (int t = a; t <= b; t++)
      f->program.buffers[f->program.tensors[f->program.tasks[t].output].buffer].bytes = 1 << 20;
  }
  int last = task_behind(f, ends, 4, 1);
  f->program.tasks[last].desc.n_inputs = 3;
  for (int i = 0; i < 3; i++) f->program.tasks[last].inputs[i] = f->program.tasks[ends[i]].output;
}

/* Chain c on stream c modulo the streams, one after the other. */
static cs_status plan_chains(const cs_policy_input *input, cs_plan *out) {
  CS_RETURN_IF_ERROR(cs_plan_begin(input->program, out));
  out->n_streams = input->max_streams;
  for (int t = 0; t < out->n_tasks; t++)
    CS_RETURN_IF_ERROR(
        cs_plan_place(out, t, t, t / 3 % out->n_streams, input->choices[t].choices[0].candidate));
  return cs_plan_fill_waits(out, input->program);
}

static void streams_go_where_workspace_is_not_enough(void **state) {
  (void)state;
  fixture f;
  const cs_policy policy = {.name = "chains", .plan = plan_chains};
  chains(&f);
  int64_t mib = 1 << 20, arena[3], previous = INT64_MAX;
  double previous_us = 0;
  const int64_t limits[] = {0, 5 * mib, 3 * mib};
  const int streams[] = {4, 2, 1};
  for (int i = 0; i < 3; i++) {
    cs_plan *plan = plan_in(&f, &policy, limits[i]);
    arena[i] = plan->arena_bytes;
    assert_int_equal(plan->n_streams, streams[i]);
    assert_true(arena[i] < previous && plan->predicted_us > previous_us);
    previous = arena[i];
    previous_us = plan->predicted_us;
    assert_string_equal(plan->policy, "chains");
    cs_plan_destroy(plan);
  }
  assert_true(arena[0] > 8 * mib && arena[2] < 3 * mib);
  fixture_free(&f);
}

/* A policy that heeds the limit: four streams without one, and `when_told` under one. */
static cs_code when_told;
static cs_status plan_heeding(const cs_policy_input *input, cs_plan *out) {
  if (input->memory_limit > 0 && when_told != CS_CODE_OK)
    return cs_error(when_told, "told of %lld bytes", (long long)input->memory_limit);
  cs_policy_input one = *input;
  if (input->memory_limit > 0) one.max_streams = 1;
  return plan_chains(&one, out);
}

static void what_a_policy_makes_of_the_limit_counts(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  const cs_policy policy = {.name = "heeding", .plan = plan_heeding};
  chains(&f);
  /* Two streams of four chains fit 5 MiB: that is faster than the one stream it makes of it. */
  static const struct {
    cs_code code;
    int64_t limit;
    int streams;
  } cases[] = {{CS_CODE_OK, 5 << 20, 2},
               {CS_CODE_OK, 3 << 20, 1},
               {CS_CODE_NOT_FOUND, 5 << 20, 2},
               {CS_CODE_NO_MEMORY, 3 << 20, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    when_told = cases[i].code;
    plan = plan_in(&f, &policy, cases[i].limit);
    assert_int_equal(plan->n_streams, cases[i].streams);
    cs_plan_destroy(plan);
  }
  when_told = CS_CODE_DEVICE;
  cs_policy_input input = fixture_input(&f, 4, 0, 5 << 20);
  assert_fails(cs_plan_make(&policy, &input, &plan), CS_CODE_DEVICE, "told of 5242880 bytes");
  assert_null(plan);
  fixture_free(&f);
}

static void below_the_minimum_the_minimum_is_told(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  side_by_side(&f, 4);
  cs_policy_input input = fixture_input(&f, 4, 0, 511);
  /* the input, and an output that nothing reads */
  const char *wanted =
      "wanted at most 511 bytes of arena, the smallest possible is 512 (one stream";
  assert_fails(cs_plan_make(&cs_policy_streams, &input, &plan), CS_CODE_NOT_FOUND, wanted);
  assert_fails(cs_plan_make(&cs_policy_sequential, &input, &plan), CS_CODE_NOT_FOUND, wanted);
  assert_null(plan);
  fixture_free(&f);
}

/* What is named to one policy is accepted by all; the sequential plan is the measure of bytes. */
static void every_policy_accepts_what_is_named(void **state) {
  (void)state;
  int n_policies;
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  cs_rng rng;
  cs_rng_init(&rng, 61, 1);
  const int n = RANDOM_CASES(150);
  print_message("%d programs\n", n);
  for (int i = 0; i < n; i++) {
    fixture f;
    random_program(&f, &rng, 5 + below(&rng, 40), 6);
    cs_policy_input input = fixture_input(&f, 1 + below(&rng, 8), 0, 1);
    cs_plan *least = make_in_memory(policies[i % n_policies], input);
    cs_plan_bytes sequential;
    input.memory_limit = least->arena_bytes;
    for (int p = 0; p < n_policies; p++) cs_plan_destroy(make_in_memory(policies[p], input));
    assert_ok(cs_sequential_memory(&input, &sequential)); /* whatever the limit */
    assert_true(sequential.arena >= least->arena_bytes);
    input.memory_limit = 0;
    cs_plan *plan = make_in_memory(&cs_policy_sequential, input);
    assert_true(plan->arena_bytes == sequential.arena);
    assert_true(plan->workspace_peak == sequential.workspace);
    cs_plan_destroy(plan);
    cs_plan_destroy(least);
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workspace_goes_first),
      cmocka_unit_test(streams_go_where_workspace_is_not_enough),
      cmocka_unit_test(what_a_policy_makes_of_the_limit_counts),
      cmocka_unit_test(below_the_minimum_the_minimum_is_told),
      cmocka_unit_test(every_policy_accepts_what_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
