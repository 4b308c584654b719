/* The passes that a graph goes through for a device. */
#ifndef CONVSCHED_RUNTIME_PASSES_H_
#define CONVSCHED_RUNTIME_PASSES_H_

#include "graph/graph.h"
#include "runtime/device.h"

/* All passes, with the prologues that the backend takes. */
cs_status cs_passes_for_backend(cs_backend *backend, const cs_graph *bound, cs_precision precision,
                                cs_pass_report *report, cs_graph **out) CS_MUST_USE;
/* With those that the device which a profile is of took. */
cs_status cs_passes_for_profile(const cs_profile *profile, const cs_graph *bound,
                                cs_precision precision, cs_pass_report *report,
                                cs_graph **out) CS_MUST_USE;

#endif
