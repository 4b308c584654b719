/* Timelines as a trace in Chrome's format, which Perfetto and chrome://tracing open
 * (docs/traces.md). Pure. */
#ifndef CONVSCHED_REPORT_TRACE_H_
#define CONVSCHED_REPORT_TRACE_H_

#include "report/timeline.h"

/* Processes of a trace. */
enum { CS_TRACE_MEASURED = 1, CS_TRACE_PLANNED = 2 };

typedef struct cs_trace_input {
  const cs_graph *bound; /* as it was before passes */
  const cs_program *program;
  const cs_plan *plan;
  const cs_device_info *device;
  const cs_timeline *planned, *measured; /* `measured` NULL: nothing was run */
} cs_trace_input;

/* {"schema", "displayTimeUnit", "otherData", "traceEvents"}; `other` is what otherData has beside
 * the nodes that no kernel computes. */
cs_status cs_trace_make(const cs_trace_input *input, json_t *other, json_t **out) CS_MUST_USE;

/* ---- Inside ---- */

/* When a slice is drawn, microseconds in steps of 0.001: one that began early, once the slice
 * before it on its stream has ended. */
typedef struct cs_trace_place {
  double start_us, end_us;
} cs_trace_place;
/* Counter tracks (trace_counters.c), appended to `events`: of an SM's resources where the device's
 * limits are known, of the arena. */
cs_status cs_trace_counters(const cs_trace_input *input, const cs_timeline *timeline, int process,
                            json_t *events) CS_MUST_USE;
/* A time in steps of a nanosecond. */
double cs_trace_us(double us);

#endif
