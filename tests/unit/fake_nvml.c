/* A libnvidia-ml of an older driver, made up, for test_cuda_nvml.c: it has one GPU, no MIG, calls
 * throttle reasons by their former name, and fails to start where FAKE_NVML_FAILS is set in the
 * environment. Compiled with FAKE_NVML_ENERGY it counts energy. */
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlSystemGetNVMLVersion(char *out, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
#ifdef FAKE_NVML_ENERGY
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
#endif

static int running;

int nvmlInit_v2(void) {
  if (getenv("FAKE_NVML_FAILS")) return 9;
  running++;
  return 0;
}

int nvmlShutdown(void) {
  if (running == 0) abort();
  running--;
  return 0;
}

const char *nvmlErrorString(int result) {
  return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
  snprintf(out, size, "12.470.1");
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
  *device = &running;
  return running && bus_id[0] ? 0 : 1;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
  (void)device;
  *mhz = which == 1 ? 1410 : 1215;
  return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  (void)device;
  *celsius = sensor == 0 ? 35 : 0;
  return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 60000;
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
  (void)device;
  *bits = 0x80;
  return 0;
}

#ifdef FAKE_NVML_ENERGY
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
  *millijoules = device == &running ? 42500 : 0;
  return 0;
}
#endif
