/* Which cells of an experiment are meant, and what they are called. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/experiment.h"
#include "cli/members.h"

static const char *const dimensions[] = {"model",           "dtype",   "batch",    "family",
                                         "workspace_limit", "streams", "partition"};
#define N_DIMENSIONS (sizeof dimensions / sizeof *dimensions)

/* "default" for null. */
static void value_text(const json_t *cell, const char *key, char *out, size_t size) {
  const json_t *value = json_object_get(cell, key);
  if (json_is_integer(value)) {
    snprintf(out, size, "%lld", integer(cell, key));
  } else {
    snprintf(out, size, "%s", json_is_string(value) ? json_string_value(value) : "default");
  }
}

cs_status experiment_cell_key(const json_t *cell, char **out) {
  cs_strbuf text = {0};
  for (size_t d = 0; d < N_DIMENSIONS; d++) {
    char value[256];
    value_text(cell, dimensions[d], value, sizeof value);
    cs_strbuf_printf(&text, "%s%s=%s", d ? " " : "", dimensions[d], value);
  }
  return cs_strbuf_take(&text, out);
}

cs_status experiment_case_key(const json_t *one, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "profile model=%s dtype=%s batch=%lld", string(one, "model"),
                   string(one, "dtype"), integer(one, "batch"));
  return cs_strbuf_take(&text, out);
}

bool experiment_same_case(const json_t *cell, const json_t *one) {
  return strcmp(string(cell, "path"), string(one, "path")) == 0 &&
         strcmp(string(cell, "dtype"), string(one, "dtype")) == 0 &&
         integer(cell, "batch") == integer(one, "batch");
}

/* ---- --only "DIMENSION=VALUE,…": all of one option, one of several ---- */

/* The end of the condition at `at`: a comma behind which another one begins (a partition's value
 * has commas, too). */
static const char *condition_end(const char *at) {
  const char *comma = strchr(at, ',');
  while (comma) {
    const char *equals = strchr(comma, '='), *next = strchr(comma + 1, ',');
    if (equals && (!next || equals < next)) return comma;
    comma = next;
  }
  return at + strlen(at);
}

static bool value_matches(const json_t *cell, const char *key, const char *wanted) {
  char found[256];
  int64_t bytes;
  value_text(cell, key, found, sizeof found);
  if (strcmp(key, "workspace_limit") == 0 && cs_parse_bytes(wanted, &bytes)) {
    return bytes == integer(cell, key);
  }
  return strcmp(found, wanted) == 0 || fnmatch(wanted, found, 0) == 0;
}

/* One condition of an item: *matches stays, or becomes false. */
static cs_status apply(const char *item, const char *at, const char *end, const json_t *cell,
                       bool *matches) {
  char text[256];
  snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
  char *equals = strchr(text, '=');
  if (equals) *equals = '\0';
  for (size_t d = 0; equals && d < N_DIMENSIONS; d++) {
    if (strcmp(dimensions[d], text) != 0) continue;
    *matches = *matches && value_matches(cell, text, equals + 1);
    return CS_OK;
  }
  return cli_error(
      CS_CODE_USAGE,
      "--only %s: found \"%s\", wanted DIMENSION=VALUE of model, dtype, batch, family, "
      "workspace_limit, streams, partition",
      item, text);
}

static cs_status item_matches(const char *item, const json_t *cell, bool *matches) {
  *matches = true;
  for (const char *at = item;;) {
    const char *end = condition_end(at);
    CS_RETURN_IF_ERROR(apply(item, at, end, cell, matches));
    if (!*end) return CS_OK;
    at = end + 1;
  }
}

cs_status experiment_choose(const cli_options *options, const json_t *cells, bool *chosen) {
  size_t n = json_array_size(cells), n_chosen = 0;
  for (size_t c = 0; c < n; c++) {
    const json_t *cell = json_array_get(cells, c);
    chosen[c] = options->only.n == 0;
    for (int i = 0; i < options->only.n; i++) {
      bool matches;
      CS_RETURN_IF_ERROR(item_matches(options->only.items[i], cell, &matches));
      chosen[c] = chosen[c] || matches;
    }
    n_chosen += chosen[c];
  }
  if (n_chosen > 0) return CS_OK;
  return cli_error(CS_CODE_USAGE, "--only %s: none of the %zu cells is like this",
                   options->only.items[0], n);
}
