/* The sim backend: a GPU that a profile describes, played through the SM model. It enumerates what
 * was recorded and predicts times; it computes nothing. */
#ifndef CONVSCHED_BACKEND_SIM_SIM_H_
#define CONVSCHED_BACKEND_SIM_SIM_H_

#include <pthread.h>

#include "backend/backend.h"
#include "profiler/profile.h"
#include "scheduler/sm_schedule.h"

/* A piece of simulated memory: addresses with nothing behind them. */
typedef struct sim_memory {
  void *address;
  size_t bytes;
  struct sim_memory *next;
} sim_memory;

typedef struct sim_backend {
  cs_backend base;
  cs_device_info info;
  cs_profile *profile;
  pthread_mutex_t profile_lock; /* looking up parses what was not asked for before */
  cs_sm_model *model;
  sim_memory *memory;
  int64_t memory_used; /* bytes */
} sim_backend;

/* ---- candidates.c ---- */
int sim_layouts(const cs_backend *backend, cs_precision precision,
                cs_layout out[CS_MAX_DEVICE_LAYOUTS]);
bool sim_takes_prologue(cs_backend *backend, const cs_op_desc *desc);
cs_status sim_enumerate(cs_backend *backend, const cs_op_desc *desc,
                        const cs_enumerate_options *options, cs_candidate_list *out) CS_MUST_USE;
cs_status sim_prepare(cs_backend *backend, const cs_op_desc *desc, const cs_candidate *candidate,
                      cs_exec **out) CS_MUST_USE;
void sim_exec_destroy(cs_exec *exec);
int64_t sim_exec_workspace(const cs_exec *exec);
int64_t sim_exec_weight_bytes(const cs_exec *exec);
cs_status sim_pack_weights(const cs_exec *exec, const float *weight, const float *bias,
                           void *host_out) CS_MUST_USE;
const cs_candidate *sim_exec_candidate(const cs_exec *exec);
/* The candidate's kernels for the model, and as they were recorded (NULL: they were not). */
const cs_sm_operation *sim_exec_operation(const cs_exec *exec);
const cs_kernel_profile *sim_exec_kernels(const cs_exec *exec);

/* ---- memory.c ---- */
cs_status sim_allocate(cs_backend *backend, int64_t bytes, void **out) CS_MUST_USE;
void sim_release(cs_backend *backend, void *memory);
cs_status sim_upload(cs_backend *backend, void *device, const void *host,
                     int64_t bytes) CS_MUST_USE;
cs_status sim_download(cs_backend *backend, void *host, const void *device,
                       int64_t bytes) CS_MUST_USE;
cs_status sim_fill(cs_backend *backend, void *device, int byte, int64_t bytes) CS_MUST_USE;

/* ---- schedule.c ---- */
cs_status sim_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                              const cs_stream_set *streams, bool use_graph,
                              cs_schedule **out) CS_MUST_USE;
void sim_schedule_destroy(cs_schedule *schedule);
cs_status sim_schedule_run(cs_schedule *schedule) CS_MUST_USE;
cs_status sim_schedule_latency(cs_schedule *schedule, int count, double *us) CS_MUST_USE;
cs_status sim_schedule_b2b(cs_schedule *schedule, int n, double *us) CS_MUST_USE;
cs_status sim_schedule_kernels(cs_schedule *schedule, cs_kernel_info *out, int capacity,
                               int *count) CS_MUST_USE;

#endif
