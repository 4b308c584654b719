#include "profiler/record_fields.h"

#include <limits.h>
#include <math.h>
#include <string.h>

bool cs_get_string(const json_t *object, const char *key, const char **out) {
  *out = json_string_value(json_object_get(object, key));
  return *out != NULL;
}

static bool integer_of(const json_t *value, int64_t max, int64_t *out) {
  if (!json_is_integer(value)) return false;
  *out = json_integer_value(value);
  return *out >= 0 && *out <= max;
}

bool cs_get_integer(const json_t *object, const char *key, int64_t max, int64_t *out) {
  return integer_of(json_object_get(object, key), max, out);
}

bool cs_get_int(const json_t *object, const char *key, int *out) {
  int64_t value = 0;
  bool good = cs_get_integer(object, key, INT_MAX, &value);
  if (good) *out = (int)value;
  return good;
}

bool cs_get_bool(const json_t *object, const char *key, bool *out) {
  const json_t *value = json_object_get(object, key);
  *out = json_is_true(value);
  return json_is_boolean(value);
}

bool cs_get_number(const json_t *object, const char *key, double *out) {
  const json_t *value = json_object_get(object, key);
  *out = json_number_value(value);
  return json_is_number(value) && isfinite(*out) && *out >= 0;
}

bool cs_get_triple(const json_t *object, const char *key, int out[3]) {
  const json_t *array = json_object_get(object, key);
  if (json_array_size(array) != 3) return false;
  for (size_t i = 0; i < 3; i++) {
    int64_t value = 0;
    if (!integer_of(json_array_get(array, i), INT_MAX, &value)) return false;
    out[i] = (int)value;
  }
  return true;
}

bool cs_get_text(const json_t *object, const char *key, char *out, size_t size) {
  const char *text = NULL;
  if (!cs_get_string(object, key, &text) || strlen(text) >= size) return false;
  memcpy(out, text, strlen(text) + 1);
  return true;
}
