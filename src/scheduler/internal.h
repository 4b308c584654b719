/* What the scheduler's files share among themselves: task times, building plans, the graph of
 * tasks. Not for other modules. Pure; every result is a function of its arguments. */
#ifndef CONVSCHED_SCHEDULER_INTERNAL_H_
#define CONVSCHED_SCHEDULER_INTERNAL_H_

#include "base/dag.h"
#include "scheduler/policy.h"

#define CS_ARENA_ALIGNMENT 256

/* ---- Partial order of a plan ---- */

struct cs_order {
  int n;
  size_t words;
  uint64_t *before; /* n sets of positions */
};
static inline const uint64_t *cs_order_set(const cs_order *order, int position) {
  return order->before + (size_t)position * order->words;
}

/* ---- Building plans ---- */

/* Zeroes *plan and makes room for the program's tasks and buffers (n_tasks, n_buffers set). */
cs_status cs_plan_begin(const cs_program *program, cs_plan *plan) CS_MUST_USE;
/* Puts a task at a launch position with a candidate (copied; workspace_bytes follows). What it is
 * merged with, its priority and whether it may begin early stay. */
cs_status cs_plan_place(cs_plan *plan, int position, int task, int stream,
                        const cs_candidate *candidate) CS_MUST_USE;
/* Fills the waits of every position from tasks, order and streams: the fewest that, with stream
 * order, enforce every dependency of the program. */
cs_status cs_plan_fill_waits(cs_plan *plan, const cs_program *program) CS_MUST_USE;
/* position_of[n_tasks] from the launch order. */
void cs_plan_positions(const cs_plan *plan, int *position_of);

/* What is left once candidates, streams, order and waits are there: origin, workspaces held to the
 * limit, memory, predicted timeline, and the check. */
cs_status cs_plan_finish(cs_plan *plan, const char *policy,
                         const cs_policy_input *input) CS_MUST_USE;

/* Predicted start and end of every task and predicted_us, cold. With a model (not NULL) and kernels
 * recorded of any candidate planned with: the SM model's, where candidates without kernels run
 * beside whatever there is. Else a stream runs its tasks one after the other, a task starts when
 * its stream and its waits are done, tasks of different streams do not slow each other. `choices`
 * as in cs_policy_input. INTERNAL: a candidate that is no choice. */
cs_status cs_plan_timeline(cs_plan *plan, const cs_task_choices *choices,
                           cs_sm_model *model) CS_MUST_USE;

/* Marks the members[n_tasks] of a heaviest antichain of workspaces; its weight in bytes. */
cs_status cs_plan_heaviest_antichain(const cs_plan *plan, bool *members,
                                     int64_t *weight) CS_MUST_USE;
/* Exchanges candidates for ones with less workspace until the peak is within `limit` bytes.
 * NOT_FOUND names the smallest peak these streams allow. */
cs_status cs_plan_limit_workspace(cs_plan *plan, const cs_program *program,
                                  const cs_task_choices *choices, int64_t limit) CS_MUST_USE;

/* The peak with every task at its least workspace; the plan is left as it was. */
cs_status cs_plan_smallest_workspace(cs_plan *plan, const cs_task_choices *choices,
                                     int64_t *out) CS_MUST_USE;
/* Gives every task the fastest of its candidates with the least workspace. */
cs_status cs_plan_spare_workspace(cs_plan *plan, const cs_task_choices *choices) CS_MUST_USE;
/* policy->plan and cs_plan_finish; the arena may exceed the memory limit. */
cs_status cs_plan_draft(const cs_policy *policy, const cs_policy_input *input,
                        cs_plan **out) CS_MUST_USE;
/* The arena of one stream in program order with least workspaces, bytes. */
cs_status cs_plan_least_memory(const cs_policy_input *input, int64_t *out) CS_MUST_USE;
/* Puts a plan whose arena is within the memory limit in place of *plan, the policy's draft without
 * one: the one predicted fastest of the policy's with at most all, half, a quarter, … of the
 * streams, of what it makes of the limit itself, and of one stream in program order, each with as
 * little workspace as it must have. NOT_FOUND: the arena is larger
 * even with one stream and least workspaces; the message says how large. */
cs_status cs_plan_hold_memory(const cs_policy *policy, const cs_policy_input *input,
                              cs_plan **plan) CS_MUST_USE;

/* The index of the choice with this candidate id, -1 if there is none. */
int cs_choice_find(const cs_task_choices *choices, const char *id);

/* ---- What tasks take of the device ---- */

typedef struct cs_task_demand {
  double share;      /* of the device; above 1: more than it holds at once */
  bool memory_bound; /* else arithmetic is what bounds it */
} cs_task_demand;
/* The demand of every task's fastest choice, out[n_tasks].
 * share: where the choice's kernels are recorded, what all blocks of a kernel take of the scarcest
 * resource of the device's SMs (the largest of its kernels); on a CPU its threads over the cores;
 * where neither is known, how near it comes to the roofline's rates.
 * memory_bound: what counters say where its kernels are counted, else its arithmetic intensity.
 * The roofline's rates are the device's peaks where known, else the best that any task of this
 * program reaches. */
void cs_task_demands(const cs_policy_input *input, cs_task_demand *out);
/* The same share of one choice; `otherwise` where it follows neither from kernels nor threads. */
double cs_choice_share(const cs_policy_input *input, const cs_choice *choice, double otherwise);

/* ---- The dependency graph of a program's tasks ---- */

cs_status cs_dag_of_program(const cs_program *program, cs_dag *out) CS_MUST_USE;
/* closes[n]: every later node depends on node t and on all nodes before it, so that a block ends
 * with t. `ancestors` as cs_dag_ancestors gives them. */
void cs_dag_blocks(const uint64_t *ancestors, int n, bool *closes);

#endif
