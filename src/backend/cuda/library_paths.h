/* Where a shared library of the CUDA toolkit may be: what the system finds, beside libcudart, in
 * the CUDA folders of /usr/local. */
#ifndef CONVSCHED_BACKEND_CUDA_LIBRARY_PATHS_H_
#define CONVSCHED_BACKEND_CUDA_LIBRARY_PATHS_H_

#include "base/base.h"

#define CS_LIBRARY_PATHS_MOST 32

typedef struct cs_library_paths { /* zeroed: none; what is more than fits is left out */
  char *items[CS_LIBRARY_PATHS_MOST];
  int n;
  bool failed; /* out of memory */
} cs_library_paths;

void cs_library_paths_add(cs_library_paths *list, const char *folder, const char *below);
/* `below` begins with a slash: the path from libcudart's folder. */
void cs_library_paths_add_beside_cudart(cs_library_paths *list, const char *below);
/* Files that match a shell pattern. */
void cs_library_paths_add_matches(cs_library_paths *list, const char *pattern);
/* Opens the first that there is (flags: of dlopen) and says which it was; NULL: none is. */
void *cs_library_open(const char *const *paths, int n, int flags, const char **opened);
void cs_library_paths_free(cs_library_paths *list);

#endif
