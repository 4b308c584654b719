/* The candidates of a task that are worth trying. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/coselect.h"

/* Where some candidates' kernels are known, one whose are not cannot be weighed against them: only
 * the fastest stays. */
static cs_pareto_point point_of(const cs_policy_input *input, const cs_task_choices *choices, int i,
                                bool some_known) {
  const cs_choice *choice = &choices->choices[i];
  int n_kernels = input->device && choice->kernels ? choice->n_kernels : 0;
  cs_pareto_point point = cs_pareto_point_of(input->device, choice->candidate, choice->cold_us,
                                             choice->kernels, n_kernels);
  if (n_kernels > 0 || !some_known) return point;
  for (int c = CS_COST_REGISTERS; c < CS_COST_COUNT; c++) point.cost[c] = INFINITY;
  if (i > 0) point.cost[CS_COST_TIME] = INFINITY;
  return point;
}

static void add_to_set(cs_coselect_task *set, int choice) {
  for (int i = 0; i < set->n; i++) {
    if (set->choices[i] == choice) return;
  }
  if (set->n < CS_COSELECT_CHOICES) set->choices[set->n++] = choice;
}

static bool merges(const cs_choice *choice) {
  return choice->candidate->merges && choice->candidate->workspace_bytes == 0;
}

/* How many tasks read the same first input and can run with this id, and their times alone. */
static int siblings_with(const cs_policy_input *input, int task, const char *id, double *us) {
  const cs_program *program = input->program;
  int n = 0;
  *us = 0;
  for (int t = 0; t < program->n_tasks; t++) {
    if (program->tasks[t].desc.n_inputs < 1 ||
        program->tasks[t].inputs[0] != program->tasks[task].inputs[0]) {
      continue;
    }
    int choice = cs_choice_find(&input->choices[t], id);
    if (choice < 0 || !merges(&input->choices[t].choices[choice])) continue;
    *us += input->choices[t].choices[choice].cold_us;
    n++;
  }
  return n;
}

/* The fastest that merge, and the one that most siblings have, which are fastest together with it.
 */
static void add_merging(const cs_policy_input *input, int task, cs_coselect_task *out) {
  const cs_task_choices *choices = &input->choices[task];
  int found = 0, shared = -1, most = 1;
  double least_us = 0;
  for (int i = 0; i < choices->n; i++) {
    double us;
    if (!merges(&choices->choices[i])) continue;
    if (found++ < CS_COSELECT_MERGING) add_to_set(out, i);
    int n = siblings_with(input, task, choices->choices[i].candidate->id, &us);
    if (n < 2 || n < most || (n == most && shared >= 0 && us >= least_us)) continue;
    shared = i;
    most = n;
    least_us = us;
  }
  if (shared >= 0) add_to_set(out, shared);
}

cs_status cs_coselect_choose(const cs_policy_input *input, int task, cs_coselect_task *out) {
  const cs_task_choices *choices = &input->choices[task];
  cs_pareto_point *points = cs_calloc((size_t)choices->n, sizeof *points);
  if (!points) return cs_no_memory("candidates", (size_t)choices->n * sizeof *points);
  bool some_known = false;
  for (int i = 0; i < choices->n; i++) some_known = some_known || choices->choices[i].kernels;
  for (int i = 0; i < choices->n; i++) {
    points[i] = point_of(input, choices, i, some_known && input->device);
  }
  int pareto[CS_PARETO_MOST];
  int n = cs_pareto_select(points, choices->n, CS_PARETO_WITHIN, CS_PARETO_MOST, pareto);
  for (int i = 0; i < n; i++) add_to_set(out, pareto[i]);
  add_merging(input, task, out);
  for (int i = 0; i < choices->n; i++) {
    if (points[i].cost[CS_COST_TIME] <= CS_COSELECT_WITHIN * choices->choices[0].cold_us) {
      add_to_set(out, i);
    }
  }
  free(points);
  return CS_OK;
}
