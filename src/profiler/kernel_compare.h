/* Two sources that should agree on what kernels take: the driver's view of a captured schedule, and
 * what a tracer saw run. Pure. */
#ifndef CONVSCHED_PROFILER_KERNEL_COMPARE_H_
#define CONVSCHED_PROFILER_KERNEL_COMPARE_H_

#include "backend/backend.h"

typedef struct cs_kernel_comparison {
  int differences;
  /* Kernels of which the driver tells local memory and the tracer none: a tracer leaves it out of
   * some kernels that spill little (32 or 48 bytes a thread). Known, and no difference. */
  int untold_local;
} cs_kernel_comparison;

/* Appends a line to `lines` for each difference in registers per thread (as they are handed out),
 * static and dynamic shared memory and local memory (bytes), grid or block, and for each kernel
 * that only one side has. Kernels are paired by name, equal ones first, in any order. NO_MEMORY. */
cs_status cs_compare_kernels(const cs_kernel_info *told, int n, const cs_kernel_trace *traced,
                             int n_traced, cs_strbuf *lines, cs_kernel_comparison *out) CS_MUST_USE;

#endif
