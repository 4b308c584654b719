/* What verification works with: inputs that came from device arrays, NaN and infinities. */
#define DEVICE_SPEC "cpu"
#include "session_fixture.h"

#include "backend/reference/reference.h"
#include "runtime/verify.h"

/* ---- Device arrays: the CPU's memory is the host's, so three members make it a device that has
 * streams ---- */

static cs_status import_array(cs_backend *backend, const float *nchw, const cs_tensor_desc *desc,
                              void *tensor, void *stream) {
  (void)backend, (void)stream;
  cs_tensor_from_f32(desc, nchw, tensor);
  return CS_OK;
}

static cs_status export_array(cs_backend *backend, const cs_tensor_desc *desc, const void *tensor,
                              float *nchw, void *stream) {
  (void)backend, (void)stream;
  cs_tensor_to_f32(desc, tensor, nchw);
  return CS_OK;
}

static cs_status run_on(cs_schedule *schedule, void *stream) {
  (void)stream;
  return test_device->backend->vtable->schedule_run(schedule);
}

static void give_streams(cs_backend_vtable *with, const cs_backend_vtable **former) {
  *former = test_device->backend->vtable;
  *with = **former;
  with->import_tensor = import_array;
  with->export_tensor = export_array;
  with->schedule_run_on = run_on;
  test_device->backend->vtable = with;
}

#define IN_SIZE (2 * 32 * 14 * 14)

static void run_host(cs_session *session, const float *in, float out[20]) {
  int64_t in_size = IN_SIZE, out_size = 20;
  assert_ok(cs_session_run(session, in ? &in : NULL, &in_size, 1, &out, &out_size, 1));
}

/* The outputs in double precision are computed once for all policies, and anew for other inputs. */
static void test_outputs_in_double_are_of_the_inputs(void **state) {
  (void)state;
  cs_session *session = new_session("sequential"), *fork = NULL;
  static float in[IN_SIZE];
  float out[20];
  assert_ok(cs_session_fork(session, "streams", &fork));
  assert_verified(session, CS_VERIFY_FULL);
  double **known = session->shared->known.values;
  assert_verified(fork, CS_VERIFY_FULL);
  assert_ptr_equal(fork->shared->known.values, known);
  for (int i = 0; i < IN_SIZE; i++) in[i] = (float)(i * 5 % 19) / 9 - 1;
  run_host(session, in, out);
  assert_true(verify(session, CS_VERIFY_FULL).end_to_end < 1e-5);
  assert_true(verify(fork, CS_VERIFY_FULL).end_to_end < 1e-5);
  cs_session_destroy(session);
  assert_verified(fork, CS_VERIFY_FULL);
  cs_session_destroy(fork);
}

/* Verification compares with the inputs of the device arrays, not with the host's before them. */
static void test_inputs_of_device_arrays_are_verified_and_forked(void **state) {
  (void)state;
  cs_backend_vtable with;
  const cs_backend_vtable *former;
  give_streams(&with, &former);
  cs_session *session = new_session("sequential"), *fork = NULL;
  static float in[IN_SIZE];
  float out[20], of_fork[20], wanted[20];
  for (int i = 0; i < IN_SIZE; i++) in[i] = (float)(i * 7 % 23) / 11 - 1;
  const void *from = in;
  void *to = out;
  assert_ok(cs_session_run_device(session, &from, 1, &to, 1, NULL));
  assert_verified(session, CS_VERIFY_FULL);
  assert_memory_equal(session->inputs[0], in, sizeof in);

  for (int i = 0; i < IN_SIZE; i++) in[i] = (float)(i * 5 % 19) / 9 - 1;
  assert_ok(cs_session_run_device(session, &from, 1, &to, 1, NULL));
  assert_ok(cs_session_fork(session, "sequential", &fork));
  run_host(fork, NULL, of_fork);
  assert_memory_equal(of_fork, out, sizeof out);

  /* Inputs of the host set after it count again. */
  for (int i = 0; i < IN_SIZE; i++) in[i] = (float)(i % 3);
  run_host(session, in, wanted);
  assert_verified(session, CS_VERIFY_SAMPLE);
  assert_memory_equal(session->inputs[0], in, sizeof in);
  cs_session_destroy(fork);
  cs_session_destroy(session);
  test_device->backend->vtable = former;
}

/* The serial run takes the bytes of all buffers and of the largest workspace. */
static void test_verification_fits_where_workspaces_share(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  const cs_plan *plan = session->planned.plan;
  int64_t buffers = 0, largest = 0;
  for (int b = 0; b < session->planned.program->n_buffers; b++) {
    buffers += cs_round_up(session->planned.program->buffers[b].bytes, 256);
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    largest = cs_max_i64(largest, cs_round_up(plan->tasks[p].workspace_bytes, 256));
  }
  cs_plan *serial = NULL;
  assert_ok(cs_serial_plan(plan, session->planned.program, &serial));
  assert_int_equal(serial->arena_bytes, buffers + largest);
  cs_plan_destroy(serial);
  cs_session_destroy(session);
}

/* ---- A device that measures errors itself ---- */

static int measured_by_device, wrong_by_device; /* wrong: how many of its nodes it finds wrong */

static cs_status own_error(cs_backend *backend, const cs_op_desc *desc, const void *const *inputs,
                           const float *weight, const float *bias, const void *output,
                           cs_error_measure *out) {
  (void)backend;
  double *logical[CS_MAX_OP_INPUTS] = {NULL};
  int64_t n;
  for (int i = 0; i < desc->n_inputs; i++) {
    CS_RETURN_IF_ERROR(cs_shape_elements(&desc->inputs[i].shape, &n));
    logical[i] = cs_calloc((size_t)n, sizeof(double));
    assert_non_null(logical[i]);
    cs_tensor_to_f64(&desc->inputs[i], inputs[i], logical[i]);
  }
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->output.shape, &n));
  float *found = cs_calloc((size_t)n, sizeof *found);
  double *value = cs_calloc((size_t)n, sizeof *value),
         *magnitude = cs_calloc((size_t)n, sizeof *value);
  assert_true(found && value && magnitude);
  cs_tensor_to_f32(&desc->output, output, found);
  cs_status st =
      cs_reference_run(desc, (const double *const *)logical, weight, bias, value, magnitude, 0);
  if (st == CS_OK) *out = cs_measure_error(found, value, magnitude, n);
  if (measured_by_device++ < wrong_by_device) out->rel_l2 = 0.5;
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(logical[i]);
  free(found);
  free(value);
  free(magnitude);
  return st;
}

/* It is asked for every node, is given what the host would read, and is believed. */
static void test_a_device_may_measure_its_errors_itself(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  cs_verification by_host = verify(session, CS_VERIFY_FULL);
  const cs_backend_vtable *former = test_device->backend->vtable;
  cs_backend_vtable with = *former;
  with.reference_error = own_error;
  test_device->backend->vtable = &with;
  measured_by_device = wrong_by_device = 0;
  cs_verification by_device = verify(session, CS_VERIFY_FULL);
  assert_int_equal(measured_by_device, session->planned.plan->n_tasks);
  assert_int_equal(by_device.nodes_checked, by_host.nodes_checked);
  assert_true(by_device.passed && by_host.passed);
  assert_true(by_device.rel_l2 == by_host.rel_l2 && by_device.max_scaled == by_host.max_scaled);
  assert_string_equal(by_device.worst_node, by_host.worst_node);

  measured_by_device = 0;
  wrong_by_device = 1;
  by_device = verify(session, CS_VERIFY_FULL);
  assert_false(by_device.passed);
  assert_true(by_device.rel_l2 == 0.5);
  test_device->backend->vtable = former;
  cs_session_destroy(session);
}

/* ---- Not finite ---- */

static const char chain_json[] =
    "{\"schema\":\"convsched.graph/"
    "1\",\"name\":\"chain\",\"inputs\":[{\"name\":\"x\",\"shape\":[\"N\","
    "4,6,6],\"dtype\":\"f32\"}],\"nodes\":["
    "{\"name\":\"square\",\"op\":\"Mul\",\"inputs\":[\"x\",\"x\"]},"
    "{\"name\":\"quartic\",\"op\":\"Mul\",\"inputs\":[\"square\",\"square\"]},"
    "{\"name\":\"pool\",\"op\":\"MaxPool\",\"inputs\":[\"quartic\"],\"attrs\":{\"kernel_shape\":[2,"
    "2],"
    "\"strides\":[2,2]}}],\"outputs\":[\"pool\"]}";

static cs_verification verify_chain(cs_precision precision, float value, bool *finite) {
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  cs_session_options options = default_options("sequential");
  options.batch = 1;
  options.precision = precision;
  assert_ok(cs_graph_parse(chain_json, strlen(chain_json), "chain.json", &graph));
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  float in[4 * 6 * 6], out[4 * 3 * 3];
  const float *inputs = in;
  float *outputs = out;
  int64_t in_size = 4 * 6 * 6, out_size = 4 * 3 * 3;
  for (int i = 0; i < in_size; i++) in[i] = (float)(i % 5) / 4;
  in[17] = value;
  assert_ok(cs_session_run(session, &inputs, &in_size, 1, &outputs, &out_size, 1));
  *finite = true;
  for (int i = 0; i < out_size; i++) *finite &= isfinite(out[i]) != 0;
  cs_verification result = verify(session, CS_VERIFY_FULL);
  cs_verification sample = verify(session, CS_VERIFY_SAMPLE);
  assert_int_equal(result.passed, sample.passed);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  return result;
}

static void test_finite_values_pass(void **state) {
  (void)state;
  bool finite;
  cs_verification result = verify_chain(CS_PRECISION_F32, 3, &finite);
  assert_true(finite);
  if (!result.passed) print_verification(&result);
  assert_true(result.passed);
}

/* 30^4 is no f16, (1e13)^4 no f32: the second product is where it happens, not the first, and not
 * the pooling that only passes it on. */
static void test_overflow_is_wrong_and_says_where(void **state) {
  (void)state;
  bool finite;
  cs_verification f16 = verify_chain(CS_PRECISION_F16, 30, &finite);
  assert_false(finite);
  assert_false(f16.passed);
  assert_string_equal(f16.worst_node, "quartic");
  assert_true(isinf(f16.worst_ratio));
  assert_non_null(strstr(f16.problem, "node quartic overflows"));
  assert_non_null(strstr(f16.problem, "65504"));
  cs_verification f32 = verify_chain(CS_PRECISION_F32, 1e13f, &finite);
  assert_false(finite);
  assert_false(f32.passed);
  assert_non_null(strstr(f32.problem, "node quartic overflows"));
}

/* What the caller put in comes out of the reference, too. */
static void test_infinite_inputs_may_give_infinite_outputs(void **state) {
  (void)state;
  bool finite;
  cs_verification result = verify_chain(CS_PRECISION_F32, INFINITY, &finite);
  assert_false(finite);
  if (!result.passed) print_verification(&result);
  assert_true(result.passed);
  assert_true(result.end_to_end < 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_inputs_of_device_arrays_are_verified_and_forked),
      cmocka_unit_test(test_outputs_in_double_are_of_the_inputs),
      cmocka_unit_test(test_verification_fits_where_workspaces_share),
      cmocka_unit_test(test_a_device_may_measure_its_errors_itself),
      cmocka_unit_test(test_finite_values_pass),
      cmocka_unit_test(test_overflow_is_wrong_and_says_where),
      cmocka_unit_test(test_infinite_inputs_may_give_infinite_outputs),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
