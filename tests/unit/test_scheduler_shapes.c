/* Graphs of the shapes that real networks have: every policy plans each of them, with few and many
 * streams and under limits, and the checker finds nothing wrong. */
#include "unit/scheduler_fixture.h"

/* What a task reads: a tensor and the tasks that wrote it. */
typedef struct value {
  int tensor, writers[16], n_writers;
} value;

static value make_input(fixture *f) {
  return (value){.tensor = add_tensor(f, add_buffer(f, 4096, CS_BUFFER_INPUT))};
}

/* A task with random candidates that writes a buffer (−1: one of its own). */
static value add_op(fixture *f, cs_rng *rng, const value *inputs, int n_inputs, int buffer) {
  bool is_pred[512] = {false};
  int tensors[CS_MAX_OP_INPUTS], preds[512], n_preds = 0, t = f->program.n_tasks;
  for (int i = 0; i < n_inputs; i++) {
    tensors[i] = inputs[i].tensor;
    for (int w = 0; w < inputs[i].n_writers; w++) is_pred[inputs[i].writers[w]] = true;
  }
  for (int u = 0; u < t; u++)
    if (is_pred[u]) preds[n_preds++] = u;
  if (buffer < 0) buffer = add_buffer(f, 256 * (1 + below(rng, 30)), CS_BUFFER_INTERMEDIATE);
  value out = {.tensor = add_tensor(f, buffer), .n_writers = 1};
  out.writers[0] = add_task(f, tensors, n_inputs, out.tensor, preds, n_preds);
  random_choices(f, rng, t, 4, 8000);
  return out;
}

static value op1(fixture *f, cs_rng *rng, value a) {
  return add_op(f, rng, &a, 1, -1);
}
static value op2(fixture *f, cs_rng *rng, value a, value b) {
  value inputs[] = {a, b};
  return add_op(f, rng, inputs, 2, -1);
}
static value chain_of(fixture *f, cs_rng *rng, value a, int n) {
  for (int i = 0; i < n; i++) a = op1(f, rng, a);
  return a;
}

static int concat_buffer(fixture *f) {
  return add_buffer(f, 20000, CS_BUFFER_INTERMEDIATE);
}
/* The whole of a buffer that n tasks wrote slices of. */
static value whole_of(fixture *f, int buffer, const value *slices, int n) {
  value out = {.tensor = add_tensor(f, buffer)};
  for (int i = 0; i < n; i++) out.writers[out.n_writers++] = slices[i].writers[0];
  return out;
}

/* ---- The shapes ---- */

/* Four levels down and up again; the way up reads, through an operation, what the way down left at
 * its level: no value is passed by all paths but the first. */
static void unet(fixture *f, cs_rng *rng) {
  value x = make_input(f), skips[4];
  for (int level = 0; level < 4; level++) {
    skips[level] = chain_of(f, rng, x, 2);
    x = op1(f, rng, skips[level]);
  }
  x = chain_of(f, rng, x, 2);
  for (int level = 3; level >= 0; level--) {
    value up = op1(f, rng, x);
    x = chain_of(f, rng, op2(f, rng, up, op1(f, rng, skips[level])), 2);
  }
  op1(f, rng, x);
}

/* Cells that read the two cells before them: five pairs of operations, each pair added, and the
 * sums lie in one concat. */
static void nasnet(fixture *f, cs_rng *rng) {
  value before = op1(f, rng, make_input(f)), now = op1(f, rng, before);
  for (int cell = 0; cell < 6; cell++) {
    value states[7] = {op1(f, rng, before), op1(f, rng, now)};
    int buffer = concat_buffer(f);
    for (int pair = 0; pair < 5; pair++) {
      value sides[2];
      for (int side = 0; side < 2; side++)
        sides[side] = chain_of(f, rng, states[below(rng, pair + 2)], 1 + below(rng, 2));
      states[pair + 2] = add_op(f, rng, sides, 2, buffer);
    }
    before = now;
    now = whole_of(f, buffer, states + 2, 5);
  }
  op1(f, rng, now);
}

/* Four branches of different resolution that exchange all with all after every two operations. */
static void hrnet(fixture *f, cs_rng *rng) {
  value branches[4], stem = op1(f, rng, make_input(f));
  for (int b = 0; b < 4; b++) branches[b] = op1(f, rng, stem);
  for (int module = 0; module < 4; module++) {
    value ends[4];
    for (int b = 0; b < 4; b++) ends[b] = chain_of(f, rng, branches[b], 2);
    for (int to = 0; to < 4; to++) {
      value sum = ends[to];
      for (int from = 0; from < 4; from++)
        if (from != to) sum = op2(f, rng, sum, op1(f, rng, ends[from]));
      branches[to] = sum;
    }
  }
}

static void chain200(fixture *f, cs_rng *rng) {
  chain_of(f, rng, make_input(f), 200);
}

/* Branches of 1, 2, …, 12 operations from one value into one concat. */
static void branches12(fixture *f, cs_rng *rng) {
  value stem = op1(f, rng, make_input(f)), ends[12];
  int buffer = concat_buffer(f);
  for (int b = 0; b < 12; b++) {
    value last = chain_of(f, rng, stem, b);
    ends[b] = add_op(f, rng, &last, 1, buffer);
  }
  op1(f, rng, whole_of(f, buffer, ends, 12));
}

static const struct {
  const char *name;
  void (*build)(fixture *f, cs_rng *rng);
  int least, most; /* tasks */
} shapes[] = {{"unet", unet, 35, 35},
              {"nasnet", nasnet, 105, 165},
              {"hrnet", hrnet, 133, 133},
              {"chain", chain200, 200, 200},
              {"branches", branches12, 80, 80}};

/* ---- The checks ---- */

static double one_stream_us(const cs_plan *plan) {
  double sum = 0;
  for (int p = 0; p < plan->n_tasks; p++) sum += plan->tasks[p].end_us - plan->tasks[p].start_us;
  return sum;
}

static void assert_within_bounds(const cs_plan *plan, const fixture *f) {
  cs_bounds bounds;
  assert_ok(cs_bounds_of(&f->program, f->choices, 1, 1, &bounds));
  assert_true(plan->predicted_us >= bounds.critical_path_us - 1e-6);
  assert_true(plan->predicted_us <= one_stream_us(plan) + 1e-6);
}

static void assert_repeatable(const cs_policy *policy, const cs_policy_input *input,
                              const cs_plan *plan) {
  cs_plan *again = NULL;
  char *text = NULL, *text_again = NULL;
  assert_ok(cs_plan_make(policy, input, &again));
  assert_ok(cs_plan_to_json(plan, input->program, &text));
  assert_ok(cs_plan_to_json(again, input->program, &text_again));
  assert_string_equal(text, text_again);
  free(text);
  free(text_again);
  cs_plan_destroy(again);
}

/* Unlimited; then with half of the workspace that was in use at once, and no more than this arena,
 * or an error that says that it cannot be. */
static void plan_shape(const cs_policy *policy, const fixture *f, const char *shape, int streams) {
  cs_plan *plan = NULL, *limited = NULL;
  cs_policy_input input = fixture_input(f, streams, 0, 0);
  assert_ok(cs_plan_make(policy, &input, &plan));
  assert_in_range(plan->n_streams, 1, streams);
  assert_ok(cs_plan_check(plan, &f->program, 0, 0));
  assert_within_bounds(plan, f);
  assert_repeatable(policy, &input, plan);
  print_message("%-9s %-10s %2d of %2d streams: %6.0f us, one after the other %6.0f us\n", shape,
                policy->name, plan->n_streams, streams, plan->predicted_us, one_stream_us(plan));
  input.workspace_limit = plan->workspace_peak / 2 + 1;
  cs_status st = cs_plan_make(policy, &input, &limited);
  if (st == CS_OK) {
    assert_ok(cs_plan_check(limited, &f->program, input.workspace_limit, 0));
  } else {
    assert_int_equal(cs_status_code(st), CS_CODE_NOT_FOUND);
    assert_non_null(strstr(cs_status_message(st), "the smallest possible is"));
  }
  cs_status_free(st);
  cs_plan_destroy(limited);
  input.workspace_limit = 0;
  input.memory_limit = plan->arena_bytes - 1;
  cs_plan_destroy(make_in_memory(policy, input));
  cs_plan_destroy(plan);
}

static void every_policy_plans_every_shape(void **state) {
  (void)state;
  static const int streams[] = {1, 4, 16};
  int n_policies;
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    cs_rng rng;
    fixture f;
    cs_rng_init(&rng, 41, (uint64_t)s);
    fixture_init(&f, 300);
    shapes[s].build(&f, &rng);
    assert_in_range(f.program.n_tasks, shapes[s].least, shapes[s].most);
    for (int i = 0; i < n_policies; i++)
      for (size_t k = 0; k < sizeof streams / sizeof streams[0]; k++)
        plan_shape(policies[i], &f, shapes[s].name, streams[k]);
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_policy_plans_every_shape),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
