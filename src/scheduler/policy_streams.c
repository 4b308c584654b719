/* Streams after Nimble (Kwon et al., "Nimble: Lightweight and Parallel GPU Task Scheduling for Deep
 * Learning", NeurIPS 2020), section 4.2: a maximum matching of the minimum equivalent graph gives
 * chains; a chain is a stream; only its edges that cross streams need a synchronisation. This keeps
 * every pair of independent tasks on different streams with the fewest synchronisations.
 *
 * What differs: a chain that lies wholly behind another one shares its stream (a second matching),
 * which costs no concurrency and leaves about as many streams as the graph is wide; with more
 * chains than max_streams, the longest keep streams of their own and each further chain joins the
 * stream that it overlaps least; the launch order is by predicted start, the longest remaining path
 * first among equals. */
#include <stdlib.h>

#include "scheduler/internal.h"

typedef struct streams_state {
  const cs_policy_input *input;
  int n;
  cs_dag dag, meg;     /* dependencies; their minimum equivalent graph */
  uint64_t *ancestors; /* per task */
  double *time_us, *start_us, *remaining_us;
  int *next, *prev;  /* matching */
  int *chain_of;     /* per task; then its stream */
  int *first, *last; /* tasks of a chain */
  int *merged;       /* per chain: the chain or stream that it joins */
  double *work;      /* per chain */
  int n_chains;
} streams_state;

static void state_free(streams_state *s) {
  cs_dag_free(&s->dag);
  cs_dag_free(&s->meg);
  free(s->ancestors);
  free(s->time_us);
  free(s->start_us);
  free(s->remaining_us);
  free(s->next);
  free(s->prev);
  free(s->chain_of);
  free(s->first);
  free(s->last);
  free(s->merged);
  free(s->work);
}

static cs_status state_init(streams_state *s, const cs_policy_input *input) {
  size_t n = (size_t)input->program->n_tasks;
  s->input = input;
  s->n = input->program->n_tasks;
  s->time_us = cs_calloc(n, sizeof *s->time_us);
  s->start_us = cs_calloc(n, sizeof *s->start_us);
  s->remaining_us = cs_calloc(n, sizeof *s->remaining_us);
  s->next = cs_calloc(n, sizeof *s->next);
  s->prev = cs_calloc(n, sizeof *s->prev);
  s->chain_of = cs_calloc(n, sizeof *s->chain_of);
  s->first = cs_calloc(n, sizeof *s->first);
  s->last = cs_calloc(n, sizeof *s->last);
  s->merged = cs_calloc(n, sizeof *s->merged);
  s->work = cs_calloc(n, sizeof *s->work);
  if (!s->time_us || !s->start_us || !s->remaining_us || !s->next || !s->prev || !s->chain_of ||
      !s->first || !s->last || !s->merged || !s->work)
    return cs_no_memory("the streams policy", n);
  CS_RETURN_IF_ERROR(cs_dag_of_program(input->program, &s->dag));
  CS_RETURN_IF_ERROR(cs_dag_reduce(&s->dag, &s->meg));
  s->ancestors = cs_dag_ancestors(&s->meg);
  if (!s->ancestors) return cs_no_memory("the ancestors of tasks", n);
  for (int t = 0; t < s->n; t++) s->time_us[t] = input->choices[t].choices[0].cold_us;
  for (int t = 0; t < s->n; t++)
    for (int e = s->meg.first[t]; e < s->meg.first[t + 1]; e++) {
      int u = s->meg.from[e];
      double end = s->start_us[u] + s->time_us[u];
      if (end > s->start_us[t]) s->start_us[t] = end;
    }
  return cs_dag_remaining(&s->meg, s->time_us, s->remaining_us);
}

/* Chains of the minimum equivalent graph, numbered by their first tasks. */
static cs_status find_chains(streams_state *s) {
  int pairs;
  CS_RETURN_IF_ERROR(cs_bipartite_match(&s->meg, s->next, s->prev, &pairs));
  for (int t = 0; t < s->n; t++) {
    int chain = s->prev[t] >= 0 ? s->chain_of[s->prev[t]] : s->n_chains++;
    if (s->prev[t] < 0) s->first[chain] = t;
    s->chain_of[t] = chain;
    s->last[chain] = t;
    s->work[chain] += s->time_us[t];
  }
  return CS_OK;
}

/* Edges a → b between chains where all of a happens before all of b. */
static cs_status chain_order(const streams_state *s, cs_dag *out) {
  *out = (cs_dag){.n = s->n_chains};
  size_t words = cs_bit_words(s->n), capacity = 0;
  out->first = cs_calloc((size_t)s->n_chains + 1, sizeof *out->first);
  if (!out->first) return cs_no_memory("chains", (size_t)s->n_chains * sizeof *out->first);
  for (int b = 0; b < s->n_chains; b++) {
    const uint64_t *before = s->ancestors + (size_t)s->first[b] * words;
    for (int a = 0; a < b; a++) {
      if (!cs_bit_get(before, s->last[a])) continue;
      CS_RETURN_IF_ERROR(
          cs_grow(&out->from, &capacity, (size_t)out->n_edges + 1, sizeof *out->from));
      out->from[out->n_edges++] = a;
    }
    out->first[b + 1] = out->n_edges;
  }
  return CS_OK;
}

/* Every task moves to merged[its chain]; n chains remain. */
static void apply_merge(streams_state *s, int n) {
  for (int c = 0; c < n; c++) s->work[c] = 0;
  for (int t = 0; t < s->n; t++) {
    s->chain_of[t] = s->merged[s->chain_of[t]];
    s->work[s->chain_of[t]] += s->time_us[t];
  }
  s->n_chains = n;
}

/* Chains that follow one another share a stream. */
static cs_status join_chains(streams_state *s) {
  cs_dag order = {0};
  int pairs, n = 0;
  cs_status st = CS_OK;
  CS_TRY(st, chain_order(s, &order), done);
  CS_TRY(st, cs_bipartite_match(&order, s->next, s->prev, &pairs), done);
  for (int c = 0; c < s->n_chains; c++)
    s->merged[c] = s->prev[c] >= 0 ? s->merged[s->prev[c]] : n++;
  apply_merge(s, n);
done:
  cs_dag_free(&order);
  return st;
}

/* Adds to loss_us[stream] the time during which tasks of chain c overlap tasks already on the
 * stream, all started as early as possible. */
static void overlaps(const streams_state *s, int c, double *loss_us) {
  for (int t = 0; t < s->n; t++) {
    if (s->chain_of[t] != c) continue;
    double start = s->start_us[t], end = start + s->time_us[t];
    for (int u = 0; u < s->n; u++) {
      int stream = s->merged[s->chain_of[u]];
      if (stream < 0) continue;
      double from = start > s->start_us[u] ? start : s->start_us[u];
      double to = s->start_us[u] + s->time_us[u];
      if (end < to) to = end;
      if (to > from) loss_us[stream] += to - from;
    }
  }
}

static int longest_left(const streams_state *s) {
  int best = -1;
  for (int c = 0; c < s->n_chains; c++)
    if (s->merged[c] < 0 && (best < 0 || s->work[c] > s->work[best])) best = c;
  return best;
}

/* At most max_streams streams: chains by decreasing work, each onto the stream that it overlaps
 * least, then the one with least work. */
static cs_status limit_streams(streams_state *s, int max_streams) {
  if (s->n_chains <= max_streams) return CS_OK;
  cs_status st = CS_OK;
  double *loss_us = cs_calloc((size_t)max_streams, sizeof *loss_us);
  double *load_us = cs_calloc((size_t)max_streams, sizeof *load_us);
  if (!loss_us || !load_us)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for %d streams", max_streams);
  for (int c = 0; c < s->n_chains; c++) s->merged[c] = -1;
  for (int c = longest_left(s); c >= 0; c = longest_left(s)) {
    for (int stream = 0; stream < max_streams; stream++) loss_us[stream] = 0;
    overlaps(s, c, loss_us);
    int best = 0;
    for (int stream = 1; stream < max_streams; stream++)
      if (loss_us[stream] < loss_us[best] ||
          (loss_us[stream] == loss_us[best] && load_us[stream] < load_us[best]))
        best = stream;
    s->merged[c] = best;
    load_us[best] += s->work[c];
  }
  apply_merge(s, max_streams);
done:
  free(loss_us);
  free(load_us);
  return st;
}

/* ---- Launch order ---- */

typedef struct launch_state {
  double *free_us; /* per stream */
  double *end_us;  /* per task */
  bool *launched;
  int *number_of; /* per chain: its stream's number, by first appearance; -1 */
} launch_state;

static double earliest_start(const streams_state *s, const launch_state *l, int t) {
  double start = l->free_us[s->chain_of[t]];
  for (int e = s->meg.first[t]; e < s->meg.first[t + 1]; e++)
    if (l->end_us[s->meg.from[e]] > start) start = l->end_us[s->meg.from[e]];
  return start;
}

static bool is_ready(const streams_state *s, const launch_state *l, int t) {
  if (l->launched[t]) return false;
  for (int e = s->meg.first[t]; e < s->meg.first[t + 1]; e++)
    if (!l->launched[s->meg.from[e]]) return false;
  return true;
}

static int pick(const streams_state *s, const launch_state *l, double *start_us) {
  int best = -1;
  for (int t = 0; t < s->n; t++) {
    if (!is_ready(s, l, t)) continue;
    double start = earliest_start(s, l, t);
    if (best < 0 || start < *start_us ||
        (start == *start_us && s->remaining_us[t] > s->remaining_us[best])) {
      best = t;
      *start_us = start;
    }
  }
  return best;
}

static cs_status launch(const streams_state *s, launch_state *l, cs_plan *out) {
  for (int c = 0; c < s->n_chains; c++) l->number_of[c] = -1;
  for (int p = 0; p < s->n; p++) {
    double start_us = 0;
    int t = pick(s, l, &start_us), chain = s->chain_of[t];
    l->launched[t] = true;
    l->end_us[t] = l->free_us[chain] = start_us + s->time_us[t];
    if (l->number_of[chain] < 0) l->number_of[chain] = out->n_streams++;
    CS_RETURN_IF_ERROR(
        cs_plan_place(out, p, t, l->number_of[chain], s->input->choices[t].choices[0].candidate));
  }
  if (out->n_streams == 0) out->n_streams = 1;
  return CS_OK;
}

static cs_status launch_all(const streams_state *s, cs_plan *out) {
  cs_status st = CS_OK;
  size_t n = (size_t)s->n;
  launch_state l = {.free_us = cs_calloc(n, sizeof *l.free_us),
                    .end_us = cs_calloc(n, sizeof *l.end_us),
                    .launched = cs_calloc(n, sizeof *l.launched),
                    .number_of = cs_calloc(n, sizeof *l.number_of)};
  if (!l.free_us || !l.end_us || !l.launched || !l.number_of)
    CS_FAIL(st, done, CS_CODE_NO_MEMORY, "out of memory for the order of %zu tasks", n);
  CS_TRY(st, launch(s, &l, out), done);
done:
  free(l.free_us);
  free(l.end_us);
  free(l.launched);
  free(l.number_of);
  return st;
}

static cs_status plan_streams(const cs_policy_input *input, cs_plan *out) {
  cs_status st = CS_OK;
  streams_state s = {0};
  CS_TRY(st, cs_plan_begin(input->program, out), done);
  CS_TRY(st, state_init(&s, input), done);
  CS_TRY(st, find_chains(&s), done);
  CS_TRY(st, join_chains(&s), done);
  CS_TRY(st, limit_streams(&s, input->max_streams), done);
  CS_TRY(st, launch_all(&s, out), done);
  CS_TRY(st, cs_plan_fill_waits(out, input->program), done);
done:
  state_free(&s);
  return st;
}

const cs_policy cs_policy_streams = {
    .name = "streams",
    .source =
        "Nimble (Kwon et al., NeurIPS 2020): minimum equivalent graph and bipartite matching; "
        "here chains that follow one another share a stream, the number of streams is "
        "limited, and tasks are launched by predicted start, longest remaining path first",
    .plan = plan_streams,
};
