/* Every policy on profiles recorded on an H100: choices carry the kernels that were recorded, the
 * plans are valid, and what they promise lies between the critical path and one stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#include "runtime/planning.h"

#define STREAMS 8

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

typedef struct recorded {
  cs_profile *profile;
  cs_settings settings;
  cs_graph *graph, *bound, *passed;
  cs_program *program;
  cs_task_choices *choices;
} recorded;

/* A model in channels-last layout throughout. */
static void recorded_open(recorded *r, const char *profile, const char *model, int64_t batch,
                          cs_precision precision) {
  char path[512];
  cs_pass_report report;
  cs_session_options options;
  cs_near near = {0};
  memset(r, 0, sizeof *r);
  cs_session_options_init(&options);
  ok(cs_settings_copy(&options, &r->settings));
  snprintf(path, sizeof path, "%s/tests/data/profiles/%s.jsonl.gz", CS_SOURCE_DIR, profile);
  ok(cs_profile_open_file(path, NULL, &r->profile));
  snprintf(path, sizeof path, "%s/models/%s.json", CS_SOURCE_DIR, model);
  ok(cs_graph_load(path, &r->graph));
  ok(cs_graph_bind(r->graph, batch, &r->bound));
  ok(cs_graph_apply_passes(r->bound, CS_PASSES_ALL, &report, &r->passed));
  cs_layout *layouts = cs_calloc((size_t)r->passed->n_values, sizeof *layouts);
  for (int v = 0; v < r->passed->n_values; v++)
    if (cs_graph_layout_allowed(r->passed, v, CS_LAYOUT_NHWC)) layouts[v] = CS_LAYOUT_NHWC;
  ok(cs_program_lower(r->passed, precision, layouts, &r->program));
  free(layouts);
  ok(cs_choices_of_program(r->profile, r->program, &r->settings, 0, &near, &r->choices));
}

static void recorded_close(recorded *r) {
  cs_choices_free(r->choices, r->program->n_tasks);
  cs_program_destroy(r->program);
  cs_graph_destroy(r->passed);
  cs_graph_destroy(r->bound);
  cs_graph_destroy(r->graph);
  cs_profile_close(r->profile);
  cs_settings_free(&r->settings);
}

/* The choices of every task point to what the profile has of them. */
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
      assert_ptr_equal(choice->kernels, record->kernels);
      assert_int_equal(choice->n_kernels, record->n_kernels);
    }
    with_kernels += r->choices[t].choices[0].n_kernels > 0;
    free(signature);
  }
  return with_kernels;
}

static cs_plan *make(const recorded *r, const cs_policy *policy) {
  cs_plan *plan = NULL;
  const cs_device_info *device = cs_profile_device(r->profile);
  cs_policy_input input = {.program = r->program,
                           .choices = r->choices,
                           .max_streams = STREAMS,
                           .workspace_limit = r->settings.options.workspace_limit,
                           .device_identity = cs_profile_identity(r->profile),
                           .device = device};
  assert_non_null(device);
  ok(cs_plan_make(policy, &input, &plan));
  return plan;
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
