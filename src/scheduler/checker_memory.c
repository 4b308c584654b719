/* The plan checker's memory part. A region is a buffer or a workspace; two that overlap must be
 * used one wholly before the other. */
#include <inttypes.h>
#include <stdlib.h>

#include "scheduler/checker.h"

typedef struct region {
  const char *kind, *name;
  int64_t offset, bytes;
  bool whole, used; /* live for the whole plan; touched by a task */
  int *last;        /* per stream: index of its last use, plus one (0: none) */
  int *finished;    /* per stream: least clock of its uses */
} region;

static void touch(const cs_checker *check, region *r, int p) {
  int streams = check->plan->n_streams, own = check->plan->tasks[p].stream;
  const int *clock = check->clock + (size_t)p * (size_t)streams;
  for (int s = 0; s < streams; s++)
    if (!r->used || clock[s] < r->finished[s]) r->finished[s] = clock[s];
  if (check->index[p] + 1 > r->last[own]) r->last[own] = check->index[p] + 1;
  r->used = true;
}

static void collect(const cs_checker *check, region *regions) {
  const cs_program *program = check->program;
  const cs_plan *plan = check->plan;
  for (int b = 0; b < program->n_buffers; b++) {
    region *r = &regions[b];
    r->kind = "buffer";
    r->name = program->buffers[b].name;
    r->offset = plan->buffer_offsets[b];
    r->bytes = program->buffers[b].bytes;
    r->whole = program->buffers[b].kind != CS_BUFFER_INTERMEDIATE;
  }
  for (int p = 0; p < plan->n_tasks; p++) {
    const cs_task *task = &program->tasks[plan->tasks[p].task];
    region *r = &regions[program->n_buffers + p];
    r->kind = "workspace of";
    r->name = task->name;
    r->offset = plan->tasks[p].workspace_offset;
    r->bytes = plan->tasks[p].workspace_bytes;
    touch(check, r, p);
    for (int i = 0; i < task->desc.n_inputs; i++)
      touch(check, &regions[program->tensors[task->inputs[i]].buffer], p);
    touch(check, &regions[program->tensors[task->output].buffer], p);
  }
}

static cs_status check_bounds(const cs_checker *check, const region *r) {
  int64_t arena = check->plan->arena_bytes;
  if (r->bytes < 0 || r->offset < 0 || r->bytes > arena || r->offset > arena - r->bytes)
    return cs_error(CS_CODE_INTERNAL,
                    "%s %s at %" PRId64 " with %" PRId64
                    " bytes is not inside the arena of %" PRId64 " bytes",
                    r->kind, r->name, r->offset, r->bytes, arena);
  if (r->offset % 256 != 0)
    return cs_error(CS_CODE_INTERNAL, "%s %s is at %" PRId64 ", wanted a multiple of 256", r->kind,
                    r->name, r->offset);
  return CS_OK;
}

/* Every use of a has finished before any use of b starts. */
static bool wholly_before(const region *a, const region *b, int streams) {
  for (int s = 0; s < streams; s++)
    if (a->last[s] > b->finished[s]) return false;
  return true;
}

static cs_status check_pair(const region *a, const region *b, int streams) {
  if (!a->whole && !b->whole && (wholly_before(a, b, streams) || wholly_before(b, a, streams)))
    return CS_OK;
  return cs_error(CS_CODE_INTERNAL,
                  "%s %s [%" PRId64 ", %" PRId64 ") and %s %s [%" PRId64 ", %" PRId64
                  ") share bytes and may be live at the same time",
                  a->kind, a->name, a->offset, a->offset + a->bytes, b->kind, b->name, b->offset,
                  b->offset + b->bytes);
}

static int by_offset(const void *a, const void *b) {
  const region *x = *(const region *const *)a, *y = *(const region *const *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x < y ? -1 : x > y;
}

static cs_status check_sharing(const cs_checker *check, region *const *sorted, int n) {
  for (int i = 0; i < n; i++) {
    int64_t end = sorted[i]->offset + sorted[i]->bytes;
    for (int j = i + 1; j < n && sorted[j]->offset < end; j++)
      CS_RETURN_IF_ERROR(check_pair(sorted[i], sorted[j], check->plan->n_streams));
  }
  return CS_OK;
}

cs_status cs_checker_memory(const cs_checker *check, int64_t memory_limit) {
  const cs_plan *plan = check->plan;
  if (plan->arena_bytes < 0 || (memory_limit > 0 && plan->arena_bytes > memory_limit))
    return cs_error(CS_CODE_INTERNAL,
                    "the arena has %" PRId64 " bytes, wanted 0 to %" PRId64 " (the memory limit)",
                    plan->arena_bytes, memory_limit);
  cs_status st = CS_OK;
  int n_regions = check->program->n_buffers + plan->n_tasks, n = 0;
  size_t count = (size_t)n_regions, streams = (size_t)plan->n_streams;
  region *regions = cs_calloc(count, sizeof *regions);
  region **sorted = cs_calloc(count, sizeof *sorted);
  int *clocks = cs_calloc(2 * count * streams, sizeof *clocks);
  if (!regions || !sorted || !clocks) {
    st = cs_no_memory("the plan checker", 2 * count * streams * sizeof *clocks);
    goto done;
  }
  for (size_t i = 0; i < count; i++) {
    regions[i].last = clocks + 2 * i * streams;
    regions[i].finished = regions[i].last + streams;
  }
  collect(check, regions);
  for (size_t i = 0; i < count; i++) {
    CS_TRY(st, check_bounds(check, &regions[i]), done);
    if (regions[i].bytes > 0 && (regions[i].whole || regions[i].used)) sorted[n++] = &regions[i];
  }
  qsort(sorted, (size_t)n, sizeof *sorted, by_offset);
  CS_TRY(st, check_sharing(check, sorted, n), done);
done:
  free(regions);
  free(sorted);
  free(clocks);
  return st;
}
