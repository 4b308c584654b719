/* Reading `convsched.bench/1`, and what follows from several records together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/bench.h"

static cs_status wrong(const cs_bench_records *records, const char *what, const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT, "%s: record %zu: %s: wanted %s", records->name,
                  json_array_size(records->list), what, wanted);
}

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- Rows ---- */

static cs_status add_row(cs_bench_records *records, const json_t *record, const json_t *told,
                         const char *rung) {
  const json_t *device = json_object_get(record, "device");
  double us = number_of(told, "warm_us"), flops = number_of(record, "flops") / us * 1e6;
  cs_bench_row row = {.record = record,
                      .bench = text_of(record, "bench"),
                      .which = text_of(record, "case"),
                      .device = text_of(device, "spec"),
                      .backend = text_of(device, "backend"),
                      .dtype = text_of(record, "dtype"),
                      .rung = rung,
                      .id = text_of(told, "id"),
                      .skipped = text_of(told, "skipped"),
                      .at = number_of(record, "at"),
                      .batch = number_of(record, "batch"),
                      .us = us,
                      .cold_us = number_of(told, "cold_us"),
                      .flops = flops,
                      .of_peak = flops / number_of(record, "peak_flops"),
                      .of_roofline = NAN,
                      .against_own = NAN,
                      .against_cpu = NAN,
                      .samples = number_of(told, "samples"),
                      .best = strcmp(rung, CS_BENCH_BEST) == 0};
  if (!rung[0]) return wrong(records, "rungs", "one with a name");
  bool known = us > 0 && isfinite(flops) && isfinite(row.of_peak);
  if (row.skipped ? row.id != NULL : !row.id || !known)
    return wrong(records, rung, "id and times, or why it was skipped");
  CS_RETURN_IF_ERROR(
      cs_grow(&records->rows, &records->capacity, records->n + 1, sizeof *records->rows));
  records->rows[records->n++] = row;
  return CS_OK;
}

static cs_status check_record(const cs_bench_records *records, const json_t *record) {
  static const char *const texts[] = {"bench", "case", "dtype", "commit", "started"};
  static const char *const numbers[] = {"at", "flops", "bytes", "peak_flops", "peak_bandwidth"};
  const char *schema = text_of(record, "schema");
  if (!schema || strcmp(schema, "convsched.bench/1") != 0)
    return wrong(records, "schema", "convsched.bench/1");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!text_of(record, texts[i])) return wrong(records, texts[i], "a text");
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!(number_of(record, numbers[i]) > 0)) return wrong(records, numbers[i], "a number above 0");
  const json_t *batch = json_object_get(record, "batch");
  if (batch && !json_is_null(batch) && !(json_is_integer(batch) && json_integer_value(batch) >= 1))
    return wrong(records, "batch", "a whole number from 1 on, or null");
  const json_t *device = json_object_get(record, "device");
  if (!text_of(device, "spec") || !text_of(device, "backend") || !text_of(device, "name"))
    return wrong(records, "device", "spec, backend and name");
  return json_is_array(json_object_get(record, "rungs")) ? CS_OK
                                                         : wrong(records, "rungs", "a list");
}

/* Of two records of a case, each other's times would be compared, and both counted. */
static cs_status check_news(const cs_bench_records *records, const json_t *record) {
  const char *bench = text_of(record, "bench"), *which = text_of(record, "case");
  const char *dtype = text_of(record, "dtype");
  const char *device = text_of(json_object_get(record, "device"), "spec");
  double batch = number_of(record, "batch");
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    bool same_batch = isnan(batch) ? isnan(row->batch) : row->batch == batch;
    if (same_batch && strcmp(row->which, which) == 0 && strcmp(row->bench, bench) == 0 &&
        strcmp(row->dtype, dtype) == 0 && strcmp(row->device, device) == 0)
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: record %zu: %s %s in %s on %s is there already, wanted each once",
                      records->name, json_array_size(records->list), bench, which, dtype, device);
  }
  return CS_OK;
}

static cs_status add_record(cs_bench_records *records, json_t *record) {
  size_t i;
  json_t *rung;
  if (json_array_append_new(records->list, record) != 0) return cs_no_memory("records", 0);
  CS_RETURN_IF_ERROR(check_record(records, record));
  CS_RETURN_IF_ERROR(check_news(records, record));
  json_array_foreach(json_object_get(record, "rungs"), i, rung) {
    const char *name = text_of(rung, "rung");
    CS_RETURN_IF_ERROR(add_row(records, record, rung, name ? name : ""));
  }
  const json_t *best = json_object_get(record, "best");
  return json_is_object(best) ? add_row(records, record, best, CS_BENCH_BEST) : CS_OK;
}

/* ---- Shares of what the device sustains ---- */

static bool same_device(const cs_bench_row *a, const cs_bench_row *b) {
  return strcmp(a->bench, b->bench) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
         strcmp(a->device, b->device) == 0;
}

/* A case tells a peak no lower than what it has seen itself; the highest is all cases'. */
static void compare_peaks(const cs_bench_records *records, cs_bench_row *row) {
  double flops = 0, bandwidth = 0;
  for (size_t i = 0; i < records->n; i++) {
    if (!same_device(row, &records->rows[i])) continue;
    flops = fmax(flops, number_of(records->rows[i].record, "peak_flops"));
    bandwidth = fmax(bandwidth, number_of(records->rows[i].record, "peak_bandwidth"));
  }
  double roofline_us = 1e6 * fmax(number_of(row->record, "flops") / flops,
                                  number_of(row->record, "bytes") / bandwidth);
  row->of_peak = row->flops / flops;
  row->of_roofline = roofline_us / row->us;
}

/* ---- Against naive rungs ---- */

static bool same_case(const cs_bench_row *a, const cs_bench_row *b) {
  bool same_batch = isnan(a->batch) ? isnan(b->batch) : a->batch == b->batch;
  return same_batch && strcmp(a->bench, b->bench) == 0 && strcmp(a->which, b->which) == 0;
}

/* The CPU's in the same precision, else in f32, where its products are. */
static void compare_rows(cs_bench_row *row, const cs_bench_row *naive) {
  if (naive->skipped || strcmp(naive->rung, CS_BENCH_NAIVE) != 0 || !same_case(row, naive)) return;
  bool same_dtype = strcmp(row->dtype, naive->dtype) == 0;
  double times = naive->us / row->us;
  if (same_dtype && strcmp(row->device, naive->device) == 0) row->against_own = times;
  if (strcmp(naive->backend, "cpu") != 0) return;
  if (same_dtype || (isnan(row->against_cpu) && strcmp(naive->dtype, "f32") == 0))
    row->against_cpu = times;
}

static void compare_all(const cs_bench_records *records) {
  for (size_t i = 0; i < records->n; i++) {
    compare_peaks(records, &records->rows[i]);
    for (size_t j = 0; j < records->n; j++) compare_rows(&records->rows[i], &records->rows[j]);
  }
}

cs_status cs_bench_records_parse(const char *text, size_t length, const char *name,
                                 cs_bench_records *out) {
  *out = (cs_bench_records){.name = name, .list = json_array()};
  if (!out->list) return cs_no_memory("records", 0);
  for (size_t at = 0; at < length;) {
    json_error_t error;
    while (at < length && strchr(" \t\r\n", text[at])) at++;
    if (at == length) break;
    json_t *record =
        json_loadb(text + at, length - at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    if (!record)
      return cs_error(CS_CODE_BAD_INPUT, "%s: record %zu: %s", name, json_array_size(out->list) + 1,
                      error.text);
    CS_RETURN_IF_ERROR(add_record(out, record));
    at += (size_t)error.position;
  }
  if (out->n == 0) return cs_error(CS_CODE_BAD_INPUT, "%s: no records", name);
  compare_all(out);
  return CS_OK;
}

void cs_bench_records_free(cs_bench_records *records) {
  free(records->rows);
  json_decref(records->list);
  memset(records, 0, sizeof *records);
}
