#include "scheduler/kernel_kinds.h"

#include <stdlib.h>
#include <string.h>

/* A kernel, told or traced: both sides sorted alike meet their equals. */
typedef struct entry {
  const char *name;
  const int *grid, *block;
  int index;
} entry;

static int compare_dims(const int a[3], const int b[3]) {
  for (int i = 0; i < 3; i++) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

static int compare_kinds(const entry *a, const entry *b) {
  int names = strcmp(a->name, b->name);
  if (names != 0) return names;
  int grids = compare_dims(a->grid, b->grid);
  return grids != 0 ? grids : compare_dims(a->block, b->block);
}

static int by_kind(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int kinds = compare_kinds(x, y);
  return kinds != 0 ? kinds : x->index - y->index;
}

static cs_status unmatched(const entry *kernel, bool told) {
  return cs_error(CS_CODE_NOT_FOUND,
                  "kernel %s (grid %dx%dx%d, %dx%dx%d threads) %s as often as it was %s",
                  kernel->name, kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
                  kernel->block[1], kernel->block[2],
                  told ? "was not traced" : "is not in the schedule", told ? "launched" : "traced");
}

/* Both sorted. */
static cs_status number_kinds(const entry *told, int n, const entry *traced, int n_traced,
                              int *told_kind, int *traced_kind) {
  int kind = 0;
  for (int i = 0; i < n || i < n_traced; i++) {
    if (i >= n) return unmatched(&traced[i], false);
    if (i >= n_traced) return unmatched(&told[i], true);
    int order = compare_kinds(&told[i], &traced[i]);
    if (order != 0) return order < 0 ? unmatched(&told[i], true) : unmatched(&traced[i], false);
    if (i > 0 && compare_kinds(&told[i - 1], &told[i]) != 0) kind++;
    told_kind[told[i].index] = kind;
    traced_kind[traced[i].index] = kind;
  }
  return CS_OK;
}

cs_status cs_kernel_kinds(const cs_kernel_info *told, int n, const cs_kernel_trace *traced,
                          int n_traced, int *told_kind, int *traced_kind) {
  cs_status st = CS_OK;
  entry *a = cs_calloc((size_t)n + 1, sizeof *a), *b = cs_calloc((size_t)n_traced + 1, sizeof *b);
  if (!a || !b) {
    st = cs_no_memory("kernels", (size_t)n * sizeof *a);
    goto done;
  }
  for (int i = 0; i < n; i++) a[i] = (entry){told[i].name, told[i].grid, told[i].block, i};
  for (int i = 0; i < n_traced; i++) {
    b[i] = (entry){traced[i].name, traced[i].grid, traced[i].block, i};
  }
  qsort(a, (size_t)n, sizeof *a, by_kind);
  qsort(b, (size_t)n_traced, sizeof *b, by_kind);
  st = number_kinds(a, n, b, n_traced, told_kind, traced_kind);
done:
  free(a);
  free(b);
  return st;
}
