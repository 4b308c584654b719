/* convsched: run non-linear CNNs with algorithm, stream, order and memory chosen together.
 *
 * The whole public API. Objects are opaque and owned by the caller who created them; every
 * `*_create`/`*_open`/`*_load` has a matching destroy that accepts NULL. Errors are values
 * (`cs_status`); the library never prints, exits or keeps global state (but for each thread's
 * cs_progress_watch). A graph is immutable once
 * created and may be shared by threads; a device and a session are each used by one thread at a
 * time, and several sessions on several threads each on a device of their own run side by side.
 */
#ifndef CONVSCHED_CONVSCHED_H_
#define CONVSCHED_CONVSCHED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CS_VERSION_MAJOR 0
#define CS_VERSION_MINOR 1
#define CS_VERSION_PATCH 0

#if defined(CS_BUILDING_LIBRARY) && defined(__GNUC__)
#define CS_API __attribute__((visibility("default")))
#else
#define CS_API
#endif
#if defined(__GNUC__)
#define CS_MUST_USE __attribute__((warn_unused_result))
#else
#define CS_MUST_USE
#endif

/* ---- Status -------------------------------------------------------------------------------- */

/* X(name, exit code of the command, meaning) */
#define CS_CODES(X)                                                                  \
  X(OK, 0, "ok")                                                                     \
  X(WRONG_RESULT, 1, "a result is wrong or a requirement is missed")                 \
  X(USAGE, 2, "wrong use of the command or of the API")                              \
  X(BAD_INPUT, 3, "an input is malformed, inconsistent or not supported")            \
  X(NOT_FOUND, 3, "something asked for does not exist (also a miss under --frozen)") \
  X(DEVICE, 4, "a device failed or is not there")                                    \
  X(IO, 4, "the operating system refused a file operation")                          \
  X(NO_MEMORY, 4, "out of host or device memory")                                    \
  X(INTERNAL, 4, "a broken invariant of convsched itself")                           \
  X(CANCELLED, 130, "interrupted by the user")

typedef enum cs_code {
#define CS_CODE_ENUM(name, exit_code, text) CS_CODE_##name,
  CS_CODES(CS_CODE_ENUM)
#undef CS_CODE_ENUM
} cs_code;

/* NULL is success; anything else is owned by the receiver and released by cs_status_free(). */
typedef struct cs_error *cs_status;
#define CS_OK ((cs_status)0)

CS_API cs_code cs_status_code(cs_status status);
/* The message names the place, what was found and what was wanted. "ok" for CS_OK. */
CS_API const char *cs_status_message(cs_status status);
/* The exit code of the command for this status. */
CS_API int cs_status_exit_code(cs_status status);
CS_API void cs_status_free(cs_status status);

/* "0.1.0"; and the same as major * 10000 + minor * 100 + patch. */
CS_API const char *cs_version_string(void);
CS_API int cs_version_number(void);

/* ---- Logging ------------------------------------------------------------------------------- */

typedef enum cs_log_level {
  CS_LOG_DEBUG,
  CS_LOG_INFO,
  CS_LOG_WARNING,
  CS_LOG_PROGRESS
} cs_log_level;

/* Receives every message of the objects it is given to; called from the thread that uses the
 * object. PROGRESS messages supersede one another (the library has cs_progress_watch for numbers).
 * A NULL function is silence. */
typedef struct cs_logger {
  void (*write)(void *user, cs_log_level level, const char *message);
  void *user;
} cs_logger;

/* ---- Progress ------------------------------------------------------------------------------ */

/* Where long work is. What is told belongs to the library and is read during the call only; later
 * versions may append members. */
typedef struct cs_progress {
  const char *stage; /* what is being done: "profiling", "search", … */
  const char *unit;  /* what is counted: "operations", "bytes", …; "": nothing with a name */
  const char *item;  /* what it is at, for a person; "": nothing to tell */
  int64_t done;      /* units that are done; the same stage may be reported again from 0 */
  int64_t total;     /* units in all; 0: not known */
  double elapsed_s;  /* of limit_s */
  double limit_s;    /* seconds after which the stage ends at the latest; 0: no such limit */
} cs_progress;
typedef void (*cs_progress_fn)(void *user, const cs_progress *progress);
/* From now on whatever function of this API the calling thread is in reports to `report`, on this
 * thread; NULL ends it. A watcher is the thread's own, so that threads with sessions of their own
 * each have one, and none needs a lock. Reports come between measurements, never during one; a
 * `report` that takes long makes the work as much longer. It must not use the object at work. */
CS_API void cs_progress_watch(cs_progress_fn report, void *user);

/* ---- Graph --------------------------------------------------------------------------------- */

typedef struct cs_graph cs_graph;

/* Loads `convsched.graph/1`. Errors: IO, BAD_INPUT (file, JSON path, node, found, wanted). */
CS_API cs_status cs_graph_load(const char *path, cs_graph **out) CS_MUST_USE;
/* The same from memory; `name` stands for the file in messages. `length` bytes, no NUL needed. */
CS_API cs_status cs_graph_parse(const char *json, size_t length, const char *name,
                                cs_graph **out) CS_MUST_USE;
CS_API void cs_graph_destroy(cs_graph *graph);
/* The graph as JSON text (released with cs_string_free). Loading it again gives the same graph. */
CS_API cs_status cs_graph_to_json(const cs_graph *graph, char **out) CS_MUST_USE;

/* Imports an ONNX file: the graph, with its parameters, which stay in the file until they are read
 * (it must not change while the graph lives). docs/onnx.md says what is supported. Errors: IO;
 * BAD_INPUT for a malformed file, and for what is not supported, all of it in one message, a line
 * for each reason; NOT_FOUND in a build without the importer. */
CS_API cs_status cs_graph_import(const char *path, cs_graph **out) CS_MUST_USE;
/* What of an ONNX file can be imported, released with cs_string_free:
 * {"schema":"convsched.import-check/1", "model", "ir_version", "opset", "producer", "importable",
 *  "operators":[{"op","domain","nodes","unsupported" (how many of them)}…],
 *  "unsupported":[{"node","op" (null: an input or output of the graph),"reason"}…],
 *  "following" (nodes behind these, of which too little is known to tell)}. */
CS_API cs_status cs_import_check_json(const char *path, char **out) CS_MUST_USE;
/* Whether this build has the importer. */
CS_API bool cs_import_is_built(void);
/* Writes an imported graph as `convsched.graph/1`, and its parameters beside it: f32 safetensors
 * under the same name with that extension in place of its own. Errors: IO; USAGE for a graph that
 * no parameters came with, and for a device or a pipe, which has no place beside it. */
CS_API cs_status cs_graph_save(const cs_graph *graph, const char *path) CS_MUST_USE;

/* Writes a graph, before any pass, as an ONNX model with its parameters as f32 initializers:
 * those of `weights_path` (safetensors), else, where that is NULL, the graph's own, else generated
 * from `seed`, as a session has them. Importing the file gives the same graph; docs/onnx.md says in
 * what it can differ, and which opset it has. Errors: IO; USAGE where `path` is a file that is
 * read; BAD_INPUT for weights that do not fit, what ONNX has no words for, and more than 2 GiB;
 * NOT_FOUND in a build without ONNX. */
CS_API cs_status cs_graph_export_onnx(const cs_graph *graph, const char *weights_path,
                                      uint64_t seed, const char *path) CS_MUST_USE;

/* Builds a graph step by step. A builder is consumed by cs_builder_finish, which validates.
 * `dims`: rank extents, a symbolic batch written as CS_DIM_N in dims[0]. `attrs_json`: the node's
 * attributes as a JSON object, or NULL. */
#define CS_DIM_N ((int64_t)-1)
typedef struct cs_builder cs_builder;
CS_API cs_status cs_builder_create(const char *name, cs_builder **out) CS_MUST_USE;
CS_API void cs_builder_destroy(cs_builder *builder);
CS_API cs_status cs_builder_input(cs_builder *builder, const char *name, int rank,
                                  const int64_t *dims) CS_MUST_USE;
CS_API cs_status cs_builder_node(cs_builder *builder, const char *name, const char *op,
                                 int n_inputs, const char *const *inputs,
                                 const char *attrs_json) CS_MUST_USE;
CS_API cs_status cs_builder_output(cs_builder *builder, const char *name) CS_MUST_USE;
CS_API cs_status cs_builder_finish(cs_builder *builder, cs_graph **out) CS_MUST_USE;

CS_API const char *cs_graph_name(const cs_graph *graph);
CS_API int cs_graph_input_count(const cs_graph *graph);
CS_API int cs_graph_output_count(const cs_graph *graph);
CS_API const char *cs_graph_input_name(const cs_graph *graph, int index);
CS_API const char *cs_graph_output_name(const cs_graph *graph, int index);
/* Writes up to 8 extents (CS_DIM_N for a symbolic batch) and returns the rank. */
CS_API int cs_graph_input_shape(const cs_graph *graph, int index, int64_t dims[8]);
CS_API int cs_graph_output_shape(const cs_graph *graph, int index, int64_t dims[8]);
/* Whether an input or a node of the graph is called that. */
CS_API bool cs_graph_has_value(const cs_graph *graph, const char *name);
/* Trainable parameters: weights and biases, BatchNormalization's scale and shift; not its running
 * statistics. */
CS_API int64_t cs_graph_parameter_count(const cs_graph *graph);
/* Writes the parameters generated from `seed` as safetensors (f32). Errors: IO. */
CS_API cs_status cs_graph_write_generated_weights(const cs_graph *graph, uint64_t seed,
                                                  const char *path) CS_MUST_USE;

CS_API void cs_string_free(char *string);

/* ---- Device -------------------------------------------------------------------------------- */

typedef struct cs_device cs_device;

/* `spec`: "auto" (a GPU where one works, else the CPU), "cpu", "cuda:N", or "sim:FILE": the GPU
 * that a profile's file describes, simulated. Sessions on it plan, and their latencies are
 * predictions; what needs numbers (setting inputs, running, reading, verifying) or measuring is a
 * USAGE error. `logger` may be NULL. Errors: USAGE (unknown spec), DEVICE (not there: says why and
 * what to do); of a file IO, BAD_INPUT (no profile, of no GPU, nothing recorded). */
CS_API cs_status cs_device_open(const char *spec, const cs_logger *logger,
                                cs_device **out) CS_MUST_USE;
CS_API void cs_device_close(cs_device *device);
/* {"name":…, "backend":…, "sm_count":…, "driver":…, "cuda":…, "cudnn":…, …}; of a simulated device
 * "simulated":true, and no versions but those in its "identity". */
CS_API cs_status cs_device_info_json(const cs_device *device, char **out) CS_MUST_USE;
/* What was found on this machine for every backend, and what to do about what is missing. */
CS_API cs_status cs_doctor_json(char **out) CS_MUST_USE;

/* ---- Session ------------------------------------------------------------------------------- */

typedef enum cs_precision {
  CS_PRECISION_F32,
  CS_PRECISION_TF32,
  CS_PRECISION_F16,
  CS_PRECISION_BF16
} cs_precision;
/* "f32", "tf32", "f16", "bf16"; NULL for anything else. */
CS_API const char *cs_precision_name(cs_precision precision);
CS_API cs_status cs_precision_parse(const char *name, cs_precision *out) CS_MUST_USE;

/* Fill with cs_session_options_init, then change what is wanted. Strings stay the caller's and are
 * read during cs_session_create only. */
typedef struct cs_session_options {
  size_t struct_size; /* set by init; the ABI's version of this struct */
  int64_t batch;      /* default 1 */
  cs_precision precision;
  const char *policy;       /* "sequential" (default), "streams", "opara", "ios",
                               "coselect" */
  const char *weights_path; /* safetensors; NULL: the graph's own, else generated from seed */
  uint64_t seed;
  int64_t workspace_limit; /* bytes, default 256 MiB; holds while profiling too */
  int64_t memory_limit;    /* bytes of the arena; 0: none */
  int max_streams;         /* 0: the device's default */
  bool frozen;             /* a missing measurement is an error */
  bool refresh;            /* measure again what is cached */
  bool deterministic;      /* only candidates that give the same bits every time */
  const char *cache_dir;   /* NULL: $XDG_CACHE_HOME/convsched/v1 or ~/.cache/convsched/v1 */
  const char *const *pins; /* "NODE=CANDIDATE"; where names hold a '=', the longest node counts */
  int n_pins;
  const char *const *bans; /* candidate ids never to be used, * and ? allowed */
  int n_bans;
  /* Realise this plan instead of planning, without the profile (so there are no bounds); goes
   * without pins, bans, max_streams, deterministic. Where candidates of it are not there (any
   * more), as after an update of a library, one warning says so, and it is planned anew by the
   * plan's own policy under these options; NOT_FOUND under `frozen`. BAD_INPUT: a plan of another
   * graph, batch, precision or kind of device; a damaged one. */
  const char *plan_path;
  const char *const
      *keep; /* names of values whose contents stay readable (dump); see cs_session_read */
  int n_keep;
  /* Asked now and then while profiling; true stops with CANCELLED, keeping what was measured. */
  bool (*cancelled)(void *user);
  void *cancelled_user;
  /* Seconds for measuring, of policy "coselect" whole schedules, of "ios" stages; below 0
   * (default): 20, unless the cache has that of this network already; 0: none, by the model or by
   * estimates alone. */
  double search_seconds;
  int search_steps; /* schedules measured at most; 0: as many as there is time for */
  bool no_graph; /* stream calls for every run instead of one CUDA graph; a CPU has none anyway */
  /* Policy "coselect": how it may split the device's SMs. "none": not at all; "32,100": into these
   * parts, which streams may keep to; NULL (default): a few splits into two, where the device has
   * any. USAGE: not numbers; BAD_INPUT: parts that the device cannot have. */
  const char *partition;
  /* Policy "coselect": requests in flight that it plans for, at most CS_PIPELINE_MOST_SLOTS. 0, 1
   * (default): one request's latency; more: the most requests a second of a pipeline of so many,
   * with the memory limit holding for all their arenas together. USAGE where the device has no
   * requests in flight, with no_graph, or beyond the most. */
  int in_flight;
  /* Convolutions run with candidates of these ids alone (* and ? allowed; none: any); NOT_FOUND
   * where one has none of them. Other operations are not restricted. */
  const char *const *allows;
  int n_allows;
  /* Micro-batches: parts of the batch that run as operations of their own. 0 (default): policy
   * "coselect" divides operations where measured plans say that it is faster, others do not; 1:
   * none; more: every operation whose batch entries are computed each by itself, into so many parts
   * that differ by one entry at most (one an entry, where the batch is less). A fork by
   * "sequential", which others are compared with, is divided only where it is loaded from a plan.
   * At most 1024. */
  int micro_batches;
} cs_session_options;
CS_API void cs_session_options_init(cs_session_options *options);

typedef struct cs_session cs_session;

/* Profiles what the cache lacks, plans, allocates and prepares everything. Until inputs are set
 * they are standard normal, generated from the seed. Device and graph must outlive the session. */
CS_API cs_status cs_session_create(cs_device *device, const cs_graph *graph,
                                   const cs_session_options *options, cs_session **out) CS_MUST_USE;
CS_API void cs_session_destroy(cs_session *session);
/* Another session on the same device, graph, weights, inputs and options but for the policy (and
 * plan_path: a fork plans); it shares the parameters and the profile with `session`, which may be
 * destroyed before it. */
CS_API cs_status cs_session_fork(const cs_session *session, const char *policy,
                                 cs_session **out) CS_MUST_USE;

/* Runs once. Host arrays, f32, row-major NCHW, in the order of the graph's inputs and outputs; the
 * sizes are elements and must equal the shapes at the session's batch. Synchronous. */
CS_API cs_status cs_session_run(cs_session *session, const float *const *inputs,
                                const int64_t *input_sizes, int n_inputs, float *const *outputs,
                                const int64_t *output_sizes, int n_outputs) CS_MUST_USE;
/* The same with f32 row-major NCHW memory of the device, asynchronously on the caller's stream (a
 * cudaStream_t; NULL: the default stream). Wait for that stream before using the session in any
 * other way: verification and forks then take these inputs from the session's own copy. Errors:
 * USAGE on a device without streams. */
CS_API cs_status cs_session_run_device(cs_session *session, const void *const *inputs, int n_inputs,
                                       void *const *outputs, int n_outputs,
                                       void *stream) CS_MUST_USE;
/* Plans anew for another batch (from the cache where it has the measurements). */
CS_API cs_status cs_session_set_batch(cs_session *session, int64_t batch) CS_MUST_USE;
/* Uploads inputs without running (the first half of cs_session_run). */
CS_API cs_status cs_session_set_inputs(cs_session *session, const float *const *inputs,
                                       const int64_t *input_sizes, int n_inputs) CS_MUST_USE;
/* Reads a kept value after a run as f32 row-major NCHW; `size` in elements. Errors: NOT_FOUND. */
CS_API cs_status cs_session_read(cs_session *session, const char *value, float *out,
                                 int64_t size) CS_MUST_USE;
/* Rank and extents of a value of the graph at the session's batch; NOT_FOUND if it has no such
 * value. */
CS_API cs_status cs_session_shape(const cs_session *session, const char *value, int *rank,
                                  int64_t dims[8]) CS_MUST_USE;

/* One latency sample, microseconds: device events around one launch, the stream idle before it and
 * the device kept busy until just before. Uses the inputs last set. On a simulated device the same
 * prediction every time. */
CS_API cs_status cs_session_latency(cs_session *session, double *us) CS_MUST_USE;
/* Microseconds per launch over n launches back to back. */
CS_API cs_status cs_session_latency_b2b(cs_session *session, int n, double *us) CS_MUST_USE;

/* What each part of the session's plan brings against that of `policy`: the two mixed, timed in
 * turn. Variants: `base` (a second copy), `candidates` (the base's schedule with them), `order`
 * (the base launched in that order), `streams_and_order` (the plan's, with the base's candidates),
 * `both` (these and the candidates), and where the plan has them `merge` (the base with the plan's
 * merged launches), `priority` (the base with its priorities), `partition` (streams_and_order on
 * its parts of the device) and `all` (the plan); where kernels of it begin early, `early_nowhere`
 * (the plan without), and where some that could do not, `early_everywhere`; where it has
 * launch-order hints, `no_hints`. JSON: {base, samples,
 * variants: [{name, latency_us, speedup_vs_base}]}; cs_string_free releases. Errors: USAGE for an
 * unknown policy and for a session of a plan file. */
CS_API cs_status cs_session_ablate(cs_session *session, const char *policy,
                                   char **json) CS_MUST_USE;

/* Concurrency promised and achieved, block by block, in the order in which blocks run, and of the
 * whole plan: {"runs", "blocks":[{"tasks":[…], "streams", "predicted", "achieved"}…],
 * "whole":{"predicted", "achieved"}}, each of the two {"concurrency", "overlapped_us", "busy_us",
 * "active_us", "span_us"} (null: it has no kernels). Predicted from the plan's timeline; achieved
 * by the kernels of `runs` runs under a tracer, medians. What runs take under the tracer is no
 * latency, and nothing should be timed after it. cs_string_free releases. Errors: USAGE (simulated,
 * or a backend that has no tracer), NOT_FOUND (the tracer is not available, or what it saw cannot
 * be told apart: the message says why), CANCELLED. */
CS_API cs_status cs_session_overlap_json(cs_session *session, char **out) CS_MUST_USE;
/* USAGE, "WHAT: …", on a device whose kernels cannot be traced. What can be known without loading a
 * tracer. */
CS_API cs_status cs_device_check_trace(const cs_device *device, const char *what) CS_MUST_USE;

#define CS_TRACE_MOST_RUNS 1000
/* A trace in Chrome's format, which Perfetto opens (docs/traces.md): the plan as it ran beside the
 * plan as it was predicted, a track a stream, a slice a kernel, named by its node; dependencies as
 * flows; counters of SM resources and of the arena. First `samples` latencies are taken without a
 * tracer, then `runs` (1 to CS_TRACE_MOST_RUNS) are traced, of the inputs last set; the one whose
 * span is the median is shown. Nothing should be timed after it. On a simulated device nothing is
 * run and only the prediction is shown. cs_string_free releases. Errors: USAGE (numbers below 1, a
 * backend that has no tracer), NOT_FOUND (as of cs_session_overlap_json), CANCELLED. */
CS_API cs_status cs_session_trace_json(cs_session *session, int samples, int runs,
                                       char **out) CS_MUST_USE;

typedef enum cs_verify_level { CS_VERIFY_SAMPLE, CS_VERIFY_FULL } cs_verify_level;
typedef struct cs_verification {
  bool passed;
  int nodes_checked;    /* against the double-precision reference, node by node */
  double rel_l2;        /* the largest over the nodes checked */
  double max_scaled;    /* the largest error over the magnitude of what was summed */
  double tolerance;     /* the limit of the node that came closest to (or went past) its limit */
  bool bitwise_equal;   /* whole plan against the same candidates run serially without reuse */
  bool bitwise_applies; /* false when a candidate is not deterministic */
  double end_to_end;    /* error of the outputs against float64, relative L2; NaN if not computed */
  double end_to_end_limit; /* NaN if no recorded limit applies */
  char worst_node[128];    /* that node */
  double worst_ratio; /* its error over its limit: more than 1 fails; infinite where it gave a NaN
                         or an infinity and the reference did not */
  char problem[256];  /* what is wrong, for a person; "" when passed */
} cs_verification;
/* A wrong result is `passed == false` with CS_OK; a failure to find out is an error. Uses the
 * inputs last set. */
CS_API cs_status cs_session_verify(cs_session *session, cs_verify_level level,
                                   cs_verification *out) CS_MUST_USE;

/* The plan as `convsched.plan/1`. */
CS_API cs_status cs_session_plan_json(const cs_session *session, char **out) CS_MUST_USE;
/* {"policy":…, "streams":…, "kernels":…, "arena_bytes":…, "workspace_bytes":…, "weights_bytes":…,
 *  "prepare_s":…, "graph_hash":…, "bounds":{"roofline_us":… (null: not known),
 * "critical_path_us":…, "area_us":… (null: not known)}, "memory":{"plan", "sequential",
 * "concurrency_costs":{"arena_bytes":…, "workspace_bytes":…}} (both of them not of a plan from a
 * file), "predicted_us":…, "timings_s":{"load":…, "passes":…,
 * "profile":…, "plan":…, "prepare":…, "upload":…, "upload_parts":{"buffers", "pack", "copy",
 * "wait"}}, "passes":{…}, "layouts":{…}, "split":{"parts", "streams"} (as in a plan's file; null:
 * none), "tasks":[{"name","op","candidate","stream","layout","start_us","end_us"}…]} */
CS_API cs_status cs_session_info_json(const cs_session *session, char **out) CS_MUST_USE;

/* What was chosen block by block, which resource keeps tasks that could run together apart, and
 * what other candidates would change: `convsched.explanation/1`. Errors: USAGE (a plan from a
 * file). */
CS_API cs_status cs_session_explain_json(const cs_session *session, char **out) CS_MUST_USE;
/* Every kernel of the plan in launch order, and why it is there: {"schema":"convsched.kernels/1",
 * "model", "batch", "dtype", "policy", "device", "backend", "simulated", "source" (of the kernels:
 * "driver", "profile", "none"), "streams", "predicted_us", "kernels":[{"position" (in the plan),
 * "task", "nodes" (of the graph's file), "op", "candidate", "stream", "part" (SMs; null: all),
 * "merged" (the task whose launch it is part of, with no kernel of its own; or null), "index", "of"
 * (which of its launch's kernels, from 0), "kernel" (null: not known, nor what follows), "short"
 * (for a person), "grid" (null also for a merged launch of a simulated device), "block", "cluster",
 * "registers", "static_shared", "dynamic_shared", "local_bytes", "blocks_per_sm", "early" (whether
 * it begins before all it waits for has ended; null: not known), "start_us", "us", "class",
 * "reason"}…], "totals":{"launches", "kernels", "launches_of_unknown_kernels" (each counts as one
 * kernel), "us", "classes":[{"class", "computes", "kernels", "us", "share"}…],
 * "not_computing":{"kernels", "us", "share"}}}. Times are planned ones, a launch's divided over its
 * kernels by counted durations, else by waves. */
CS_API cs_status cs_session_kernels_json(const cs_session *session, char **out) CS_MUST_USE;
/* What two files of `convsched.plan/1` differ in, without model or device:
 * {"schema":"convsched.plan-diff/1", "a":…, "b":…, "same":…, "head":[{"member","a","b"}…],
 *  "layouts":[{"value","a","b"}…], "tasks":[{"name", "candidate", "stream", "position", "waits":
 *  {"a","b"}, each where it differs}…], "only_a":[…], "only_b":[…], "totals":{…}}.
 * Errors: IO, BAD_INPUT (file, JSON path, found, wanted). */
CS_API cs_status cs_plan_diff_json(const char *path_a, const char *path_b, char **out) CS_MUST_USE;

/* ---- Pipelines: requests in flight ------------------------------------------------------------
 */

#define CS_PIPELINE_MOST_SLOTS 16
typedef struct cs_pipeline cs_pipeline;

/* `slots` (1 … 16) requests of the session's plan in flight. Each slot has an arena and a realised
 * schedule of its own, beside the session's; weights are the session's. On a GPU a slot's requests
 * are launches of its CUDA graph on its own stream, and copies of inputs and outputs (from and to
 * pinned host memory) are on streams of their own, beside computing. A CPU runs a request when it
 * is submitted, one after the other. Until a slot is given inputs it has the session's. The session
 * must outlive the pipeline; both are used by one thread. Errors: USAGE (slots, a simulated
 * device), BAD_INPUT (the slots' arenas are more than the session's memory_limit; a session with
 * no_graph on a GPU), NO_MEMORY. */
CS_API cs_status cs_pipeline_create(cs_session *session, int slots, cs_pipeline **out) CS_MUST_USE;
/* The same for a network whose only output is pictures, N×C×H×W of one channel or three: they leave
 * the device as 8-bit pixels, N×H×W×C, 0 for -1 and below, 255 for 1 and above, rounded to nearest
 * between ((x + 1) · 127.5 in f32, half to even; 0 for a NaN). USAGE, too: other outputs. */
CS_API cs_status cs_pipeline_create_pixels(cs_session *session, int slots,
                                           cs_pipeline **out) CS_MUST_USE;
/* Waits for what is in flight. */
CS_API void cs_pipeline_destroy(cs_pipeline *pipeline);
/* Begins a request in `slot` (from 0) and does not wait for it. Arrays as of cs_session_run, read
 * before this returns; `inputs` NULL: those the slot had last. Errors: USAGE for a slot that is not
 * there or whose last request was not waited for. */
CS_API cs_status cs_pipeline_submit(cs_pipeline *pipeline, int slot, const float *const *inputs,
                                    const int64_t *input_sizes, int n_inputs) CS_MUST_USE;
/* Waits for the slot's request and gives its outputs (NULL: not wanted). Errors: USAGE for a slot
 * that is not there or has none. */
CS_API cs_status cs_pipeline_wait(cs_pipeline *pipeline, int slot, float *const *outputs,
                                  const int64_t *output_sizes, int n_outputs) CS_MUST_USE;
/* Waits for the slot's request, whose pixels are then in *pixels, *bytes of them, until the slot's
 * next request or the pipeline's end. Errors: USAGE for a slot that is not there or has none, and
 * for a pipeline of tensors. */
CS_API cs_status cs_pipeline_wait_pixels(cs_pipeline *pipeline, int slot, const uint8_t **pixels,
                                         int64_t *bytes) CS_MUST_USE;

/* What a window of requests back to back tells. */
typedef struct cs_pipeline_rate {
  int requests;        /* timed; more are run before and behind, so that as many are in flight */
  double seconds;      /* from the end of the request before the first of them to the last end */
  double images_per_s; /* requests × batch / seconds */
  double host_images_per_s; /* all that were run, by the host's clock, filling and draining in it */
  /* Of the timed requests, microseconds: from the beginning of the copy of its inputs to the end of
   * that of its outputs; without copies, of its run. */
  double latency_us, latency_p10_us, latency_p90_us; /* median and quantiles */
  /* Of the whole board, over all that were run, nothing subtracted; NaN: unknown, as where the
   * counter was begun anew meanwhile. */
  double joules;
  int all_requests; /* that were run */
} cs_pipeline_rate;
/* Times `requests` (from 1) with `in_flight` of them (1 … slots) in flight, each with the inputs
 * its slot had last; the host does nothing between but launch. Without `copies` nothing is copied:
 * the runs alone. Errors: USAGE (numbers, found and wanted; requests not waited for). */
CS_API cs_status cs_pipeline_window(cs_pipeline *pipeline, int in_flight, int requests, bool copies,
                                    cs_pipeline_rate *out) CS_MUST_USE;

typedef struct cs_pipeline_check {
  bool passed;
  int requests;         /* whose outputs were compared */
  bool bitwise_applies; /* false where a candidate is not deterministic: within rounding then */
  bool bitwise_equal;
  double rel_l2;     /* the largest difference */
  char problem[256]; /* what is wrong, for a person; "" when passed */
} cs_pipeline_check;
/* Whether every slot gives, all in flight and in several rounds, what the session gives for the
 * same inputs, other ones in each slot (and round): the session's, and standard normal ones from
 * seeds behind its own. A wrong result is `passed == false` with CS_OK. Afterwards slots have these
 * inputs; the session has its own again. Errors: USAGE (requests not waited for). */
CS_API cs_status cs_pipeline_verify(cs_pipeline *pipeline, cs_pipeline_check *out) CS_MUST_USE;
/* Bytes of all slots' arenas. */
CS_API int64_t cs_pipeline_arena_bytes(const cs_pipeline *pipeline);
/* How requests of this device are in flight, for a person; static. */
CS_API const char *cs_pipeline_how(const cs_pipeline *pipeline);

/* Joules that the whole board has used since its driver was loaded (NVML's counter, which moves
 * every 20 to 100 ms). NOT_FOUND: not available, the message says why. */
CS_API cs_status cs_device_energy(cs_device *device, double *joules) CS_MUST_USE;

/* ---- Profiling ----------------------------------------------------------------------------- */

/* Fill with cs_profile_options_init, then change what is wanted. */
typedef struct cs_profile_options {
  size_t struct_size; /* set by init; the ABI's version of this struct */
  bool full;          /* measure every engine and knob, not only what the libraries recommend */
  bool counters;      /* performance counters of the candidates worth running beside others */
  bool corun;         /* independent convolutions together, over combinations of candidates */
  const char *const *nodes; /* only these nodes, * and ? allowed; none: all */
  int n_nodes;
} cs_profile_options;
CS_API void cs_profile_options_init(cs_profile_options *options);

/* Measures into the cache what it lacks of a network, for the session options' policy ("all" or
 * NULL: for every one), and reports (released with cs_string_free):
 * {"schema":"convsched.profile-report/1", "model", "batch", "dtype", "device":{"name","backend",
 *  "identity"}, "measured":{"operations" (of all layouts and thread counts, each once),
 *  "operations_cached","candidates","candidates_rejected","seconds"},
 * "kernels":{"recorded","counted","differences","unavailable"}, "operations":[{"task",
 *  "op","layout","tasks","signature","candidates","rejected","best":{"id","cold_us","warm_us",
 *  "variation","workspace_bytes",…},"pareto":[…]}…], "coruns":{"sets",…,"list":[{"tasks":[…],
 *  "serial_us","fastest_alone_us","best_us","gain","candidates":[…],"limiter","overlap"}…]},
 *  "state":{"before":{…},"after":{…}}, "warnings":[…]}. What is missing is said there and logged
 * once: counters that the device does not give are no error. Errors: NOT_FOUND for a node that the
 * network does not run, or for what is missing under `frozen`. */
CS_API cs_status cs_profile_model(cs_device *device, const cs_graph *graph,
                                  const cs_session_options *session_options,
                                  const cs_profile_options *options,
                                  char **report_json) CS_MUST_USE;

/* ---- Reports: what a profile tells of a network, as tables ---------------------------------- */

typedef enum cs_report_kind {
  CS_REPORT_RESOURCES,    /* what each kernel of a node's candidates takes of an SM */
  CS_REPORT_WORKSPACE,    /* every algorithm of a node: workspace and time */
  CS_REPORT_COMPLEMENTARY /* sets of nodes that run faster together with candidates that are slower
                             alone */
} cs_report_kind;
typedef enum cs_report_candidates {
  CS_REPORT_FASTEST,
  CS_REPORT_PARETO, /* those that nodes are measured together with */
  CS_REPORT_ALL
} cs_report_candidates;
typedef enum cs_report_format {
  CS_REPORT_TEXT, /* aligned for a terminal */
  CS_REPORT_MARKDOWN,
  CS_REPORT_CSV,  /* RFC 4180 */
  CS_REPORT_JSON, /* convsched.report/1 */
  CS_REPORT_SVG,  /* of a page's figures alone */
  CS_REPORT_HTML  /* of a page as a whole */
} cs_report_format;

/* Fill with cs_report_options_init, then change what is wanted. */
typedef struct cs_report_options {
  size_t struct_size; /* set by init; the ABI's version of this struct */
  cs_report_kind kind;
  const char *profile_path; /* a profile's file (.gz too), read without a device; NULL: the device's
                               database */
  const char *const *nodes; /* names, * and ? allowed; none: every convolution that was measured */
  int n_nodes;
  cs_report_candidates candidates; /* of resources */
  bool paper;                      /* figures of Pourghassemi et al., SPAA 2020, beside ours */
  cs_logger logger;                /* warnings about a profile's file */
} cs_report_options;
CS_API void cs_report_options_init(cs_report_options *options);

typedef struct cs_report cs_report;
/* Reads what is known of a network at the session options' batch and precision, of candidates
 * within their workspace limit (and deterministic, if wanted); measures nothing. `device` may be
 * NULL with a profile's file. Errors: NOT_FOUND (a node that is not there, with near names; what
 * was not measured, with the command that measures it), IO, BAD_INPUT, USAGE. */
CS_API cs_status cs_report_create(cs_device *device, const cs_graph *graph,
                                  const cs_session_options *session_options,
                                  const cs_report_options *options, cs_report **out) CS_MUST_USE;
/* The latency/memory front of a session's policy: its plans under falling memory limits, the
 * fastest first; what is not on the front is left out. Errors: USAGE (a plan from a file), as of
 * planning. */
CS_API cs_status cs_session_tradeoff(const cs_session *session, cs_report **out) CS_MUST_USE;
/* A graph's layers as they are written, before any pass: operators, windows, shapes, parameters,
 * FLOPs, bytes, blocks and the critical path; below the table, and as `summary` of its JSON, what
 * holds for all: totals, how many layers do not need one another, the longest path. `batch` 0: the
 * graph's own, or 1 where it is symbolic. Needs no device. Errors: BAD_INPUT (a batch that the
 * graph does not take). */
CS_API cs_status cs_graph_layers(const cs_graph *graph, int64_t batch, cs_precision precision,
                                 cs_report **out) CS_MUST_USE;
/* The same graph for Graphviz: a cluster for each block of several layers, the critical path bold.
 * Released with cs_string_free. */
CS_API cs_status cs_graph_dot(const cs_graph *graph, int64_t batch, cs_precision precision,
                              char **out) CS_MUST_USE;
/* What two files of records (`convsched.run/1`, `convsched.throughput/1`; documents or JSON lines)
 * measured alike, side by side: medians, 95% intervals of the ratio, a verdict for each. `summary`
 * of its JSON counts the rows that B is "faster", "slower", "same" in, and "regressions": those
 * slower by more than `max_regression` percent, and by more than the intervals leave open (below 0:
 * none is one). Errors: IO, BAD_INPUT (file, record, found, wanted), NOT_FOUND (nothing in common).
 */
CS_API cs_status cs_compare_records(const char *path_a, const char *path_b, double max_regression,
                                    cs_report **out) CS_MUST_USE;
/* What `convsched experiment` recorded (a file of JSON lines), a row for each cell and policy:
 * medians with 95% intervals, gains over sequential, memory, and why cells failed. Errors: IO,
 * BAD_INPUT (file, line, found, wanted). */
CS_API cs_status cs_experiment_table(const char *path, cs_report **out) CS_MUST_USE;
CS_API void cs_report_destroy(cs_report *report);
/* Released with cs_string_free. */
CS_API cs_status cs_report_format_text(const cs_report *report, cs_report_format format,
                                       char **out) CS_MUST_USE;

/* ---- Report pages ---------------------------------------------------------------------------- */

typedef struct cs_page_policy {
  cs_session *session;
  const double *samples; /* latencies, microseconds; NULL: not measured */
  int n_samples;
} cs_page_policy;

/* Fill with cs_page_options_init, then change what is wanted. Strings and samples stay the caller's
 * and are read during cs_page_create only. */
typedef struct cs_page_options {
  size_t struct_size;             /* set by init; the ABI's version of this struct */
  const cs_page_policy *policies; /* the baseline first, what the page is about last */
  int n_policies;
  const char *no_plans;     /* why there are no policies; NULL where there are */
  const char *command;      /* as it was given, for the page; NULL: not told */
  const char *version;      /* of the program, for the page; NULL: the library's */
  int traced_runs;          /* of each policy; 0: none. Nothing should be timed afterwards */
  cs_report_options report; /* profile, nodes, candidates; `kind` means nothing here */
  const char *peers_path; /* records of other systems (`convsched.run/1`, JSON lines); NULL: none */
} cs_page_options;
CS_API void cs_page_options_init(cs_page_options *options);

/* A report of a network as one HTML page, and its figures. */
typedef struct cs_page cs_page;
/* Reads what is known at the session options' batch and precision, and traces the sessions' plans.
 * What is not there the page says, with what gives it. `device` may be NULL with a profile's file.
 * Sessions must outlive the page, graph and device too. Errors: as of cs_report_create, but that
 * nothing was measured is none; of the file of records IO, BAD_INPUT. */
CS_API cs_status cs_page_create(cs_device *device, const cs_graph *graph,
                                const cs_session_options *session_options,
                                const cs_page_options *options, cs_page **out) CS_MUST_USE;
CS_API void cs_page_destroy(cs_page *page);
/* The whole page (`figure` NULL, HTML) or one of its figures: SVG with a style of its own, else the
 * data behind it; released with cs_string_free. Errors: USAGE (no such figure, with near names;
 * another format); NOT_FOUND (what it is drawn from is not there: says why). */
CS_API cs_status cs_page_text(const cs_page *page, const char *figure, cs_report_format format,
                              char **out) CS_MUST_USE;
/* Names of the figures of a page; *count of them; static. */
CS_API const char *const *cs_page_figure_names(int *count);
/* USAGE with near names where no figure is called that: known without a page. */
CS_API cs_status cs_page_check_figure(const char *figure) CS_MUST_USE;

/* ---- Experiments ---------------------------------------------------------------------------- */

/* Reads a specification, `convsched.experiment/1`, and takes its cross product
 * (docs/experiments.md); released with cs_string_free: {"name","title","hash" (of it and its
 * models),"samples",
 * "search_seconds","seed","verify","memory_limit","families":{…},"spec","cells":[{"model","path",
 * "dtype","batch","family","workspace_limit","streams","partition","policies":[…]}…],
 * "cases":[{"model","path","dtype","batch","workspace_limit"}…], "profile", "tables":[…]}. Errors:
 * IO; BAD_INPUT (file, JSON path, found, wanted; too many cells, with their number). */
CS_API cs_status cs_experiment_json(const char *path, char **out) CS_MUST_USE;
/* The records as one self-contained HTML page: plots, gains, tables, what failed, where it was
 * measured; released with cs_string_free. Errors as of cs_experiment_table. */
CS_API cs_status cs_experiment_page(const char *path, char **out) CS_MUST_USE;

/* ---- Policies, arrays, cache --------------------------------------------------------------- */

/* Names of the scheduling policies; *count of them; static. */
CS_API const char *const *cs_policy_names(int *count);

/* Reads an f32 array of the given shape: .npy (f4, f8, f2, u1 in C order) or raw little-endian f32.
 * Released with cs_array_free. Errors: IO, BAD_INPUT (found and wanted). */
CS_API cs_status cs_array_load(const char *path, int rank, const int64_t *dims,
                               float **out) CS_MUST_USE;
CS_API void cs_array_free(float *array);
/* A .npy file of these types that is read piece by piece, so that it may be larger than memory. */
typedef struct cs_array_reader cs_array_reader;
/* Errors: IO, BAD_INPUT (found and wanted; a file that is shorter or longer than its shape). */
CS_API cs_status cs_array_reader_open(const char *path, cs_array_reader **out) CS_MUST_USE;
/* Its shape: *rank (up to 8), dims[8]. */
CS_API void cs_array_reader_shape(const cs_array_reader *reader, int *rank, int64_t dims[8]);
/* The next `count` elements. Errors: IO; USAGE (more than are left). */
CS_API cs_status cs_array_reader_next(cs_array_reader *reader, int64_t count,
                                      float *out) CS_MUST_USE;
CS_API void cs_array_reader_close(cs_array_reader *reader);
/* Writes .npy, or raw little-endian f32 for any other extension. Errors: IO. */
CS_API cs_status cs_array_save(const char *path, int rank, const int64_t *dims,
                               const float *data) CS_MUST_USE;

/* Replaces the file at `path` by a temporary file and a rename. Errors: IO. */
CS_API cs_status cs_text_save(const char *path, const char *text) CS_MUST_USE;

/* Where measurements are kept unless told otherwise. Errors: IO (no home directory). */
CS_API cs_status cs_default_cache_directory(char **out) CS_MUST_USE;

/* What such a folder (NULL: the default) holds, released with cs_string_free, last used first:
 * {"directory":…, "bytes":…, "cap_bytes":… (0: no limit), "files":[{"file","bytes","last_use"
 * (seconds since 1970),
 * "device","identity","method","operations","complete","records","rejected","kernels",
 *  "coruns","damaged","foreign"}…]}; of a file that cannot be read "error" in place of what it
 * says. Errors: IO; USAGE ($CONVSCHED_CACHE_CAP is no number of bytes). */
CS_API cs_status cs_cache_json(const char *cache_dir, char **out) CS_MUST_USE;
/* Removes what was not used for `older_than_days` (0: all), and says how many files of how many
 * bytes. Errors: IO. */
CS_API cs_status cs_cache_clear(const char *cache_dir, double older_than_days, int *files,
                                int64_t *bytes) CS_MUST_USE;

/* The device's own measurements in the cache: {"path" (null: in memory only), "device","identity",
 * "method","operations",… as above}. */
CS_API cs_status cs_device_profile_json(cs_device *device, const char *cache_dir,
                                        char **out) CS_MUST_USE;
/* Writes them, the latest of each, sorted; compressed if `path` ends in .gz. The same measurements
 * give the same bytes. Errors: NOT_FOUND (nothing measured), IO. */
CS_API cs_status cs_device_export_profile(cs_device *device, const char *cache_dir,
                                          const char *path) CS_MUST_USE;
/* Takes over an exported file's measurements, in place of those of the same candidates; *taken: the
 * lines that were news. Errors: BAD_INPUT (of another device or version, which it names; damaged),
 * IO. */
CS_API cs_status cs_device_import_profile(cs_device *device, const char *cache_dir,
                                          const char *path, int *taken) CS_MUST_USE;

/* ---- Benches of one operation ---------------------------------------------------------------- */

/* Measures into the cache what it lacks of the only operation that a graph has after passes, in
 * each layout the device likes, and of the baselines that the options' `allows` name: candidates
 * that are there to be compared with, as "cpu.gemm_naive*" (a pattern has to begin with the whole
 * name of the family; it restricts nothing here). Every result is checked as all are. *out,
 * released with cs_string_free: {"operation":"Gemm", "flops", "bytes" (fewest of memory),
 * "peak_flops" and "peak_bandwidth" (FLOP/s and bytes/s that the device sustains in that precision,
 * measured once, or seen here),
 * "candidates":[{"id","family","layout","baseline","threads","workspace_bytes","rejected", and
 * "cold_us","warm_us","p10_us","p90_us","variation","samples", or "reason"}…]}. Errors: USAGE (more
 * than one operation; a simulated device), and as of planning. */
CS_API cs_status cs_bench_operation(cs_device *device, const cs_graph *graph,
                                    const cs_session_options *session_options,
                                    char **out) CS_MUST_USE;
/* What `convsched bench` recorded (`convsched.bench/1`, one document after the other, `length`
 * bytes) as a table (TEXT, MARKDOWN, CSV), as a self-contained page with curves (HTML), or as the
 * curves alone (SVG). `name` stands for the records in messages. Released with cs_string_free.
 * Errors: BAD_INPUT (record, found, wanted); USAGE (another format). */
CS_API cs_status cs_bench_records_text(const char *records, size_t length, const char *name,
                                       cs_report_format format, char **out) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif /* CONVSCHED_CONVSCHED_H_ */
