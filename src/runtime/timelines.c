#include "runtime/timelines.h"

#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "runtime/kernel_list.h"

typedef struct tracing {
  const cs_session *session;
  cs_session_kernels kernels;
  cs_kernel_info *told; /* the kernels that are known, in the list's order */
  int *item_of;         /* of each, in the list */
  int n_told;
  cs_kernel_trace *traced; /* of all runs, one after the other */
  int n_traced;            /* of one run */
  int capacity;
  int *told_of;             /* per traced kernel of one run */
  cs_timeline_times *times; /* per item of the list */
} tracing;

static void tracing_clear(tracing *t) {
  cs_session_kernels_free(&t->kernels);
  free(t->told);
  free(t->item_of);
  free(t->traced);
  free(t->told_of);
  free(t->times);
}

static cs_status begin(tracing *t, int runs) {
  CS_RETURN_IF_ERROR(cs_session_kernels_make(t->session, &t->kernels));
  const cs_kernel_list *list = &t->kernels.list;
  size_t n = list->n + 1;
  t->capacity = t->session->realised.kernels;
  t->told = cs_calloc(n, sizeof *t->told);
  t->item_of = cs_calloc(n, sizeof *t->item_of);
  t->times = cs_calloc(n, sizeof *t->times);
  t->told_of = cs_calloc((size_t)t->capacity + 1, sizeof *t->told_of);
  t->traced = cs_calloc((size_t)t->capacity * (size_t)runs + 1, sizeof *t->traced);
  if (!t->told || !t->item_of || !t->times || !t->told_of || !t->traced) {
    return cs_no_memory("a trace", (size_t)t->capacity * (size_t)runs * sizeof *t->traced);
  }
  for (size_t i = 0; i < list->n; i++) {
    if (!list->items[i].info) continue;
    t->told[t->n_told] = *list->items[i].info;
    t->item_of[t->n_told++] = (int)i;
  }
  return CS_OK;
}

/* ---- Runs ---- */

static cs_status trace_once(tracing *t, int run, double *span_us) {
  const cs_realised *realised = &t->session->realised;
  cs_kernel_trace *traced = t->traced + (size_t)run * (size_t)t->capacity;
  int count = 0;
  CS_RETURN_IF_ERROR(
      realised->backend->vtable->schedule_trace(realised->schedule, traced, t->capacity, &count));
  if (count > t->capacity || (run > 0 && count != t->n_traced)) {
    return cs_error(CS_CODE_NOT_FOUND, "%d kernels traced, wanted %d", count,
                    run > 0 ? t->n_traced : t->capacity);
  }
  t->n_traced = count;
  *span_us = 0;
  for (int i = 0; i < count; i++) *span_us = fmax(*span_us, traced[i].end_us - traced[0].start_us);
  return CS_OK;
}

/* The run in the middle: as many are shorter as are longer, one more of an even number. */
static int median_run(const double *spans, int n) {
  for (int i = 0; i < n; i++) {
    int before = 0;
    for (int k = 0; k < n; k++) before += spans[k] < spans[i] || (spans[k] == spans[i] && k < i);
    if (before == n / 2) return i;
  }
  return 0;
}

/* ---- Which kernel is which ---- */

static cs_timeline_times times_of(const cs_kernel_trace *traced) {
  return (cs_timeline_times){traced->start_us, traced->end_us, traced->stream};
}

/* Of a backend that tells the launch of each. */
static cs_status by_launch(const tracing *t, const cs_kernel_trace *traced) {
  const cs_kernel_list *list = &t->kernels.list;
  for (int i = 0; i < t->n_traced; i++) {
    size_t item = 0;
    while (item < list->n && list->items[item].position != traced[i].launch) item++;
    if (item == list->n) {
      return cs_error(CS_CODE_INTERNAL, "%s was traced as launch %d; wanted one of the plan",
                      traced[i].name, traced[i].launch);
    }
    t->times[item] = times_of(&traced[i]);
  }
  return CS_OK;
}

static cs_status by_kind(const tracing *t, const cs_kernel_trace *traced, cs_trace_match *match) {
  CS_RETURN_IF_ERROR(cs_trace_match_launches(t->session->planned.plan, t->told, t->n_told, traced,
                                             t->n_traced, t->told_of, match));
  for (int i = 0; i < t->n_traced; i++) {
    t->times[t->item_of[t->told_of[i]]] = times_of(&traced[i]);
  }
  return CS_OK;
}

static cs_status take_run(tracing *t, cs_timelines *out) {
  const cs_kernel_list *list = &t->kernels.list;
  const cs_kernel_trace *traced = t->traced + (size_t)out->chosen * (size_t)t->capacity;
  for (size_t i = 0; i < list->n; i++) t->times[i] = (cs_timeline_times){NAN, NAN, -1};
  CS_RETURN_IF_ERROR(t->session->realised.backend->vtable->schedule_kernels
                         ? by_kind(t, traced, &out->match)
                         : by_launch(t, traced));
  for (size_t i = 0; i < list->n; i++) {
    out->untraced += list->items[i].of > 0 && isnan(t->times[i].start_us);
  }
  return cs_timeline_make(&t->kernels.input, list, t->times, CS_TIMELINE_MEASURED, &out->measured);
}

static cs_status trace_all(tracing *t, cs_timelines *out) {
  out->spans_us = cs_calloc((size_t)out->runs, sizeof *out->spans_us);
  if (!out->spans_us) return cs_no_memory("traced runs", (size_t)out->runs);
  for (int r = 0; r < out->runs; r++) {
    CS_RETURN_IF_ERROR(cs_session_check_cancelled(t->session, "tracing"));
    cs_progress_step("tracing", "runs", r, out->runs, NULL);
    CS_RETURN_IF_ERROR(trace_once(t, r, &out->spans_us[r]));
  }
  out->chosen = median_run(out->spans_us, out->runs);
  return take_run(t, out);
}

cs_status cs_session_timelines(cs_session *session, int runs, cs_timelines *out) {
  cs_status st = CS_OK;
  tracing t = {.session = session};
  bool simulated = cs_device_is_simulated(session->device);
  *out = (cs_timelines){.runs = simulated ? 0 : runs};
  if (runs < 0 || runs > CS_TRACE_MOST_RUNS) {
    return cs_error(CS_CODE_USAGE, "%d runs to trace, wanted at most %d", runs, CS_TRACE_MOST_RUNS);
  }
  if (out->runs > 0) CS_RETURN_IF_ERROR(cs_device_check_trace(session->device, "a trace"));
  CS_TRY(st, begin(&t, out->runs), done);
  CS_TRY(st,
         cs_timeline_make(&t.kernels.input, &t.kernels.list, NULL,
                          simulated ? CS_TIMELINE_SIMULATED : CS_TIMELINE_PLANNED, &out->planned),
         done);
  if (out->runs > 0) CS_TRY(st, trace_all(&t, out), done);
done:
  tracing_clear(&t);
  if (st != CS_OK) cs_timelines_free(out);
  return st;
}

void cs_timelines_free(cs_timelines *timelines) {
  cs_timeline_free(&timelines->planned);
  cs_timeline_free(&timelines->measured);
  free(timelines->spans_us);
  *timelines = (cs_timelines){0};
}
