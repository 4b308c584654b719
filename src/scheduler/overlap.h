/* Concurrency promised and achieved: how much of what a plan predicts to run at the same time did
 * so. Pure: figures of intervals, and which block of the plan each traced kernel belongs to. */
#ifndef CONVSCHED_SCHEDULER_OVERLAP_H_
#define CONVSCHED_SCHEDULER_OVERLAP_H_

#include "scheduler/plan.h"

typedef struct cs_interval {
  double start_us, end_us;
} cs_interval;

typedef struct cs_overlap {
  double busy_us;       /* the lengths of all intervals together */
  double active_us;     /* time in which at least one runs */
  double overlapped_us; /* time in which two or more run */
  double span_us;       /* from the first start to the last end */
  double concurrency;   /* busy / active: 1, nothing ran beside anything; NaN: nothing ran */
} cs_overlap;
cs_status cs_overlap_of(const cs_interval *intervals, int n, cs_overlap *out) CS_MUST_USE;

/* What a plan's predicted timeline promises of each block, and (last) of the whole:
 * out[n_blocks + 1]. block_of[n_tasks] by task (cs_program_blocks). */
cs_status cs_overlap_predicted(const cs_plan *plan, const int *block_of, int n_blocks,
                               cs_overlap *out) CS_MUST_USE;

/* Finds the block of each traced kernel: block_of[n_traced], of told[n], the kernels of the
 * schedule as the driver tells them, and block_of_launch[n_launches]. Kernels of the same name,
 * grid and block of threads belong to blocks in the order in which they started: all of a later
 * block waits for all of an earlier one, so that this is no guess; which of a block's equal kernels
 * is whose does not matter to the block. NOT_FOUND, naming the kernel: of no known launch, told and
 * not traced (or more often, or the other way round), or started out of the blocks' order. */
cs_status cs_overlap_match(const cs_kernel_info *told, int n, const int *block_of_launch,
                           int n_launches, const cs_kernel_trace *traced, int n_traced,
                           int *block_of) CS_MUST_USE;
/* What a trace achieved, in the order of cs_overlap_predicted. */
cs_status cs_overlap_traced(const cs_kernel_trace *traced, const int *block_of, int n, int n_blocks,
                            cs_overlap *out) CS_MUST_USE;

#endif
