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

/* Puts '?' in the place of every byte that is not UTF-8, as names of files may have: JSON cannot.
 */
void cs_make_utf8(char *text);
/* `text` as a JSON string after that; NULL: no memory. */
json_t *cs_json_text(const char *text);

#endif
