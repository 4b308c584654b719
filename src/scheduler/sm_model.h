/* The SM model: predicts when the kernels of a schedule run on a GPU. Pure and deterministic.
 *
 * Blocks are handed out in launch order, as registers, shared memory, threads and block slots come
 * free, to the emptiest SMs first. SMs that hold the same blocks are one class with a count, so the
 * cost follows the number of classes, not of SMs. Blocks on one SM share its pipes and issue slots,
 * all blocks share L2 and DRAM: where measured demands exceed a capacity, whoever uses it slows
 * down in proportion. A kernel alone takes its measured time. docs/sm-model.md has the assumptions.
 */
#ifndef CONVSCHED_SCHEDULER_SM_MODEL_H_
#define CONVSCHED_SCHEDULER_SM_MODEL_H_

#include "profiler/resources.h"

/* What is shared by rate. The first four belong to one SM, the others to the device. */
typedef enum cs_sm_rate {
  CS_SM_ISSUE,
  CS_SM_ALU,
  CS_SM_FMA,
  CS_SM_TENSOR,
  CS_SM_L2,
  CS_SM_DRAM,
  CS_SM_RATES,
  CS_SM_UNIT_RATES = CS_SM_L2
} cs_sm_rate;
/* "issue", "alu", "fma", "tensor", "l2", "dram". */
const char *cs_sm_rate_name(cs_sm_rate rate);

/* Constants of a device family; where the defaults come from is said in docs/sm-model.md. */
typedef struct cs_sm_constants {
  double gap_us;    /* of a kernel's time alone, until its first block runs: SMs are free */
  double launch_us; /* from one launch to the next where several streams launch */
  double
      edge_warm_us; /* more for a kernel that waits for another where there are several streams */
  double edge_cold_us;                              /* … with nothing in the cache */
  double pipe_capacity, l2_capacity, dram_capacity; /* shares of the peak that can be sustained */
  double cache_share; /* of L2: what runs together within it finds its data there again */
} cs_sm_constants;
extern const cs_sm_constants cs_sm_h100;

typedef struct cs_sm_model cs_sm_model; /* used by one thread at a time */

/* `constants` NULL: cs_sm_h100. BAD_INPUT: the device does not tell what its units hold. */
cs_status cs_sm_model_create(const cs_device_info *device, const cs_sm_constants *constants,
                             cs_sm_model **out) CS_MUST_USE;
void cs_sm_model_destroy(cs_sm_model *model);
const cs_device_info *cs_sm_model_device(const cs_sm_model *model);
const cs_sm_constants *cs_sm_model_constants(const cs_sm_model *model);

/* A kernel made ready for simulation, once per candidate. */
typedef struct cs_sm_kernel {
  int64_t blocks; /* groups of blocks that run one after the other, where there are many waves */
  int cluster;    /* blocks that start together */
  int take[CS_RESOURCE_COUNT]; /* of an SM's resources by one block */
  double gap_us, block_us;     /* before the first block; of a block when the kernel is alone */
  double demand[CS_SM_RATES];  /* of a running block: share of an SM's, or of the device's peak */
} cs_sm_kernel;

/* `solo_us`: time of the kernel alone, launch gap included. `counters` NULL or values NaN: demand
 * not known, taken as none. BAD_INPUT: one block does not fit an SM, or a time that is none. */
cs_status cs_sm_kernel_prepare(const cs_sm_model *model, const cs_kernel_info *info,
                               const cs_counters *counters, double solo_us,
                               cs_sm_kernel *out) CS_MUST_USE;
/* The kernels of a candidate whose time alone is `solo_us`; out[record->n_kernels]. The time is
 * split by the kernels' counted durations, without them by their waves. NOT_FOUND: none recorded.
 */
cs_status cs_sm_kernels_prepare(const cs_sm_model *model, const cs_record *record, double solo_us,
                                cs_sm_kernel *out) CS_MUST_USE;
/* The same of n kernels; `candidate`: its id, for errors. */
cs_status cs_sm_kernel_list_prepare(const cs_sm_model *model, const char *candidate,
                                    const cs_kernel_profile *kernels, int n, double solo_us,
                                    cs_sm_kernel *out) CS_MUST_USE;

/* The share that kernel k of a candidate's n is given of its time, as above. */
double cs_sm_kernel_share(const cs_device_info *device, const cs_kernel_profile *kernels, int n,
                          int k);

/* n kernels as one: its blocks are all of theirs, a block takes what the greediest takes and as
 * long as theirs on average, the whole at least as long as the longest alone; one launch gap. */
void cs_sm_kernel_merge(const cs_sm_model *model, const cs_sm_kernel *const *kernels, int n,
                        cs_sm_kernel *out);

/* Parts of the device's SMs, the first part being the first SMs; what is left belongs to none. */
typedef struct cs_sm_parts {
  int n; /* 0: the device is not split */
  int units[CS_MAX_PARTS];
} cs_sm_parts;

/* One launch. Launches of a stream run one after the other. */
typedef struct cs_sm_launch {
  const cs_sm_kernel *kernel;
  int stream;       /* 0 … n − 1 of n launches */
  const int *waits; /* launches (smaller indices) that must have finished */
  int n_waits;
  int part;     /* where the device is split: whose SMs it keeps to; -1: all */
  int priority; /* 1: of what is ready, its blocks go first */
} cs_sm_launch;

typedef struct cs_sm_span {
  double start_us, end_us; /* of the first block and of the last */
} cs_sm_span;

typedef struct cs_sm_timeline {
  double total_us; /* from before the first launch to the end of the last */
  double overlap;  /* share of the time from the first start in which two streams or more ran */
  /* SM-microseconds for which a launch waited on an SM that another stream's blocks held, by what
   * was lacking; and block-microseconds by which sharing slowed blocks down, by what was shared. */
  double held[CS_RESOURCE_COUNT], slowed[CS_SM_RATES];
} cs_sm_timeline;

/* Runs the launches, in this order; `cold`: 0 warm … 1 cold. spans[n] may be NULL. Memory is kept
 * in the model: a further call with no more launches allocates nothing. BAD_INPUT names a launch
 * with an impossible stream or wait. */
cs_status cs_sm_simulate(cs_sm_model *model, const cs_sm_launch *launches, int n, double cold,
                         cs_sm_span *spans, cs_sm_timeline *out) CS_MUST_USE;
/* The same where the SMs are split. BAD_INPUT also for parts that are more than the SMs, for a
 * launch on a part that is not there, and for clusters that a part does not hold. */
cs_status cs_sm_simulate_parts(cs_sm_model *model, const cs_sm_parts *parts,
                               const cs_sm_launch *launches, int n, double cold, cs_sm_span *spans,
                               cs_sm_timeline *out) CS_MUST_USE;
/* The resource that held launches longest, "none" where nothing waited. */
const char *cs_sm_timeline_limiter(const cs_sm_timeline *timeline);

#endif
