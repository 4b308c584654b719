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
