/* A configuration: what a policy decides of a program, without memory and waits, which follow from
 * it: for each launch the task, its stream and its candidate. Pure. */
#ifndef CONVSCHED_SCHEDULER_CONFIGURATION_H_
#define CONVSCHED_SCHEDULER_CONFIGURATION_H_

#include "scheduler/internal.h"

/* Samples of a configuration that was compared with the best ones at the end of a search; those
 * seen on the way have fewer. */
#define CS_SCHEDULE_CONFIRMED 30

typedef struct cs_placement {
  int task, stream;
  int choice;   /* index into the task's choices */
  bool joined;  /* in one launch with the placement before it, whose stream, candidate, priority
                 * and way to begin it has */
  int priority; /* 0: normal, 1: high */
  bool late;    /* begins when what it waits for has ended; false: may begin early */
} cs_placement;

typedef struct cs_configuration {
  cs_placement *places; /* every task once, in launch order */
  int n;
  int parts[CS_MAX_PARTS], n_parts;  /* SMs of each part of the device; n_parts 0: no split */
  int part_of[CS_MAX_SPLIT_STREAMS]; /* where split, per stream: its part, -1: the whole device */
  bool hints;                        /* of the launch order; not where split */
} cs_configuration;

/* Room for n placements, all zero. */
cs_status cs_configuration_make(int n, cs_configuration *out) CS_MUST_USE;
cs_status cs_configuration_of_plan(const cs_plan *plan, const cs_task_choices *choices,
                                   cs_configuration *out) CS_MUST_USE;
cs_status cs_configuration_copy(const cs_configuration *from, cs_configuration *out) CS_MUST_USE;
void cs_configuration_free(cs_configuration *configuration);
bool cs_placements_equal(const cs_placement *a, const cs_placement *b, int n);
bool cs_configuration_equal(const cs_configuration *a, const cs_configuration *b);
/* How many streams it uses: one more than the last. */
int cs_configuration_streams(const cs_configuration *configuration);
/* Where in the launch order a task is; it must be there. */
int cs_configuration_position(const cs_configuration *configuration, int task);
/* Numbers streams by first appearance, so that equal schedules are equal configurations. */
void cs_configuration_number_streams(cs_configuration *configuration);
/* Every task once, behind those it depends on; streams and choices that there are; joined
 * placements that one launch can run; priorities, hints and a split only as the input allows them,
 * and a split without the others: CUDA gives kernels on a part of the device no priority. */
bool cs_configuration_valid(const cs_configuration *configuration, const cs_policy_input *input);

/* Placements and waits of a plan; the rest is cs_plan_finish's. */
cs_status cs_configuration_fill(const cs_configuration *configuration, const cs_policy_input *input,
                                cs_plan *out) CS_MUST_USE;
/* A finished and checked plan. */
cs_status cs_configuration_plan(const cs_configuration *configuration, const char *policy,
                                const cs_policy_input *input, cs_plan **out) CS_MUST_USE;

/* The first placement of the launch that p belongs to, and the one behind its last. */
int cs_launch_first(const cs_placement *places, int p);
int cs_launch_end(const cs_placement *places, int n, int p);
/* The other priority for all placements of the launch that p belongs to. */
void cs_launch_toggle_priority(cs_placement *places, int n, int p);
/* Whether the launch that p belongs to may begin early, for all its placements. */
void cs_launch_set_late(cs_placement *places, int n, int p, bool late);
/* Every launch of `into` begins as its first task does in `from`, of the same program. */
void cs_configuration_begin_as(const cs_configuration *from, cs_configuration *into);
/* Whether the placement at p has a candidate that can begin early, on a device that is not split.
 */
bool cs_configuration_can_begin_early(const cs_configuration *configuration,
                                      const cs_task_choices *choices, int p);
/* Whether the placement at p may be joined with the one before it, whatever is launched with that:
 * stream, priority, way to begin and candidate are the same, the candidate merges without a
 * workspace, the launch is not full, and nothing in it is depended on. */
bool cs_placement_joins(const cs_placement *places, int p, const cs_policy_input *input);

/* ---- In a profile: measured configurations are candidates of the whole program ---- */

/* "task.stream.candidate" for each placement, the candidate as the hash of its id, behind it '+'
 * where it is joined, '^' where its priority is high and '~' where it is late; then '!' where there
 * are hints; or, where the device is split, "@SMs,…:part,…", the part of each stream ('-': the
 * whole device). What a profile keeps as the id. */
cs_status cs_configuration_text(const cs_configuration *configuration,
                                const cs_task_choices *choices, char **out) CS_MUST_USE;
/* False: not of this program, or of a candidate that is no choice (any more). */
cs_status cs_configuration_parse(const char *text, const cs_policy_input *input,
                                 cs_configuration *out, bool *valid) CS_MUST_USE;
/* The signature under which a program's configurations are kept: tasks, dependencies, buffers, and
 * whether they run as one graph or by stream calls. */
cs_status cs_program_signature(const cs_program *program, bool graph, char **out) CS_MUST_USE;

#endif
