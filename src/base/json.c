#include "base/json.h"

#include <stdlib.h>
#include <string.h>

cs_status cs_json_take_text(json_t *json, char **out) {
  char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(json);
  if (!text) return cs_no_memory("JSON text", 0);
  *out = text;
  return CS_OK;
}

/* Bytes of the UTF-8 character at `at`; 0: it is none. */
static size_t character_bytes(const char *at) {
  for (size_t n = 1; n <= 4 && memchr(at, '\0', n) == NULL; n++) {
    json_t *one = json_stringn(at, n);
    json_decref(one);
    if (one) return n;
  }
  return 0;
}

void cs_make_utf8(char *text) {
  for (char *at = text; *at;) {
    size_t n = character_bytes(at);
    if (n == 0) *at = '?';
    at += n > 0 ? n : 1;
  }
}

json_t *cs_json_text(const char *text) {
  json_t *json = json_string(text);
  if (json) return json;
  char *copy = cs_strdup(text);
  if (copy) cs_make_utf8(copy);
  json = copy ? json_string(copy) : NULL;
  free(copy);
  return json;
}
