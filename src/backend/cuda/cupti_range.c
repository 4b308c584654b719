#include "backend/cuda/cupti_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The metrics need 2 or 3; more than this and something is wrong. */
#define MAX_PASSES 32

typedef struct session {
  const cs_cupti *cupti;
  const cs_range_request *request;
  cs_metric_set *metrics; /* the request's */
  CUpti_RangeProfiler_Object *ranges;
  uint8_t *image; /* counter data */
  size_t image_size;
  bool initialized, started, pushed;
} session;

static cs_status check(CUptiResult result, const char *doing) {
  return cs_cupti_status(result, "counters", doing);
}

static cs_status chip_name(const session *s, char *out, size_t size) {
  CS_CUPTI_PARAMS(Device_GetChipName, p);
  p.deviceIndex = (size_t)s->request->device;
  CS_RETURN_IF_ERROR(check(s->cupti->device_get_chip_name(&p), "asking for the chip's name"));
  snprintf(out, size, "%s", p.pChipName ? p.pChipName : "");
  return CS_OK;
}

/* Which counters this user may read on this device now; free() releases. */
static cs_status availability(const session *s, uint8_t **out) {
  CS_CUPTI_PARAMS(Profiler_GetCounterAvailability, p);
  p.ctx = s->request->context;
  CS_RETURN_IF_ERROR(
      check(s->cupti->get_counter_availability(&p), "asking for the available counters"));
  uint8_t *image = cs_calloc(p.counterAvailabilityImageSize, 1);
  if (!image) return cs_no_memory("a list of counters", p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image;
  cs_status st = check(s->cupti->get_counter_availability(&p), "listing the available counters");
  if (st != CS_OK) {
    free(image);
    return st;
  }
  *out = image;
  return CS_OK;
}

static cs_status choose(session *s) {
  char chip[64];
  uint8_t *available = NULL;
  if (s->metrics->host) return CS_OK;
  CS_RETURN_IF_ERROR(chip_name(s, chip, sizeof(chip)));
  CS_RETURN_IF_ERROR(availability(s, &available));
  cs_status st = cs_metric_set_create(s->cupti, chip, available, s->request->logger, s->metrics);
  free(available);
  if (st == CS_OK && s->metrics->passes > MAX_PASSES) {
    st = cs_error(CS_CODE_DEVICE, "counters: %d passes for %d metrics of %s; at most %d wanted",
                  s->metrics->passes, s->metrics->n, chip, MAX_PASSES);
    cs_metric_set_clear(s->metrics);
  }
  return st;
}

static cs_status enable(session *s) {
  CS_CUPTI_PARAMS(RangeProfiler_Enable, p);
  p.ctx = s->request->context;
  CS_RETURN_IF_ERROR(check(s->cupti->range_enable(&p), "enabling the range profiler"));
  s->ranges = p.pRangeProfilerObject;
  return CS_OK;
}

static cs_status make_image(session *s) {
  size_t n = (size_t)s->request->max_ranges;
  CS_CUPTI_PARAMS(RangeProfiler_GetCounterDataSize, size);
  size.pRangeProfilerObject = s->ranges;
  size.pMetricNames = s->metrics->names;
  size.numMetrics = (size_t)s->metrics->n;
  size.maxNumOfRanges = n;
  size.maxNumRangeTreeNodes = (uint32_t)n;
  CS_RETURN_IF_ERROR(
      check(s->cupti->range_get_counter_data_size(&size), "sizing the counter data"));
  s->image_size = size.counterDataSize;
  s->image = cs_calloc(s->image_size, 1);
  if (!s->image) return cs_no_memory("counter data", s->image_size);
  CS_CUPTI_PARAMS(RangeProfiler_CounterDataImage_Initialize, p);
  p.pRangeProfilerObject = s->ranges;
  p.counterDataSize = s->image_size;
  p.pCounterData = s->image;
  return check(s->cupti->range_initialize_counter_data(&p), "preparing the counter data");
}

static cs_status configure(session *s) {
  CS_CUPTI_PARAMS(RangeProfiler_SetConfig, p);
  p.pRangeProfilerObject = s->ranges;
  p.configSize = s->metrics->config_size;
  p.pConfig = s->metrics->config;
  p.counterDataImageSize = s->image_size;
  p.pCounterDataImage = s->image;
  p.range = s->request->per_kernel ? CUPTI_AutoRange : CUPTI_UserRange;
  /* Replaying every kernel by itself takes 40 ms a kernel on an H100, saving its memory and all. */
  p.replayMode = CUPTI_UserReplay;
  p.maxRangesPerPass = (size_t)s->request->max_ranges;
  p.numNestingLevels = 1;
  p.minNestingLevel = 1;
  p.passIndex = 0;
  p.targetNestingLevel = 1;
  return check(s->cupti->range_set_config(&p), "configuring the range profiler");
}

static cs_status pop(session *s) {
  s->pushed = false;
  CS_CUPTI_PARAMS(RangeProfiler_PopRange, p);
  p.pRangeProfilerObject = s->ranges;
  return check(s->cupti->range_pop(&p), "ending a range");
}

static cs_status stop(session *s, bool *complete) {
  s->started = false;
  CS_CUPTI_PARAMS(RangeProfiler_Stop, p);
  p.pRangeProfilerObject = s->ranges;
  CS_RETURN_IF_ERROR(check(s->cupti->range_stop(&p), "stopping the range profiler"));
  *complete = p.isAllPassSubmitted != 0;
  return CS_OK;
}

static cs_status run_pass(session *s, bool *complete) {
  CS_CUPTI_PARAMS(RangeProfiler_Start, start);
  start.pRangeProfilerObject = s->ranges;
  CS_RETURN_IF_ERROR(check(s->cupti->range_start(&start), "starting the range profiler"));
  s->started = true;
  if (!s->request->per_kernel) {
    CS_CUPTI_PARAMS(RangeProfiler_PushRange, push);
    push.pRangeProfilerObject = s->ranges;
    push.pRangeName = "run";
    CS_RETURN_IF_ERROR(check(s->cupti->range_push(&push), "beginning a range"));
    s->pushed = true;
  }
  CS_RETURN_IF_ERROR(s->request->work(s->request->user));
  if (s->pushed) CS_RETURN_IF_ERROR(pop(s));
  return stop(s, complete);
}

static cs_status run_passes(session *s) {
  bool complete = false;
  for (int pass = 0; pass < MAX_PASSES && !complete; pass++) {
    CS_RETURN_IF_ERROR(run_pass(s, &complete));
  }
  if (complete) return CS_OK;
  return cs_error(CS_CODE_DEVICE, "counters: not complete after %d runs; %d wanted", MAX_PASSES,
                  s->metrics->passes);
}

static cs_status read_ranges(session *s, cs_counters *out, int *count) {
  CS_CUPTI_PARAMS(RangeProfiler_DecodeData, decode);
  decode.pRangeProfilerObject = s->ranges;
  CS_RETURN_IF_ERROR(check(s->cupti->range_decode(&decode), "decoding the counter data"));
  if (decode.numOfRangeDropped > 0) {
    return cs_error(CS_CODE_DEVICE, "counters: %zu ranges more than the %d there is room for",
                    decode.numOfRangeDropped, s->request->max_ranges);
  }
  CS_CUPTI_PARAMS(RangeProfiler_GetCounterDataInfo, info);
  info.pCounterDataImage = s->image;
  info.counterDataImageSize = s->image_size;
  CS_RETURN_IF_ERROR(check(s->cupti->range_get_counter_data_info(&info), "counting the ranges"));
  if (info.numTotalRanges > (size_t)s->request->max_ranges) {
    return cs_error(CS_CODE_DEVICE, "counters: %zu ranges where %d were wanted at most",
                    info.numTotalRanges, s->request->max_ranges);
  }
  for (size_t i = 0; i < info.numTotalRanges; i++) {
    CS_RETURN_IF_ERROR(cs_metric_set_evaluate(s->metrics, s->image, s->image_size, i, &out[i]));
  }
  *count = (int)info.numTotalRanges;
  return CS_OK;
}

/* After an error further ones tell nothing new: whatever was begun is ended. */
static void end(session *s) {
  bool complete;
  if (s->pushed) cs_status_free(pop(s));
  if (s->started) cs_status_free(stop(s, &complete));
  if (s->ranges) {
    CS_CUPTI_PARAMS(RangeProfiler_Disable, p);
    p.pRangeProfilerObject = s->ranges;
    (void)s->cupti->range_disable(&p);
  }
  if (s->initialized) {
    CS_CUPTI_PARAMS(Profiler_DeInitialize, p);
    (void)s->cupti->profiler_deinitialize(&p);
  }
  free(s->image);
}

cs_status cs_cupti_count(const cs_cupti *cupti, const cs_range_request *request, cs_counters *out,
                         int *count) {
  *count = 0;
  cs_status st = CS_OK;
  session s = {.cupti = cupti, .request = request, .metrics = request->metrics};
  double begun = cs_now_seconds(), chosen = begun, enabled = begun, run = begun, read = begun;
  CS_CUPTI_PARAMS(Profiler_Initialize, p);
  CS_TRY(st, check(cupti->profiler_initialize(&p), "starting the profiler"), done);
  s.initialized = true;
  CS_TRY(st, choose(&s), done);
  chosen = cs_now_seconds();
  CS_TRY(st, enable(&s), done);
  enabled = cs_now_seconds();
  CS_TRY(st, make_image(&s), done);
  CS_TRY(st, configure(&s), done);
  CS_TRY(st, run_passes(&s), done);
  run = cs_now_seconds();
  CS_TRY(st, read_ranges(&s, out, count), done);
  read = cs_now_seconds();
done:
  end(&s);
  cs_log(request->logger, CS_LOG_DEBUG,
         "counters of %d ranges: choosing %.0f ms, enabling %.0f ms, running %.0f ms, reading %.0f "
         "ms, "
         "ending %.0f ms",
         *count, 1e3 * (chosen - begun), 1e3 * (enabled - chosen), 1e3 * (run - enabled),
         1e3 * (read - run), 1e3 * (cs_now_seconds() - read));
  return st;
}
