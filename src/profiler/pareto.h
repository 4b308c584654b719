/* Pareto sets: of the candidates of an operation, those that are worth trying when it runs beside
 * others, because nothing else is both as fast and as sparing. Pure and deterministic. */
#ifndef CONVSCHED_PROFILER_PARETO_H_
#define CONVSCHED_PROFILER_PARETO_H_

#include "profiler/resources.h"

#define CS_PARETO_MOST 6     /* members of a set */
#define CS_PARETO_WITHIN 3.0 /* times the fastest */

typedef enum cs_cost {
  CS_COST_TIME, /* cold, microseconds */
  CS_COST_REGISTERS,
  CS_COST_SHARED,
  CS_COST_RESIDENCY, /* the larger of the shares of threads and block slots */
  CS_COST_WORKSPACE, /* bytes */
  CS_COST_UNITS,     /* SMs; CPU: threads */
  CS_COST_COUNT
} cs_cost;

typedef struct cs_pareto_point {
  double cost[CS_COST_COUNT]; /* less is better; INFINITY: not known */
} cs_pareto_point;

/* Of a candidate with these kernels (n 0: not recorded, then it takes none of the resources). */
cs_pareto_point cs_pareto_point_of(const cs_device_info *device, const cs_candidate *candidate,
                                   double cold_us, const cs_kernel_profile *kernels, int n_kernels);

/* Writes the indices of the set, fastest first, and returns how many there are (at most `most`).
 * Points slower than `within` times the fastest and dominated ones are out; of equal points the
 * first stays. Of a larger set remain the fastest, then the one with the smallest dominant share
 * (registers, shared memory, residency), then those with the least of each cost in turn, then the
 * faster ones. */
int cs_pareto_select(const cs_pareto_point *points, int n, double within, int most,
                     int out[CS_PARETO_MOST]);

/* Whether the set needs the kernels of a record and has them not: slower ones than CS_PARETO_WITHIN
 * allows, rejected ones, and those that are not there are never in it. */
bool cs_record_lacks_kernels(const cs_op_profile *operation, const cs_record *record);

/* The set of an operation: of its records that may be planned with under `options`. Where some
 * have kernels recorded, those that have none are left out, except the fastest. out[0] is the
 * fastest; 0 when there is none. Records point into `operation`. */
int cs_op_pareto(const cs_op_profile *operation, const cs_device_info *device,
                 const cs_measure_options *options, int most, const cs_record *out[CS_PARETO_MOST]);

#endif
