/* Inside of measuring: what the loops of measure_*.c share. One operation at a time is measured;
 * its candidates are enumerated and prepared in parallel, a batch of operations ahead. */
#ifndef CONVSCHED_PROFILER_MEASURE_H_
#define CONVSCHED_PROFILER_MEASURE_H_

#include "profiler/profile.h"

#define CS_GUARD_BYTES 4096
#define CS_MAX_CHAIN 64
#define CS_MAX_SAMPLES 24

/* ---- A candidate under measurement, and the operation it belongs to ---- */

typedef struct cs_trial {
  cs_candidate candidate;
  cs_exec *exec; /* NULL: not prepared */
  bool rejected;
  char reason[512]; /* why */
  bool recorded;    /* it is in the profile already */
  int64_t workspace_bytes, weight_bytes;
  int pool;            /* of its packed weights, in cs_op_buffers; -1: none */
  double rough_us;     /* one launch, from its check */
  unsigned char *held; /* what it wrote to the regions under check, until the host judges it */
  cs_schedule *cold;
  double samples[CS_MAX_SAMPLES]; /* cold, of the last round it was in, per launch */
  int n_samples;
  double warm_us;
} cs_trial;

typedef struct cs_operation {
  const cs_op_desc *desc;
  const char *name; /* of a task that has it */
  char *signature;
  cs_trial *trials;
  int n_trials;
} cs_operation;
void cs_operation_clear(const cs_backend *backend, cs_operation *operation);
/* Rejects with the message of `why`, which is consumed. Running out of memory is no property of the
 * candidate: that status is returned instead. */
cs_status cs_trial_reject(cs_trial *trial, const char *what, cs_status why) CS_MUST_USE;
void cs_trial_reject_text(cs_trial *trial, const char *format, ...) CS_PRINTF(2, 3);

typedef struct cs_anchor cs_anchor;

typedef struct cs_measuring {
  cs_profile *profile;
  cs_backend *backend;
  const cs_measure_options *options;
  const cs_logger *logger;
  cs_measure_report *report;
  float *normals;   /* standard normal values that tensors are filled from, in turn */
  double budget_us; /* for the samples of one operation */
  void *scrub;      /* device memory that is overwritten to empty the cache; NULL: none */
  int64_t scrub_bytes;
  double scrub_us; /* what that takes */
  cs_anchor *anchor;
  const char *stage; /* as progress names it; NULL: nothing is reported */
  int at, of;        /* the operation, set or the like under way, and how many there are */
} cs_measuring;
/* Reports that. `candidate` NULL: nothing to tell of one. Not while something is timed. */
void cs_measuring_tell(const cs_measuring *measuring, const char *operation, const char *candidate);
bool cs_measuring_cancelled(const cs_measuring *measuring);
/* Measures the operations (those that the profile does not cover yet). */
cs_status cs_measure_operations(cs_measuring *measuring, cs_operation *operations,
                                int n) CS_MUST_USE;
/* One operation whose trials are prepared; results go to the profile, and the operation is marked
 * complete. */
cs_status cs_measure_operation(cs_measuring *measuring, cs_operation *operation) CS_MUST_USE;

/* ---- measure_prepare.c ---- */

/* Appends the backend's baselines, under `full` or where a pattern matches their ids, marked as
 * such.
 */
cs_status cs_add_baselines(cs_backend *backend, const cs_op_desc *desc,
                           const cs_enumerate_options *options,
                           cs_candidate_list *list) CS_MUST_USE;
/* Enumerates and prepares the candidates of n operations, in parallel; of each operation the first
 * `most`, as the backend orders them (0: all). */
cs_status cs_prepare_operations(const cs_measuring *measuring, cs_operation *operations, int n,
                                int most) CS_MUST_USE;
/* Prepares the trials that n operations have, in parallel; rejects those that cannot be. */
cs_status cs_prepare_trials(const cs_measuring *measuring, cs_operation *operations,
                            int n) CS_MUST_USE;

/* ---- measure_retire.c ---- */

/* Rejects what the profile knows of the operation, is not among its trials and the backend cannot
 * prepare any more. What is of another version of its library stays as it is, unless the installed
 * one has nothing for the operation: then it is rejected, too, lest it be asked every time. */
cs_status cs_retire_candidates(const cs_measuring *measuring,
                               const cs_operation *operation) CS_MUST_USE;

/* ---- measure_buffers.c: memory of one operation ---- */

typedef struct cs_guarded { /* device memory between two bands of a known pattern */
  void *allocation;
  char *base;
  int64_t front; /* bytes of the band before base */
} cs_guarded;

typedef struct cs_weight_pool { /* copies of one packed form of the weights */
  void *packed;
  int64_t bytes;
  void **copies;
  int n_copies;
} cs_weight_pool;

typedef struct cs_op_buffers {
  cs_backend *backend;
  const cs_op_desc *desc;
  int n_sets;          /* copies of inputs and output */
  cs_guarded *inputs;  /* [set × CS_MAX_OP_INPUTS + input] */
  cs_guarded *outputs; /* [set] */
  cs_guarded workspace;
  int64_t workspace_bytes;
  cs_weight_pool *pools;
  size_t n_pools, pools_capacity;
  void *host_inputs[CS_MAX_OP_INPUTS]; /* as they lie on the device */
  float *weight, *bias;                /* rounded to the storage type; NULL: none */
} cs_op_buffers;
/* One set of inputs (standard normal; variance-preserving weights) and output; workspace of the
 * largest trial. */
cs_status cs_op_buffers_create(const cs_measuring *measuring, const cs_operation *operation,
                               cs_op_buffers *out) CS_MUST_USE;
/* NO_MEMORY if one set cannot fit the device: found out before candidates are enumerated, and
 * before the host makes the tensors. */
cs_status cs_measure_check_fits(const cs_backend *backend, const cs_op_desc *desc) CS_MUST_USE;
void cs_op_buffers_destroy(cs_op_buffers *buffers);
/* Grows to n sets; and the trial's pool of weights to n copies of at most `most_bytes` together. */
cs_status cs_op_buffers_grow(cs_op_buffers *buffers, int n) CS_MUST_USE;
cs_status cs_op_buffers_grow_pool(cs_op_buffers *buffers, const cs_trial *trial, int n,
                                  int64_t most_bytes) CS_MUST_USE;
/* Packs the trial's weights and sets its pool, one that holds the same bytes where there is one. */
cs_status cs_op_buffers_pack(cs_op_buffers *buffers, cs_trial *trial) CS_MUST_USE;
/* Bytes that one launch touches, packed weights included. */
int64_t cs_op_buffers_set_bytes(const cs_op_buffers *buffers);
cs_launch cs_op_buffers_launch(const cs_op_buffers *buffers, const cs_trial *trial, int set);
cs_status cs_guard_arm(cs_backend *backend, const cs_guarded *memory, int64_t bytes) CS_MUST_USE;
/* *intact: neither band of memory of `bytes` bytes was written to. */
cs_status cs_guard_intact(cs_backend *backend, const cs_guarded *memory, int64_t bytes,
                          bool *intact) CS_MUST_USE;

/* ---- measure_check.c, measure_judge.c: is a candidate's result right? ---- */

typedef struct cs_check_region {                  /* the whole output or one image of it */
  int64_t output_at, inputs_at[CS_MAX_OP_INPUTS]; /* bytes from the start of each tensor */
  double *value, *magnitude;                      /* NULL: the device has them */
} cs_check_region;

typedef struct cs_checker {
  cs_backend *backend;
  cs_op_desc desc; /* of a region */
  cs_check_region regions[CS_MAX_EXPECTED];
  int n_regions;
  int64_t elements, span; /* of a region */
  cs_expected *expected;  /* of all regions, on a device that compares; NULL: the host does */
  unsigned char *owned;   /* [span] 1: a byte of the view, 0: of what lies between; NULL: dense */
} cs_checker;
cs_status cs_checker_create(const cs_measuring *measuring, const cs_op_buffers *buffers,
                            cs_checker *out) CS_MUST_USE;
void cs_checker_destroy(cs_checker *checker);
/* Runs each trial once and rejects it or sets its rough_us; results are judged on the device or on
 * all cores.
 * Errors: the device itself, CANCELLED. */
cs_status cs_checker_check_all(const cs_measuring *measuring, cs_op_buffers *buffers,
                               const cs_checker *checker, cs_operation *operation) CS_MUST_USE;
/* CS_OK when the device still works; else `what` went wrong last. */
cs_status cs_device_alive(const cs_op_buffers *buffers) CS_MUST_USE;

/* ---- measure_rounds.c: timing, successive halving ---- */

/* Device memory that copies to rotate through may take. */
int64_t cs_measure_memory_cap(const cs_measuring *measuring);
cs_status cs_time_trials(cs_measuring *measuring, cs_op_buffers *buffers,
                         cs_operation *operation) CS_MUST_USE;

/* ---- measure_steady.c: which sweeps of final samples count ---- */

/* The anchor is sampled before the first sweep and after each: sweep s lies between s and s + 1. */
typedef struct cs_sweeps {
  int n;
  double anchors[CS_MAX_SAMPLES + 1]; /* all 1 where there is no anchor */
  bool steady[CS_MAX_SAMPLES];
  int n_steady;
} cs_sweeps;
/* Samples the anchor (NULL: none) before the first sweep; after a sweep, whose steadiness, and that
 * of those before it, is then known: the anchor on either side is within 2% of the median. */
cs_status cs_sweeps_begin(cs_sweeps *sweeps, cs_anchor *anchor) CS_MUST_USE;
cs_status cs_sweeps_end_one(cs_sweeps *sweeps, cs_anchor *anchor) CS_MUST_USE;
/* Sweeps that are not steady are replaced, up to half as many as wanted. */
bool cs_sweeps_done(const cs_sweeps *sweeps, int wanted);
/* Keeps a trial's samples of steady sweeps, in place, and returns how many; all of them on a device
 * that was not steady for half of those wanted. */
int cs_sweeps_keep(const cs_sweeps *sweeps, int wanted, double *samples);

/* ---- measure_kernels.c: what candidates consist of ---- */

/* Records the kernels of those trials that are within 3 times the operation's fastest record and
 * have none there. Their results are checked and weights packed. Nothing to do on a device whose
 * kernels are not known. *recorded (may be NULL) grows by the number of candidates. */
cs_status cs_record_kernels(const cs_measuring *measuring, const cs_op_buffers *buffers,
                            const cs_operation *operation, int *recorded) CS_MUST_USE;
/* A schedule of one launch of a trial. */
cs_status cs_trial_schedule(const cs_op_buffers *buffers, const cs_trial *trial,
                            cs_schedule **out) CS_MUST_USE;

/* ---- measure_anchor.c: warming the clock up and noticing that it drifts ---- */

/* *out NULL: the device has nothing that could serve. */
cs_status cs_anchor_create(const cs_measuring *measuring, cs_anchor **out) CS_MUST_USE;
void cs_anchor_destroy(cs_anchor *anchor);
cs_status cs_anchor_warm_up(cs_anchor *anchor, double seconds) CS_MUST_USE;
cs_status cs_anchor_sample(cs_anchor *anchor, double *us) CS_MUST_USE;
double cs_anchor_cost_us(const cs_anchor *anchor); /* of a sample; 0 for NULL */
/* A square convolution, stride 1, same size out as in, dense. */
cs_op_desc cs_measure_conv_desc(int64_t images, int64_t channels, int64_t extent, int64_t kernel,
                                cs_precision precision, cs_layout layout);

#endif
