/* Counters and traces where there is no GPU: the metrics of real chips from CUPTI's host side, and
 * sessions against a CUPTI that is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "backend/cuda/cupti_activity.h"
#include "backend/cuda/cupti_range.h"

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void fails(cs_status st, cs_code code, const char *text) {
  assert_int_equal(cs_status_code(st), code);
  if (!strstr(cs_status_message(st), text)) fail_msg("%s", cs_status_message(st));
  cs_status_free(st);
}

/* ---- The library ---- */

static void a_missing_library_is_said_with_what_to_do(void **state) {
  (void)state;
  cs_cupti cupti;
  const char *nowhere[] = {"libcupti.so.does-not-exist", "/nowhere/libcupti.so"};
  fails(cs_cupti_load(nowhere, 2, &cupti), CS_CODE_NOT_FOUND, "counters: unavailable (no CUPTI)");
  const char *another[] = {"libm.so.6"};
  fails(cs_cupti_load(another, 1, &cupti), CS_CODE_NOT_FOUND, "libm.so.6 lacks cupti");
}

static void refusals_say_what_to_do(void **state) {
  (void)state;
  ok(cs_cupti_status(CUPTI_SUCCESS, "counters", "counting"));
  fails(cs_cupti_status(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "counters", "counting"),
        CS_CODE_NOT_FOUND,
        "counters: unavailable (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES): run as root");
  fails(cs_cupti_status(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "counters", "counting"),
        CS_CODE_NOT_FOUND, "NVreg_RestrictProfilingToAdminUsers=0");
  fails(cs_cupti_status(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "trace", "tracing"),
        CS_CODE_NOT_FOUND, "trace: unavailable (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS");
  const int codes[] = {26, 33, 35, 39, 40, 41, 43, 15};
  for (int i = 0; i < 8; i++) {
    fails(cs_cupti_status((CUptiResult)codes[i], "counters", "counting"), CS_CODE_NOT_FOUND,
          "counters: unavailable (CUPTI_ERROR_");
  }
  fails(cs_cupti_status(CUPTI_ERROR_INVALID_PARAMETER, "counters", "counting"), CS_CODE_DEVICE,
        "counters: counting failed: CUPTI error 1");
  fails(cs_cupti_status(CUPTI_ERROR_OUT_OF_MEMORY, "counters", "counting"), CS_CODE_NO_MEMORY,
        "counting");
}

/* ---- Metrics of real chips ---- */

static void count_warnings(void *user, cs_log_level level, const char *message) {
  (void)message;
  if (level == CS_LOG_WARNING) ++*(int *)user;
}

static void every_counter_has_a_metric_on_known_chips(void **state) {
  (void)state;
  const cs_cupti *cupti = NULL;
  cs_status st = cs_cupti_get(&cupti);
  if (st != CS_OK) {
    print_message("skipped: %s\n", cs_status_message(st));
    cs_status_free(st);
    skip();
  }
  const char *chips[] = {"GA100", "AD102", "GH100"};
  for (int i = 0; i < 3; i++) {
    int warnings = 0;
    cs_logger logger = {.write = count_warnings, .user = &warnings};
    cs_metric_set set;
    ok(cs_metric_set_create(cupti, chips[i], NULL, &logger, &set));
    assert_int_equal(warnings, 0);
    assert_int_equal(set.n, CS_COUNTER_COUNT);
    assert_in_range(set.passes, 1, 4);
    assert_true(set.config_size > 0);
    cs_metric_set_clear(&set);
  }
  cs_metric_set set;
  fails(cs_metric_set_create(cupti, "ZZ999", NULL, NULL, &set), CS_CODE_NOT_FOUND,
        "CUPTI_ERROR_INVALID_CHIP_NAME");
}

/* ---- Sessions against a CUPTI that is made up ---- */

#define PASSES 3

static struct {
  const char *failing; /* the function that refuses; NULL: none */
  CUptiResult result;
  int initialized, hosts, enabled, started, pushed; /* open at this moment */
  int passes, works;
  size_t ranges, dropped;
  bool per_kernel, pushed_while_worked;
  const char *missing; /* a metric that the chip lacks */
  bool endless;
} fake;

static CUptiResult answer(const char *function) {
  return fake.failing && strcmp(fake.failing, function) == 0 ? fake.result : CUPTI_SUCCESS;
}

#define FAKE(name, type, before_return)       \
  static CUptiResult CUPTIAPI name(type *p) { \
    CUptiResult r = answer(#name);            \
    (void)p;                                  \
    if (r != CUPTI_SUCCESS) return r;         \
    before_return;                            \
    return CUPTI_SUCCESS;                     \
  }

static int a_host, a_profiler;
FAKE(initialize, CUpti_Profiler_Initialize_Params, fake.initialized++)
FAKE(deinitialize, CUpti_Profiler_DeInitialize_Params, fake.initialized--)
FAKE(chip, CUpti_Device_GetChipName_Params, p->pChipName = "XY100")
FAKE(availability, CUpti_Profiler_GetCounterAvailability_Params,
     p->counterAvailabilityImageSize = 16)
FAKE(host, CUpti_Profiler_Host_Initialize_Params,
     (fake.hosts++, p->pHostObject = (CUpti_Profiler_Host_Object *)(void *)&a_host))
FAKE(unhost, CUpti_Profiler_Host_Deinitialize_Params, fake.hosts--)
FAKE(add_metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, (void)0)
FAKE(config_size, CUpti_Profiler_Host_GetConfigImageSize_Params, p->configImageSize = 8)
FAKE(config, CUpti_Profiler_Host_GetConfigImage_Params, memset(p->pConfigImage, 7, 8))
FAKE(num_passes, CUpti_Profiler_Host_GetNumOfPasses_Params, p->numOfPasses = PASSES)
FAKE(enable, CUpti_RangeProfiler_Enable_Params,
     (fake.enabled++, p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)(void *)&a_profiler))
FAKE(disable, CUpti_RangeProfiler_Disable_Params, fake.enabled--)
FAKE(set_config, CUpti_RangeProfiler_SetConfig_Params,
     (assert_int_equal(p->replayMode, CUPTI_UserReplay),
      fake.per_kernel = p->range == CUPTI_AutoRange))
FAKE(start, CUpti_RangeProfiler_Start_Params, fake.started++)
FAKE(stop, CUpti_RangeProfiler_Stop_Params,
     (fake.started--, fake.passes++,
      p->isAllPassSubmitted = !fake.endless && fake.passes == PASSES))
FAKE(push, CUpti_RangeProfiler_PushRange_Params, fake.pushed++)
FAKE(pop, CUpti_RangeProfiler_PopRange_Params, fake.pushed--)
FAKE(decode, CUpti_RangeProfiler_DecodeData_Params, p->numOfRangeDropped = fake.dropped)
FAKE(data_size, CUpti_RangeProfiler_GetCounterDataSize_Params, p->counterDataSize = 64)
FAKE(data_init, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, (void)0)
FAKE(data_info, CUpti_RangeProfiler_GetCounterDataInfo_Params, p->numTotalRanges = fake.ranges)

static CUptiResult CUPTIAPI properties(CUpti_Profiler_Host_GetMetricProperties_Params *p) {
  bool lacks = fake.missing && strcmp(p->pMetricName, fake.missing) == 0;
  return lacks ? CUPTI_ERROR_INVALID_METRIC_NAME : answer("properties");
}

/* Metric m of range r is 1000·(r + 1) + m, by its place in the table of all metrics; the last one
 * has no value. */
static CUptiResult CUPTIAPI evaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p) {
  for (size_t i = 0; i < p->numMetrics; i++) {
    for (int m = 0; m < CS_COUNTER_COUNT; m++) {
      if (strcmp(p->ppMetricNames[i], cs_cupti_metrics[m].name) != 0) continue;
      p->pMetricValues[i] =
          m == CS_COUNTER_COUNT - 1 ? (double)INFINITY : (double)(1000 * (p->rangeIndex + 1)) + m;
    }
  }
  return answer("evaluate");
}

static const cs_cupti fake_cupti = {
    .profiler_initialize = initialize,
    .profiler_deinitialize = deinitialize,
    .device_get_chip_name = chip,
    .get_counter_availability = availability,
    .host_initialize = host,
    .host_deinitialize = unhost,
    .host_get_metric_properties = properties,
    .host_config_add_metrics = add_metrics,
    .host_get_config_image_size = config_size,
    .host_get_config_image = config,
    .host_get_num_of_passes = num_passes,
    .host_evaluate = evaluate,
    .range_enable = enable,
    .range_disable = disable,
    .range_set_config = set_config,
    .range_start = start,
    .range_stop = stop,
    .range_push = push,
    .range_pop = pop,
    .range_decode = decode,
    .range_get_counter_data_size = data_size,
    .range_initialize_counter_data = data_init,
    .range_get_counter_data_info = data_info,
};

static cs_status work(void *user) {
  fake.works++;
  fake.pushed_while_worked = fake.pushed == 1;
  assert_int_equal(fake.started, 1);
  return *(bool *)user ? cs_error(CS_CODE_DEVICE, "the work failed") : CS_OK;
}

static cs_metric_set metrics; /* the device's, that counts share */

static void all_is_closed(void) {
  cs_metric_set_clear(&metrics);
  assert_int_equal(fake.initialized, 0);
  assert_int_equal(fake.hosts, 0);
  assert_int_equal(fake.enabled, 0);
  assert_int_equal(fake.started, 0);
  assert_int_equal(fake.pushed, 0);
}

static void counts_each_kernel_or_the_whole_run(void **state) {
  (void)state;
  bool failing = false;
  cs_counters counters[4];
  for (int per_kernel = 0; per_kernel < 2; per_kernel++) {
    memset(&fake, 0, sizeof(fake));
    fake.ranges = per_kernel ? 3 : 1;
    fake.missing = cs_cupti_metrics[CS_COUNTER_tensor_pct].name;
    int n = 0, warnings = 0;
    cs_logger logger = {.write = count_warnings, .user = &warnings};
    cs_range_request request = {.per_kernel = per_kernel,
                                .max_ranges = 4,
                                .work = work,
                                .user = &failing,
                                .metrics = &metrics,
                                .logger = &logger};
    ok(cs_cupti_count(&fake_cupti, &request, counters, &n));
    assert_int_equal(n, fake.ranges);
    assert_int_equal(fake.works, PASSES);
    assert_int_equal(fake.per_kernel, per_kernel);
    assert_int_equal(fake.pushed_while_worked, !per_kernel);
    assert_int_equal(warnings, 1);
    for (int r = 0; r < n; r++) {
      const double *v = counters[r].value;
      assert_true(fabs(v[CS_COUNTER_duration_us] - (double)(r + 1)) < 1e-9);
      assert_true(v[CS_COUNTER_fma_pct] == 1000 * (r + 1) + CS_COUNTER_fma_pct);
      assert_true(v[CS_COUNTER_stall_shared] == 1000 * (r + 1) + CS_COUNTER_stall_shared);
      assert_true(isnan(v[CS_COUNTER_tensor_pct]));
      assert_true(isnan(v[CS_COUNTER_COUNT - 1]));
    }
    all_is_closed();
  }
}

/* Choosing metrics takes longer than counting: the first count does it for all of a device's. */
static void metrics_are_chosen_once(void **state) {
  (void)state;
  bool failing = false;
  int n = 0, warnings = 0;
  cs_counters counters[1];
  cs_logger logger = {.write = count_warnings, .user = &warnings};
  memset(&fake, 0, sizeof(fake));
  fake.ranges = 1;
  fake.missing = cs_cupti_metrics[CS_COUNTER_tensor_pct].name;
  cs_range_request request = {
      .max_ranges = 1, .work = work, .user = &failing, .metrics = &metrics, .logger = &logger};
  for (int i = 0; i < 3; i++) {
    fake.passes = 0;
    ok(cs_cupti_count(&fake_cupti, &request, counters, &n));
    assert_int_equal(n, 1);
    assert_int_equal(fake.hosts, 1);
    assert_int_equal(fake.initialized, 0);
    assert_int_equal(fake.enabled, 0);
    assert_true(counters[0].value[CS_COUNTER_fma_pct] == 1000 + CS_COUNTER_fma_pct);
  }
  assert_int_equal(warnings, 1); /* of the metric that is not there */
  all_is_closed();
}

static void whatever_fails_nothing_stays_open(void **state) {
  (void)state;
  const char *functions[] = {
      "initialize",  "chip",   "availability", "host",      "properties", "add_metrics",
      "config_size", "config", "num_passes",   "enable",    "set_config", "start",
      "push",        "decode", "data_size",    "data_init", "data_info",  "evaluate"};
  cs_counters counters[2];
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    memset(&fake, 0, sizeof(fake));
    fake.ranges = 1;
    fake.failing = functions[i];
    fake.result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    bool failing = false;
    int n = -1;
    cs_range_request request = {
        .max_ranges = 1, .work = work, .user = &failing, .metrics = &metrics};
    fails(cs_cupti_count(&fake_cupti, &request, counters, &n), CS_CODE_NOT_FOUND,
          "counters: unavailable (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)");
    assert_int_equal(n, 0);
    all_is_closed();
  }
}

static void work_that_fails_and_ranges_that_do_not_fit_are_errors(void **state) {
  (void)state;
  cs_counters counters[2];
  int n = 0;
  for (int per_kernel = 0; per_kernel < 2; per_kernel++) {
    memset(&fake, 0, sizeof(fake));
    bool failing = true;
    cs_range_request request = {.per_kernel = per_kernel,
                                .max_ranges = 2,
                                .work = work,
                                .user = &failing,
                                .metrics = &metrics};
    fails(cs_cupti_count(&fake_cupti, &request, counters, &n), CS_CODE_DEVICE, "the work failed");
    all_is_closed();
    failing = false;
    fake.ranges = 3;
    fails(cs_cupti_count(&fake_cupti, &request, counters, &n), CS_CODE_DEVICE, "3 ranges");
    all_is_closed();
    fake.passes = 0;
    fake.ranges = 2;
    fake.dropped = 5;
    fails(cs_cupti_count(&fake_cupti, &request, counters, &n), CS_CODE_DEVICE, "5 ranges more");
    all_is_closed();
    fake.endless = true;
    fails(cs_cupti_count(&fake_cupti, &request, counters, &n), CS_CODE_DEVICE, "not complete");
    all_is_closed();
  }
}

/* ---- Traces ---- */

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif
#define CONTEXT 5

static struct {
  CUpti_BuffersCallbackRequestFunc requested;
  CUpti_BuffersCallbackCompleteFunc completed;
  bool enabled;
  int runs;
  kernel_record records[8];
  int n; /* of records, delivered once a run */
  CUptiResult flush_result;
} tracer;

static CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc requested,
                                               CUpti_BuffersCallbackCompleteFunc completed) {
  tracer.requested = requested;
  tracer.completed = completed;
  return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI activity_enable(CUpti_ActivityKind kind) {
  assert_int_equal(kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  tracer.enabled = true;
  return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI activity_disable(CUpti_ActivityKind kind) {
  (void)kind;
  tracer.enabled = false;
  return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI context_id(CUcontext context, uint32_t *id) {
  (void)context;
  *id = CONTEXT;
  return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI flush_all(uint32_t flag) {
  (void)flag;
  if (tracer.flush_result != CUPTI_SUCCESS) return tracer.flush_result;
  uint8_t *buffer = NULL;
  size_t size = 0, most = 0, bytes = (size_t)tracer.n * sizeof(kernel_record);
  tracer.requested(&buffer, &size, &most);
  assert_non_null(buffer);
  assert_true(size >= bytes);
  memcpy(buffer, tracer.records, bytes);
  tracer.completed(NULL, 0, buffer, size, tracer.enabled ? bytes : 0);
  return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI next_record(uint8_t *buffer, size_t bytes, CUpti_Activity **record) {
  uint8_t *next = *record ? (uint8_t *)*record + sizeof(kernel_record) : buffer;
  if (next >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)next;
  return CUPTI_SUCCESS;
}

static const cs_cupti fake_tracer = {
    .activity_register_callbacks = register_callbacks,
    .activity_enable = activity_enable,
    .activity_disable = activity_disable,
    .activity_flush_all = flush_all,
    .activity_get_next_record = next_record,
    .get_context_id = context_id,
};

static cs_status traced_work(void *user) {
  (void)user;
  assert_true(tracer.enabled);
  tracer.runs++;
  return CS_OK;
}

static void add_record(const char *name, uint64_t start_ns, uint64_t end_ns, uint32_t context) {
  kernel_record *r = &tracer.records[tracer.n++];
  memset(r, 0, sizeof(*r));
  r->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r->name = name;
  r->start = start_ns;
  r->end = end_ns;
  r->contextId = context;
  r->streamId = 13;
  r->gridX = 4, r->gridY = 3, r->gridZ = 2;
  r->blockX = 128, r->blockY = 2, r->blockZ = 1;
  r->registersPerThread = 168;
  r->staticSharedMemory = 1024;
  r->dynamicSharedMemory = 49152;
  r->localMemoryPerThread = 16;
}

static void traces_are_ordered_and_begin_at_zero(void **state) {
  (void)state;
  memset(&tracer, 0, sizeof(tracer));
  /* As large as the nanoseconds of the epoch: doubles would not tell these apart. */
  const uint64_t t = UINT64_C(1790000000000000000);
  add_record("second", t + 1500, t + 4000, CONTEXT);
  add_record("first", t + 1001, t + 2002, CONTEXT);
  add_record("elsewhere", t, t + 9, CONTEXT + 1);
  add_record("no time", 0, 0, CONTEXT);
  add_record("inverted", t + 3000, t + 2000, CONTEXT);
  cs_activity_request request = {.work = traced_work};
  cs_activity_result result;
  ok(cs_cupti_trace(&fake_tracer, &request, &result));
  assert_int_equal(tracer.runs, 2);
  assert_false(tracer.enabled);
  assert_int_equal(result.n, 2);
  assert_int_equal(result.untimed, 2);
  const cs_kernel_trace *k = result.kernels;
  assert_string_equal(k[0].name, "first");
  assert_string_equal(k[1].name, "second");
  assert_true(k[0].start_us == 0);
  assert_true(fabs(k[0].end_us - 1.001) < 1e-9);
  assert_true(fabs(k[1].start_us - 0.499) < 1e-9);
  assert_true(fabs(k[1].end_us - 2.999) < 1e-9);
  assert_int_equal(k[1].stream, 13);
  assert_int_equal(k[1].grid[0] * 100 + k[1].grid[1] * 10 + k[1].grid[2], 432);
  assert_int_equal(k[1].block[0], 128);
  assert_int_equal(k[1].registers, 168);
  assert_int_equal(k[1].static_shared, 1024);
  assert_int_equal(k[1].dynamic_shared, 49152);
  assert_int_equal(k[1].local_bytes, 16);
  free(result.kernels);
}

/* Parts of a device that is split are contexts of their own, which number their streams alike. */
static void contexts_of_parts_are_kept_apart(void **state) {
  (void)state;
  memset(&tracer, 0, sizeof(tracer));
  add_record("whole", 1000, 2000, CONTEXT);
  add_record("part", 1500, 2500, CONTEXT + 1);
  add_record("other part", 1600, 2600, CONTEXT + 2);
  cs_activity_request request = {.work = traced_work, .any_context = true};
  cs_activity_result result;
  ok(cs_cupti_trace(&fake_tracer, &request, &result));
  assert_int_equal(result.n, 3);
  assert_int_equal(result.kernels[0].stream, 13);
  assert_int_equal(result.kernels[0].launch, -1);
  assert_true(result.kernels[1].stream > 0 && result.kernels[2].stream > 0);
  assert_int_not_equal(result.kernels[1].stream, 13);
  assert_int_not_equal(result.kernels[1].stream, result.kernels[2].stream);
  free(result.kernels);
}

static void a_tracer_that_fails_is_turned_off(void **state) {
  (void)state;
  memset(&tracer, 0, sizeof(tracer));
  tracer.flush_result = CUPTI_ERROR_HARDWARE_BUSY;
  cs_activity_request request = {.work = traced_work};
  cs_activity_result result;
  fails(cs_cupti_trace(&fake_tracer, &request, &result), CS_CODE_NOT_FOUND,
        "trace: unavailable (CUPTI_ERROR_HARDWARE_BUSY)");
  assert_null(result.kernels);
  assert_false(tracer.enabled);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_library_is_said_with_what_to_do),
      cmocka_unit_test(refusals_say_what_to_do),
      cmocka_unit_test(every_counter_has_a_metric_on_known_chips),
      cmocka_unit_test(counts_each_kernel_or_the_whole_run),
      cmocka_unit_test(metrics_are_chosen_once),
      cmocka_unit_test(whatever_fails_nothing_stays_open),
      cmocka_unit_test(work_that_fails_and_ranges_that_do_not_fit_are_errors),
      cmocka_unit_test(traces_are_ordered_and_begin_at_zero),
      cmocka_unit_test(contexts_of_parts_are_kept_apart),
      cmocka_unit_test(a_tracer_that_fails_is_turned_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
