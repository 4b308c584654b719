#include "runtime/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/progress.h"
#include "base/ranges.h"

static const cs_backend_entry *find_backend(const char *name, size_t length) {
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    if (strlen(entry->name) == length && strncmp(entry->name, name, length) == 0) return entry;
  }
  return NULL;
}

/* "cuda:3" → entry and what is behind the colon; NULL: no colon. */
static cs_status parse_spec(const char *spec, const cs_backend_entry **entry, const char **rest) {
  const char *colon = strchr(spec, ':');
  size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
  *entry = find_backend(spec, length);
  if (!*entry) {
    if (length == 4 && strncmp(spec, "cuda", 4) == 0) {
      return cs_error(CS_CODE_DEVICE,
                      "device %s: this build has no CUDA backend (CUDA toolkit, cuDNN or CUPTI was "
                      "not found when it was built); run `convsched doctor`",
                      spec);
    }
    return cs_error(CS_CODE_USAGE,
                    "unknown device \"%s\": wanted auto, cpu, cuda:N or sim:FILE, with a profile's "
                    "file",
                    spec);
  }
  *rest = colon ? colon + 1 : NULL;
  return CS_OK;
}

static cs_status parse_index(const char *spec, const char *rest, int *index) {
  *index = 0;
  if (!rest) return CS_OK;
  char *end;
  long value = strtol(rest, &end, 10);
  if (end == rest || *end || value < 0 || value > 1023) {
    return cs_error(CS_CODE_USAGE, "device \"%s\": wanted a number from 0 behind the colon", spec);
  }
  *index = (int)value;
  return CS_OK;
}

static cs_status open_spec(const char *spec, const cs_logger *logger, cs_backend **out) {
  const cs_backend_entry *entry;
  const char *rest;
  int index;
  CS_RETURN_IF_ERROR(parse_spec(spec, &entry, &rest));
  if (entry->open_file) {
    if (rest && rest[0]) return entry->open_file(rest, logger, out);
    return cs_error(CS_CODE_USAGE, "device \"%s\": wanted %s:FILE, with a profile's file", spec,
                    entry->name);
  }
  CS_RETURN_IF_ERROR(parse_index(spec, rest, &index));
  char reason[512] = "";
  int count = entry->count(reason, sizeof reason);
  if (index < count) return entry->open(index, logger, out);
  return cs_error(CS_CODE_DEVICE, "device %s: not there; %d found%s%s", spec, count,
                  reason[0] ? ": " : "", reason);
}

static cs_status open_auto(const cs_logger *logger, cs_backend **out) {
  char missed[1024] = "";
  size_t length = 0;
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name; entry++) {
    char reason[512] = "";
    if (entry->count(reason, sizeof reason) > 0) {
      if (missed[0]) cs_log(logger, CS_LOG_INFO, "device auto: %s taken: %s", entry->name, missed);
      return entry->open(0, logger, out);
    }
    if (length < sizeof missed)
      length += (size_t)snprintf(missed + length, sizeof missed - length, "%sno %s device (%s)",
                                 length > 0 ? ", " : "", entry->name, reason);
  }
  return cs_error(CS_CODE_DEVICE, "device auto: %s; run `convsched doctor`", missed);
}

cs_status cs_device_open(const char *spec, const cs_logger *logger, cs_device **out) {
  *out = NULL;
  cs_status st = CS_OK;
  cs_device *device = cs_calloc(1, sizeof *device);
  if (!device) return cs_no_memory("a device", sizeof *device);
  if (logger) device->logger = *logger;
  cs_progress_step("opening the device", NULL, 0, 0, "%s", spec ? spec : "auto");
  if (!spec || strcmp(spec, "auto") == 0) {
    CS_TRY(st, open_auto(logger, &device->backend), done);
  } else {
    CS_TRY(st, open_spec(spec, logger, &device->backend), done);
  }
  cs_log(logger, CS_LOG_DEBUG, "device %s opened",
         device->backend->vtable->info(device->backend)->name);
  *out = device;
  device = NULL;
done:
  cs_device_close(device);
  return st;
}

void cs_device_close(cs_device *device) {
  if (!device) return;
  if (!cs_device_is_simulated(device)) cs_profile_close(device->profile);
  free(device->profile_directory);
  if (device->backend) device->backend->vtable->close(device->backend);
  free(device);
}

bool cs_device_is_simulated(const cs_device *device) {
  return device->backend && device->backend->vtable->recorded;
}

cs_status cs_device_must_compute(const cs_device *device, const char *what) {
  if (!cs_device_is_simulated(device)) return CS_OK;
  const cs_backend_vtable *vtable = device->backend->vtable;
  return cs_error(CS_CODE_USAGE,
                  "%s: %s is simulated here, from a profile: times are predicted, nothing is "
                  "measured or computed",
                  what, vtable->info(device->backend)->name);
}

cs_status cs_device_profile(cs_device *device, const char *directory, cs_profile **out) {
  if (cs_device_is_simulated(device)) {
    *out = device->profile = device->backend->vtable->recorded(device->backend);
    return CS_OK;
  }
  const char *wanted = directory ? directory : "";
  if (device->profile && strcmp(device->profile_directory, wanted) == 0) {
    *out = device->profile;
    return CS_OK;
  }
  cs_profile_close(device->profile);
  device->profile = NULL;
  free(device->profile_directory);
  device->profile_directory = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(wanted, &device->profile_directory));
  const cs_device_info *info = device->backend->vtable->info(device->backend);
  cs_progress_step("reading measurements", NULL, 0, 0, "%s", directory ? directory : "");
  CS_RETURN_IF_ERROR(cs_profile_open(directory, info->identity, &device->logger, &device->profile));
  *out = device->profile;
  return CS_OK;
}

cs_status cs_device_info_json(const cs_device *device, char **out) {
  const cs_device_info *info = device->backend->vtable->info(device->backend);
  json_t *json =
      json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:i, s:i, s:i}", "name", info->name, "backend",
                info->backend, "identity", info->identity, "sm_count", info->units, "memory_bytes",
                (json_int_t)info->memory_bytes, "cache_bytes", (json_int_t)info->cache_bytes,
                "compute_capability", info->compute_capability, "clock_mhz", info->clock_mhz,
                "default_streams", info->default_streams);
  if (json && cs_device_is_simulated(device)) json_object_set_new(json, "simulated", json_true());
  bool is_cuda = strcmp(info->backend, "cuda") == 0;
  if (json && info->driver[0]) json_object_set_new(json, "driver", json_string(info->driver));
  if (json && is_cuda) json_object_set_new(json, "cuda", json_string(info->runtime));
  if (json && info->library[0]) {
    json_object_set_new(json, is_cuda ? "cudnn" : "onednn", json_string(info->library));
  }
  return cs_json_take_text(json, out);
}

static json_t *onnx_doctor(void) {
  if (cs_import_is_built()) return json_pack("{s:b}", "built", 1);
  return json_pack(
      "{s:b, s:s}", "built", 0, "advice",
      "this build has no ONNX importer: install libprotobuf-c-dev, protobuf-c-compiler "
      "and libonnx-dev, then configure and build again");
}

static json_t *nvtx_doctor(void) {
  if (cs_ranges_are_built()) return json_pack("{s:b}", "built", 1);
  return json_pack("{s:b, s:s}", "built", 0, "advice",
                   "this build has no NVTX, so that profilers show no names of nodes and streams: "
                   "build with a CUDA toolkit that has nvtx3/nvToolsExtCudaRt.h");
}

cs_status cs_doctor_json(char **out) {
  cs_status st = CS_OK;
  json_t *json = json_object();
  for (const cs_backend_entry *entry = cs_backend_entries; entry->name && st == CS_OK; entry++) {
    json_t *part = json_object();
    st = entry->doctor(part);
    json_object_set_new(json, entry->name, part);
  }
#ifndef CS_HAVE_CUDA_BACKEND
  json_object_set_new(json, "cuda",
                      json_pack("{s:b, s:s}", "built", 0, "advice",
                                "this build has no CUDA backend: install the CUDA toolkit, cuDNN 9 "
                                "and CUPTI, then configure and build again"));
#endif
  json_object_set_new(json, "onnx", onnx_doctor());
  json_object_set_new(json, "nvtx", nvtx_doctor());
  if (st != CS_OK) {
    json_decref(json);
    return st;
  }
  return cs_json_take_text(json, out);
}
