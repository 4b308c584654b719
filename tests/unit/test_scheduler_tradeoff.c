/* The latency/memory front: by hand, and what holds of every one. */
#include "scheduler/tradeoff.h"

#include "sanitized.h"
#include "scheduler_fixture.h"

/* Four tasks side by side that read 256 bytes and write 256 that nothing reads; 10 us with a
 * workspace of 1 MiB, 15 us without. */
static void dominated_points_are_left_out(void **state) {
  (void)state;
  fixture f;
  cs_tradeoff front;
  fixture_init(&f, 4);
  for (int t = 0; t < 4; t++) {
    task_behind(&f, NULL, 0, 15);
    add_choice(&f, t, 10, 1 << 20);
    cs_choice slow = f.choices[t].choices[0];
    f.choices[t].choices[0] = f.choices[t].choices[1];
    f.choices[t].choices[1] = slow;
  }
  cs_policy_input input = fixture_input(&f, 4, 0, 0);
  assert_ok(cs_tradeoff_of(&cs_policy_streams, &input, &front));
  /* With one to three workspaces less it takes 15 us, as without any; on one stream 60 us. */
  const struct {
    int64_t arena, workspace;
    int streams;
    double us;
  } wanted[] = {{5 * 256 + (4 << 20), 4 << 20, 4, 10}, {5 * 256, 0, 4, 15}, {512, 0, 1, 60}};
  assert_int_equal(front.n, 3);
  for (int i = 0; i < 3; i++) {
    assert_true(front.points[i].arena == wanted[i].arena);
    assert_true(front.points[i].workspace == wanted[i].workspace);
    assert_int_equal(front.points[i].n_streams, wanted[i].streams);
    assert_true(front.points[i].predicted_us == wanted[i].us);
  }
  assert_true(front.points[0].memory_limit == 0 && front.points[2].memory_limit == 512);
  fixture_free(&f);
}

/* The front begins with the plan without a limit and falls to the least; each point is the plan
 * that its limit gives. */
static void every_point_is_a_plan(void **state) {
  (void)state;
  int n_policies;
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  cs_rng rng;
  cs_rng_init(&rng, 71, 1);
  int most = 0;
  const int n = RANDOM_CASES(60);
  print_message("%d programs\n", n);
  for (int i = 0; i < n; i++) {
    fixture f;
    cs_tradeoff front, again;
    random_program(&f, &rng, 10 + below(&rng, 30), 8);
    const cs_policy *policy = policies[i % n_policies];
    cs_policy_input input = fixture_input(&f, 1 + below(&rng, 8), 0, 0);
    assert_ok(cs_tradeoff_of(policy, &input, &front));
    assert_ok(cs_tradeoff_of(policy, &input, &again));
    assert_int_equal(front.n, again.n);
    for (int k = 0; k < front.n; k++) {
      const cs_tradeoff_point *point = &front.points[k];
      assert_true(point->memory_limit == again.points[k].memory_limit);
      assert_true(point->arena == again.points[k].arena);
      if (k > 0) {
        assert_true(point->arena < point[-1].arena);
        assert_true(point->predicted_us > point[-1].predicted_us);
      }
      input.memory_limit = point->memory_limit;
      cs_plan *plan = make_in_memory(policy, input);
      assert_true(input.memory_limit == 0 || point->arena <= input.memory_limit);
      assert_true(plan->arena_bytes == point->arena && plan->workspace_peak == point->workspace);
      assert_true(plan->predicted_us == point->predicted_us);
      assert_int_equal(plan->n_streams, point->n_streams);
      cs_plan_destroy(plan);
    }
    int64_t least;
    assert_ok(cs_plan_least_memory(&input, &least));
    assert_true(front.points[front.n - 1].arena <= least);
    most = front.n > most ? front.n : most;
    fixture_free(&f);
  }
  assert_true(most >= 4);
}

/* A limit of the caller's own is where it begins. */
static void a_given_limit_holds_from_the_first_point(void **state) {
  (void)state;
  cs_rng rng;
  fixture f;
  cs_tradeoff free_front, front;
  cs_rng_init(&rng, 72, 1);
  random_program(&f, &rng, 40, 8);
  cs_policy_input input = fixture_input(&f, 8, 0, 0);
  assert_ok(cs_tradeoff_of(&cs_policy_streams, &input, &free_front));
  assert_true(free_front.n > 1);
  input.memory_limit = free_front.points[0].arena - 1;
  assert_ok(cs_tradeoff_of(&cs_policy_streams, &input, &front));
  assert_true(front.points[0].memory_limit == input.memory_limit);
  assert_true(front.points[0].arena <= input.memory_limit);
  input.memory_limit = 1;
  assert_fails(cs_tradeoff_of(&cs_policy_streams, &input, &front), CS_CODE_NOT_FOUND,
               "memory limit");
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dominated_points_are_left_out),
      cmocka_unit_test(every_point_is_a_plan),
      cmocka_unit_test(a_given_limit_holds_from_the_first_point),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
