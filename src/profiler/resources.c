#include "profiler/resources.h"

#include <math.h>
#include <string.h>

#define REGISTERS_PER_THREAD_STEP 8
#define REGISTERS_PER_WARP_STEP 256
#define SHARED_STEP 128
#define USUAL_WARP 32

int cs_registers_given(int registers) {
  return (registers + 7) / 8 * 8;
}

const char *cs_resource_name(cs_resource resource) {
  static const char *const names[CS_RESOURCE_COUNT] = {"registers", "shared", "threads", "blocks"};
  return resource >= 0 && resource < CS_RESOURCE_COUNT ? names[resource] : "";
}

/* ---- Demands ---- */

static int64_t product(const int extents[3]) {
  int64_t n = 1;
  for (int i = 0; i < 3; i++) n *= extents[i] > 0 ? extents[i] : 1;
  return n;
}

static double share(double use, int total) {
  return total > 0 ? use / total : 0;
}

cs_demand cs_kernel_demand(const cs_unit_limits *unit, int units, const cs_kernel_info *kernel) {
  cs_demand out = {.known = true};
  int64_t blocks = product(kernel->grid), threads = product(kernel->block);
  int64_t warp = unit->warp_size > 0 ? unit->warp_size : USUAL_WARP;
  int64_t warps = (threads + warp - 1) / warp;
  int64_t per_unit = kernel->blocks_per_unit > 0 ? kernel->blocks_per_unit : 1;
  int64_t resident = cs_min_i64(per_unit, blocks);
  int64_t registers =
      warps * cs_round_up(warp * cs_round_up(kernel->registers, REGISTERS_PER_THREAD_STEP),
                          REGISTERS_PER_WARP_STEP);
  int64_t shared =
      cs_round_up((int64_t)kernel->static_shared + kernel->dynamic_shared, SHARED_STEP) +
      unit->reserved_shared_bytes;
  double n = (double)resident;
  out.share[CS_RESOURCE_REGISTERS] = share(n * (double)registers, unit->registers);
  out.share[CS_RESOURCE_SHARED] = share(n * (double)shared, unit->shared_bytes);
  out.share[CS_RESOURCE_THREADS] = share(n * (double)(warps * warp), unit->threads);
  out.share[CS_RESOURCE_BLOCKS] = share(n, unit->blocks);
  out.resident = (int)resident;
  out.units = (int)cs_min_i64(units, (blocks + per_unit - 1) / per_unit);
  out.waves = units > 0 ? (double)blocks / ((double)per_unit * units) : 0;
  return out;
}

cs_demand cs_kernels_demand(const cs_device_info *device, const cs_kernel_profile *kernels, int n) {
  cs_demand out = {0};
  if (!kernels || n < 1 || device->unit.registers <= 0) return out;
  for (int k = 0; k < n; k++) {
    cs_demand one = cs_kernel_demand(&device->unit, device->units, &kernels[k].info);
    for (int r = 0; r < CS_RESOURCE_COUNT; r++) out.share[r] = fmax(out.share[r], one.share[r]);
    if (one.resident > out.resident) out.resident = one.resident;
    if (one.units > out.units) out.units = one.units;
    out.waves = fmax(out.waves, one.waves);
  }
  out.known = true;
  return out;
}

/* ---- What kept them apart ---- */

const char *cs_demands_limiter(const cs_device_info *device, const cs_demand *const *demands,
                               int n) {
  double sums[CS_RESOURCE_COUNT] = {0};
  int64_t units = 0;
  for (int i = 0; i < n; i++) {
    if (!demands[i]->known) return "";
    units += demands[i]->units;
    for (int r = 0; r < CS_RESOURCE_COUNT; r++) sums[r] += demands[i]->share[r];
  }
  if (units <= device->units) return "none";
  cs_resource first = CS_RESOURCE_REGISTERS;
  for (int r = 1; r < CS_RESOURCE_COUNT; r++) {
    if (sums[r] > sums[first]) first = (cs_resource)r;
  }
  return sums[first] > 1 ? cs_resource_name(first) : "none";
}

const char *cs_counters_limiter(const cs_counters *counters) {
  const struct {
    cs_counter counter;
    cs_resource resource;
  } stalls[] = {{CS_COUNTER_stall_registers, CS_RESOURCE_REGISTERS},
                {CS_COUNTER_stall_shared, CS_RESOURCE_SHARED},
                {CS_COUNTER_stall_blocks, CS_RESOURCE_BLOCKS}};
  const char *name = "";
  double most = -1;
  for (int i = 0; i < 3; i++) {
    double stalled = counters->value[stalls[i].counter];
    if (!(stalled > most)) continue;
    most = stalled;
    name = stalled > 0 ? cs_resource_name(stalls[i].resource) : "none";
  }
  return name;
}

/* ---- Overlap ---- */

/* Does another stream's kernel (or, of unknown streams, another kernel) run from `from` to `to`? */
static bool others_run(const cs_kernel_trace *trace, int n, int first, double from, double to) {
  for (int k = 0; k < n; k++) {
    if (k == first || trace[k].start_us > from || trace[k].end_us < to) continue;
    if (trace[first].stream < 0 || trace[k].stream != trace[first].stream) return true;
  }
  return false;
}

/* The earliest start or end after `at`, INFINITY behind the last. */
static double next_change(const cs_kernel_trace *trace, int n, double at) {
  double next = INFINITY;
  for (int k = 0; k < n; k++) {
    if (trace[k].start_us > at) next = fmin(next, trace[k].start_us);
    if (trace[k].end_us > at) next = fmin(next, trace[k].end_us);
  }
  return next;
}

double cs_trace_overlap(const cs_kernel_trace *trace, int n) {
  double begin = INFINITY, end = -INFINITY, together = 0;
  for (int k = 0; k < n; k++) {
    begin = fmin(begin, trace[k].start_us);
    end = fmax(end, trace[k].end_us);
  }
  if (n < 1 || !(end > begin)) return NAN;
  double at = begin;
  while (at < end) {
    double next = next_change(trace, n, at);
    for (int k = 0; k < n; k++) {
      if (trace[k].start_us > at || trace[k].end_us < next) continue;
      if (others_run(trace, n, k, at, next)) together += next - at;
      break;
    }
    at = next;
  }
  return together / (end - begin);
}
