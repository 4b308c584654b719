/* Reading attributes strictly, and the texts of messages about nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op_family.h"

cs_status cs_place_error(const cs_place *place, const char *key, const char *format, ...) {
  cs_strbuf text = {0};
  char small[512];
  va_list args;
  va_start(args, format);
  vsnprintf(small, sizeof small, format, args);
  va_end(args);
  cs_strbuf_printf(&text, "%s: ", place->source);
  if (place->node >= 0) cs_strbuf_printf(&text, "nodes[%d]", place->node);
  if (place->node >= 0 && key) cs_strbuf_printf(&text, ".%s", key);
  cs_strbuf_printf(&text, place->node >= 0 ? " (node \"%s\"): %s" : "node \"%s\": %s", place->name,
                   small);
  char *message = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &message));
  cs_status status = cs_error(CS_CODE_BAD_INPUT, "%s", message);
  free(message);
  return status;
}

const char *cs_shape_text(const cs_shape *shape, char text[CS_TEXT_SIZE]) {
  size_t length = 0;
  text[length++] = '[';
  for (int i = 0; i < shape->rank; i++) {
    const char *comma = i ? ", " : "";
    int n = shape->dims[i] == CS_DIM_N
                ? snprintf(text + length, CS_TEXT_SIZE - length, "%sN", comma)
                : snprintf(text + length, CS_TEXT_SIZE - length, "%s%lld", comma,
                           (long long)shape->dims[i]);
    if (n > 0) length += (size_t)n;
  }
  snprintf(text + length, CS_TEXT_SIZE - length, "]");
  return text;
}

typedef struct found_text {
  char *text;
  size_t length;
} found_text;

static int append_found(const char *buffer, size_t size, void *user) {
  found_text *found = user;
  size_t room = 80 - found->length;
  size_t taken = size < room ? size : room;
  memcpy(found->text + found->length, buffer, taken);
  found->length += taken;
  return found->length == 80 ? -1 : 0;
}

/* The beginning of the value's JSON text, cut after 80 bytes. ASCII only: other characters are
 * escaped, so a cut never splits one. */
const char *cs_json_found(const json_t *json, char text[CS_TEXT_SIZE]) {
  if (!json) return strcpy(text, "nothing");
  found_text found = {.text = text};
  int rc = json_dump_callback(json, append_found, &found, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  strcpy(text + found.length, rc == 0 ? "" : "...");
  return text;
}

static const json_t *lookup(cs_attr_reader *reader, const char *key) {
  reader->known[reader->n_known++] = key;
  return reader->object ? json_object_get(reader->object, key) : NULL;
}

static cs_status attr_error(const cs_attr_reader *reader, const char *key, const json_t *found,
                            const char *wanted) {
  char path[300], text[CS_TEXT_SIZE];
  snprintf(path, sizeof path, "attrs.%s", key);
  return cs_place_error(reader->place, path, "found %s, wanted %s", cs_json_found(found, text),
                        wanted);
}

static const char *range_text(int64_t min, int64_t max, char text[CS_TEXT_SIZE]) {
  snprintf(text, CS_TEXT_SIZE, "from %lld to %lld", (long long)min, (long long)max);
  return text;
}

static bool in_range(const json_t *json, int64_t min, int64_t max) {
  return json_is_integer(json) && json_integer_value(json) >= min &&
         json_integer_value(json) <= max;
}

cs_status cs_attr_int(cs_attr_reader *reader, const char *key, int64_t fallback, int64_t min,
                      int64_t max, int64_t *out) {
  const json_t *json = lookup(reader, key);
  *out = fallback;
  if (!json && fallback != CS_ATTR_REQUIRED) return CS_OK;
  if (!in_range(json, min, max)) {
    char range[CS_TEXT_SIZE], wanted[CS_TEXT_SIZE + 32];
    snprintf(wanted, sizeof wanted, "an integer %s", range_text(min, max, range));
    return attr_error(reader, key, json, wanted);
  }
  *out = json_integer_value(json);
  return CS_OK;
}

cs_status cs_attr_ints(cs_attr_reader *reader, const char *key, int n, int64_t fallback,
                       int64_t min, int64_t max, int64_t *out) {
  const json_t *json = lookup(reader, key);
  for (int i = 0; i < n; i++) out[i] = fallback;
  if (!json && fallback != CS_ATTR_REQUIRED) return CS_OK;
  bool good = json_is_array(json) && json_array_size(json) == (size_t)n;
  for (int i = 0; good && i < n; i++) good = in_range(json_array_get(json, (size_t)i), min, max);
  if (!good) {
    char range[CS_TEXT_SIZE], wanted[CS_TEXT_SIZE + 32];
    snprintf(wanted, sizeof wanted, "%d integers %s", n, range_text(min, max, range));
    return attr_error(reader, key, json, wanted);
  }
  for (int i = 0; i < n; i++) out[i] = json_integer_value(json_array_get(json, (size_t)i));
  return CS_OK;
}

/* A list of `least` to `most` integers; nothing given leaves *n at 0. */
static cs_status list_of(cs_attr_reader *reader, const char *key, int least, int most, int64_t min,
                         int64_t max, int64_t *out, int *n) {
  const json_t *json = lookup(reader, key);
  *n = 0;
  if (!json) return CS_OK;
  size_t size = json_array_size(json);
  bool good = size >= (size_t)least && size <= (size_t)most;
  for (size_t i = 0; good && i < size; i++) {
    good = in_range(json_array_get(json, i), min, max);
    if (good) out[i] = json_integer_value(json_array_get(json, i));
  }
  if (!good) {
    char range[CS_TEXT_SIZE], wanted[CS_TEXT_SIZE + 64];
    snprintf(wanted, sizeof wanted, "a list of %d to %d integers %s", least, most,
             range_text(min, max, range));
    return attr_error(reader, key, json, wanted);
  }
  *n = (int)size;
  return CS_OK;
}

cs_status cs_attr_list(cs_attr_reader *reader, const char *key, int64_t min, int64_t max,
                       int64_t out[CS_MAX_RANK], int *n) {
  return list_of(reader, key, 1, CS_MAX_RANK, min, max, out, n);
}

cs_status cs_attr_pairs(cs_attr_reader *reader, const char *key, int64_t min, int64_t max,
                        int64_t out[2 * CS_MAX_RANK], int *n) {
  return list_of(reader, key, 2, 2 * CS_MAX_RANK, min, max, out, n);
}

cs_status cs_attr_shape(cs_attr_reader *reader, const char *key, cs_shape *out) {
  *out = (cs_shape){0};
  return cs_attr_list(reader, key, 1, CS_MAX_EXTENT, out->dims, &out->rank);
}

static bool is_batch(const json_t *json) {
  return json_is_string(json) && strcmp(json_string_value(json), "N") == 0;
}

cs_status cs_attr_batch_shape(cs_attr_reader *reader, const char *key, cs_shape *out) {
  const json_t *json = reader->object ? json_object_get(reader->object, key) : NULL;
  *out = (cs_shape){0};
  if (!is_batch(json_array_get(json, 0))) return cs_attr_shape(reader, key, out);
  (void)lookup(reader, key);
  size_t size = json_array_size(json);
  bool good = size <= CS_MAX_RANK;
  for (size_t i = 1; good && i < size; i++)
    good = in_range(json_array_get(json, i), 1, CS_MAX_EXTENT);
  if (!good)
    return attr_error(reader, key, json, "1 to 8 extents, of which the first may be \"N\"");
  out->rank = (int)size;
  out->dims[0] = CS_DIM_N;
  for (size_t i = 1; i < size; i++) out->dims[i] = json_integer_value(json_array_get(json, i));
  return CS_OK;
}

cs_status cs_attr_choice(cs_attr_reader *reader, const char *key, const char *const *names, int n,
                         int fallback, int *out) {
  const json_t *json = lookup(reader, key);
  char wanted[CS_TEXT_SIZE];
  size_t length = 0;
  *out = fallback;
  if (!json) return CS_OK;
  for (int i = 0; i < n; i++) {
    if (json_is_string(json) && strcmp(json_string_value(json), names[i]) == 0) {
      *out = i;
      return CS_OK;
    }
    int wrote = snprintf(wanted + length, sizeof wanted - length, "%s\"%s\"", i ? ", " : "one of ",
                         names[i]);
    length = (size_t)cs_min_i64((int64_t)length + wrote, (int64_t)sizeof wanted - 1);
  }
  return attr_error(reader, key, json, wanted);
}

cs_status cs_attr_bool(cs_attr_reader *reader, const char *key, bool fallback, bool *out) {
  const json_t *json = lookup(reader, key);
  *out = fallback;
  if (!json) return CS_OK;
  if (!json_is_boolean(json)) return attr_error(reader, key, json, "true or false");
  *out = json_is_true(json);
  return CS_OK;
}

cs_status cs_attr_double(cs_attr_reader *reader, const char *key, double fallback, double *out) {
  const json_t *json = lookup(reader, key);
  *out = fallback;
  if (!json) return CS_OK;
  if (!json_is_number(json)) return attr_error(reader, key, json, "a number");
  *out = json_number_value(json);
  return CS_OK;
}

cs_status cs_attr_doubles(cs_attr_reader *reader, const char *key, int n, double fallback,
                          double *out) {
  const json_t *json = lookup(reader, key);
  for (int i = 0; i < n; i++) out[i] = fallback;
  if (!json) return CS_OK;
  bool good = json_is_array(json) && json_array_size(json) == (size_t)n;
  for (int i = 0; good && i < n; i++) good = json_is_number(json_array_get(json, (size_t)i));
  if (!good) {
    char wanted[CS_TEXT_SIZE];
    snprintf(wanted, sizeof wanted, "%d numbers", n);
    return attr_error(reader, key, json, wanted);
  }
  for (int i = 0; i < n; i++) out[i] = json_number_value(json_array_get(json, (size_t)i));
  return CS_OK;
}

cs_status cs_attr_finish(cs_attr_reader *reader) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)reader->object, key, value) {
    bool known = false;
    for (int i = 0; i < reader->n_known && !known; i++) {
      known = strcmp(reader->known[i], key) == 0;
    }
    if (known) continue;
    cs_strbuf wanted = {0};
    for (int i = 0; i < reader->n_known; i++) {
      cs_strbuf_printf(&wanted, "%s%s", i ? ", " : "one of ", reader->known[i]);
    }
    char *text = NULL;
    CS_RETURN_IF_ERROR(cs_strbuf_take(&wanted, &text));
    cs_status status =
        cs_place_error(reader->place, "attrs", "found unknown key \"%.80s\", wanted %s", key,
                       *text ? text : "none (the operator has no attributes)");
    free(text);
    return status;
  }
  return CS_OK;
}

json_t *cs_attr_save_ints(const int64_t *values, int n) {
  json_t *array = json_array();
  for (int i = 0; array && i < n; i++) {
    if (json_array_append_new(array, json_integer(values[i])) != 0) {
      json_decref(array);
      return NULL;
    }
  }
  return array;
}

json_t *cs_attr_save_doubles(const double *values, int n) {
  json_t *array = json_array();
  for (int i = 0; array && i < n; i++) {
    if (json_array_append_new(array, json_real(values[i])) != 0) {
      json_decref(array);
      return NULL;
    }
  }
  return array;
}

json_t *cs_attr_save_shape(const cs_shape *shape) {
  json_t *array = json_array();
  for (int i = 0; array && i < shape->rank; i++) {
    json_t *extent = shape->dims[i] == CS_DIM_N ? json_string("N") : json_integer(shape->dims[i]);
    if (json_array_append_new(array, extent) != 0) {
      json_decref(array);
      return NULL;
    }
  }
  return array;
}
