#include "backend/cuda/library_paths.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_library_paths_add(cs_library_paths *list, const char *folder, const char *below) {
  if (list->n == CS_LIBRARY_PATHS_MOST) return;
  cs_strbuf path = {0};
  cs_strbuf_printf(&path, "%s%s", folder, below);
  char *text = NULL;
  cs_status st = cs_strbuf_take(&path, &text);
  list->failed |= st != CS_OK;
  cs_status_free(st);
  if (text) list->items[list->n++] = text;
}

void cs_library_paths_add_beside_cudart(cs_library_paths *list, const char *below) {
  cudaError_t (*function)(int *) = cudaGetDeviceCount;
  void *address = NULL;
  memcpy(&address, &function, sizeof(address));
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return;
  const char *slash = strrchr(info.dli_fname, '/');
  if (!slash) return;
  char folder[4096];
  snprintf(folder, sizeof(folder), "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
  cs_library_paths_add(list, folder, below);
}

void cs_library_paths_add_matches(cs_library_paths *list, const char *pattern) {
  glob_t found;
  if (glob(pattern, 0, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) cs_library_paths_add(list, found.gl_pathv[i], "");
  globfree(&found);
}

void *cs_library_open(const char *const *paths, int n, int flags, const char **opened) {
  for (int i = 0; i < n; i++) {
    void *library = dlopen(paths[i], flags);
    *opened = paths[i];
    if (library) return library;
  }
  return NULL;
}

void cs_library_paths_free(cs_library_paths *list) {
  for (int i = 0; i < list->n; i++) free(list->items[i]);
  memset(list, 0, sizeof(*list));
}
