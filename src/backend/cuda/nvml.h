/* NVML (libnvidia-ml.so.1, part of the driver) with declarations of our own, loaded at run time. */
#ifndef CONVSCHED_BACKEND_CUDA_NVML_H_
#define CONVSCHED_BACKEND_CUDA_NVML_H_

#include "backend/backend.h"

typedef struct cs_nvml_process { /* nvmlProcessInfo_t */
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
} cs_nvml_process;

typedef struct cs_nvml {
  void *library;
  /* All return 0 for success. Members marked optional may be NULL. */
  int (*init)(void);
  int (*shutdown)(void);
  const char *(*error_string)(int result);
  int (*version)(char *out, unsigned size);
  int (*device_by_bus_id)(const char *bus_id, void **device);
  int (*clock)(void *device, int which, unsigned *mhz);
  int (*temperature)(void *device, int sensor, unsigned *celsius);
  int (*power)(void *device, unsigned *milliwatts);
  int (*slowdowns)(void *device, unsigned long long *bits);                    /* optional */
  int (*processes)(void *device, unsigned *count, cs_nvml_process *processes); /* optional */
  int (*mig_mode)(void *device, unsigned *current, unsigned *pending);         /* optional */
  int (*energy)(void *device, unsigned long long *millijoules);                /* optional */
} cs_nvml;

/* Loads and starts NVML; `path` NULL: libnvidia-ml.so.1. NOT_FOUND says what is missing and what to
 * do about it. */
cs_status cs_nvml_open(const char *path, cs_nvml **out) CS_MUST_USE;
void cs_nvml_close(cs_nvml *nvml);                                 /* NULL is allowed */
void cs_nvml_version(const cs_nvml *nvml, char *out, size_t size); /* "" if not told */

/* How the device at a PCI bus id is doing, as process `pid` sees it. What cannot be known stays
 * unknown and is named in `unavailable`. */
void cs_nvml_read(const cs_nvml *nvml, const char *bus_id, int pid, cs_device_state *out);
/* Joules that the whole board at a PCI bus id has used since the driver was loaded. NOT_FOUND says
 * why that is not available. */
cs_status cs_nvml_energy(const cs_nvml *nvml, const char *bus_id, double *joules) CS_MUST_USE;
/* All unknown, for the given reason. */
void cs_device_state_unknown(const char *reason, cs_device_state *out);

/* Reasons other than an idle GPU that hold the clock down, as text: "power cap, thermal
 * (hardware)". */
void cs_nvml_slowdown_text(unsigned long long bits, char *out, size_t size);

#endif
