/* Small public functions that belong to no object. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/progress.h"
#include "runtime/params.h"
#include "scheduler/policy.h"

#define MAX_POLICIES 32

const char *const *cs_policy_names(int *count) {
  static const char *names[MAX_POLICIES];
  const cs_policy *const *all = cs_policy_all(count);
  for (int i = 0; i < *count && i < MAX_POLICIES; i++) names[i] = all[i]->name;
  return names;
}

static cs_status shape_of(int rank, const int64_t *dims, cs_shape *out) {
  if (rank < 0 || rank > CS_MAX_RANK) {
    return cs_error(CS_CODE_USAGE, "rank %d: wanted 0 to %d", rank, CS_MAX_RANK);
  }
  memset(out, 0, sizeof *out);
  out->rank = rank;
  for (int d = 0; d < rank; d++) out->dims[d] = dims[d];
  return CS_OK;
}

void cs_progress_watch(cs_progress_fn report, void *user) {
  cs_progress_set_watcher(report, user);
}

cs_status cs_array_load(const char *path, int rank, const int64_t *dims, float **out) {
  cs_shape shape;
  CS_RETURN_IF_ERROR(shape_of(rank, dims, &shape));
  return cs_array_read(path, &shape, out);
}

void cs_array_free(float *array) {
  free(array);
}

cs_status cs_array_save(const char *path, int rank, const int64_t *dims, const float *data) {
  cs_shape shape;
  CS_RETURN_IF_ERROR(shape_of(rank, dims, &shape));
  return cs_array_write(path, &shape, data);
}

cs_status cs_text_save(const char *path, const char *text) {
  return cs_file_replace(path, text, strlen(text));
}
