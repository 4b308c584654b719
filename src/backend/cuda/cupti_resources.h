/* Two sources that should agree on a kernel's resources: the driver's view of a captured graph, and
 * what CUPTI saw run. Pure. */
#ifndef CONVSCHED_BACKEND_CUDA_CUPTI_RESOURCES_H_
#define CONVSCHED_BACKEND_CUDA_CUPTI_RESOURCES_H_

#include "backend/backend.h"

/* Appends a line to `out` for each difference in registers per thread, static and dynamic shared
 * memory and local memory (bytes), grid or block, and for each kernel that only one side has, and
 * sets *differences to their number. Kernels are paired by name, equal ones first, in any order. */
cs_status cs_cuda_compare_resources(const cs_kernel_info *kernels, int n,
                                    const cs_kernel_trace *traced, int n_traced, cs_strbuf *out,
                                    int *differences) CS_MUST_USE;

#endif
