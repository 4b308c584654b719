/* What kernels take of a unit (SM), as shares of what its resident blocks have in common. Pure. */
#ifndef CONVSCHED_PROFILER_RESOURCES_H_
#define CONVSCHED_PROFILER_RESOURCES_H_

#include "profiler/profile.h"

typedef enum cs_resource {
  CS_RESOURCE_REGISTERS,
  CS_RESOURCE_SHARED,
  CS_RESOURCE_THREADS,
  CS_RESOURCE_BLOCKS,
  CS_RESOURCE_COUNT
} cs_resource;
/* "registers", "shared", "threads", "blocks". */
const char *cs_resource_name(cs_resource resource);

/* Demand of a kernel whose blocks lie as densely as they fit; of several kernels, the maximum. */
typedef struct cs_demand {
  bool known;
  double share[CS_RESOURCE_COUNT]; /* of a unit's total, by the blocks resident on it */
  int resident;                    /* those blocks */
  int units;                       /* that the blocks fill, at most the device's */
  double waves;                    /* blocks over what all units hold at once */
} cs_demand;

/* Registers of a thread as the hardware hands them out: in steps of 8. The driver tells what was
 * compiled, a tracer what was handed out. */
int cs_registers_given(int registers);

/* Registers are allocated by the warp, in steps of 8 a thread and 256 a warp, shared memory in
 * steps of 128 bytes beside what the driver reserves. Shares of a resource whose total is not
 * known are 0. */
cs_demand cs_kernel_demand(const cs_unit_limits *unit, int units, const cs_kernel_info *kernel);
/* Not known without kernels or without a unit's limits. */
cs_demand cs_kernels_demand(const cs_device_info *device, const cs_kernel_profile *kernels, int n);
/* What keeps n candidates from being resident together on every unit: the resource that fills
 * first. "none" where they fit beside or between each other, "" where a demand is not known. */
const char *cs_demands_limiter(const cs_device_info *device, const cs_demand *const *demands,
                               int n);
/* What counters of blocks held up say: the resource with most of it, "none", "" if not known. */
const char *cs_counters_limiter(const cs_counters *counters);

/* Share of the time from the first start to the last end in which kernels of at least two streams
 * (or two kernels, where streams are not known) ran. `trace` in order of start. NaN for none. */
double cs_trace_overlap(const cs_kernel_trace *trace, int n);

#endif
