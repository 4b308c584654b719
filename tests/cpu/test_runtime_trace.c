/* Traces of a session, by the CPU's own clock and, as a GPU's would be, by a made-up tracer whose
 * kernels are several a launch, of unknown launches, and begin early. */
#define DEVICE_SPEC "cpu"
#include <jansson.h>
#include <unistd.h>

#include "session_fixture.h"
#include "trace_check.h"

#define SAMPLES 3
#define RUNS 4

static const cs_session *traced_session;
static bool early, loses_a_kernel;
static double skew; /* by which kernels seem to start too soon, of 10 us that they take */
static int skewed_launch = -1; /* whose, the first of it; -1: all */
static int traced_runs;

/* A convolution is two kernels, anything else one; all that wait for another one begin early. */
static int kernels_of(int launch) {
  const cs_planned *planned = &traced_session->planned;
  const cs_task *task = &planned->program->tasks[planned->plan->tasks[launch].task];
  return task->desc.op == CS_OP_CONV ? 2 : 1;
}

static cs_status fake_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                              int *count) {
  (void)schedule;
  *count = 0;
  for (int l = 0; l < traced_session->realised.n_launches; l++) {
    for (int k = 0; k < kernels_of(l); k++, (*count)++) {
      if (*count >= capacity) continue;
      out[*count] = (cs_kernel_info){.launch = l,
                                     .grid = {6, 2, 1},
                                     .block = {64, 2, 1},
                                     .registers = 40,
                                     .static_shared = 1024,
                                     .blocks_per_unit = 3,
                                     .early = early && l > 0 && k == 0};
      snprintf(out[*count].name, sizeof out[*count].name, "kernel_%d", kernels_of(l) == 2 ? k : 2);
    }
  }
  return CS_OK;
}

static int by_start(const void *a, const void *b) {
  const cs_kernel_trace *x = a, *y = b;
  return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

/* Every kernel 10 us, one launch after the other; early ones from 2 us before the end of the one
 * before. The runs take more and less time. */
static cs_status fake_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity, int *count) {
  static const double scale[RUNS] = {3, 1, 2, 4};
  double at = 0, by = scale[traced_runs++ % RUNS];
  cs_kernel_info told[64];
  (void)schedule;
  assert_ok(fake_kernels(schedule, told, 64, count));
  assert_true(*count <= capacity && *count <= 64);
  for (int k = 0; k < *count; k++) {
    bool first = k == 0 || told[k].launch != told[k - 1].launch;
    bool skewed = skewed_launch < 0 || (first && told[k].launch == skewed_launch);
    double start = told[k].early ? at - 2 : skewed ? at - skew : at;
    at += 10;
    out[k] = (cs_kernel_trace){.launch = -1,
                               .start_us = start * by,
                               .end_us = at * by,
                               .stream = 13,
                               .grid = {6, 2, 1},
                               .block = {64, 2, 1}};
    snprintf(out[k].name, sizeof out[k].name, "%s", told[k].name);
  }
  qsort(out, (size_t)*count, sizeof *out, by_start);
  *count -= loses_a_kernel;
  return CS_OK;
}

/* The made-up tracer is there while this runs. */
static cs_status fake_trace_json(cs_session *session, char **text) {
  cs_backend *backend = session->realised.backend;
  cs_device_info *info = (cs_device_info *)(uintptr_t)backend->vtable->info(backend);
  const cs_backend_vtable *own = backend->vtable;
  const cs_device_info before = *info;
  cs_backend_vtable traced = *own;
  int kernels = session->realised.kernels;
  traced.schedule_kernels = fake_kernels;
  traced.schedule_trace = fake_trace;
  traced_session = session;
  traced_runs = 0;
  assert_ok(fake_kernels(NULL, NULL, 0, &session->realised.kernels));
  info->units = 4;
  info->unit = (cs_unit_limits){.registers = 65536,
                                .threads = 2048,
                                .blocks = 32,
                                .shared_bytes = 228 << 10,
                                .reserved_shared_bytes = 1024,
                                .warp_size = 32};
  backend->vtable = &traced;
  cs_status st = cs_session_trace_json(session, SAMPLES, RUNS, text);
  backend->vtable = own;
  *info = before;
  session->realised.kernels = kernels;
  return st;
}

/* By the checker, which shares no code with what made it. */
static json_t *checked(char *text) {
  if (checker_finds_faults(text)) fail_msg("the checker found faults");
  json_t *trace = json_loads(text, 0, NULL);
  cs_string_free(text);
  assert_non_null(trace);
  return trace;
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) fail_msg("no number %s", key);
  return json_number_value(value);
}

static bool is_slice(const json_t *event, int process) {
  return strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0 &&
         number(event, "pid") == process;
}

static void test_by_the_clock(void **state) {
  (void)state;
  static const char *const policies[] = {"sequential", "streams", "opara"};
  for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
    cs_session *session = new_session(policies[p]);
    char *text = NULL;
    assert_ok(cs_session_trace_json(session, SAMPLES, RUNS, &text));
    json_t *trace = checked(text), *event;
    const json_t *other = json_object_get(trace, "otherData");
    size_t i;
    int slices = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
      if (!is_slice(event, 1)) continue;
      const json_t *args = json_object_get(event, "args");
      const cs_plan_task *task = &session->planned.plan->tasks[(int)number(args, "position")];
      assert_int_equal((int)number(args, "stream"), task->stream);
      assert_string_equal(json_string_value(json_object_get(args, "candidate")),
                          task->candidate.id);
      assert_true(json_is_null(json_object_get(args, "kernel")));
      slices++;
    }
    assert_int_equal(slices, session->planned.plan->n_tasks);
    assert_int_equal(
        (int)json_array_size(json_object_get(json_object_get(other, "latency_us"), "samples")),
        SAMPLES);
    assert_int_equal((int)number(json_object_get(other, "traced"), "runs"), RUNS);
    json_decref(trace);
    cs_session_destroy(session);
  }
}

/* Two kernels a convolution, found again by the plan's order; the run in the middle is shown. */
static void test_kernels(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  char *text = NULL;
  early = false;
  assert_ok(fake_trace_json(session, &text));
  json_t *trace = checked(text), *event;
  const json_t *traced = json_object_get(json_object_get(trace, "otherData"), "traced");
  size_t i;
  int slices = 0, convolutions = 0;
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
    if (!is_slice(event, 1)) continue;
    const json_t *args = json_object_get(event, "args");
    assert_true(fabs(number(event, "dur") - 30) < 1e-6);
    assert_int_equal((int)number(args, "threads_per_block"), 128);
    assert_int_equal((int)number(args, "blocks"), 12);
    /* 3 blocks of 128 threads of 2048 */
    assert_true(fabs(number(args, "occupancy_percent") - 18.75) < 1e-9);
    convolutions += number(args, "kernels_of_launch") == 2;
    slices++;
  }
  assert_true(convolutions >= 2 * 6);
  assert_true(fabs(number(traced, "span_us") - 30.0 * slices) < 1e-6);
  assert_int_equal((int)number(traced, "run"), 0); /* 3 of 1 to 4: as the upper median */
  json_decref(trace);
  cs_session_destroy(session);
}

/* What they wait for may be on other streams. */
static void test_early_kernels_of_streams(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  char *text = NULL;
  early = true;
  assert_ok(fake_trace_json(session, &text));
  json_t *trace = checked(text), *event;
  size_t i;
  int told = 0;
  assert_true(session->planned.plan->n_streams > 1);
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
    if (!is_slice(event, 1)) continue;
    const json_t *args = json_object_get(event, "args");
    bool is_early = json_is_true(json_object_get(args, "early"));
    assert_true(is_early == (number(event, "ts") > number(args, "start_us") + 1e-6));
    told += is_early;
  }
  assert_true(told > 0);
  early = false;
  json_decref(trace);
  cs_session_destroy(session);
}

/* Clocks of streams differ a little: told, and drawn as it must have been. */
static void test_clocks_that_differ(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  char *text = NULL;
  skew = 0.2;
  assert_ok(fake_trace_json(session, &text));
  skew = 0;
  json_t *trace = checked(text);
  const json_t *traced = json_object_get(json_object_get(trace, "otherData"), "traced");
  assert_true(fabs(number(traced, "clock_slack_us") - 0.6) < 1e-6);
  json_decref(trace);
  cs_session_destroy(session);
}

static double told_slack(cs_session *session) {
  char *text = NULL;
  assert_ok(fake_trace_json(session, &text));
  json_t *trace = checked(text);
  double us =
      number(json_object_get(json_object_get(trace, "otherData"), "traced"), "clock_slack_us");
  json_decref(trace);
  return us;
}

static bool needs(const cs_plan *plan, const cs_program *program, int launch, int other) {
  const cs_task *task = &program->tasks[plan->tasks[launch].task];
  for (int k = 0; k < task->n_preds; k++) {
    if (task->preds[k] == plan->tasks[other].task) return true;
  }
  return false;
}

/* All from launch p on, predicted for later. */
static void delay(cs_plan *plan, int p, double us) {
  for (int q = p; q < plan->n_tasks; q++) {
    plan->tasks[q].start_us += us;
    plan->tasks[q].end_us += us;
  }
  plan->predicted_us += us;
}

/* A wait for memory alone, which is no dependency: what does not wait for it is not too soon. */
static void test_clocks_that_differ_where_memory_is_waited_for(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  cs_plan *plan = session->planned.plan;
  int p = 1, *own, one;
  while (p < plan->n_tasks && (plan->tasks[p].stream == plan->tasks[p - 1].stream ||
                               needs(plan, session->planned.program, p, p - 1))) {
    p++;
  }
  assert_true(p < plan->n_tasks);
  int own_waits = plan->tasks[p].n_waits;
  skew = 0.2;
  skewed_launch = p;
  assert_true(fabs(told_slack(session)) < 1e-6);
  own = plan->tasks[p].waits;
  one = p - 1;
  plan->tasks[p].waits = &one;
  plan->tasks[p].n_waits = 1;
  delay(plan, p, plan->tasks[p - 1].end_us);
  assert_true(fabs(told_slack(session) - 0.6) < 1e-6);
  plan->tasks[p].waits = own;
  plan->tasks[p].n_waits = own_waits;
  skew = 0;
  skewed_launch = -1;
  cs_session_destroy(session);
}

/* They are drawn from where the one before has ended, and say when they began. */
static void test_early_kernels(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  char *text = NULL;
  early = true;
  assert_ok(fake_trace_json(session, &text));
  json_t *trace = checked(text), *event;
  size_t i;
  int n = 0;
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
    if (!is_slice(event, 1)) continue;
    const json_t *args = json_object_get(event, "args");
    if (!json_is_true(json_object_get(args, "early"))) continue;
    assert_true(fabs(number(event, "ts") - number(args, "start_us") - 6) < 1e-6);
    assert_true(fabs(number(event, "dur") - 30) < 1e-6);
    n++;
  }
  assert_int_equal(n, session->planned.plan->n_tasks - 1);
  early = false;
  json_decref(trace);
  cs_session_destroy(session);
}

/* ---- SM counters ---- */

/* The most of a counter, and its value while the first kernel runs. */
static double counter_most(const json_t *trace, const char *name, double *first) {
  size_t i;
  json_t *event;
  double most = 0;
  *first = -1;
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
    if (strcmp(json_string_value(json_object_get(event, "name")), name) != 0) continue;
    if (number(event, "pid") != 1) continue;
    double value = number(json_object_get(event, "args"), "percent");
    if (*first < 0) *first = value;
    most = fmax(most, value);
  }
  return most;
}

static void test_counters(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  char *text = NULL;
  double first;
  assert_ok(fake_trace_json(session, &text));
  json_t *trace = checked(text);
  /* 12 blocks, 3 on each of 4 SMs: 3 × 4 warps × 32 threads × 40 registers of 65536. */
  double wanted = 100.0 * 3 * 4 * 32 * 40 / 65536;
  assert_true(fabs(counter_most(trace, "SM registers in use (%)", &first) - wanted) < 1e-3);
  assert_true(fabs(first - wanted) < 1e-3);
  assert_true(fabs(counter_most(trace, "SM threads in use (%)", &first) - 18.75) < 1e-3);
  /* 1 KiB of its own and 1 KiB of the driver's */
  assert_true(fabs(counter_most(trace, "SM shared memory in use (%)", &first) -
                   100.0 * 3 * 2 / 228) < 1e-3);
  json_decref(trace);
  cs_session_destroy(session);
}

static void test_what_is_refused(void **state) {
  (void)state;
  char *text = NULL;
  cs_session *session = new_session("streams");
  assert_status(cs_session_trace_json(session, 0, 1, &text), CS_CODE_USAGE, "0 samples");
  assert_status(cs_session_trace_json(session, 1, 1001, &text), CS_CODE_USAGE, "1001 traced runs");
  loses_a_kernel = true;
  assert_status(fake_trace_json(session, &text), CS_CODE_NOT_FOUND, "as often as it was launched");
  loses_a_kernel = false;
  cs_backend *backend = session->realised.backend;
  const cs_backend_vtable *own = backend->vtable;
  cs_backend_vtable without = *own;
  without.schedule_trace = NULL;
  backend->vtable = &without;
  assert_status(cs_session_trace_json(session, 1, 1, &text), CS_CODE_USAGE, "has no tracer");
  backend->vtable = own;
  assert_null(text);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_the_clock),
      cmocka_unit_test(test_kernels),
      cmocka_unit_test(test_early_kernels),
      cmocka_unit_test(test_early_kernels_of_streams),
      cmocka_unit_test(test_clocks_that_differ),
      cmocka_unit_test(test_counters),
      cmocka_unit_test(test_clocks_that_differ_where_memory_is_waited_for),
      cmocka_unit_test(test_what_is_refused),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
