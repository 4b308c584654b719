#include "scheduler/overlap.h"

#include <math.h>
#include <stdlib.h>

/* ---- Intervals ---- */

typedef struct change {
  double at;
  int by; /* +1: one starts, −1: one ends */
} change;

/* Ends before starts: what begins where another ends does not overlap it. */
static int by_time(const void *a, const void *b) {
  const change *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->by - y->by;
}

cs_status cs_overlap_of(const cs_interval *intervals, int n, cs_overlap *out) {
  *out = (cs_overlap){.concurrency = NAN};
  if (n == 0) return CS_OK;
  change *changes = cs_calloc((size_t)n * 2, sizeof *changes);
  if (!changes) return cs_no_memory("intervals", (size_t)n * 2 * sizeof *changes);
  for (int i = 0; i < n; i++) {
    changes[(size_t)i * 2] = (change){intervals[i].start_us, 1};
    changes[(size_t)i * 2 + 1] = (change){intervals[i].end_us, -1};
    out->busy_us += intervals[i].end_us - intervals[i].start_us;
  }
  size_t n_changes = (size_t)n * 2;
  qsort(changes, n_changes, sizeof *changes, by_time);
  int running = 0;
  for (size_t c = 0; c + 1 < n_changes; c++) {
    double length = changes[c + 1].at - changes[c].at;
    running += changes[c].by;
    if (running >= 1) out->active_us += length;
    if (running >= 2) out->overlapped_us += length;
  }
  out->span_us = changes[n_changes - 1].at - changes[0].at;
  if (out->active_us > 0) out->concurrency = out->busy_us / out->active_us;
  free(changes);
  return CS_OK;
}

/* ---- Intervals by block ---- */

/* block_of[n] by interval. */
static cs_status of_blocks(const cs_interval *intervals, const int *block_of, int n, int n_blocks,
                           cs_overlap *out) {
  cs_interval *own = cs_calloc((size_t)n + 1, sizeof *own);
  if (!own) return cs_no_memory("intervals", (size_t)n * sizeof *own);
  cs_status st = cs_overlap_of(intervals, n, &out[n_blocks]);
  for (int b = 0; b < n_blocks && st == CS_OK; b++) {
    int n_own = 0;
    for (int i = 0; i < n; i++) {
      if (block_of[i] == b) own[n_own++] = intervals[i];
    }
    st = cs_overlap_of(own, n_own, &out[b]);
  }
  free(own);
  return st;
}

cs_status cs_overlap_predicted(const cs_plan *plan, const int *block_of, int n_blocks,
                               cs_overlap *out) {
  size_t n = (size_t)plan->n_tasks;
  cs_interval *intervals = cs_calloc(n, sizeof *intervals);
  int *own = cs_calloc(n, sizeof *own);
  cs_status st = intervals && own ? CS_OK : cs_no_memory("a timeline", n * sizeof *intervals);
  int launches = 0;
  for (size_t p = 0; st == CS_OK && p < n; p++) {
    const cs_plan_task *task = &plan->tasks[p];
    if (task->merged >= 0) continue; /* its leader's kernel is one interval */
    intervals[launches] = (cs_interval){task->start_us, task->end_us};
    own[launches++] = block_of[task->task];
  }
  if (st == CS_OK) st = of_blocks(intervals, own, launches, n_blocks, out);
  free(intervals);
  free(own);
  return st;
}

cs_status cs_overlap_traced(const cs_kernel_trace *traced, const int *block_of, int n, int n_blocks,
                            cs_overlap *out) {
  cs_interval *intervals = cs_calloc((size_t)n + 1, sizeof *intervals);
  if (!intervals) return cs_no_memory("a trace", (size_t)n * sizeof *intervals);
  for (int i = 0; i < n; i++) {
    intervals[i] = (cs_interval){traced[i].start_us, traced[i].end_us};
  }
  cs_status st = of_blocks(intervals, block_of, n, n_blocks, out);
  free(intervals);
  return st;
}
