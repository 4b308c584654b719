#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/compare.h"

#define MOST_BYTES ((size_t)1 << 30)

/* ---- Documents ---- */

static cs_status parse(const char *path, const char *text, size_t length, json_t *documents) {
  size_t at = 0;
  for (;;) {
    json_error_t error;
    while (at < length && isspace((unsigned char)text[at])) at++;
    if (at == length) return CS_OK;
    json_t *root = json_loadb(text + at, length - at, JSON_DISABLE_EOF_CHECK, &error);
    size_t record = json_array_size(documents) + 1;
    if (!root) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: record %zu: %s", path, record, error.text);
    }
    at += (size_t)error.position;
    if (json_array_append_new(documents, root) != 0) return cs_no_memory("records", length);
  }
}

static cs_status read_documents(cs_records *out) {
  char *text = NULL;
  size_t length = 0;
  CS_RETURN_IF_ERROR(cs_file_read(out->path, MOST_BYTES, &text, &length));
  cs_status st = parse(out->path, text, length, out->documents);
  free(text);
  return st;
}

/* ---- What was measured ---- */

/* Where in a file a problem is. */
typedef struct place {
  cs_records *records;
  const json_t *document;
  size_t number; /* of the document, from 1 */
  double confidence;
} place;

static cs_status wrong(const place *at, const char *member, const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT, "%s: record %zu: %s: wanted %s", at->records->path, at->number,
                  member, wanted);
}

static cs_status make_key(cs_measured *m) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%s %s batch %lld, %s%s%s", m->model, m->dtype, (long long)m->batch,
                   m->contender, m->layout ? " " : "", m->layout ? m->layout : "");
  if (m->in_flight > 0) cs_strbuf_printf(&text, ", %d in flight", m->in_flight);
  if (m->predicted) cs_strbuf_printf(&text, ", predicted");
  return cs_strbuf_take(&text, &m->key);
}

/* Median and interval of {"median", "samples"}. */
static cs_status read_samples(const place *at, const json_t *told, const char *member,
                              cs_measured *out) {
  const json_t *median = json_object_get(told, "median");
  const json_t *list = json_object_get(told, "samples");
  size_t n = json_array_size(list);
  if (!json_is_number(median) || !(json_number_value(median) > 0)) {
    return wrong(at, member, "a median above 0");
  }
  out->median = out->low = out->high = json_number_value(median);
  out->samples = n > 1000 ? 1000 : (int)n;
  if (n == 0) return CS_OK;
  double *samples = cs_calloc(n, sizeof *samples);
  if (!samples) return cs_no_memory("samples", n * sizeof *samples);
  for (size_t i = 0; i < n; i++) samples[i] = json_number_value(json_array_get(list, i));
  cs_median_interval interval;
  cs_status st = cs_median_interval_of(samples, out->samples, at->confidence, &interval);
  free(samples);
  out->low = interval.low;
  out->high = interval.high;
  return st;
}

static cs_status add(cs_records *records, cs_measured *m) {
  CS_RETURN_IF_ERROR(make_key(m));
  const json_t *before = json_object_get(records->index, m->key);
  if (before) {
    cs_measured *old = &records->items[json_integer_value(before)];
    free(old->key);
    *old = *m;
    records->repeated++;
    return CS_OK;
  }
  cs_status st = cs_grow(&records->items, &records->capacity, records->n + 1, sizeof *m);
  if (st == CS_OK &&
      json_object_set_new(records->index, m->key, json_integer((json_int_t)records->n)) != 0) {
    st = cs_no_memory("records", records->n);
  }
  if (st != CS_OK) {
    free(m->key);
    return st;
  }
  records->items[records->n++] = *m;
  return CS_OK;
}

/* A policy of a run: its latency, or what a simulated device predicts. */
static cs_status read_policy(const place *at, const json_t *policy, cs_measured *m) {
  const json_t *latency = json_object_get(policy, "latency_us");
  m->predicted = json_is_true(json_object_get(policy, "predicted"));
  if (m->predicted) {
    m->median = m->low = m->high = json_number_value(json_object_get(policy, "predicted_us"));
    return m->median > 0 ? add(at->records, m) : wrong(at, "predicted_us", "a time");
  }
  if (!json_is_object(latency)) return CS_OK; /* it could not be measured */
  CS_RETURN_IF_ERROR(read_samples(at, latency, "latency_us", m));
  return add(at->records, m);
}

/* The rates of a contender that reached the final rounds. */
static cs_status read_rates(const place *at, const json_t *contender, const cs_measured *of) {
  size_t i;
  json_t *rate;
  json_array_foreach(json_object_get(contender, "rates"), i, rate) {
    const json_t *final = json_object_get(rate, "final");
    cs_measured m = *of;
    if (!json_is_object(final)) continue;
    m.in_flight = (int)json_integer_value(json_object_get(rate, "in_flight"));
    if (m.in_flight < 1) return wrong(at, "rates", "in_flight from 1 on");
    CS_RETURN_IF_ERROR(
        read_samples(at, json_object_get(final, "images_per_s"), "images_per_s", &m));
    CS_RETURN_IF_ERROR(add(at->records, &m));
  }
  return CS_OK;
}

static cs_status read_document(const place *at) {
  const json_t *document = at->document;
  const char *schema = json_string_value(json_object_get(document, "schema"));
  bool rates = schema && strcmp(schema, "convsched.throughput/1") == 0;
  if (!rates && (!schema || strcmp(schema, "convsched.run/1") != 0)) {
    return wrong(at, "schema", "convsched.run/1 or convsched.throughput/1");
  }
  cs_measured of = {.model = json_string_value(json_object_get(document, "model")),
                    .dtype = json_string_value(json_object_get(document, "dtype")),
                    .batch = json_integer_value(json_object_get(document, "batch"))};
  if (!of.model || !of.dtype || of.batch < 1) return wrong(at, "model, dtype, batch", "all three");
  size_t i;
  json_t *contender;
  const json_t *list = json_object_get(document, rates ? "contenders" : "policies");
  json_array_foreach(list, i, contender) {
    cs_measured m = of;
    m.contender = json_string_value(json_object_get(contender, "name"));
    m.layout = json_string_value(json_object_get(contender, "layout"));
    if (!m.contender) return wrong(at, "name", "a text");
    CS_RETURN_IF_ERROR(rates ? read_rates(at, contender, &m) : read_policy(at, contender, &m));
  }
  return CS_OK;
}

cs_status cs_records_read(const char *path, double confidence, cs_records *out) {
  *out = (cs_records){.path = path, .documents = json_array(), .index = json_object()};
  if (!out->documents || !out->index) return cs_no_memory("records", sizeof *out);
  CS_RETURN_IF_ERROR(read_documents(out));
  for (size_t i = 0; i < json_array_size(out->documents); i++) {
    place at = {out, json_array_get(out->documents, i), i + 1, confidence};
    CS_RETURN_IF_ERROR(read_document(&at));
  }
  if (out->n > 0) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%s: nothing in it was measured", path);
}

void cs_records_free(cs_records *records) {
  for (size_t i = 0; i < records->n; i++) free(records->items[i].key);
  free(records->items);
  json_decref(records->documents);
  json_decref(records->index);
  memset(records, 0, sizeof *records);
}

const cs_measured *cs_records_find(const cs_records *records, const char *key) {
  const json_t *at = json_object_get(records->index, key);
  return at ? &records->items[json_integer_value(at)] : NULL;
}

cs_status cs_records_list(const cs_records *records, const char *object, const char *member,
                          char **out) {
  cs_strbuf text = {0};
  json_t *seen = json_object();
  for (size_t i = 0; i < json_array_size(records->documents); i++) {
    const json_t *document = json_array_get(records->documents, i);
    if (object) document = json_object_get(document, object);
    const char *value = json_string_value(json_object_get(document, member));
    if (!value || json_object_get(seen, value)) continue;
    cs_strbuf_printf(&text, "%s%s", json_object_size(seen) ? ", " : "", value);
    json_object_set_new(seen, value, json_true());
  }
  json_decref(seen);
  return cs_strbuf_take(&text, out);
}
