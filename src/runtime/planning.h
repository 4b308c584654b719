/* Planning: from a graph to a plan. Steps of their own so that each can be read alone. */
#ifndef CONVSCHED_RUNTIME_PLANNING_H_
#define CONVSCHED_RUNTIME_PLANNING_H_

#include "base/names.h"
#include "runtime/session.h"

#define CS_PLAN_FILE_BYTES ((size_t)256 << 20) /* at most, of a plan file that is read */

/* What a policy may choose from: measured, admissible, not banned; one if the task's node is
 * pinned. NOT_FOUND: nothing is left, or a pin names nothing (near candidates are gathered in
 * `near`, zero at first, over the layouts tried); BAD_INPUT: a pin names what may not be used;
 * USAGE: two pins of a node. */
cs_status cs_choices_of_program(const cs_profile *profile, const cs_program *program,
                                const cs_settings *settings, int threads, cs_near *near,
                                cs_task_choices **out) CS_MUST_USE;
/* The same of one operation, whose node is not pinned; none is no error. cs_choices_clear releases
 * it. */
cs_status cs_choices_of_desc(const cs_profile *profile, const cs_op_desc *desc,
                             const cs_settings *settings, int threads,
                             cs_task_choices *out) CS_MUST_USE;
void cs_choices_clear(cs_task_choices *choices);
/* Whether options ban a candidate, or do not allow it for the operation. */
bool cs_choices_exclude(const cs_settings *settings, const cs_op_desc *desc, const char *id);
/* Which of them can begin early when the program runs as a graph, as the backend tells. */
void cs_choices_begin_early(const cs_backend *backend, cs_task_choices *choices, int n_tasks);
/* seen[n_bans]: whether a task's operation has the candidate that is banned, marked over several
 * programs (layouts differ in their candidates); then NOT_FOUND for the first that none had, naming
 * near ones of `program`. */
cs_status cs_bans_seen(const cs_profile *profile, const cs_program *program,
                       const cs_settings *settings, bool *seen) CS_MUST_USE;
cs_status cs_bans_check(const cs_profile *profile, const cs_program *program,
                        const cs_settings *settings, const bool *seen) CS_MUST_USE;
void cs_choices_free(cs_task_choices *choices, int n_tasks);
/* The sum of the fastest candidates' cold times, microseconds (layouts.c). */
double cs_program_cost(const cs_program *program, const cs_task_choices *choices);

/* Requests in flight that are planned for; 1: one request's latency counts. */
int cs_session_in_flight(const cs_session *session);
/* Under what the profile keeps what was measured of a program's whole schedules: those for requests
 * in flight apart from those for latency. free() releases *out. */
cs_status cs_session_schedules_signature(const cs_session *session, const cs_program *program,
                                         char **out) CS_MUST_USE;

/* What the session's policy gets; program and choices are there. */
cs_policy_input cs_planning_input(const cs_session *session);
/* The same with the model of timelines and what was measured of whole schedules, to plan again as
 * the session did; cs_planning_input_close releases the model. */
cs_status cs_planning_input_open(const cs_session *session, cs_policy_input *out) CS_MUST_USE;
void cs_planning_input_close(cs_policy_input *input);

/* The splits of the device that an option allows, out[CS_MOST_SPLITS]: none, the one it names, or
 * (`partition` NULL) the default ones. USAGE: not numbers; BAD_INPUT: not of this device. */
cs_status cs_partition_splits(const char *partition, const cs_device_info *info, cs_sm_parts *out,
                              int *n) CS_MUST_USE;

/* Binds the batch, applies passes, opens the profile; what to measure for the session's policy. */
cs_status cs_planning_begin(cs_session *session, cs_measure_options *measure) CS_MUST_USE;

/* planned.division of options.micro_batches, where it says how many parts. */
cs_status cs_divide_as_asked(cs_session *session) CS_MUST_USE;

/* The cheapest layout assignment by measured times, lowered. Measures what it needs. */
cs_status cs_choose_program(cs_session *session, const cs_measure_options *measure,
                            cs_program **out) CS_MUST_USE;

/* FLOP/s (of products alone, or 0: none was measured) and bytes/s that the device sustains in the
 * session's precision, all cores together. Where `seen` FLOP/s say that they were measured while
 * something else held the device they are measured again. FLOP/s 0 of a recorded device: unknown.
 */
cs_status cs_sustained_rates(cs_session *session, const cs_measure_options *measure, bool products,
                             double seen, double *flops, double *bandwidth) CS_MUST_USE;

/* Fills the bounds of the session's plan (roofline.c). */
cs_status cs_compute_bounds(cs_session *session, const cs_device_info *info,
                            const cs_measure_options *measure) CS_MUST_USE;

/* On a CPU: takes one stream with all cores in place of the session's plan (program, choices, plan)
 * where it is faster, timed in turn, or as the profile has it; where nothing may be measured and
 * nothing is known, where it is predicted so. `measure` is what the plan was made under, `streams`
 * how that went (consumed): where none on several streams holds the memory limit, one that does is
 * taken unseen. */
cs_status cs_consider_one_stream(cs_session *session, const cs_measure_options *measure,
                                 cs_status streams) CS_MUST_USE;

/* Threads of one stream on this device (0 where that has no meaning). */
int cs_threads_per_stream(const cs_device_info *info, int n_streams);

/* Threads of a stream as the session plans. */
int cs_session_threads(const cs_session *session);

#endif
