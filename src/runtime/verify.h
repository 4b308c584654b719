/* The parts of verification; verify.c strings them together. */
#ifndef CONVSCHED_RUNTIME_VERIFY_H_
#define CONVSCHED_RUNTIME_VERIFY_H_

#include "runtime/session.h"

/* Not passed, and why: appended to what is known to be wrong, as far as there is room. */
void cs_found_wrong(cs_verification *result, const char *format, ...) CS_PRINTF(2, 3);

/* Whether every candidate gives the same bits every time; where not, outputs of two runs may differ
 * by so much (relative L2). */
bool cs_plan_is_deterministic(const cs_plan *plan);
double cs_rounding_limit(cs_precision precision);
/* Relative L2 difference of two arrays; what is the same NaN or infinity in both counts as none. */
double cs_relative_difference(const float *a, const float *b, int64_t count);

/* The plan's candidates on one stream, every buffer with bytes of its own. */
cs_status cs_serial_plan(const cs_plan *plan, const cs_program *program, cs_plan **out) CS_MUST_USE;

/* A run of the plan's candidates one after the other, every buffer with bytes of its own;
 * workspaces share one region, which the partial order of one stream allows. */
typedef struct cs_serial_run {
  const cs_session *session;
  const cs_plan *plan;
  cs_realised realised;
} cs_serial_run;

/* Checks nodes of the serial run (all of them, or a sample) against the reference. With
 * `outputs_finite` false also each node that gave a NaN or an infinity from finite inputs: where
 * such outputs come from. */
cs_status cs_verify_nodes(const cs_serial_run *run, cs_verify_level level, bool outputs_finite,
                          cs_verification *result) CS_MUST_USE;

#endif
