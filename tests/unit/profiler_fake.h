/* A backend over host memory for tests of measuring: every operation has the same planted
 * candidates, each with a behaviour; results come from the plain C reference, times are made up. */
#ifndef CONVSCHED_TESTS_PROFILER_FAKE_H_
#define CONVSCHED_TESTS_PROFILER_FAKE_H_

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/reference/reference.h"

typedef enum fake_behaviour {
  FAKE_RIGHT,
  FAKE_HOGS, /* right, but leaves no room for anything beside it */
  FAKE_WRONG,
  FAKE_LAST_IMAGE_WRONG,
  FAKE_UNWRITTEN,
  FAKE_PAST_OUTPUT,
  FAKE_BEFORE_OUTPUT,
  FAKE_INTO_GAPS,
  FAKE_PAST_WORKSPACE,
  FAKE_UNDERSTATED_WORKSPACE,
  FAKE_UNPREPARED,
  FAKE_FAILS,
  FAKE_BREAKS_DEVICE
} fake_behaviour;

typedef struct fake_candidate {
  const char *id;
  fake_behaviour behaviour;
  double us; /* per launch; the first launch of a chain costs 1 µs more */
  int64_t workspace;
  int threads;
} fake_candidate;

typedef struct fake_backend {
  cs_backend base;
  cs_device_info info;
  const fake_candidate *candidates;
  int n_candidates;
  const char *library; /* installed version: "lib.v2", which ids "lib.v2:…" are of; NULL: none */
  bool hollow;         /* outputs are zero and so is the reference: for operations that take long */
  bool broken;
  bool noisy;             /* no sample is like the one before */
  int slow_from, slow_to; /* samples after the warm-up that the clock is low for */
  int since_warm_up;
  double first_run_s;       /* that long takes the first run of every candidate's check */
  const char *first_run_of; /* of this candidate's alone; NULL: of every one's */
  int runs;                 /* launches computed */
  int samples;              /* latency samples */
  int schedules;            /* created */
  int counted;              /* schedules counted or traced */
  bool uncounted;           /* counters may not be read */
  bool spills;              /* 48 bytes a thread, of which traces do not tell */
  bool runs_wide;     /* kernels run with more registers and shared memory than they are told to */
  int allocated;      /* live allocations */
  int64_t downloaded; /* bytes, of the largest download */
  /* Of one that compares (profiler_fake_expected.h). */
  int expected; /* live references */
  int compared; /* results */
  bool expects_nothing;
} fake_backend;

struct cs_exec {
  fake_backend *backend;
  const fake_candidate *planted;
  cs_op_desc desc;
};

struct cs_schedule {
  fake_backend *backend;
  cs_launch launches[64];
  int n, n_streams;
};

static inline fake_backend *fake_of(cs_backend *backend) {
  return (fake_backend *)backend;
}

static inline cs_status fake_broken(const fake_backend *fake) {
  return fake->broken ? cs_error(CS_CODE_DEVICE, "the device is gone") : CS_OK;
}

static inline const cs_device_info *fake_info(const cs_backend *backend) {
  return &((const fake_backend *)backend)->info;
}

static inline int fake_layouts(const cs_backend *backend, cs_precision precision,
                               cs_layout out[CS_MAX_DEVICE_LAYOUTS]) {
  (void)backend;
  (void)precision;
  out[0] = CS_LAYOUT_NCHW;
  return 1;
}

static inline const char *fake_family(const char *id) {
  return strncmp(id, "lib.v", 5) == 0 ? "lib" : "fake";
}

/* Those called "base.…" are baselines, each a family of its own. */
static inline bool fake_is_baseline(const fake_candidate *planted) {
  return strncmp(planted->id, "base.", 5) == 0;
}

static inline cs_status fake_offer(const fake_candidate *planted,
                                   const cs_enumerate_options *options, cs_candidate_list *out) {
  if (planted->workspace > options->workspace_limit) return CS_OK;
  if (options->threads > 0 && planted->threads > 0 && planted->threads != options->threads) {
    return CS_OK;
  }
  cs_candidate candidate = {.id = cs_strdup(planted->id),
                            .family = cs_strdup(fake_family(planted->id)),
                            .payload = cs_strdup("plan"),
                            .workspace_bytes = planted->workspace,
                            .deterministic = true,
                            .threads = planted->threads};
  return cs_candidate_list_add(out, &candidate);
}

static inline cs_status fake_enumerate(cs_backend *backend, const cs_op_desc *desc,
                                       const cs_enumerate_options *options,
                                       cs_candidate_list *out) {
  fake_backend *fake = fake_of(backend);
  (void)desc;
  for (int i = 0; i < fake->n_candidates; i++) {
    if (fake_is_baseline(&fake->candidates[i])) continue;
    CS_RETURN_IF_ERROR(fake_offer(&fake->candidates[i], options, out));
  }
  return CS_OK;
}

static inline cs_status fake_baselines(cs_backend *backend, const cs_op_desc *desc,
                                       const cs_enumerate_options *options,
                                       cs_candidate_list *out) {
  fake_backend *fake = fake_of(backend);
  (void)desc;
  for (int i = 0; i < fake->n_candidates; i++) {
    const fake_candidate *planted = &fake->candidates[i];
    if (!fake_is_baseline(planted) || !cs_baseline_is_wanted(options, planted->id)) continue;
    CS_RETURN_IF_ERROR(fake_offer(planted, options, out));
  }
  return CS_OK;
}

/* "lib.v1:a" is of version 1 of the library. */
static inline cs_presence fake_presence(cs_backend *backend, const char *candidate) {
  const char *library = fake_of(backend)->library, *colon = strchr(candidate, ':');
  if (strncmp(candidate, "lib.v", 5) != 0 || !colon) return CS_PRESENCE_UNTOLD;
  if (!library) return CS_PRESENCE_NO_LIBRARY;
  size_t length = (size_t)(colon - candidate);
  bool same = strlen(library) == length && strncmp(candidate, library, length) == 0;
  return same ? CS_PRESENCE_THERE : CS_PRESENCE_OTHER_VERSION;
}

static inline cs_status fake_prepare(cs_backend *backend, const cs_op_desc *desc,
                                     const cs_candidate *candidate, cs_exec **out) {
  fake_backend *fake = fake_of(backend);
  for (int i = 0; i < fake->n_candidates; i++) {
    const fake_candidate *planted = &fake->candidates[i];
    if (strcmp(planted->id, candidate->id) != 0) continue;
    if (planted->behaviour == FAKE_UNPREPARED) break;
    *out = cs_calloc(1, sizeof **out);
    **out = (cs_exec){fake, planted, *desc};
    return CS_OK;
  }
  return cs_error(CS_CODE_BAD_INPUT, "no such candidate: %s", candidate->id);
}

static inline void fake_exec_destroy(cs_exec *exec) {
  free(exec);
}

static inline int64_t fake_exec_workspace(const cs_exec *exec) {
  return exec->planted->workspace + (exec->planted->behaviour == FAKE_UNDERSTATED_WORKSPACE);
}

static inline int64_t fake_exec_weight_bytes(const cs_exec *exec) {
  return 4 * (cs_op_weight_elements(&exec->desc) + cs_op_bias_elements(&exec->desc));
}

static inline cs_status fake_pack_weights(const cs_exec *exec, const float *weight,
                                          const float *bias, void *host_out) {
  int64_t n = cs_op_weight_elements(&exec->desc), m = cs_op_bias_elements(&exec->desc);
  float *out = host_out;
  if (n > 0) memcpy(out, weight, (size_t)n * sizeof *out);
  if (m > 0) memcpy(out + n, bias, (size_t)m * sizeof *out);
  return CS_OK;
}

static inline cs_status fake_allocate(cs_backend *backend, int64_t bytes, void **out) {
  CS_RETURN_IF_ERROR(fake_broken(fake_of(backend)));
  *out = aligned_alloc(256, (size_t)cs_round_up(bytes, 256));
  fake_of(backend)->allocated++;
  return *out ? CS_OK : cs_no_memory("fake device memory", (size_t)bytes);
}

static inline void fake_release(cs_backend *backend, void *memory) {
  fake_of(backend)->allocated--;
  free(memory);
}

static inline cs_status fake_upload(cs_backend *backend, void *device, const void *host,
                                    int64_t bytes) {
  CS_RETURN_IF_ERROR(fake_broken(fake_of(backend)));
  memcpy(device, host, (size_t)bytes);
  return CS_OK;
}

static inline cs_status fake_download(cs_backend *backend, void *host, const void *device,
                                      int64_t bytes) {
  fake_backend *fake = fake_of(backend);
  CS_RETURN_IF_ERROR(fake_broken(fake));
  if (bytes > fake->downloaded) fake->downloaded = bytes;
  memcpy(host, device, (size_t)bytes);
  return CS_OK;
}

static inline cs_status fake_fill(cs_backend *backend, void *device, int byte, int64_t bytes) {
  CS_RETURN_IF_ERROR(fake_broken(fake_of(backend)));
  memset(device, byte, (size_t)bytes);
  return CS_OK;
}

static inline cs_status fake_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                                             const cs_stream_set *streams, bool use_graph,
                                             cs_schedule **out) {
  (void)use_graph;
  CS_RETURN_IF_ERROR(fake_broken(fake_of(backend)));
  *out = cs_calloc(1, sizeof **out);
  (*out)->backend = fake_of(backend);
  (*out)->n = n;
  (*out)->n_streams = streams->n;
  (*out)->backend->schedules++;
  memcpy((*out)->launches, launches, (size_t)n * sizeof *launches);
  return CS_OK;
}

static inline void fake_schedule_destroy(cs_schedule *schedule) {
  free(schedule);
}

/* What a right candidate writes. */
static inline cs_status fake_compute(const cs_launch *launch) {
  cs_status st = CS_OK;
  const cs_op_desc *desc = &launch->exec->desc;
  double *inputs[CS_MAX_OP_INPUTS] = {NULL}, *value = NULL;
  const double *pointers[CS_MAX_OP_INPUTS] = {NULL};
  float *result = NULL;
  const float *weights = launch->weights;
  int64_t n = 0, n_weight = cs_op_weight_elements(desc);
  for (int i = 0; i < desc->n_inputs; i++) {
    CS_TRY(st, cs_shape_elements(&desc->inputs[i].shape, &n), done);
    inputs[i] = cs_calloc((size_t)n, sizeof(double));
    cs_tensor_to_f64(&desc->inputs[i], launch->inputs[i], inputs[i]);
    pointers[i] = inputs[i];
  }
  CS_TRY(st, cs_shape_elements(&desc->output.shape, &n), done);
  value = cs_calloc((size_t)n, sizeof *value);
  result = cs_calloc((size_t)n, sizeof *result);
  if (!launch->exec->backend->hollow) {
    CS_TRY(st,
           cs_reference_run(desc, pointers, n_weight ? weights : NULL,
                            desc->has_bias ? weights + n_weight : NULL, value, NULL, 1),
           done);
  }
  for (int64_t i = 0; i < n; i++) result[i] = (float)value[i];
  cs_tensor_from_f32(&desc->output, result, launch->output);
done:
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(inputs[i]);
  free(value);
  free(result);
  return st;
}

/* What the planted behaviour does besides or instead. */
static inline cs_status fake_misbehave(const cs_launch *launch) {
  const cs_exec *exec = launch->exec;
  char *output = launch->output;
  int64_t span = cs_tensor_span_bytes(&exec->desc.output);
  float *first = (float *)launch->output, *last = (float *)(output + span - 4);
  switch (exec->planted->behaviour) {
    case FAKE_WRONG:
      *first += 1;
      break;
    case FAKE_LAST_IMAGE_WRONG:
      *last += 1;
      break;
    case FAKE_UNWRITTEN:
      memset(first, 0xFF, 4);
      break;
    case FAKE_PAST_OUTPUT:
      output[span + 100] = 0;
      break;
    case FAKE_BEFORE_OUTPUT:
      output[-1] = 0;
      break;
    case FAKE_INTO_GAPS: /* between the first image's last element and the second image */
      output[exec->desc.output.strides[0] * 4 - 1] = 0x55;
      break;
    case FAKE_PAST_WORKSPACE:
      ((char *)launch->workspace)[exec->planted->workspace] = 0;
      break;
    case FAKE_FAILS:
      return cs_error(CS_CODE_DEVICE, "illegal instruction");
    case FAKE_BREAKS_DEVICE:
      exec->backend->broken = true;
      return cs_error(CS_CODE_DEVICE, "illegal address");
    default:
      break;
  }
  return CS_OK;
}

static inline cs_status fake_schedule_run(cs_schedule *schedule) {
  CS_RETURN_IF_ERROR(fake_broken(schedule->backend));
  const char *slow = schedule->backend->first_run_of;
  bool is_slow = !slow || strcmp(schedule->launches[0].exec->planted->id, slow) == 0;
  double until = cs_now_seconds() + (is_slow ? schedule->backend->first_run_s : 0);
  while (cs_now_seconds() < until) sched_yield();
  for (int i = 0; i < schedule->n; i++) {
    CS_RETURN_IF_ERROR(fake_compute(&schedule->launches[i]));
    CS_RETURN_IF_ERROR(fake_misbehave(&schedule->launches[i]));
    schedule->backend->runs++;
  }
  return CS_OK;
}

/* Of the anchor, by far the largest operation of a test, few launches make a chain. */
static inline double fake_launch_us(const cs_launch *launch) {
  return launch->exec->planted->us * (cs_op_flops(&launch->exec->desc) > 1e7 ? 100 : 1);
}

/* Streams overlap, except that who hogs runs alone. */
static inline double fake_schedule_us(const cs_schedule *schedule) {
  double alone = 0, longest = 0;
  for (int stream = 0; stream < schedule->n_streams; stream++) {
    double us = 0;
    for (int i = 0; i < schedule->n; i++) {
      const cs_launch *launch = &schedule->launches[i];
      if (launch->stream != stream) continue;
      if (launch->exec->planted->behaviour == FAKE_HOGS) {
        alone += fake_launch_us(launch);
      } else {
        us += fake_launch_us(launch);
      }
    }
    if (us > longest) longest = us;
  }
  return 1 + alone + longest;
}

static inline cs_status fake_schedule_latency(cs_schedule *schedule, int count, double *us) {
  CS_RETURN_IF_ERROR(fake_broken(schedule->backend));
  for (int s = 0; s < count; s++) {
    us[s] = fake_schedule_us(schedule);
    if (schedule->backend->noisy) us[s] *= 1 + 0.1 * (schedule->backend->samples % 5);
    int since = schedule->backend->since_warm_up++;
    if (since >= schedule->backend->slow_from && since < schedule->backend->slow_to) us[s] *= 1.5;
    schedule->backend->samples++;
  }
  return CS_OK;
}

static inline cs_status fake_schedule_b2b(cs_schedule *schedule, int n, double *us) {
  (void)n;
  cs_status st = fake_schedule_latency(schedule, 1, us);
  schedule->backend->since_warm_up = 0;
  return st;
}

static inline cs_status fake_reference(cs_backend *backend, const cs_op_desc *desc,
                                       const void *const *inputs, const float *weight,
                                       const float *bias, double *value, double *magnitude) {
  int64_t n = 0;
  (void)backend;
  (void)inputs;
  (void)weight;
  (void)bias;
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->output.shape, &n));
  for (int64_t i = 0; i < n; i++) value[i] = 0, magnitude[i] = 1;
  return CS_OK;
}

/* ---- As a GPU tells of its kernels: one a launch, of one block that fills a unit or half of it
 * ---- */

static inline cs_status fake_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out,
                                              int capacity, int *count) {
  *count = schedule->n;
  for (int i = 0; i < schedule->n && i < capacity; i++) {
    const fake_candidate *planted = schedule->launches[i].exec->planted;
    out[i] = (cs_kernel_info){.launch = i,
                              .grid = {64, 1, 1},
                              .block = {256, 1, 1},
                              .cluster = {1, 1, 1},
                              .registers = planted->behaviour == FAKE_HOGS ? 168 : 40,
                              .dynamic_shared = planted->behaviour == FAKE_HOGS ? 1024 : 40000,
                              .local_bytes = schedule->backend->spills ? 48 : 0,
                              .blocks_per_unit = 1};
    snprintf(out[i].name, sizeof out[i].name, "kernel of %s", planted->id);
  }
  return CS_OK;
}

static inline cs_status fake_may_count(cs_schedule *schedule) {
  schedule->backend->counted++;
  return schedule->backend->uncounted
             ? cs_error(CS_CODE_NOT_FOUND, "counters need permission: ask the administrator")
             : CS_OK;
}

static inline cs_counters fake_counters_of(double registers) {
  cs_counters counters;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) counters.value[i] = 1;
  counters.value[CS_COUNTER_stall_registers] = registers;
  return counters;
}

static inline cs_status fake_schedule_counters(cs_schedule *schedule, cs_kernel_counts *out,
                                               int capacity, int *count) {
  CS_RETURN_IF_ERROR(fake_may_count(schedule));
  *count = schedule->n;
  for (int i = 0; i < schedule->n && i < capacity; i++) {
    snprintf(out[i].name, sizeof out[i].name, "kernel of %s",
             schedule->launches[i].exec->planted->id);
    out[i].counters = fake_counters_of(7);
  }
  return CS_OK;
}

static inline cs_status fake_schedule_counters_whole(cs_schedule *schedule, cs_counters *out) {
  CS_RETURN_IF_ERROR(fake_may_count(schedule));
  *out = fake_counters_of(9);
  return CS_OK;
}

/* The first two launches run from 0 to 8 and from 4 to 8 µs. */
static inline cs_status fake_schedule_trace(cs_schedule *schedule, cs_kernel_trace *out,
                                            int capacity, int *count) {
  cs_kernel_info info[2];
  int n, wide = schedule->backend->runs_wide;
  CS_RETURN_IF_ERROR(fake_schedule_kernels(schedule, info, 2, &n));
  *count = n < 2 ? n : 2;
  for (int i = 0; i < *count && i < capacity; i++) {
    out[i] = (cs_kernel_trace){.start_us = 4 * i,
                               .end_us = 8,
                               .stream = schedule->launches[i].stream,
                               .grid = {64, 1, 1},
                               .block = {256, 1, 1},
                               .registers = info[i].registers + 8 * wide,
                               .dynamic_shared = info[i].dynamic_shared + 512 * wide};
    memcpy(out[i].name, info[i].name, sizeof out[i].name);
  }
  return CS_OK;
}

#define FAKE_VTABLE                                                                        \
  .name = "fake", .info = fake_info, .layouts = fake_layouts, .enumerate = fake_enumerate, \
  .baselines = fake_baselines, .presence = fake_presence, .prepare = fake_prepare,         \
  .exec_destroy = fake_exec_destroy, .exec_workspace = fake_exec_workspace,                \
  .exec_weight_bytes = fake_exec_weight_bytes, .pack_weights = fake_pack_weights,          \
  .allocate = fake_allocate, .release = fake_release, .upload = fake_upload,               \
  .download = fake_download, .fill = fake_fill, .schedule_create = fake_schedule_create,   \
  .schedule_destroy = fake_schedule_destroy, .schedule_run = fake_schedule_run,            \
  .schedule_latency = fake_schedule_latency, .schedule_b2b = fake_schedule_b2b

static const cs_backend_vtable fake_vtable = {FAKE_VTABLE};
static const cs_backend_vtable fake_hollow_vtable = {FAKE_VTABLE, .reference = fake_reference};

static const cs_backend_vtable fake_gpu_vtable = {
    FAKE_VTABLE, .schedule_kernels = fake_schedule_kernels,
    .schedule_counters = fake_schedule_counters,
    .schedule_counters_whole = fake_schedule_counters_whole, .schedule_trace = fake_schedule_trace};

static inline fake_backend fake_create(const fake_candidate *candidates, int n) {
  fake_backend fake = {.base.vtable = &fake_vtable, .candidates = candidates, .n_candidates = n};
  snprintf(fake.info.name, sizeof fake.info.name, "fake");
  fake.info.units = 4;
  fake.info.cache_bytes = 1 << 16;
  fake.info.memory_bytes = (int64_t)1 << 30;
  return fake;
}

#endif
