#include "backend/cuda/cupti_resources.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/resources.h"

static bool same_dims(const int a[3], const int b[3]) {
  return memcmp(a, b, 3 * sizeof(int)) == 0;
}

static bool same_name(const cs_kernel_info *k, const cs_kernel_trace *t) {
  return strcmp(k->name, t->name) == 0;
}

static bool same(const cs_kernel_info *k, const cs_kernel_trace *t) {
  return same_name(k, t) && cs_registers_given(k->registers) == cs_registers_given(t->registers) &&
         k->static_shared == t->static_shared && k->dynamic_shared == t->dynamic_shared &&
         k->local_bytes == t->local_bytes && same_dims(k->grid, t->grid) &&
         same_dims(k->block, t->block);
}

typedef struct comparison {
  const cs_kernel_info *kernels;
  const cs_kernel_trace *traced;
  int n, n_traced;
  bool *kernel_paired, *trace_paired;
  cs_strbuf *out;
  int differences;
} comparison;

static void value(comparison *c, const char *name, const char *what, int graph, int traced) {
  if (graph == traced) return;
  cs_strbuf_printf(c->out, "%s: %s %d by the graph, %d as traced\n", name, what, graph, traced);
  c->differences++;
}

static void dims(comparison *c, const char *name, const char *what, const int graph[3],
                 const int traced[3]) {
  if (same_dims(graph, traced)) return;
  cs_strbuf_printf(c->out, "%s: %s %dx%dx%d by the graph, %dx%dx%d as traced\n", name, what,
                   graph[0], graph[1], graph[2], traced[0], traced[1], traced[2]);
  c->differences++;
}

static void compare(comparison *c, const cs_kernel_info *k, const cs_kernel_trace *t) {
  if (cs_registers_given(k->registers) != cs_registers_given(t->registers)) {
    value(c, k->name, "registers", k->registers, t->registers);
  }
  value(c, k->name, "static shared bytes", k->static_shared, t->static_shared);
  value(c, k->name, "dynamic shared bytes", k->dynamic_shared, t->dynamic_shared);
  value(c, k->name, "local bytes", k->local_bytes, t->local_bytes);
  dims(c, k->name, "grid", k->grid, t->grid);
  dims(c, k->name, "block", k->block, t->block);
}

static void pair(comparison *c,
                 bool (*fits)(const cs_kernel_info *kernel, const cs_kernel_trace *trace)) {
  for (int i = 0; i < c->n; i++) {
    for (int j = 0; j < c->n_traced && !c->kernel_paired[i]; j++) {
      if (c->trace_paired[j] || !fits(&c->kernels[i], &c->traced[j])) continue;
      c->kernel_paired[i] = c->trace_paired[j] = true;
      compare(c, &c->kernels[i], &c->traced[j]);
    }
  }
}

static void tell_unpaired(comparison *c) {
  for (int i = 0; i < c->n; i++) {
    if (c->kernel_paired[i]) continue;
    cs_strbuf_printf(c->out, "%s: in the graph, not traced\n", c->kernels[i].name);
    c->differences++;
  }
  for (int j = 0; j < c->n_traced; j++) {
    if (c->trace_paired[j]) continue;
    cs_strbuf_printf(c->out, "%s: traced, not in the graph\n", c->traced[j].name);
    c->differences++;
  }
}

cs_status cs_cuda_compare_resources(const cs_kernel_info *kernels, int n,
                                    const cs_kernel_trace *traced, int n_traced, cs_strbuf *out,
                                    int *differences) {
  *differences = 0;
  comparison c = {.kernels = kernels, .traced = traced, .n = n, .n_traced = n_traced, .out = out};
  c.kernel_paired = cs_calloc((size_t)n + 1, sizeof(bool));
  c.trace_paired = cs_calloc((size_t)n_traced + 1, sizeof(bool));
  bool failed = !c.kernel_paired || !c.trace_paired;
  if (!failed) {
    pair(&c, same);
    pair(&c, same_name);
    tell_unpaired(&c);
    *differences = c.differences;
  }
  free(c.kernel_paired);
  free(c.trace_paired);
  return failed ? cs_no_memory("a comparison of kernels", (size_t)n + (size_t)n_traced) : CS_OK;
}
