/* Splits of the SMs against a stand-in for the driver that hands out SMs in groups of 8: what is
 * asked of it, what is refused, and that nothing is left behind. No device needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <string.h>

#include "backend/cuda/split.h"

#define SMS 132
#define MOST 64

/* ---- The stand-in: a context is the number of its SMs, a stream that of its context ---- */

struct CUgreenCtx_st {
  unsigned sms;
  bool alive;
};
struct CUdevResourceDesc_st {
  unsigned sms;
};
struct CUstream_st {
  CUgreenCtx context;
  int priority;
};
static struct CUgreenCtx_st contexts[MOST];
static int n_contexts, contexts_alive, streams_alive;
static bool rounds_up, fails_to_create;
static struct CUdevResourceDesc_st described;

/* What the driver split is not to be split before a context was made of it. */
static CUdevResource sms_of(unsigned count, bool fresh) {
  CUdevResource out;
  memset(&out, 0, sizeof(out));
  out.type = CU_DEV_RESOURCE_TYPE_SM;
  out.sm.smCount = count;
#if CUDA_VERSION >= 13000
  out.sm.minSmPartitionSize = out.sm.smCoscheduledAlignment = 8;
#endif
  out._internal_padding[0] = fresh;
  return out;
}

static CUresult device_get(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
static CUresult device_get_resource(CUdevice device, CUdevResource *out, CUdevResourceType type) {
  assert_int_equal(device, 3);
  assert_int_equal(type, CU_DEV_RESOURCE_TYPE_SM);
  *out = sms_of(SMS, true);
  return CUDA_SUCCESS;
}
static CUresult split(CUdevResource *out, unsigned *groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned flags, unsigned count) {
  assert_int_equal(flags, 0);
  assert_int_equal(*groups, 1);
  if (!input->_internal_padding[0]) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  unsigned given = (count + 7) / 8 * 8;
  if (rounds_up) given += 8;
  if (given > input->sm.smCount) {
    *groups = 0;
    return CUDA_SUCCESS;
  }
  *out = sms_of(given, false);
  *remaining = sms_of(input->sm.smCount - given, false);
  return CUDA_SUCCESS;
}
static CUresult describe(CUdevResourceDesc *out, CUdevResource *resources, unsigned n) {
  assert_int_equal(n, 1);
  described.sms = resources->sm.smCount;
  *out = &described;
  return CUDA_SUCCESS;
}
static CUresult green_create(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device,
                             unsigned flags) {
  assert_int_equal(device, 3);
  assert_int_equal(flags, CU_GREEN_CTX_DEFAULT_STREAM);
  if (fails_to_create && n_contexts > 0) return CUDA_ERROR_OUT_OF_MEMORY;
  contexts[n_contexts].sms = description->sms;
  contexts[n_contexts].alive = true;
  *out = &contexts[n_contexts++];
  contexts_alive++;
  return CUDA_SUCCESS;
}
static CUresult green_get_resource(CUgreenCtx context, CUdevResource *out, CUdevResourceType type) {
  assert_int_equal(type, CU_DEV_RESOURCE_TYPE_SM);
  *out = sms_of(context->sms, true);
  return CUDA_SUCCESS;
}
static CUresult green_stream_create(CUstream *out, CUgreenCtx context, unsigned flags,
                                    int priority) {
  assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
  assert_true(context->alive);
  *out = calloc(1, sizeof(**out));
  (*out)->context = context;
  (*out)->priority = priority;
  streams_alive++;
  return CUDA_SUCCESS;
}
static CUresult green_destroy(CUgreenCtx context) {
  assert_true(context->alive);
  context->alive = false;
  contexts_alive--;
  return CUDA_SUCCESS;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  assert_true(stream->context->alive); /* else the stream would be leaked */
  free(stream);
  streams_alive--;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

static const cs_cuda_driver driver = {.device_get = device_get,
                                      .device_get_resource = device_get_resource,
                                      .resource_split = split,
                                      .resource_describe = describe,
                                      .green_create = green_create,
                                      .green_get_resource = green_get_resource,
                                      .green_stream_create = green_stream_create,
                                      .green_destroy = green_destroy};

static void set_up(cs_cuda_backend *backend) {
  *backend = (cs_cuda_backend){.device = 3, .driver = driver};
  strcpy(backend->info.name, "GPU");
  backend->info.units = SMS;
  backend->info.compute_capability = 90;
  n_contexts = 0;
  rounds_up = fails_to_create = false;
}

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

/* ---- Tests ---- */

static void the_device_tells_its_least_part(void **state) {
  (void)state;
  cs_cuda_backend backend;
  set_up(&backend);
  ok(cs_cuda_split_units(&backend));
  assert_int_equal(backend.info.part_least, 8);
  assert_int_equal(backend.info.part_step, 8);
  /* A driver without green contexts still opens; the device cannot be split. */
  backend.driver = (cs_cuda_driver){.no_green = "too old"};
  ok(cs_cuda_split_units(&backend));
  assert_int_equal(backend.info.part_least, 0);
}

/* Every part has a context with its SMs, whether it is all that is left or cut off. */
static void parts_get_the_sms_they_ask_for(void **state) {
  (void)state;
  const cs_stream_set sets[] = {{.n = 1, .n_parts = 2, .parts = {16, 116}},
                                {.n = 1, .n_parts = 2, .parts = {64, 64}},
                                {.n = 1, .n_parts = 3, .parts = {8, 24, 100}},
                                {.n = 1, .n_parts = 4, .parts = {32, 32, 32, 32}}};
  cs_cuda_backend backend;
  set_up(&backend);
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
    cs_cuda_split *made = NULL, *found = NULL;
    ok(cs_cuda_split_find(&backend, &sets[i], &made));
    for (int p = 0; p < sets[i].n_parts; p++) {
      cudaStream_t normal = NULL, urgent = NULL, again = NULL, other = NULL;
      ok(cs_cuda_split_stream(&backend, made, p, 5, false, &normal));
      ok(cs_cuda_split_stream(&backend, made, p, 5, true, &urgent));
      ok(cs_cuda_split_stream(&backend, made, p, 5, false, &again));
      ok(cs_cuda_split_stream(&backend, made, p, 6, false, &other));
      assert_int_equal(normal->context->sms, sets[i].parts[p]);
      assert_int_equal(urgent->context->sms, sets[i].parts[p]);
      assert_int_equal(normal->priority, 0);
      assert_int_equal(urgent->priority, -5);
      assert_ptr_equal(again, normal);
      assert_ptr_not_equal(other, normal);
    }
    int before = n_contexts;
    ok(cs_cuda_split_find(&backend, &sets[i], &found));
    assert_ptr_equal(found, made);
    assert_int_equal(n_contexts, before);
  }
  cs_cuda_splits_destroy(&backend);
  assert_int_equal(contexts_alive, 0);
  assert_int_equal(streams_alive, 0);
}

static void other_sms_than_asked_for_are_refused(void **state) {
  (void)state;
  const cs_stream_set set = {.n = 1, .n_parts = 2, .parts = {16, 116}};
  const cs_stream_set unsplittable = {.n = 1, .n_parts = 3, .parts = {64, 64, 8}};
  cs_cuda_split *made = NULL;
  cs_cuda_backend backend;
  set_up(&backend);
  rounds_up = true;
  cs_status st = cs_cuda_split_find(&backend, &set, &made);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  assert_non_null(strstr(cs_status_message(st), "partition 16,116 of GPU"));
  assert_non_null(strstr(cs_status_message(st), "24 off 132 SMs where 16 were wanted"));
  cs_status_free(st);
  rounds_up = false;
  st = cs_cuda_split_find(&backend, &unsplittable, &made);
  assert_int_equal(cs_status_code(st), CS_CODE_BAD_INPUT);
  cs_status_free(st);
  assert_null(made);
  assert_null(backend.splits);
  assert_int_equal(contexts_alive, 0);
}

static void a_failure_leaves_nothing_behind(void **state) {
  (void)state;
  const cs_stream_set set = {.n = 1, .n_parts = 3, .parts = {8, 24, 100}};
  cs_cuda_split *made = NULL;
  cs_cuda_backend backend;
  set_up(&backend);
  fails_to_create = true;
  cs_status st = cs_cuda_split_find(&backend, &set, &made);
  assert_int_equal(cs_status_code(st), CS_CODE_NO_MEMORY);
  cs_status_free(st);
  assert_null(made);
  assert_null(backend.splits);
  assert_int_equal(contexts_alive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_device_tells_its_least_part),
      cmocka_unit_test(parts_get_the_sms_they_ask_for),
      cmocka_unit_test(other_sms_than_asked_for_are_refused),
      cmocka_unit_test(a_failure_leaves_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
