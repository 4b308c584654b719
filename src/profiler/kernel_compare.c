#include "profiler/kernel_compare.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/resources.h"

static bool same_dims(const int a[3], const int b[3]) {
  return memcmp(a, b, 3 * sizeof(int)) == 0;
}

static bool same_name(const cs_kernel_info *k, const cs_kernel_trace *t) {
  return strcmp(k->name, t->name) == 0;
}

static bool is_untold_local(const cs_kernel_info *k, const cs_kernel_trace *t) {
  return k->local_bytes > 0 && t->local_bytes == 0;
}

static bool same(const cs_kernel_info *k, const cs_kernel_trace *t) {
  return same_name(k, t) && cs_registers_given(k->registers) == cs_registers_given(t->registers) &&
         k->static_shared == t->static_shared && k->dynamic_shared == t->dynamic_shared &&
         (k->local_bytes == t->local_bytes || is_untold_local(k, t)) &&
         same_dims(k->grid, t->grid) && same_dims(k->block, t->block);
}

typedef struct comparison {
  const cs_kernel_info *told;
  const cs_kernel_trace *traced;
  int n, n_traced;
  bool *told_paired, *trace_paired;
  cs_strbuf *lines;
  cs_kernel_comparison found;
} comparison;

static void value(comparison *c, const char *name, const char *what, int told, int traced) {
  if (told == traced) return;
  cs_strbuf_printf(c->lines, "%s: %s %d by the driver, %d as traced\n", name, what, told, traced);
  c->found.differences++;
}

static void dims(comparison *c, const char *name, const char *what, const int told[3],
                 const int traced[3]) {
  if (same_dims(told, traced)) return;
  cs_strbuf_printf(c->lines, "%s: %s %dx%dx%d by the driver, %dx%dx%d as traced\n", name, what,
                   told[0], told[1], told[2], traced[0], traced[1], traced[2]);
  c->found.differences++;
}

static void compare(comparison *c, const cs_kernel_info *k, const cs_kernel_trace *t) {
  if (cs_registers_given(k->registers) != cs_registers_given(t->registers)) {
    value(c, k->name, "registers", k->registers, t->registers);
  }
  value(c, k->name, "static shared bytes", k->static_shared, t->static_shared);
  value(c, k->name, "dynamic shared bytes", k->dynamic_shared, t->dynamic_shared);
  if (is_untold_local(k, t)) {
    c->found.untold_local++;
  } else {
    value(c, k->name, "local bytes", k->local_bytes, t->local_bytes);
  }
  dims(c, k->name, "grid", k->grid, t->grid);
  dims(c, k->name, "block", k->block, t->block);
}

static void pair(comparison *c,
                 bool (*fits)(const cs_kernel_info *told, const cs_kernel_trace *trace)) {
  for (int i = 0; i < c->n; i++) {
    for (int j = 0; j < c->n_traced && !c->told_paired[i]; j++) {
      if (c->trace_paired[j] || !fits(&c->told[i], &c->traced[j])) continue;
      c->told_paired[i] = c->trace_paired[j] = true;
      compare(c, &c->told[i], &c->traced[j]);
    }
  }
}

static void tell_unpaired(comparison *c) {
  for (int i = 0; i < c->n; i++) {
    if (c->told_paired[i]) continue;
    cs_strbuf_printf(c->lines, "%s: told by the driver, not traced\n", c->told[i].name);
    c->found.differences++;
  }
  for (int j = 0; j < c->n_traced; j++) {
    if (c->trace_paired[j]) continue;
    cs_strbuf_printf(c->lines, "%s: traced, not told by the driver\n", c->traced[j].name);
    c->found.differences++;
  }
}

cs_status cs_compare_kernels(const cs_kernel_info *told, int n, const cs_kernel_trace *traced,
                             int n_traced, cs_strbuf *lines, cs_kernel_comparison *out) {
  comparison c = {.told = told, .traced = traced, .n = n, .n_traced = n_traced, .lines = lines};
  c.told_paired = cs_calloc((size_t)n + 1, sizeof(bool));
  c.trace_paired = cs_calloc((size_t)n_traced + 1, sizeof(bool));
  bool failed = !c.told_paired || !c.trace_paired;
  if (!failed) {
    pair(&c, same);
    pair(&c, same_name);
    tell_unpaired(&c);
    failed = lines->failed;
  }
  *out = c.found;
  free(c.told_paired);
  free(c.trace_paired);
  return failed ? cs_no_memory("a comparison of kernels", (size_t)n + (size_t)n_traced) : CS_OK;
}
