/* The kernels of a plan for a person. */
#include <stdio.h>
#include <string.h>

#include "cli/inspect.h"
#include "cli/members.h"

/* "64x2x1"; "-" where it is not known. */
static void extents_text(const json_t *extents, char out[48]) {
  snprintf(out, 48, "-");
  if (!json_is_array(extents)) return;
  snprintf(out, 48, "%lldx%lldx%lld", (long long)json_integer_value(json_array_get(extents, 0)),
           (long long)json_integer_value(json_array_get(extents, 1)),
           (long long)json_integer_value(json_array_get(extents, 2)));
}

static void print_kernel(const json_t *kernel, size_t i, cs_strbuf *text) {
  char grid[48], block[48], registers[16] = "-", shared[16] = "-";
  bool member = integer(kernel, "of") == 0;
  extents_text(json_object_get(kernel, "grid"), grid);
  extents_text(json_object_get(kernel, "block"), block);
  if (json_is_integer(json_object_get(kernel, "registers"))) {
    snprintf(registers, sizeof registers, "%lld", integer(kernel, "registers"));
    snprintf(shared, sizeof shared, "%lld",
             integer(kernel, "static_shared") + integer(kernel, "dynamic_shared"));
  }
  const char *name = string(kernel, "short");
  cs_strbuf_printf(text, "%4zu %6lld %10.1f ", i, integer(kernel, "stream"),
                   number(kernel, "start_us"));
  if (member) {
    cs_strbuf_printf(text, "%8s", "-");
  } else {
    cs_strbuf_printf(text, "%8.1f", number(kernel, "us"));
  }
  const json_t *early = json_object_get(kernel, "early");
  cs_strbuf_printf(text, " %14s %10s %4s %7s %5s  %-48s  %s  %s\n", grid, block, registers, shared,
                   json_is_true(early)    ? "yes"
                   : json_is_false(early) ? "no"
                                          : "-",
                   name[0]  ? name
                   : member ? "-"
                            : "not known",
                   string(kernel, "candidate"), string(kernel, "reason"));
}

static void print_totals(const json_t *root, cs_strbuf *text) {
  const json_t *totals = json_object_get(root, "totals"), *value;
  const json_t *rest = json_object_get(totals, "not_computing");
  size_t i;
  cs_strbuf_printf(text, "\n%-28s %8s %10s %7s\n", "what for", "kernels", "us", "share");
  json_array_foreach(json_object_get(totals, "classes"), i, value) {
    cs_strbuf_printf(text, "%-28s %8lld %10.1f %6.1f%%\n", string(value, "class"),
                     integer(value, "kernels"), number(value, "us"), 100 * number(value, "share"));
  }
  cs_strbuf_printf(text, "%-28s %8lld %10.1f\n\n", "all", integer(totals, "kernels"),
                   number(totals, "us"));
  cs_strbuf_printf(text,
                   "Not computing (copies, layout changes): %lld of %lld kernels, %.1f us, %.1f%% "
                   "of the planned time of all kernels.\n",
                   integer(rest, "kernels"), integer(totals, "kernels"), number(rest, "us"),
                   100 * number(rest, "share"));
  if (integer(totals, "launches_of_unknown_kernels") > 0) {
    bool none = strcmp(string(root, "source"), "none") == 0;
    cs_strbuf_printf(text,
                     "Of %lld of %lld launches the kernels are not known (%s): each counts "
                     "as one kernel.\n",
                     integer(totals, "launches_of_unknown_kernels"), integer(totals, "launches"),
                     none ? "this device tells none" : "they were not recorded");
  }
  cs_strbuf_printf(text,
                   "Times are planned ones, of kernels that may overlap; the plan takes %.1f "
                   "us on %lld streams.\n",
                   number(root, "predicted_us"), integer(root, "streams"));
}

cs_status inspect_print_kernels(const char *json) {
  json_t *root = json_loads(json, 0, NULL), *kernel;
  cs_strbuf text = {0};
  size_t i;
  cs_strbuf_printf(&text, "%s  batch %lld  %s  %s  on %s (%s)\n\n", string(root, "model"),
                   integer(root, "batch"), string(root, "dtype"), string(root, "policy"),
                   string(root, "device"), string(root, "backend"));
  cs_strbuf_printf(&text, "%4s %6s %10s %8s %14s %10s %4s %7s %5s  %-48s  %s\n", "#", "stream",
                   "start us", "us", "grid", "block", "regs", "shared", "early", "kernel",
                   "candidate  what for");
  json_array_foreach(json_object_get(root, "kernels"), i, kernel) {
    print_kernel(kernel, i, &text);
  }
  print_totals(root, &text);
  json_decref(root);
  return cli_write_buffer(NULL, &text);
}
