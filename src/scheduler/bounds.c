/* What no plan can beat, and what one may hope for. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/internal.h"

static double fastest_us(const cs_task_choices *choices) {
  double best = choices->choices[0].cold_us;
  for (int i = 1; i < choices->n; i++)
    if (choices->choices[i].cold_us < best) best = choices->choices[i].cold_us;
  return best;
}

static cs_status critical_path(const cs_program *program, const cs_task_choices *choices,
                               double *out) {
  cs_status st = CS_OK;
  size_t n = (size_t)program->n_tasks;
  cs_dag dag = {0};
  double *time_us = cs_calloc(n, sizeof *time_us), *remaining = cs_calloc(n, sizeof *remaining);
  if (!time_us || !remaining)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the critical path of %zu tasks", n);
  for (size_t t = 0; t < n; t++) {
    if (choices[t].n < 1)
      CS_FAIL(st, done, CS_CODE_NOT_FOUND, "task %s has no admissible measured candidate",
              program->tasks[t].name);
    time_us[t] = fastest_us(&choices[t]);
  }
  CS_TRY(st, cs_dag_of_program(program, &dag), done);
  CS_TRY(st, cs_dag_remaining(&dag, time_us, remaining), done);
  *out = 0;
  for (size_t t = 0; t < n; t++)
    if (remaining[t] > *out) *out = remaining[t];
done:
  cs_dag_free(&dag);
  free(time_us);
  free(remaining);
  return st;
}

cs_status cs_bounds_of(const cs_program *program, const cs_task_choices *choices, double flops,
                       double bandwidth, cs_bounds *out) {
  out->roofline_us = out->area_us = NAN;
  if (flops == 0 && bandwidth == 0) return critical_path(program, choices, &out->critical_path_us);
  if (!(flops > 0) || !(bandwidth > 0))
    return cs_error(CS_CODE_BAD_INPUT,
                    "found rates of %g FLOP/s and %g bytes/s for the roofline, wanted more than 0",
                    flops, bandwidth);
  double total_flops = 0, total_bytes = 0;
  cs_program_totals(program, &total_flops, &total_bytes);
  double compute_us = total_flops / flops * 1e6, memory_us = total_bytes / bandwidth * 1e6;
  out->roofline_us = compute_us > memory_us ? compute_us : memory_us;
  return critical_path(program, choices, &out->critical_path_us);
}
