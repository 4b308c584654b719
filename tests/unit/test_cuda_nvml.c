/* The device's state and its energy counter where there is no GPU: NVML's functions made up, in a
 * table and in libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above first. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "backend/cuda/nvml.h"

static void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static void fails(cs_status st, cs_code code, const char *text) {
  assert_int_equal(cs_status_code(st), code);
  if (!strstr(cs_status_message(st), text)) fail_msg("%s", cs_status_message(st));
  cs_status_free(st);
}

static struct {
  int device, clock, mig; /* results */
  unsigned count, mig_on;
  int processes, energy;
  unsigned long long bits, millijoules;
} gpu;

static const char *nvml_error(int result) {
  return result == 3 ? "Not Supported" : "Some Error";
}
static int nvml_device(const char *bus_id, void **device) {
  assert_string_equal(bus_id, "0000:1B:00.0");
  *device = &gpu;
  return gpu.device;
}
static int nvml_clock(void *device, int which, unsigned *mhz) {
  assert_ptr_equal(device, &gpu);
  *mhz = which == 1 ? 1980 : which == 2 ? 2619 : 0;
  return gpu.clock;
}
static int nvml_temperature(void *device, int sensor, unsigned *celsius) {
  (void)device;
  *celsius = sensor == 0 ? 41 : 999;
  return 0;
}
static int nvml_power(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 112500;
  return 0;
}
static int nvml_slowdowns(void *device, unsigned long long *bits) {
  (void)device;
  *bits = gpu.bits;
  return 0;
}
static int nvml_processes(void *device, unsigned *count, cs_nvml_process *list) {
  (void)device;
  assert_true(*count >= gpu.count);
  *count = gpu.count;
  for (unsigned i = 0; i < gpu.count; i++) list[i] = (cs_nvml_process){.pid = 100 + i};
  return gpu.processes;
}
static int nvml_mig(void *device, unsigned *current, unsigned *pending) {
  (void)device;
  *current = gpu.mig_on;
  *pending = 0;
  return gpu.mig;
}

static int nvml_energy(void *device, unsigned long long *millijoules) {
  assert_ptr_equal(device, &gpu);
  *millijoules = gpu.millijoules;
  return gpu.energy;
}

static cs_nvml fake_nvml = {.error_string = nvml_error,
                            .device_by_bus_id = nvml_device,
                            .clock = nvml_clock,
                            .temperature = nvml_temperature,
                            .power = nvml_power,
                            .slowdowns = nvml_slowdowns,
                            .processes = nvml_processes,
                            .mig_mode = nvml_mig,
                            .energy = nvml_energy};

static cs_device_state read_as(int pid) {
  cs_device_state s;
  cs_nvml_read(&fake_nvml, "0000:1B:00.0", pid, &s);
  return s;
}

static void the_state_of_a_gpu_is_read(void **state) {
  (void)state;
  memset(&gpu, 0, sizeof(gpu));
  gpu.count = 3;
  gpu.bits = 0x1 | 0x4 | 0x40;
  gpu.mig_on = 1;
  cs_device_state s = read_as(101);
  assert_true(s.clock_mhz == 1980 && s.memory_clock_mhz == 2619 && s.temperature_c == 41);
  assert_true(fabs(s.power_w - 112.5) < 1e-9);
  assert_string_equal(s.throttle, "power cap, thermal (hardware)");
  assert_int_equal(s.other_processes, 2);
  assert_int_equal(s.partitioned, 1);
  assert_string_equal(s.unavailable, "");
  gpu.bits = 0x1;
  gpu.mig = 3; /* no such feature: a whole device */
  s = read_as(100);
  assert_string_equal(s.throttle, "");
  assert_int_equal(s.partitioned, 0);
  assert_string_equal(s.unavailable, "");
}

static void what_nvml_does_not_tell_stays_unknown(void **state) {
  (void)state;
  memset(&gpu, 0, sizeof(gpu));
  gpu.clock = 3;
  gpu.mig = 999;
  cs_device_state s = read_as(1);
  assert_true(isnan(s.clock_mhz) && isnan(s.memory_clock_mhz) && s.temperature_c == 41);
  assert_int_equal(s.partitioned, -1);
  assert_int_equal(s.other_processes, -1); /* not even this process is listed */
  assert_non_null(strstr(s.unavailable, "no clock (Not Supported)"));
  assert_non_null(strstr(s.unavailable, "other processes unknown"));
  memset(&gpu, 0, sizeof(gpu));
  gpu.count = 2;
  s = read_as(1); /* ids of another namespace: one of the two is this process */
  assert_int_equal(s.other_processes, 1);
  assert_non_null(strstr(s.unavailable, "other processes uncertain"));
  gpu.device = 2;
  s = read_as(1);
  assert_true(isnan(s.temperature_c) && isnan(s.power_w));
  assert_int_equal(s.other_processes, -1);
  assert_non_null(strstr(s.unavailable, "0000:1B:00.0"));
}

static void slowdowns_have_names_and_fit(void **state) {
  (void)state;
  char text[128];
  cs_nvml_slowdown_text(0, text, sizeof(text));
  assert_string_equal(text, "");
  cs_nvml_slowdown_text(0x202, text, sizeof(text));
  assert_string_equal(text, "application clocks, reason 9");
  cs_nvml_slowdown_text(~0ull, text, sizeof(text));
  assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void a_missing_nvml_is_said_with_what_to_do(void **state) {
  (void)state;
  cs_nvml *nvml = NULL;
  fails(cs_nvml_open("libnvidia-ml.so.none", &nvml), CS_CODE_NOT_FOUND, "comes with the driver");
  assert_null(nvml);
  fails(cs_nvml_open("libm.so.6", &nvml), CS_CODE_NOT_FOUND, "libm.so.6 lacks nvmlInit_v2");
  assert_null(nvml);
}

static void nvml_is_loaded_from_a_library(void **state) {
  (void)state;
  cs_nvml *nvml = NULL;
  ok(cs_nvml_open(FAKE_NVML, &nvml));
  char version[32];
  cs_nvml_version(nvml, version, sizeof(version));
  assert_string_equal(version, "12.470.1");
  cs_device_state s;
  cs_nvml_read(nvml, "0000:1B:00.0", 1, &s);
  assert_true(s.clock_mhz == 1410 && s.memory_clock_mhz == 1215 && s.temperature_c == 35);
  assert_true(fabs(s.power_w - 60) < 1e-9);
  assert_string_equal(s.throttle, "power brake");
  assert_int_equal(s.other_processes, -1);
  assert_string_equal(s.unavailable, "no list of processes");
  assert_int_equal(s.partitioned, 0);
  cs_nvml_close(nvml);
  setenv("FAKE_NVML_FAILS", "1", 1);
  fails(cs_nvml_open(FAKE_NVML, &nvml), CS_CODE_NOT_FOUND,
        "device state: unavailable (NVML error 9, Driver Not Loaded)");
  unsetenv("FAKE_NVML_FAILS");
  assert_null(nvml);
}

/* ---- Energy ---- */

static double joules_of(const cs_nvml *nvml) {
  double joules = -1;
  ok(cs_nvml_energy(nvml, "0000:1B:00.0", &joules));
  return joules;
}

/* The counter as it stands: with its last millijoule also after years, and less than before where
 * the driver was loaded anew. */
static void joules_are_the_counters(void **state) {
  (void)state;
  memset(&gpu, 0, sizeof(gpu));
  assert_true(joules_of(&fake_nvml) == 0);
  gpu.millijoules = 1234567;
  assert_true(fabs(joules_of(&fake_nvml) - 1234.567) < 1e-9);
  gpu.millijoules = 1000ull * 700 * 86400 * 3650; /* 700 W for ten years */
  double then = joules_of(&fake_nvml);
  gpu.millijoules++;
  assert_true(fabs(joules_of(&fake_nvml) - then - 1e-3) < 1e-4);
  gpu.millijoules = 5;
  assert_true(fabs(joules_of(&fake_nvml) - 5e-3) < 1e-12);
}

static void without_a_counter_there_are_no_joules(void **state) {
  (void)state;
  double joules = -1;
  memset(&gpu, 0, sizeof(gpu));
  gpu.millijoules = 99;
  gpu.energy = 3;
  fails(cs_nvml_energy(&fake_nvml, "0000:1B:00.0", &joules), CS_CODE_NOT_FOUND,
        "not available: NVML error 3 (Not Supported)");
  gpu.energy = 0;
  gpu.device = 2; /* NVML does not know the GPU: its counter is not asked for */
  fails(cs_nvml_energy(&fake_nvml, "0000:1B:00.0", &joules), CS_CODE_NOT_FOUND,
        "not available: NVML error 2 (Some Error)");
  cs_nvml older = fake_nvml;
  older.energy = NULL;
  gpu.device = 0;
  fails(cs_nvml_energy(&older, "0000:1B:00.0", &joules), CS_CODE_NOT_FOUND,
        "this driver's NVML lacks nvmlDeviceGetTotalEnergyConsumption");
}

static void a_library_may_have_the_counter(void **state) {
  (void)state;
  cs_nvml *nvml = NULL;
  double joules = -1;
  ok(cs_nvml_open(FAKE_NVML, &nvml));
  fails(cs_nvml_energy(nvml, "0000:1B:00.0", &joules), CS_CODE_NOT_FOUND, "lacks");
  cs_nvml_close(nvml);
  ok(cs_nvml_open(FAKE_NVML_ENERGY, &nvml));
  assert_true(fabs(joules_of(nvml) - 42.5) < 1e-9);
  cs_nvml_close(nvml);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_state_of_a_gpu_is_read),
      cmocka_unit_test(what_nvml_does_not_tell_stays_unknown),
      cmocka_unit_test(slowdowns_have_names_and_fit),
      cmocka_unit_test(nvml_is_loaded_from_a_library),
      cmocka_unit_test(a_missing_nvml_is_said_with_what_to_do),
      cmocka_unit_test(joules_are_the_counters),
      cmocka_unit_test(without_a_counter_there_are_no_joules),
      cmocka_unit_test(a_library_may_have_the_counter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
