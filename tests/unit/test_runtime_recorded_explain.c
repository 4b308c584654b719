/* Explanations and fronts of plans from profiles recorded on an H100. */
#include "recorded_fixture.h"
#include "scheduler/explain.h"
#include "scheduler/tradeoff.h"

/* What was recorded to limit two operations, when they were measured together; NULL: they were not.
 */
static const char *recorded_limiter(const recorded *r, const cs_explained_pair *pair,
                                    const cs_choice *const *chosen) {
  const int tasks[] = {pair->a, pair->b};
  char *signatures[2];
  const char *limiter = NULL;
  const cs_corun **found = NULL;
  cs_corun_member members[2];
  int n = 0;
  for (int i = 0; i < 2; i++) {
    ok(cs_op_signature(&r->program->tasks[tasks[i]].desc, &signatures[i]));
    members[i] = (cs_corun_member){signatures[i], chosen[tasks[i]]->candidate->id};
  }
  cs_corun wanted = {.members = members, .n = 2};
  cs_corun_sort(&wanted);
  const char *sorted[] = {members[0].signature, members[1].signature};
  ok(cs_profile_coruns(r->profile, sorted, 2, &found, &n));
  for (int i = 0; i < n; i++)
    if (strcmp(found[i]->members[0].candidate, members[0].candidate) == 0 &&
        strcmp(found[i]->members[1].candidate, members[1].candidate) == 0)
      limiter = found[i]->limiter;
  free(found);
  for (int i = 0; i < 2; i++) free(signatures[i]);
  return limiter;
}

typedef struct tally {
  int pairs, known, recorded, apart, solved;
} tally;

static void check_pair(const recorded *r, const cs_explained_pair *pair,
                       const cs_choice *const *chosen, tally *count) {
  count->pairs++;
  if (!pair->limiter[0]) return;
  count->known++;
  bool free_of_limits = strcmp(pair->limiter, "none") == 0, solved = false;
  count->apart += !free_of_limits;
  const char *limiter = recorded_limiter(r, pair, chosen);
  if (limiter) {
    count->recorded++;
    assert_string_equal(pair->limiter, limiter);
  }
  for (int i = 0; i < pair->n_alternatives; i++) {
    const cs_alternative *other = &pair->alternatives[i];
    assert_true(other->task == pair->a || other->task == pair->b);
    assert_ptr_not_equal(other->choice, chosen[other->task]);
    assert_true(other->cost_us == other->choice->cold_us - chosen[other->task]->cold_us);
    assert_true(other->cost_us >= 0); /* the policy chooses the fastest */
    solved = solved || (!free_of_limits && strcmp(other->limiter, "none") == 0);
  }
  count->solved += solved;
}

static void explain_model(const char *profile, int64_t batch, cs_precision precision,
                          tally *count) {
  recorded r;
  cs_explanation told;
  json_t *json = NULL;
  recorded_open(&r, profile, "inception_v3", batch, precision);
  cs_policy_input input = recorded_input(&r);
  cs_plan *plan = make(&r, &cs_policy_streams);
  const cs_choice **chosen = cs_calloc((size_t)plan->n_tasks, sizeof *chosen);
  ok(cs_explain(plan, &input, CS_EXPLAIN_PAIRS, &told));
  for (int b = 0; b < told.n_blocks; b++)
    for (int i = 0; i < told.blocks[b].n_tasks; i++) {
      assert_true(told.blocks[b].tasks[i].demand.known);
      chosen[told.blocks[b].tasks[i].task] = told.blocks[b].tasks[i].choice;
    }
  for (int b = 0; b < told.n_blocks; b++)
    for (int i = 0; i < told.blocks[b].n_pairs; i++)
      check_pair(&r, &told.blocks[b].pairs[i], chosen, count);
  ok(cs_explanation_json(&told, plan, r.program, &json));
  assert_int_equal(json_array_size(json_object_get(json, "blocks")), told.n_blocks);
  json_decref(json);
  cs_explanation_free(&told);
  free(chosen);
  cs_plan_destroy(plan);
  recorded_close(&r);
}

static void limiters_are_those_recorded(void **state) {
  (void)state;
  tally count = {0};
  explain_model("h100-f16-b1", 1, CS_PRECISION_F16, &count);
  explain_model("h100-f16-b32", 32, CS_PRECISION_F16, &count);
  print_message(
      "%d pairs: limiter of %d known, of %d recorded with co-runs; %d kept apart, of %d "
      "another candidate would not be\n",
      count.pairs, count.known, count.recorded, count.apart, count.solved);
  assert_true(count.known == count.pairs && count.recorded > 10);
  assert_true(count.apart > 0 && count.solved > 0);
}

static void less_memory_costs_time(void **state) {
  (void)state;
  recorded r;
  cs_tradeoff front;
  recorded_open(&r, "h100-tf32-b32", "googlenet_bn", 32, CS_PRECISION_TF32);
  cs_policy_input input = recorded_input(&r);
  ok(cs_tradeoff_of(&cs_policy_streams, &input, &front));
  for (int i = 0; i < front.n; i++)
    print_message("limit %lld: arena %lld, workspace %lld, %d streams, %.1f us\n",
                  (long long)front.points[i].memory_limit, (long long)front.points[i].arena,
                  (long long)front.points[i].workspace, front.points[i].n_streams,
                  front.points[i].predicted_us);
  assert_true(front.n > 1);
  assert_true(front.points[front.n - 1].arena < front.points[0].arena * 9 / 10);
  recorded_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(limiters_are_those_recorded),
      cmocka_unit_test(less_memory_costs_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
