#include "backend/cuda/cupti_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/library_paths.h"

#if CUDART_VERSION >= 13000
#define CUPTI_NAME "libcupti.so.13"
#else
#define CUPTI_NAME "libcupti.so.12"
#endif

static cs_status load_functions(void *library, const char *path, cs_cupti *out) {
  void *symbol = NULL;
#define LOAD(member, function)                                                               \
  symbol = dlsym(library, #function);                                                        \
  if (!symbol) {                                                                             \
    return cs_error(CS_CODE_NOT_FOUND,                                                       \
                    "counters: unavailable (CUPTI too old): %s lacks %s; install the CUPTI " \
                    "of CUDA %d.%d",                                                         \
                    path, #function, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);     \
  }                                                                                          \
  memcpy(&out->member, &symbol, sizeof(symbol));
  CS_CUPTI_FUNCTIONS(LOAD)
#undef LOAD
  return CS_OK;
}

cs_status cs_cupti_load(const char *const *paths, int n, cs_cupti *out) {
  memset(out, 0, sizeof(*out));
  const char *path = NULL;
  void *library = cs_library_open(paths, n, RTLD_NOW | RTLD_LOCAL, &path);
  if (library) return load_functions(library, path, out);
  return cs_error(CS_CODE_NOT_FOUND,
                  "counters: unavailable (no CUPTI): %s is in none of %d places; install the CUPTI "
                  "of CUDA %d.%d or add its folder to LD_LIBRARY_PATH",
                  n > 0 ? paths[0] : CUPTI_NAME, n, CUDART_VERSION / 1000,
                  CUDART_VERSION % 1000 / 10);
}

/* ---- Where it may be ---- */

static cs_status load_default(cs_cupti *out) {
  cs_library_paths list = {0};
  cs_library_paths_add(&list, CUPTI_NAME, "");
  /* Toolkits have CUPTI beside libcudart or below extras, wheels in a folder of its own. */
  cs_library_paths_add_beside_cudart(&list, "/" CUPTI_NAME);
  cs_library_paths_add_beside_cudart(&list, "/../extras/CUPTI/lib64/" CUPTI_NAME);
  cs_library_paths_add_beside_cudart(&list, "/../../../extras/CUPTI/lib64/" CUPTI_NAME);
  cs_library_paths_add_beside_cudart(&list, "/../../cuda_cupti/lib/" CUPTI_NAME);
  cs_library_paths_add_matches(&list, "/usr/local/cuda*/extras/CUPTI/lib64/" CUPTI_NAME);
  cs_library_paths_add_matches(&list, "/usr/local/cuda*/targets/x86_64-linux/lib/" CUPTI_NAME);
  cs_library_paths_add_matches(&list, "/usr/local/cuda*/lib*/" CUPTI_NAME);
#ifdef CS_CUPTI_BUILD_PATH
  cs_library_paths_add(&list, CS_CUPTI_BUILD_PATH, "");
#endif
  cs_status st = list.failed ? cs_no_memory("the places of CUPTI", 0)
                             : cs_cupti_load((const char *const *)list.items, list.n, out);
  cs_library_paths_free(&list);
  return st;
}

/* ---- The process's own ---- */

/* CUPTI itself is one for a process: so are its table and its lock. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;

cs_status cs_cupti_get(const cs_cupti **out) {
  static cs_cupti table;
  static bool loaded;
  *out = NULL;
  pthread_mutex_lock(&load_lock);
  cs_status st = loaded ? CS_OK : load_default(&table);
  loaded = st == CS_OK;
  if (loaded) *out = &table;
  pthread_mutex_unlock(&load_lock);
  return st;
}

void cs_cupti_version(char *out, size_t size) {
  const cs_cupti *cupti = NULL;
  uint32_t version = 0;
  cs_status_free(cs_cupti_get(&cupti));
  if (cupti && cupti->get_version && cupti->get_version(&version) == CUPTI_SUCCESS) {
    snprintf(out, size, "%u", (unsigned)version);
  } else {
    snprintf(out, size, "%s", "");
  }
}

void cs_cupti_lock(void) {
  pthread_mutex_lock(&use_lock);
}

void cs_cupti_unlock(void) {
  pthread_mutex_unlock(&use_lock);
}

/* ---- Results ---- */

typedef struct refusal {
  CUptiResult result;
  const char *name, *advice;
} refusal;

#define ADMIN_ONLY                                                                         \
  "run as root or with CAP_SYS_ADMIN, or load the driver's kernel module with the option " \
  "NVreg_RestrictProfilingToAdminUsers=0"
#define OTHER_TOOL "end the profiler or debugger that is attached to this process or GPU"
#define REFUSAL(name, advice) \
  { CUPTI_ERROR_##name, #name, advice }

static const refusal refusals[] = {
    REFUSAL(INSUFFICIENT_PRIVILEGES, ADMIN_ONLY),
    REFUSAL(VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
            "let the hypervisor allow profiling of this virtual GPU"),
    REFUSAL(VIRTUALIZED_DEVICE_NOT_SUPPORTED, "use a GPU that is not virtual"),
    REFUSAL(HARDWARE_BUSY, OTHER_TOOL),
    REFUSAL(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, OTHER_TOOL),
    REFUSAL(CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "turn confidential computing off"),
    REFUSAL(MIG_DEVICE_NOT_SUPPORTED, "use the whole GPU, with MIG off"),
    REFUSAL(CMP_DEVICE_NOT_SUPPORTED, "use another GPU: this kind has no counters"),
    REFUSAL(SLI_DEVICE_NOT_SUPPORTED, "turn SLI off"),
    REFUSAL(WSL_DEVICE_NOT_SUPPORTED, "use Linux without WSL"),
    REFUSAL(INVALID_CHIP_NAME, "install a CUPTI that knows this GPU"),
    REFUSAL(NOT_SUPPORTED, "use a GPU and a driver that CUPTI supports"),
    REFUSAL(NOT_COMPATIBLE, "install a driver as new as CUPTI"),
    REFUSAL(NOT_INITIALIZED, "check that the NVIDIA driver works (nvidia-smi)"),
};

cs_status cs_cupti_status(CUptiResult result, const char *what, const char *doing) {
  if (result == CUPTI_SUCCESS) return CS_OK;
  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    if (refusals[i].result != result) continue;
    return cs_error(CS_CODE_NOT_FOUND, "%s: unavailable (CUPTI_ERROR_%s): %s", what,
                    refusals[i].name, refusals[i].advice);
  }
  return cs_error(result == CUPTI_ERROR_OUT_OF_MEMORY ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE,
                  "%s: %s failed: CUPTI error %d", what, doing, (int)result);
}
