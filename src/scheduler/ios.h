/* Parts of the `ios` policy: windows of tasks small enough for its dynamic program, and the program
 * itself. Pure; every result is a function of its arguments. */
#ifndef CONVSCHED_SCHEDULER_IOS_H_
#define CONVSCHED_SCHEDULER_IOS_H_

#include "scheduler/internal.h"

#define CS_IOS_MOST_TASKS 24 /* of a window */
#define CS_IOS_MOST_WIDTH 6  /* of a window: tasks of which none depends on another */
/* Work on one window, in stages priced and in endings of states looked at; a window that takes more
 * is halved. */
#define CS_IOS_MOST_STAGES 2048
#define CS_IOS_MOST_TRIES 100000

/* Windows run one after the other: window w is order[first[w]] … order[first[w + 1] − 1], and
 * `order` is a topological order of all tasks. */
typedef struct cs_ios_windows {
  int *order, *first;
  int n;
} cs_ios_windows;
/* Blocks where they are small enough: the program is cut wherever every task behind depends on
 * every task before. A larger block is laid out by the earliest start of its tasks, and cut into
 * windows of as many as fit. */
cs_status cs_ios_windows_of(const cs_policy_input *input, cs_ios_windows *out) CS_MUST_USE;
void cs_ios_windows_free(cs_ios_windows *windows);

/* A window's tasks, numbered from 0 in topological order; sets of them are masks. */
typedef struct cs_ios_window {
  int n;
  const int *tasks; /* indices into the program's tasks */
  uint32_t preds[CS_IOS_MOST_TASKS], succs[CS_IOS_MOST_TASKS]; /* direct, within the window */
} cs_ios_window;

/* A stage and the arrays it points to. */
typedef struct cs_ios_stage {
  cs_stage stage;
  int tasks[CS_IOS_MOST_TASKS], group_of[CS_IOS_MOST_TASKS];
} cs_ios_stage;
/* The groups of a set of tasks are its weakly connected parts. */
void cs_ios_stage_of(const cs_ios_window *window, uint32_t set, cs_ios_stage *out);

/* The id of a candidate with which one kernel can run n independent tasks; NULL: none can. */
typedef const char *(*cs_ios_merging)(void *user, const int *tasks, int n);
typedef struct cs_ios_options {
  int group_tasks, groups; /* most tasks of a group, most groups of a stage that is not merged */
  cs_stage_cost cost;
  void *user;
  cs_ios_merging merging; /* NULL: no stage is merged */
  void *merging_user;
} cs_ios_options;
/* The stages of least total cost, and of those the fewest: stages[*n_stages] in the order they run,
 * and merged[*n_stages] as of cs_stage (NULL: not asked for). A stage that may be merged costs the
 * less of both. *solved false: the work would exceed its limits, and nothing else is filled.
 * INTERNAL: a stage's cost is no time. */
cs_status cs_ios_solve(const cs_ios_window *window, const cs_ios_options *options,
                       uint32_t stages[CS_IOS_MOST_TASKS], const char *merged[CS_IOS_MOST_TASKS],
                       int *n_stages, bool *solved) CS_MUST_USE;

#endif
