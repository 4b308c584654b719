/* Bounds of a session whose streams have a part of the cores each. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

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
  assert_verified(session, CS_VERIFY_SAMPLE);
  cs_session_destroy(session);
}

/* As many FLOP/s as a convolution that a peak is measured by. */
static const char large_json[] =
    "{\"schema\":\"convsched.graph/"
    "1\",\"name\":\"large\",\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\","
    "64,14,14],\"dtype\":\"f32\"}],\"nodes\":["
    "{\"name\":\"conv\",\"op\":\"Conv\",\"inputs\":[\"x\"],\"attrs\":{\"out_channels\":64,"
    "\"kernel_shape\":[3,3],\"pads\":[1,1,1,1]}}],\"outputs\":[\"conv\"]}";

#define BUSY 1000.0

/* Convolutions and products took so much longer, as on a machine that did something else. */
static void slow_down(void *user, const char *signature) {
  const cs_op_profile *operation = cs_profile_find(test_device->profile, signature);
  if (!operation || (!strstr(signature, "Conv") && !strstr(signature, "Gemm"))) return;
  for (int i = 0; i < operation->n_records; i++) {
    cs_measurement *measured = &operation->records[i].measured;
    if (!measured->rejected) measured->warm_us *= BUSY;
    (*(int *)user)++;
  }
}

static double peak_flops(void) {
  cs_measure_options options = {
      .workspace_limit = INT64_C(256) << 20, .deterministic = true, .threads = cs_cpu_count()};
  double flops, bandwidth;
  assert_ok(cs_profile_peaks(test_device->profile, test_device->backend, CS_PRECISION_F32, &options,
                             &flops, &bandwidth));
  return flops;
}

/* Rates that the network's own measurements disprove are measured again. */
static void test_no_peak_below_what_is_seen(void **state) {
  (void)state;
  int slowed = 0;
  double before = peak_flops();
  cs_profile_signatures(test_device->profile, slow_down, &slowed);
  assert_true(slowed > 0);
  assert_true(peak_flops() < before / BUSY * 1.01);
  cs_graph_destroy(test_graph);
  assert_ok(cs_graph_parse(large_json, strlen(large_json), "large.json", &test_graph));
  cs_session *session = new_session("sequential");
  double after = peak_flops();
  const cs_planned *planned = &session->planned;
  assert_true(after > before / BUSY * 10);
  assert_int_equal(planned->program->n_tasks, 1);
  double busy_us = cs_op_flops(&planned->program->tasks[0].desc) / (before / BUSY) * 1e6;
  assert_true(planned->bounds.roofline_us < busy_us / 10);
  cs_session_destroy(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roofline_is_of_all_cores),
      cmocka_unit_test(test_no_peak_below_what_is_seen),
  };
  return cmocka_run_group_tests(tests, open_small, close_all);
}
