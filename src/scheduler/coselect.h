/* Parts of the `coselect` policy: what the SM model expects of configurations, block by block, and
 * the local search over candidates, streams and order. Pure and deterministic; its measured half is
 * runtime/search.c. */
#ifndef CONVSCHED_SCHEDULER_COSELECT_H_
#define CONVSCHED_SCHEDULER_COSELECT_H_

#include "profiler/pareto.h"
#include "scheduler/configuration.h"
#include "scheduler/ios.h"
#include "scheduler/sm_model.h"

#define CS_COSELECT_VARIANTS 8 /* of a block, that a search keeps */

#define CS_COSELECT_CHOICES 12 /* of a task */
#define CS_COSELECT_WITHIN 1.6 /* times the fastest: of those beyond the Pareto set */

#define CS_COSELECT_MERGING 2 /* of a task: the fastest that merge, and one for its siblings */

/* The candidates of a task that are worth trying: its Pareto set, the fastest that merge, among
 * them the one with which tasks of the same input are fastest together, then the fastest others. */
typedef struct cs_coselect_task {
  int choices[CS_COSELECT_CHOICES], n; /* indices into the task's choices */
  cs_sm_kernel *kernels[CS_COSELECT_CHOICES];
  int n_kernels[CS_COSELECT_CHOICES];
} cs_coselect_task;

typedef struct cs_coselect {
  const cs_policy_input *input;
  cs_sm_model *model; /* NULL: the device tells too little; times alone serve instead */
  double cold;        /* 0 … 1: how much of what the program touches is not in the cache */
  cs_coselect_task *tasks;
  cs_ios_windows windows; /* the program's blocks, and windows of those that are too large */
  int *window_of;         /* per task */
  uint64_t *ancestors;    /* per task: bit sets of tasks */
  cs_sm_parts parts;      /* cs_coselect_use_split */
  int part_of[CS_MAX_SPLIT_STREAMS];
  /* Room for a simulation. */
  cs_sm_launch *launches;
  int *waits, *last_launch, *stream_names;
  double *stream_end, *task_end;
  cs_sm_kernel *merged; /* of merged launches, per launch */
  bool *marks;          /* per task: of cs_coselect_join */
} cs_coselect;

/* The set of one task, without its kernels. */
cs_status cs_coselect_choose(const cs_policy_input *input, int task,
                             cs_coselect_task *out) CS_MUST_USE;
cs_status cs_coselect_create(const cs_policy_input *input, cs_coselect **out) CS_MUST_USE;
void cs_coselect_destroy(cs_coselect *c);
/* The choice's place in the task's set; -1: it is not there. */
int cs_coselect_member(const cs_coselect *c, int task, int choice);
/* Whether neither depends on the other. */
bool cs_coselect_independent(const cs_coselect *c, int a, int b);

/* What is predicted from now on runs on a configuration's split, its streams on the parts that it
 * gives them; NULL: on the whole device, as at first. */
void cs_coselect_use_split(cs_coselect *c, const cs_configuration *configuration);
/* Microseconds that n placements take by themselves (in launch order; what they depend on outside
 * has ended); infinite where a part does not hold one of them. */
cs_status cs_coselect_predict(cs_coselect *c, const cs_placement *places, int n,
                              double *us) CS_MUST_USE;
/* The same with the tasks of a window next to each other, so that windows may be reordered inside.
 */
cs_status cs_coselect_window_order(const cs_coselect *c, const cs_configuration *from,
                                   cs_configuration *out) CS_MUST_USE;
/* The placements of a window within a configuration, in launch order; how many. */
int cs_coselect_gather(const cs_coselect *c, const cs_configuration *configuration, int window,
                       cs_placement *out);
/* Puts placements of a window (of the same tasks) into the positions that it has in a configuration
 * in window order. */
void cs_coselect_scatter(const cs_coselect *c, int window, const cs_placement *places,
                         cs_configuration *configuration);

/* ---- coselect_merge.c: merged launches within n placements in launch order ---- */

/* Whether the choice can be run by one kernel with others of its id. */
bool cs_coselect_merges(const cs_coselect *c, int task, int choice);
/* Whether any of the task's set can. */
bool cs_coselect_may_merge(const cs_coselect *c, int task);
/* n placements (a launch, at most CS_MERGE_MOST) at `from` to `to`, before it. */
void cs_placements_move_up(cs_placement *places, int to, int from, int n);
/* Makes one launch of those that p and q belong to, with candidate `id` on the stream of the first;
 * launches between them run before it where it needs them, else behind it. False, and nothing
 * changed: one depends on the other, they are too many, or one has no such candidate that merges.
 */
bool cs_coselect_join(cs_coselect *c, cs_placement *places, int n, int p, int q, const char *id);
/* The same of several tasks; false: only some of them are joined. */
bool cs_coselect_join_tasks(cs_coselect *c, cs_placement *places, int n, const int *tasks,
                            int n_tasks, const char *id);
/* Takes a placement out of its launch, to behind it; its position then. */
int cs_coselect_leave(cs_placement *places, int n, int p);
/* Gives a placement the stream, priority, way to begin and choice of another: all but the choice
 * are those of its whole launch; so is the candidate if all of the launch have it and it merges, or
 * else the placement leaves its launch. */
void cs_coselect_change(const cs_coselect *c, cs_placement *places, int n, int p, cs_placement to);
/* The id that all the tasks have in their sets, that merges, and with which their times alone are
 * the least but `rank`; NULL: there is none. */
const char *cs_coselect_common(const cs_coselect *c, const int *tasks, int n, int rank);
/* Independent tasks of a window that read what `task` reads first and have candidates that merge:
 * out[CS_MERGE_MOST], of which `task` must be the first (else 0). */
int cs_coselect_siblings(const cs_coselect *c, int task, int *out);

/* The best configurations of one window that a local search found. */
typedef struct cs_coselect_variants {
  cs_placement places[CS_COSELECT_VARIANTS][CS_IOS_MOST_TASKS];
  double us[CS_COSELECT_VARIANTS]; /* predicted, ascending */
  int n, n_tasks;
} cs_coselect_variants;
/* Searches from each of the starts, and with siblings merged from the best found and from the first
 * start, `steps` moves each. Every move changes one task's candidate or stream, its place in the
 * order, or what it is merged with; `seed` decides which. At last
 * launches of the best get another priority, where there are any, one by one. */
cs_status cs_coselect_search(cs_coselect *c, int window, const cs_configuration *const *starts,
                             int n_starts, int steps, uint64_t seed,
                             cs_coselect_variants *out) CS_MUST_USE;

/* ---- coselect_parts.c: blocks on parts of the device ---- */

/* Tasks of a window that are on stream `from[i]` go to a stream of part `to[i]` of the split, i 0
 * and 1. False, and *configuration is of no use: it has another split, no stream of `from` has
 * tasks of the window, or there is no stream left. */
bool cs_coselect_enter_parts(const cs_coselect *c, int window, const int from[2],
                             const cs_sm_parts *split, const int to[2],
                             cs_configuration *configuration);
/* Tasks of a window leave the parts, for streams of the whole device; where none is left in a part
 * the device is no longer split. False: none was, or there is no stream left. */
bool cs_coselect_leave_parts(const cs_coselect *c, int window, cs_configuration *configuration);
/* The split, and the pair of streams of each window put into parts of it, of which the model
 * expects most; nothing where it expects little. Without kernels that the model knows: nothing. */
cs_status cs_coselect_split_by_model(cs_coselect *c, cs_configuration *configuration) CS_MUST_USE;

/* A whole configuration by the model alone: of each window the best variant, from the plans of the
 * other policies. */
cs_status cs_coselect_by_model(cs_coselect *c, cs_configuration *out) CS_MUST_USE;
/* The plans of every other policy as configurations, made without limits or (`limited`) under the
 * input's; out[*n]. */
#define CS_COSELECT_STARTS 8 /* more than there are policies */
cs_status cs_coselect_starts(const cs_policy_input *input, bool limited, cs_configuration *out,
                             int *n) CS_MUST_USE;

#endif
