#include "base/json_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static cs_status read_line(const char *path, size_t number, const char *line, size_t length,
                           json_t *out) {
  json_error_t error;
  if (strspn(line, " \t\r") >= length) return CS_OK;
  json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
  if (!object) return cs_error(CS_CODE_BAD_INPUT, "%s:%zu: %s", path, number, error.text);
  if (!json_is_object(object)) {
    json_decref(object);
    return cs_error(CS_CODE_BAD_INPUT, "%s:%zu: wanted an object", path, number);
  }
  return json_array_append_new(out, object) == 0 ? CS_OK : cs_no_memory("JSON lines", length);
}

cs_status cs_json_lines_read(const char *path, size_t limit, json_t *out, size_t *whole,
                             bool *torn) {
  char *text = NULL, *end;
  size_t length = 0, at = 0, number = 0;
  cs_status st = cs_file_read(path, limit, &text, &length);
  while (st == CS_OK && at < length && (end = memchr(text + at, '\n', length - at))) {
    size_t line = (size_t)(end - text) - at;
    st = read_line(path, ++number, text + at, line, out);
    at += line + 1;
  }
  free(text);
  *whole = at;
  *torn = st == CS_OK && at < length;
  return st;
}
