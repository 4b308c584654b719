/* State shared by the files of the plan checker. They use nothing of the planners: reachability is
 * by vector clocks, aliasing by clocks, the workspace peak by augmenting paths. */
#ifndef CONVSCHED_SCHEDULER_CHECKER_H_
#define CONVSCHED_SCHEDULER_CHECKER_H_

#include "scheduler/plan.h"

typedef struct cs_checker {
  const cs_plan *plan;
  const cs_program *program;
  int *position_of; /* per task */
  int *index;       /* per position: how many launches its stream had before its own */
  /* clock[p * n_streams + s]: how many launches of stream s have finished, always, when position p
   * starts. */
  int *clock;
} cs_checker;

/* Position a has always finished when position b starts. */
static inline bool cs_checker_before(const cs_checker *check, int a, int b) {
  const cs_plan *plan = check->plan;
  return check->clock[(size_t)b * (size_t)plan->n_streams + (size_t)plan->tasks[a].stream] >
         check->index[a];
}
static inline const char *cs_checker_name(const cs_checker *check, int position) {
  return check->program->tasks[check->plan->tasks[position].task].name;
}

/* Arena bounds, alignment, and that nothing shares bytes while it may be live. */
cs_status cs_checker_memory(const cs_checker *check, int64_t memory_limit) CS_MUST_USE;
/* The recorded peak is the true one and within the limit (0: none). */
cs_status cs_checker_workspace(const cs_checker *check, int64_t workspace_limit) CS_MUST_USE;

#endif
