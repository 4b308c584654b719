/* Counters as the member "counters" of a line's object, and back. */
#ifndef CONVSCHED_PROFILER_RECORD_COUNTERS_H_
#define CONVSCHED_PROFILER_RECORD_COUNTERS_H_

#include <jansson.h>
#include <stdbool.h>

#include "profiler/counters.h"

/* False: out of memory. NaN is left out. */
bool cs_counters_to_json(const cs_counters *counters, json_t *into);
/* False: damaged. No such member: not counted, all NaN; other names in it are passed over. */
bool cs_counters_from_json(const json_t *from, bool *counted, cs_counters *out);
/* Six significant digits; NaN for what is not a number of at least 0, all of it if not counted. */
void cs_counters_normalise(bool counted, cs_counters *counters);

#endif
