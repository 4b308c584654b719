#include "profiler/record_json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record_fields.h"

#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(6))

/* ---- To text ---- */

static cs_status quote(const char *text, const char *what, char **out) {
  json_t *string = json_string(text);
  if (!string) {
    return cs_error(CS_CODE_BAD_INPUT, "profile: the %s is not UTF-8 text: \"%.80s\"", what, text);
  }
  *out = json_dumps(string, JSON_ENCODE_ANY | JSON_COMPACT);
  json_decref(string);
  return *out ? CS_OK : cs_no_memory("a JSON string", strlen(text));
}

cs_status cs_line_prefix(const char *identity, char **out) {
  char *quoted = NULL;
  cs_strbuf text = {0};
  CS_RETURN_IF_ERROR(quote(identity, "device identity", &quoted));
  cs_strbuf_printf(&text, "{\"schema\":\"convsched.profile/1\",\"method\":%d,\"device\":%s,\"op\":",
                   CS_MEASURE_VERSION, quoted);
  free(quoted);
  return cs_strbuf_take(&text, out);
}

cs_status cs_check_utf8(const char *text, const char *what) {
  char *quoted = NULL;
  cs_status st = text ? quote(text, what, &quoted) : CS_OK;
  free(quoted);
  return st;
}

static json_t *candidate_to_json(const cs_candidate *candidate) {
  json_t *object =
      json_pack("{s:s, s:s, s:I, s:b, s:b, s:I, s:i}", "id", candidate->id, "family",
                candidate->family, "workspace_bytes", (json_int_t)candidate->workspace_bytes,
                "deterministic", candidate->deterministic, "fused", candidate->fused, "notes",
                (json_int_t)candidate->notes, "threads", candidate->threads);
  if (object && ((candidate->payload &&
                  json_object_set_new(object, "payload", json_string(candidate->payload)) != 0) ||
                 (candidate->merges && json_object_set_new(object, "merges", json_true()) != 0))) {
    json_decref(object);
    object = NULL;
  }
  return object;
}

static json_t *measurement_to_json(const cs_measurement *measured) {
  if (!measured->rejected) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:i}", "cold_us", measured->cold_us, "warm_us",
                     measured->warm_us, "p10_us", measured->p10_us, "p90_us", measured->p90_us,
                     "variation", measured->variation, "samples", measured->samples);
  }
  /* A library's message may hold anything: what is not ASCII is not worth losing the record for. */
  const char *reason = measured->reason ? measured->reason : "";
  char plain[512];
  size_t n = 0;
  for (; reason[n] && n < sizeof plain - 1; n++) {
    plain[n] = (unsigned char)reason[n] < 0x80 ? reason[n] : '?';
  }
  plain[n] = '\0';
  return json_pack("{s:s}", "rejected", plain);
}

cs_status cs_line_finish(const char *prefix, const char *signature, json_t *members, char **out) {
  cs_status st = CS_OK;
  char *quoted = NULL, *tail = NULL;
  cs_strbuf line = {0};
  CS_TRY(st, quote(signature, "operation signature", &quoted), done);
  tail = members ? json_dumps(members, DUMP_FLAGS) : NULL;
  if (!tail) {
    st = cs_no_memory("a profile line", 0);
    goto done;
  }
  cs_strbuf_printf(&line, "%s%s,", prefix, quoted);
  cs_strbuf_append(&line, tail + 1, strlen(tail + 1));
  cs_strbuf_append(&line, "\n", 1);
  st = cs_strbuf_take(&line, out);
done:
  json_decref(members);
  free(quoted);
  free(tail);
  return st;
}

cs_status cs_line_of_record(const char *prefix, const char *signature,
                            const cs_candidate *candidate, const cs_measurement *measured,
                            char **out) {
  CS_RETURN_IF_ERROR(cs_check_utf8(candidate->id, "candidate's id"));
  CS_RETURN_IF_ERROR(cs_check_utf8(candidate->family, "candidate's family"));
  CS_RETURN_IF_ERROR(cs_check_utf8(candidate->payload, "candidate's payload"));
  json_t *members = json_pack("{s:o, s:o}", "candidate", candidate_to_json(candidate), "measured",
                              measurement_to_json(measured));
  return cs_line_finish(prefix, signature, members, out);
}

cs_status cs_line_of_completion(const char *prefix, const char *signature,
                                const cs_completion *completion, char **out) {
  json_t *members = json_pack("{s:{s:I, s:i, s:b, s:i, s:i}}", "complete", "workspace_limit",
                              (json_int_t)completion->workspace_limit, "threads",
                              completion->threads, "full", completion->full, "candidates",
                              completion->candidates, "records", completion->records);
  return cs_line_finish(prefix, signature, members, out);
}

double cs_six_digits(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.6g", value);
  return strtod(text, NULL);
}

/* ---- From JSON ---- */

bool cs_measurement_is_possible(const cs_measurement *measured) {
  return measured->rejected || (measured->cold_us > 0 && measured->warm_us > 0);
}

static bool measurement_from_json(const json_t *object, cs_measurement *out, const char **reason) {
  int64_t samples = 0;
  if (cs_get_string(object, "rejected", reason)) {
    out->rejected = true;
    return true;
  }
  if (!cs_get_number(object, "cold_us", &out->cold_us) ||
      !cs_get_number(object, "warm_us", &out->warm_us) ||
      !cs_get_number(object, "p10_us", &out->p10_us) ||
      !cs_get_number(object, "p90_us", &out->p90_us) ||
      !cs_get_number(object, "variation", &out->variation) ||
      !cs_get_integer(object, "samples", INT_MAX, &samples)) {
    return false;
  }
  out->samples = (int)samples;
  return cs_measurement_is_possible(out);
}

cs_parse_result cs_record_from_json(const json_t *object, cs_record *out) {
  const json_t *candidate = json_object_get(object, "candidate");
  const char *id = NULL, *family = NULL, *reason = NULL;
  const json_t *payload = json_object_get(candidate, "payload");
  int64_t notes = 0, threads = 0;
  memset(out, 0, sizeof *out);
  if (!cs_get_string(candidate, "id", &id) || id[0] == '\0' ||
      !cs_get_string(candidate, "family", &family) || (payload && !json_is_string(payload)) ||
      !cs_get_integer(candidate, "workspace_bytes", INT64_MAX, &out->candidate.workspace_bytes) ||
      !cs_get_bool(candidate, "deterministic", &out->candidate.deterministic) ||
      !cs_get_bool(candidate, "fused", &out->candidate.fused) ||
      !cs_get_integer(candidate, "notes", UINT32_MAX, &notes) ||
      !cs_get_integer(candidate, "threads", INT_MAX, &threads) ||
      (json_object_get(candidate, "merges") &&
       !cs_get_bool(candidate, "merges", &out->candidate.merges)) ||
      !measurement_from_json(json_object_get(object, "measured"), &out->measured, &reason)) {
    return CS_PARSE_DAMAGED;
  }
  out->candidate.notes = (uint32_t)notes;
  out->candidate.threads = (int)threads;
  out->candidate.id = cs_strdup(id);
  out->candidate.family = cs_strdup(family);
  out->candidate.payload = cs_strdup(json_string_value(payload));
  out->measured.reason = cs_strdup(reason);
  if (!out->candidate.id || !out->candidate.family || (payload && !out->candidate.payload) ||
      (reason && !out->measured.reason)) {
    cs_record_clear(out);
    return CS_PARSE_NO_MEMORY;
  }
  return CS_PARSED;
}

cs_parse_result cs_completion_from_json(const json_t *object, cs_completion *out) {
  const json_t *complete = json_object_get(object, "complete");
  int64_t threads = 0, candidates = 1, records = 1; /* of lines that do not say */
  if ((json_object_get(complete, "candidates") &&
       !cs_get_integer(complete, "candidates", INT_MAX, &candidates)) ||
      (json_object_get(complete, "records") &&
       !cs_get_integer(complete, "records", INT_MAX, &records))) {
    return CS_PARSE_DAMAGED;
  }
  if (!cs_get_integer(complete, "workspace_limit", INT64_MAX, &out->workspace_limit) ||
      !cs_get_integer(complete, "threads", INT_MAX, &threads) ||
      !cs_get_bool(complete, "full", &out->full)) {
    return CS_PARSE_DAMAGED;
  }
  out->threads = (int)threads;
  out->candidates = (int)candidates;
  out->records = (int)records;
  return CS_PARSED;
}

void cs_record_clear(cs_record *record) {
  cs_candidate_clear(&record->candidate);
  free(record->measured.reason);
  free(record->kernels);
  memset(record, 0, sizeof *record);
}
