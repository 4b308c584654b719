#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cupti_counters.h"
#include "backend/cuda/cupti_trace.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/requests.h"
#include "backend/cuda/schedule.h"
#include "backend/cuda/split.h"
#include "backend/cuda/stream_name.h"
#include "backend/cuda/versions.h"
#include "profiler/profile.h"

cs_status cs_cuda_enter(const cs_cuda_backend *backend) {
  if (backend->starting) CS_RETURN_IF_ERROR(cs_cuda_start_wait(backend->starting));
  return cs_cuda_status(cudaSetDevice(backend->device), "selecting CUDA device %d",
                        backend->device);
}

cs_status cs_cuda_stream(cs_cuda_backend *backend, int index, bool urgent, cudaStream_t *out) {
  cudaStream_t *stream = urgent ? &backend->urgent[index] : &backend->streams[index];
  if (!*stream) {
    int priority = 0;
    CS_RETURN_IF_ERROR(cs_cuda_priority(urgent, &priority));
    CS_RETURN_IF_ERROR(
        cs_cuda_status(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority),
                       "creating stream %d", index));
    cs_cuda_name_stream(*stream, index, urgent, 0);
  }
  *out = *stream;
  return CS_OK;
}

static cs_status device_attribute(int device, enum cudaDeviceAttr name, int *out) {
  return cs_cuda_status(cudaDeviceGetAttribute(out, name, device),
                        "asking for attribute %d of CUDA device %d", (int)name, device);
}

static cs_status fill_info(int device, cs_device_info *info) {
  struct cudaDeviceProp properties;
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaGetDeviceProperties(&properties, device),
                                    "asking for the properties of CUDA device %d", device));
  int clock_khz = 0;
  CS_RETURN_IF_ERROR(device_attribute(device, cudaDevAttrClockRate, &clock_khz));
  snprintf(info->backend, sizeof(info->backend), "cuda");
  snprintf(info->name, sizeof(info->name), "%.127s", properties.name);
  info->units = properties.multiProcessorCount;
  info->memory_bytes = (int64_t)properties.totalGlobalMem;
  info->cache_bytes = properties.l2CacheSize;
  info->compute_capability = properties.major * 10 + properties.minor;
  info->clock_mhz = clock_khz / 1000;
  info->unit = (cs_unit_limits){.registers = properties.regsPerMultiprocessor,
                                .threads = properties.maxThreadsPerMultiProcessor,
                                .blocks = properties.maxBlocksPerMultiProcessor,
                                .shared_bytes = (int)properties.sharedMemPerMultiprocessor,
                                .reserved_shared_bytes = (int)properties.reservedSharedMemPerBlock,
                                .warp_size = properties.warpSize};
  info->default_streams = CS_CUDA_DEFAULT_STREAMS;
  info->max_streams = CS_CUDA_MAX_STREAMS;
  /* A stored plan loads in 0.1 ms, a further cuDNN handle takes far longer. */
  info->prepare_threads = 1;
  info->priorities = true;
  info->hints = info->compute_capability >= CS_CUDA_EARLY_CAPABILITY;
  char api[CS_VERSION_TEXT], driver[CS_VERSION_TEXT], built[CS_VERSION_TEXT];
  cs_cuda_driver_version(driver);
  cs_cuda_driver_api_version(api);
  cs_cuda_runtime_version(info->runtime);
  cs_cudnn_running_version(info->library);
  cs_cudnn_built_version(built);
  snprintf(info->driver, sizeof(info->driver), "%s", driver[0] ? driver : api);
  snprintf(info->identity, sizeof(info->identity),
           "cuda;name=%s;cc=%d;sms=%d;clock=%d;driver=%s;driver_cuda=%s;cuda=%s;cudnn=%s;"
           "cudnn_built=%s;measure=%d",
           info->name, info->compute_capability, info->units, info->clock_mhz, info->driver, api,
           info->runtime, info->library, built, CS_MEASURE_VERSION);
  return CS_OK;
}

static void close_backend(cs_backend *backend) {
  if (!backend) return;
  cs_cuda_backend *cuda = cs_cuda(backend);
  cs_status_free(cs_cuda_enter(cuda));
  cs_cuda_start_destroy(cuda->starting);
  cs_cudnn_pool_destroy(&cuda->pool); /* its handles hold streams */
  cs_cublaslt_close(&cuda->cublaslt);
  cs_cuda_splits_destroy(cuda);
  for (int i = 0; i < CS_CUDA_MAX_STREAMS; i++) {
    if (cuda->streams[i]) (void)cudaStreamDestroy(cuda->streams[i]);
    if (cuda->urgent[i]) (void)cudaStreamDestroy(cuda->urgent[i]);
  }
  if (cuda->start) (void)cudaEventDestroy(cuda->start);
  if (cuda->stop) (void)cudaEventDestroy(cuda->stop);
  cs_metric_set_clear(&cuda->metrics);
  cs_nvml_close(cuda->nvml);
  free(cuda);
}

static const cs_device_info *backend_info(const cs_backend *backend) {
  return &cs_cuda(backend)->info;
}

static const cs_backend_vtable cuda_vtable = {
    .name = "cuda",
    .close = close_backend,
    .info = backend_info,
    .layouts = cs_cuda_layouts,
    .takes_prologue = cs_cuda_takes_prologue,
    .enumerate = cs_cuda_enumerate,
    .baselines = cs_cuda_baselines,
    .presence = cs_cuda_presence,
    .begins_early = cs_cuda_begins_early,
    .prepare = cs_exec_prepare,
    .exec_destroy = cs_exec_destroy,
    .exec_workspace = cs_exec_workspace,
    .exec_weight_bytes = cs_exec_weight_bytes,
    .pack_weights = cs_exec_pack_weights,
    .allocate = cs_cuda_allocate,
    .release = cs_cuda_release,
    .upload = cs_cuda_upload,
    .download = cs_cuda_download,
    .fill = cs_cuda_fill,
    .schedule_create = cs_schedule_create,
    .schedule_destroy = cs_schedule_destroy,
    .schedule_run = cs_schedule_run,
    .schedule_latency = cs_schedule_latency,
    .schedule_b2b = cs_schedule_b2b,
    .schedule_kernels = cs_schedule_kernels,
    .schedule_counters = cs_schedule_counters,
    .schedule_counters_whole = cs_schedule_counters_whole,
    .schedule_trace = cs_schedule_trace,
    .state = cs_cuda_state,
    .schedule_run_on = cs_schedule_run_on,
    .import_tensor = cs_cuda_import,
    .export_tensor = cs_cuda_export,
    .host_allocate = cs_cuda_host_allocate,
    .host_release = cs_cuda_host_release,
    .requests_create = cs_cuda_requests_create,
    .requests_destroy = cs_cuda_requests_destroy,
    .requests_submit = cs_cuda_requests_submit,
    .requests_wait = cs_cuda_requests_wait,
    .requests_burst = cs_cuda_requests_burst,
    .energy = cs_cuda_energy,
    .reference = cs_cuda_reference,
    .reference_error = cs_cuda_reference_error,
    .expected_create = cs_cuda_expected_create,
    .expected_destroy = cs_cuda_expected_destroy,
    .expected_compare = cs_cuda_expected_compare,
};

static cs_status open_device(cs_cuda_backend *cuda, int index) {
  int count = 0;
  CS_RETURN_IF_ERROR(cs_annotate(cs_cuda_device_count(&count), "cuda:%d: ", index));
  if (index < 0 || index >= count) {
    return cs_error(CS_CODE_DEVICE, "cuda:%d is not there: this machine has %d CUDA device%s",
                    index, count, count == 1 ? "" : "s");
  }
  cs_log(&cuda->base.logger, CS_LOG_DEBUG, "driver started, %d CUDA devices", count);
  CS_RETURN_IF_ERROR(cs_cudnn_check_version());
  cuda->device = index;
  CS_RETURN_IF_ERROR(fill_info(index, &cuda->info));
  CS_RETURN_IF_ERROR(cs_cuda_driver_load(&cuda->driver));
  CS_RETURN_IF_ERROR(cs_cuda_split_units(cuda));
  return cs_cuda_start_begin(cuda, &cuda->starting);
}

cs_status cs_cuda_backend_open(int index, const cs_logger *logger, cs_backend **out) {
  *out = NULL;
  cs_cuda_backend *cuda = cs_calloc(1, sizeof(*cuda));
  if (!cuda) return cs_no_memory("the CUDA backend", sizeof(*cuda));
  cs_status st = cs_cudnn_pool_init(&cuda->pool);
  if (st != CS_OK) {
    free(cuda);
    return st;
  }
  cuda->base.vtable = &cuda_vtable;
  if (logger) cuda->base.logger = *logger;
  st = open_device(cuda, index);
  if (st != CS_OK) {
    close_backend(&cuda->base);
    return st;
  }
  *out = &cuda->base;
  return CS_OK;
}

int cs_cuda_backend_count(char *reason, size_t reason_size) {
  int count = 0;
  cs_status st = cs_cuda_device_count(&count);
  if (reason && reason_size) snprintf(reason, reason_size, "%s", st ? cs_status_message(st) : "");
  cs_status_free(st);
  return count;
}
