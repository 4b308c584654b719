#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/cuda/cublaslt_library.h"
#include "backend/cuda/cupti_counters.h"
#include "backend/cuda/cupti_library.h"
#include "backend/cuda/nvml.h"
#include "backend/cuda/versions.h"

static int set_text(json_t *object, const char *key, const char *text) {
  return json_object_set_new(object, key, text[0] ? json_string(text) : json_null());
}

static json_t *describe_device(int index, cs_status *st) {
  struct cudaDeviceProp p;
  *st = cs_cuda_status(cudaGetDeviceProperties(&p, index),
                       "asking for the properties of CUDA device %d", index);
  if (*st != CS_OK) return NULL;
  char capability[CS_VERSION_TEXT];
  snprintf(capability, sizeof(capability), "%d.%d", p.major, p.minor);
  return json_pack("{s:i,s:s,s:I,s:i,s:s}", "index", index, "name", p.name, "memory_bytes",
                   (json_int_t)p.totalGlobalMem, "sm_count", p.multiProcessorCount,
                   "compute_capability", capability);
}

/* "available", or why counters are not and what to do. */
static int set_counters(json_t *device, int index) {
  cs_status st = cs_cuda_counters_permitted(index);
  int failed = set_text(device, "counters", st ? cs_status_message(st) : "available");
  cs_status_free(st);
  return failed;
}

static cs_status list_devices(json_t *devices, int count) {
  for (int i = 0; i < count; i++) {
    cs_status st = CS_OK;
    json_t *device = describe_device(i, &st);
    if (st != CS_OK) return st;
    if (!device || set_counters(device, i) != 0 || json_array_append(devices, device) != 0) {
      json_decref(device);
      return cs_no_memory("doctor's report", 0);
    }
    json_decref(device);
  }
  return CS_OK;
}

static void nvml_version(char *out, size_t size) {
  cs_nvml *nvml = NULL;
  cs_status_free(cs_nvml_open(NULL, &nvml));
  snprintf(out, size, "%s", "");
  if (nvml) cs_nvml_version(nvml, out, size);
  cs_nvml_close(nvml);
}

static int set_versions(json_t *object) {
  char text[CS_VERSION_TEXT];
  int failed = 0;
  cs_cuda_driver_version(text);
  failed |= set_text(object, "driver", text);
  cs_cuda_driver_api_version(text);
  failed |= set_text(object, "driver_cuda", text);
  cs_cuda_runtime_version(text);
  failed |= set_text(object, "cuda_runtime", text);
  cs_cudnn_running_version(text);
  failed |= set_text(object, "cudnn", text);
  cs_cudnn_built_version(text);
  failed |= set_text(object, "cudnn_built", text);
  cs_cublaslt_version(text, sizeof(text));
  failed |= set_text(object, "cublaslt", text);
  cs_cupti_version(text, sizeof(text));
  failed |= set_text(object, "cupti", text);
  nvml_version(text, sizeof(text));
  failed |= set_text(object, "nvml", text);
  const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  failed |= set_text(object, "cuda_device_max_connections", connections ? connections : "8");
  return failed;
}

static cs_status add_problem(json_t *problems, cs_status problem) {
  if (problem == CS_OK) return CS_OK;
  int failed = json_array_append_new(problems, json_string(cs_status_message(problem)));
  cs_status_free(problem);
  return failed ? cs_no_memory("doctor's report", 0) : CS_OK;
}

cs_status cs_cuda_backend_doctor(json_t *object) {
  int count = 0;
  cs_status missing = cs_cuda_device_count(&count);
  json_t *devices = json_array(), *problems = json_array();
  cs_status st = CS_OK;
  if (set_versions(object) != 0 || !devices || !problems) {
    cs_status_free(missing);
    CS_TRY(st, cs_no_memory("doctor's report", 0), done);
  }
  CS_TRY(st, add_problem(problems, missing), done);
  CS_TRY(st, add_problem(problems, cs_cudnn_check_version()), done);
  CS_TRY(st, add_problem(problems, list_devices(devices, count)), done);
  if (json_object_set(object, "devices", devices) != 0 ||
      json_object_set(object, "problems", problems) != 0) {
    CS_TRY(st, cs_no_memory("doctor's report", 0), done);
  }
done:
  json_decref(devices);
  json_decref(problems);
  return st;
}
