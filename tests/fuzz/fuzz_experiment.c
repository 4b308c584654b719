/* The reader of experiments' specifications: of what it accepts every cell is told in full, within
 * the limit, and none twice. */
#include "fuzz/fuzz.h"
#include "fuzz/json_mutate.h"
#include "runtime/experiment.h"

static void check_cell(const json_t *cell, json_t *seen) {
  json_t *place = json_array();
  for (int d = 0; d < CS_DIMENSION_COUNT; d++) {
    const char *key = cs_dimension_key((cs_dimension)d);
    json_t *value = json_object_get(cell, key);
    FUZZ_CHECK(value, "a cell without %s", key);
    json_array_append(place, value);
  }
  FUZZ_CHECK(json_array_size(json_object_get(cell, "policies")) > 0, "a cell without policies");
  char *text = json_dumps(place, JSON_COMPACT);
  FUZZ_CHECK(text && !json_object_get(seen, text), "twice: %s", text ? text : "");
  json_object_set_new(seen, text, json_true());
  free(text);
  json_decref(place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *told = NULL, *cell;
  size_t i;
  cs_status st = cs_experiment_resolve("folder/spec.json", (const char *)data, size, &told);
  if (!fuzz_taken(st, CS_CODE_BAD_INPUT)) return 0;
  json_t *cells = json_object_get(told, "cells"), *seen = json_object();
  size_t n = json_array_size(cells), n_cases = json_array_size(json_object_get(told, "cases"));
  FUZZ_CHECK(n > 0 && n <= CS_EXPERIMENT_MOST_CELLS, "%zu cells", n);
  FUZZ_CHECK(n_cases > 0 && n_cases <= n, "%zu cases of %zu cells", n_cases, n);
  json_array_foreach(cells, i, cell) check_cell(cell, seen);
  json_decref(seen);
  json_decref(told);
  return 0;
}

#ifdef CS_FUZZ
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fuzz_mutate_json(data, size, max_size, 0, seed);
}
#endif
