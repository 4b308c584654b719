/* Kernels made ready for the SM model: what a block takes, how long it runs, what it demands. */
#include <limits.h>
#include <math.h>

#include "scheduler/sm_units.h"

/* Of more waves, blocks are grouped: the cost of a simulation does not follow the grid. */
#define MOST_WAVES 4
/* The launch gap is at most this share of a kernel's time alone. */
#define MOST_GAP 0.7

const char *cs_sm_rate_name(cs_sm_rate rate) {
  static const char *const names[CS_SM_RATES] = {"issue", "alu", "fma", "tensor", "l2", "dram"};
  return rate >= 0 && rate < CS_SM_RATES ? names[rate] : "";
}

static int64_t product(const int extents[3]) {
  int64_t n = 1;
  for (int i = 0; i < 3; i++) n *= extents[i] > 0 ? extents[i] : 1;
  return n;
}

/* ---- What a block takes ---- */

/* As cs_kernel_demand rounds; of one block. */
static void take_of(const cs_device_info *device, const cs_kernel_info *info, int *take) {
  cs_kernel_info one = *info;
  one.blocks_per_unit = 1;
  cs_demand demand = cs_kernel_demand(&device->unit, device->units, &one);
  int total[CS_RESOURCE_COUNT];
  cs_sm_unit_totals(&device->unit, total);
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    take[r] = (int)lround(fmin(demand.share[r] * total[r], INT_MAX));
  }
}

/* Blocks that an SM holds of this kernel alone; 0: not one fits. */
static int resident(const cs_device_info *device, const cs_kernel_info *info, const int *take) {
  int total[CS_RESOURCE_COUNT], most = device->unit.blocks;
  cs_sm_unit_totals(&device->unit, total);
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) {
    if (take[r] > 0 && total[r] / take[r] < most) most = total[r] / take[r];
  }
  return info->blocks_per_unit > 0 && info->blocks_per_unit < most ? info->blocks_per_unit : most;
}

/* ---- Waves ---- */

/* Blocks in a full wave: whole clusters. */
static int64_t wave_of(const cs_device_info *device, int per_unit, int cluster) {
  int64_t most = (int64_t)per_unit * device->units;
  return most / cluster * cluster;
}

static int64_t waves_of(int64_t blocks, int64_t wave) {
  return (blocks + wave - 1) / wave;
}

/* ---- Demands ---- */

/* Counted work of the whole kernel in SM-microseconds (L2, DRAM: device-microseconds), over what
 * its blocks' times add up to. A kernel alone never exceeds a capacity: that is its own time. */
static void demands_of(const cs_sm_model *model, const cs_counters *counters, int64_t at_once,
                       int on_unit, cs_sm_kernel *out) {
  static const cs_counter counter_of[CS_SM_RATES] = {
      [CS_SM_ISSUE] = CS_COUNTER_issue_pct, [CS_SM_ALU] = CS_COUNTER_alu_pct,
      [CS_SM_FMA] = CS_COUNTER_fma_pct,     [CS_SM_TENSOR] = CS_COUNTER_tensor_pct,
      [CS_SM_L2] = CS_COUNTER_l2_pct,       [CS_SM_DRAM] = CS_COUNTER_dram_pct};
  const cs_sm_constants *constants = cs_sm_model_constants(model);
  double duration_us = counters->value[CS_COUNTER_duration_us];
  double active = counters->value[CS_COUNTER_sm_active_pct] / 100;
  double busy_us = (double)out->blocks * out->block_us;
  for (int r = 0; r < CS_SM_RATES; r++) {
    bool on_sm = r < CS_SM_UNIT_RATES;
    double share = counters->value[counter_of[r]] / 100;
    double work_us = share * duration_us * (on_sm ? active * cs_sm_model_device(model)->units : 1);
    double capacity = on_sm           ? constants->pipe_capacity
                      : r == CS_SM_L2 ? constants->l2_capacity
                                      : constants->dram_capacity;
    double most = capacity / (double)(on_sm ? on_unit : at_once);
    out->demand[r] = work_us > 0 ? fmin(work_us / busy_us, most) : 0;
  }
}

cs_status cs_sm_kernel_prepare(const cs_sm_model *model, const cs_kernel_info *info,
                               const cs_counters *counters, double solo_us, cs_sm_kernel *out) {
  const cs_device_info *device = cs_sm_model_device(model);
  *out = (cs_sm_kernel){.blocks = product(info->grid), .cluster = (int)product(info->cluster)};
  take_of(device, info, out->take);
  int per_unit = resident(device, info, out->take);
  int64_t wave = wave_of(device, per_unit, out->cluster);
  if (wave < 1) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "kernel %s: a cluster of %d blocks with %d registers, %d bytes of shared "
                    "memory and %d threads each; wanted: one that fits the %d units of %s",
                    info->name, out->cluster, out->take[CS_RESOURCE_REGISTERS],
                    out->take[CS_RESOURCE_SHARED], out->take[CS_RESOURCE_THREADS], device->units,
                    device->name);
  }
  if (!(solo_us > 0) || !isfinite(solo_us)) {
    return cs_error(CS_CODE_BAD_INPUT, "kernel %s: a time alone of %g us; wanted: more than 0",
                    info->name, solo_us);
  }
  int64_t group = waves_of(waves_of(out->blocks, wave), MOST_WAVES);
  out->blocks = waves_of(out->blocks, group);
  out->gap_us = fmin(cs_sm_model_constants(model)->gap_us, MOST_GAP * solo_us);
  out->block_us = (solo_us - out->gap_us) / (double)waves_of(out->blocks, wave);
  int64_t on_unit = cs_min_i64(per_unit, waves_of(out->blocks, device->units));
  if (counters) demands_of(model, counters, cs_min_i64(out->blocks, wave), (int)on_unit, out);
  return CS_OK;
}

/* ---- One kernel for several operations ---- */

/* Blocks in a full wave of a kernel made ready. */
static int64_t full_wave(const cs_device_info *device, const cs_sm_kernel *kernel) {
  cs_kernel_info unknown = {0};
  int per_unit = resident(device, &unknown, kernel->take);
  return cs_max_i64(wave_of(device, per_unit, kernel->cluster), 1);
}

void cs_sm_kernel_merge(const cs_sm_model *model, const cs_sm_kernel *const *kernels, int n,
                        cs_sm_kernel *out) {
  const cs_device_info *device = cs_sm_model_device(model);
  double busy_us = 0, longest_us = 0, work_us[CS_SM_RATES] = {0};
  *out = (cs_sm_kernel){.cluster = 1};
  for (int i = 0; i < n; i++) {
    const cs_sm_kernel *one = kernels[i];
    double own_us = (double)one->blocks * one->block_us;
    double alone_us = (double)waves_of(one->blocks, full_wave(device, one)) * one->block_us;
    out->blocks += one->blocks;
    out->gap_us = fmax(out->gap_us, one->gap_us);
    if (one->cluster > out->cluster) out->cluster = one->cluster;
    for (int r = 0; r < CS_RESOURCE_COUNT; r++)
      if (one->take[r] > out->take[r]) out->take[r] = one->take[r];
    for (int r = 0; r < CS_SM_RATES; r++) work_us[r] += one->demand[r] * own_us;
    busy_us += own_us;
    longest_us = fmax(longest_us, alone_us);
  }
  int64_t wave = full_wave(device, out);
  int64_t group = waves_of(waves_of(out->blocks, wave), MOST_WAVES);
  out->blocks = waves_of(out->blocks, group);
  double waves = (double)waves_of(out->blocks, wave);
  out->block_us = fmax(busy_us / (double)out->blocks, longest_us / waves);
  double held_us = (double)out->blocks * out->block_us;
  for (int r = 0; r < CS_SM_RATES; r++) out->demand[r] = held_us > 0 ? work_us[r] / held_us : 0;
}

/* ---- The kernels of a candidate ---- */

static double counted_us(const cs_kernel_profile *kernel) {
  return kernel->counted ? kernel->counters.value[CS_COUNTER_duration_us] : NAN;
}

/* What the time alone is split by: all by their durations, or all by their waves. */
static double weight_of(const cs_device_info *device, const cs_kernel_profile *kernels, int n,
                        int k) {
  bool counted = true;
  for (int i = 0; i < n; i++) counted = counted && counted_us(&kernels[i]) > 0;
  if (counted) return counted_us(&kernels[k]);
  return fmax(1, ceil(cs_kernel_demand(&device->unit, device->units, &kernels[k].info).waves));
}

double cs_sm_kernel_share(const cs_device_info *device, const cs_kernel_profile *kernels, int n,
                          int k) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += weight_of(device, kernels, n, i);
  return weight_of(device, kernels, n, k) / sum;
}

cs_status cs_sm_kernel_list_prepare(const cs_sm_model *model, const char *candidate,
                                    const cs_kernel_profile *kernels, int n, double solo_us,
                                    cs_sm_kernel *out) {
  const cs_device_info *device = cs_sm_model_device(model);
  double sum = 0;
  if (n < 1) {
    return cs_error(CS_CODE_NOT_FOUND, "candidate %s: no kernels in the profile", candidate);
  }
  for (int k = 0; k < n; k++) sum += weight_of(device, kernels, n, k);
  for (int k = 0; k < n; k++) {
    const cs_counters *counters = kernels[k].counted ? &kernels[k].counters : NULL;
    double us = solo_us * weight_of(device, kernels, n, k) / sum;
    CS_RETURN_IF_ERROR(
        cs_annotate(cs_sm_kernel_prepare(model, &kernels[k].info, counters, us, &out[k]),
                    "candidate %s: ", candidate));
  }
  return CS_OK;
}

cs_status cs_sm_kernels_prepare(const cs_sm_model *model, const cs_record *record, double solo_us,
                                cs_sm_kernel *out) {
  return cs_sm_kernel_list_prepare(model, record->candidate.id, record->kernels, record->n_kernels,
                                   solo_us, out);
}
