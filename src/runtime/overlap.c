/* Concurrency achieved beside what the plan promised: the kernels of real runs as a tracer saw
 * them, block by block. Their times say what ran beside what; they are no latencies. */
#include "scheduler/overlap.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/progress.h"
#include "runtime/session.h"
#include "scheduler/task_labels.h"

#define TRACED_RUNS 5

cs_status cs_device_check_trace(const cs_device *device, const char *what) {
  CS_RETURN_IF_ERROR(cs_device_must_compute(device, what));
  const cs_backend_vtable *vtable = device->backend->vtable;
  if (vtable->schedule_trace) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  "%s: backend %s has no tracer of kernels, so what ran at the same time is not "
                  "known there; wanted: a device with one (cuda with CUPTI, cpu)",
                  what, vtable->name);
}

/* ---- Tracing ---- */

typedef struct tracing {
  const cs_session *session;
  int *block_of;        /* per task */
  int *block_of_launch; /* per launch: launches are the plan's tasks in its order */
  int n_blocks;
  cs_kernel_info *told;
  cs_kernel_trace *traced;
  int *traced_block; /* per traced kernel */
  int n_kernels;
  cs_overlap *predicted; /* per block, the whole last; so are these: */
  cs_overlap *runs;      /* TRACED_RUNS times */
  cs_overlap *achieved;  /* medians */
} tracing;

static void tracing_clear(tracing *t) {
  free(t->block_of);
  free(t->block_of_launch);
  free(t->told);
  free(t->traced);
  free(t->traced_block);
  free(t->predicted);
  free(t->runs);
  free(t->achieved);
}

static cs_status find_blocks(tracing *t) {
  const cs_planned *planned = &t->session->planned;
  size_t n = (size_t)planned->plan->n_tasks;
  t->block_of = cs_calloc(n, sizeof *t->block_of);
  t->block_of_launch = cs_calloc(n, sizeof *t->block_of_launch);
  if (!t->block_of || !t->block_of_launch) return cs_no_memory("blocks", n);
  CS_RETURN_IF_ERROR(cs_program_blocks(planned->program, t->block_of, &t->n_blocks));
  for (size_t p = 0; p < n; p++) {
    t->block_of_launch[p] = t->block_of[planned->plan->tasks[p].task];
  }
  size_t figures = (size_t)t->n_blocks + 1;
  t->predicted = cs_calloc(figures, sizeof *t->predicted);
  t->achieved = cs_calloc(figures, sizeof *t->achieved);
  t->runs = cs_calloc(figures * TRACED_RUNS, sizeof *t->runs);
  if (t->predicted && t->achieved && t->runs) return CS_OK;
  return cs_no_memory("blocks", figures * sizeof *t->runs);
}

static cs_status ask_kernels(tracing *t) {
  const cs_realised *realised = &t->session->realised;
  const cs_backend_vtable *vtable = realised->backend->vtable;
  int count = 0;
  size_t n = (size_t)realised->kernels;
  t->told = cs_calloc(n, sizeof *t->told);
  t->traced = cs_calloc(n, sizeof *t->traced);
  t->traced_block = cs_calloc(n, sizeof *t->traced_block);
  if (!t->told || !t->traced || !t->traced_block) return cs_no_memory("kernels", n);
  t->n_kernels = realised->kernels;
  if (!vtable->schedule_kernels) return CS_OK; /* one a launch, which the trace itself tells */
  CS_RETURN_IF_ERROR(
      vtable->schedule_kernels(realised->schedule, t->told, realised->kernels, &count));
  if (count != realised->kernels) {
    return cs_error(CS_CODE_INTERNAL, "a schedule of %d kernels has %d now", realised->kernels,
                    count);
  }
  return CS_OK;
}

/* Of a backend that tells the launch of each. */
static cs_status blocks_by_launch(tracing *t, int count) {
  for (int i = 0; i < count; i++) {
    int launch = t->traced[i].launch;
    if (launch < 0 || launch >= t->session->realised.n_launches) {
      return cs_error(CS_CODE_INTERNAL, "%s was traced as launch %d; wanted one of the plan",
                      t->traced[i].name, launch);
    }
    t->traced_block[i] = t->block_of_launch[launch];
  }
  return CS_OK;
}

static cs_status trace_once(tracing *t, cs_overlap *out) {
  const cs_realised *realised = &t->session->realised;
  int count = 0;
  CS_RETURN_IF_ERROR(realised->backend->vtable->schedule_trace(realised->schedule, t->traced,
                                                               t->n_kernels, &count));
  if (count > t->n_kernels) {
    return cs_error(CS_CODE_NOT_FOUND, "%d kernels traced of a schedule of %d", count,
                    t->n_kernels);
  }
  CS_RETURN_IF_ERROR(realised->backend->vtable->schedule_kernels
                         ? cs_overlap_match(t->told, t->n_kernels, t->block_of_launch,
                                            realised->n_launches, t->traced, count, t->traced_block)
                         : blocks_by_launch(t, count));
  return cs_overlap_traced(t->traced, t->traced_block, count, t->n_blocks, out);
}

/* The median of one figure over the runs; `member`: its place in cs_overlap. */
static cs_status median_figure(const tracing *t, int block, size_t member, double *out) {
  double values[TRACED_RUNS];
  cs_stats stats;
  for (int r = 0; r < TRACED_RUNS; r++) {
    const cs_overlap *run = &t->runs[r * (t->n_blocks + 1) + block];
    values[r] = *(const double *)(const void *)((const char *)run + member);
  }
  CS_RETURN_IF_ERROR(cs_stats_of(values, TRACED_RUNS, &stats));
  *out = stats.median;
  return CS_OK;
}

static cs_status take_medians(tracing *t) {
  for (int b = 0; b <= t->n_blocks; b++) {
    cs_overlap *out = &t->achieved[b];
    *out = t->runs[b];
    if (isnan(out->concurrency)) continue; /* no kernels in it, in any run */
    CS_RETURN_IF_ERROR(median_figure(t, b, offsetof(cs_overlap, busy_us), &out->busy_us));
    CS_RETURN_IF_ERROR(median_figure(t, b, offsetof(cs_overlap, active_us), &out->active_us));
    CS_RETURN_IF_ERROR(
        median_figure(t, b, offsetof(cs_overlap, overlapped_us), &out->overlapped_us));
    CS_RETURN_IF_ERROR(median_figure(t, b, offsetof(cs_overlap, span_us), &out->span_us));
    CS_RETURN_IF_ERROR(median_figure(t, b, offsetof(cs_overlap, concurrency), &out->concurrency));
  }
  return CS_OK;
}

/* ---- JSON ---- */

static json_t *figures_json(const cs_overlap *o) {
  if (isnan(o->concurrency)) return json_null();
  return json_pack("{s:f, s:f, s:f, s:f, s:f}", "concurrency", o->concurrency, "overlapped_us",
                   o->overlapped_us, "busy_us", o->busy_us, "active_us", o->active_us, "span_us",
                   o->span_us);
}

static json_t *block_json(const tracing *t, int block, const char *const *labels) {
  const cs_plan *plan = t->session->planned.plan;
  json_t *tasks = json_array();
  uint64_t streams = 0;
  for (int p = 0; p < plan->n_tasks; p++) {
    if (t->block_of_launch[p] != block) continue;
    json_array_append_new(tasks, json_string(labels[plan->tasks[p].task]));
    streams |= UINT64_C(1) << (plan->tasks[p].stream % 64);
  }
  return json_pack("{s:o, s:i, s:o, s:o}", "tasks", tasks, "streams", __builtin_popcountll(streams),
                   "predicted", figures_json(&t->predicted[block]), "achieved",
                   figures_json(&t->achieved[block]));
}

static cs_status to_text(const tracing *t, char **out) {
  cs_status st = CS_OK;
  json_t *index = NULL, *blocks = json_array(), *root = NULL;
  const char **labels = NULL;
  CS_TRY(st, cs_task_labels_index(t->session->planned.program, &index), done);
  CS_TRY(st, cs_task_labels_list(t->session->planned.program, index, &labels), done);
  for (int b = 0; b < t->n_blocks; b++) {
    if (json_array_append_new(blocks, block_json(t, b, labels)) != 0) {
      st = cs_no_memory("a block", 0);
      goto done;
    }
  }
  root = json_pack("{s:i, s:O, s:{s:o, s:o}}", "runs", TRACED_RUNS, "blocks", blocks, "whole",
                   "predicted", figures_json(&t->predicted[t->n_blocks]), "achieved",
                   figures_json(&t->achieved[t->n_blocks]));
  st = cs_json_take_text(root, out);
done:
  free(labels);
  json_decref(index);
  json_decref(blocks);
  return st;
}

cs_status cs_session_overlap_json(cs_session *session, char **out) {
  cs_status st = CS_OK;
  tracing t = {.session = session};
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_device_check_trace(session->device, "cs_session_overlap_json"));
  CS_TRY(st, find_blocks(&t), done);
  CS_TRY(st, cs_overlap_predicted(session->planned.plan, t.block_of, t.n_blocks, t.predicted),
         done);
  CS_TRY(st, ask_kernels(&t), done);
  for (int r = 0; r < TRACED_RUNS; r++) {
    CS_TRY(st, cs_session_check_cancelled(session, "tracing"), done);
    cs_progress_step("tracing", "runs", r, TRACED_RUNS, NULL);
    CS_TRY(st, trace_once(&t, &t.runs[r * (t.n_blocks + 1)]), done);
  }
  CS_TRY(st, take_medians(&t), done);
  st = to_text(&t, out);
done:
  tracing_clear(&t);
  return st;
}
