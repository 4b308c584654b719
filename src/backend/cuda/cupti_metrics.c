#include "backend/cuda/cupti_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STALLED "tpc__warp_launch_cycles_stalled_shader_cs_reason_"

/* Averages are over the units of the chip that the name begins with, "active" over the time in
 * which such a unit works, "elapsed" over the whole time. */
const cs_cupti_metric cs_cupti_metrics[CS_COUNTER_COUNT] = {
    [CS_COUNTER_duration_us] = {"gpu__time_duration.sum", 1e-3},
    [CS_COUNTER_issue_pct] = {"sm__issue_active.avg.pct_of_peak_sustained_active", 1},
    [CS_COUNTER_alu_pct] = {"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 1},
    [CS_COUNTER_fma_pct] = {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", 1},
    [CS_COUNTER_tensor_pct] = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 1},
    [CS_COUNTER_occupancy_pct] = {"sm__warps_active.avg.pct_of_peak_sustained_active", 1},
    [CS_COUNTER_sm_active_pct] = {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 1},
    [CS_COUNTER_dram_pct] = {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 1},
    [CS_COUNTER_l2_pct] = {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed", 1},
    [CS_COUNTER_memory_stall_ratio] =
        {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 1},
    [CS_COUNTER_stall_registers] = {STALLED "register_allocation.avg", 1},
    [CS_COUNTER_stall_shared] = {STALLED "shmem_allocation.avg", 1},
    [CS_COUNTER_stall_blocks] = {STALLED "cta_allocation.avg", 1},
};

static const char *const counter_names[CS_COUNTER_COUNT] = {
#define NAME(name, unit, meaning) [CS_COUNTER_##name] = #name,
    CS_COUNTERS(NAME)
#undef NAME
};

static cs_status create_host(cs_metric_set *set, const char *chip, const uint8_t *availability) {
  CS_CUPTI_PARAMS(Profiler_Host_Initialize, p);
  p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  p.pChipName = chip;
  p.pCounterAvailabilityImage = availability;
  CS_RETURN_IF_ERROR(
      cs_cupti_status(set->cupti->host_initialize(&p), "counters", "looking up the GPU's metrics"));
  set->host = p.pHostObject;
  return CS_OK;
}

/* A metric that the chip lacks is asked for here and not when it is added: that spoils the host
 * object. */
static cs_status choose_metrics(cs_metric_set *set, const char *chip, const cs_logger *logger) {
  for (int i = 0; i < CS_COUNTER_COUNT; i++) {
    CS_CUPTI_PARAMS(Profiler_Host_GetMetricProperties, p);
    p.pHostObject = set->host;
    p.pMetricName = cs_cupti_metrics[i].name;
    CUptiResult result = set->cupti->host_get_metric_properties(&p);
    if (result == CUPTI_ERROR_INVALID_METRIC_NAME) {
      cs_log(logger, CS_LOG_WARNING, "counters: %s stays unknown: %s has no metric %s",
             counter_names[i], chip, cs_cupti_metrics[i].name);
      continue;
    }
    CS_RETURN_IF_ERROR(cs_cupti_status(result, "counters", "asking for a metric's properties"));
    set->names[set->n] = cs_cupti_metrics[i].name;
    set->counters[set->n++] = (cs_counter)i;
  }
  if (set->n == 0) {
    return cs_error(CS_CODE_NOT_FOUND, "counters: unavailable (no metrics): %s has none of the %d",
                    chip, (int)CS_COUNTER_COUNT);
  }
  return CS_OK;
}

/* All metrics at once: those added one by one get a pass each. */
static cs_status add_metrics(cs_metric_set *set) {
  CS_CUPTI_PARAMS(Profiler_Host_ConfigAddMetrics, add);
  add.pHostObject = set->host;
  add.ppMetricNames = set->names;
  add.numMetrics = (size_t)set->n;
  return cs_cupti_status(set->cupti->host_config_add_metrics(&add), "counters", "choosing metrics");
}

static cs_status build_config(cs_metric_set *set) {
  const cs_cupti *cupti = set->cupti;
  CS_CUPTI_PARAMS(Profiler_Host_GetConfigImageSize, size);
  size.pHostObject = set->host;
  CS_RETURN_IF_ERROR(
      cs_cupti_status(cupti->host_get_config_image_size(&size), "counters", "sizing the passes"));
  set->config_size = size.configImageSize;
  set->config = cs_calloc(set->config_size, 1);
  if (!set->config) return cs_no_memory("the configuration of counters", set->config_size);
  CS_CUPTI_PARAMS(Profiler_Host_GetConfigImage, image);
  image.pHostObject = set->host;
  image.configImageSize = set->config_size;
  image.pConfigImage = set->config;
  CS_RETURN_IF_ERROR(
      cs_cupti_status(cupti->host_get_config_image(&image), "counters", "planning the passes"));
  CS_CUPTI_PARAMS(Profiler_Host_GetNumOfPasses, passes);
  passes.configImageSize = set->config_size;
  passes.pConfigImage = set->config;
  CS_RETURN_IF_ERROR(
      cs_cupti_status(cupti->host_get_num_of_passes(&passes), "counters", "counting the passes"));
  set->passes = (int)passes.numOfPasses;
  return CS_OK;
}

cs_status cs_metric_set_create(const cs_cupti *cupti, const char *chip, const uint8_t *availability,
                               const cs_logger *logger, cs_metric_set *out) {
  *out = (cs_metric_set){.cupti = cupti};
  cs_status st = CS_OK;
  CS_TRY(st, create_host(out, chip, availability), done);
  CS_TRY(st, choose_metrics(out, chip, logger), done);
  CS_TRY(st, add_metrics(out), done);
  CS_TRY(st, build_config(out), done);
done:
  if (st != CS_OK) cs_metric_set_clear(out);
  return st;
}

cs_status cs_metric_set_evaluate(const cs_metric_set *set, const uint8_t *image, size_t size,
                                 size_t index, cs_counters *out) {
  double values[CS_COUNTER_COUNT];
  const char *names[CS_COUNTER_COUNT];
  for (int i = 0; i < CS_COUNTER_COUNT; i++) {
    out->value[i] = values[i] = NAN;
    names[i] = set->names[i];
  }
  CS_CUPTI_PARAMS(Profiler_Host_EvaluateToGpuValues, p);
  p.pHostObject = set->host;
  p.pCounterDataImage = image;
  p.counterDataImageSize = size;
  p.rangeIndex = index;
  p.ppMetricNames = names;
  p.numMetrics = (size_t)set->n;
  p.pMetricValues = values;
  CS_RETURN_IF_ERROR(
      cs_cupti_status(set->cupti->host_evaluate(&p), "counters", "evaluating metrics"));
  for (int i = 0; i < set->n; i++) {
    cs_counter counter = set->counters[i];
    if (isfinite(values[i])) out->value[counter] = values[i] * cs_cupti_metrics[counter].scale;
  }
  return CS_OK;
}

void cs_metric_set_clear(cs_metric_set *set) {
  if (set->host) {
    CS_CUPTI_PARAMS(Profiler_Host_Deinitialize, p);
    p.pHostObject = set->host;
    (void)set->cupti->host_deinitialize(&p);
  }
  free(set->config);
  *set = (cs_metric_set){0};
}
