/* Tests of requests in flight that every device must pass. The including file defines DEVICE_SPEC.
 */
#ifndef CONVSCHED_TESTS_PIPELINE_TESTS_H_
#define CONVSCHED_TESTS_PIPELINE_TESTS_H_

#include "runtime/pipeline.h"
#include "session_fixture.h"

static void test_every_slot_is_right(void **state) {
  (void)state;
  for (int slots = 1; slots <= 4; slots++) {
    cs_session *session = new_session("streams");
    cs_pipeline *pipeline = NULL;
    cs_pipeline_check check;
    cs_pipeline_rate rate;
    assert_ok(cs_pipeline_create(session, slots, &pipeline));
    assert_int_equal(cs_pipeline_arena_bytes(pipeline), slots * session->planned.plan->arena_bytes);
    for (int copies = 0; copies < 2; copies++) {
      assert_ok(cs_pipeline_window(pipeline, slots, 300, copies, &rate));
      assert_int_equal(rate.requests, 300);
      assert_true(rate.images_per_s > 0 && rate.host_images_per_s > 0 && rate.latency_us > 0);
    }
    assert_ok(cs_pipeline_verify(pipeline, &check));
    if (!check.passed) fail_msg("%s", check.problem);
    assert_true(check.bitwise_applies && check.bitwise_equal);
    assert_int_equal(check.requests, 6 * slots);
    cs_pipeline_destroy(pipeline);
    assert_verified(session, CS_VERIFY_SAMPLE); /* the session goes on with its own inputs */
    cs_session_destroy(session);
  }
}

/* A schedule that reads another slot's arena is caught. */
static void test_mixed_slots_are_caught(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  cs_pipeline *pipeline = NULL;
  cs_pipeline_check check;
  assert_ok(cs_pipeline_create(session, 2, &pipeline));
  void *device = pipeline->slots[0].outputs[0].device;
  pipeline->slots[0].outputs[0].device = pipeline->slots[1].outputs[0].device;
  assert_ok(cs_pipeline_verify(pipeline, &check));
  pipeline->slots[0].outputs[0].device = device;
  assert_true(!check.passed && strstr(check.problem, "slot 0 of 2"));
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
}

static void test_wrong_use_is_refused(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  cs_pipeline *pipeline = NULL;
  cs_pipeline_rate rate;
  assert_status(cs_pipeline_create(session, 0, &pipeline), CS_CODE_USAGE, "wanted 1 to 16");
  assert_status(cs_pipeline_create(session, 17, &pipeline), CS_CODE_USAGE, "17 requests");
  session->settings.options.memory_limit = 2 * session->planned.plan->arena_bytes;
  assert_status(cs_pipeline_create(session, 3, &pipeline), CS_CODE_BAD_INPUT, "2 fit");
  assert_null(pipeline);
  assert_ok(cs_pipeline_create(session, 2, &pipeline));
  assert_status(cs_pipeline_submit(pipeline, 2, NULL, NULL, 0), CS_CODE_USAGE, "wanted 0 to 1");
  assert_status(cs_pipeline_wait(pipeline, 0, NULL, NULL, 0), CS_CODE_USAGE, "no request");
  assert_ok(cs_pipeline_submit(pipeline, 0, NULL, NULL, 0));
  assert_status(cs_pipeline_submit(pipeline, 0, NULL, NULL, 0), CS_CODE_USAGE, "wait first");
  assert_status(cs_pipeline_window(pipeline, 1, 9, true, &rate), CS_CODE_USAGE, "slot 0");
  assert_ok(cs_pipeline_wait(pipeline, 0, NULL, NULL, 0));
  assert_status(cs_pipeline_window(pipeline, 3, 9, true, &rate), CS_CODE_USAGE, "wanted 1 to 2");
  assert_status(cs_pipeline_window(pipeline, 1, 0, true, &rate), CS_CODE_USAGE, "0 requests");
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
}

/* ---- A device that counts what is made on it, and fails to make the n-th ---- */

static struct {
  const cs_backend_vtable *real;
  int calls, fail_at; /* fail_at < 0: never */
  int live;           /* made and not released */
} made;

static cs_status make_one(cs_status st) {
  made.live += st == CS_OK;
  return st;
}

static bool fails_now(void) {
  return made.calls++ == made.fail_at;
}

static cs_status no_more(void) {
  return cs_error(CS_CODE_NO_MEMORY, "nothing is left");
}

static cs_status counted_allocate(cs_backend *backend, int64_t bytes, void **out) {
  *out = NULL;
  return fails_now() ? no_more() : make_one(made.real->allocate(backend, bytes, out));
}

static void counted_release(cs_backend *backend, void *memory) {
  made.live -= memory != NULL;
  made.real->release(backend, memory);
}

static cs_status counted_host_allocate(cs_backend *backend, int64_t bytes, void **out) {
  *out = NULL;
  if (fails_now()) return no_more();
  if (made.real->host_allocate) return make_one(made.real->host_allocate(backend, bytes, out));
  *out = cs_calloc(1, (size_t)bytes);
  return make_one(*out ? CS_OK : no_more());
}

static void counted_host_release(cs_backend *backend, void *memory) {
  made.live -= memory != NULL;
  if (made.real->host_release) {
    made.real->host_release(backend, memory);
  } else {
    free(memory);
  }
}

static cs_status counted_schedule(cs_backend *backend, const cs_launch *launches, int n,
                                  const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  *out = NULL;
  if (fails_now()) return no_more();
  return make_one(made.real->schedule_create(backend, launches, n, streams, use_graph, out));
}

static void counted_schedule_destroy(cs_schedule *schedule) {
  made.live--;
  made.real->schedule_destroy(schedule);
}

static cs_status counted_requests(cs_backend *backend, const cs_request_slot *slots, int n,
                                  cs_requests **out) {
  *out = NULL;
  return fails_now() ? no_more() : make_one(made.real->requests_create(backend, slots, n, out));
}

static void counted_requests_destroy(cs_requests *requests) {
  made.live--;
  made.real->requests_destroy(requests);
}

static cs_backend_vtable counting_vtable(const cs_backend_vtable *real) {
  cs_backend_vtable vtable = *real;
  vtable.allocate = counted_allocate;
  vtable.release = counted_release;
  vtable.host_allocate = counted_host_allocate;
  vtable.host_release = counted_host_release;
  vtable.schedule_create = counted_schedule;
  vtable.schedule_destroy = counted_schedule_destroy;
  if (real->requests_create) {
    vtable.requests_create = counted_requests;
    vtable.requests_destroy = counted_requests_destroy;
  }
  made.real = real;
  made.calls = made.live = 0;
  made.fail_at = -1;
  return vtable;
}

/* Arenas, schedules and host memory of every slot go with the pipeline; and where any of them
 * cannot be made, those made before go too, and the next try is none the worse. */
static void test_nothing_of_a_pipeline_is_left(void **state) {
  (void)state;
  const int slots = 3;
  cs_session *session = new_session("streams");
  cs_backend *backend = test_device->backend;
  cs_pipeline *pipeline = NULL;
  const cs_backend_vtable *real = backend->vtable, vtable = counting_vtable(real);
  backend->vtable = &vtable;
  assert_ok(cs_pipeline_create(session, slots, &pipeline));
  int all = made.live;
  assert_int_equal(made.calls, all);
  assert_true(all >= slots * 4); /* arena, schedule, an input and an output */
  cs_pipeline_destroy(pipeline);
  assert_int_equal(made.live, 0);
  for (int i = 0; i < all; i++) {
    made.calls = 0;
    made.fail_at = i;
    assert_status(cs_pipeline_create(session, slots, &pipeline), CS_CODE_NO_MEMORY, "nothing is");
    assert_null(pipeline);
    assert_int_equal(made.calls, i + 1);
    assert_int_equal(made.live, 0);
  }
  made.fail_at = -1;
  assert_ok(cs_pipeline_create(session, slots, &pipeline));
  assert_int_equal(made.live, all);
  cs_pipeline_destroy(pipeline);
  backend->vtable = real;
  assert_verified(session, CS_VERIFY_SAMPLE); /* its own schedule and weights are untouched */
  cs_session_destroy(session);
}

/* ---- Energy ---- */

static struct {
  double joules, step; /* that each reading adds */
  bool missing;
} counter;

static cs_status counted_energy(cs_backend *backend, double *joules) {
  (void)backend;
  *joules = counter.joules;
  counter.joules += counter.step;
  return counter.missing ? cs_error(CS_CODE_NOT_FOUND, "not available: no counter") : CS_OK;
}

/* The counter's difference over all requests; unknown where it is missing or was begun anew. */
static void test_joules_are_a_difference(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  cs_backend *backend = test_device->backend;
  cs_pipeline *pipeline = NULL;
  cs_pipeline_rate rate;
  const cs_backend_vtable *real = backend->vtable;
  cs_backend_vtable vtable = *real;
  vtable.energy = counted_energy;
  assert_ok(cs_pipeline_create(session, 1, &pipeline));
  backend->vtable = &vtable;
  static const struct {
    double from, step;
    bool missing, known;
  } cases[] = {{1e9, 12.5, false, true},
               {1e9, 0, false, true}, /* a window shorter than the counter's steps */
               {1e9, -1e9, false, false},
               {1e9, 12.5, true, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    counter.joules = cases[i].from;
    counter.step = cases[i].step;
    counter.missing = cases[i].missing;
    assert_ok(cs_pipeline_window(pipeline, 1, 5, true, &rate));
    assert_int_equal(rate.requests, 5);
    assert_true(rate.all_requests > 5);
    assert_true(cases[i].known ? rate.joules == cases[i].step : isnan(rate.joules));
  }
  backend->vtable = real;
  cs_pipeline_destroy(pipeline);
  cs_session_destroy(session);
}

static int run_pipeline_tests(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_slot_is_right),
                                     cmocka_unit_test(test_mixed_slots_are_caught),
                                     cmocka_unit_test(test_wrong_use_is_refused),
                                     cmocka_unit_test(test_nothing_of_a_pipeline_is_left),
                                     cmocka_unit_test(test_joules_are_a_difference)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}

#endif
