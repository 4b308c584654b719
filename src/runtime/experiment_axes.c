/* The lists of a specification, and what is excluded of their cross product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/experiment_internal.h"
#include "scheduler/member.h"

#define MOST_VALUES 1000 /* of one list */
#define MOST_PATTERNS 64 /* of one family */

/* A value in the form that cells have it in; NULL where it is not one. */
typedef json_t *(*normal_fn)(const cs_experiment_spec *spec, json_t *value);

typedef struct axis_kind {
  const char *list, *key;
  normal_fn normal;
  const char *wanted;
  const char *missing; /* the list where it is not given, JSON; NULL: it must be */
  size_t most;         /* values; 0: MOST_VALUES */
} axis_kind;

static json_t *normal_text(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  const char *text = json_string_value(value);
  return text && text[0] ? json_incref(value) : NULL;
}

static json_t *normal_dtype(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  cs_precision precision;
  if (!json_is_string(value)) return NULL;
  cs_status st = cs_precision_parse(json_string_value(value), &precision);
  if (st == CS_OK) return json_incref(value);
  cs_status_free(st);
  return NULL;
}

static json_t *normal_batch(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  return json_is_integer(value) && json_integer_value(value) >= 1 ? json_incref(value) : NULL;
}

static json_t *normal_bytes(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  int64_t bytes;
  if (json_is_integer(value) && json_integer_value(value) >= 0) return json_incref(value);
  if (!json_is_string(value) || !cs_parse_bytes(json_string_value(value), &bytes)) return NULL;
  return json_integer(bytes);
}

static json_t *normal_family(const cs_experiment_spec *spec, json_t *value) {
  const char *name = json_string_value(value);
  return name && json_object_get(spec->families, name) ? json_incref(value) : NULL;
}

static json_t *normal_streams(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  json_int_t n = json_integer_value(value);
  bool good = json_is_null(value) || (json_is_integer(value) && n >= 1 && n <= 1024);
  return good ? json_incref(value) : NULL;
}

/* "none", or parts as "32,100"; what the device can have is found out by a cell. */
static json_t *normal_partition(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  const char *text = json_string_value(value);
  if (json_is_null(value) || (text && strcmp(text, "none") == 0)) return json_incref(value);
  bool comma = false;
  for (const char *at = text; at && *at >= '1' && *at <= '9';) {
    at += strspn(at, "0123456789");
    if (*at == '\0') return comma ? json_incref(value) : NULL;
    if (*at++ != ',') return NULL;
    comma = true;
  }
  return NULL;
}

static json_t *normal_policy(const cs_experiment_spec *spec, json_t *value) {
  (void)spec;
  int count;
  const char *const *names = cs_policy_names(&count), *name = json_string_value(value);
  for (int i = 0; name && i < count; i++) {
    if (strcmp(names[i], name) == 0) return json_incref(value);
  }
  return NULL;
}

static const axis_kind kinds[CS_DIMENSION_COUNT + 1] = {
    [CS_DIMENSION_MODEL] = {"models", "model", normal_text, "the name of a model's file", NULL, 0},
    [CS_DIMENSION_DTYPE] = {"dtypes", "dtype", normal_dtype, "f32, tf32, f16 or bf16", NULL, 0},
    [CS_DIMENSION_BATCH] = {"batches", "batch", normal_batch, "an integer from 1 on", NULL, 0},
    [CS_DIMENSION_FAMILY] = {"families", "family", normal_family, "the name of a family", NULL, 0},
    [CS_DIMENSION_WORKSPACE] = {"workspace_limits", "workspace_limit", normal_bytes,
                                "bytes, as 1048576 or \"64M\"", "[\"256M\"]", 0},
    [CS_DIMENSION_STREAMS] = {"streams", "streams", normal_streams,
                              "null (the device's default) or 1 to 1024", "[null]", 0},
    [CS_DIMENSION_PARTITION] = {"partitions", "partition", normal_partition,
                                "null, \"none\" or SMs, as \"32,100\"", "[null]", 0},
    [CS_DIMENSION_COUNT] = {"policies", "policy", normal_policy,
                            "sequential, streams, opara, ios or coselect", NULL, 0},
};

const char *cs_dimension_list(cs_dimension axis) {
  return kinds[axis].list;
}

const char *cs_dimension_key(cs_dimension axis) {
  return kinds[axis].key;
}

void cs_experiment_spec_free(cs_experiment_spec *spec) {
  for (int a = 0; a < CS_DIMENSION_COUNT; a++) json_decref(spec->axes[a]);
  json_decref(spec->policies);
  json_decref(spec->families);
  json_decref(spec->excluded);
  json_decref(spec->root);
  memset(spec, 0, sizeof *spec);
}

/* ---- Lists ---- */

static cs_status wrong_value(const char *list, size_t i, const json_t *value, const char *wanted) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  cs_status st = cs_error(CS_CODE_BAD_INPUT, "%s[%zu]: found %.80s, wanted %s", list, i,
                          text ? text : "?", wanted);
  free(text);
  return st;
}

static bool holds(const json_t *list, const json_t *value) {
  size_t i;
  json_t *other;
  json_array_foreach((json_t *)(uintptr_t)list, i, other) {
    if (json_equal(other, value)) return true;
  }
  return false;
}

/* An array of 1 to MOST_VALUES, none twice, all in normal form. */
static cs_status read_list(const cs_experiment_spec *spec, const axis_kind *kind, const char *path,
                           json_t *list, json_t **out) {
  size_t i, n = json_array_size(list), most = kind->most ? kind->most : MOST_VALUES;
  json_t *value, *values = json_array();
  cs_status st = CS_OK;
  *out = values;
  if (!values) return cs_no_memory("a list", 0);
  if (!json_is_array(list)) return cs_member_wrong(path, "", list, "an array");
  if (n < 1 || n > most) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found %zu values, wanted 1 to %zu", path, n, most);
  }
  json_array_foreach(list, i, value) {
    json_t *normal = kind->normal(spec, value);
    if (!normal) return wrong_value(path, i, value, kind->wanted);
    if (holds(values, normal)) st = wrong_value(path, i, value, "a value that is not there twice");
    if (json_array_append_new(values, normal) != 0 && st == CS_OK) st = cs_no_memory("a list", n);
    CS_RETURN_IF_ERROR(st);
  }
  return CS_OK;
}

static cs_status read_axis(cs_experiment_spec *spec, const axis_kind *kind, json_t **out) {
  json_t *given = json_object_get(spec->root, kind->list);
  json_t *list = given           ? json_incref(given)
                 : kind->missing ? json_loads(kind->missing, 0, NULL)
                                 : NULL;
  char path[64];
  snprintf(path, sizeof path, "$.%s", kind->list);
  cs_status st = read_list(spec, kind, path, list, out);
  json_decref(list);
  return st;
}

/* ---- Families: which candidates convolutions may have ---- */

static cs_status read_patterns(json_t *family, const char *path, const char *key, json_t *out) {
  static const axis_kind kind = {
      NULL, NULL, normal_text, "a candidate's id, * and ? allowed", NULL, MOST_PATTERNS};
  json_t *patterns = NULL, *given = json_object_get(family, key);
  char place[96];
  if (!given)
    return json_object_set_new(out, key, json_array()) == 0 ? CS_OK : cs_no_memory(key, 0);
  snprintf(place, sizeof place, "%s.%s", path, key);
  cs_status st = read_list(NULL, &kind, place, given, &patterns);
  if (st == CS_OK && json_object_set(out, key, patterns) != 0) st = cs_no_memory(key, 0);
  json_decref(patterns);
  return st;
}

static cs_status read_family(cs_experiment_spec *spec, size_t i, json_t *family, json_t *names) {
  static const char *const keys[] = {"name", "allow", "ban"};
  const char *name;
  char path[64];
  snprintf(path, sizeof path, "$.families[%zu]", i);
  CS_RETURN_IF_ERROR(cs_member_keys(family, path, keys, 3, 2));
  CS_RETURN_IF_ERROR(cs_member_text(family, path, "name", &name));
  if (!name[0] || json_object_get(spec->families, name)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s.name: found \"%s\", wanted a name of its own", path,
                    name);
  }
  json_t *told = json_object();
  if (!told || json_object_set_new(spec->families, name, told) != 0 ||
      json_array_append_new(names, json_string(name)) != 0) {
    return cs_no_memory("families", 0);
  }
  CS_RETURN_IF_ERROR(read_patterns(family, path, "allow", told));
  return read_patterns(family, path, "ban", told);
}

static cs_status read_families(cs_experiment_spec *spec) {
  size_t i;
  json_t *family, *list = json_object_get(spec->root, "families");
  json_t *names = spec->axes[CS_DIMENSION_FAMILY] = json_array();
  spec->families = json_object();
  if (!names || !spec->families) return cs_no_memory("families", 0);
  if (!list) {
    bool good =
        json_array_append_new(names, json_string("all")) == 0 &&
        json_object_set_new(spec->families, "all", json_pack("{s:[], s:[]}", "allow", "ban")) == 0;
    return good ? CS_OK : cs_no_memory("families", 0);
  }
  if (!json_is_array(list)) return cs_member_wrong("$", "families", list, "an array");
  if (json_array_size(list) < 1 || json_array_size(list) > MOST_VALUES) {
    return cs_error(CS_CODE_BAD_INPUT, "$.families: found %zu values, wanted 1 to %d",
                    json_array_size(list), MOST_VALUES);
  }
  json_array_foreach(list, i, family) CS_RETURN_IF_ERROR(read_family(spec, i, family, names));
  return CS_OK;
}

/* ---- Exclusions ---- */

static const axis_kind *kind_of_list(const char *list) {
  for (int a = 0; a <= CS_DIMENSION_COUNT; a++) {
    if (strcmp(kinds[a].list, list) == 0) return &kinds[a];
  }
  return NULL;
}

static cs_status read_rule(cs_experiment_spec *spec, size_t i, json_t *rule) {
  const char *list;
  json_t *values, *read = json_object();
  char path[128];
  if (!read || json_array_append_new(spec->excluded, read) != 0) return cs_no_memory("exclude", 0);
  snprintf(path, sizeof path, "$.exclude[%zu]", i);
  if (!json_is_object(rule) || json_object_size(rule) == 0) {
    return cs_member_wrong(path, "", rule, "an object with a list at least");
  }
  json_object_foreach(rule, list, values) {
    const axis_kind *kind = kind_of_list(list);
    json_t *normal = NULL;
    if (!kind) return cs_error(CS_CODE_BAD_INPUT, "%s: unknown key \"%s\"", path, list);
    snprintf(path, sizeof path, "$.exclude[%zu].%s", i, list);
    cs_status st = read_list(spec, kind, path, values, &normal);
    if (st == CS_OK && json_object_set(read, kind->key, normal) != 0)
      st = cs_no_memory("exclude", 0);
    json_decref(normal);
    CS_RETURN_IF_ERROR(st);
  }
  return CS_OK;
}

static cs_status read_rules(cs_experiment_spec *spec) {
  size_t i;
  json_t *rule, *rules = json_object_get(spec->root, "exclude");
  spec->excluded = json_array();
  if (!spec->excluded) return cs_no_memory("exclude", 0);
  if (rules && !json_is_array(rules)) return cs_member_wrong("$", "exclude", rules, "an array");
  json_array_foreach(rules, i, rule) CS_RETURN_IF_ERROR(read_rule(spec, i, rule));
  return CS_OK;
}

cs_status cs_experiment_read_axes(cs_experiment_spec *spec) {
  CS_RETURN_IF_ERROR(read_families(spec));
  for (int a = 0; a < CS_DIMENSION_COUNT; a++) {
    if (a == CS_DIMENSION_FAMILY) continue;
    CS_RETURN_IF_ERROR(read_axis(spec, &kinds[a], &spec->axes[a]));
  }
  CS_RETURN_IF_ERROR(read_axis(spec, &kinds[CS_DIMENSION_COUNT], &spec->policies));
  return read_rules(spec);
}
