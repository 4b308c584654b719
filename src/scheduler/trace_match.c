#include "scheduler/trace_match.h"

#include <math.h>
#include <stdlib.h>

#include "scheduler/kernel_kinds.h"

/* Kernels tried at all places together before a search gives up: an unlucky choice is found out a
 * few kernels later. */
#define MOST_TRIES 100000

/* How early a kernel may seem to start, in microseconds, tried one after the other: clocks of
 * streams differ by less than one. */
static const double slacks[] = {0, 1, INFINITY};

typedef struct matcher {
  const cs_plan *plan;
  const cs_kernel_info *told;
  const cs_kernel_trace *traced;
  int n;
  int *told_kind, *traced_kind;
  int *first, *last; /* per plan position: its kernels, as a range of `told` */
  int *before;       /* per plan position: the launch before on its stream; −1: none */
  int *traced_of;    /* per told kernel; −1: not placed */
  int *told_of;      /* per traced kernel; −1: not placed */
  int *by_kind;      /* told kernels by kind, then as they are */
  int *kind_begin;   /* per kind; one entry more */
  int *tried;        /* per traced kernel: choices that were taken already */
  double slack;
  int tries, furthest;
} matcher;

/* ---- What the plan says ---- */

static cs_status index_launches(matcher *m) {
  int last_on[CS_MAX_SPLIT_STREAMS * 16], n_streams = m->plan->n_streams;
  if (n_streams > (int)(sizeof last_on / sizeof last_on[0])) {
    return cs_error(CS_CODE_INTERNAL, "a plan of %d streams", n_streams);
  }
  for (int s = 0; s < n_streams; s++) last_on[s] = -1;
  for (int i = 0; i < m->n; i++) {
    int p = m->told[i].launch;
    if (p < 0 || p >= m->plan->n_tasks) {
      return cs_error(CS_CODE_NOT_FOUND, "kernel %s is of launch %d; wanted: 0 to %d",
                      m->told[i].name, p, m->plan->n_tasks - 1);
    }
    if (m->last[p] == 0) m->first[p] = i;
    if (m->last[p] != 0 && m->last[p] != i) {
      return cs_error(CS_CODE_INTERNAL, "the kernels of launch %d do not follow each other", p);
    }
    m->last[p] = i + 1;
  }
  for (int p = 0; p < m->plan->n_tasks; p++) {
    const cs_plan_task *task = &m->plan->tasks[p];
    m->before[p] = last_on[task->stream];
    if (task->merged < 0 && m->last[p] > m->first[p]) last_on[task->stream] = p;
  }
  return CS_OK;
}

static void group_by_kind(matcher *m) {
  int n_kinds = 0;
  for (int i = 0; i < m->n; i++) {
    m->kind_begin[m->told_kind[i] + 1]++;
    if (m->told_kind[i] >= n_kinds) n_kinds = m->told_kind[i] + 1;
  }
  for (int k = 0; k < n_kinds; k++) m->kind_begin[k + 1] += m->kind_begin[k];
  for (int i = m->n - 1; i >= 0; i--) m->by_kind[--m->kind_begin[m->told_kind[i] + 1]] = i;
  for (int k = 0; k < n_kinds; k++) m->kind_begin[k] = m->kind_begin[k + 1];
  m->kind_begin[n_kinds] = m->n;
}

/* ---- Whether a kernel can be the one that starts now ---- */

/* Microseconds by which told kernel `i`, if it starts at `start`, starts before `other` has ended
 * (0: it does not); INFINITY: `other` has not started. */
static double too_early(const matcher *m, int i, int other, double start) {
  int traced = m->traced_of[other];
  if (traced < 0) return INFINITY;
  if (m->told[i].early) return 0;
  return fmax(0, m->traced[traced].end_us - start);
}

/* The same of a whole launch. One without kernels: of what it waits for, is not followed further:
 * only copies that the driver makes have none. */
static double before_launch(const matcher *m, int i, int launch, double start) {
  int leader = cs_plan_leader(m->plan, launch);
  return m->last[leader] > m->first[leader] ? too_early(m, i, m->last[leader] - 1, start) : 0;
}

/* The most of all that it waits for. */
static double earliness(const matcher *m, int i, double start) {
  int p = m->told[i].launch;
  const cs_plan_task *task = &m->plan->tasks[p];
  if (i > m->first[p]) return too_early(m, i, i - 1, start);
  double most = m->before[p] >= 0 ? before_launch(m, i, m->before[p], start) : 0;
  for (int w = 0; w < task->n_waits; w++) {
    most = fmax(most, before_launch(m, i, task->waits[w], start));
  }
  return most;
}

static bool can_start(const matcher *m, int i, int t) {
  double early = earliness(m, i, m->traced[t].start_us);
  return !isinf(early) && early <= m->slack;
}

/* The plan's stream that the kernel's own stream served last; −1: none yet. */
static int likely_stream(const matcher *m, int t) {
  for (int u = t - 1; u >= 0 && m->traced[t].stream >= 0; u--) {
    if (m->traced[u].stream != m->traced[t].stream) continue;
    return m->plan->tasks[m->told[m->told_of[u]].launch].stream;
  }
  return -1;
}

/* Choice number `index` of traced kernel t: those on the likely stream first. −1: no more.
 * *n_choices: how many could be it. */
static int choose(const matcher *m, int t, int index, int *n_choices) {
  int kind = m->traced_kind[t], likely = likely_stream(m, t), chosen = -1, n = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int k = m->kind_begin[kind]; k < m->kind_begin[kind + 1]; k++) {
      int i = m->by_kind[k];
      bool is_likely = m->plan->tasks[m->told[i].launch].stream == likely;
      if (m->traced_of[i] >= 0 || is_likely != (pass == 0) || !can_start(m, i, t)) continue;
      if (n++ == index) chosen = i;
    }
  }
  *n_choices = n;
  return chosen;
}

/* ---- Search ---- */

static void take_back(matcher *m, int t) {
  m->traced_of[m->told_of[t]] = -1;
  m->told_of[t] = -1;
}

static bool search(matcher *m) {
  m->tries = m->furthest = 0;
  for (int i = 0; i < m->n; i++) m->traced_of[i] = m->told_of[i] = -1;
  for (int i = 0; i < m->n; i++) m->tried[i] = 0;
  for (int t = 0; t < m->n;) {
    int n, i = choose(m, t, m->tried[t]++, &n);
    if (i >= 0) {
      m->told_of[t] = i;
      m->traced_of[i] = t++;
      if (t > m->furthest) m->furthest = t;
      continue;
    }
    m->tried[t] = 0;
    if (t == 0 || ++m->tries > MOST_TRIES) return false;
    take_back(m, --t);
  }
  return true;
}

/* Of the order that was found, replayed. */
static void judge(matcher *m, cs_trace_match *out) {
  *out = (cs_trace_match){0};
  for (int i = 0; i < m->n; i++) m->traced_of[i] = -1;
  for (int t = 0; t < m->n; t++) {
    int n, i = m->told_of[t];
    (void)choose(m, t, 0, &n);
    out->ambiguous += n > 1;
    m->traced_of[i] = t;
  }
}

static cs_status match(matcher *m, cs_trace_match *out) {
  for (size_t s = 0; s < sizeof slacks / sizeof slacks[0]; s++) {
    m->slack = slacks[s];
    if (!search(m)) continue;
    judge(m, out);
    return CS_OK;
  }
  const cs_kernel_trace *kernel = &m->traced[m->furthest < m->n ? m->furthest : m->n - 1];
  return cs_error(CS_CODE_NOT_FOUND,
                  "kernel %s, which started %.3f us after the first one, is at no place that the "
                  "plan's streams and waits allow; wanted: kernels in the plan's order",
                  kernel->name, kernel->start_us);
}

static void matcher_clear(matcher *m) {
  free(m->told_kind);
  free(m->traced_kind);
  free(m->first);
  free(m->last);
  free(m->before);
  free(m->traced_of);
  free(m->by_kind);
  free(m->kind_begin);
  free(m->tried);
}

static cs_status allocate(matcher *m, int n_traced) {
  size_t n = (size_t)m->n + 2, launches = (size_t)m->plan->n_tasks + 1;
  m->told_kind = cs_calloc(n, sizeof *m->told_kind);
  m->traced_kind = cs_calloc((size_t)n_traced + 1, sizeof *m->traced_kind);
  m->first = cs_calloc(launches, sizeof *m->first);
  m->last = cs_calloc(launches, sizeof *m->last);
  m->before = cs_calloc(launches, sizeof *m->before);
  m->traced_of = cs_calloc(n, sizeof *m->traced_of);
  m->by_kind = cs_calloc(n, sizeof *m->by_kind);
  m->kind_begin = cs_calloc(n + 1, sizeof *m->kind_begin);
  m->tried = cs_calloc(n, sizeof *m->tried);
  bool all = m->told_kind && m->traced_kind && m->first && m->last && m->before && m->traced_of &&
             m->by_kind && m->kind_begin && m->tried;
  return all ? CS_OK : cs_no_memory("kernels to match", n * sizeof *m->told_kind);
}

cs_status cs_trace_match_launches(const cs_plan *plan, const cs_kernel_info *told, int n,
                                  const cs_kernel_trace *traced, int n_traced, int *told_of,
                                  cs_trace_match *out) {
  cs_status st = CS_OK;
  matcher m = {.plan = plan, .told = told, .traced = traced, .n = n, .told_of = told_of};
  CS_TRY(st, allocate(&m, n_traced), done);
  CS_TRY(st, cs_kernel_kinds(told, n, traced, n_traced, m.told_kind, m.traced_kind), done);
  CS_TRY(st, index_launches(&m), done);
  group_by_kind(&m);
  st = match(&m, out);
done:
  matcher_clear(&m);
  return st;
}
