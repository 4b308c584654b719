/* Sessions on a simulated H100: plans and predictions, and refusals of all that needs numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#include "runtime/session.h"
#include "unit/status_checks.h"

#define PROFILES CS_SOURCE_DIR "/tests/data/profiles/"

typedef struct fixture {
  cs_device *device;
  cs_graph *graph;
  cs_session_options options;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  ok(cs_device_open("sim:" PROFILES "h100-f16-b1.jsonl.gz", NULL, &f->device));
  ok(cs_graph_load(CS_SOURCE_DIR "/models/googlenet.json", &f->graph));
  cs_session_options_init(&f->options);
  f->options.precision = CS_PRECISION_F16;
  f->options.policy = "streams";
  f->options.cache_dir = "/nowhere/to/be/written"; /* nothing opens it */
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  cs_graph_destroy(f->graph);
  cs_device_close(f->device);
  free(f);
  return 0;
}

static cs_session *session_of(fixture *f) {
  cs_session *session = NULL;
  ok(cs_session_create(f->device, f->graph, &f->options, &session));
  return session;
}

/* The model says the same of the plan and of the schedule made from it. */
static void latency_is_what_the_plan_predicts(void **state) {
  fixture *f = *state;
  double us[2], again, sum = 0;
  cs_session *streams = session_of(f), *sequential = NULL;
  ok(cs_session_fork(streams, "sequential", &sequential));
  cs_session *both[2] = {sequential, streams};
  for (int i = 0; i < 2; i++) {
    const cs_plan *plan = both[i]->planned.plan;
    ok(cs_session_latency(both[i], &us[i]));
    ok(cs_session_latency_b2b(both[i], 5, &again));
    assert_true(us[i] == again && us[i] == plan->predicted_us);
    assert_true(us[i] >= both[i]->planned.bounds.critical_path_us);
    for (int p = 0; p < plan->n_tasks; p++) {
      assert_true(plan->tasks[p].end_us > plan->tasks[p].start_us);
      assert_true(plan->tasks[p].end_us <= plan->predicted_us);
      for (int w = 0; w < plan->tasks[p].n_waits; w++) {
        assert_true(plan->tasks[p].start_us >= plan->tasks[plan->tasks[p].waits[w]].end_us);
      }
    }
  }
  const cs_task_choices *choices = sequential->planned.choices;
  for (int t = 0; t < sequential->planned.program->n_tasks; t++)
    sum += choices[t].choices[0].cold_us;
  assert_true(fabs(us[0] - sum) < 1e-6);
  assert_true(us[1] < us[0]);
  cs_session_destroy(streams);
  cs_session_destroy(sequential);
}

static void rates_that_were_not_recorded_are_not_known(void **state) {
  cs_session *session = session_of(*state);
  char *info = NULL;
  assert_true(session->planned.bounds.roofline_us != session->planned.bounds.roofline_us);
  ok(cs_session_info_json(session, &info));
  assert_non_null(strstr(info, "\"roofline_us\": null"));
  assert_null(strstr(info, "weights_bytes"));
  cs_string_free(info);
  cs_session_destroy(session);
}

static void what_needs_numbers_is_refused(void **state) {
  fixture *f = *state;
  cs_session *session = session_of(f);
  cs_verification verification;
  float one = 1;
  float *output = &one;
  const float *input = &one;
  int64_t size = 1;
  fails(cs_session_set_inputs(session, &input, &size, 1), CS_CODE_USAGE, "simulated");
  fails(cs_session_run(session, NULL, NULL, 0, &output, &size, 1), CS_CODE_USAGE, "simulated");
  fails(cs_session_read(session, "prob", &one, 1), CS_CODE_USAGE, "simulated");
  fails(cs_session_run_device(session, NULL, 0, NULL, 0, NULL), CS_CODE_USAGE, "no streams");
  fails(cs_session_verify(session, CS_VERIFY_SAMPLE, &verification), CS_CODE_USAGE, "simulated");
  cs_session_destroy(session);
  f->options.weights_path = "some.safetensors";
  fails(cs_session_create(f->device, f->graph, &f->options, &session), CS_CODE_USAGE,
        "some.safetensors");
  f->options.weights_path = NULL;
  f->options.refresh = true;
  fails(cs_session_create(f->device, f->graph, &f->options, &session), CS_CODE_USAGE, "refresh");
}

static void nothing_is_measured(void **state) {
  fixture *f = *state;
  char *text = NULL;
  int taken = 0;
  fails(cs_profile_model(f->device, f->graph, &f->options, NULL, &text), CS_CODE_USAGE, "profile");
  fails(cs_device_import_profile(f->device, NULL, PROFILES "h100-tf32-b1.jsonl.gz", &taken),
        CS_CODE_USAGE, "import");
  ok(cs_device_profile_json(f->device, NULL, &text));
  assert_non_null(strstr(text, "\"path\": null"));
  cs_string_free(text);
}

static void a_miss_says_what_to_do(void **state) {
  fixture *f = *state;
  cs_session *session = session_of(f), *other = NULL;
  fails(cs_session_set_batch(session, 3), CS_CODE_NOT_FOUND, "--batch 3 --dtype f16 --export");
  cs_session_destroy(session);
  f->options.workspace_limit = INT64_C(1) << 30;
  fails(cs_session_create(f->device, f->graph, &f->options, &other), CS_CODE_NOT_FOUND,
        "limit of 268435456 bytes, wanted one of 1073741824 bytes");
  f->options.workspace_limit = 0;
  session = session_of(f);
  assert_int_equal(session->planned.plan->workspace_peak, 0);
  cs_session_destroy(session);
}

static void specs(void **state) {
  (void)state;
  cs_device *device = NULL;
  fails(cs_device_open("sim", NULL, &device), CS_CODE_USAGE, "sim:FILE");
  fails(cs_device_open("sim:", NULL, &device), CS_CODE_USAGE, "sim:FILE");
  fails(cs_device_open("sum:x", NULL, &device), CS_CODE_USAGE, "sim:FILE");
  fails(cs_device_open("sim:/nowhere", NULL, &device), CS_CODE_IO, "/nowhere");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(latency_is_what_the_plan_predicts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rates_that_were_not_recorded_are_not_known, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(what_needs_numbers_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_measured, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_miss_says_what_to_do, set_up, tear_down),
      cmocka_unit_test(specs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
