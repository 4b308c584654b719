/* Sessions on the first GPU: what every device must pass, and arrays that lie on the device. */
#define DEVICE_SPEC "cuda:0"
#include <cuda_runtime_api.h>

#include "profiler/partition.h"
#include "session_tests.h"

static void assert_cuda(cudaError_t result) {
  assert_string_equal(cudaGetErrorString(result), "no error");
}

/* On the default stream and on the caller's own, the device's arrays give what host arrays give. */
static void test_device_arrays(void **state) {
  (void)state;
  const size_t in_size = 2 * 32 * 14 * 14, out_size = 20;
  cs_session *session = new_session("streams"), *fork = NULL;
  float *in = malloc(in_size * sizeof *in), wanted[20], found[20];
  for (size_t i = 0; i < in_size; i++) in[i] = (float)(i * 7 % 23) / 11 - 1;
  const float *inputs = in;
  float *outputs = wanted;
  int64_t sizes[2] = {(int64_t)in_size, (int64_t)out_size};
  assert_ok(cs_session_run(session, &inputs, &sizes[0], 1, &outputs, &sizes[1], 1));

  void *device_in = NULL, *device_out = NULL;
  cudaStream_t own = NULL;
  assert_cuda(cudaMalloc(&device_in, in_size * sizeof *in));
  assert_cuda(cudaMalloc(&device_out, sizeof found));
  assert_cuda(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  cudaStream_t streams[] = {NULL, own};
  for (int s = 0; s < 2; s++) {
    assert_cuda(cudaMemsetAsync(device_out, 0xFF, sizeof found, streams[s]));
    assert_cuda(
        cudaMemcpyAsync(device_in, in, in_size * sizeof *in, cudaMemcpyHostToDevice, streams[s]));
    const void *from = device_in;
    assert_ok(cs_session_run_device(session, &from, 1, &device_out, 1, streams[s]));
    assert_cuda(
        cudaMemcpyAsync(found, device_out, sizeof found, cudaMemcpyDeviceToHost, streams[s]));
    assert_cuda(cudaStreamSynchronize(streams[s]));
    assert_memory_equal(found, wanted, sizeof found);
  }
  assert_ok(cs_session_fork(session, "streams", &fork));
  outputs = found;
  assert_ok(cs_session_run(fork, NULL, NULL, 0, &outputs, &sizes[1], 1));
  assert_memory_equal(found, wanted, sizeof found);

  /* Other inputs than the host's last ones: verification takes the device's. */
  assert_cuda(cudaMemset(device_in, 0, in_size * sizeof *in));
  const void *from = device_in;
  assert_ok(cs_session_run_device(session, &from, 1, &device_out, 1, NULL));
  assert_cuda(cudaDeviceSynchronize());
  assert_verified(session, CS_VERIFY_FULL);
  cs_session_destroy(fork);
  assert_cuda(cudaStreamDestroy(own));
  assert_cuda(cudaFree(device_in));
  assert_cuda(cudaFree(device_out));
  free(in);
  cs_session_destroy(session);
}

/* On one stream `ios` merges the branches' first convolutions: right, and the same bits as one by
 * one, as a graph and as stream calls. */
static void test_merged_launches(void **state) {
  (void)state;
  for (int no_graph = 0; no_graph < 2; no_graph++) {
    cs_session *session = NULL;
    cs_session_options options = default_options("ios");
    int merged = 0;
    options.precision = CS_PRECISION_F16;
    options.max_streams = 1;
    options.no_graph = no_graph;
    assert_ok(cs_session_create(test_device, test_graph, &options, &session));
    const cs_plan *plan = session->planned.plan;
    for (int p = 0; p < plan->n_tasks; p++) merged += plan->tasks[p].merged >= 0;
    print_message("%d tasks, %d of them in launches of others\n", plan->n_tasks, merged);
    assert_true(merged > 0);
    assert_verified(session, CS_VERIFY_FULL);
    cs_session_destroy(session);
  }
}

/* A plan of several streams, put on two parts of the SMs and with one stream of high priority:
 * right, and the same bits as serially on the whole device, as a graph and as stream calls. */
static void test_parts_and_priorities(void **state) {
  (void)state;
  const cs_device_info *info = test_device->backend->vtable->info(test_device->backend);
  int halves[CS_DEFAULT_SPLITS][2], n = cs_parts_default(info, halves);
  for (int no_graph = 0; no_graph < 2; no_graph++) {
    cs_session *session = NULL;
    cs_session_options options = default_options("streams");
    options.no_graph = no_graph;
    assert_ok(cs_session_create(test_device, test_graph, &options, &session));
    cs_plan *plan = session->planned.plan;
    assert_true(plan->n_streams > 1);
    if (n > 0) {
      plan->stream_part = calloc((size_t)plan->n_streams, sizeof *plan->stream_part);
      assert_non_null(plan->stream_part);
      plan->n_parts = 2;
      memcpy(plan->parts, halves[n - 1], sizeof halves[0]);
      for (int s = 0; s < plan->n_streams; s++) plan->stream_part[s] = s % 3 - 1;
      assert_ok(cs_realised_reschedule(&session->realised, plan));
      assert_verified(session, CS_VERIFY_FULL);
    }
    for (int p = 0; p < plan->n_tasks; p++) {
      plan->tasks[p].priority = plan->tasks[p].stream == 1;
      session->realised.launches[p].priority = plan->tasks[p].priority;
    }
    if (n > 0 && !no_graph) {
      assert_status(cs_realised_reschedule(&session->realised, plan), CS_CODE_BAD_INPUT,
                    "on a device that is split");
    }
    free(plan->stream_part);
    plan->stream_part = NULL, plan->n_parts = 0;
    assert_ok(cs_realised_reschedule(&session->realised, plan));
    assert_verified(session, CS_VERIFY_FULL);
    cs_session_destroy(session);
  }
}

/* Whatever of a plan begins early, with hints of the launch order and without, the results are the
 * same bits: all that can, every other one, or nothing; and kernels are told as they are. */
static void test_early_beginnings(void **state) {
  (void)state;
  const cs_backend_vtable *vtable = test_device->backend->vtable;
  bool can = vtable->info(test_device->backend)->compute_capability >= 90;
  cs_session *session = NULL;
  cs_session_options options = default_options("streams");
  float wanted[20], found[20], *outputs = found;
  const int64_t size = 20;
  options.precision = CS_PRECISION_F16;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  cs_plan *plan = session->planned.plan;
  for (int way = 0; way < 6; way++) {
    int early = 0, count = 0;
    cs_kernel_info kernels[64];
    for (int p = 0; p < plan->n_tasks; p++) {
      plan->tasks[p].late = way % 3 == 0 || (way % 3 == 1 && p % 2 == 0);
      session->realised.launches[p].late = plan->tasks[p].late;
    }
    plan->hints = way >= 3;
    assert_ok(cs_realised_reschedule(&session->realised, plan));
    assert_ok(vtable->schedule_kernels(session->realised.schedule, kernels, 64, &count));
    for (int k = 0; k < count && k < 64; k++) early += kernels[k].early;
    print_message("%d of %d kernels begin early\n", early, count);
    if (way % 3 == 0 || !can) assert_int_equal(early, 0);
    if (way % 3 == 2 && can) assert_true(early > 0);
    for (int repeat = 0; repeat < 10; repeat++) {
      memset(found, 0xFF, sizeof found);
      assert_ok(cs_session_run(session, NULL, NULL, 0, &outputs, &size, 1));
      if (way == 0 && repeat == 0) memcpy(wanted, found, sizeof wanted);
      assert_memory_equal(found, wanted, sizeof found);
    }
    assert_verified(session, CS_VERIFY_FULL);
  }
  cs_session_destroy(session);
}

/* `coselect` weighs candidates by their kernels: a run of its own records them. */
static void test_kernels_are_known(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = default_options("coselect");
  options.search_seconds = 0.2;
  assert_ok(cs_session_create(test_device, test_graph, &options, &session));
  const cs_planned *planned = &session->planned;
  for (int t = 0; t < planned->program->n_tasks; t++) {
    assert_true(planned->choices[t].choices[0].n_kernels > 0);
  }
  cs_session_destroy(session);
}

/* More memory than the GPU has: one clear message, and the device goes on working. */
static void test_more_than_there_is(void **state) {
  (void)state;
  cs_session *session = NULL;
  cs_session_options options = default_options("sequential");
  options.batch = 4000000;
  assert_status(cs_session_create(test_device, test_graph, &options, &session), CS_CODE_NO_MEMORY,
                "out of device memory");
  assert_null(session);
  session = new_session("sequential");
  assert_verified(session, CS_VERIFY_SAMPLE);
  cs_session_destroy(session);
}

int main(void) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512];
    if (strcmp(entry->name, "cuda") != 0 || entry->count(reason, sizeof reason) == 0) continue;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_arrays),        cmocka_unit_test(test_merged_launches),
        cmocka_unit_test(test_parts_and_priorities), cmocka_unit_test(test_early_beginnings),
        cmocka_unit_test(test_kernels_are_known),    cmocka_unit_test(test_more_than_there_is),
    };
    return run_session_tests() + cmocka_run_group_tests(tests, open_all, close_all);
  }
  return 77;
}
