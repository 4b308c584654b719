/* The memory planner: how close it comes to the bytes that must live at once, limits, reuse, and
 * the time that 1000 tasks take. */
#include <time.h>

#include "sanitized.h"
#include "unit/scheduler_fixture.h"

#if CS_TEST_SANITIZED
#define SLOWER 20
#else
#define SLOWER 1
#endif

static int64_t padded(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/* What no one-stream plan can go below: the most bytes live at one launch position. */
static int64_t live_bytes(const cs_plan *plan, const cs_program *program) {
  int64_t most = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    int64_t sum = padded(plan->tasks[p].workspace_bytes);
    for (int b = 0; b < program->n_buffers; b++) {
      bool whole = program->buffers[b].kind != CS_BUFFER_INTERMEDIATE, begun = false, ends = false;
      for (int q = 0; q < plan->n_tasks; q++) {
        const cs_task *task = &program->tasks[plan->tasks[q].task];
        bool uses = program->tensors[task->output].buffer == b;
        for (int i = 0; i < task->desc.n_inputs; i++)
          uses |= program->tensors[task->inputs[i]].buffer == b;
        begun |= uses && q <= p;
        ends |= uses && q >= p;
      }
      if (whole || (begun && ends)) sum += padded(program->buffers[b].bytes);
    }
    if (sum > most) most = sum;
  }
  return most;
}

static cs_plan *make(const fixture *f, const cs_policy *policy, int streams) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, streams, 0, 0);
  assert_ok(cs_plan_make(policy, &input, &plan));
  return plan;
}

/* t0 → t1 → …, each with a buffer of its own. */
static void chain(fixture *f, cs_rng *rng, int n) {
  fixture_init(f, n);
  int from = add_tensor(f, add_buffer(f, 1000, CS_BUFFER_INPUT));
  for (int t = 0; t < n; t++) {
    int kind = t == n - 1 ? CS_BUFFER_OUTPUT : CS_BUFFER_INTERMEDIATE;
    int to = add_tensor(f, add_buffer(f, 256 * (1 + below(rng, 40)), (cs_buffer_kind)kind));
    int pred = t - 1;
    add_task(f, &from, 1, to, &pred, t > 0);
    random_choices(f, rng, t, 1, 3000);
    from = to;
  }
}

static void chains_take_what_lives_at_once(void **state) {
  (void)state;
  cs_rng rng;
  cs_rng_init(&rng, 11, 1);
  double worst = 0, sum = 0;
  for (int i = 0; i < 200; i++) {
    fixture f;
    chain(&f, &rng, 2 + below(&rng, 60));
    cs_plan *plan = make(&f, &cs_policy_sequential, 1);
    double ratio = (double)plan->arena_bytes / (double)live_bytes(plan, &f.program);
    assert_true(ratio >= 1);
    if (ratio > worst) worst = ratio;
    sum += ratio;
    cs_plan_destroy(plan);
    fixture_free(&f);
  }
  print_message("chains: arena / live bytes: mean %.4f, worst %.4f\n", sum / 200, worst);
  assert_true(worst <= 1.25 && sum / 200 <= 1.02);
}

/* Modules of four branches (1×1; 1×1 → 3×3; 1×1 → 5×5; pool → 1×1) that write slices of one
 * concat, as in GoogLeNet. `scale` bytes a channel. */
static void inception(fixture *f, cs_rng *rng, int modules, int64_t scale) {
  static const int inner[4] = {0, 96, 16, 192}, outer[4] = {64, 128, 32, 32};
  fixture_init(f, 7 * modules + 1);
  int from = add_tensor(f, add_buffer(f, 192 * scale, CS_BUFFER_INPUT));
  int writers[4], n_writers = 0;
  for (int m = 0; m < modules; m++) {
    int concat = add_buffer(f, 256 * scale, CS_BUFFER_INTERMEDIATE), ends[4];
    for (int b = 0; b < 4; b++) {
      int input = from, pred = -1;
      if (inner[b] > 0) {
        int middle = add_tensor(f, add_buffer(f, inner[b] * scale, CS_BUFFER_INTERMEDIATE));
        pred = add_task(f, &from, 1, middle, writers, n_writers);
        add_choice(f, pred, 3 + below(rng, 4), 0);
        input = middle;
      }
      ends[b] = pred >= 0 ? add_task(f, &input, 1, add_tensor(f, concat), &pred, 1)
                          : add_task(f, &from, 1, add_tensor(f, concat), writers, n_writers);
      add_choice(f, ends[b], outer[b] / 8, outer[b] * 64);
    }
    memcpy(writers, ends, sizeof writers);
    n_writers = 4;
    from = add_tensor(f, concat);
  }
  int last = add_tensor(f, add_buffer(f, scale, CS_BUFFER_OUTPUT));
  add_choice(f, add_task(f, &from, 1, last, writers, n_writers), 2, 0);
}

static void inception_modules_take_what_lives_at_once(void **state) {
  (void)state;
  fixture f;
  cs_rng rng;
  cs_rng_init(&rng, 12, 1);
  inception(&f, &rng, 9, 784 * 4);
  cs_plan *sequential = make(&f, &cs_policy_sequential, 1);
  cs_plan *streams = make(&f, &cs_policy_streams, 8);
  double ratio = (double)sequential->arena_bytes / (double)live_bytes(sequential, &f.program);
  print_message(
      "inception: arena / live bytes %.4f; four streams take %.2f of one stream's arena\n", ratio,
      (double)streams->arena_bytes / (double)sequential->arena_bytes);
  assert_true(ratio >= 1 && ratio <= 1.02);
  assert_int_equal(streams->n_streams, 4);
  assert_true(streams->arena_bytes >= sequential->arena_bytes);
  assert_true(streams->predicted_us < sequential->predicted_us);
  cs_plan_destroy(sequential);
  cs_plan_destroy(streams);
  fixture_free(&f);
}

static void assert_buffers_disjoint(const cs_plan *plan, const cs_program *program) {
  for (int a = 0; a < plan->n_buffers; a++)
    for (int b = 0; b < a; b++) {
      int64_t end_a = plan->buffer_offsets[a] + program->buffers[a].bytes;
      int64_t end_b = plan->buffer_offsets[b] + program->buffers[b].bytes;
      bool empty = program->buffers[a].bytes == 0 || program->buffers[b].bytes == 0;
      assert_true(empty || end_a <= plan->buffer_offsets[b] || end_b <= plan->buffer_offsets[a]);
    }
}

/* Every buffer has bytes of its own; on one stream all workspaces share one region, as large as the
 * largest. */
static void without_reuse_only_workspaces_share(void **state) {
  (void)state;
  cs_rng rng;
  fixture f;
  cs_rng_init(&rng, 13, 1);
  random_program(&f, &rng, 30, 8);
  const cs_policy *policies[] = {&cs_policy_sequential, &cs_policy_streams};
  for (int i = 0; i < 2; i++) {
    cs_plan *plan = make(&f, policies[i], i == 0 ? 1 : 4);
    int64_t buffers = 0, workspaces = 0, largest = 0, shared = plan->arena_bytes;
    assert_ok(cs_plan_memory(plan, &f.program, false, 0));
    for (int b = 0; b < plan->n_buffers; b++) buffers += padded(f.program.buffers[b].bytes);
    for (int p = 0; p < plan->n_tasks; p++) {
      int64_t bytes = padded(plan->tasks[p].workspace_bytes);
      workspaces += bytes;
      if (bytes > largest) largest = bytes;
    }
    assert_true(largest > 0 && workspaces > largest);
    if (i == 0) assert_true(plan->arena_bytes == buffers + largest);
    assert_in_range(plan->arena_bytes, buffers + largest, buffers + workspaces);
    assert_true(shared < plan->arena_bytes);
    assert_buffers_disjoint(plan, &f.program);
    assert_ok(cs_plan_check(plan, &f.program, 0, 0));
    cs_plan_destroy(plan);
  }
  fixture_free(&f);
}

static void the_memory_limit_holds(void **state) {
  (void)state;
  cs_rng rng;
  fixture f;
  char wanted[64];
  cs_rng_init(&rng, 14, 1);
  inception(&f, &rng, 3, 1000);
  cs_plan *plan = make(&f, &cs_policy_streams, 8);
  int64_t arena = plan->arena_bytes;
  snprintf(wanted, sizeof wanted, "needs %lld bytes", (long long)arena);
  assert_ok(cs_plan_memory(plan, &f.program, true, arena));
  assert_fails(cs_plan_memory(plan, &f.program, true, arena - 1), CS_CODE_NO_MEMORY, wanted);
  cs_plan_destroy(plan);
  fixture_free(&f);
}

static void buffers_out_of_range_are_refused(void **state) {
  (void)state;
  fixture f;
  cs_plan *plan = NULL;
  cs_rng rng;
  cs_rng_init(&rng, 15, 1);
  chain(&f, &rng, 3);
  f.program.buffers[1].bytes = f.program.buffers[2].bytes = INT64_MAX - 300;
  cs_policy_input input = fixture_input(&f, 1, 0, 0);
  assert_fails(cs_plan_make(&cs_policy_sequential, &input, &plan), CS_CODE_BAD_INPUT,
               "out of range");
  fixture_free(&f);
}

/* Processor time: other work on the machine does not count. */
static void plan_in_time(const cs_policy *policy, const fixture *f, int streams, int64_t limit) {
  cs_plan *plan = NULL;
  cs_policy_input input = fixture_input(f, streams, limit, 0);
  clock_t start = clock();
  assert_ok(cs_plan_make(policy, &input, &plan));
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  print_message("%s: %d tasks, %d streams, limit %lld: %.3f s\n", policy->name, plan->n_tasks,
                plan->n_streams, (long long)limit, seconds);
  assert_true(seconds < (policy == &cs_policy_ios ? 2.0 : 1.0) * SLOWER);
  cs_plan_destroy(plan);
}

static void a_thousand_tasks_are_planned_in_a_second(void **state) {
  (void)state;
  int n_policies;
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  for (int shape = 0; shape < 3; shape++) {
    cs_rng rng;
    fixture f;
    cs_rng_init(&rng, 16, (uint64_t)shape);
    if (shape == 2) {
      inception(&f, &rng, 143, 3000);
    } else {
      random_program(&f, &rng, 1000, shape == 0 ? 12 : 400);
    }
    for (int i = 0; i < n_policies; i++) {
      plan_in_time(policies[i], &f, 8, 0);
      plan_in_time(policies[i], &f, 8, 75000);
      plan_in_time(policies[i], &f, 2, 0);
    }
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_take_what_lives_at_once),
      cmocka_unit_test(inception_modules_take_what_lives_at_once),
      cmocka_unit_test(without_reuse_only_workspaces_share),
      cmocka_unit_test(the_memory_limit_holds),
      cmocka_unit_test(buffers_out_of_range_are_refused),
      cmocka_unit_test(a_thousand_tasks_are_planned_in_a_second),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
