/* Every policy on profiles recorded on an H100: choices carry the kernels that were recorded, the
 * plans are valid, and what they promise lies between the critical path and one stream. */
#include "recorded_fixture.h"
#include "runtime/least_memory.h"

/* The choices of every task have what the profile has of them. */
static int assert_kernels_are_the_records(const recorded *r) {
  int with_kernels = 0;
  for (int t = 0; t < r->program->n_tasks; t++) {
    char *signature = NULL;
    ok(cs_op_signature(&r->program->tasks[t].desc, &signature));
    const cs_op_profile *known = cs_profile_find(r->profile, signature);
    for (int c = 0; c < r->choices[t].n; c++) {
      const cs_choice *choice = &r->choices[t].choices[c];
      const cs_record *record = cs_op_profile_record(known, choice->candidate->id);
      assert_non_null(record);
      assert_int_equal(choice->n_kernels, record->n_kernels);
      if (record->n_kernels > 0) {
        assert_memory_equal(choice->kernels, record->kernels,
                            (size_t)record->n_kernels * sizeof *record->kernels);
      }
    }
    with_kernels += r->choices[t].choices[0].n_kernels > 0;
    free(signature);
  }
  return with_kernels;
}

static void plan_model(const char *profile, const char *model, int64_t batch,
                       cs_precision precision) {
  recorded r;
  cs_bounds bounds;
  int n_policies;
  const cs_policy *const *policies = cs_policy_all(&n_policies);
  recorded_open(&r, profile, model, batch, precision);
  int with_kernels = assert_kernels_are_the_records(&r);
  print_message("%s of %s: %d tasks, kernels of %d recorded\n", model, profile, r.program->n_tasks,
                with_kernels);
  assert_true(with_kernels > r.program->n_tasks / 2);
  ok(cs_bounds_of(r.program, r.choices, 1, 1, &bounds));
  double area_us = cs_area_us(r.program, r.choices, cs_profile_device(r.profile));
  print_message("  critical path %.1f us, area %.1f us\n", bounds.critical_path_us, area_us);
  cs_plan *sequential = make(&r, &cs_policy_sequential);
  for (int i = 0; i < n_policies; i++) {
    cs_plan *plan = make(&r, policies[i]);
    print_message("  %-10s %d streams, %8.1f us predicted without contention\n", policies[i]->name,
                  plan->n_streams, plan->predicted_us);
    ok(cs_plan_check(plan, r.program, r.settings.options.workspace_limit, 0));
    ok(cs_check_least_memory(r.program->graph, precision, plan->arena_bytes)); /* a lower bound */
    assert_true(plan->predicted_us >= bounds.critical_path_us * (1 - 1e-9));
    assert_true(policies[i] == &cs_policy_sequential ||
                plan->predicted_us < sequential->predicted_us);
    cs_plan_destroy(plan);
  }
  cs_plan_destroy(sequential);
  recorded_close(&r);
}

static void policies_plan_recorded_networks(void **state) {
  (void)state;
  static const struct {
    const char *profile;
    int64_t batch;
    cs_precision precision;
  } cells[] = {{"h100-f16-b1", 1, CS_PRECISION_F16},
               {"h100-f16-b32", 32, CS_PRECISION_F16},
               {"h100-tf32-b1", 1, CS_PRECISION_TF32},
               {"h100-tf32-b32", 32, CS_PRECISION_TF32}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    plan_model(cells[i].profile, "googlenet_bn", cells[i].batch, cells[i].precision);
    plan_model(cells[i].profile, "inception_v3", cells[i].batch, cells[i].precision);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(policies_plan_recorded_networks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
