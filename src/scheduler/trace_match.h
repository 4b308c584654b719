/* Which launch of a plan each traced kernel is. Pure. */
#ifndef CONVSCHED_SCHEDULER_TRACE_MATCH_H_
#define CONVSCHED_SCHEDULER_TRACE_MATCH_H_

#include "scheduler/plan.h"

typedef struct cs_trace_match {
  /* Kernels beside which another one of the same kind (name, grid, threads) could have started just
   * as well by all that the plan says: which of them it is, is a choice. */
  int ambiguous;
} cs_trace_match;

/* Finds told[told_of[i]] to be traced[i]: told[n] are the kernels of the plan's launches (`launch`
 * is a plan position; those of one launch in the order they run), traced[n_traced] those of one
 * run, by start. Kernels are of one kind, and start in an order that streams and waits of the plan
 * allow: no kernel before the ones that it waits for have ended (where it begins early: have
 * started); where several could be it, one on the stream of the plan that its own stream served
 * before. NOT_FOUND, naming the kernel: traced other than as often as told, or no such order is
 * found. */
cs_status cs_trace_match_launches(const cs_plan *plan, const cs_kernel_info *told, int n,
                                  const cs_kernel_trace *traced, int n_traced, int *told_of,
                                  cs_trace_match *out) CS_MUST_USE;

#endif
