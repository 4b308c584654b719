/* Opening a recorded device, and describing it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sim/sim.h"
#include "profiler/partition.h"

/* The file does not tell how many streams the device was planned for: those of the CUDA backend. */
#define SIM_DEFAULT_STREAMS 8
#define SIM_MAX_STREAMS 32
/* Of the device that cs_sm_h100 was fitted on. */
#define FITTED_CAPABILITY 90

static void sim_close(cs_backend *backend) {
  sim_backend *sim = (sim_backend *)backend;
  if (!sim) return;
  while (sim->memory) sim_release(backend, sim->memory->address);
  cs_sm_model_destroy(sim->model);
  cs_profile_close(sim->profile);
  pthread_mutex_destroy(&sim->profile_lock);
  free(sim);
}

static const cs_device_info *sim_info(const cs_backend *backend) {
  return &((const sim_backend *)backend)->info;
}

static struct cs_profile *sim_recorded(cs_backend *backend) {
  return ((sim_backend *)backend)->profile;
}

static const cs_backend_vtable sim_vtable = {
    .name = "sim",
    .close = sim_close,
    .info = sim_info,
    .layouts = sim_layouts,
    .takes_prologue = sim_takes_prologue,
    .enumerate = sim_enumerate,
    .prepare = sim_prepare,
    .exec_destroy = sim_exec_destroy,
    .exec_workspace = sim_exec_workspace,
    .exec_weight_bytes = sim_exec_weight_bytes,
    .pack_weights = sim_pack_weights,
    .allocate = sim_allocate,
    .release = sim_release,
    .upload = sim_upload,
    .download = sim_download,
    .fill = sim_fill,
    .schedule_create = sim_schedule_create,
    .schedule_destroy = sim_schedule_destroy,
    .schedule_run = sim_schedule_run,
    .schedule_latency = sim_schedule_latency,
    .schedule_b2b = sim_schedule_b2b,
    .schedule_kernels = sim_schedule_kernels,
    .recorded = sim_recorded,
};

/* The recorded device's own identity: plans made here are its plans. */
static cs_status describe(sim_backend *sim, const char *path) {
  const cs_device_info *recorded = cs_profile_device(sim->profile);
  if (!recorded) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: it does not tell what the device is; wanted: a line \"device_info\", as "
                    "`convsched profile --export` writes it",
                    path);
  }
  sim->info = *recorded;
  snprintf(sim->info.backend, sizeof sim->info.backend, "sim");
  int length = snprintf(sim->info.identity, sizeof sim->info.identity, "%s",
                        cs_profile_identity(sim->profile));
  if (length >= (int)sizeof sim->info.identity) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: a device identity of %d bytes; wanted: at most %zu",
                    path, length, sizeof sim->info.identity - 1);
  }
  sim->info.default_streams = SIM_DEFAULT_STREAMS;
  sim->info.max_streams = SIM_MAX_STREAMS;
  sim->info.prepare_threads = 1;
  cs_part_units(sim->info.compute_capability, &sim->info.part_least, &sim->info.part_step);
  sim->info.priorities = true;
  return CS_OK;
}

static void note_operation(void *user, const char *signature) {
  (void)signature;
  *(bool *)user = true;
}

static cs_status open_profile(sim_backend *sim, const char *path) {
  bool any = false;
  CS_RETURN_IF_ERROR(cs_profile_open_file(path, &sim->base.logger, &sim->profile));
  cs_profile_signatures(sim->profile, note_operation, &any);
  if (!any) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: no operation is recorded in it; wanted: a profile that "
                    "`convsched profile MODEL --export FILE` wrote",
                    path);
  }
  CS_RETURN_IF_ERROR(describe(sim, path));
  if (sim->info.compute_capability != FITTED_CAPABILITY) {
    cs_log(&sim->base.logger, CS_LOG_WARNING,
           "%s: the SM model's constants were fitted on an H100; what it predicts of %s (compute "
           "capability %d.%d) is rough",
           path, sim->info.name, sim->info.compute_capability / 10,
           sim->info.compute_capability % 10);
  }
  return cs_annotate(cs_sm_model_create(&sim->info, NULL, &sim->model),
                     "%s: only a GPU can be simulated: ", path);
}

cs_status cs_sim_backend_open_file(const char *path, const cs_logger *logger, cs_backend **out) {
  *out = NULL;
  sim_backend *sim = cs_calloc(1, sizeof *sim);
  if (!sim) return cs_no_memory("the sim backend", sizeof *sim);
  sim->base.vtable = &sim_vtable;
  if (logger) sim->base.logger = *logger;
  pthread_mutex_init(&sim->profile_lock, NULL);
  cs_status st = open_profile(sim, path);
  if (st != CS_OK) {
    sim_close(&sim->base);
    return st;
  }
  *out = &sim->base;
  return CS_OK;
}

int cs_sim_backend_count(char *reason, size_t reason_size) {
  if (reason_size > 0) snprintf(reason, reason_size, "it is opened by a file: sim:FILE");
  return 0;
}

cs_status cs_sim_backend_doctor(json_t *object) {
  json_t *told = json_pack(
      "{s:b, s:s, s:s}", "works", 1, "use",
      "--device sim:FILE plans for the GPU that a profile describes and predicts its times; FILE "
      "is what `convsched profile MODEL --export FILE` writes on that GPU",
      "precision", "nothing is computed: results are predictions, not verified");
  if (!told || json_object_update_new(object, told) != 0) {
    return cs_no_memory("the description of simulated devices", 0);
  }
  return CS_OK;
}
