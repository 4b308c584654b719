/* A model lowered for a profile recorded on an H100, with the choices that the profile gives. */
#ifndef CONVSCHED_TESTS_UNIT_RECORDED_FIXTURE_H_
#define CONVSCHED_TESTS_UNIT_RECORDED_FIXTURE_H_

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

static inline void ok(cs_status st) {
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
static inline void recorded_open(recorded *r, const char *profile, const char *model, int64_t batch,
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

static inline void recorded_close(recorded *r) {
  cs_choices_free(r->choices, r->program->n_tasks);
  cs_program_destroy(r->program);
  cs_graph_destroy(r->passed);
  cs_graph_destroy(r->bound);
  cs_graph_destroy(r->graph);
  cs_profile_close(r->profile);
  cs_settings_free(&r->settings);
}

static inline cs_policy_input recorded_input(const recorded *r) {
  return (cs_policy_input){.program = r->program,
                           .choices = r->choices,
                           .max_streams = STREAMS,
                           .workspace_limit = r->settings.options.workspace_limit,
                           .device_identity = cs_profile_identity(r->profile),
                           .device = cs_profile_device(r->profile)};
}

static inline cs_plan *make(const recorded *r, const cs_policy *policy) {
  cs_plan *plan = NULL;
  cs_policy_input input = recorded_input(r);
  assert_non_null(input.device);
  ok(cs_plan_make(policy, &input, &plan));
  return plan;
}

#endif
