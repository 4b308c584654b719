/* Jansson helpers. */
#ifndef CONVSCHED_BASE_JSON_H_
#define CONVSCHED_BASE_JSON_H_

#include <jansson.h>
#include <math.h>

#include "base/base.h"

/* Text of `json` (compact where short, two-space indent), consuming the reference; NULL `json` is
 * NO_MEMORY. free() releases *out. */
cs_status cs_json_take_text(json_t *json, char **out) CS_MUST_USE;

/* A number, or null where it is not known (NaN) or has no JSON (infinite). */
static inline json_t *cs_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

#endif
