/* Inside of measuring co-runs: the operations of a block with their Pareto sets, prepared, and one
 * set of them under measurement. */
#ifndef CONVSCHED_PROFILER_CORUN_H_
#define CONVSCHED_PROFILER_CORUN_H_

#include "profiler/profiling_operations.h"

#define CS_CORUN_COMBINATIONS 36 /* of candidates, of one set */

typedef struct cs_corun_op {
  int task;
  cs_operation operation; /* trials: its Pareto set, fastest first; rough_us: its time alone */
  cs_op_buffers buffers;
  cs_demand demands[CS_PARETO_MOST]; /* of the trials */
} cs_corun_op;

typedef struct cs_corun_group { /* the operations of one block that sets need */
  const cs_profiling *profiling;
  const cs_measuring *measuring;
  cs_corun_report *report;
  cs_corun_op *ops;
  int n;
  double budget_us; /* for the samples of one set */
} cs_corun_group;
/* Prepares the operations of n sets, all of one block. */
cs_status cs_corun_group_create(const cs_profiling *profiling, const cs_measuring *measuring,
                                const cs_corun_set *const *sets, int n,
                                cs_corun_group *out) CS_MUST_USE;
void cs_corun_group_destroy(cs_corun_group *group);

/* The ways a combination is timed. Warm: the same tensors and weights in every round. */
typedef enum cs_corun_way {
  CS_CORUN_COLD,
  CS_CORUN_WARM,
  CS_CORUN_SERIAL,
  CS_CORUN_SERIAL_WARM,
  CS_CORUN_WAYS
} cs_corun_way;

/* One candidate for each member, run together and one after the other. */
typedef struct cs_combination {
  int choice[CS_CORUN_MOST];                /* trial of each member */
  double alone_us, longest_us;              /* sum and maximum of the times alone */
  cs_schedule *schedules[CS_CORUN_WAYS];    /* NULL: not made, or given up */
  double us[CS_CORUN_WAYS][CS_MAX_SAMPLES]; /* per round */
  int n[CS_CORUN_WAYS];                     /* samples */
} cs_combination;

typedef struct cs_corun_case { /* a set under measurement */
  cs_corun_group *group;
  cs_corun_op *members[CS_CORUN_MOST];
  int n;
  int issue_order[CS_CORUN_MOST]; /* longest alone first */
  int rounds, copies;             /* rounds of a chain; sets of tensors it rotates through */
  bool scrub;                     /* the cache is emptied before each sample instead */
  cs_combination combinations[CS_CORUN_COMBINATIONS]; /* [0]: the fastest alone */
  int n_combinations;
} cs_corun_case;

/* The fastest of each, or, where their workspaces together exceed the limit, faster ones given up
 * for ones with less, the largest first. False: nothing fits. */
bool cs_corun_base(const int64_t workspace[][CS_PARETO_MOST], const int *sizes, int n,
                   int64_t limit, int *choice);

/* Sets the case up: members, combinations (*out NULL: none fits the limit), chain. */
cs_status cs_corun_case_create(cs_corun_group *group, const cs_corun_set *set,
                               cs_corun_case **out) CS_MUST_USE;
void cs_corun_case_destroy(cs_corun_case *c);
/* Makes the schedule of a combination: a chain of rounds, in each of which every member runs once;
 * together: on streams of their own, a round starts when the one before has ended; else on one
 * stream. */
cs_status cs_corun_schedule(const cs_corun_case *c, const cs_combination *combination,
                            cs_corun_way way, cs_schedule **out) CS_MUST_USE;
/* One sample of each kind that has a schedule, appended at index `at`. */
cs_status cs_corun_sample(const cs_corun_case *c, cs_combination *combination, int at) CS_MUST_USE;
void cs_combination_drop(const cs_corun_case *c, cs_combination *combination);

/* corun_measure.c: screens the combinations, takes fresh samples of the best, records. */
cs_status cs_corun_measure(cs_corun_case *c) CS_MUST_USE;

/* corun_inspect.c: adds overlap and counters to a set's fastest-alone and best records. */
cs_status cs_corun_inspect(cs_corun_group *group, const cs_corun_set *set,
                           bool counters) CS_MUST_USE;

/* A record of these members, unsorted values copied; released with cs_corun_clear. */
cs_status cs_corun_of(const cs_corun_case *c, const cs_combination *combination,
                      cs_corun *out) CS_MUST_USE;

#endif
