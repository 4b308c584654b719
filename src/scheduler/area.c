/* What tasks take of the machine: resource × time, over all of the machine. */
#include <math.h>
#include <stdlib.h>

#include "profiler/resources.h"
#include "scheduler/internal.h"

typedef struct area {
  double us[CS_RESOURCE_COUNT]; /* of the whole machine */
} area;

static const cs_choice *fastest(const cs_task_choices *choices) {
  const cs_choice *best = &choices->choices[0];
  for (int i = 1; i < choices->n; i++)
    if (choices->choices[i].cold_us < best->cold_us) best = &choices->choices[i];
  return best;
}

static double counted_us(const cs_kernel_profile *kernel) {
  return kernel->counted ? kernel->counters.value[CS_COUNTER_duration_us] : NAN;
}

/* The part of a candidate's time that kernel k takes: by counted durations where all are counted,
 * else by whole waves. */
static double part_of(const cs_device_info *device, const cs_choice *choice, int k) {
  double by_count = 0, by_waves = 0, own = 0;
  for (int i = 0; i < choice->n_kernels; i++) {
    cs_demand demand = cs_kernel_demand(&device->unit, device->units, &choice->kernels[i].info);
    double waves = fmax(1, ceil(demand.waves));
    by_count += counted_us(&choice->kernels[i]);
    by_waves += waves;
    if (i == k) own = waves;
  }
  return by_count > 0 ? counted_us(&choice->kernels[k]) / by_count : own / by_waves;
}

/* A block runs for the kernel's time over its waves, and holds its share of an SM for so long. */
static void add_kernel(const cs_device_info *device, const cs_kernel_info *kernel, double us,
                       area *sum) {
  cs_demand demand = cs_kernel_demand(&device->unit, device->units, kernel);
  double blocks = 1;
  for (int i = 0; i < 3; i++) blocks *= kernel->grid[i] > 0 ? kernel->grid[i] : 1;
  double block_us = us / fmax(1, ceil(demand.waves));
  for (int r = 0; r < CS_RESOURCE_COUNT; r++)
    sum->us[r] += demand.share[r] / demand.resident * blocks * block_us / device->units;
}

/* False: what the candidate takes is not known. */
static bool add_choice(const cs_device_info *device, const cs_choice *choice, area *sum) {
  int threads = choice->candidate->threads;
  if (threads > 0) { /* of a CPU: cores are the resource */
    double share = fmin(1, (double)threads / device->units);
    for (int r = 0; r < CS_RESOURCE_COUNT; r++) sum->us[r] += share * choice->cold_us;
    return true;
  }
  if (choice->n_kernels < 1 || device->unit.registers <= 0) return false;
  for (int k = 0; k < choice->n_kernels; k++)
    add_kernel(device, &choice->kernels[k].info, choice->cold_us * part_of(device, choice, k), sum);
  return true;
}

double cs_area_us(const cs_program *program, const cs_task_choices *choices,
                  const cs_device_info *device) {
  area sum = {{0}};
  double most = 0;
  if (!device || device->units < 1) return NAN;
  for (int t = 0; t < program->n_tasks; t++)
    if (choices[t].n < 1 || !add_choice(device, fastest(&choices[t]), &sum)) return NAN;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) most = fmax(most, sum.us[r]);
  return most;
}
