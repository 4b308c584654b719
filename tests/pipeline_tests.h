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

static int run_pipeline_tests(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_slot_is_right),
                                     cmocka_unit_test(test_mixed_slots_are_caught),
                                     cmocka_unit_test(test_wrong_use_is_refused)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}

#endif
