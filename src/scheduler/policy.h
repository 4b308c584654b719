/* A scheduling policy and the registry of them; layouts; bounds. To add a policy: one file with a
 * cs_policy, one line in policy.c. */
#ifndef CONVSCHED_SCHEDULER_POLICY_H_
#define CONVSCHED_SCHEDULER_POLICY_H_

#include "scheduler/plan.h"

typedef struct cs_policy_input {
  const cs_program *program;
  const cs_task_choices *choices; /* per task; each n >= 1 */
  int max_streams;
  int64_t workspace_limit, memory_limit;
  uint64_t seed;
  const char *device_identity;
  uint64_t graph_hash;
} cs_policy_input;

typedef struct cs_policy {
  const char *name;
  const char *source; /* the paper it comes from and where ours differs */
  /* Fills candidates, streams, order and waits; not memory. */
  cs_status (*plan)(const cs_policy_input *input, cs_plan *out);
} cs_policy;

extern const cs_policy cs_policy_sequential; /* one stream, fastest alone */
extern const cs_policy
    cs_policy_streams; /* Nimble (NeurIPS 2020): minimum equivalent graph + bipartite matching */
const cs_policy *cs_policy_find(const char *name); /* NULL: unknown */
const cs_policy *const *cs_policy_all(int *count);

/* policy->plan, then workspaces held to the limit (slower candidates with less workspace where an
 * antichain exceeds it), memory, predicted timeline, and cs_plan_check. */
cs_status cs_plan_make(const cs_policy *policy, const cs_policy_input *input,
                       cs_plan **out) CS_MUST_USE;

/* ---- Layouts ---- */

/* Cost in microseconds of `desc` (the best measured candidate); < 0: cannot run. */
typedef double (*cs_cost_fn)(void *user, const cs_op_desc *desc);
/* Chooses a layout for every value: dynamic program over the chain of blocks, whose state is the
 * layout of the boundary value; inside a block the cheapest of the uniform assignments, with the
 * copies that its borders need. `layouts[n_values]` is filled; *cost_us the predicted sum. */
cs_status cs_layout_assign(const cs_graph *graph, cs_precision precision,
                           const cs_layout *available, int n_available, cs_cost_fn cost, void *user,
                           cs_layout *layouts, double *cost_us) CS_MUST_USE;

/* ---- Bounds ---- */

typedef struct cs_bounds {
  double roofline_us;      /* max(total flops / peak, total fewest bytes / bandwidth): a bound */
  double critical_path_us; /* longest path of fastest candidates, cold: an estimate, not a bound */
} cs_bounds;
cs_status cs_bounds_of(const cs_program *program, const cs_task_choices *choices, double flops,
                       double bandwidth, cs_bounds *out) CS_MUST_USE;

#endif
