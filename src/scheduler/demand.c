/* What tasks take of the device, and whether memory or arithmetic bounds them. */
#include <math.h>

#include "profiler/resources.h"
#include "scheduler/internal.h"

static const cs_choice *fastest(const cs_policy_input *input, int task) {
  return &input->choices[task].choices[0];
}

/* ---- Roofline ---- */

typedef struct roofline {
  double flops, bytes; /* per microsecond */
} roofline;

static double rate(double amount, double us) {
  return us > 0 ? amount / us : 0;
}

static roofline find_roofline(const cs_policy_input *input) {
  roofline roof = {0};
  const cs_program *program = input->program;
  if (input->device) {
    roof.flops = input->device->peak_flops[program->precision] * 1e-6;
    roof.bytes = input->device->peak_bandwidth * 1e-6;
  }
  if (roof.flops > 0 && roof.bytes > 0) return roof;
  roof = (roofline){0};
  for (int t = 0; t < program->n_tasks; t++) {
    double us = fastest(input, t)->cold_us;
    roof.flops = fmax(roof.flops, rate(cs_op_flops(&program->tasks[t].desc), us));
    roof.bytes = fmax(roof.bytes, rate(cs_op_bytes(&program->tasks[t].desc), us));
  }
  return roof;
}

/* How much of the best rates a task reaches: the larger of the two parts. */
static cs_task_demand by_roofline(const cs_task *task, double us, const roofline *roof) {
  double flops = roof->flops > 0 ? rate(cs_op_flops(&task->desc), us) / roof->flops : 0;
  double bytes = roof->bytes > 0 ? rate(cs_op_bytes(&task->desc), us) / roof->bytes : 0;
  return (cs_task_demand){.share = fmax(flops, bytes), .memory_bound = bytes >= flops};
}

/* ---- Kernels and counters ---- */

static double kernel_share(const cs_device_info *device, const cs_kernel_info *kernel) {
  cs_demand demand = cs_kernel_demand(&device->unit, device->units, kernel);
  double blocks = 1, most = 0;
  for (int i = 0; i < 3; i++) blocks *= kernel->grid[i] > 0 ? kernel->grid[i] : 1;
  for (int r = 0; r < CS_RESOURCE_COUNT; r++) most = fmax(most, demand.share[r]);
  return most / demand.resident * blocks / device->units; /* shares are of the resident blocks */
}

static double kernels_share(const cs_device_info *device, const cs_choice *choice) {
  double most = 0;
  for (int k = 0; k < choice->n_kernels; k++)
    most = fmax(most, kernel_share(device, &choice->kernels[k].info));
  return most;
}

/* Use of DRAM or L2 against use of the busiest pipe while an SM is active, each kernel weighed by
 * its time. False: not counted. */
static bool counted_bound(const cs_choice *choice, bool *memory_bound) {
  double memory = 0, arithmetic = 0;
  for (int k = 0; k < choice->n_kernels; k++) {
    const double *value = choice->kernels[k].counters.value;
    double us = value[CS_COUNTER_duration_us];
    double bytes = fmax(value[CS_COUNTER_dram_pct], value[CS_COUNTER_l2_pct]);
    double pipes = fmax(value[CS_COUNTER_tensor_pct],
                        fmax(value[CS_COUNTER_fma_pct], value[CS_COUNTER_alu_pct]));
    if (!choice->kernels[k].counted || isnan(us) || isnan(bytes) || isnan(pipes)) return false;
    memory += us * bytes;
    arithmetic += us * pipes;
  }
  *memory_bound = memory >= arithmetic;
  return choice->n_kernels > 0;
}

double cs_choice_share(const cs_policy_input *input, const cs_choice *choice, double otherwise) {
  const cs_device_info *device = input->device;
  if (!device || device->units <= 0) return otherwise;
  if (choice->candidate->threads > 0) return (double)choice->candidate->threads / device->units;
  if (choice->n_kernels > 0 && device->unit.registers > 0) return kernels_share(device, choice);
  return otherwise;
}

/* ---- All tasks ---- */

void cs_task_demands(const cs_policy_input *input, cs_task_demand *out) {
  roofline roof = find_roofline(input);
  for (int t = 0; t < input->program->n_tasks; t++) {
    const cs_choice *choice = fastest(input, t);
    bool memory_bound;
    out[t] = by_roofline(&input->program->tasks[t], choice->cold_us, &roof);
    if (counted_bound(choice, &memory_bound)) out[t].memory_bound = memory_bound;
    out[t].share = cs_choice_share(input, choice, out[t].share);
  }
}
