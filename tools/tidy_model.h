/* What clang-tidy is to know of functions in other files (included before each file it reads): a
 * status made from an error is never CS_OK, so outputs that only success sets are set after it. */
#ifndef CONVSCHED_TOOLS_TIDY_MODEL_H_
#define CONVSCHED_TOOLS_TIDY_MODEL_H_

#include "base/status.h"

static char tidy_model_error;

cs_status cs_error(cs_code code, const char *format, ...) {
  (void)code, (void)format;
  return (cs_status)(void *)&tidy_model_error;
}
cs_status cs_no_memory(const char *what, size_t bytes) {
  (void)what, (void)bytes;
  return (cs_status)(void *)&tidy_model_error;
}
cs_status cs_io_error(const char *path, const char *action, int errno_value) {
  (void)path, (void)action, (void)errno_value;
  return (cs_status)(void *)&tidy_model_error;
}
/* Wraps what it is given. */
cs_status cs_annotate(cs_status status, const char *format, ...) {
  (void)format;
  return status;
}

#endif
