/* Lines that tell a candidate's kernels, and counters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record_counters.h"
#include "profiler/record_fields.h"
#include "profiler/record_json.h"

static const char *const counter_names[CS_COUNTER_COUNT] = {
#define CS_COUNTER_NAME(name, unit, meaning) #name,
    CS_COUNTERS(CS_COUNTER_NAME)
#undef CS_COUNTER_NAME
};

/* ---- Counters ---- */

bool cs_counters_to_json(const cs_counters *counters, json_t *into) {
  json_t *object = json_object();
  for (int i = 0; i < CS_COUNTER_COUNT; i++) {
    if (isnan(counters->value[i])) continue;
    if (json_object_set_new(object, counter_names[i], json_real(counters->value[i])) != 0) {
      json_decref(object);
      return false;
    }
  }
  return json_object_set_new(into, "counters", object) == 0;
}

bool cs_counters_from_json(const json_t *from, bool *counted, cs_counters *out) {
  const json_t *object = json_object_get(from, "counters");
  *counted = object != NULL;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) out->value[i] = NAN;
  if (!object) return true;
  if (!json_is_object(object)) return false;
  for (int i = 0; i < CS_COUNTER_COUNT; i++) {
    if (!json_object_get(object, counter_names[i])) continue;
    if (!cs_get_number(object, counter_names[i], &out->value[i])) return false;
  }
  return true;
}

void cs_counters_normalise(bool counted, cs_counters *counters) {
  for (int i = 0; i < CS_COUNTER_COUNT; i++) {
    double *value = &counters->value[i];
    bool known = counted && isfinite(*value) && *value >= 0;
    *value = known ? cs_six_digits(*value) : NAN;
  }
}

/* ---- Kernels ---- */

static void at_least_zero(int *values, int n) {
  for (int i = 0; i < n; i++) values[i] = values[i] < 0 ? 0 : values[i];
}

void cs_kernel_normalise(cs_kernel_profile *kernel) {
  cs_kernel_info *info = &kernel->info;
  info->launch = 0;
  at_least_zero(info->grid, 3);
  at_least_zero(info->block, 3);
  at_least_zero(info->cluster, 3);
  at_least_zero(&info->registers, 1);
  at_least_zero(&info->static_shared, 1);
  at_least_zero(&info->dynamic_shared, 1);
  at_least_zero(&info->local_bytes, 1);
  at_least_zero(&info->blocks_per_unit, 1);
  cs_counters_normalise(kernel->counted, &kernel->counters);
}

static json_t *kernel_to_json(const cs_kernel_profile *kernel) {
  const cs_kernel_info *k = &kernel->info;
  json_t *object = json_pack("{s:s, s:[iii], s:[iii], s:[iii], s:i, s:i, s:i, s:i, s:i}", "name",
                             k->name, "grid", k->grid[0], k->grid[1], k->grid[2], "block",
                             k->block[0], k->block[1], k->block[2], "cluster", k->cluster[0],
                             k->cluster[1], k->cluster[2], "registers", k->registers,
                             "static_shared", k->static_shared, "dynamic_shared", k->dynamic_shared,
                             "local_bytes", k->local_bytes, "blocks_per_unit", k->blocks_per_unit);
  if (object && kernel->counted && !cs_counters_to_json(&kernel->counters, object)) {
    json_decref(object);
    object = NULL;
  }
  return object;
}

cs_status cs_line_of_kernels(const char *prefix, const char *signature, const char *candidate,
                             const cs_kernel_profile *kernels, int n, char **out) {
  json_t *list = json_array();
  CS_RETURN_IF_ERROR(cs_check_utf8(candidate, "candidate's id"));
  for (int i = 0; i < n; i++) {
    cs_status st = cs_check_utf8(kernels[i].info.name, "kernel's name");
    if (st == CS_OK && json_array_append_new(list, kernel_to_json(&kernels[i])) != 0) {
      st = cs_no_memory("a profile line", 0);
    }
    if (st != CS_OK) {
      json_decref(list);
      return st;
    }
  }
  json_t *members = json_pack("{s:{s:s, s:o}}", "kernels", "candidate", candidate, "list", list);
  return cs_line_finish(prefix, signature, members, out);
}

/* What any device can launch, with room: products of the extents then fit 64 bits. */
static bool is_launchable(const cs_kernel_info *k) {
  return k->grid[1] <= 65535 && k->grid[2] <= 65535 && k->block[0] <= 1024 && k->block[1] <= 1024 &&
         k->block[2] <= 1024 && k->cluster[0] <= 1024 && k->cluster[1] <= 1024 &&
         k->cluster[2] <= 1024 && k->registers <= 65536;
}

static bool kernel_from_json(const json_t *object, cs_kernel_profile *out) {
  cs_kernel_info *k = &out->info;
  return cs_get_text(object, "name", k->name, sizeof k->name) &&
         cs_get_triple(object, "grid", k->grid) && cs_get_triple(object, "block", k->block) &&
         cs_get_triple(object, "cluster", k->cluster) &&
         cs_get_int(object, "registers", &k->registers) &&
         cs_get_int(object, "static_shared", &k->static_shared) &&
         cs_get_int(object, "dynamic_shared", &k->dynamic_shared) &&
         cs_get_int(object, "local_bytes", &k->local_bytes) &&
         cs_get_int(object, "blocks_per_unit", &k->blocks_per_unit) && is_launchable(k) &&
         cs_counters_from_json(object, &out->counted, &out->counters);
}

cs_parse_result cs_kernels_from_json(const json_t *object, const char **candidate,
                                     cs_kernel_profile **kernels, int *n) {
  const json_t *member = json_object_get(object, "kernels");
  const json_t *list = json_object_get(member, "list");
  size_t count = json_array_size(list);
  if (!cs_get_string(member, "candidate", candidate) || count == 0) return CS_PARSE_DAMAGED;
  cs_kernel_profile *read = cs_calloc(count, sizeof *read);
  if (!read) return CS_PARSE_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    if (!kernel_from_json(json_array_get(list, i), &read[i])) {
      free(read);
      return CS_PARSE_DAMAGED;
    }
  }
  *kernels = read;
  *n = (int)count;
  return CS_PARSED;
}
