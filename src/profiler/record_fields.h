/* Reading members of a JSON object: false where one is missing, of another type or out of range. */
#ifndef CONVSCHED_PROFILER_RECORD_FIELDS_H_
#define CONVSCHED_PROFILER_RECORD_FIELDS_H_

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

bool cs_get_string(const json_t *object, const char *key, const char **out);
/* A whole number of 0 … max. */
bool cs_get_integer(const json_t *object, const char *key, int64_t max, int64_t *out);
bool cs_get_int(const json_t *object, const char *key, int *out);
bool cs_get_bool(const json_t *object, const char *key, bool *out);
/* A finite number of at least 0. */
bool cs_get_number(const json_t *object, const char *key, double *out);
/* An array of exactly three whole numbers. */
bool cs_get_triple(const json_t *object, const char *key, int out[3]);
/* A text that fits into `size` bytes with its NUL. */
bool cs_get_text(const json_t *object, const char *key, char *out, size_t size);

#endif
