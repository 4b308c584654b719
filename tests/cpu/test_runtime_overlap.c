/* What a session tells of concurrency, on a CPU by its own clock and with a made-up tracer. */
#define DEVICE_SPEC "cpu"
#include <jansson.h>

#include "session_fixture.h"

static const cs_session *traced_session;
static bool one_after_the_other, loses_a_kernel;

/* A kernel a launch, named as its task. */
static cs_status fake_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                              int *count) {
  (void)schedule;
  *count = traced_session->realised.n_launches;
  for (int l = 0; l < *count && l < capacity; l++) {
    out[l] = (cs_kernel_info){.launch = l, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    snprintf(out[l].name, sizeof out[l].name, "%s", traced_session->realised.launches[l].name);
  }
  return CS_OK;
}

/* As the plan predicts it but half as long; or each after the one before. */
static cs_status fake_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity, int *count) {
  const cs_plan *plan = traced_session->planned.plan;
  (void)schedule;
  assert_true(capacity >= plan->n_tasks);
  *count = plan->n_tasks - loses_a_kernel;
  for (int p = 0; p < *count; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    out[p] = (cs_kernel_trace){.start_us = one_after_the_other ? p * 10 : task->start_us / 2,
                               .end_us = one_after_the_other ? p * 10 + 7 : task->end_us / 2,
                               .grid = {1, 1, 1},
                               .block = {32, 1, 1}};
    snprintf(out[p].name, sizeof out[p].name, "%s", traced_session->realised.launches[p].name);
  }
  return CS_OK;
}

/* The tracer is there while this runs. */
static cs_status overlap_of(cs_session *session, char **text) {
  cs_backend *backend = session->realised.backend;
  const cs_backend_vtable *own = backend->vtable;
  cs_backend_vtable traced = *own;
  traced.schedule_kernels = fake_kernels;
  traced.schedule_trace = fake_trace;
  traced_session = session;
  backend->vtable = &traced;
  cs_status st = cs_session_overlap_json(session, text);
  backend->vtable = own;
  return st;
}

static json_t *overlap_json(cs_session *session) {
  char *text = NULL;
  assert_ok(overlap_of(session, &text));
  json_t *root = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(root);
  return root;
}

static double number(const json_t *object, const char *when, const char *key) {
  const json_t *value = json_object_get(json_object_get(object, when), key);
  if (!json_is_number(value)) fail_msg("no number %s of %s", key, when);
  return json_number_value(value);
}

static void assert_near(double found, double wanted) {
  if (fabs(found - wanted) > 1e-6 * fmax(1, fabs(wanted))) fail_msg("%g, wanted %g", found, wanted);
}

static void test_as_predicted(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  one_after_the_other = false;
  json_t *root = overlap_json(session), *block;
  size_t i, tasks = 0, concurrent = 0;
  json_array_foreach(json_object_get(root, "blocks"), i, block) {
    tasks += json_array_size(json_object_get(block, "tasks"));
    assert_near(number(block, "achieved", "concurrency"),
                number(block, "predicted", "concurrency"));
    assert_near(number(block, "achieved", "busy_us"), number(block, "predicted", "busy_us") / 2);
    assert_near(number(block, "achieved", "overlapped_us"),
                number(block, "predicted", "overlapped_us") / 2);
    concurrent += number(block, "achieved", "concurrency") > 1;
  }
  assert_int_equal(tasks, session->planned.program->n_tasks);
  assert_true(concurrent >= 1); /* the module's branches */
  json_t *whole = json_object_get(root, "whole");
  assert_near(number(whole, "predicted", "span_us"), session->planned.plan->predicted_us);
  json_decref(root);
  cs_session_destroy(session);
}

static void test_nothing_overlapped(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  one_after_the_other = true;
  json_t *root = overlap_json(session), *block;
  size_t i;
  json_array_foreach(json_object_get(root, "blocks"), i, block) {
    double n = (double)json_array_size(json_object_get(block, "tasks"));
    assert_near(number(block, "achieved", "concurrency"), 1);
    assert_near(number(block, "achieved", "overlapped_us"), 0);
    assert_near(number(block, "achieved", "busy_us"), 7 * n);
    assert_near(number(block, "achieved", "span_us"), 10 * n - 3);
  }
  json_decref(root);
  cs_session_destroy(session);
}

/* By the clock of the machine: what runs on one stream does not overlap, and takes its time. */
static void test_by_the_clock(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  char *text = NULL;
  size_t i;
  json_t *block;
  assert_ok(cs_session_overlap_json(session, &text));
  json_t *root = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(root);
  json_array_foreach(json_object_get(root, "blocks"), i, block) {
    assert_true(number(block, "achieved", "busy_us") > 0);
    assert_near(number(block, "achieved", "overlapped_us"), 0);
    assert_near(number(block, "achieved", "concurrency"), 1);
  }
  json_decref(root);
  cs_session_destroy(session);
}

static void test_what_is_not_available(void **state) {
  (void)state;
  char *text = NULL;
  cs_session *session = new_session("streams");
  cs_backend *backend = session->realised.backend;
  const cs_backend_vtable *own = backend->vtable;
  cs_backend_vtable without = *own;
  without.schedule_trace = NULL;
  backend->vtable = &without;
  assert_status(cs_session_overlap_json(session, &text), CS_CODE_USAGE,
                "backend cpu has no tracer of kernels");
  backend->vtable = own;
  assert_null(text);
  one_after_the_other = loses_a_kernel = true;
  assert_status(overlap_of(session, &text), CS_CODE_NOT_FOUND, "as often as it was launched");
  assert_null(text);
  loses_a_kernel = false;
  cs_session_destroy(session);
}

static bool is_set(void *flag) {
  return *(bool *)flag;
}

/* Between two runs under the tracer. */
static void test_cancelled(void **state) {
  (void)state;
  bool cancelled = false;
  char *text = NULL;
  cs_session *session = NULL;
  cs_session_options options = default_options("sequential");
  options.cancelled = is_set;
  options.cancelled_user = &cancelled;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  cancelled = true;
  assert_status(cs_session_overlap_json(session, &text), CS_CODE_CANCELLED, "tracing");
  assert_null(text);
  cancelled = false;
  assert_ok(cs_session_overlap_json(session, &text));
  cs_string_free(text);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_as_predicted), cmocka_unit_test(test_nothing_overlapped),
      cmocka_unit_test(test_by_the_clock), cmocka_unit_test(test_what_is_not_available),
      cmocka_unit_test(test_cancelled),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
