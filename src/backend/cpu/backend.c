/* The CPU backend: opening, describing, memory. */
#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"

static void cpu_close(cs_backend *backend) {
  cpu_backend *cpu = (cpu_backend *)backend;
  if (!cpu) return;
  dnn_close(cpu->engine);
  free(cpu);
}

static const cs_device_info *cpu_info(const cs_backend *backend) {
  return &((const cpu_backend *)backend)->info;
}

/* Storage types narrower than f32 are converted at every border, whatever the layout. */
static int cpu_layouts(const cs_backend *backend, cs_precision precision,
                       cs_layout out[CS_MAX_DEVICE_LAYOUTS]) {
  (void)backend, (void)precision;
  int n = 0;
  if (dnn_lanes() == 16) out[n++] = CS_LAYOUT_NCHW16C;
  if (dnn_lanes() == 8) out[n++] = CS_LAYOUT_NCHW8C;
  out[n++] = CS_LAYOUT_NHWC;
  out[n++] = CS_LAYOUT_NCHW;
  return n;
}

/* More than the machine has is refused at once: the operating system would promise it, and kill. */
static cs_status cpu_allocate(cs_backend *backend, int64_t bytes, void **out) {
  int64_t most = ((cpu_backend *)backend)->machine.memory_bytes;
  *out = NULL;
  if (bytes < 0)
    return cs_error(CS_CODE_INTERNAL, "found an allocation of %lld bytes", (long long)bytes);
  if (bytes <= (most > 0 ? most : INT64_MAX - 256))
    *out = aligned_alloc(256, (size_t)cs_round_up(cs_max_i64(bytes, 1), 256));
  if (*out) return CS_OK;
  return cs_error(CS_CODE_NO_MEMORY, "out of memory: wanted %lld bytes, %lld are free",
                  (long long)bytes, (long long)cpu_free_memory());
}

static void cpu_release(cs_backend *backend, void *memory) {
  (void)backend;
  free(memory);
}

static cs_status cpu_upload(cs_backend *backend, void *device, const void *host, int64_t bytes) {
  (void)backend;
  if (bytes > 0) memcpy(device, host, (size_t)bytes);
  return CS_OK;
}

static cs_status cpu_download(cs_backend *backend, void *host, const void *device, int64_t bytes) {
  (void)backend;
  if (bytes > 0) memcpy(host, device, (size_t)bytes);
  return CS_OK;
}

static cs_status cpu_fill(cs_backend *backend, void *device, int byte, int64_t bytes) {
  (void)backend;
  if (bytes > 0) memset(device, byte, (size_t)bytes);
  return CS_OK;
}

static const cs_backend_vtable cpu_vtable = {
    .name = "cpu",
    .close = cpu_close,
    .info = cpu_info,
    .layouts = cpu_layouts,
    .enumerate = cpu_enumerate,
    .baselines = cpu_baselines,
    .prepare = cpu_prepare,
    .exec_destroy = cpu_exec_destroy,
    .exec_workspace = cpu_exec_workspace,
    .exec_weight_bytes = cpu_exec_weight_bytes,
    .pack_weights = cpu_pack_weights,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .memory_is_hosts = true,
    .upload = cpu_upload,
    .download = cpu_download,
    .fill = cpu_fill,
    .schedule_create = cpu_schedule_create,
    .schedule_destroy = cpu_schedule_destroy,
    .schedule_run = cpu_schedule_run,
    .schedule_latency = cpu_schedule_latency,
    .schedule_b2b = cpu_schedule_b2b,
    .schedule_trace = cpu_schedule_trace,
};

static void describe(cpu_backend *cpu) {
  const cpu_machine *machine = &cpu->machine;
  cs_device_info *info = &cpu->info;
  snprintf(info->backend, sizeof info->backend, "cpu");
  snprintf(info->name, sizeof info->name, "%s", machine->name);
  snprintf(info->identity, sizeof info->identity,
           "cpu|%s|%s|cores %d|isa %s|onednn %s|f16 and bf16 stored, f32 computed", machine->name,
           machine->signature, machine->cores, dnn_isa(), dnn_version());
  snprintf(info->library, sizeof info->library, "oneDNN %s", dnn_version());
  snprintf(info->runtime, sizeof info->runtime, "OpenMP %s", cpu_openmp_version());
  info->units = machine->cores;
  info->memory_bytes = machine->memory_bytes;
  info->cache_bytes = machine->cache_bytes;
  info->clock_mhz = machine->clock_mhz;
  info->default_streams = machine->cores < 4 ? machine->cores : 4;
  info->max_streams = machine->cores < 16 ? machine->cores : 16;
}

int cs_cpu_backend_count(char *reason, size_t reason_size) {
  if (reason_size > 0) reason[0] = '\0';
  return 1;
}

cs_status cs_cpu_backend_open(int index, const cs_logger *logger, cs_backend **out) {
  *out = NULL;
  if (index != 0) return cs_error(CS_CODE_DEVICE, "cpu:%d: there is one CPU device, cpu", index);
  cpu_backend *cpu = cs_calloc(1, sizeof *cpu);
  if (!cpu) return cs_no_memory("the CPU backend", sizeof *cpu);
  cpu->base.vtable = &cpu_vtable;
  if (logger) cpu->base.logger = *logger;
  cpu_machine_detect(&cpu->machine);
  cs_status st = dnn_open(&cpu->engine);
  if (st != CS_OK) {
    cpu_close(&cpu->base);
    return st;
  }
  describe(cpu);
  *out = &cpu->base;
  return CS_OK;
}

cs_status cs_cpu_backend_doctor(json_t *object) {
  cpu_machine machine;
  cpu_machine_detect(&machine);
  const char *openmp = cpu_openmp_version();
  bool threads = strcmp(openmp, "none") != 0;
  json_t *advice = json_array();
  if (!threads)
    json_array_append_new(advice, json_string("built without OpenMP: the number of threads cannot "
                                              "be set; build with a compiler that has OpenMP"));
  if (dnn_lanes() == 1)
    json_array_append_new(advice, json_string("the processor has neither AVX2 nor AVX-512: expect "
                                              "slow convolutions"));
  json_t *told = json_pack(
      "{s:b, s:s, s:s, s:i, s:I, s:I, s:s, s:s, s:s, s:s, s:o}", "works", 1, "name", machine.name,
      "processor", machine.signature, "cores", machine.cores, "memory_bytes",
      (json_int_t)machine.memory_bytes, "cache_bytes", (json_int_t)machine.cache_bytes, "isa",
      dnn_isa(), "onednn", dnn_version(), "openmp", openmp, "precision",
      "f16 and bf16 are storage types, tf32 runs as f32: arithmetic is f32", "advice", advice);
  if (!told || json_object_update_new(object, told) != 0)
    return cs_no_memory("the CPU's description", 0);
  return CS_OK;
}
