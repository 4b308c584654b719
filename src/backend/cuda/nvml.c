#include "backend/cuda/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define CLOCK_SM 1
#define CLOCK_MEMORY 2
#define SENSOR_GPU 0
#define MAX_PROCESSES 256

/* ---- Loading ---- */

typedef struct entry {
  void *member;             /* of the table, a function pointer */
  const char *name, *older; /* older: by what name former drivers have it */
  bool optional;
} entry;

static cs_status load_functions(cs_nvml *nvml, const char *path) {
  const entry entries[] = {
      {&nvml->init, "nvmlInit_v2", NULL, false},
      {&nvml->shutdown, "nvmlShutdown", NULL, false},
      {&nvml->error_string, "nvmlErrorString", NULL, false},
      {&nvml->version, "nvmlSystemGetNVMLVersion", NULL, false},
      {&nvml->device_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2", NULL, false},
      {&nvml->clock, "nvmlDeviceGetClockInfo", NULL, false},
      {&nvml->temperature, "nvmlDeviceGetTemperature", NULL, false},
      {&nvml->power, "nvmlDeviceGetPowerUsage", NULL, false},
      {&nvml->slowdowns, "nvmlDeviceGetCurrentClocksEventReasons",
       "nvmlDeviceGetCurrentClocksThrottleReasons", true},
      {&nvml->processes, "nvmlDeviceGetComputeRunningProcesses_v3", NULL, true},
      {&nvml->mig_mode, "nvmlDeviceGetMigMode", NULL, true},
      {&nvml->energy, "nvmlDeviceGetTotalEnergyConsumption", NULL, true},
  };
  for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
    void *symbol = dlsym(nvml->library, entries[i].name);
    if (!symbol && entries[i].older) symbol = dlsym(nvml->library, entries[i].older);
    if (!symbol && !entries[i].optional) {
      return cs_error(CS_CODE_NOT_FOUND, "device state: unavailable (NVML): %s lacks %s", path,
                      entries[i].name);
    }
    memcpy(entries[i].member, &symbol, sizeof(symbol));
  }
  return CS_OK;
}

static cs_status start(cs_nvml *nvml, const char *path) {
  nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!nvml->library) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "device state: unavailable (no NVML): %s does not load; it comes with the "
                    "driver (in a container: start it with the utility capability)",
                    path);
  }
  CS_RETURN_IF_ERROR(load_functions(nvml, path));
  int result = nvml->init();
  if (result == 0) return CS_OK;
  const char *text = nvml->error_string(result);
  /* shutdown belongs to a successful init. */
  nvml->shutdown = NULL;
  return cs_error(CS_CODE_NOT_FOUND,
                  "device state: unavailable (NVML error %d, %s): check nvidia-smi", result,
                  text ? text : "unknown");
}

cs_status cs_nvml_open(const char *path, cs_nvml **out) {
  *out = NULL;
  cs_nvml *nvml = cs_calloc(1, sizeof(*nvml));
  if (!nvml) return cs_no_memory("NVML", sizeof(*nvml));
  cs_status st = start(nvml, path ? path : LIBRARY);
  if (st != CS_OK) {
    if (nvml->library) (void)dlclose(nvml->library);
    free(nvml);
    return st;
  }
  *out = nvml;
  return CS_OK;
}

void cs_nvml_close(cs_nvml *nvml) {
  if (!nvml) return;
  (void)nvml->shutdown();
  (void)dlclose(nvml->library);
  free(nvml);
}

void cs_nvml_version(const cs_nvml *nvml, char *out, size_t size) {
  char text[80] = ""; /* NVML wants 80 */
  if (nvml->version(text, sizeof(text)) != 0) text[0] = '\0';
  text[sizeof(text) - 1] = '\0';
  snprintf(out, size, "%s", text);
}

/* ---- Reading ---- */

static void note(cs_device_state *state, const char *format, ...) CS_PRINTF(2, 3);
static void note(cs_device_state *state, const char *format, ...) {
  size_t used = strlen(state->unavailable), size = sizeof(state->unavailable);
  if (used > 0) {
    snprintf(state->unavailable + used, size - used, "; ");
    used = strlen(state->unavailable);
  }
  va_list args;
  va_start(args, format);
  (void)vsnprintf(state->unavailable + used, size - used, format, args);
  va_end(args);
}

void cs_device_state_unknown(const char *reason, cs_device_state *out) {
  memset(out, 0, sizeof(*out));
  out->clock_mhz = out->memory_clock_mhz = out->temperature_c = out->power_w = NAN;
  out->other_processes = out->partitioned = -1;
  snprintf(out->unavailable, sizeof(out->unavailable), "%s", reason);
}

static double told(const cs_nvml *nvml, int result, unsigned value, double scale, const char *what,
                   cs_device_state *out) {
  if (result == 0) return (double)value * scale;
  const char *text = nvml->error_string(result);
  note(out, "no %s (%s)", what, text ? text : "unknown NVML error");
  return NAN;
}

static void read_gauges(const cs_nvml *nvml, void *device, cs_device_state *out) {
  unsigned value = 0;
  int result = nvml->clock(device, CLOCK_SM, &value);
  out->clock_mhz = told(nvml, result, value, 1, "clock", out);
  result = nvml->clock(device, CLOCK_MEMORY, &value);
  out->memory_clock_mhz = told(nvml, result, value, 1, "memory clock", out);
  result = nvml->temperature(device, SENSOR_GPU, &value);
  out->temperature_c = told(nvml, result, value, 1, "temperature", out);
  result = nvml->power(device, &value);
  out->power_w = told(nvml, result, value, 1e-3, "power", out);
}

void cs_nvml_slowdown_text(unsigned long long bits, char *out, size_t size) {
  /* Bit 0, the GPU is idle, slows nothing that runs. */
  static const char *const names[] = {NULL,
                                      "application clocks",
                                      "power cap",
                                      "hardware slowdown",
                                      "sync boost",
                                      "thermal (software)",
                                      "thermal (hardware)",
                                      "power brake",
                                      "display clocks"};
  const unsigned known = sizeof(names) / sizeof(names[0]);
  out[0] = '\0';
  for (unsigned bit = 1; bit < 64; bit++) {
    if (!(bits >> bit & 1)) continue;
    size_t used = strlen(out);
    const char *separator = used ? ", " : "";
    if (bit < known) {
      snprintf(out + used, size - used, "%s%s", separator, names[bit]);
    } else {
      snprintf(out + used, size - used, "%sreason %u", separator, bit);
    }
  }
}

static void read_slowdowns(const cs_nvml *nvml, void *device, cs_device_state *out) {
  unsigned long long bits = 0;
  if (!nvml->slowdowns || nvml->slowdowns(device, &bits) != 0) {
    note(out, "no throttle reasons");
    return;
  }
  cs_nvml_slowdown_text(bits, out->throttle, sizeof(out->throttle));
}

/* In a container the ids that NVML tells are the host's, or none at all. This process computes on
 * the device, so that a list without it hides at least that much. */
static void read_processes(const cs_nvml *nvml, void *device, int pid, cs_device_state *out) {
  cs_nvml_process list[MAX_PROCESSES];
  unsigned count = MAX_PROCESSES;
  int result = nvml->processes ? nvml->processes(device, &count, list) : NOT_SUPPORTED;
  if (result == INSUFFICIENT_SIZE) {
    note(out, "other processes: more than %d in all", MAX_PROCESSES);
    out->other_processes = MAX_PROCESSES;
    return;
  }
  if (result != 0 || count > MAX_PROCESSES) {
    note(out, "no list of processes");
    return;
  }
  bool own = false;
  for (unsigned i = 0; i < count; i++) own |= list[i].pid == (unsigned)pid;
  if (own) {
    out->other_processes = (int)count - 1;
  } else if (count > 0) {
    out->other_processes = (int)count - 1;
    note(out, "other processes uncertain: this one is not listed by its id (a container?)");
  } else {
    note(out, "other processes unknown: the list hides even this one (a container?)");
  }
}

static void read_partition(const cs_nvml *nvml, void *device, cs_device_state *out) {
  unsigned current = 0, pending = 0;
  int result = nvml->mig_mode ? nvml->mig_mode(device, &current, &pending) : NOT_SUPPORTED;
  if (result == 0) {
    out->partitioned = current != 0;
  } else if (result == NOT_SUPPORTED) {
    out->partitioned = 0;
  } else {
    note(out, "MIG mode unknown");
  }
}

void cs_nvml_read(const cs_nvml *nvml, const char *bus_id, int pid, cs_device_state *out) {
  cs_device_state_unknown("", out);
  void *device = NULL;
  int result = nvml->device_by_bus_id(bus_id, &device);
  if (result != 0) {
    const char *text = nvml->error_string(result);
    note(out, "device state: NVML does not know the GPU at %s (%s)", bus_id,
         text ? text : "unknown error");
    return;
  }
  read_gauges(nvml, device, out);
  read_slowdowns(nvml, device, out);
  read_processes(nvml, device, pid, out);
  read_partition(nvml, device, out);
}

cs_status cs_nvml_energy(const cs_nvml *nvml, const char *bus_id, double *joules) {
  void *device = NULL;
  unsigned long long millijoules = 0;
  *joules = 0;
  if (!nvml->energy) {
    return cs_error(CS_CODE_NOT_FOUND,
                    "not available: this driver's NVML lacks nvmlDeviceGetTotalEnergyConsumption");
  }
  int result = nvml->device_by_bus_id(bus_id, &device);
  if (result == 0) result = nvml->energy(device, &millijoules);
  if (result != 0) {
    const char *text = nvml->error_string(result);
    return cs_error(CS_CODE_NOT_FOUND, "not available: NVML error %d (%s)", result,
                    text ? text : "unknown");
  }
  *joules = (double)millijoules * 1e-3;
  return CS_OK;
}
