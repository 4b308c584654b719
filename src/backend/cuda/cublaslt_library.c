#include "backend/cuda/cublaslt_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/library_paths.h"

#if CUBLAS_VER_MAJOR >= 13
#define CUBLASLT_NAME "libcublasLt.so.13"
#else
#define CUBLASLT_NAME "libcublasLt.so.12"
#endif
#define ACTION_SIZE 256

static cs_status load_functions(void *library, const char *path, cs_cublaslt_api *out) {
  void *symbol = NULL;
#define LOAD(member, function)                                                                   \
  symbol = dlsym(library, #function);                                                            \
  if (!symbol) {                                                                                 \
    return cs_error(CS_CODE_NOT_FOUND, "candidates of cuBLASLt: unavailable: %s lacks %s", path, \
                    #function);                                                                  \
  }                                                                                              \
  memcpy(&out->member, &symbol, sizeof(symbol));
  CS_CUBLASLT_FUNCTIONS(LOAD)
#undef LOAD
  out->version = (int64_t)out->get_version();
  return CS_OK;
}

cs_status cs_cublaslt_load(const char *const *paths, int n, cs_cublaslt_api *out) {
  memset(out, 0, sizeof(*out));
  const char *path = NULL;
  void *library = cs_library_open(paths, n, RTLD_LAZY | RTLD_LOCAL, &path);
  if (library) return load_functions(library, path, out);
  return cs_error(CS_CODE_NOT_FOUND,
                  "candidates of cuBLASLt: unavailable: %s is in none of %d places; install the "
                  "cuBLAS of CUDA %d.%d or add its folder to LD_LIBRARY_PATH",
                  n > 0 ? paths[0] : CUBLASLT_NAME, n, CUDART_VERSION / 1000,
                  CUDART_VERSION % 1000 / 10);
}

static cs_status load_default(cs_cublaslt_api *out) {
  cs_library_paths list = {0};
  cs_library_paths_add(&list, CUBLASLT_NAME, "");
  /* Toolkits have it beside libcudart, wheels of CUDA 12 in a folder of its own. */
  cs_library_paths_add_beside_cudart(&list, "/" CUBLASLT_NAME);
  cs_library_paths_add_beside_cudart(&list, "/../../cublas/lib/" CUBLASLT_NAME);
  cs_library_paths_add_matches(&list, "/usr/local/cuda*/targets/x86_64-linux/lib/" CUBLASLT_NAME);
  cs_library_paths_add_matches(&list, "/usr/local/cuda*/lib*/" CUBLASLT_NAME);
  cs_status st = list.failed ? cs_no_memory("the places of cuBLASLt", 0)
                             : cs_cublaslt_load((const char *const *)list.items, list.n, out);
  cs_library_paths_free(&list);
  return st;
}

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

cs_status cs_cublaslt_get(const cs_cublaslt_api **out) {
  static cs_cublaslt_api table;
  static bool loaded;
  static char missing[512]; /* why it is not there, once that is known */
  cs_status st = CS_OK;
  *out = NULL;
  pthread_mutex_lock(&load_lock);
  if (!loaded && missing[0]) {
    st = cs_error(CS_CODE_NOT_FOUND, "%s", missing);
  } else if (!loaded) {
    st = load_default(&table);
    loaded = st == CS_OK;
    if (cs_status_code(st) == CS_CODE_NOT_FOUND) {
      snprintf(missing, sizeof(missing), "%s", cs_status_message(st));
    }
  }
  if (loaded) *out = &table;
  pthread_mutex_unlock(&load_lock);
  return st;
}

void cs_cublaslt_version_text(int64_t version, char *out, size_t size) {
  snprintf(out, size, "%" PRId64 ".%" PRId64 ".%" PRId64, version / 10000, version % 10000 / 100,
           version % 100);
}

void cs_cublaslt_version(char *out, size_t size) {
  const cs_cublaslt_api *api = NULL;
  snprintf(out, size, "%s", "");
  cs_status_free(cs_cublaslt_get(&api));
  if (api) cs_cublaslt_version_text(api->version, out, size);
}

/* ---- Results ---- */

cs_status cs_cublaslt_status(const cs_cublaslt_api *api, cublasStatus_t result, const char *format,
                             ...) {
  if (result == CUBLAS_STATUS_SUCCESS) return CS_OK;
  (void)cudaGetLastError();
  char action[ACTION_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(action, sizeof(action), format, args);
  va_end(args);
  return cs_error(result == CUBLAS_STATUS_ALLOC_FAILED ? CS_CODE_NO_MEMORY : CS_CODE_DEVICE,
                  "%s failed: cuBLASLt error %d (%s)", action, (int)result,
                  api->status_name(result));
}

bool cs_cublaslt_unsupported(cublasStatus_t result) {
  return result == CUBLAS_STATUS_NOT_SUPPORTED || result == CUBLAS_STATUS_ARCH_MISMATCH ||
         result == CUBLAS_STATUS_INVALID_VALUE;
}
