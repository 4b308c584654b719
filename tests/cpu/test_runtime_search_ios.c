/* Stage costs of `ios` measured on a device: kept, used again, and what happens without time. */
#define DEVICE_SPEC "cpu"
#include <time.h>

#include "session_fixture.h"

#include "runtime/planning.h"

/* ---- A clock that is made up ---- */

static const cs_backend_vtable *real;
static const cs_schedule *last_made;
static int last_streams, last_launches;
static double alone_us, beside_us; /* of a launch; of every stream more than one */
static long sleep_ns;

static cs_status create(cs_backend *backend, const cs_launch *launches, int n,
                        const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  cs_status st = real->schedule_create(backend, launches, n, streams, use_graph, out);
  last_made = *out;
  last_streams = streams->n;
  last_launches = n;
  return st;
}

/* A stage is timed as soon as it is made. */
static cs_status latency(cs_schedule *schedule, int count, double *us) {
  const struct timespec pause = {0, sleep_ns};
  assert_ptr_equal(schedule, last_made);
  if (sleep_ns > 0) nanosleep(&pause, NULL);
  for (int i = 0; i < count; i++) {
    us[i] = alone_us * last_launches / last_streams + beside_us * (last_streams - 1);
  }
  return CS_OK;
}

static cs_session_options ios_options(int64_t batch, double seconds) {
  cs_session_options options = default_options("ios");
  options.batch = batch;
  options.max_streams = 2;
  options.search_seconds = seconds;
  return options;
}

static cs_session *open_session(const cs_session_options *options) {
  cs_session *session = NULL;
  assert_ok(cs_session_create(test_device, test_graph, options, &session));
  return session;
}

/* Operations are measured first, by the real clock. */
static cs_session *open_clocked(const cs_session_options *options) {
  cs_session_options before = *options;
  cs_backend_vtable clocked;
  cs_session *session = NULL;
  before.search_seconds = 0;
  cs_session_destroy(open_session(&before));
  real = test_device->backend->vtable;
  clocked = *real;
  clocked.schedule_create = create;
  clocked.schedule_latency = latency;
  test_device->backend->vtable = &clocked;
  cs_status st = cs_session_create(test_device, test_graph, options, &session);
  test_device->backend->vtable = real;
  assert_ok(st);
  return session;
}

/* ---- Tests ---- */

static void test_measured_stages_are_kept_and_used(void **state) {
  (void)state;
  cs_session_options options = ios_options(2, 10);
  cs_session *first = open_session(&options);
  assert_true(first->stages.measured > 10);
  assert_true(first->stages.known >= first->stages.measured);
  assert_int_equal(first->stages.estimated, 0);
  assert_true(first->stages.seconds > 0);
  assert_verified(first, CS_VERIFY_FULL);
  for (int frozen = 0; frozen < 2; frozen++) {
    options.search_seconds = frozen ? 10 : -1;
    options.frozen = frozen;
    cs_session *again = open_session(&options);
    assert_int_equal(again->stages.measured, 0);
    assert_int_equal(again->stages.known, first->stages.known);
    assert_int_equal(again->stages.estimated, 0);
    assert_same_plan(first->planned.plan, again->planned.plan);
    cs_session_destroy(again);
  }
  char *text = NULL;
  assert_ok(cs_session_info_json(first, &text));
  assert_non_null(strstr(text, "\"stages\""));
  cs_string_free(text);
  cs_session_destroy(first);
}

/* From another opening of the profile's file the costs are the same numbers. */
static void test_a_file_gives_the_same_plan(void **state) {
  (void)state;
  cs_device *other = NULL;
  cs_session *fresh = NULL;
  cs_session_options options = ios_options(2, -1);
  cs_session *first = open_session(&options);
  assert_ok(cs_device_open(DEVICE_SPEC, NULL, &other));
  assert_ok(cs_session_create(other, test_graph, &options, &fresh));
  assert_int_equal(fresh->stages.measured, 0);
  assert_int_equal(fresh->stages.known, first->stages.known);
  assert_same_plan(first->planned.plan, fresh->planned.plan);
  cs_session_destroy(fresh);
  cs_session_destroy(first);
  cs_device_close(other);
}

static void test_no_time_is_the_estimate(void **state) {
  (void)state;
  cs_plan *estimated = NULL;
  cs_session_options options = ios_options(3, 0);
  cs_session *session = open_session(&options);
  assert_int_equal(session->stages.measured, 0);
  assert_int_equal(session->stages.known, 0);
  assert_true(session->stages.estimated > 10);
  cs_policy_input input = cs_planning_input(session);
  assert_null(input.stage_cost);
  assert_ok(cs_plan_make(&cs_policy_ios, &input, &estimated));
  assert_same_plan(estimated, session->planned.plan);
  cs_plan_destroy(estimated);
  cs_session_destroy(session);
}

static void test_what_is_measured_decides(void **state) {
  (void)state;
  cs_session_options options = ios_options(4, 10);
  alone_us = 10;
  beside_us = 1000; /* two streams are never worth it */
  cs_session *session = open_clocked(&options);
  assert_int_equal(session->planned.plan->n_streams, 1);
  cs_session_destroy(session);
  options.batch = 5;
  beside_us = 0; /* and here always */
  session = open_clocked(&options);
  assert_int_equal(session->planned.plan->n_streams, 2);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

static void test_used_up_time(void **state) {
  (void)state;
  cs_session_options options = ios_options(6, 0.1);
  alone_us = 10;
  beside_us = 5;
  sleep_ns = 10000000;
  cs_session *session = open_clocked(&options), *again = NULL;
  sleep_ns = 0;
  assert_in_range(session->stages.measured, 1, 10); /* 20 ms each */
  assert_true(session->stages.estimated > 0);
  options.search_seconds = -1; /* it was done; what is not known stays an estimate */
  again = open_session(&options);
  assert_int_equal(again->stages.measured, 0);
  assert_int_equal(again->stages.known, session->stages.known);
  assert_same_plan(session->planned.plan, again->planned.plan);
  cs_session_destroy(again);
  options.search_seconds = 10; /* more time: it goes on */
  again = open_session(&options);
  assert_true(again->stages.measured > 0);
  assert_int_equal(again->stages.estimated, 0);
  cs_session_destroy(again);
  cs_session_destroy(session);
}

static bool after(void *user) {
  return --*(int *)user < 0;
}

static void test_interrupted(void **state) {
  (void)state;
  int left = 3;
  cs_session *session = NULL;
  cs_session_options options = ios_options(7, 0);
  cs_session_destroy(open_session(&options)); /* operations are measured */
  options.search_seconds = 10;
  options.cancelled = after;
  options.cancelled_user = &left;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_CANCELLED,
                "interrupted");
  assert_null(session);
  options.cancelled = NULL;
  options.search_seconds = 0;
  session = open_session(&options);
  assert_in_range(session->stages.known, 1, 3); /* what was measured is kept */
  cs_session_destroy(session);
}

/* ---- A full device ---- */

static bool is_full;

static cs_status refuse(cs_backend *backend, int64_t bytes, void **out) {
  if (!is_full) return real->allocate(backend, bytes, out);
  is_full = false;
  return cs_error(CS_CODE_NO_MEMORY, "the device is full");
}

static void test_no_room_is_the_estimate(void **state) {
  (void)state;
  cs_session_options options = ios_options(8, 0);
  cs_backend_vtable faulty;
  cs_session_destroy(open_session(&options));
  options.search_seconds = 10;
  real = test_device->backend->vtable;
  faulty = *real;
  faulty.allocate = refuse;
  is_full = true;
  test_device->backend->vtable = &faulty;
  cs_session *session = open_session(&options);
  assert_false(is_full);
  assert_int_equal(session->stages.measured, 0);
  assert_true(session->stages.estimated > 0);
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
  test_device->backend->vtable = real;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_measured_stages_are_kept_and_used),
      cmocka_unit_test(test_a_file_gives_the_same_plan),
      cmocka_unit_test(test_no_time_is_the_estimate),
      cmocka_unit_test(test_what_is_measured_decides),
      cmocka_unit_test(test_used_up_time),
      cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_no_room_is_the_estimate),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
