/* Tests of sessions that every device must pass. The including file defines DEVICE_SPEC, includes
 * this, and runs session_tests. Faults planted in a realised schedule must be caught. */
#ifndef CONVSCHED_TESTS_SESSION_TESTS_H_
#define CONVSCHED_TESTS_SESSION_TESTS_H_

#include "session_fixture.h"

/* ---- Planted faults ---- */

/* `fragment`: of what verification says is wrong. */
static void assert_caught(cs_session *session, cs_verify_level level, const char *fragment) {
  cs_verification result = verify(session, level);
  if (!result.passed && strstr(result.problem, fragment)) return;
  print_verification(&result);
  fail_msg("the planted fault was not caught as \"%s\"", fragment);
}

static int launch_of(const cs_session *session, const char *task) {
  for (int l = 0; l < session->realised.n_launches; l++) {
    if (strcmp(session->realised.launches[l].name, task) == 0) return l;
  }
  fail_msg("no launch of %s", task);
  return -1;
}

/* As a fresh arena would be: what an earlier, right run left is gone. */
static void refresh_arena(cs_session *session) {
  const cs_realised *realised = &session->realised;
  assert_ok(realised->backend->vtable->fill(realised->backend, realised->arena, 0,
                                            realised->arena_bytes));
  assert_ok(cs_session_upload_inputs(session, realised, session->planned.plan));
}

static void apply_fault(cs_session *session) {
  assert_ok(cs_realised_reschedule(&session->realised, session->planned.plan));
  refresh_arena(session);
}

static void test_unharmed_passes(void **state) {
  (void)state;
  int n = 0;
  const char *const *policies = cs_policy_names(&n);
  for (int p = 0; p < n; p++) {
    cs_session *session = new_session(policies[p]);
    refresh_arena(session);
    assert_verified(session, CS_VERIFY_FULL);
    cs_session_destroy(session);
  }
}

/* Stream calls in place of a graph: the same plan, as right. */
static void test_without_a_graph(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = default_options("streams");
  options.no_graph = true;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(session);
}

static void test_swapped_images_are_caught(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  int64_t image = 32 * 14 * 14;
  float *swapped = malloc((size_t)(2 * image) * sizeof *swapped);
  memcpy(swapped, session->inputs[0] + image, (size_t)image * sizeof *swapped);
  memcpy(swapped + image, session->inputs[0], (size_t)image * sizeof *swapped);
  assert_ok(cs_tensor_write(&session->realised, session->planned.program, session->planned.plan,
                            session->planned.program->input_tensors[0], swapped));
  assert_caught(session, CS_VERIFY_SAMPLE, "differs from the serial run");
  free(swapped);
  cs_session_destroy(session);
}

static void test_dropped_branch_is_caught(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  cs_realised *realised = &session->realised;
  int dropped = launch_of(session, "bp");
  realised->n_launches--;
  memmove(&realised->launches[dropped], &realised->launches[dropped + 1],
          (size_t)(realised->n_launches - dropped) * sizeof *realised->launches);
  apply_fault(session);
  assert_caught(session, CS_VERIFY_SAMPLE, "differs from the serial run");
  cs_session_destroy(session);
}

static void test_shifted_concat_slice_is_caught(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  cs_launch *launch = &session->realised.launches[launch_of(session, "b1")];
  launch->output = (char *)launch->output + 256;
  apply_fault(session);
  assert_caught(session, CS_VERIFY_SAMPLE, "differs from the serial run");
  cs_session_destroy(session);
}

static void test_stale_buffer_is_caught(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  cs_realised *realised = &session->realised;
  cs_launch *reader = &realised->launches[launch_of(session, "b3")];
  reader->inputs[0] = realised->launches[launch_of(session, "b1")].inputs[0];
  apply_fault(session);
  assert_caught(session, CS_VERIFY_SAMPLE, "differs from the serial run");
  cs_session_destroy(session);
}

/* The serial twin shares the weights, so only the node check can see this. */
static void test_wrong_weights_are_caught(void **state) {
  (void)state;
  cs_session *session = new_session("sequential");
  const cs_realised *realised = &session->realised;
  float ones[64];
  for (int i = 0; i < 64; i++) ones[i] = 1;
  char *weights = (char *)realised->weights + realised->weight_offset[launch_of(session, "b3")];
  assert_ok(realised->backend->vtable->upload(realised->backend, weights, ones, sizeof ones));
  assert_caught(session, CS_VERIFY_FULL, "node b3: ");
  cs_session_destroy(session);
}

/* ---- Use ---- */

static void test_policies_and_forks_agree(void **state) {
  (void)state;
  cs_session *one = new_session("sequential"), *other = NULL;
  assert_ok(cs_session_fork(one, "streams", &other));
  float a[20], b[20];
  float *out_a = a, *out_b = b;
  int64_t size = 20;
  assert_ok(cs_session_run(one, NULL, NULL, 0, &out_a, &size, 1));
  cs_session_destroy(one);
  assert_ok(cs_session_run(other, NULL, NULL, 0, &out_b, &size, 1));
  for (int i = 0; i < 20; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(a[i])));
  cs_session_destroy(other);
}

static void test_inputs_matter_and_sizes_are_checked(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  int64_t in_size = 2 * 32 * 14 * 14, out_size = 20;
  float *in = calloc((size_t)in_size, sizeof *in), first[20], second[20];
  const float *inputs = in;
  float *outputs = first;
  assert_ok(cs_session_run(session, &inputs, &in_size, 1, &outputs, &out_size, 1));
  assert_true(fabsf(first[0] - first[10]) <= 1e-5f * (1 + fabsf(first[0])));
  for (int64_t i = 0; i < in_size; i++) in[i] = (float)(i % 13) - 6;
  outputs = second;
  assert_ok(cs_session_run(session, &inputs, &in_size, 1, &outputs, &out_size, 1));
  assert_true(memcmp(first, second, sizeof first) != 0);
  out_size = 19;
  assert_status(cs_session_run(session, NULL, NULL, 0, &outputs, &out_size, 1), CS_CODE_BAD_INPUT,
                "wanted 20");
  in_size--;
  assert_status(cs_session_set_inputs(session, &inputs, &in_size, 1), CS_CODE_BAD_INPUT, "x: ");
  free(in);
  cs_session_destroy(session);
}

static void test_batch_changes(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  int rank;
  int64_t dims[8];
  assert_ok(cs_session_set_batch(session, 5));
  assert_ok(cs_session_shape(session, "fc", &rank, dims));
  assert_int_equal(rank, 2);
  assert_int_equal(dims[0], 5);
  assert_verified(session, CS_VERIFY_SAMPLE);
  assert_status(cs_session_set_batch(session, 0), CS_CODE_BAD_INPUT, "batch 0");
  cs_session_destroy(session);
}

/* Seven images in parts, odd ones too, on one stream and on several; each part's weights are those
 * of the node, on the device once for all that pack the same bytes. */
static void test_micro_batches(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    int parts;
  } cases[] = {{"sequential", 3}, {"sequential", 7}, {"streams", 3}, {"coselect", 2}};
  cs_session_options options = default_options("sequential");
  options.batch = 7;
  cs_session *whole = NULL, *session = NULL;
  assert_ok(cs_session_create(test_device, test_graph, &options, &whole));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options.policy = cases[i].policy;
    options.micro_batches = cases[i].parts;
    assert_ok(cs_session_create(test_device, test_graph, &options, &session));
    assert_int_equal(cs_division_parts(session->planned.plan->division, 0)->n, cases[i].parts);
    if (cases[i].parts == 7) { /* all of one size */
      assert_true(session->realised.weights_bytes < 3 * whole->realised.weights_bytes);
    }
    assert_verified(session, CS_VERIFY_FULL);
    cs_session_destroy(session);
  }
  cs_session_destroy(whole);
}

static void test_kept_values(void **state) {
  (void)state;
  cs_session_options options = default_options("streams");
  const char *keep[] = {"b3", "pool", "x"};
  options.keep = keep;
  options.n_keep = 3;
  cs_session *session = NULL;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  float out[20];
  float *outputs = out;
  int64_t size = 20, n = 2 * 48 * 14 * 14;
  assert_ok(cs_session_run(session, NULL, NULL, 0, &outputs, &size, 1));
  float *value = malloc((size_t)n * sizeof *value);
  assert_ok(cs_session_read(session, "b3", value, n));
  int negative = 0; /* before its Relu */
  for (int64_t i = 0; i < n; i++) negative += value[i] < 0;
  assert_true(negative > n / 10);
  assert_status(cs_session_read(session, "b5", value, n), CS_CODE_NOT_FOUND, "b5");
  assert_verified(session, CS_VERIFY_FULL);
  free(value);
  cs_session_destroy(session);
  const char *wrong[] = {"nothing"};
  options.keep = wrong;
  options.n_keep = 1;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "nothing");
}

static void test_plan_round_trip(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  char *plan = NULL, path[128], *again = NULL;
  snprintf(path, sizeof path, "%s/plan.json", cache_folder);
  assert_ok(cs_session_plan_json(session, &plan));
  assert_ok(cs_text_save(path, plan));
  cs_session_destroy(session);
  cs_session_options options = default_options("streams");
  options.plan_path = path;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_USAGE,
                "plan_path goes without deterministic");
  options.deterministic = false;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_ok(cs_session_plan_json(session, &again));
  assert_string_equal(plan, again);
  assert_verified(session, CS_VERIFY_FULL);
  char *told = NULL;
  cs_report *front = NULL;
  assert_status(cs_session_explain_json(session, &told), CS_CODE_USAGE, "plan.json");
  assert_status(cs_session_tradeoff(session, &front), CS_CODE_USAGE, "plan.json");
  cs_session_destroy(session);
  options.batch = 3;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_BAD_INPUT,
                "plan.json");
  cs_string_free(plan);
  cs_string_free(again);
}

/* A plan with an engine that nobody has is planned anew by its own policy; not under `frozen`. */
static void test_lost_candidates(void **state) {
  (void)state;
  cs_session *session = new_session("opara");
  char *text = NULL, path[128];
  snprintf(path, sizeof path, "%s/lost.json", cache_folder);
  assert_ok(cs_session_plan_json(session, &text));
  cs_session_destroy(session);
  json_t *plan = json_loads(text, 0, NULL);
  json_t *task = json_array_get(json_object_get(plan, "tasks"), 0);
  json_t *candidate = json_object_get(task, "candidate");
  cs_string_free(text);
  json_object_set_new(candidate, "id", json_string("cudnn.graph:eng9999{}"));
  json_object_set_new(candidate, "payload", json_null());
  assert_int_equal(json_dump_file(plan, path, 0), 0);
  cs_session_options options = default_options("sequential");
  options.deterministic = false;
  options.plan_path = path;
  options.frozen = true;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "eng9999");
  options.frozen = false;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  assert_ok(cs_session_info_json(session, &text));
  json_t *info = json_loads(text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(info, "policy")), "opara");
  assert_verified(session, CS_VERIFY_FULL);
  json_decref(info);
  json_decref(plan);
  cs_string_free(text);
  cs_session_destroy(session);
}

/* As many kernels as the schedule has, each of a task of the plan; where a driver tells them with
 * name and extents. */
static void test_kernels_are_told(void **state) {
  (void)state;
  cs_session *session = new_session("streams");
  char *text = NULL, *info_text = NULL;
  assert_ok(cs_session_kernels_json(session, &text));
  assert_ok(cs_session_info_json(session, &info_text));
  json_t *told = json_loads(text, 0, NULL), *info = json_loads(info_text, 0, NULL), *kernel;
  json_t *totals = json_object_get(told, "totals");
  bool driver = strcmp(json_string_value(json_object_get(told, "source")), "driver") == 0;
  size_t i;
  assert_int_equal(json_integer_value(json_object_get(totals, "kernels")),
                   json_integer_value(json_object_get(info, "kernels")));
  assert_int_equal(json_array_size(json_object_get(told, "kernels")),
                   json_integer_value(json_object_get(totals, "kernels")));
  assert_int_equal(json_integer_value(json_object_get(totals, "launches_of_unknown_kernels")),
                   driver ? 0 : json_integer_value(json_object_get(totals, "launches")));
  json_array_foreach(json_object_get(told, "kernels"), i, kernel) {
    assert_int_equal(json_is_string(json_object_get(kernel, "kernel")), driver);
    assert_int_equal(json_is_array(json_object_get(kernel, "grid")), driver);
    assert_non_null(json_string_value(json_object_get(kernel, "reason")));
    assert_true(json_number_value(json_object_get(kernel, "us")) > 0);
  }
  json_decref(told);
  json_decref(info);
  cs_string_free(text);
  cs_string_free(info_text);
  cs_session_destroy(session);
}

static void test_options_are_checked(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = default_options("fastest");
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_USAGE,
                "fastest");
  options = default_options("sequential");
  options.batch = 0;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_BAD_INPUT,
                "batch 0");
  options = default_options("sequential");
  const char *pins[] = {"b3=no_such_candidate"};
  options.pins = pins;
  options.n_pins = 1;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "no_such_candidate");
  options = default_options("sequential");
  options.memory_limit = 64; /* before anything is measured, and where nothing will be */
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "wanted at most 64 bytes of arena, what node \"gap\" reads and writes takes ");
  cs_session_destroy(new_session("sequential"));
  options.frozen = true;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NOT_FOUND,
                "wanted at most 64 bytes of arena, the smallest possible is ");
  assert_null(session);
}

static void test_every_precision(void **state) {
  (void)state;
  for (int p = 0; p < 4; p++) {
    cs_session_options options = default_options("streams");
    options.precision = (cs_precision)p;
    cs_session *session = NULL;
    assert_ok(cs_session_create(test_device, test_graph, &options, &session));
    assert_verified(session, CS_VERIFY_FULL);
    double us = 0;
    assert_ok(cs_session_latency(session, &us));
    assert_true(us > 0 && us < 1e6);
    cs_session_destroy(session);
  }
}

/* ---- Goldens: what PyTorch computed in float64 (tests/data/goldens, tools/make_goldens.py) ----
 */

static const char *const golden_names[] = {
    "conv_variants", "dcgan_head",           "dense_block",         "elementwise", "fire",
    "inception_bn",  "inception_factorised", "inception_lrn",       "lrn_even",    "normalisations",
    "pools",         "residual_bottleneck",  "transposed_variants", "attention"};
#define N_GOLDENS (sizeof golden_names / sizeof golden_names[0])
/* f32 arithmetic over a handful of layers; Winograd, which may be the fastest, is the least exact
 * of it. What is wrong is wrong by about 1. */
#define GOLDEN_LIMIT 2e-4

static float *golden_array(const char *folder, const char *file, const cs_session *session,
                           const char *value, int64_t *size) {
  char path[512];
  int rank;
  int64_t dims[8];
  float *array = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  assert_ok(cs_session_shape(session, value, &rank, dims));
  *size = 1;
  for (int d = 0; d < rank; d++) *size *= dims[d];
  assert_ok(cs_array_load(path, rank, dims, &array));
  return array;
}

static double golden_error(const char *name, const char *policy) {
  char folder[256], path[512];
  snprintf(folder, sizeof folder, CS_SOURCE_DIR "/tests/data/goldens/%s", name);
  snprintf(path, sizeof path, "%s/graph.json", folder);
  cs_graph *graph = NULL;
  cs_session *session = NULL;
  assert_ok(cs_graph_load(path, &graph));
  snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  cs_session_options options = default_options(policy);
  options.weights_path = path;
  assert_ok(cs_session_create(test_device, graph, &options, &session));
  int64_t in_size, out_size;
  float *in = golden_array(folder, "input.npy", session, cs_graph_input_name(graph, 0), &in_size);
  float *wanted =
      golden_array(folder, "output.npy", session, cs_graph_output_name(graph, 0), &out_size);
  float *found = calloc((size_t)out_size, sizeof *found);
  const float *inputs = in;
  assert_ok(cs_session_run(session, &inputs, &in_size, 1, &found, &out_size, 1));
  double error = 0, norm = 0;
  for (int64_t i = 0; i < out_size; i++) {
    error += ((double)found[i] - wanted[i]) * ((double)found[i] - wanted[i]);
    norm += (double)wanted[i] * wanted[i];
  }
  cs_array_free(in);
  cs_array_free(wanted);
  free(found);
  cs_session_destroy(session);
  cs_graph_destroy(graph);
  return sqrt(error / norm);
}

static void test_goldens(void **state) {
  (void)state;
  for (size_t g = 0; g < N_GOLDENS; g++) {
    const char *policies[] = {"sequential", "streams"};
    for (int p = 0; p < 2; p++) {
      double error = golden_error(golden_names[g], policies[p]);
      if (!(error <= GOLDEN_LIMIT)) {
        fail_msg("%s, %s: relative L2 difference %g, wanted at most %g", golden_names[g],
                 policies[p], error, GOLDEN_LIMIT);
      }
    }
  }
}

static int run_session_tests(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unharmed_passes),
      cmocka_unit_test(test_without_a_graph),
      cmocka_unit_test(test_swapped_images_are_caught),
      cmocka_unit_test(test_dropped_branch_is_caught),
      cmocka_unit_test(test_shifted_concat_slice_is_caught),
      cmocka_unit_test(test_stale_buffer_is_caught),
      cmocka_unit_test(test_wrong_weights_are_caught),
      cmocka_unit_test(test_policies_and_forks_agree),
      cmocka_unit_test(test_inputs_matter_and_sizes_are_checked),
      cmocka_unit_test(test_batch_changes),
      cmocka_unit_test(test_micro_batches),
      cmocka_unit_test(test_kept_values),
      cmocka_unit_test(test_plan_round_trip),
      cmocka_unit_test(test_lost_candidates),
      cmocka_unit_test(test_kernels_are_told),
      cmocka_unit_test(test_options_are_checked),
      cmocka_unit_test(test_every_precision),
      cmocka_unit_test(test_goldens),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}

#endif
