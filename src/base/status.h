/* Making and passing on statuses. The one cleanup idiom of the code base:
 *
 *   cs_status st = CS_OK;
 *   CS_TRY(st, step_one(&a), done);
 *   CS_TRY(st, step_two(a, &b), done);
 *   *out = b, b = NULL;
 * done:
 *   destroy(b);
 *   destroy(a);
 *   return st;
 */
#ifndef CONVSCHED_BASE_STATUS_H_
#define CONVSCHED_BASE_STATUS_H_

#include <stdarg.h>

#include "convsched/convsched.h"

#if defined(__GNUC__)
#define CS_PRINTF(format_index, args_index) \
  __attribute__((format(printf, format_index, args_index)))
#else
#define CS_PRINTF(format_index, args_index)
#endif
/* Of functions that never return CS_OK: the compiler then knows that what follows an error is not
 * reached, and does not warn of outputs that only success sets. */
#if defined(__GNUC__)
#define CS_NEVER_OK __attribute__((returns_nonnull))
#else
#define CS_NEVER_OK
#endif

/* A new status; never returns CS_OK. Out of memory gives a static NO_MEMORY status. */
cs_status cs_error(cs_code code, const char *format, ...) CS_PRINTF(2, 3) CS_NEVER_OK CS_MUST_USE;
/* Prefixes the message ("models/a.json: " …) and keeps the code; CS_OK stays CS_OK. Consumes
 * `status`. */
cs_status cs_annotate(cs_status status, const char *format, ...) CS_PRINTF(2, 3) CS_MUST_USE;
/* NO_MEMORY that names what was being allocated. */
cs_status cs_no_memory(const char *what, size_t bytes) CS_NEVER_OK CS_MUST_USE;
/* IO with strerror(errno_value). */
cs_status cs_io_error(const char *path, const char *action,
                      int errno_value) CS_NEVER_OK CS_MUST_USE;

#define CS_TRY(status, expression, label) \
  do {                                    \
    (status) = (expression);              \
    if ((status) != CS_OK) goto label;    \
  } while (0)
#define CS_RETURN_IF_ERROR(expression)          \
  do {                                          \
    cs_status cs_status_ = (expression);        \
    if (cs_status_ != CS_OK) return cs_status_; \
  } while (0)
/* Sets the status to a new error and jumps. */
#define CS_FAIL(status, label, ...)   \
  do {                                \
    (status) = cs_error(__VA_ARGS__); \
    goto label;                       \
  } while (0)

#endif
