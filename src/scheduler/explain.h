/* What a plan chose, block by block, and what keeps tasks that could run together from sharing the
 * SMs. Pure: a function of the plan and of what it was chosen from. */
#ifndef CONVSCHED_SCHEDULER_EXPLAIN_H_
#define CONVSCHED_SCHEDULER_EXPLAIN_H_

#include <jansson.h>

#include "profiler/resources.h"
#include "scheduler/policy.h"

/* Pairs told of a block, unless said otherwise. */
#define CS_EXPLAIN_PAIRS 16

typedef struct cs_explained_task {
  int task, position;      /* of the program; of the launch order */
  const cs_choice *choice; /* what the plan runs it with */
  cs_demand demand;        /* of an SM; on a CPU, or without kernels, not known */
} cs_explained_task;

/* Another candidate of one task of a pair. */
typedef struct cs_alternative {
  int task;
  const cs_choice *choice;
  const char *limiter; /* as of a pair, with it */
  double cost_us; /* its time alone less that of the one chosen; negative: it is faster alone */
} cs_alternative;

/* Two tasks of different streams that neither dependencies nor streams nor waits order. */
typedef struct cs_explained_pair {
  int a, b; /* tasks of the program, by launch position */
  /* What keeps them from lying beside each other on every SM: "registers", "shared", "threads",
   * "blocks", on a CPU "cores"; "none": nothing does; "": not known. */
  const char *limiter;
  double most_us; /* the shorter time alone: no more can run together */
  /* Of each: the fastest other candidate, and where something limits them the fastest one with
   * which nothing does. */
  cs_alternative alternatives[4];
  int n_alternatives;
} cs_explained_pair;

/* Tasks between two cuts: all of a later block depend on all of an earlier one. */
typedef struct cs_explained_block {
  cs_explained_task *tasks; /* launch order */
  int n_tasks, n_streams;
  double start_us, end_us;   /* predicted */
  double serial_us;          /* its tasks one after the other, alone */
  cs_explained_pair *pairs;  /* those that can overlap longest first */
  int n_pairs, n_more_pairs; /* told; left out */
} cs_explained_block;

typedef struct cs_explanation {
  cs_explained_block *blocks;
  int n_blocks;
} cs_explanation;

/* Points into `plan` and `input`. At most `most_pairs` pairs a block. INTERNAL: the plan has a
 * candidate that is no choice. */
cs_status cs_explain(const cs_plan *plan, const cs_policy_input *input, int most_pairs,
                     cs_explanation *out) CS_MUST_USE;
void cs_explanation_free(cs_explanation *explanation);
/* {"blocks":[{"streams", "start_us", "end_us", "serial_us", "tasks":[…], "pairs":[…],
 * "more_pairs"}…]}; what is not known is null. docs/scheduling.md describes it. */
cs_status cs_explanation_json(const cs_explanation *explanation, const cs_plan *plan,
                              const cs_program *program, json_t **out) CS_MUST_USE;

#endif
