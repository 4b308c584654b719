/* Members of the JSON that the library gives, as what a command prints of them. */
#ifndef CONVSCHED_CLI_MEMBERS_H_
#define CONVSCHED_CLI_MEMBERS_H_

#include <jansson.h>

/* 0 where there is none. */
static inline double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}
static inline long long integer(const json_t *object, const char *key) {
  return (long long)json_integer_value(json_object_get(object, key));
}
/* "" where there is none. */
static inline const char *string(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

#endif
