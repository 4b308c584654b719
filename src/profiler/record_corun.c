/* Lines that tell co-runs and the device. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record_counters.h"
#include "profiler/record_fields.h"
#include "profiler/record_json.h"

/* ---- Members ---- */

int cs_corun_compare_members(const cs_corun_member *a, const cs_corun_member *b) {
  int order = strcmp(a->signature, b->signature);
  return order ? order : strcmp(a->candidate, b->candidate);
}

static int compare_members(const void *a, const void *b) {
  return cs_corun_compare_members(a, b);
}

void cs_corun_sort(cs_corun *corun) {
  if (corun->n > 1)
    qsort(corun->members, (size_t)corun->n, sizeof *corun->members, compare_members);
}

void cs_corun_clear(cs_corun *corun) {
  for (int i = 0; i < corun->n; i++) {
    free(corun->members[i].signature);
    free(corun->members[i].candidate);
  }
  free(corun->members);
  memset(corun, 0, sizeof *corun);
}

static void append_signature(cs_strbuf *text, int at, const char *signature) {
  cs_strbuf_printf(text, "%s%s", at ? "&" : CS_CORUN_PREFIX, signature);
}

cs_status cs_corun_signature(const char *const *signatures, int n, char **out) {
  cs_strbuf text = {0};
  for (int i = 0; i < n; i++) append_signature(&text, i, signatures[i]);
  return cs_strbuf_take(&text, out);
}

cs_status cs_signature_of_corun(const cs_corun *corun, char **out) {
  cs_strbuf text = {0};
  for (int i = 0; i < corun->n; i++) append_signature(&text, i, corun->members[i].signature);
  return cs_strbuf_take(&text, out);
}

/* ---- Co-runs ---- */

void cs_corun_normalise(cs_corun *corun) {
  double *times[] = {&corun->concurrent_us, &corun->p10_us, &corun->p90_us, &corun->variation};
  for (int i = 0; i < 4; i++) *times[i] = cs_six_digits(*times[i]);
  double *others[] = {&corun->serial_us, &corun->serial_warm_us, &corun->concurrent_warm_us};
  for (int i = 0; i < 3; i++) {
    *others[i] = isfinite(*others[i]) && *others[i] >= 0 ? cs_six_digits(*others[i]) : NAN;
  }
  bool known = isfinite(corun->overlap) && corun->overlap >= 0;
  corun->overlap = known ? cs_six_digits(corun->overlap) : NAN;
  cs_counters_normalise(corun->counted, &corun->counters);
}

static json_t *members_to_json(const cs_corun *corun) {
  json_t *array = json_array();
  for (int i = 0; i < corun->n; i++) {
    json_t *member = json_pack("{s:s, s:s}", "op", corun->members[i].signature, "candidate",
                               corun->members[i].candidate);
    if (json_array_append_new(array, member) != 0) {
      json_decref(array);
      return NULL;
    }
  }
  return array;
}

/* What is not known is left out. */
static bool set_known(json_t *object, const char *name, double value) {
  return isnan(value) || json_object_set_new(object, name, json_real(value)) == 0;
}

static json_t *corun_to_json(const cs_corun *corun) {
  json_t *object =
      json_pack("{s:o, s:f, s:f, s:f, s:f, s:i}", "members", members_to_json(corun),
                "concurrent_us", corun->concurrent_us, "p10_us", corun->p10_us, "p90_us",
                corun->p90_us, "variation", corun->variation, "samples", corun->samples);
  if (!object) return NULL;
  bool good = set_known(object, "serial_us", corun->serial_us) &&
              set_known(object, "serial_warm_us", corun->serial_warm_us) &&
              set_known(object, "concurrent_warm_us", corun->concurrent_warm_us) &&
              set_known(object, "overlap", corun->overlap);
  good = good && (!corun->limiter[0] ||
                  json_object_set_new(object, "limiter", json_string(corun->limiter)) == 0);
  good = good && (!corun->counted || cs_counters_to_json(&corun->counters, object));
  if (good) return object;
  json_decref(object);
  return NULL;
}

cs_status cs_line_of_corun(const char *prefix, const char *signature, const cs_corun *corun,
                           char **out) {
  for (int i = 0; i < corun->n; i++) {
    CS_RETURN_IF_ERROR(cs_check_utf8(corun->members[i].signature, "operation signature"));
    CS_RETURN_IF_ERROR(cs_check_utf8(corun->members[i].candidate, "candidate's id"));
  }
  CS_RETURN_IF_ERROR(cs_check_utf8(corun->limiter, "limiter"));
  json_t *object = corun_to_json(corun);
  json_t *members = object ? json_pack("{s:o}", "corun", object) : NULL;
  return cs_line_finish(prefix, signature, members, out);
}

static cs_parse_result members_from_json(const json_t *array, cs_corun *out) {
  size_t n = json_array_size(array);
  if (n < 2 || n > INT_MAX) return CS_PARSE_DAMAGED;
  out->members = cs_calloc(n, sizeof *out->members);
  if (!out->members) return CS_PARSE_NO_MEMORY;
  out->n = (int)n;
  for (size_t i = 0; i < n; i++) {
    const json_t *member = json_array_get(array, i);
    const char *signature = NULL, *candidate = NULL;
    if (!cs_get_string(member, "op", &signature) ||
        !cs_get_string(member, "candidate", &candidate)) {
      return CS_PARSE_DAMAGED;
    }
    out->members[i].signature = cs_strdup(signature);
    out->members[i].candidate = cs_strdup(candidate);
    if (!out->members[i].signature || !out->members[i].candidate) return CS_PARSE_NO_MEMORY;
    if (i > 0 && cs_corun_compare_members(&out->members[i - 1], &out->members[i]) > 0) {
      return CS_PARSE_DAMAGED;
    }
  }
  return CS_PARSED;
}

static bool get_known(const json_t *object, const char *name, double *out) {
  *out = NAN;
  return !json_object_get(object, name) || cs_get_number(object, name, out);
}

static bool corun_values_from_json(const json_t *object, cs_corun *out) {
  return cs_get_number(object, "concurrent_us", &out->concurrent_us) && out->concurrent_us > 0 &&
         cs_get_number(object, "p10_us", &out->p10_us) &&
         cs_get_number(object, "p90_us", &out->p90_us) &&
         cs_get_number(object, "variation", &out->variation) &&
         cs_get_int(object, "samples", &out->samples) &&
         get_known(object, "serial_us", &out->serial_us) &&
         get_known(object, "serial_warm_us", &out->serial_warm_us) &&
         get_known(object, "concurrent_warm_us", &out->concurrent_warm_us) &&
         get_known(object, "overlap", &out->overlap) &&
         (!json_object_get(object, "limiter") ||
          cs_get_text(object, "limiter", out->limiter, sizeof out->limiter)) &&
         cs_counters_from_json(object, &out->counted, &out->counters);
}

cs_parse_result cs_corun_from_json(const json_t *object, cs_corun *out) {
  const json_t *corun = json_object_get(object, "corun");
  memset(out, 0, sizeof *out);
  cs_parse_result result = members_from_json(json_object_get(corun, "members"), out);
  if (result == CS_PARSED && !corun_values_from_json(corun, out)) result = CS_PARSE_DAMAGED;
  if (result != CS_PARSED) cs_corun_clear(out);
  return result;
}

/* ---- The device ---- */

cs_status cs_line_of_device(const char *prefix, const cs_device_info *info, char **out) {
  CS_RETURN_IF_ERROR(cs_check_utf8(info->name, "device's name"));
  const cs_unit_limits *unit = &info->unit;
  json_t *members =
      json_pack("{s:{s:s, s:s, s:i, s:I, s:I, s:i, s:i, s:{s:i, s:i, s:i, s:i, s:i, s:i}}}",
                "device_info", "name", info->name, "backend", info->backend, "units", info->units,
                "memory_bytes", (json_int_t)info->memory_bytes, "cache_bytes",
                (json_int_t)info->cache_bytes, "compute_capability", info->compute_capability,
                "clock_mhz", info->clock_mhz, "unit", "registers", unit->registers, "threads",
                unit->threads, "blocks", unit->blocks, "shared_bytes", unit->shared_bytes,
                "reserved_shared_bytes", unit->reserved_shared_bytes, "warp_size", unit->warp_size);
  return cs_line_finish(prefix, CS_DEVICE_OP, members, out);
}

cs_parse_result cs_device_from_json(const json_t *object, cs_device_info *out) {
  const json_t *device = json_object_get(object, "device_info");
  const json_t *unit = json_object_get(device, "unit");
  memset(out, 0, sizeof *out);
  bool good = cs_get_text(device, "name", out->name, sizeof out->name) &&
              cs_get_text(device, "backend", out->backend, sizeof out->backend) &&
              cs_get_int(device, "units", &out->units) &&
              cs_get_integer(device, "memory_bytes", INT64_MAX, &out->memory_bytes) &&
              cs_get_integer(device, "cache_bytes", INT64_MAX, &out->cache_bytes) &&
              cs_get_int(device, "compute_capability", &out->compute_capability) &&
              cs_get_int(device, "clock_mhz", &out->clock_mhz) &&
              cs_get_int(unit, "registers", &out->unit.registers) &&
              cs_get_int(unit, "threads", &out->unit.threads) &&
              cs_get_int(unit, "blocks", &out->unit.blocks) &&
              cs_get_int(unit, "shared_bytes", &out->unit.shared_bytes) &&
              cs_get_int(unit, "reserved_shared_bytes", &out->unit.reserved_shared_bytes) &&
              cs_get_int(unit, "warp_size", &out->unit.warp_size);
  return good ? CS_PARSED : CS_PARSE_DAMAGED;
}
