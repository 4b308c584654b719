/* A scheduling policy and the registry of them; layouts; bounds. To add a policy: one file with a
 * cs_policy, one line in policy.c. */
#ifndef CONVSCHED_SCHEDULER_POLICY_H_
#define CONVSCHED_SCHEDULER_POLICY_H_

#include <math.h>

#include "scheduler/plan.h"
#include "scheduler/sm_model.h"

#define CS_MOST_SPLITS 4 /* of the device that a policy may choose from */

/* Tasks between two barriers: groups run beside one another, each on a stream of its own, the tasks
 * of a group one after the other. */
typedef struct cs_stage {
  const int *tasks; /* indices into the program's tasks; those of a group in the order they run */
  const int *group_of; /* per entry of tasks: 0 … n_groups − 1 */
  int n, n_groups;
  const char *merged; /* the candidate with which one kernel runs all of them, each a group; NULL:
                       * the groups run beside one another, each task with its fastest choice */
} cs_stage;
/* Microseconds from the start of a stage that has the device to itself to the end of its last task:
 * measured, or from a model. Called many times; the same stage must always cost the same.
 * CS_STAGE_ESTIMATE: not known, the policy estimates it; else finite and >= 0, or the policy fails.
 */
#define CS_STAGE_ESTIMATE (-INFINITY)
typedef cs_status (*cs_stage_cost)(void *user, const cs_stage *stage, double *us);

typedef struct cs_policy_input {
  const cs_program *program;
  const cs_task_choices *choices; /* per task; each n >= 1 */
  int max_streams;
  int64_t workspace_limit, memory_limit;
  uint64_t seed;
  const char *device_identity;
  const cs_device_info *device; /* NULL: not known */
  cs_sm_model *model;           /* of the predicted timeline; NULL: from times alone */
  uint64_t graph_hash;
  cs_stage_cost stage_cost; /* of `ios`; NULL: estimated from times alone and demands */
  void *stage_user;
  int stage_group_tasks; /* `ios`: most tasks of a group (r of the paper); 0: 3 */
  /* `coselect`: configurations of this program that were measured, as the profile has them under
   * cs_program_signature; NULL: none. */
  const cs_op_profile *schedules;
  /* `coselect`: how the device's SMs may be split (profiler/partition.h), and whether launches may
   * have priorities, and hints of their order. */
  cs_sm_parts splits[CS_MOST_SPLITS];
  int n_splits;
  bool priorities, hints;
  int search_steps; /* `coselect`: moves tried through the model; 0: by the program's size */
  int stage_groups; /* `ios`: most groups of a stage (s); 0: 8; never more than max_streams */
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
extern const cs_policy cs_policy_opara;    /* Opara (2023): least demand first, kinds in turn */
extern const cs_policy cs_policy_ios;      /* IOS (MLSys 2021): dynamic programming over stages */
extern const cs_policy cs_policy_coselect; /* ours: candidates, streams and order together */
const cs_policy *cs_policy_find(const char *name); /* NULL: unknown */
const cs_policy *const *cs_policy_all(int *count);

/* policy->plan, then workspaces held to the limit (slower candidates with less workspace where an
 * antichain exceeds it), memory, predicted timeline, and cs_plan_check. An arena beyond the memory
 * limit is made smaller by less workspace and fewer streams, down to one in program order;
 * NOT_FOUND says the least that took, a limit with which every policy plans. */
cs_status cs_plan_make(const cs_policy *policy, const cs_policy_input *input,
                       cs_plan **out) CS_MUST_USE;

/* What the sequential policy's plan takes under the workspace limit, without a memory limit: what
 * concurrency costs in bytes is told against it. */
typedef struct cs_plan_bytes {
  int64_t arena, workspace; /* workspace: most in use at once */
} cs_plan_bytes;
cs_status cs_sequential_memory(const cs_policy_input *input, cs_plan_bytes *out) CS_MUST_USE;

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
  double roofline_us;      /* max(total flops / peak, total fewest bytes / bandwidth): a bound; NaN:
                              not known */
  double critical_path_us; /* longest path of fastest candidates, cold: an estimate, not a bound */
  double area_us;          /* cs_area_us, which cs_bounds_of leaves to its caller; NaN: not known */
} cs_bounds;
/* Rates of 0 FLOP/s and 0 bytes/s: not known. BAD_INPUT: only one is, or one is negative. */
cs_status cs_bounds_of(const cs_program *program, const cs_task_choices *choices, double flops,
                       double bandwidth, cs_bounds *out) CS_MUST_USE;
/* What the fastest candidates take of the machine: for each resource of an SM the share that a
 * kernel's blocks hold of it, times how long they hold it, summed over all kernels and divided by
 * the SMs; the largest over the resources, in microseconds. An estimate: no schedule of just these
 * candidates is faster while blocks take the time they take alone, but candidates that are slower
 * alone may take less. On a CPU the resource is cores. NaN: not known of some task (its kernels are
 * not recorded), or no device. */
double cs_area_us(const cs_program *program, const cs_task_choices *choices,
                  const cs_device_info *device);

#endif
