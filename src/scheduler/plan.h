/* The plan: candidate, stream, order, dependencies and memory for every task of a program; its
 * checker; its JSON form `convsched.plan/1`. Pure data; same inputs, same bytes. */
#ifndef CONVSCHED_SCHEDULER_PLAN_H_
#define CONVSCHED_SCHEDULER_PLAN_H_

#include "graph/program.h"
#include "profiler/profile.h"

/* What a policy may choose from for one task: admissible, measured, unbanned candidates, fastest
 * first. What it points to belongs to whoever made it. */
typedef struct cs_choice {
  const cs_candidate *candidate;
  double cold_us, warm_us;
  const cs_kernel_profile *kernels; /* in the order they run; NULL: not recorded */
  int n_kernels;
  /* Its kernels can begin before what they wait for has ended, as this program will be run (on a
   * device that is not split): cs_backend_vtable.begins_early. */
  bool early;
} cs_choice;
typedef struct cs_task_choices {
  cs_choice *choices;
  int n;
} cs_task_choices;

#define CS_MAX_SPLIT_STREAMS 64 /* of a schedule with a split */

typedef struct cs_plan_task {
  int task; /* index into the program's tasks */
  cs_candidate candidate;
  int stream;
  /* The plan position whose launch it is part of; -1: it is launched by itself. A merged launch is
   * a leader and the positions directly behind it: independent tasks of one stream and one
   * candidate that `merges`, without workspaces, run by one kernel at the same time. What waits for
   * one of them waits for all; only the leader waits, for what any of them depends on. */
  int merged;
  int priority; /* 0: normal, 1: high; of a merged launch one for all */
  /* True: it begins when what it waits for has ended. False: it may begin before, where device and
   * candidate can. Of a merged launch one for all. */
  bool late;
  int *waits, n_waits; /* plan positions on other streams that must have finished; ascending */
  int64_t workspace_offset, workspace_bytes; /* in the arena */
  double start_us, end_us;                   /* predicted timeline */
} cs_plan_task;

typedef struct cs_plan {
  char *policy;
  char *device_identity;
  uint64_t graph_hash; /* of the graph as bound, before passes */
  cs_precision precision;
  int64_t batch;
  uint64_t seed;
  cs_layout *layouts;    /* per graph value (after passes) */
  cs_division *division; /* of the program's nodes; NULL: all are whole */
  int n_values;
  int n_streams;
  int parts[CS_MAX_PARTS], n_parts; /* SMs of each part of the device; n_parts 0: no split */
  int *stream_part; /* per stream: its part, -1: the whole device; NULL where there is no split */
  bool hints;       /* of the launch order, between streams (cs_stream_set) */
  cs_plan_task *tasks; /* launch order */
  int n_tasks;
  int64_t *buffer_offsets; /* per program buffer, bytes into the arena, 256-aligned */
  int n_buffers;
  int64_t arena_bytes;
  int64_t workspace_peak; /* most workspace bytes that can be in use at once in the partial order */
  double predicted_us;
} cs_plan;

void cs_plan_destroy(cs_plan *plan);
/* Blocks: the program is cut wherever every task behind depends on every task before.
 * block_of[n_tasks] by task, from 0 in the order in which they run. */
cs_status cs_program_blocks(const cs_program *program, int *block_of, int *n_blocks) CS_MUST_USE;
cs_status cs_plan_to_json(const cs_plan *plan, const cs_program *program, char **out) CS_MUST_USE;
/* Strict. `graph`: passed graph, for names. */
cs_status cs_plan_from_json(const char *text, size_t length, const char *name,
                            const cs_graph *graph, cs_plan **out) CS_MUST_USE;
/* Refuses (BAD_INPUT, what was found and wanted) a plan for another graph, precision or device.
 * Other versions of its software are none of these: whether candidates are still there, preparing
 * tells. */
cs_status cs_plan_check_identity(const cs_plan *plan, uint64_t graph_hash, cs_precision precision,
                                 const char *device_identity) CS_MUST_USE;

/* BAD_INPUT: a split whose parts are together more than the device's `units` (0: not known). */
cs_status cs_plan_check_split(const cs_plan *plan, int units) CS_MUST_USE;
/* The position that launches this one: itself, or its leader. */
static inline int cs_plan_leader(const cs_plan *plan, int position) {
  return plan->tasks[position].merged >= 0 ? plan->tasks[position].merged : position;
}
/* The position behind the last one of the launch that a leader begins. */
int cs_plan_launch_end(const cs_plan *plan, int leader);

/* ---- The checker: shares no code with the planners ---- */

/* Every task once, in an order that respects dependencies; merged launches whole, of one stream and
 * one candidate that merges; every dependency enforced by stream order or a chain of waits; no two
 * buffers (or workspaces) that may be live at the same time share bytes; everything inside the
 * arena; limits held (0: none). INTERNAL that names the tasks. */
cs_status cs_plan_check(const cs_plan *plan, const cs_program *program, int64_t workspace_limit,
                        int64_t memory_limit) CS_MUST_USE;

/* ---- Partial order of a plan, shared by memory planner and policies (not by the checker) ---- */

typedef struct cs_order cs_order; /* happens-before among plan positions, as bit sets */
cs_status cs_order_create(const cs_plan *plan, cs_order **out) CS_MUST_USE;
bool cs_order_before(const cs_order *order, int a, int b); /* a finished before b starts, always */
void cs_order_destroy(cs_order *order);

/* Places buffers and workspaces: two share bytes only if every use of one happens before every use
 * of the other. Fills offsets, arena_bytes, workspace_peak. NO_MEMORY when the arena exceeds
 * memory_limit (says the minimum found). reuse false: every buffer has bytes of its own, which no
 * workspace shares; workspaces still share among themselves. */
cs_status cs_plan_memory(cs_plan *plan, const cs_program *program, bool reuse,
                         int64_t memory_limit) CS_MUST_USE;
/* The maximum-weight antichain of workspaces. */
cs_status cs_plan_workspace_peak(const cs_plan *plan, int64_t *out) CS_MUST_USE;

#endif
