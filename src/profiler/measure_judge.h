/* What a checker's regions should hold, and whether they do: compared on the device where it can,
 * else what a trial wrote is held on the host until it is judged there. */
#ifndef CONVSCHED_PROFILER_MEASURE_JUDGE_H_
#define CONVSCHED_PROFILER_MEASURE_JUDGE_H_

#include "profiler/measure.h"

/* What a trial is run over: each byte of its output that is still this was not written. */
#define CS_POISON_BYTE 0xFF

/* The reference of a checker that knows desc and regions; what there is of it is released by
 * cs_judge_forget, also after an error. */
cs_status cs_judge_expect(const cs_op_buffers *buffers, cs_checker *checker) CS_MUST_USE;
void cs_judge_forget(cs_checker *checker);
/* Right behind a trial's run: rejects it where the device compares, else sets trial->held. */
cs_status cs_judge_result(const cs_op_buffers *buffers, const cs_checker *checker,
                          cs_trial *trial) CS_MUST_USE;
/* Judges n trials that hold results, on all cores, and lets go of these. */
cs_status cs_judge_held(const cs_checker *checker, cs_trial **trials, int n) CS_MUST_USE;

#endif
