#include "scheduler/member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *cs_member_type(const json_t *value) {
  static const char *const names[] = {"an object", "an array", "a string", "an integer",
                                      "a number",  "true",     "false",    "null"};
  return value ? names[json_typeof(value)] : "nothing";
}

cs_status cs_member_wrong(const char *path, const char *key, const json_t *found,
                          const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT, "%s%s%s: found %s, wanted %s", path, *key ? "." : "", key,
                  cs_member_type(found), wanted);
}

cs_status cs_member_keys(json_t *object, const char *path, const char *const *keys, size_t n,
                         size_t n_optional) {
  if (!json_is_object(object)) return cs_member_wrong(path, "", object, "an object");
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    size_t i = 0;
    while (i < n && strcmp(keys[i], key) != 0) i++;
    if (i == n) return cs_error(CS_CODE_BAD_INPUT, "%s: unknown key \"%s\"", path, key);
  }
  for (size_t i = 0; i < n - n_optional; i++)
    if (!json_object_get(object, keys[i]))
      return cs_error(CS_CODE_BAD_INPUT, "%s: key \"%s\" is missing", path, keys[i]);
  return CS_OK;
}

cs_status cs_member_text(const json_t *object, const char *path, const char *key,
                         const char **out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_string(value)) return cs_member_wrong(path, key, value, "a string");
  *out = json_string_value(value);
  return CS_OK;
}

cs_status cs_member_copy(const json_t *object, const char *path, const char *key, bool null_allowed,
                         char **out) {
  const char *text = "";
  if (null_allowed && json_is_null(json_object_get(object, key))) return CS_OK;
  CS_RETURN_IF_ERROR(cs_member_text(object, path, key, &text));
  return cs_strdup_to(text, out);
}

cs_status cs_member_integer(const json_t *object, const char *path, const char *key, int64_t least,
                            int64_t most, int64_t *out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) return cs_member_wrong(path, key, value, "an integer");
  *out = json_integer_value(value);
  if (*out < least || *out > most)
    return cs_error(CS_CODE_BAD_INPUT, "%s.%s: found %" PRId64 ", wanted %" PRId64 " to %" PRId64,
                    path, key, *out, least, most);
  return CS_OK;
}

cs_status cs_member_offset(const json_t *object, const char *path, const char *key,
                           int64_t alignment, int64_t *out) {
  CS_RETURN_IF_ERROR(cs_member_integer(object, path, key, 0, INT64_MAX, out));
  if (*out % alignment != 0)
    return cs_error(CS_CODE_BAD_INPUT, "%s.%s: found %" PRId64 ", wanted a multiple of %" PRId64,
                    path, key, *out, alignment);
  return CS_OK;
}

cs_status cs_member_time(const json_t *object, const char *path, const char *key, double *out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) return cs_member_wrong(path, key, value, "a number");
  *out = json_number_value(value);
  if (*out < 0)
    return cs_error(CS_CODE_BAD_INPUT, "%s.%s: found %g, wanted 0 or more", path, key, *out);
  return CS_OK;
}

cs_status cs_member_bool(const json_t *object, const char *path, const char *key, bool *out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_boolean(value)) return cs_member_wrong(path, key, value, "true or false");
  *out = json_is_true(value);
  return CS_OK;
}

cs_status cs_member_digits(const json_t *object, const char *path, const char *key, int base,
                           uint64_t *out) {
  const char *text = "";
  char *end;
  CS_RETURN_IF_ERROR(cs_member_text(object, path, key, &text));
  const char *alphabet = base == 16 ? "0123456789abcdef" : "0123456789";
  size_t length = strlen(text);
  errno = 0;
  *out = strtoull(text, &end, base);
  if (length == 0 || strspn(text, alphabet) != length || (base == 16 && length != 16) || errno)
    return cs_error(CS_CODE_BAD_INPUT, "%s.%s: found \"%s\", wanted %s", path, key, text,
                    base == 16 ? "16 hexadecimal digits" : "a decimal number below 2^64");
  return CS_OK;
}
