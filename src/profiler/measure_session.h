/* What is asked of one call that measures. */
#ifndef CONVSCHED_PROFILER_MEASURE_SESSION_H_
#define CONVSCHED_PROFILER_MEASURE_SESSION_H_

#include "profiler/measure.h"

typedef struct cs_wanted {
  cs_profile *profile;
  cs_backend *backend;
  const cs_measure_options *options;
  const cs_logger *logger;
  cs_measure_report *report;
} cs_wanted;

/* Measures the distinct operations among `descs` that the profile does not cover; `names` are those
 * of tasks, for messages. Adds to the report. */
cs_status cs_measure_wanted(const cs_wanted *wanted, const cs_op_desc *const *descs,
                            const char *const *names, int n) CS_MUST_USE;
/* measure_absent.c. Marks the operation's records whose candidates are not there; says so once of a
 * profile. *outdated: the library's installed version has never been asked for its candidates. */
cs_status cs_mark_absent(const cs_wanted *wanted, const char *name, const char *signature,
                         bool *outdated) CS_MUST_USE;
/* Sets up what all measurements of a call share (random values, anchor, scrub memory; the budget of
 * each of n operations) and warms up; releases it. */
cs_status cs_measuring_open(const cs_wanted *wanted, int n, cs_measuring *out) CS_MUST_USE;
void cs_measuring_close(cs_measuring *measuring);
/* Measures n operations in a session of their own. */
cs_status cs_measure_session(const cs_wanted *wanted, cs_operation *operations, int n) CS_MUST_USE;

#endif
