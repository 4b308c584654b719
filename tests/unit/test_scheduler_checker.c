/* Plans of every policy for thousands of random programs, and mutants of them, judged by the plan
 * checker and by an oracle that tries everything. The two must agree on each. */
#include "sanitized.h"
#include "unit/plan_oracle.h"

/* Few steps for policies that search: what matters is that any plan is right. */
static cs_policy_input input_with(const fixture *f, int max_streams, int64_t workspace_limit,
                                  int64_t memory_limit) {
  cs_policy_input input = fixture_input(f, max_streams, workspace_limit, memory_limit);
  input.search_steps = 6;
  return input;
}

/* ---- Mutants ---- */

enum {
  SWAP,
  SWAP_DEPENDENT, /* a task and one that reads what it wrote */
  DROP_WAIT,
  SHIFT_BUFFER,
  OVERLAP, /* an output is put where its task reads */
  SHIFT_WORKSPACE,
  SHRINK,
  DUPLICATE,
  MISS, /* the last task is not launched */
  MOVE_STREAM,
  N_MUTATIONS
};
static const char *const mutation_names[] = {
    "swap",   "swap dependent", "drop wait",   "shift buffer", "overlap", "shift workspace",
    "shrink", "duplicate",      "miss a task", "move stream"};
/* No plan stays right after these. */
static const bool always_wrong[N_MUTATIONS] = {
    [SWAP_DEPENDENT] = true, [OVERLAP] = true, [DUPLICATE] = true, [MISS] = true};

static void swap_positions(cs_plan *plan, int p, int q) {
  cs_plan_task kept = plan->tasks[p];
  plan->tasks[p] = plan->tasks[q];
  plan->tasks[q] = kept;
}

static void drop_wait(cs_plan_task *task, int w) {
  for (; w + 1 < task->n_waits; w++) task->waits[w] = task->waits[w + 1];
  task->n_waits--;
}

static int64_t some_offset(const cs_plan *plan, cs_rng *rng) {
  if (below(rng, 2)) return plan->buffer_offsets[below(rng, plan->n_buffers)];
  return plan->tasks[below(rng, plan->n_tasks)].workspace_offset;
}

static bool swap_dependent(cs_plan *plan, const cs_program *program, int p) {
  int position[ORACLE_MAX];
  const cs_task *task = &program->tasks[plan->tasks[p].task];
  if (task->n_preds == 0) return false;
  cs_plan_positions(plan, position);
  swap_positions(plan, p, position[task->preds[0]]);
  return true;
}

/* The output of the task at a position comes to lie on an input of it, another buffer. */
static bool overlap(cs_plan *plan, const cs_program *program, int p) {
  const cs_task *task = &program->tasks[plan->tasks[p].task];
  int from = program->tensors[task->inputs[0]].buffer, to = program->tensors[task->output].buffer;
  if (from == to || program->buffers[from].bytes == 0 || program->buffers[to].bytes == 0)
    return false;
  plan->buffer_offsets[to] = plan->buffer_offsets[from];
  return true;
}

/* Changes the plan; false if it has nothing to change in this way. */
static bool mutate(cs_plan *plan, const cs_program *program, cs_rng *rng, int mutation) {
  int n = plan->n_tasks, p = below(rng, n);
  cs_plan_task *task = &plan->tasks[p];
  switch (mutation) {
    case SWAP:
      swap_positions(plan, p, below(rng, n));
      return true;
    case SWAP_DEPENDENT:
      return swap_dependent(plan, program, p);
    case OVERLAP:
      return overlap(plan, program, p);
    case DROP_WAIT:
      for (int i = 0; i < n; i++) {
        task = &plan->tasks[(p + i) % n];
        if (task->n_waits == 0) continue;
        drop_wait(task, below(rng, task->n_waits));
        return true;
      }
      return false;
    case SHIFT_BUFFER:
      plan->buffer_offsets[below(rng, plan->n_buffers)] = some_offset(plan, rng);
      return true;
    case SHIFT_WORKSPACE:
      task->workspace_offset = some_offset(plan, rng);
      return true;
    case SHRINK:
      plan->arena_bytes -= 1 + below(rng, 600);
      return true;
    case DUPLICATE:
      if (n < 2) return false;
      task->task = plan->tasks[(p + 1) % n].task;
      return true;
    case MISS: /* cs_plan_destroy frees what n_tasks says */
      cs_candidate_clear(&plan->tasks[n - 1].candidate);
      free(plan->tasks[n - 1].waits);
      plan->n_tasks--;
      return true;
    default:
      task->stream = below(rng, plan->n_streams);
      return true;
  }
}

typedef struct tally {
  int caught[N_MUTATIONS], equivalent[N_MUTATIONS], barrier_waits;
} tally;

static void try_mutant(const cs_plan *plan, const cs_program *program, cs_rng *rng, int mutation,
                       tally *count) {
  cs_plan *mutant = clone(plan);
  if (mutate(mutant, program, rng, mutation)) {
    bool right = judged(mutant, program, mutation_names[mutation]);
    if (right && mutation == DROP_WAIT && strcmp(plan->policy, "ios") == 0)
      count->barrier_waits++; /* that no dependency needs */
    else
      (right ? count->equivalent : count->caught)[mutation]++;
  }
  cs_plan_destroy(mutant);
}

/* A limit below the true peak, and a peak that is written down wrong. */
static void try_limits(cs_plan *plan, const cs_program *program) {
  if (plan->workspace_peak > 0) {
    assert_ok(cs_plan_check(plan, program, plan->workspace_peak, 0));
    if (plan->workspace_peak > 1)
      assert_fails(cs_plan_check(plan, program, plan->workspace_peak - 1, 0), CS_CODE_INTERNAL,
                   "bytes of workspace can be in use at once");
  }
  if (plan->arena_bytes > 1)
    assert_fails(cs_plan_check(plan, program, 0, plan->arena_bytes - 1), CS_CODE_INTERNAL,
                 "memory limit");
  plan->workspace_peak++;
  assert_fails(cs_plan_check(plan, program, 0, 0), CS_CODE_INTERNAL, "in use at once at most");
  plan->workspace_peak--;
}

/* The peak that is left when every task takes its least workspace, by brute force. */
static int64_t least_peak(const cs_plan *plan, const fixture *f) {
  closure c;
  cs_plan *least = clone(plan);
  close_plan(plan, &c);
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_task_choices *own = &f->choices[plan->tasks[p].task];
    for (int i = 0; i < own->n; i++)
      if (own->choices[i].candidate->workspace_bytes < least->tasks[p].workspace_bytes)
        least->tasks[p].workspace_bytes = own->choices[i].candidate->workspace_bytes;
  }
  int64_t peak = brute_peak(least, &c);
  cs_plan_destroy(least);
  return peak;
}

/* On one stream it cannot be less on any number of them: `coselect` has that plan, too. */
static int64_t least_in_order(const fixture *f) {
  cs_plan *plan = NULL;
  cs_policy_input input = input_with(f, 1, 0, 0);
  assert_ok(cs_plan_make(&cs_policy_sequential, &input, &plan));
  int64_t least = least_peak(plan, f);
  cs_plan_destroy(plan);
  return least;
}

/* The same under a workspace limit: it holds, or the error is right that nothing can hold it. */
static void try_workspace_limit(const cs_policy *policy, const fixture *f, const cs_plan *free_plan,
                                int max_streams, cs_rng *rng) {
  cs_plan *plan = NULL;
  int64_t limit = 1 + below(rng, 12000);
  cs_policy_input input = input_with(f, max_streams, limit, 0);
  cs_status st = cs_plan_make(policy, &input, &plan);
  if (st == CS_OK) {
    assert_true(plan->workspace_peak <= limit);
    assert_ok(cs_plan_check(plan, &f->program, limit, 0));
    assert_true(is_right(plan, &f->program));
    if (free_plan->workspace_peak <= limit)
      assert_true(plan->workspace_peak == free_plan->workspace_peak);
  } else {
    assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
    assert_null(plan);
    if (f->program.n_tasks <= 12) {
      char wanted[64];
      int64_t least = least_peak(free_plan, f);
      if (policy == &cs_policy_coselect) least = least_in_order(f);
      assert_true(least > limit);
      snprintf(wanted, sizeof wanted, "the smallest possible is %lld", (long long)least);
      if (!strstr(cs_status_message(st), wanted))
        fail_msg("%s; wanted: %s", cs_status_message(st), wanted);
    }
  }
  cs_status_free(st);
  cs_plan_destroy(plan);
}

/* The same under a memory limit: the arena it has anyway, and a byte less. */
static void try_memory_limit(const cs_policy *policy, const fixture *f, const cs_plan *free_plan,
                             int max_streams) {
  cs_plan *plan = NULL;
  if (free_plan->arena_bytes < 2) return;
  cs_policy_input input = input_with(f, max_streams, 0, free_plan->arena_bytes);
  assert_ok(cs_plan_make(policy, &input, &plan));
  assert_true(plan->arena_bytes == free_plan->arena_bytes);
  cs_plan_destroy(plan);
  input.memory_limit--;
  plan = make_in_memory(policy, input);
  assert_true(is_right(plan, &f->program));
  cs_plan_destroy(plan);
}

/* Every policy plans the program without limits; one of them in turn with. */
static void one_program(cs_rng *rng, int turn, tally *count) {
  static const int stream_counts[] = {1, 2, 3, 4, 8, 64};
  fixture f;
  random_program(&f, rng, 2 + below(rng, 1 + below(rng, 39)), 1 + below(rng, 12));
  int n_policies, max_streams = stream_counts[below(rng, 6)];
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  for (int i = 0; i < n_policies; i++) {
    cs_plan *plan = NULL;
    cs_policy_input input = input_with(&f, max_streams, 0, 0);
    assert_ok(cs_plan_make(policies[i], &input, &plan));
    assert_true(plan->n_streams <= max_streams);
    assert_ok(cs_plan_check(plan, &f.program, 0, 0));
    assert_true(is_right(plan, &f.program));
    try_limits(plan, &f.program);
    try_mutant(plan, &f.program, rng, below(rng, N_MUTATIONS), count);
    if (turn % (2 * n_policies) == i) try_workspace_limit(policies[i], &f, plan, max_streams, rng);
    if (turn % (2 * n_policies) == n_policies + i)
      try_memory_limit(policies[i], &f, plan, max_streams);
    cs_plan_destroy(plan);
  }
  fixture_free(&f);
}

static void every_plan_is_right_and_every_mutant_is_judged(void **state) {
  (void)state;
  cs_rng rng;
  tally count = {0};
  cs_rng_init(&rng, 2024, 1);
  const int n = RANDOM_CASES(10000);
  for (int i = 0; i < n; i++) one_program(&rng, i, &count);
  print_message("%d programs\n", n);
  for (int m = 0; m < N_MUTATIONS; m++) {
    print_message("%-16s %5d wrong, all caught; %5d still right, all accepted\n", mutation_names[m],
                  count.caught[m], count.equivalent[m]);
    assert_true(count.caught[m] >= n / 100);
    if (always_wrong[m]) assert_int_equal(count.equivalent[m], 0);
  }
  print_message("%-16s %5d dropped\n", "waits of barriers", count.barrier_waits);
  assert_int_equal(count.equivalent[DROP_WAIT], 0); /* no other wait is there in vain */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_plan_is_right_and_every_mutant_is_judged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
