/* The steps of profiling a program beyond times: what kernels its candidates consist of, their
 * counters, and how independent operations run together. Each adds what the profile lacks. */
#ifndef CONVSCHED_PROFILER_PROFILING_H_
#define CONVSCHED_PROFILER_PROFILING_H_

#include "profiler/corun_sets.h"
#include "profiler/measure_session.h"
#include "profiler/pareto.h"

typedef struct cs_profiling {
  cs_profile *profile;
  cs_backend *backend;
  const cs_program *program;
  const bool *tasks; /* which of the program's tasks; NULL: all */
  const cs_measure_options *options;
  const cs_logger *logger;
} cs_profiling;
cs_wanted cs_profiling_wanted(const cs_profiling *profiling, cs_measure_report *report);

/* Times, as cs_profile_program measures them. */
cs_status cs_profiling_measure(const cs_profiling *profiling,
                               cs_measure_report *report) CS_MUST_USE;

typedef struct cs_kernels_report {
  int recorded;          /* candidates whose kernels were added */
  int counted;           /* candidates whose counters were added */
  int differences;       /* sampled candidates that ran otherwise than the driver said (warned) */
  int untold_local;      /* kernels of these whose local memory the tracer left out */
  char unavailable[256]; /* why there are no counters; "" */
} cs_kernels_report;

/* Adds the kernels of the candidates within 3 times the fastest that have none, and with `counters`
 * the counters of the Pareto sets; nothing is timed. Under `frozen` nothing is done. Counters that
 * the device does not give are no error: report->unavailable says why. Adds to the report. */
cs_status cs_profiling_kernels(const cs_profiling *profiling, bool counters,
                               cs_kernels_report *report) CS_MUST_USE;

/* A set counts as confirmed with samples enough to compare; what was screened out has fewer. */
#define CS_CORUN_CONFIRMED 3
/* Jointly chosen candidates win a set if they take at most this share of the time of the fastest
 * alone, run together. */
#define CS_CORUN_WIN 0.97

typedef struct cs_corun_report {
  int sets, sets_cached,
      sets_skipped;        /* skipped: no combination fits the workspace limit, or runs */
  int combinations;        /* measured now */
  int traced, counted;     /* records whose overlap, whose counters were added */
  int limiter_differences; /* counters named another limiter than static resources do */
  double seconds;
  char unavailable[256]; /* why there are no counters; "" */
  char untraced[256];    /* why overlap is not known; "" */
} cs_corun_report;

/* Measures the sets of cs_corun_sets_of that the profile lacks: candidates of the Pareto sets in
 * combination, concurrent and serial. All times alone must be in the profile. NOT_FOUND under
 * `frozen` names the set that is missing. Adds to the report. */
cs_status cs_profiling_coruns(const cs_profiling *profiling, cs_corun_report *report) CS_MUST_USE;
/* Adds overlap and counters to the records of the fastest alone and of the best of each set, where
 * they lack them and the device gives them; counters of the first 32 sets. Nothing is timed, and
 * nothing done under `frozen`. */
cs_status cs_profiling_corun_counters(const cs_profiling *profiling,
                                      cs_corun_report *report) CS_MUST_USE;

/* The sets that cs_profiling_coruns measures; free() releases *out. */
cs_status cs_profiling_corun_sets(const cs_profiling *profiling, cs_corun_set **out,
                                  int *n) CS_MUST_USE;

/* What is known of one set. Pointers live until the profile is added to. */
typedef struct cs_corun_outcome {
  const cs_corun *fastest_alone; /* with the fastest of each; NULL: not measured */
  const cs_corun *best;          /* the fastest that is confirmed, `fastest_alone` included */
  const cs_corun *best_warm;     /* the same by warm times; NULL: none are known */
  bool fits;                     /* some combination stays within the workspace limit */
} cs_corun_outcome;
cs_status cs_profiling_corun_outcome(const cs_profiling *profiling, const cs_corun_set *set,
                                     cs_corun_outcome *out) CS_MUST_USE;

#endif
