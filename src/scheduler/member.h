/* Members of a JSON object, read strictly. `path` is the object's JSON path ("$.tasks[3]"); errors
 * are BAD_INPUT and name the path, the value found and the value wanted. */
#ifndef CONVSCHED_SCHEDULER_MEMBER_H_
#define CONVSCHED_SCHEDULER_MEMBER_H_

#include <jansson.h>

#include "base/base.h"

/* "an object", …; "nothing" for NULL. */
const char *cs_member_type(const json_t *value);
/* The error "path.key: found <type>, wanted <wanted>"; an empty key is the object itself. */
cs_status cs_member_wrong(const char *path, const char *key, const json_t *found,
                          const char *wanted) CS_MUST_USE;
/* `object` is an object with exactly these n keys, of which the last n_optional may be missing. */
cs_status cs_member_keys(json_t *object, const char *path, const char *const *keys, size_t n,
                         size_t n_optional) CS_MUST_USE;
/* Borrowed text. */
cs_status cs_member_text(const json_t *object, const char *path, const char *key,
                         const char **out) CS_MUST_USE;
/* An owned copy; null leaves *out as it is where allowed. */
cs_status cs_member_copy(const json_t *object, const char *path, const char *key, bool null_allowed,
                         char **out) CS_MUST_USE;
cs_status cs_member_integer(const json_t *object, const char *path, const char *key, int64_t least,
                            int64_t most, int64_t *out) CS_MUST_USE;
/* Bytes, 0 or more, a multiple of `alignment`. */
cs_status cs_member_offset(const json_t *object, const char *path, const char *key,
                           int64_t alignment, int64_t *out) CS_MUST_USE;
/* Microseconds, 0 or more. */
cs_status cs_member_time(const json_t *object, const char *path, const char *key,
                         double *out) CS_MUST_USE;
cs_status cs_member_bool(const json_t *object, const char *path, const char *key,
                         bool *out) CS_MUST_USE;
/* An unsigned number as a string: base 16 with 16 digits, or base 10. */
cs_status cs_member_digits(const json_t *object, const char *path, const char *key, int base,
                           uint64_t *out) CS_MUST_USE;

#endif
