/* What reports are made from: a profile, of a file or of a device, and the graph as it is run
 * there. */
#ifndef CONVSCHED_RUNTIME_REPORT_SOURCE_H_
#define CONVSCHED_RUNTIME_REPORT_SOURCE_H_

#include "report/report.h"
#include "runtime/device.h"

typedef struct cs_report_source {
  cs_graph *bound, *passed;
  cs_profile *own; /* opened for this; NULL: the device's */
  cs_report_input input;
} cs_report_source;

/* `input` borrows from the options, too. To be closed in any case. Errors as of cs_report_create.
 */
cs_status cs_report_source_open(cs_device *device, const cs_graph *graph,
                                const cs_session_options *session, const cs_report_options *options,
                                cs_report_source *out) CS_MUST_USE;
void cs_report_source_close(cs_report_source *source);

#endif
