/* A session's plan as it was predicted and as it ran, for traces and reports. */
#ifndef CONVSCHED_RUNTIME_TIMELINES_H_
#define CONVSCHED_RUNTIME_TIMELINES_H_

#include "report/timeline.h"
#include "runtime/session.h"
#include "scheduler/trace_match.h"

typedef struct cs_timelines {
  cs_timeline planned;
  cs_timeline measured; /* of the run whose span is the median; empty where nothing was traced */
  int runs;             /* that were traced; 0 on a simulated device */
  double *spans_us;     /* of each, as they ran */
  int chosen;           /* which of them */
  int untraced;         /* launches that the tracer does not see: copies that the driver makes */
  cs_trace_match match; /* how sure it is which kernel is which */
} cs_timelines;

/* Traces `runs` runs (0: none; of a simulated device none ever) of the inputs last set. Nothing
 * should be timed after it. USAGE: a backend without a tracer; NOT_FOUND: the tracer is not to be
 * had, or what it saw cannot be told apart. */
cs_status cs_session_timelines(cs_session *session, int runs, cs_timelines *out) CS_MUST_USE;
void cs_timelines_free(cs_timelines *timelines);

#endif
