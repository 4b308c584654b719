/* The local search over one window's candidates, streams and order, through the model. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/coselect.h"

typedef struct walk {
  cs_coselect *c;
  cs_rng rng;
  int first;        /* of the windows' order */
  int n, n_streams; /* streams that may be used: those of the starts and one more */
  bool merges;      /* there are candidates that merge */
  cs_placement now[CS_IOS_MOST_TASKS];
  double now_us;
} walk;

static int pick(walk *w, int n) {
  return (int)(cs_rng_u32(&w->rng) % (uint32_t)n);
}

/* ---- The best so far ---- */

static void keep(cs_coselect_variants *v, const cs_placement *places, double us) {
  size_t bytes = (size_t)v->n_tasks * sizeof *places;
  int at = 0;
  while (at < v->n && v->us[at] <= us) {
    if (v->us[at] == us && cs_placements_equal(v->places[at], places, v->n_tasks)) return;
    at++;
  }
  if (at == CS_COSELECT_VARIANTS) return;
  if (v->n < CS_COSELECT_VARIANTS) v->n++;
  for (int i = v->n - 1; i > at; i--) {
    v->us[i] = v->us[i - 1];
    memcpy(v->places[i], v->places[i - 1], bytes);
  }
  v->us[at] = us;
  memcpy(v->places[at], places, bytes);
}

/* ---- Moves ---- */

/* Whether a placement of [begin, end) depends on one of [from, to), directly. */
static bool depends(const walk *w, const cs_placement *places, int begin, int end, int from,
                    int to) {
  for (int i = begin; i < end; i++) {
    const cs_task *task = &w->c->input->program->tasks[places[i].task];
    for (int p = 0; p < task->n_preds; p++) {
      for (int k = from; k < to; k++) {
        if (task->preds[p] == places[k].task) return true;
      }
    }
  }
  return false;
}

static bool change_choice(walk *w, cs_placement *places) {
  int p = pick(w, w->n);
  cs_placement place = places[p];
  const cs_coselect_task *t = &w->c->tasks[place.task];
  place.choice = t->choices[pick(w, t->n)];
  if (places[p].choice == place.choice) return false;
  cs_coselect_change(w->c, places, w->n, p, place);
  return true;
}

static bool change_stream(walk *w, cs_placement *places) {
  int p = pick(w, w->n);
  cs_placement place = places[p];
  place.stream = pick(w, w->n_streams);
  if (places[p].stream == place.stream) return false;
  cs_coselect_change(w->c, places, w->n, p, place);
  return true;
}

/* One launch to another position, as far as dependencies let it. */
static bool change_order(walk *w, cs_placement *places) {
  int from = pick(w, w->n), to = pick(w, w->n);
  from = cs_launch_first(places, from);
  int at = from, size = cs_launch_end(places, w->n, from) - from;
  while (at > to) {
    int before = cs_launch_first(places, at - 1);
    if (depends(w, places, at, at + size, before, at)) break;
    cs_placements_move_up(places, before, at, size);
    at = before;
  }
  while (at + size - 1 < to) {
    int behind = at + size, end = cs_launch_end(places, w->n, behind);
    if (depends(w, places, behind, end, at, behind)) break;
    cs_placements_move_up(places, at, behind, end - behind);
    at += end - behind;
  }
  return at != from;
}

/* Two launches become one, with a candidate that all of it have. */
static bool join(walk *w, cs_placement *places) {
  int p = pick(w, w->n), q = pick(w, w->n);
  int tasks[] = {places[p].task, places[q].task};
  if (p == q) return false;
  const char *id = cs_coselect_common(w->c, tasks, 2, pick(w, 3));
  return id && cs_coselect_join(w->c, places, w->n, p, q, id);
}

/* One task leaves its launch, to any stream. */
static bool split(walk *w, cs_placement *places) {
  int p = pick(w, w->n), stream = pick(w, w->n_streams);
  if (cs_launch_end(places, w->n, p) - cs_launch_first(places, p) < 2) return false;
  p = cs_coselect_leave(places, w->n, p);
  places[p].stream = stream;
  return true;
}

static bool change(walk *w, cs_placement *places) {
  switch (pick(w, w->merges ? 6 : 4)) {
    case 0:
    case 1:
      return change_choice(w, places);
    case 2:
      return change_stream(w, places);
    case 3:
      return change_order(w, places);
    case 4:
      return join(w, places);
    default:
      return split(w, places);
  }
}

/* Takes what is no slower; now and then two changes at once, since one alone may not pay. */
static cs_status step(walk *w, cs_coselect_variants *out) {
  cs_placement next[CS_IOS_MOST_TASKS];
  memcpy(next, w->now, (size_t)w->n * sizeof *next);
  bool changed = change(w, next);
  if (pick(w, 3) == 0) changed = change(w, next) || changed;
  if (!changed) return CS_OK;
  double us = 0;
  CS_RETURN_IF_ERROR(cs_coselect_predict(w->c, next, w->n, &us));
  if (us > w->now_us) return CS_OK;
  memcpy(w->now, next, (size_t)w->n * sizeof *next);
  w->now_us = us;
  keep(out, next, us);
  return CS_OK;
}

static cs_status walk_on(walk *w, int steps, cs_coselect_variants *out) {
  CS_RETURN_IF_ERROR(cs_coselect_predict(w->c, w->now, w->n, &w->now_us));
  keep(out, w->now, w->now_us);
  for (int s = 0; s < steps; s++) CS_RETURN_IF_ERROR(step(w, out));
  return CS_OK;
}

/* Siblings as one launch, with the candidate that is fastest for all of them; how many launches. */
static int join_siblings(walk *w) {
  int joined = 0, siblings[CS_MERGE_MOST];
  for (int t = 0, n; t < w->n; t++) {
    int task = w->c->windows.order[w->first + t];
    n = cs_coselect_siblings(w->c, task, siblings);
    const char *id = n > 1 ? cs_coselect_common(w->c, siblings, n, 0) : NULL;
    if (id) joined += cs_coselect_join_tasks(w->c, w->now, w->n, siblings, n, id);
  }
  return joined;
}

static bool has_merging(const walk *w) {
  int n = 0;
  for (int i = 0; i < w->n; i++) {
    n += cs_coselect_may_merge(w->c, w->c->windows.order[w->first + i]);
  }
  return n > 1;
}

/* Each launch of the best found with the other priority, as long as that makes it faster. */
static cs_status prioritise(walk *w, cs_coselect_variants *out) {
  memcpy(w->now, out->places[0], (size_t)w->n * sizeof *w->now);
  w->now_us = out->us[0];
  for (int p = 0; p < w->n; p = cs_launch_end(w->now, w->n, p)) {
    cs_placement next[CS_IOS_MOST_TASKS];
    double us = 0;
    memcpy(next, w->now, (size_t)w->n * sizeof *next);
    cs_launch_toggle_priority(next, w->n, p);
    CS_RETURN_IF_ERROR(cs_coselect_predict(w->c, next, w->n, &us));
    if (us >= w->now_us) continue;
    memcpy(w->now, next, (size_t)w->n * sizeof *next);
    w->now_us = us;
    keep(out, next, us);
  }
  return CS_OK;
}

cs_status cs_coselect_search(cs_coselect *c, int window, const cs_configuration *const *starts,
                             int n_starts, int steps, uint64_t seed, cs_coselect_variants *out) {
  walk w = {.c = c,
            .first = c->windows.first[window],
            .n = c->windows.first[window + 1] - c->windows.first[window]};
  memset(out, 0, sizeof *out);
  out->n_tasks = w.n;
  w.merges = has_merging(&w);
  cs_rng_init(&w.rng, seed, (uint64_t)window);
  for (int s = 0; s < n_starts; s++) {
    int streams = cs_configuration_streams(starts[s]) + 1;
    if (streams > w.n_streams) w.n_streams = streams;
  }
  if (w.n_streams > c->input->max_streams) w.n_streams = c->input->max_streams;
  if (w.n == 1) steps = 0; /* nothing beside it: the fastest alone is the fastest */
  for (int s = 0; s < n_starts; s++) {
    (void)cs_coselect_gather(c, starts[s], window, w.now);
    CS_RETURN_IF_ERROR(walk_on(&w, steps, out));
  }
  for (int s = 0; w.merges && n_starts > 0 && s < 2; s++) {
    if (s == 0) memcpy(w.now, out->places[0], (size_t)w.n * sizeof *w.now);
    if (s == 1) (void)cs_coselect_gather(c, starts[0], window, w.now);
    if (join_siblings(&w) > 0) CS_RETURN_IF_ERROR(walk_on(&w, steps, out));
  }
  bool worth = c->input->priorities && c->model && w.n > 1 && out->n > 0;
  return worth ? prioritise(&w, out) : CS_OK;
}
