#include "report/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_lines.h"

#define MOST_BYTES ((size_t)1 << 31)
#define CONFIDENCE 0.95

const char *const cs_experiment_dimensions[] = {"model",           "dtype",   "batch",     "family",
                                                "workspace_limit", "streams", "partition", NULL};

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

void cs_experiment_value_text(const json_t *cell, const char *dimension, char out[256]) {
  const json_t *value = json_object_get(cell, dimension);
  double number = json_number_value(value);
  if (json_is_string(value)) {
    snprintf(out, 256, "%s", json_string_value(value));
  } else if (!json_is_number(value)) {
    snprintf(out, 256, "default");
  } else if (strcmp(dimension, "workspace_limit") == 0 && number < 1024) {
    snprintf(out, 256, "%.0f B", number);
  } else if (strcmp(dimension, "workspace_limit") == 0 && number >= 1073741824) {
    snprintf(out, 256, "%.6g GiB", number / 1073741824);
  } else if (strcmp(dimension, "workspace_limit") == 0 && number >= 1048576) {
    snprintf(out, 256, "%.6g MiB", number / 1048576);
  } else if (strcmp(dimension, "workspace_limit") == 0) {
    snprintf(out, 256, "%.6g KiB", number / 1024);
  } else {
    snprintf(out, 256, "%.0f", number);
  }
}

size_t cs_experiment_count(const cs_experiment_records *records, const char *dimension) {
  return json_array_size(json_object_get(records->values, dimension));
}

void cs_experiment_cell_text(const cs_experiment_records *records, const json_t *cell,
                             const char *but, const char *nor, cs_strbuf *out) {
  const char *before = "";
  for (int d = 0; cs_experiment_dimensions[d]; d++) {
    const char *key = cs_experiment_dimensions[d];
    char value[256];
    if ((but && strcmp(but, key) == 0) || (nor && strcmp(nor, key) == 0)) continue;
    if (d >= 3 && cs_experiment_count(records, key) < 2) continue;
    cs_experiment_value_text(cell, key, value);
    if (d < 2) {
      cs_strbuf_printf(out, "%s%s", before, value);
    } else {
      bool limit = strcmp(key, "workspace_limit") == 0;
      cs_strbuf_printf(out, "%s%s %s", d == 2 ? " " : ", ", limit ? "workspace limit" : key, value);
    }
    before = " ";
  }
}

static cs_status find_values(cs_experiment_records *records) {
  json_t *line, *value;
  size_t c, v;
  records->values = json_object();
  for (int d = 0; cs_experiment_dimensions[d]; d++) {
    json_t *values = json_array();
    int failed = json_object_set_new(records->values, cs_experiment_dimensions[d], values);
    json_array_foreach(records->cells, c, line) {
      json_t *found = json_object_get(json_object_get(line, "cell"), cs_experiment_dimensions[d]);
      bool known = false;
      json_array_foreach(values, v, value) known = known || json_equal(value, found);
      failed = failed || (!known && json_array_append(values, found));
    }
    if (failed) return cs_no_memory("an experiment's values", 0);
  }
  return CS_OK;
}

/* ---- Lines ---- */

static cs_status wrong(const cs_experiment_records *records, size_t line, const char *what,
                       const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT, "%s: record %zu: %s: wanted %s", records->path, line + 1, what,
                  wanted);
}

/* Every coordinate is there, and of its kind. */
static cs_status check_cell(const cs_experiment_records *records, size_t line, const json_t *cell) {
  for (int d = 0; cs_experiment_dimensions[d]; d++) {
    const char *key = cs_experiment_dimensions[d];
    const json_t *value = json_object_get(cell, key);
    bool whole = strcmp(key, "batch") == 0 || strcmp(key, "workspace_limit") == 0;
    bool optional = strcmp(key, "streams") == 0 || strcmp(key, "partition") == 0;
    bool integer = whole || strcmp(key, "streams") == 0;
    bool good =
        integer ? json_is_integer(value) && json_integer_value(value) >= 0 : json_is_string(value);
    if (!good && !(optional && json_is_null(value)))
      return wrong(records, line, key, "a coordinate");
  }
  return CS_OK;
}

/* Takes the place of an earlier record of the same key. */
static cs_status keep_last(json_t *list, json_t *line, json_t *index) {
  const char *key = text_of(line, "key");
  const json_t *before = json_object_get(index, key);
  int failed =
      before ? json_array_set(list, (size_t)json_integer_value(before), line)
             : json_object_set_new(index, key, json_integer((json_int_t)json_array_size(list))) ||
                   json_array_append(list, line);
  return failed ? cs_no_memory("records", 0) : CS_OK;
}

static cs_status sort_lines(cs_experiment_records *records, json_t *index) {
  size_t i;
  json_t *line;
  json_array_foreach(records->lines, i, line) {
    const char *schema = text_of(line, "schema");
    if (i == 0) {
      if (strcmp(schema, "convsched.experiment-head/1") != 0) {
        return wrong(records, i, "schema", "convsched.experiment-head/1");
      }
      records->head = line;
      continue;
    }
    bool cell = strcmp(schema, "convsched.experiment-cell/1") == 0;
    if (!cell && strcmp(schema, "convsched.experiment-profile/1") != 0) {
      return wrong(records, i, "schema", "convsched.experiment-cell/1 or -profile/1");
    }
    if (!text_of(line, "key")[0]) return wrong(records, i, "key", "a text");
    if (!text_of(line, "outcome")[0]) return wrong(records, i, "outcome", "a text");
    if (cell) CS_RETURN_IF_ERROR(check_cell(records, i, json_object_get(line, "cell")));
    CS_RETURN_IF_ERROR(keep_last(cell ? records->cells : records->cases, line, index));
  }
  return records->head ? CS_OK : wrong(records, 0, "schema", "convsched.experiment-head/1");
}

/* ---- Trials ---- */

static cs_status read_latency(const cs_experiment_records *records, size_t line, cs_trial *trial) {
  const json_t *latency = json_object_get(trial->told, "latency_us");
  const json_t *list = json_object_get(latency, "samples");
  size_t n = json_array_size(list);
  if (json_is_true(json_object_get(trial->told, "predicted"))) {
    trial->us = trial->low = trial->high =
        json_number_value(json_object_get(trial->told, "predicted_us"));
    return trial->us > 0 ? CS_OK : wrong(records, line, "predicted_us", "a time");
  }
  trial->us = trial->low = trial->high = json_number_value(json_object_get(latency, "median"));
  if (!(trial->us > 0)) return wrong(records, line, "latency_us", "a median above 0");
  trial->samples = n > 1000 ? 1000 : (int)n;
  if (n == 0) return CS_OK;
  double *samples = cs_calloc(n, sizeof *samples);
  if (!samples) return cs_no_memory("samples", n);
  for (size_t i = 0; i < n; i++) samples[i] = json_number_value(json_array_get(list, i));
  cs_median_interval interval;
  cs_status st = cs_median_interval_of(samples, trial->samples, CONFIDENCE, &interval);
  free(samples);
  trial->low = interval.low;
  trial->high = interval.high;
  return st;
}

static cs_status add_trial(cs_experiment_records *records, const cs_trial *trial) {
  CS_RETURN_IF_ERROR(cs_grow(&records->trials, &records->capacity, records->n + 1, sizeof *trial));
  records->trials[records->n++] = *trial;
  return CS_OK;
}

static cs_status read_cell(cs_experiment_records *records, size_t c, const json_t *line) {
  size_t i, first = records->n;
  json_t *policy;
  cs_trial of = {.cell = json_object_get(line, "cell"),
                 .outcome = text_of(line, "outcome"),
                 .reason = json_string_value(json_object_get(line, "reason")),
                 .us = NAN,
                 .low = NAN,
                 .high = NAN,
                 .gain = NAN,
                 .gain_low = NAN,
                 .gain_high = NAN};
  const json_t *policies = json_object_get(json_object_get(line, "run"), "policies");
  records->n_cells++;
  records->n_wrong += strcmp(of.outcome, "wrong") == 0;
  if (strcmp(of.outcome, "failed") == 0) {
    records->n_failed++;
    return add_trial(records, &of);
  }
  if (json_array_size(policies) == 0) return wrong(records, c, "run", "policies");
  json_array_foreach((json_t *)(uintptr_t)policies, i, policy) {
    cs_trial trial = of;
    trial.told = policy;
    trial.policy = json_string_value(json_object_get(policy, "name"));
    if (!trial.policy) return wrong(records, c, "name", "a text");
    CS_RETURN_IF_ERROR(read_latency(records, c, &trial));
    CS_RETURN_IF_ERROR(add_trial(records, &trial));
  }
  const cs_trial base = records->trials[first]; /* sequential comes first */
  for (size_t t = first; t < records->n; t++) {
    cs_trial *trial = &records->trials[t];
    trial->gain = base.us / trial->us;
    trial->gain_low = t == first ? 1 : base.low / trial->high;
    trial->gain_high = t == first ? 1 : base.high / trial->low;
  }
  return CS_OK;
}

static cs_status read_all(cs_experiment_records *out, json_t *index) {
  size_t whole = 0, i;
  json_t *cell;
  CS_RETURN_IF_ERROR(cs_json_lines_read(out->path, MOST_BYTES, out->lines, &whole, &out->torn));
  CS_RETURN_IF_ERROR(sort_lines(out, index));
  json_array_foreach(out->cells, i, cell) CS_RETURN_IF_ERROR(read_cell(out, i, cell));
  return find_values(out);
}

cs_status cs_experiment_records_read(const char *path, cs_experiment_records *out) {
  json_t *index = json_object();
  *out = (cs_experiment_records){
      .path = path, .lines = json_array(), .cells = json_array(), .cases = json_array()};
  cs_status st = index && out->lines && out->cells && out->cases ? read_all(out, index)
                                                                 : cs_no_memory("records", 0);
  json_decref(index);
  return st;
}

void cs_experiment_records_free(cs_experiment_records *records) {
  free(records->trials);
  json_decref(records->cells);
  json_decref(records->cases);
  json_decref(records->values);
  json_decref(records->lines);
  *records = (cs_experiment_records){0};
}
