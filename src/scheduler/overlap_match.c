/* Which block of a plan each traced kernel belongs to. */
#include <stdlib.h>

#include "scheduler/kernel_kinds.h"
#include "scheduler/overlap.h"

/* A kernel, told or traced: both sides sorted alike meet their equals. */
typedef struct entry {
  int kind;
  double rank; /* told: its block; traced: its start */
  int index;
} entry;

static int by_start(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->index - y->index;
}

static int by_kind(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return x->kind != y->kind ? x->kind - y->kind : by_start(a, b);
}

static cs_status check_launches(const cs_kernel_info *told, int n, int n_launches) {
  for (int i = 0; i < n; i++) {
    if (told[i].launch >= 0 && told[i].launch < n_launches) continue;
    return cs_error(CS_CODE_NOT_FOUND, "kernel %s is of launch %d; wanted: 0 to %d", told[i].name,
                    told[i].launch, n_launches - 1);
  }
  return CS_OK;
}

/* Nothing of a block starts before all of the blocks before have started. `order`: by start. */
static cs_status check_order(const entry *order, int n, const cs_kernel_trace *traced,
                             const int *block_of) {
  for (int i = 1; i < n; i++) {
    const entry *before = &order[i - 1], *after = &order[i];
    if (block_of[before->index] <= block_of[after->index]) continue;
    return cs_error(CS_CODE_NOT_FOUND,
                    "kernel %s of block %d started %.3f us before kernel %s of block %d; wanted: "
                    "blocks one after the other",
                    traced[before->index].name, block_of[before->index], after->rank - before->rank,
                    traced[after->index].name, block_of[after->index]);
  }
  return CS_OK;
}

cs_status cs_overlap_match(const cs_kernel_info *told, int n, const int *block_of_launch,
                           int n_launches, const cs_kernel_trace *traced, int n_traced,
                           int *block_of) {
  cs_status st = CS_OK;
  size_t room = (size_t)n + (size_t)n_traced + 2;
  entry *entries = cs_calloc(room, sizeof *entries);
  int *kinds = cs_calloc(room, sizeof *kinds);
  if (!entries || !kinds) {
    st = cs_no_memory("kernels", room * sizeof *entries);
    goto done;
  }
  entry *a = entries, *b = entries + n;
  CS_TRY(st, check_launches(told, n, n_launches), done);
  CS_TRY(st, cs_kernel_kinds(told, n, traced, n_traced, kinds, kinds + n), done);
  for (int i = 0; i < n; i++) a[i] = (entry){kinds[i], block_of_launch[told[i].launch], i};
  for (int i = 0; i < n; i++) b[i] = (entry){kinds[n + i], traced[i].start_us, i};
  qsort(a, (size_t)n, sizeof *a, by_kind);
  qsort(b, (size_t)n, sizeof *b, by_kind);
  for (int i = 0; i < n; i++) block_of[b[i].index] = (int)a[i].rank;
  qsort(b, (size_t)n, sizeof *b, by_start);
  st = check_order(b, n, traced, block_of);
done:
  free(entries);
  free(kinds);
  return st;
}
