/* The cross product of a specification's lists, and what reads it from a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "runtime/experiment_internal.h"
#include "scheduler/member.h"

static const char *const root_keys[] = {
    "schema",       "name",    "models",  "dtypes",   "batches",          "policies",
    "title",        "samples", "seed",    "verify",   "search_seconds",   "profile",
    "memory_limit", "tables",  "exclude", "families", "workspace_limits", "streams",
    "partitions"};
#define N_NEEDED 6

static cs_status check_count(const cs_experiment_spec *spec) {
  double cells = 1;
  cs_strbuf text = {0};
  for (int a = 0; a < CS_DIMENSION_COUNT; a++) {
    size_t n = json_array_size(spec->axes[a]);
    cells *= (double)n;
    cs_strbuf_printf(&text, "%s%zu %s", a ? " × " : "", n, cs_dimension_list((cs_dimension)a));
  }
  char *product = NULL;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &product));
  cs_status st = CS_OK;
  if (cells > CS_EXPERIMENT_MOST_CELLS) {
    st = cs_error(CS_CODE_BAD_INPUT, "$: found %.0f cells (%s), wanted at most %d", cells, product,
                  CS_EXPERIMENT_MOST_CELLS);
  }
  free(product);
  return st;
}

/* ---- Models: "models/googlenet.json" is googlenet ---- */

static void model_label(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  const char *point = strrchr(base, '.');
  size_t length = point && point > base ? (size_t)(point - base) : strlen(base);
  snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), base);
}

/* [{"label", "path"}…]; two of one label could not be told apart. */
static cs_status resolve_models(const cs_experiment_spec *spec, json_t *out) {
  size_t i;
  json_t *model, *labels = json_object();
  cs_status st = labels ? CS_OK : cs_no_memory("models", 0);
  json_array_foreach(spec->axes[CS_DIMENSION_MODEL], i, model) {
    char label[256], *path = NULL;
    if (st == CS_OK) st = cs_path_beside(spec->path, json_string_value(model), &path);
    model_label(json_string_value(model), label, sizeof label);
    if (st == CS_OK && json_object_get(labels, label)) {
      st = cs_error(CS_CODE_BAD_INPUT,
                    "$.models[%zu]: found a second model called %s, wanted names of their own", i,
                    label);
    }
    if (st == CS_OK &&
        (json_object_set_new(labels, label, json_true()) != 0 ||
         json_array_append_new(out, json_pack("{s:s, s:s}", "label", label, "path", path)) != 0)) {
      st = cs_error(CS_CODE_BAD_INPUT, "$.models[%zu]: the name is no UTF-8", i);
    }
    free(path);
  }
  json_decref(labels);
  return st;
}

/* ---- Cells ---- */

static bool list_holds(json_t *list, const json_t *value) {
  size_t i;
  json_t *other;
  json_array_foreach(list, i, other) {
    if (json_equal(other, value)) return true;
  }
  return false;
}

/* Whether all that a rule names holds of the cell, its policies aside. `written`: the model as the
 * specification has it. */
static bool rule_applies(json_t *rule, const json_t *cell, const json_t *written) {
  const char *key;
  json_t *values;
  json_object_foreach(rule, key, values) {
    if (strcmp(key, "policy") == 0) continue;
    const json_t *value = strcmp(key, "model") == 0 ? written : json_object_get(cell, key);
    if (!list_holds(values, value)) return false;
  }
  return true;
}

/* What exclusions leave of the policies: an array, perhaps an empty one; NULL: no memory. */
static json_t *policies_of(const cs_experiment_spec *spec, const json_t *cell,
                           const json_t *written) {
  size_t i, r;
  json_t *policy, *rule, *left = json_array();
  json_array_foreach(spec->policies, i, policy) {
    bool excluded = false;
    json_array_foreach(spec->excluded, r, rule) {
      json_t *named = json_object_get(rule, "policy");
      excluded =
          excluded || (rule_applies(rule, cell, written) && (!named || list_holds(named, policy)));
    }
    if (!excluded && json_array_append(left, policy) != 0) {
      json_decref(left);
      return NULL;
    }
  }
  return left;
}

/* `at[]`: an index into every axis. */
static cs_status add_cell(const cs_experiment_spec *spec, json_t *models, const size_t *at,
                          json_t *cells) {
  const json_t *model = json_array_get(models, at[CS_DIMENSION_MODEL]);
  json_t *cell = json_object();
  int failed = cell == NULL;
  for (int a = 0; a < CS_DIMENSION_COUNT; a++) {
    json_t *value = a == CS_DIMENSION_MODEL ? json_object_get(model, "label")
                                            : json_array_get(spec->axes[a], at[a]);
    failed = failed || json_object_set(cell, cs_dimension_key((cs_dimension)a), value);
    if (a == CS_DIMENSION_MODEL)
      failed = failed || json_object_set(cell, "path", json_object_get(model, "path"));
  }
  const json_t *written = json_array_get(spec->axes[CS_DIMENSION_MODEL], at[CS_DIMENSION_MODEL]);
  json_t *policies = failed ? NULL : policies_of(spec, cell, written);
  bool none = policies && json_array_size(policies) == 0;
  failed = failed || !policies || json_object_set(cell, "policies", policies);
  failed = failed || (!none && json_array_append(cells, cell));
  json_decref(policies);
  json_decref(cell);
  return failed ? cs_no_memory("cells", 0) : CS_OK;
}

static cs_status make_cells(const cs_experiment_spec *spec, json_t *models, json_t *cells) {
  size_t at[CS_DIMENSION_COUNT] = {0};
  for (;;) {
    CS_RETURN_IF_ERROR(add_cell(spec, models, at, cells));
    int a = CS_DIMENSION_COUNT - 1;
    while (a >= 0 && ++at[a] == json_array_size(spec->axes[a])) at[a--] = 0;
    if (a < 0) break;
  }
  if (json_array_size(cells) > 0) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "$.exclude: nothing is left to measure");
}

/* ---- Cases: what is profiled once, models at a batch in a precision ---- */

static cs_status make_cases(const json_t *cells, json_t *cases) {
  static const char *const same[] = {"model", "dtype", "batch", "path"};
  size_t i;
  json_t *cell, *last = NULL;
  json_array_foreach((json_t *)(uintptr_t)cells, i, cell) {
    bool new_one = !last;
    for (int k = 0; k < 4 && !new_one; k++) {
      new_one = !json_equal(json_object_get(last, same[k]), json_object_get(cell, same[k]));
    }
    json_int_t bytes = json_integer_value(json_object_get(cell, "workspace_limit"));
    if (new_one) {
      last = json_object();
      int failed = json_array_append_new(cases, last);
      for (int k = 0; k < 4; k++)
        failed = failed || json_object_set(last, same[k], json_object_get(cell, same[k]));
      failed = failed || json_object_set_new(last, "workspace_limit", json_integer(bytes));
      if (failed) return cs_no_memory("cases", 0);
    } else if (bytes > json_integer_value(json_object_get(last, "workspace_limit"))) {
      json_integer_set(json_object_get(last, "workspace_limit"), bytes);
    }
  }
  return CS_OK;
}

/* ---- All of it ---- */

static cs_status resolve(cs_experiment_spec *spec, json_t *out) {
  const char *schema;
  CS_RETURN_IF_ERROR(cs_member_keys(spec->root, "$", root_keys,
                                    sizeof root_keys / sizeof *root_keys,
                                    sizeof root_keys / sizeof *root_keys - N_NEEDED));
  CS_RETURN_IF_ERROR(cs_member_text(spec->root, "$", "schema", &schema));
  if (strcmp(schema, "convsched.experiment/1") != 0) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "$.schema: found \"%.80s\", wanted \"convsched.experiment/1\"", schema);
  }
  CS_RETURN_IF_ERROR(cs_experiment_read_axes(spec));
  CS_RETURN_IF_ERROR(cs_experiment_read_settings(spec, out));
  CS_RETURN_IF_ERROR(check_count(spec));
  json_t *models = json_array(), *cells = json_array(), *cases = json_array();
  cs_status st = models && cells && cases ? CS_OK : cs_no_memory("cells", 0);
  if (st == CS_OK) st = resolve_models(spec, models);
  if (st == CS_OK) st = make_cells(spec, models, cells);
  if (st == CS_OK) st = make_cases(cells, cases);
  if (st == CS_OK &&
      (json_object_set(out, "spec", spec->root) || json_object_set(out, "cells", cells) ||
       json_object_set(out, "cases", cases))) {
    st = cs_no_memory("cells", 0);
  }
  json_decref(models);
  json_decref(cells);
  json_decref(cases);
  return st;
}

cs_status cs_experiment_resolve(const char *path, const char *text, size_t length, json_t **out) {
  json_error_t error;
  cs_experiment_spec spec = {.path = path};
  *out = NULL;
  spec.root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (!spec.root) {
    return cs_error(CS_CODE_BAD_INPUT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
  }
  json_t *told = json_object();
  cs_status st = told ? resolve(&spec, told) : cs_no_memory("an experiment", 0);
  cs_experiment_spec_free(&spec);
  if (st != CS_OK) {
    json_decref(told);
    return cs_annotate(st, "%s: ", path);
  }
  *out = told;
  return CS_OK;
}
