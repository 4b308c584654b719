/* What the steps of profiling.h share: a program's distinct operations, and operations prepared
 * again from the candidates that the profile holds. */
#ifndef CONVSCHED_PROFILER_PROFILING_OPERATIONS_H_
#define CONVSCHED_PROFILER_PROFILING_OPERATIONS_H_

#include "profiler/kernel_compare.h"
#include "profiler/profiling.h"

typedef struct cs_distinct_op {
  int task; /* the first that has it */
  char *signature;
} cs_distinct_op;
/* The distinct operations of the tasks profiled, in the program's order. Released with
 * cs_distinct_ops_free. */
cs_status cs_distinct_ops(const cs_profiling *profiling, cs_distinct_op **out, int *n) CS_MUST_USE;
void cs_distinct_ops_free(cs_distinct_op *operations, int n);

/* An operation with one trial a candidate (copied), none prepared. */
cs_status cs_operation_again(const cs_profiling *profiling, int task,
                             const cs_candidate *const *candidates, int n,
                             cs_operation *out) CS_MUST_USE;
/* Buffers of a prepared operation, the weights of each trial packed. */
cs_status cs_operation_buffers(const cs_measuring *measuring, cs_operation *operation,
                               cs_op_buffers *out) CS_MUST_USE;

/* profiling_counters.c: counters of at most CS_PARETO_MOST trials whose kernels are recorded; adds
 * to *counted how many were. The device has none: the message is in `reason`. */
cs_status cs_record_counters(const cs_measuring *measuring, const cs_op_buffers *buffers,
                             const cs_operation *operation, const cs_trial *const *trials, int n,
                             int *counted, char *reason, size_t reason_size) CS_MUST_USE;
/* Compares what one run's kernels took with what the driver said of them (cs_compare_kernels);
 * differences are warned about, once a candidate. Nothing is compared where the device does not
 * trace. */
cs_status cs_compare_traced(const cs_measuring *measuring, const cs_op_buffers *buffers,
                            const cs_operation *operation, const cs_trial *trial,
                            cs_kernel_comparison *out) CS_MUST_USE;

#endif
