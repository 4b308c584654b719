/* The profile: measurements by (operation signature, device identity, candidate), and the database
 * `convsched.profile/1` that keeps them: JSON lines, one appended per record under a lock. */
#ifndef CONVSCHED_PROFILER_PROFILE_H_
#define CONVSCHED_PROFILER_PROFILE_H_

#include "backend/backend.h"
#include "graph/program.h"

/* Bump when the way of measuring changes: older records become misses. */
#define CS_MEASURE_VERSION 1
/* Bump when a backend offers other candidates: what is measured stays, but operations are
 * enumerated and measured again. */
#define CS_CANDIDATES_VERSION 12
/* The last version that brought an operation of this signature other candidates on a device of this
 * identity: what an earlier one enumerated is not all. */
int cs_candidates_since(const char *device, const char *signature);

typedef struct cs_measurement {
  double cold_us; /* median; inputs and weights rotated over more than twice the cache */
  double warm_us; /* median; the same inputs and weights every time */
  double p10_us, p90_us, variation; /* of the cold samples */
  int samples;
  bool rejected; /* wrong result, out of bounds, failed to run: never planned with */
  char *reason;  /* why rejected; NULL */
} cs_measurement;

/* What n samples tell, each times `scale`, of what is run one way only: cold and warm are the same.
 */
cs_status cs_measurement_of(const double *samples, int n, double scale,
                            cs_measurement *out) CS_MUST_USE;

/* One kernel of a candidate. */
typedef struct cs_kernel_profile {
  cs_kernel_info info; /* `launch` means nothing here */
  bool counted;
  cs_counters counters; /* NaN where not known; all of it unless counted */
} cs_kernel_profile;

typedef struct cs_record {
  cs_candidate candidate;
  cs_measurement measured;
  cs_kernel_profile *kernels; /* in the order they run; NULL: not recorded */
  int n_kernels;
  bool absent; /* not there (cs_profile_mark_absent): never planned with; not in the file */
} cs_record;

/* Operations that were run together, each with one candidate and on a stream of its own. */
typedef struct cs_corun_member {
  char *signature, *candidate; /* the candidate's id */
} cs_corun_member;

typedef struct cs_corun {
  cs_corun_member *members; /* sorted by signature, then candidate; the same one may come twice */
  int n;
  double serial_us;                 /* median: one after the other, on one stream; NaN: not known */
  double concurrent_us;             /* median: each on its own stream */
  double p10_us, p90_us, variation; /* of the concurrent samples */
  int samples;
  /* The same medians with the same tensors and weights every time; NaN: not known. */
  double serial_warm_us, concurrent_warm_us;
  double
      overlap; /* share of the concurrent time in which at least two of them ran; NaN: not known */
  char limiter[16]; /* "registers", "shared", "blocks", "none"; "": not known */
  bool counted;
  cs_counters counters; /* of the concurrent run as a whole */
} cs_corun;

/* One enumeration that was measured to the end (a line of its own says so). */
typedef struct cs_completion {
  int64_t workspace_limit;
  int threads; /* cs_measure_options.threads it was done for; 0: any */
  bool full;
  int candidates; /* CS_CANDIDATES_VERSION of the program that did it; set when it is marked */
  int records;    /* how many of its candidates were known then; set when it is marked */
} cs_completion;

/* Everything known about one operation on one device. */
typedef struct cs_op_profile {
  char *signature;
  int candidates_since; /* cs_candidates_since of it */
  cs_record *records;   /* sorted by cold_us, rejected last; ties by id */
  int n_records;
  size_t capacity;
  bool complete;          /* a completion knew today's candidates */
  int64_t complete_limit; /* the largest workspace limit of those */
  cs_completion *completions;
  int n_completions;
  size_t completions_capacity;
} cs_op_profile;

typedef struct cs_profile cs_profile;

/* Opens (creating) the database below `directory` (NULL: $XDG_CACHE_HOME/convsched/v1, else
 * ~/.cache/convsched/v1) for one device identity. An unwritable directory warns once and keeps
 * everything in memory. Where the folder is larger than $CONVSCHED_CACHE_CAP (default 1 GiB), files
 * of other devices go, used longest ago first; USAGE if that is no number of bytes. Damaged lines
 * and lines of other versions are misses: counted, reported once with their line numbers, never
 * deleted. */
cs_status cs_profile_open(const char *directory, const char *device_identity,
                          const cs_logger *logger, cs_profile **out) CS_MUST_USE;
void cs_profile_close(cs_profile *profile);
/* NULL if nothing is known. Valid until the next call that adds to this operation. */
const cs_op_profile *cs_profile_find(const cs_profile *profile, const char *signature);
/* Hands out the signature of every operation of which anything is in the file. */
void cs_profile_signatures(const cs_profile *profile,
                           void (*use)(void *user, const char *signature), void *user);
/* Whether something is in the file of this operation, which has a prologue, in whatever layout. */
bool cs_profile_has_prologue(const cs_profile *profile, const cs_op_desc *desc);
/* The record of a candidate, by its id; NULL: none (or `operation` is NULL). */
const cs_record *cs_op_profile_record(const cs_op_profile *operation, const char *candidate);
/* Adds or replaces a record (by candidate id) and appends its line. */
cs_status cs_profile_add(cs_profile *profile, const char *signature, const cs_candidate *candidate,
                         const cs_measurement *measured) CS_MUST_USE;
/* Of a candidate that has a record (NOT_FOUND otherwise): while this profile is open it is not
 * there. *first: it is the first one that is marked so. */
cs_status cs_profile_mark_absent(cs_profile *profile, const char *signature, const char *candidate,
                                 bool *first) CS_MUST_USE;
/* Under this program's CS_CANDIDATES_VERSION. mark_complete: for any thread count, heuristics'
 * picks only. */
cs_status cs_profile_mark_complete(cs_profile *profile, const char *signature,
                                   int64_t workspace_limit) CS_MUST_USE;
cs_status cs_profile_mark_completion(cs_profile *profile, const char *signature,
                                     const cs_completion *completion) CS_MUST_USE;
/* True if what is known covers an enumeration under `wanted`: done by a program that knew today's
 * candidates, under at least the workspace limit, for the same threads (or for any, with
 * measurements for these), full if wanted so, and with no fewer records left than it had (damaged
 * lines are misses, to be measured again). */
bool cs_op_profile_covers(const cs_op_profile *operation, const cs_completion *wanted);
/* The same of what was looked for among the candidates of several operations, whose last version is
 * given (cs_program_candidates_since). */
bool cs_op_profile_covers_since(const cs_op_profile *operation, const cs_completion *wanted,
                                int candidates);
/* The same, done by a program of any age: of a device on which nothing can be measured again. */
bool cs_op_profile_covered_once(const cs_op_profile *operation, const cs_completion *wanted);
/* The last version that brought an operation of the program other candidates on the profile's
 * device. */
cs_status cs_program_candidates_since(const cs_profile *profile, const cs_program *program,
                                      int *out) CS_MUST_USE;
/* May this record be planned with: not rejected, there, workspace within the limit, deterministic
 * if wanted, prepared for `threads` threads (0: any; a candidate without a thread count fits all).
 */
bool cs_record_admissible(const cs_record *record, int64_t workspace_limit, bool deterministic,
                          int threads);
/* Puts the kernels of a candidate that has a record (NOT_FOUND otherwise), in place of older ones;
 * kernels that are not counted do not replace counted ones of the same names. */
cs_status cs_profile_add_kernels(cs_profile *profile, const char *signature, const char *candidate,
                                 const cs_kernel_profile *kernels, int n) CS_MUST_USE;
/* Adds or replaces the co-run of these members. Sorts nothing: cs_corun_sort first. */
cs_status cs_profile_add_corun(cs_profile *profile, const cs_corun *corun) CS_MUST_USE;
void cs_corun_sort(cs_corun *corun);
void cs_corun_clear(cs_corun *corun);
/* Co-runs whose members are of exactly these signatures (sorted, repeats included; signatures NULL:
 * all there are): pointers valid until the next call that adds. `*out` is released with free(). */
cs_status cs_profile_coruns(const cs_profile *profile, const char *const *signatures, int n,
                            const cs_corun ***out, int *count) CS_MUST_USE;
/* The device as it described itself: recorded once, so that a profile can be read elsewhere.
 * NULL: not recorded. Only name, identity, units, bytes, unit limits and clock are kept. */
cs_status cs_profile_set_device(cs_profile *profile, const cs_device_info *info) CS_MUST_USE;
const cs_device_info *cs_profile_device(const cs_profile *profile);
/* Opens one file (exported, or one of the cache, .gz too) to read, without a device; the identity
 * is that of its first readable line. Nothing is ever written to it. */
cs_status cs_profile_open_file(const char *path, const cs_logger *logger,
                               cs_profile **out) CS_MUST_USE;
const char *cs_profile_identity(const cs_profile *profile);
/* Writes every line of this device, the latest of each key, sorted, to `path` (.gz: compressed). */
cs_status cs_profile_export(const cs_profile *profile, const char *path) CS_MUST_USE;
/* Takes over the lines of a file that are of this device and method. BAD_INPUT names the other
 * device where the file has none of this one. */
cs_status cs_profile_import(cs_profile *profile, const char *path, int *taken) CS_MUST_USE;
const char *cs_profile_path(const cs_profile *profile); /* of the database file; NULL: memory */

typedef struct cs_measure_options {
  int64_t workspace_limit;
  bool deterministic, full, frozen, refresh;
  int threads; /* CPU: threads per stream; 0 elsewhere */
  bool (*cancelled)(void *user);
  void *user;
  const char *const *allows; /* as in cs_enumerate_options */
  int n_allows;
  /* Operations that earlier calls have reported, and these then report no more; NULL: none. */
  struct json_t *reported;
} cs_measure_options;

typedef struct cs_measure_report {
  int operations, operations_cached, candidates, candidates_rejected;
  double seconds;
} cs_measure_report;
void cs_measure_report_add(const cs_measure_report *more, cs_measure_report *to);

/* Makes sure that every task of the program has a complete set of measurements in the profile.
 * Each candidate's result is checked against the reference (guard bands around output and
 * workspace) before it is admitted; times are taken in a replayed chain, successive halving. A miss
 * under `frozen` is NOT_FOUND that names the task. */
cs_status cs_profile_program(cs_profile *profile, cs_backend *backend, const cs_program *program,
                             const cs_measure_options *options, const cs_logger *logger,
                             cs_measure_report *report) CS_MUST_USE;

/* Sustained rates measured once per device and kept in the profile under a signature of their own:
 * FLOP/s of the best matrix product or convolution in `precision`, bytes/s of a large copy. Used
 * for the roofline. A recorded device whose profile lacks them: 0, not known. */
cs_status cs_profile_peaks(cs_profile *profile, cs_backend *backend, cs_precision precision,
                           const cs_measure_options *options, double *flops,
                           double *bandwidth) CS_MUST_USE;
/* FLOP/s of the product among these alone, once they are measured; 0: not known. A convolution may
 * seem to do more than the units can, by an algorithm that saves products. */
cs_status cs_profile_product_peak(const cs_profile *profile, cs_backend *backend,
                                  cs_precision precision, double *flops) CS_MUST_USE;

#endif
