/* What several commands say of a plan. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/members.h"

void cli_bytes_text(char *out, size_t size, double bytes) {
  if (fabs(bytes) >= 1 << 30) {
    snprintf(out, size, "%.2f GiB", bytes / (1 << 30));
  } else if (fabs(bytes) >= 1 << 20 || bytes == 0) {
    snprintf(out, size, "%.1f MiB", bytes / (1 << 20));
  } else {
    snprintf(out, size, "%.1f KiB", bytes / (1 << 10));
  }
}

static bool known(const json_t *object, const char *key) {
  return json_is_number(json_object_get(object, key));
}

void cli_print_bounds(const json_t *bounds, cs_strbuf *text) {
  if (!bounds) return;
  bool roofline = known(bounds, "roofline_us"), area = known(bounds, "area_us");
  if (roofline) {
    cs_strbuf_printf(text, "Roofline (a bound) %.1f us; ", number(bounds, "roofline_us"));
  }
  cs_strbuf_printf(text, "%s of the fastest candidates (an estimate, cold weights) %.1f us",
                   roofline ? "critical path" : "Critical path",
                   number(bounds, "critical_path_us"));
  if (area) {
    cs_strbuf_printf(text, "; their area (an estimate) %.1f us", number(bounds, "area_us"));
  } else {
    cs_strbuf_printf(text, "; no area: kernels are not recorded (`convsched profile`)");
  }
  cs_strbuf_printf(text, "%s.\n",
                   roofline ? "" : "; no roofline: the device's peak rates are not in the profile");
}

static void print_cost(const json_t *memory, const char *key, cs_strbuf *text) {
  double plan = number(json_object_get(memory, "plan"), key);
  double sequential = number(json_object_get(memory, "sequential"), key);
  char all[32], more[32];
  cli_bytes_text(all, sizeof all, plan);
  cli_bytes_text(more, sizeof more, fabs(plan - sequential));
  cs_strbuf_printf(text, "%s (%s%s)", all, plan < sequential ? "-" : "+", more);
}

void cli_print_memory(const char *policy, const json_t *info, cs_strbuf *text) {
  const json_t *memory = json_object_get(info, "memory");
  const json_t *divided = json_object_get(json_object_get(info, "micro_batches"), "divided");
  if (!memory) return;
  cs_strbuf_printf(text, "Memory of %s, and what that is beside sequential%s: arena ", policy,
                   json_array_size(divided) > 0 ? " in the same micro-batches" : "");
  print_cost(memory, "arena_bytes", text);
  cs_strbuf_printf(text, ", workspace at most ");
  print_cost(memory, "workspace_bytes", text);
  cs_strbuf_printf(text, ".\n");
}

/* ---- The split of the device ---- */

/* The part that an entry of `streams` names, -1: the whole device. */
static json_int_t part_of(const json_t *stream) {
  return json_is_integer(stream) ? json_integer_value(stream) : -1;
}

static int count_streams(const json_t *streams, json_int_t part) {
  int n = 0;
  size_t i;
  json_t *stream;
  json_array_foreach(streams, i, stream) n += part_of(stream) == part;
  return n;
}

/* "for streams 0, 2 and 3". */
static void print_streams(const json_t *streams, json_int_t part, cs_strbuf *text) {
  int n = count_streams(streams, part), told = 0;
  size_t i;
  json_t *stream;
  cs_strbuf_printf(text, n == 0 ? "for no stream" : n == 1 ? "for stream" : "for streams");
  json_array_foreach(streams, i, stream) {
    if (part_of(stream) != part) continue;
    cs_strbuf_printf(text, "%s %zu", told == 0 ? "" : told + 1 == n ? " and" : ",", i);
    told++;
  }
}

void cli_print_split(const char *policy, const json_t *split, cs_strbuf *text) {
  const json_t *streams = json_object_get(split, "streams");
  const char *before = "";
  size_t p;
  json_t *units;
  if (!json_is_object(split)) return;
  cs_strbuf_printf(text, "%s splits the device: ", policy);
  json_array_foreach(json_object_get(split, "parts"), p, units) {
    cs_strbuf_printf(text, "%s%lld SMs ", before, (long long)json_integer_value(units));
    print_streams(streams, (json_int_t)p, text);
    before = "; ";
  }
  if (count_streams(streams, -1) > 0) {
    cs_strbuf_printf(text, "%sall SMs ", before);
    print_streams(streams, -1, text);
  }
  cs_strbuf_printf(text, ".\n");
}
