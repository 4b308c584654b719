/* The whole contract between convsched and a device: describe it, enumerate candidates of an
 * operation, prepare one, move memory, run a schedule of prepared operations on streams, time it.
 * One vtable; members marked optional may be NULL, their default is stated.
 *
 * A schedule is realised as a whole, not stream call by stream call: a CUDA backend captures it
 * into one CUDA graph, the CPU backend runs it with worker threads and dependency counters. After
 * schedule_create nothing is allocated.
 *
 * Threads: a backend is used by one thread at a time, except enumerate(), prepare() and
 * pack_weights(), which may run concurrently on one backend.
 */
#ifndef CONVSCHED_BACKEND_BACKEND_H_
#define CONVSCHED_BACKEND_BACKEND_H_

#include "backend/error_measure.h"
#include "graph/op.h"
#include "profiler/candidate.h"
#include "profiler/counters.h"

typedef struct cs_backend cs_backend;   /* an open device */
typedef struct cs_exec cs_exec;         /* a prepared candidate; immutable once prepared */
typedef struct cs_schedule cs_schedule; /* a realised schedule */
typedef struct cs_expected cs_expected; /* right results, kept on the device to compare with */
typedef struct cs_requests cs_requests; /* requests in flight, in slots */
struct cs_profile;                      /* profiler/profile.h */

#define CS_MAX_DEVICE_LAYOUTS 4
#define CS_MAX_PARTS 4    /* of a device that is split */
#define CS_MAX_EXPECTED 3 /* operations whose results are compared together */

/* What the blocks of one unit (SM) share; 0: unknown. */
typedef struct cs_unit_limits {
  int registers, threads, blocks;
  int shared_bytes;          /* of all blocks together, the driver's own share included */
  int reserved_shared_bytes; /* of every block, by the driver */
  int warp_size;
} cs_unit_limits;

typedef struct cs_device_info {
  char backend[16]; /* "cpu", "cuda", "sim" */
  char name[128];
  /* Everything measurements depend on, as one stable text: the second half of a profile key. */
  char identity[512];
  int units; /* SMs; CPU: cores */
  int64_t memory_bytes;
  int64_t cache_bytes;   /* L2 (CPU: last level): inputs rotate over more than twice as much */
  double peak_flops[4];  /* per cs_precision, FLOP/s; 0: unknown */
  double peak_bandwidth; /* bytes/s; 0: unknown */
  int default_streams;
  int max_streams;
  char driver[32], runtime[32], library[32]; /* versions, as text: driver, CUDA, cuDNN/oneDNN */
  int prepare_threads;    /* that preparing stored candidates gains from; 0: all cores */
  int compute_capability; /* 90; CPU: 0 */
  int clock_mhz;          /* 0: unknown */
  cs_unit_limits unit;
  /* What its units can be split into: parts of at least so many, in steps of so many
   * (profiler/partition.h); 0: it cannot be split. */
  int part_least, part_step;
  bool priorities; /* launches may have one */
  bool hints;      /* launches may get hints of their order, in a graph */
} cs_device_info;

/* How the device is doing now. NaN, -1 or "" : unknown. */
typedef struct cs_device_state {
  double clock_mhz, memory_clock_mhz, temperature_c, power_w;
  char throttle[128];    /* reasons that slow the clock now, comma-separated; "" none or unknown */
  int other_processes;   /* that compute on it beside this one */
  int partitioned;       /* 1: a slice of a device (MIG); 0: the whole */
  char unavailable[192]; /* why something above is unknown and what to do about it; "" */
} cs_device_state;

typedef struct cs_enumerate_options {
  int64_t workspace_limit;
  bool deterministic;
  bool full;   /* every engine and knob, not only the heuristics' picks */
  int threads; /* CPU: threads of the stream it will run on; 0: all cores */
  /* Of `baselines`: patterns of ids; families that one names are offered (cs_family_is_named). */
  const char *const *allows;
  int n_allows;
} cs_enumerate_options;
/* Whether a family of baselines is asked for. */
static inline bool cs_baseline_is_wanted(const cs_enumerate_options *options, const char *family) {
  return options->full || cs_family_is_named(family, options->allows, options->n_allows);
}

/* What an operation of a schedule touches. Device pointers; `inputs` as in cs_op_desc. */
typedef struct cs_launch {
  const cs_exec *exec;
  const char *name; /* of the task: traces and errors */
  const void *inputs[CS_MAX_OP_INPUTS];
  void *output;
  const void *weights; /* exec's packed weights, exec_weight_bytes long, 256-aligned */
  void *workspace;     /* exec's workspace, 256-aligned */
  int stream;          /* 0 … n − 1 of n streams */
  int n_waits;
  const int *waits; /* launches (smaller indices, other streams) that must have finished */
  /* The launch whose kernel computes this one as well; -1: it has its own. Launches behind their
   * leader, on its stream, without waits or workspace, of a candidate that `merges`; they run at
   * the same time. A backend that cannot do it refuses (BAD_INPUT). */
  int merged;
  int priority; /* 1: its blocks go before those of others that are ready; 0: normal */
  /* It begins when what it waits for has ended, also in a set of streams that is `early`. Of a
   * merged launch its leader's counts. */
  bool late;
} cs_launch;

/* The streams of a schedule, and the parts of the device that they run on. */
typedef struct cs_stream_set {
  int n;
  int n_parts;             /* 0: the device is not split */
  int parts[CS_MAX_PARTS]; /* units (SMs) of each */
  const int *part_of;      /* per stream: its part, -1: the whole device; NULL: all -1 */
  /* Kernels of candidates that `begins_early` tells of may begin before what they wait for has
   * ended: in a graph, on a device that is not split. Elsewhere nothing does. */
  bool early;
  /* Launches of candidates that do not begin early begin when all blocks of the latest launch
   * before them, on another stream and not ordered with them, have begun: what is issued first gets
   * SMs first. In a graph, on a device that is not split and has them; elsewhere there are none. */
  bool hints;
  bool beside; /* runs while other schedules do, and shares nothing that is written */
} cs_stream_set;
static const cs_stream_set cs_one_stream = {.n = 1};

typedef struct cs_kernel_info { /* one kernel of a schedule, from the driver */
  int launch;                   /* index into the launches, -1 if unknown */
  char name[256];
  int grid[3], block[3], cluster[3];
  int registers, static_shared, dynamic_shared, local_bytes, blocks_per_unit;
  bool early; /* in its schedule it begins before some kernel that it waits for has ended */
} cs_kernel_info;

typedef struct cs_kernel_counts { /* one kernel of a schedule, counted by itself */
  char name[256];
  cs_counters counters;
} cs_kernel_counts;

typedef struct cs_kernel_trace { /* one kernel as it ran */
  char name[256];
  int launch;              /* index into the launches; -1: unknown */
  double start_us, end_us; /* from the start of the first kernel */
  int stream;              /* of the device's own numbering; -1: unknown */
  int grid[3], block[3];
  int registers, static_shared, dynamic_shared, local_bytes;
} cs_kernel_trace;

/* One array of a request: where it lies on the device, and where in host memory (of
 * host_allocate). */
typedef struct cs_transfer {
  void *device, *host;
  int64_t bytes;
  /* Of an output that leaves the device as 8-bit pixels (graph/pixels.h): the tensor, which a run
   * makes; `device` is then where they are to be made of it, behind the run. NULL: `device` is the
   * tensor. */
  const void *tensor;
  cs_tensor_desc desc; /* of `tensor` */
} cs_transfer;

/* A place for requests, one after the other: inputs to the device, a run, outputs from it. */
typedef struct cs_request_slot {
  cs_schedule *schedule; /* `beside`, with an arena of its own */
  const cs_transfer *inputs, *outputs;
  int n_inputs, n_outputs;
} cs_request_slot;

typedef struct cs_request_times { /* microseconds from when the first request of a burst began */
  double start, end;              /* the copy of its inputs begins, that of its outputs has ended */
} cs_request_times;

/* Whether a recorded candidate is there, as far as its id tells. */
typedef enum cs_presence {
  CS_PRESENCE_UNTOLD, /* the id names no library's version: what the identity says holds */
  CS_PRESENCE_THERE,  /* of the version that is installed */
  CS_PRESENCE_OTHER_VERSION,
  CS_PRESENCE_NO_LIBRARY
} cs_presence;

typedef struct cs_compared { /* of one output */
  cs_error_measure error;
  bool gaps_kept; /* what lies between the elements of a view is as it was */
} cs_compared;

typedef struct cs_backend_vtable {
  const char *name;

  void (*close)(cs_backend *backend);
  const cs_device_info *(*info)(const cs_backend *backend);

  /* Layouts worth considering for a precision, best guess first; returns how many. */
  int (*layouts)(const cs_backend *backend, cs_precision precision,
                 cs_layout out[CS_MAX_DEVICE_LAYOUTS]);

  /* Optional (default: none). Whether this convolution with a prologue, dense and in one layout,
   * has candidates that are meant for it: then passes may make it of a BatchNormalization and its
   * reader. */
  bool (*takes_prologue)(cs_backend *backend, const cs_op_desc *desc);

  /* Appends every admissible candidate for exactly these strides and alignments. None is not an
   * error. Never exceeds the workspace limit. */
  cs_status (*enumerate)(cs_backend *backend, const cs_op_desc *desc,
                         const cs_enumerate_options *options, cs_candidate_list *out) CS_MUST_USE;

  /* Optional (default: there are none). Appends candidates that are there to be compared with, low
   * rungs of a ladder: under `full` all, else those of families that `allows` names. */
  cs_status (*baselines)(cs_backend *backend, const cs_op_desc *desc,
                         const cs_enumerate_options *options, cs_candidate_list *out) CS_MUST_USE;

  /* Optional (default: UNTOLD). For ids that name the version of a library which the device's
   * identity does not: a profile has those of every version that was ever installed. May load the
   * library. */
  cs_presence (*presence)(cs_backend *backend, const char *candidate);

  /* Optional (default: none does). Whether kernels of this candidate can begin before what they
   * wait for has ended, where cs_stream_set.early lets them. */
  bool (*begins_early)(const cs_backend *backend, const cs_candidate *candidate);

  /* Prepares a candidate by id (payload helps where present). BAD_INPUT: no such candidate here. */
  cs_status (*prepare)(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                       cs_exec **out) CS_MUST_USE;
  void (*exec_destroy)(cs_exec *exec);
  int64_t (*exec_workspace)(const cs_exec *exec);
  /* Bytes of packed weights (weights and bias in the device's own form); 0: none. */
  int64_t (*exec_weight_bytes)(const cs_exec *exec);
  /* Packs f32 PyTorch-shaped weight and bias (NULL where the operation has none) into
   * exec_weight_bytes(exec) zeroed bytes of host memory that then go to the device as they are. */
  cs_status (*pack_weights)(const cs_exec *exec, const float *weight, const float *bias,
                            void *host_out) CS_MUST_USE;

  /* Device memory, 256-aligned. NO_MEMORY names the bytes wanted and what is free. */
  cs_status (*allocate)(cs_backend *backend, int64_t bytes, void **out) CS_MUST_USE;
  void (*release)(cs_backend *backend, void *memory);
  /* Memory of `allocate` is the host's own: weights are packed into it, and not uploaded. */
  bool memory_is_hosts;
  /* Synchronous copies. */
  cs_status (*upload)(cs_backend *backend, void *device, const void *host,
                      int64_t bytes) CS_MUST_USE;
  cs_status (*download)(cs_backend *backend, void *host, const void *device,
                        int64_t bytes) CS_MUST_USE;
  cs_status (*fill)(cs_backend *backend, void *device, int byte, int64_t bytes) CS_MUST_USE;

  /* `launches` in issue order; streams run theirs in that order. The launches, and the pointers in
   * them except `exec`s, are copied. use_graph false: plain stream calls (CPU: no difference).
   * BAD_INPUT, which says what was found and wanted: parts that the device cannot be split into
   * (cs_stream_set_check), priorities that it cannot keep. */
  cs_status (*schedule_create)(cs_backend *backend, const cs_launch *launches, int n,
                               const cs_stream_set *streams, bool use_graph,
                               cs_schedule **out) CS_MUST_USE;
  void (*schedule_destroy)(cs_schedule *schedule);
  /* Runs once and waits. */
  cs_status (*schedule_run)(cs_schedule *schedule) CS_MUST_USE;
  /* `count` latency samples in microseconds: device events around one launch, the stream idle
   * before it, the device kept busy until just before. */
  cs_status (*schedule_latency)(cs_schedule *schedule, int count, double *us) CS_MUST_USE;
  /* Microseconds per launch over n launches back to back. */
  cs_status (*schedule_b2b)(cs_schedule *schedule, int n, double *us) CS_MUST_USE;
  /* Optional (default: one kernel a launch, nothing known): the kernels of a realised schedule.
   * Writes up to `capacity`, sets *count to all there are. */
  cs_status (*schedule_kernels)(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                                int *count) CS_MUST_USE;
  /* Optional (default: no counters). Counters of every kernel of one run, one kernel at a time, in
   * the order they ran: up to `capacity`, *count all there are. NOT_FOUND: not available, the
   * message says why and how to get them. Times taken meanwhile are worth nothing. */
  cs_status (*schedule_counters)(cs_schedule *schedule, cs_kernel_counts *out, int capacity,
                                 int *count) CS_MUST_USE;
  /* Optional, the same errors: counters over one whole run, kernels overlapping as they do. */
  cs_status (*schedule_counters_whole)(cs_schedule *schedule, cs_counters *out) CS_MUST_USE;
  /* Optional, the same errors: when each kernel of one run started and ended (with the tracer's
   * overhead), in order of start. A backend without schedule_kernels tells one of every launch,
   * with its `launch` and the schedule's own number of its stream. */
  cs_status (*schedule_trace)(cs_schedule *schedule, cs_kernel_trace *out, int capacity,
                              int *count) CS_MUST_USE;
  /* Optional (default: nothing known): clocks, temperature, who else is there. */
  cs_status (*state)(cs_backend *backend, cs_device_state *out) CS_MUST_USE;
  /* Optional (default: USAGE error): runs asynchronously on the caller's native stream, ordered
   * after what is on it. */
  cs_status (*schedule_run_on)(cs_schedule *schedule, void *native_stream) CS_MUST_USE;
  /* Optional (default: the runtime converts on the host): an f32 row-major NCHW device array to or
   * from a device tensor of any layout and dtype, asynchronously on a native stream (NULL: the
   * device's default stream). */
  cs_status (*import_tensor)(cs_backend *backend, const float *nchw, const cs_tensor_desc *desc,
                             void *tensor, void *native_stream) CS_MUST_USE;
  cs_status (*export_tensor)(cs_backend *backend, const cs_tensor_desc *desc, const void *tensor,
                             float *nchw, void *native_stream) CS_MUST_USE;

  /* Optional, all or none (default: plain memory; the runtime runs requests one after the other, by
   * upload, schedule_run and download, and the host's clock times them). Host memory that the
   * device copies from and to by itself. */
  cs_status (*host_allocate)(cs_backend *backend, int64_t bytes, void **out) CS_MUST_USE;
  void (*host_release)(cs_backend *backend, void *memory);
  /* n slots whose requests are in flight together, copies beside computing. What the slots point to
   * must outlive it. BAD_INPUT: a schedule that it cannot launch so. */
  cs_status (*requests_create)(cs_backend *backend, const cs_request_slot *slots, int n,
                               cs_requests **out) CS_MUST_USE;
  /* Waits for all of them. */
  void (*requests_destroy)(cs_requests *requests);
  /* Enqueues a request behind the one before it in its slot, and does not wait. */
  cs_status (*requests_submit)(cs_requests *requests, int slot) CS_MUST_USE;
  /* Until the slot's last request has ended; then its host memory is the caller's. */
  cs_status (*requests_wait)(cs_requests *requests, int slot) CS_MUST_USE;
  /* n requests, number i in slot i % in_flight, as fast as they go; waits for all. Without `copies`
   * they are runs alone, of the inputs that lie on the device, and `times` are theirs. */
  cs_status (*requests_burst)(cs_requests *requests, int in_flight, bool copies, int n,
                              cs_request_times *times) CS_MUST_USE;
  /* Optional (default: NOT_FOUND): joules that the whole board has used since its driver was
   * loaded. NOT_FOUND: not available, the message says why. */
  cs_status (*energy)(cs_backend *backend, double *joules) CS_MUST_USE;

  /* Optional (default: download and run the plain C reference): double-precision reference of one
   * operation from the device's own inputs. `weight`/`bias`: host f32, already rounded to the
   * storage type. Writes logical row-major NCHW doubles to host memory: the value, and the
   * magnitude (the sum of |products|, |bias|, |residual|) that errors are measured against. */
  cs_status (*reference)(cs_backend *backend, const cs_op_desc *desc, const void *const *inputs,
                         const float *weight, const float *bias, double *value,
                         double *magnitude) CS_MUST_USE;
  /* Optional (default: download, run the plain C reference and compare): how far the device's own
   * `output` (as desc->output says) is from that reference of its inputs. The elements stay on the
   * device. The same bits every time. */
  cs_status (*reference_error)(cs_backend *backend, const cs_op_desc *desc,
                               const void *const *inputs, const float *weight, const float *bias,
                               const void *output, cs_error_measure *out) CS_MUST_USE;
  /* Optional, all three or none (default: reference(), outputs downloaded and compared; so it is
   * where layouts have padding lanes): that reference of n operations (up to CS_MAX_EXPECTED), each
   * as desc says, kept on the device. `inputs`: desc->n_inputs of the first operation, then of the
   * next; read before this returns. */
  cs_status (*expected_create)(cs_backend *backend, const cs_op_desc *desc,
                               const void *const *inputs, int n, const float *weight,
                               const float *bias, cs_expected **out) CS_MUST_USE;
  void (*expected_destroy)(cs_expected *expected);
  /* Compares the n outputs with it. Between the elements of each, within its span, every byte was
   * gap_byte. The same bits every time. */
  cs_status (*expected_compare)(cs_expected *expected, const void *const *outputs, int gap_byte,
                                cs_compared *out) CS_MUST_USE;

  /* Optional (default: the device is there, and its profile is the cache's). A device that was
   * recorded elsewhere: all that is known of it. It belongs to the backend, is read only, and grows
   * no more: nothing can be measured. Such a backend computes nothing (schedule_run and download
   * are USAGE errors, memory holds nothing), and the times of its schedules are predictions. */
  struct cs_profile *(*recorded)(cs_backend *backend);
} cs_backend_vtable;

/* Every backend's struct begins with this. */
struct cs_backend {
  const cs_backend_vtable *vtable;
  cs_logger logger;
};

/* ---- Registry: the backends this build has, in order of preference under "auto" ---- */

typedef struct cs_backend_entry {
  const char *name;
  /* How many devices are there now; 0 with a reason (a status message) when there are none. */
  int (*count)(char *reason, size_t reason_size);
  /* NULL: a backend of files, not of devices. */
  cs_status (*open)(int index, const cs_logger *logger, cs_backend **out);
  /* Optional (default: USAGE error): opens a device that a file describes. */
  cs_status (*open_file)(const char *path, const cs_logger *logger, cs_backend **out);
  /* Appends what doctor tells to a JSON object. */
  cs_status (*doctor)(json_t *object);
} cs_backend_entry;
/* NULL-terminated by a name of NULL. */
extern const cs_backend_entry cs_backend_entries[];

cs_status cs_cpu_backend_open(int index, const cs_logger *logger, cs_backend **out) CS_MUST_USE;
int cs_cpu_backend_count(char *reason, size_t reason_size);
cs_status cs_cpu_backend_doctor(json_t *object) CS_MUST_USE;
cs_status cs_cuda_backend_open(int index, const cs_logger *logger, cs_backend **out) CS_MUST_USE;
int cs_cuda_backend_count(char *reason, size_t reason_size);
cs_status cs_cuda_backend_doctor(json_t *object) CS_MUST_USE;
cs_status cs_sim_backend_open_file(const char *path, const cs_logger *logger,
                                   cs_backend **out) CS_MUST_USE;
int cs_sim_backend_count(char *reason, size_t reason_size);
cs_status cs_sim_backend_doctor(json_t *object) CS_MUST_USE;

#endif
