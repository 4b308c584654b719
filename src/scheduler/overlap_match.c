/* Which block of a plan each traced kernel belongs to. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/overlap.h"

/* A kernel, told or traced: both sides sorted alike meet their equals. */
typedef struct entry {
  const char *name;
  const int *grid, *block;
  double rank; /* told: its block; traced: its start */
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
  if (kinds != 0) return kinds;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->index - y->index;
}

static cs_status sort_told(const cs_kernel_info *told, int n, const int *block_of_launch,
                           int n_launches, entry *out) {
  for (int i = 0; i < n; i++) {
    int launch = told[i].launch;
    if (launch < 0 || launch >= n_launches) {
      return cs_error(CS_CODE_NOT_FOUND, "kernel %s is of launch %d; wanted: 0 to %d", told[i].name,
                      launch, n_launches - 1);
    }
    out[i] = (entry){told[i].name, told[i].grid, told[i].block, block_of_launch[launch], i};
  }
  qsort(out, (size_t)n, sizeof *out, by_kind);
  return CS_OK;
}

static void sort_traced(const cs_kernel_trace *traced, int n, entry *out) {
  for (int i = 0; i < n; i++) {
    out[i] = (entry){traced[i].name, traced[i].grid, traced[i].block, traced[i].start_us, i};
  }
  qsort(out, (size_t)n, sizeof *out, by_kind);
}

static cs_status unmatched(const entry *kernel, bool told) {
  return cs_error(CS_CODE_NOT_FOUND,
                  "kernel %s (grid %dx%dx%d, %dx%dx%d threads) %s as often as it was %s",
                  kernel->name, kernel->grid[0], kernel->grid[1], kernel->grid[2], kernel->block[0],
                  kernel->block[1], kernel->block[2],
                  told ? "was not traced" : "is not in the schedule", told ? "launched" : "traced");
}

static cs_status pair(const entry *told, int n, const entry *traced, int n_traced, int *block_of) {
  for (int i = 0; i < n || i < n_traced; i++) {
    if (i >= n) return unmatched(&traced[i], false);
    if (i >= n_traced) return unmatched(&told[i], true);
    int order = compare_kinds(&told[i], &traced[i]);
    if (order != 0) return order < 0 ? unmatched(&told[i], true) : unmatched(&traced[i], false);
    block_of[traced[i].index] = (int)told[i].rank;
  }
  return CS_OK;
}

static int by_start(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->index - y->index;
}

/* Nothing of a block starts before all of the blocks before have started. */
static cs_status check_order(entry *traced, int n, const int *block_of) {
  qsort(traced, (size_t)n, sizeof *traced, by_start);
  for (int i = 1; i < n; i++) {
    const entry *before = &traced[i - 1], *after = &traced[i];
    if (block_of[before->index] <= block_of[after->index]) continue;
    return cs_error(CS_CODE_NOT_FOUND,
                    "kernel %s of block %d started %.3f us before kernel %s of block %d; wanted: "
                    "blocks one after the other",
                    before->name, block_of[before->index], after->rank - before->rank, after->name,
                    block_of[after->index]);
  }
  return CS_OK;
}

cs_status cs_overlap_match(const cs_kernel_info *told, int n, const int *block_of_launch,
                           int n_launches, const cs_kernel_trace *traced, int n_traced,
                           int *block_of) {
  cs_status st = CS_OK;
  entry *a = cs_calloc((size_t)n + 1, sizeof *a), *b = cs_calloc((size_t)n_traced + 1, sizeof *b);
  if (!a || !b) {
    st = cs_no_memory("kernels", (size_t)n * sizeof *a);
    goto done;
  }
  CS_TRY(st, sort_told(told, n, block_of_launch, n_launches, a), done);
  sort_traced(traced, n_traced, b);
  CS_TRY(st, pair(a, n, b, n_traced, block_of), done);
  st = check_order(b, n_traced, block_of);
done:
  free(a);
  free(b);
  return st;
}
