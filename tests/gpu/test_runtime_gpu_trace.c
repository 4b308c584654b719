/* Traces of sessions on a real GPU: every kernel is found again as a launch of the plan, whatever
 * streams CUPTI tells, and the checker finds no fault: several streams, merged launches, parts of
 * the device, early kernels, stream calls in place of a graph. */
#define DEVICE_SPEC "cuda:0"
#include <jansson.h>

#include "profiler/partition.h"
#include "session_fixture.h"
#include "trace_check.h"

#define SAMPLES 5
#define RUNS 3

/* Made if the tracer is permitted here. NULL: it is not. */
static json_t *traced(cs_session *session, const char *what) {
  char *text = NULL;
  cs_status st = cs_session_trace_json(session, SAMPLES, RUNS, &text);
  if (cs_status_code(st) == CS_CODE_NOT_FOUND && strstr(cs_status_message(st), "unavailable (")) {
    print_message("not permitted here: %s\n", cs_status_message(st));
    cs_status_free(st);
    return NULL;
  }
  assert_ok(st);
  bool failed = checker_finds_faults(text);
  json_t *trace = json_loads(text, 0, NULL);
  assert_non_null(trace);
  char *other = json_dumps(json_object_get(trace, "otherData"), JSON_COMPACT);
  print_message("%s: %s\n", what, other);
  free(other);
  if (failed) fail_msg("%s: the checker found faults in\n%s", what, text);
  cs_string_free(text);
  return trace;
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) fail_msg("no number %s", key);
  return json_number_value(value);
}

static cs_session_options f16_options(const char *policy) {
  cs_session_options options = default_options(policy);
  options.precision = CS_PRECISION_F16;
  return options;
}

/* Slices that were measured: how many; each on the plan's stream, with what the driver tells of its
 * kernel. */
static int check_slices(const cs_session *session, const json_t *trace) {
  size_t i;
  json_t *event;
  int n = 0;
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
    if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
    if (number(event, "pid") != 1) continue;
    const json_t *args = json_object_get(event, "args");
    const cs_plan_task *task = &session->planned.plan->tasks[(int)number(args, "position")];
    assert_int_equal((int)number(args, "stream"), task->stream);
    assert_true(task->merged < 0);
    assert_true(number(args, "registers_per_thread") > 0);
    assert_true(number(args, "blocks_per_sm") > 0);
    assert_true(number(args, "occupancy_percent") > 0);
    n++;
  }
  return n;
}

static void check_session(const char *policy, bool no_graph) {
  cs_session *session = NULL;
  cs_session_options options = f16_options(policy);
  options.no_graph = no_graph;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  json_t *trace = traced(session, policy);
  if (trace) assert_int_equal(check_slices(session, trace), session->realised.kernels);
  bool skipped = !trace;
  json_decref(trace);
  cs_session_destroy(session);
  if (skipped) skip();
}

static void test_graphs(void **state) {
  (void)state;
  static const char *const policies[] = {"sequential", "streams", "opara", "ios", "coselect"};
  for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
    check_session(policies[p], false);
  }
}

static void test_stream_calls(void **state) {
  (void)state;
  check_session("streams", true);
}

/* On one stream `ios` merges the branches' first convolutions: one slice for all of them. */
static void test_merged_launches(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = f16_options("ios");
  options.max_streams = 1;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  json_t *trace = traced(session, "ios, one stream"), *event;
  size_t i;
  int merged = 0, members = 0;
  for (int p = 0; p < session->planned.plan->n_tasks; p++) {
    members += session->planned.plan->tasks[p].merged >= 0;
  }
  print_message("%d tasks in launches of others\n", members);
  if (trace) {
    assert_int_equal(check_slices(session, trace), session->realised.kernels);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
      const char *name = json_string_value(json_object_get(event, "name"));
      merged += number(event, "pid") == 1 && strstr(name, " + ") != NULL;
    }
    assert_true((merged > 0) == (members > 0));
  }
  bool skipped = !trace;
  json_decref(trace);
  cs_session_destroy(session);
  if (skipped) skip();
}

/* A plan of several streams, some on a part of the SMs each (in contexts of their own), as a graph
 * and as stream calls. */
static void test_parts(void **state) {
  (void)state;
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  int halves[CS_DEFAULT_SPLITS][2], n = cs_parts_default(info, halves);
  bool skipped = n == 0;
  for (int no_graph = 0; no_graph < 2 && !skipped; no_graph++) {
    cs_session *session = NULL;
    cs_session_options options = f16_options("streams");
    options.no_graph = no_graph;
    assert_ok(cs_session_create(test_device, test_graph, &options, &session));
    cs_plan *plan = session->planned.plan;
    assert_true(plan->n_streams > 1);
    plan->stream_part = calloc((size_t)plan->n_streams, sizeof *plan->stream_part);
    assert_non_null(plan->stream_part);
    plan->n_parts = 2;
    memcpy(plan->parts, halves[n - 1], sizeof halves[0]);
    for (int s = 0; s < plan->n_streams; s++) plan->stream_part[s] = s % 3 - 1;
    assert_ok(cs_realised_reschedule(&session->realised, plan));
    json_t *trace = traced(session, no_graph ? "parts, stream calls" : "parts");
    if (trace) assert_int_equal(check_slices(session, trace), session->realised.kernels);
    skipped = !trace;
    json_decref(trace);
    cs_session_destroy(session);
  }
  if (skipped) skip();
}

int main(void) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_stream_calls),
        cmocka_unit_test(test_merged_launches),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
  }
  return 77;
}
