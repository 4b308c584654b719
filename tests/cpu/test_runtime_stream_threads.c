/* How many threads the CPU's candidates use: those of the stream, and one where an operation is too
 * small to share. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "runtime/planning.h"

/* Two branches of small operations. */
static const char small_json[] =
    "{\"schema\":\"convsched.graph/"
    "1\",\"name\":\"small\",\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\","
    "8,6,6],\"dtype\":\"f32\"}],\"nodes\":["
    "{\"name\":\"left\",\"op\":\"Sigmoid\",\"inputs\":[\"x\"]},"
    "{\"name\":\"right\",\"op\":\"MaxPool\",\"inputs\":[\"x\"],\"attrs\":{\"kernel_shape\":[3,3],"
    "\"strides\":[1,1],\"pads\":[1,1,1,1]}},"
    "{\"name\":\"sum\",\"op\":\"Mul\",\"inputs\":[\"left\",\"right\"]}],\"outputs\":[\"sum\"]}";

static int open_small(void **state) {
  if (open_all(state) != 0) return -1;
  cs_graph_destroy(test_graph);
  assert_ok(cs_graph_parse(small_json, strlen(small_json), "small.json", &test_graph));
  return 0;
}

static cs_op_desc relu(int64_t channels, int64_t extent) {
  cs_shape shape = {4, {1, channels, extent, extent}};
  cs_op_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_RELU;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  return desc;
}

/* Candidates of `threads` threads among those offered to a stream of `stream_threads`. */
static int count(const cs_op_desc *desc, int stream_threads, int threads) {
  cs_backend *backend = test_device->backend;
  cs_enumerate_options options = {.workspace_limit = 1 << 20, .threads = stream_threads};
  cs_candidate_list list = {0};
  assert_ok(backend->vtable->enumerate(backend, desc, &options, &list));
  int n = 0;
  for (size_t i = 0; i < list.n; i++) n += list.items[i].threads == threads;
  assert_true(list.n > 0);
  cs_candidate_list_free(&list);
  return n;
}

static void test_small_operations_may_stay_on_one_thread(void **state) {
  (void)state;
  cs_op_desc small = relu(8, 8), large = relu(64, 112);
  assert_true(count(&small, 2, 1) > 0 && count(&small, 2, 2) > 0);
  assert_int_equal(count(&large, 2, 1), 0);
  assert_true(count(&large, 2, 2) > 0);
  assert_true(count(&small, 1, 1) > 0);
  assert_int_equal(count(&small, 1, 2), 0);
}

/* A stream takes what was measured for fewer threads, never for more. */
static void test_choices_use_at_most_the_threads_of_a_stream(void **state) {
  (void)state;
  const char *policies[] = {"streams", "sequential"};
  int cores = cs_cpu_count();
  for (int p = 0; p < 2; p++) {
    cs_session *session = new_session(policies[p]);
    int streams = test_device->backend->vtable->info(test_device->backend)->default_streams;
    int most = p == 0 ? cs_threads_per_stream(
                            test_device->backend->vtable->info(test_device->backend), streams)
                      : cores;
    bool single = false;
    for (int t = 0; t < session->planned.program->n_tasks; t++) {
      const cs_task_choices *choices = &session->planned.choices[t];
      for (int c = 0; c < choices->n; c++) {
        assert_true(choices->choices[c].candidate->threads >= 1);
        assert_true(choices->choices[c].candidate->threads <= most);
        single |= choices->choices[c].candidate->threads == 1;
      }
    }
    assert_true(single);
    assert_verified(session, CS_VERIFY_SAMPLE);
    cs_session_destroy(session);
  }
}

/* The roofline is a bound of the whole device, so its peaks are those of all cores, whatever a
 * stream has. The first session of its cache: nothing else has measured them. */
static void test_roofline_is_of_all_cores(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  const cs_planned *planned = &session->planned;
  cs_measure_options options = {
      .workspace_limit = INT64_C(256) << 20, .deterministic = true, .threads = cs_cpu_count()};
  double flops, bandwidth;
  cs_bounds bounds;
  assert_ok(cs_profile_peaks(test_device->profile, test_device->backend, CS_PRECISION_F32, &options,
                             &flops, &bandwidth));
  assert_ok(cs_bounds_of(planned->program, planned->choices, flops, bandwidth, &bounds));
  assert_true(bounds.roofline_us > 0);
  assert_true(planned->bounds.roofline_us == bounds.roofline_us);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roofline_is_of_all_cores),
      cmocka_unit_test(test_small_operations_may_stay_on_one_thread),
      cmocka_unit_test(test_choices_use_at_most_the_threads_of_a_stream),
  };
  return cmocka_run_group_tests(tests, open_small, close_all);
}
