/* What several commands say of a plan. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "cli/cli.h"

void cli_bytes_text(char *out, size_t size, double bytes) {
  if (fabs(bytes) >= 1 << 30) {
    snprintf(out, size, "%.2f GiB", bytes / (1 << 30));
  } else if (fabs(bytes) >= 1 << 20 || bytes == 0) {
    snprintf(out, size, "%.1f MiB", bytes / (1 << 20));
  } else {
    snprintf(out, size, "%.1f KiB", bytes / (1 << 10));
  }
}

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

void cli_print_bounds(const json_t *bounds, cs_strbuf *text) {
  if (!bounds) return;
  if (json_is_number(json_object_get(bounds, "roofline_us"))) {
    cs_strbuf_printf(text, "Roofline (a bound) %.1f us; ", number(bounds, "roofline_us"));
  } else {
    cs_strbuf_printf(text, "No roofline: the device's peak rates are not in the profile; ");
  }
  cs_strbuf_printf(text,
                   "critical path of the fastest candidates (an estimate, cold weights) %.1f us; ",
                   number(bounds, "critical_path_us"));
  if (json_is_number(json_object_get(bounds, "area_us"))) {
    cs_strbuf_printf(text, "area of the fastest candidates (an estimate) %.1f us.\n",
                     number(bounds, "area_us"));
  } else {
    cs_strbuf_printf(text, "area not known: kernels not recorded (`convsched profile`).\n");
  }
}

static void print_cost(const json_t *memory, const char *key, cs_strbuf *text) {
  double plan = number(json_object_get(memory, "plan"), key);
  double sequential = number(json_object_get(memory, "sequential"), key);
  char all[32], more[32];
  cli_bytes_text(all, sizeof all, plan);
  cli_bytes_text(more, sizeof more, fabs(plan - sequential));
  cs_strbuf_printf(text, "%s (%s%s)", all, plan < sequential ? "-" : "+", more);
}

void cli_print_memory(const char *policy, const json_t *memory, cs_strbuf *text) {
  if (!memory) return;
  cs_strbuf_printf(text, "Memory of %s, and what that is beside sequential: arena ", policy);
  print_cost(memory, "arena_bytes", text);
  cs_strbuf_printf(text, ", workspace at most ");
  print_cost(memory, "workspace_bytes", text);
  cs_strbuf_printf(text, ".\n");
}
