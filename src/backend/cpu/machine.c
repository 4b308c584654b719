/* What this machine is, read from the operating system. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/omp.h"

/* The value of a "key : value" line of /proc/cpuinfo. */
static bool cpuinfo_value(const char *line, const char *key, char *out, size_t size) {
  size_t length = strlen(key);
  if (strncmp(line, key, length) != 0) return false;
  const char *colon = strchr(line, ':');
  if (!colon || strspn(line + length, " \t") != (size_t)(colon - line) - length) return false;
  colon += 1 + strspn(colon + 1, " \t");
  snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
  return true;
}

static void read_cpuinfo(cpu_machine *machine) {
  char line[1024], vendor[40] = "?", family[24] = "?", model[24] = "?", stepping[24] = "?";
  char mhz[24] = "0";
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (!file) return;
  while (fgets(line, sizeof line, file) && line[0] != '\n') { /* the first processor only */
    if (cpuinfo_value(line, "model name", machine->name, sizeof machine->name)) continue;
    if (cpuinfo_value(line, "vendor_id", vendor, sizeof vendor)) continue;
    if (cpuinfo_value(line, "cpu family", family, sizeof family)) continue;
    if (cpuinfo_value(line, "model", model, sizeof model)) continue;
    if (cpuinfo_value(line, "stepping", stepping, sizeof stepping)) continue;
    if (cpuinfo_value(line, "cpu MHz", mhz, sizeof mhz)) continue;
  }
  fclose(file);
  machine->clock_mhz = (int)strtod(mhz, NULL);
  snprintf(machine->signature, sizeof machine->signature, "%s family %s model %s stepping %s",
           vendor, family, model, stepping);
}

static int64_t sysconf_or(int name, int64_t otherwise) {
  long value = sysconf(name);
  return value > 0 ? value : otherwise;
}

/* The last-level cache that the first processor is part of; sysconf adds those of a whole host up.
 */
static int64_t last_cache_bytes(void) {
  for (int index = 4; index >= 2; index--) {
    char path[80];
    long long kibibytes = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "r");
    if (!file) continue;
    int read = fscanf(file, "%lldK", &kibibytes);
    fclose(file);
    if (read == 1 && kibibytes > 0) return kibibytes << 10;
  }
  return sysconf_or(_SC_LEVEL3_CACHE_SIZE, sysconf_or(_SC_LEVEL2_CACHE_SIZE, 8 << 20));
}

void cpu_machine_detect(cpu_machine *out) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "unknown processor");
  snprintf(out->signature, sizeof out->signature, "unknown");
  read_cpuinfo(out);
  out->cores = cs_cpu_count();
  out->memory_bytes = sysconf_or(_SC_PHYS_PAGES, 0) * sysconf_or(_SC_PAGESIZE, 0);
  out->cache_bytes = last_cache_bytes();
}

int64_t cpu_free_memory(void) {
  return sysconf_or(_SC_AVPHYS_PAGES, 0) * sysconf_or(_SC_PAGESIZE, 0);
}

int cpu_set_threads(int threads) {
#ifdef _OPENMP
  int former = omp_get_max_threads();
  if (former != threads) omp_set_num_threads(threads);
  return former;
#else
  return threads;
#endif
}

const char *cpu_openmp_version(void) {
#ifdef _OPENMP
  return _OPENMP >= 201811 ? "5.0" : _OPENMP >= 201511 ? "4.5" : "older than 4.5";
#else
  return "none";
#endif
}
