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
  int choice; /* index into the task's choices */
} cs_placement;

typedef struct cs_configuration {
  cs_placement *places; /* every task once, in launch order */
  int n;
} cs_configuration;

cs_status cs_configuration_of_plan(const cs_plan *plan, const cs_task_choices *choices,
                                   cs_configuration *out) CS_MUST_USE;
cs_status cs_configuration_copy(const cs_configuration *from, cs_configuration *out) CS_MUST_USE;
void cs_configuration_free(cs_configuration *configuration);
bool cs_configuration_equal(const cs_configuration *a, const cs_configuration *b);
/* How many streams it uses: one more than the last. */
int cs_configuration_streams(const cs_configuration *configuration);
/* Numbers streams by first appearance, so that equal schedules are equal configurations. */
void cs_configuration_number_streams(cs_configuration *configuration);
/* Every task once, behind those it depends on; streams and choices that there are. */
bool cs_configuration_valid(const cs_configuration *configuration, const cs_policy_input *input);

/* Placements and waits of a plan; the rest is cs_plan_finish's. */
cs_status cs_configuration_fill(const cs_configuration *configuration, const cs_policy_input *input,
                                cs_plan *out) CS_MUST_USE;
/* A finished and checked plan. */
cs_status cs_configuration_plan(const cs_configuration *configuration, const char *policy,
                                const cs_policy_input *input, cs_plan **out) CS_MUST_USE;

/* ---- In a profile: measured configurations are candidates of the whole program ---- */

/* "task.stream.candidate" for each launch, the candidate as the hash of its id: what a profile
 * keeps as the id. */
cs_status cs_configuration_text(const cs_configuration *configuration,
                                const cs_task_choices *choices, char **out) CS_MUST_USE;
/* False: not of this program, or of a candidate that is no choice (any more). */
cs_status cs_configuration_parse(const char *text, const cs_policy_input *input,
                                 cs_configuration *out, bool *valid) CS_MUST_USE;
/* The signature under which a program's configurations are kept: tasks, dependencies, buffers, and
 * whether they run as one graph or by stream calls. */
cs_status cs_program_signature(const cs_program *program, bool graph, char **out) CS_MUST_USE;

#endif
