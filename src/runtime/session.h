/* Inside of a session: what planning produced, what was realised on the device, and the steps that
 * session.c strings together. */
#ifndef CONVSCHED_RUNTIME_SESSION_H_
#define CONVSCHED_RUNTIME_SESSION_H_

#include "runtime/device.h"
#include "runtime/params.h"
#include "runtime/search_report.h"
#include "runtime/stage_costs.h"
#include "scheduler/policy.h"

/* The caller's options with strings of our own. */
typedef struct cs_settings {
  cs_session_options options; /* string members point below or are NULL */
  char *policy, *weights_path, *cache_dir, *plan_path, *partition;
  char **pins, **bans, **keep, **allows;
} cs_settings;
cs_status cs_settings_copy(const cs_session_options *from, cs_settings *out) CS_MUST_USE;
void cs_settings_free(cs_settings *settings);

/* A graph's outputs for some inputs, in double precision, row-major. */
typedef struct cs_known_outputs {
  double **values; /* per output; NULL: not known */
  int n;
  uint64_t hash; /* of graph and inputs */
} cs_known_outputs;

/* Parameters, and what is computed of them alone, shared by forked sessions (used by one thread at
 * a time, as their device is). */
typedef struct cs_shared_params {
  cs_params *params; /* NULL: the device is simulated */
  cs_known_outputs known;
  int references;
  bool not_finite_told; /* that one of them is a NaN or an infinity */
} cs_shared_params;

typedef struct cs_upload_times { /* seconds */
  double all;
  double buffers; /* getting host memory */
  double pack;    /* from files to the device's form */
  double copy;    /* to the device, beside packing or not */
  double wait;    /* for copies that were not done when they had to be */
} cs_upload_times;

typedef struct cs_timings { /* seconds */
  double load, passes, profile, plan;
  double prepare;         /* candidates, arena and schedule */
  cs_upload_times upload; /* packing and uploading weights */
} cs_timings;

/* What planning produces, all pure data. */
typedef struct cs_planned {
  cs_graph *bound; /* batch bound, before passes */
  cs_graph *graph; /* after passes */
  cs_pass_report passes;
  uint64_t graph_hash;   /* of `bound` */
  cs_division *division; /* that was asked for; NULL: none */
  cs_program *program;
  cs_task_choices *choices; /* per task */
  cs_plan *plan;
  bool one_stream; /* cs_consider_one_stream took it: choices are for all cores */
  cs_bounds bounds;
  cs_plan_bytes sequential; /* of the sequential plan of the same program, with `choices` only */
  cs_measure_report measured;
} cs_planned;

/* Tasks of a plan whose candidates the backend does not have (any more), or not within the planned
 * workspace. */
typedef struct cs_missing {
  int gone, grown; /* how many tasks of each */
  int first;       /* plan position */
} cs_missing;

/* A plan on a device: prepared candidates, packed weights, arena, schedule. */
typedef struct cs_realised {
  cs_backend *backend;
  cs_exec **execs; /* distinct ones */
  int n_execs;
  int *exec_of;  /* per plan task */
  void *weights; /* device */
  int64_t weights_bytes;
  int64_t *weight_offset; /* per plan task; parts of a node that pack the same bytes share them */
  cs_upload_times uploading;
  void **weights_at; /* per plan task: where they are, instead of the two above; or NULL */
  void *arena;       /* device */
  int64_t arena_bytes;
  cs_launch *launches; /* per plan task; waits point into the plan */
  int n_launches;
  cs_schedule *schedule;
  int kernels;        /* of one run */
  bool no_graph;      /* stream calls for every run; set before realising */
  bool borrowed;      /* execs and weights belong to another one */
  cs_missing missing; /* where realising failed for this */
  bool beside;        /* runs while others do (cs_stream_set); set before realising */
} cs_realised;

/* A divided program beside the plan there was. */
typedef struct cs_micro_trial {
  int streams, nodes, tasks;   /* nodes: divided ones */
  double whole_us, divided_us; /* expected of the operations, one after the other */
  double cache_us;             /* of the gain: by tensors that stay in the cache */
  cs_ratio ratio;              /* its time / that of the plan there was */
  bool measured, known, taken; /* measured now; known from the profile */
} cs_micro_trial;
typedef struct cs_micro_report {
  bool considered;
  int operations; /* parts that were measured for it */
  double seconds;
  cs_micro_trial trials[2];
  int n_trials;
} cs_micro_report;

struct cs_session {
  cs_device *device;
  const cs_graph *source;
  cs_settings settings;
  cs_shared_params *shared;
  cs_planned planned;
  cs_realised realised;
  cs_sm_parts splits[CS_MOST_SPLITS]; /* that planning may choose from */
  int n_splits;
  float **inputs;        /* host copies of the inputs last set; NULL: the device is simulated */
  bool inputs_on_device; /* those last set came from device arrays: only the arena has them */
  cs_timings timings;
  cs_search_report search;
  cs_stage_report stages;       /* of `ios` */
  cs_micro_report micro;        /* of `coselect` */
  cs_measure_report remeasured; /* operations whose recorded candidates were not there */
};

/* ---- session.c ---- */
/* CANCELLED, "WHAT was interrupted", once the session's caller says so. */
cs_status cs_session_check_cancelled(const cs_session *session, const char *what) CS_MUST_USE;
/* Standard normal inputs from the seed, unless the session has some. */
cs_status cs_session_generate_inputs(cs_session *session) CS_MUST_USE;

/* ---- run.c ---- */
/* How many arrays there are, and of how many elements: found and wanted. */
cs_status cs_session_check_inputs(const cs_session *session, const int64_t *sizes,
                                  int n) CS_MUST_USE;
cs_status cs_session_check_outputs(const cs_session *session, const int64_t *sizes,
                                   int n) CS_MUST_USE;

/* ---- planning.c ---- */
cs_status cs_planning_run(cs_session *session) CS_MUST_USE;
void cs_planned_free(cs_planned *planned);

/* ---- replan.c ---- */
/* cs_realise of what was planned; where a plan from a file asks for candidates that are not there
 * (any more), one warning, and a plan by its own policy in its place; NOT_FOUND under `frozen`. */
cs_status cs_session_realise(cs_session *session) CS_MUST_USE;

/* ---- remeasure.c ---- */
/* After a failure of planning or realising, which is returned: operations of the program one of
 * whose choices the backend refuses to prepare, or prepares with more workspace than was recorded,
 * are measured anew (the first time with a warning) and counted in session->remeasured. Where that
 * cannot be, or is forbidden (NOT_FOUND under `frozen`), its error is returned in place of the
 * failure. `choices` NULL: none were made. */
cs_status cs_remeasure_gone(cs_session *session, cs_status failure, const cs_program *program,
                            const cs_task_choices *choices, int threads) CS_MUST_USE;

/* ---- info.c ---- */
struct json_t;
/* {"roofline_us", "critical_path_us", "area_us" (null: not known)}; NULL: no memory. */
struct json_t *cs_bounds_json(const cs_bounds *bounds);
/* {"plan", "sequential", "concurrency_costs": {"arena_bytes", "workspace_bytes"}}; NULL: no memory.
 */
struct json_t *cs_memory_json(const cs_plan *plan, const cs_plan_bytes *sequential);

/* ---- realise.c ---- */
/* Prepares candidates, packs and uploads weights, allocates the arena, realises the schedule. Where
 * candidates are not there the error is of the first one, and out->missing tells of all. */
cs_status cs_realise(cs_backend *backend, const cs_program *program, const cs_plan *plan,
                     const cs_params *params, bool no_graph, cs_realised *out) CS_MUST_USE;
/* The same candidates and weights as `from` under another plan (same program) with its own arena;
 * `from` must outlive it. */
cs_status cs_realise_again(const cs_realised *from, const cs_program *program,
                           const cs_plan *from_plan, const cs_plan *plan,
                           cs_realised *out) CS_MUST_USE;
/* The same plan once more, to run while others do. */
cs_status cs_realise_beside(const cs_realised *from, const cs_program *program, const cs_plan *plan,
                            cs_realised *out) CS_MUST_USE;
/* Launches and schedule of a plan whose candidates (execs, exec_of), weights and arena are there.
 */
cs_status cs_realise_launches(const cs_program *program, const cs_plan *plan,
                              cs_realised *out) CS_MUST_USE;
/* Builds the schedule anew from realised->launches, on the streams of their plan (tests change them
 * to plant faults). */
cs_status cs_realised_reschedule(cs_realised *realised, const cs_plan *plan) CS_MUST_USE;
void cs_realised_free(cs_realised *realised);
/* Device address of a program tensor under a plan. */
void *cs_realised_tensor(const cs_realised *realised, const cs_program *program,
                         const cs_plan *plan, int tensor);

/* ---- upload.c ---- */
/* Packs the parameters of a task (as folded) for a candidate into exec_weight_bytes of host memory.
 */
cs_status cs_pack_weights(cs_backend *backend, const cs_params *params, const cs_program *program,
                          int task, const cs_exec *exec, void *host) CS_MUST_USE;

/* ---- transfer.c ---- */
/* f32 row-major host array to and from a tensor of the arena. */
cs_status cs_tensor_write(const cs_realised *realised, const cs_program *program,
                          const cs_plan *plan, int tensor, const float *data) CS_MUST_USE;
cs_status cs_tensor_read(const cs_realised *realised, const cs_program *program,
                         const cs_plan *plan, int tensor, float *data) CS_MUST_USE;
cs_status cs_session_upload_inputs(const cs_session *session, const cs_realised *realised,
                                   const cs_plan *plan) CS_MUST_USE;
/* Makes the host copies those of the inputs last set, as the arena holds them (rounded to the
 * storage type where they came from device arrays). */
cs_status cs_session_fetch_inputs(const cs_session *session) CS_MUST_USE;

/* ---- end_to_end.c ---- */
/* The outputs of the whole graph in double precision, from f32 inputs and parameters, where `known`
 * (zero at first) is not of these inputs already; of one set of parameters. */
cs_status cs_known_outputs_make(const cs_graph *graph, const cs_params *params,
                                const float *const *inputs, cs_known_outputs *known) CS_MUST_USE;
void cs_known_outputs_clear(cs_known_outputs *known);
/* Relative L2 error of `outputs` (the device's, f32 row-major) against them. */
cs_status cs_end_to_end_error(const cs_graph *graph, const cs_known_outputs *wanted,
                              const float *const *outputs, double *rel_l2) CS_MUST_USE;
/* Twice the recorded error of PyTorch for (model, precision, batch, seed) from errors.json beside
 * the graph's file; NaN where nothing is recorded. */
cs_status cs_end_to_end_limit(const cs_graph *graph, cs_precision precision, int64_t batch,
                              uint64_t seed, double *limit) CS_MUST_USE;

#endif
