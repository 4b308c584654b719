/* Experiments in the public API: a specification's file resolved, tables and pages of records. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "report/experiment.h"
#include "runtime/experiment.h"
#include "runtime/report.h"

#define MOST_MODEL_BYTES ((size_t)1 << 32)

/* Of the models' contents, too: a changed model is another experiment. */
static cs_status hash_models(const json_t *cells, uint64_t *hash) {
  size_t i;
  json_t *cell;
  const char *last = "";
  json_array_foreach((json_t *)(uintptr_t)cells, i, cell) {
    const char *path = json_string_value(json_object_get(cell, "path"));
    char *text = NULL;
    size_t length = 0;
    if (strcmp(path, last) == 0) continue;
    last = path;
    CS_RETURN_IF_ERROR(cs_file_read(path, MOST_MODEL_BYTES, &text, &length));
    *hash = cs_hash_bytes(*hash, text, length);
    free(text);
  }
  return CS_OK;
}

static cs_status add_hash(json_t *told) {
  char *text = json_dumps(json_object_get(told, "spec"), JSON_COMPACT | JSON_SORT_KEYS), digits[20];
  if (!text) return cs_no_memory("a specification", 0);
  uint64_t hash = cs_hash_string(CS_HASH_SEED, text);
  free(text);
  CS_RETURN_IF_ERROR(hash_models(json_object_get(told, "cells"), &hash));
  snprintf(digits, sizeof digits, "%016" PRIx64, hash);
  return json_object_set_new(told, "hash", json_string(digits)) == 0 ? CS_OK
                                                                     : cs_no_memory("a hash", 0);
}

cs_status cs_experiment_json(const char *path, char **out) {
  char *text = NULL;
  size_t length = 0;
  json_t *told = NULL;
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_file_read(path, CS_EXPERIMENT_MOST_BYTES, &text, &length));
  cs_status st = cs_experiment_resolve(path, text, length, &told);
  free(text);
  if (st == CS_OK) st = add_hash(told);
  if (st != CS_OK) {
    json_decref(told);
    return st;
  }
  return cs_json_take_text(told, out);
}

cs_status cs_experiment_table(const char *path, cs_report **out) {
  cs_table table = {0};
  return cs_report_give(cs_report_experiment(path, &table), &table, out);
}

cs_status cs_experiment_page(const char *path, char **out) {
  return cs_experiment_page_of(path, out);
}
