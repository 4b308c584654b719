/* Kinds of kernels: those of one name, grid and block of threads, which a trace cannot tell apart
 * by what they are. Pure. */
#ifndef CONVSCHED_SCHEDULER_KERNEL_KINDS_H_
#define CONVSCHED_SCHEDULER_KERNEL_KINDS_H_

#include "backend/backend.h"

/* Numbers the kinds of told[n], the kernels of a schedule as the driver tells them, and of
 * traced[n_traced], those of one run: told_kind[n], traced_kind[n_traced]. NOT_FOUND, naming the
 * kernel: told and not traced, or more often, or the other way round. */
cs_status cs_kernel_kinds(const cs_kernel_info *told, int n, const cs_kernel_trace *traced,
                          int n_traced, int *told_kind, int *traced_kind) CS_MUST_USE;

#endif
