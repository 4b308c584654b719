/* Ranges of time by name, for a profiler that shows them beside what it sees itself (Nsight
 * Systems, by NVTX). Without a profiler a range costs a few nanoseconds, in a build without NVTX
 * nothing. */
#ifndef CONVSCHED_BASE_RANGES_H_
#define CONVSCHED_BASE_RANGES_H_

#include <stdbool.h>

/* Whether this build has NVTX. */
bool cs_ranges_are_built(void);
/* Ranges of a thread nest. */
void cs_range_push(const char *name); /* NULL: unknown */
void cs_range_pop(void);

#endif
