/* Two programs of one graph, each under a plan of its own, timed in turn. */
#ifndef CONVSCHED_RUNTIME_TIMED_PROGRAMS_H_
#define CONVSCHED_RUNTIME_TIMED_PROGRAMS_H_

#include "runtime/session.h"
#include "runtime/timed_pair.h"

typedef struct cs_timed_program {
  const cs_program *program;
  const cs_task_choices *choices;
  const cs_plan *plan;
} cs_timed_program;

/* Another way to run a session's graph, all owned: beside its plan, or in the place of it. */
typedef struct cs_alternative {
  cs_program *program;
  cs_task_choices *choices;
  cs_plan *plan;
  cs_plan_bytes sequential;
} cs_alternative;
void cs_alternative_free(cs_alternative *a);
/* Fills plan and sequential: a plan of `coselect` as `policy` makes it of the input, which is of
 * the alternative's program and choices. */
cs_status cs_alternative_plan(const cs_policy *policy, const cs_policy_input *input,
                              cs_alternative *a) CS_MUST_USE;
/* The session's plan and the alternative change places. */
void cs_alternative_take(cs_session *session, cs_alternative *a);

/* Whether the session may time anything. */
bool cs_may_time_programs(const cs_session *session);

/* Under what the profile keeps the pair: an operation of the first one's program "beside BESIDE",
 * whose candidates are `names` with a hash of both plans. free() releases out->signature. */
cs_status cs_timed_programs_name(const cs_session *session, const cs_timed_program programs[2],
                                 const char *const names[2], const char *beside,
                                 cs_timed_pair *out) CS_MUST_USE;

#define CS_TIMED_PROGRAMS_SAMPLES 40
typedef struct cs_timed_samples {
  double us[2][CS_TIMED_PROGRAMS_SAMPLES]; /* pairs */
  int n;
} cs_timed_samples;
/* At least `least` and at most `most` pairs, no more than the least after so many seconds. `what`
 * is told in progress and where it is interrupted. */
cs_status cs_timed_programs_sample(cs_session *session, const cs_timed_program programs[2],
                                   const char *what, int least, int most, double seconds,
                                   cs_timed_samples *out) CS_MUST_USE;

#endif
