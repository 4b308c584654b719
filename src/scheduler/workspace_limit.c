/* Holding workspaces to a limit: while the heaviest antichain exceeds it, its tasks exchange their
 * candidates for ones with less workspace, those that lose the least time per byte first. The
 * partial order does not depend on candidates, so it stays as it is. */
#include <inttypes.h>
#include <stdlib.h>

#include "scheduler/internal.h"

typedef struct exchange {
  int position, choice;
  double loss_per_byte;
} exchange;

static int smallest_choice(const cs_task_choices *choices) {
  int best = 0;
  for (int i = 1; i < choices->n; i++)
    if (choices->choices[i].candidate->workspace_bytes <
        choices->choices[best].candidate->workspace_bytes)
      best = i;
  return best;
}

/* Offers of one position; bytes saved beyond the excess count for nothing. */
static void consider(const cs_plan *plan, const cs_task_choices *choices, int position,
                     int64_t excess, exchange *best) {
  const cs_plan_task *placed = &plan->tasks[position];
  const cs_task_choices *own = &choices[placed->task];
  int now = cs_choice_find(own, placed->candidate.id);
  double time_now = now >= 0 ? own->choices[now].cold_us : own->choices[0].cold_us;
  for (int i = 0; i < own->n; i++) {
    int64_t saved = placed->workspace_bytes - own->choices[i].candidate->workspace_bytes;
    if (saved <= 0) continue;
    double loss = (own->choices[i].cold_us - time_now) / (double)cs_min_i64(saved, excess);
    if (best->position < 0 || loss < best->loss_per_byte) *best = (exchange){position, i, loss};
  }
}

/* Exchanges within one antichain until its weight is within the limit. */
static cs_status lighten(cs_plan *plan, const cs_task_choices *choices, const bool *members,
                         int64_t weight, int64_t limit) {
  while (weight > limit) {
    exchange best = {-1, -1, 0};
    for (int p = 0; p < plan->n_tasks; p++)
      if (members[p]) consider(plan, choices, p, weight - limit, &best);
    if (best.position < 0)
      return cs_error(CS_CODE_INTERNAL, "no candidate with less workspace is left");
    cs_plan_task *placed = &plan->tasks[best.position];
    const cs_candidate *candidate = choices[placed->task].choices[best.choice].candidate;
    weight -= placed->workspace_bytes - candidate->workspace_bytes;
    CS_RETURN_IF_ERROR(cs_plan_place(plan, best.position, placed->task, placed->stream, candidate));
  }
  return CS_OK;
}

cs_status cs_plan_smallest_workspace(cs_plan *plan, const cs_task_choices *choices, int64_t *out) {
  size_t n = (size_t)plan->n_tasks;
  int64_t *kept = cs_calloc(n, sizeof *kept);
  if (!kept) return cs_no_memory("workspaces", n * sizeof *kept);
  for (size_t p = 0; p < n; p++) {
    const cs_task_choices *own = &choices[plan->tasks[p].task];
    kept[p] = plan->tasks[p].workspace_bytes;
    plan->tasks[p].workspace_bytes = own->choices[smallest_choice(own)].candidate->workspace_bytes;
  }
  cs_status st = cs_plan_workspace_peak(plan, out);
  for (size_t p = 0; p < n; p++) plan->tasks[p].workspace_bytes = kept[p];
  free(kept);
  return st;
}

cs_status cs_plan_spare_workspace(cs_plan *plan, const cs_task_choices *choices) {
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_plan_task *placed = &plan->tasks[p];
    const cs_task_choices *own = &choices[placed->task];
    if (placed->merged >= 0 || cs_plan_launch_end(plan, p) > p + 1) continue; /* it has none */
    CS_RETURN_IF_ERROR(cs_plan_place(plan, p, placed->task, placed->stream,
                                     own->choices[smallest_choice(own)].candidate));
  }
  return CS_OK;
}

cs_status cs_plan_limit_workspace(cs_plan *plan, const cs_program *program,
                                  const cs_task_choices *choices, int64_t limit) {
  cs_status st = CS_OK;
  int64_t weight = 0, smallest = 0;
  bool *members = cs_calloc((size_t)plan->n_tasks, sizeof *members);
  if (!members) return cs_no_memory("an antichain", (size_t)plan->n_tasks);
  CS_TRY(st, cs_plan_heaviest_antichain(plan, members, &weight), done);
  if (weight > limit) {
    CS_TRY(st, cs_plan_smallest_workspace(plan, choices, &smallest), done);
    if (smallest > limit)
      CS_FAIL(st, done, CS_CODE_NOT_FOUND,
              "no candidates of %s on %d streams hold the workspace limit: wanted at most %" PRId64
              " bytes, the smallest possible is %" PRId64,
              cs_graph_name(program->graph), plan->n_streams, limit, smallest);
  }
  while (weight > limit) {
    CS_TRY(st, lighten(plan, choices, members, weight, limit), done);
    CS_TRY(st, cs_plan_heaviest_antichain(plan, members, &weight), done);
  }
done:
  free(members);
  return st;
}
