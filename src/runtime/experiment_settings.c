/* What a specification says beside its lists. */
#include <string.h>

#include "runtime/experiment_internal.h"
#include "scheduler/member.h"

/* Puts a member that is checked already; what is not there has `other` (stolen). */
static cs_status put(json_t *out, const char *key, json_t *value, json_t *other) {
  int failed = value ? json_object_set(out, key, value) : json_object_set(out, key, other);
  json_decref(other);
  return failed ? cs_no_memory(key, 0) : CS_OK;
}

static cs_status put_integer(const json_t *root, json_t *out, const char *key, int64_t least,
                             int64_t most, int64_t other) {
  int64_t number = other;
  if (json_object_get(root, key)) {
    CS_RETURN_IF_ERROR(cs_member_integer(root, "$", key, least, most, &number));
  }
  return put(out, key, NULL, json_integer(number));
}

static cs_status put_seconds(const json_t *root, json_t *out) {
  const json_t *given = json_object_get(root, "search_seconds");
  double seconds = given ? json_number_value(given) : 5;
  if (given && (!json_is_number(given) || !(seconds >= 0 && seconds <= 1e6))) {
    return cs_member_wrong("$", "search_seconds", given, "seconds, 0 to 1000000");
  }
  return put(out, "search_seconds", NULL, json_real(seconds));
}

static cs_status put_memory(const json_t *root, json_t *out) {
  json_t *given = json_object_get(root, "memory_limit");
  int64_t bytes = json_integer_value(given);
  bool good = !given || (json_is_integer(given) && bytes >= 0) ||
              (json_is_string(given) && cs_parse_bytes(json_string_value(given), &bytes));
  if (!good) return cs_member_wrong("$", "memory_limit", given, "bytes, as 1048576 or \"64M\"");
  return put(out, "memory_limit", NULL, json_integer(bytes));
}

/* One of the names, ended by NULL. */
static cs_status put_name(json_t *object, const char *path, const char *key,
                          const char *const *names, const char *other, json_t *out) {
  json_t *given = json_object_get(object, key);
  const char *text = other;
  cs_strbuf wanted = {0};
  if (given) CS_RETURN_IF_ERROR(cs_member_text(object, path, key, &text));
  for (int i = 0; names[i]; i++) {
    if (text && strcmp(names[i], text) == 0) {
      cs_strbuf_free(&wanted);
      return put(out, key, NULL, json_string(text));
    }
    cs_strbuf_printf(&wanted, "%s%s", i ? (names[i + 1] ? ", " : " or ") : "", names[i]);
  }
  char *list = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&wanted, &list));
  cs_status st = cs_error(CS_CODE_BAD_INPUT, "%s.%s: found \"%s\", wanted %s", path, key,
                          text ? text : "", list);
  free(list);
  return st;
}

static cs_status put_flag(json_t *object, const char *path, const char *key, json_t *out) {
  bool flag = false;
  if (json_object_get(object, key)) CS_RETURN_IF_ERROR(cs_member_bool(object, path, key, &flag));
  return put(out, key, NULL, json_boolean(flag));
}

static cs_status put_profile(json_t *root, json_t *out) {
  static const char *const keys[] = {"corun", "counters", "full"};
  json_t *given = json_object_get(root, "profile");
  if (!given) return put(out, "profile", NULL, json_null());
  CS_RETURN_IF_ERROR(cs_member_keys(given, "$.profile", keys, 3, 3));
  json_t *profile = json_object();
  CS_RETURN_IF_ERROR(put(out, "profile", NULL, profile));
  for (int i = 0; i < 3; i++) CS_RETURN_IF_ERROR(put_flag(given, "$.profile", keys[i], profile));
  return CS_OK;
}

/* ---- Tables ---- */

static cs_status put_nodes(json_t *given, const char *path, json_t *table) {
  size_t i;
  json_t *node, *nodes = json_object_get(given, "nodes"), *list = json_array();
  CS_RETURN_IF_ERROR(put(table, "nodes", NULL, list));
  if (!nodes) return CS_OK;
  if (!json_is_array(nodes)) return cs_member_wrong(path, "nodes", nodes, "an array");
  json_array_foreach(nodes, i, node) {
    if (!json_is_string(node) || !json_string_length(node)) {
      return cs_member_wrong(path, "nodes", node, "names of nodes, * and ? allowed");
    }
    if (json_array_append(list, node) != 0) return cs_no_memory("nodes", i);
  }
  return CS_OK;
}

static cs_status put_table(json_t *given, size_t i, json_t *tables) {
  static const char *const keys[] = {"table", "candidates", "nodes", "paper"};
  static const char *const kinds[] = {"resources", "workspace", "complementary", NULL};
  static const char *const candidates[] = {"fastest", "pareto", "all", NULL};
  char path[64];
  snprintf(path, sizeof path, "$.tables[%zu]", i);
  CS_RETURN_IF_ERROR(cs_member_keys(given, path, keys, 4, 3));
  json_t *table = json_object();
  if (!table || json_array_append_new(tables, table) != 0) return cs_no_memory("tables", i);
  CS_RETURN_IF_ERROR(put_name(given, path, "table", kinds, NULL, table));
  CS_RETURN_IF_ERROR(put_name(given, path, "candidates", candidates, "fastest", table));
  CS_RETURN_IF_ERROR(put_nodes(given, path, table));
  return put_flag(given, path, "paper", table);
}

static cs_status put_tables(json_t *root, json_t *out) {
  size_t i;
  json_t *given = json_object_get(root, "tables"), *one, *tables = json_array();
  CS_RETURN_IF_ERROR(put(out, "tables", NULL, tables));
  if (!given) return CS_OK;
  if (!json_is_array(given)) return cs_member_wrong("$", "tables", given, "an array");
  json_array_foreach(given, i, one) CS_RETURN_IF_ERROR(put_table(one, i, tables));
  return CS_OK;
}

cs_status cs_experiment_read_settings(cs_experiment_spec *spec, json_t *out) {
  static const char *const verify[] = {"none", "sample", "full", NULL};
  json_t *root = spec->root, *title = json_object_get(root, "title");
  const char *name;
  CS_RETURN_IF_ERROR(cs_member_text(root, "$", "name", &name));
  if (!name[0] ||
      strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
          strlen(name)) {
    return cs_error(CS_CODE_BAD_INPUT, "$.name: found \"%.80s\", wanted letters, digits, _ and -",
                    name);
  }
  if (title && !json_is_string(title)) return cs_member_wrong("$", "title", title, "a string");
  CS_RETURN_IF_ERROR(put(out, "name", json_object_get(root, "name"), json_null()));
  CS_RETURN_IF_ERROR(put(out, "title", title, json_null()));
  CS_RETURN_IF_ERROR(put_integer(root, out, "samples", 1, 1000, 50));
  CS_RETURN_IF_ERROR(put_integer(root, out, "seed", 0, INT64_MAX, 0));
  CS_RETURN_IF_ERROR(put_seconds(root, out));
  CS_RETURN_IF_ERROR(put_memory(root, out));
  CS_RETURN_IF_ERROR(put_name(root, "$", "verify", verify, "sample", out));
  CS_RETURN_IF_ERROR(put_profile(root, out));
  CS_RETURN_IF_ERROR(put_tables(root, out));
  return put(out, "families", spec->families, json_null());
}
