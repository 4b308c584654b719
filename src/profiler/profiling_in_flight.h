/* Candidates measured with several requests in flight: copies of one launch at a time, each on a
 * stream and tensors of its own. */
#ifndef CONVSCHED_PROFILER_PROFILING_IN_FLIGHT_H_
#define CONVSCHED_PROFILER_PROFILING_IN_FLIGHT_H_

#include "profiler/profiling.h"

typedef struct cs_in_flight_report {
  int measured; /* candidates, now */
  int left_out; /* operations, as the time was up or there was no room for so many */
} cs_in_flight_report;

/* Under what an operation's candidates are kept, and a program's schedules; a record's time is that
 * from one end to the next. free() releases *out. */
cs_status cs_in_flight_signature(const char *signature, int in_flight, char **out) CS_MUST_USE;

/* Measures, of the program's operations, the candidates within 4 times the fastest alone that the
 * profile lacks a record of with 2 to CS_MAX_CHAIN in flight, for at most `seconds`. Times alone
 * must be in the profile. Adds to the report. CANCELLED keeps what was measured. */
cs_status cs_profiling_in_flight(const cs_profiling *profiling, int in_flight, double seconds,
                                 cs_in_flight_report *report) CS_MUST_USE;

#endif
