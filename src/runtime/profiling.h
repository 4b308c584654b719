/* Inside of cs_profile_model: one profiling of a network, and its report. */
#ifndef CONVSCHED_RUNTIME_PROFILING_H_
#define CONVSCHED_RUNTIME_PROFILING_H_

#include "profiler/profiling_operations.h"
#include "runtime/planning.h"

typedef struct cs_model_profiling {
  cs_session *session; /* planned.graph bound and passed; nothing realised */
  cs_profile_options options;
  cs_measure_options measure; /* of the policy profiled last */
  json_t *reported;           /* as in cs_measure_options */
  bool refreshed;             /* what `measure` asks for has been measured anew already */
  cs_program *program;        /* the layouts that are cheapest by what was measured */
  bool *tasks;                /* of the program; NULL: all */
  cs_measure_report measured;
  cs_kernels_report kernels;
  cs_corun_report coruns;
  cs_device_state before, after;
  bool state_known;
} cs_model_profiling;
cs_profiling cs_model_steps(const cs_model_profiling *p, const cs_program *program,
                            const bool *tasks);

/* `convsched.profile-report/1`; logs its warnings. */
cs_status cs_model_report(const cs_model_profiling *p, char **out) CS_MUST_USE;

#endif
