/* The local search over one window's candidates, streams and order, through the model. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/coselect.h"

typedef struct walk {
  cs_coselect *c;
  cs_rng rng;
  int n, n_streams; /* streams that may be used: those of the starts and one more */
  cs_placement now[CS_IOS_MOST_TASKS];
  double now_us;
} walk;

static int pick(walk *w, int n) {
  return (int)(cs_rng_u32(&w->rng) % (uint32_t)n);
}

/* ---- The best so far ---- */

static bool same_places(const cs_placement *a, const cs_placement *b, int n) {
  for (int i = 0; i < n; i++) {
    if (a[i].task != b[i].task || a[i].stream != b[i].stream || a[i].choice != b[i].choice) {
      return false;
    }
  }
  return true;
}

static void keep(cs_coselect_variants *v, const cs_placement *places, double us) {
  size_t bytes = (size_t)v->n_tasks * sizeof *places;
  int at = 0;
  while (at < v->n && v->us[at] <= us) {
    if (v->us[at] == us && same_places(v->places[at], places, v->n_tasks)) return;
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

static bool depends(const walk *w, int later, int earlier) {
  const cs_task *task = &w->c->input->program->tasks[later];
  for (int p = 0; p < task->n_preds; p++) {
    if (task->preds[p] == earlier) return true;
  }
  return false;
}

static bool change_choice(walk *w, cs_placement *places) {
  cs_placement *place = &places[pick(w, w->n)];
  const cs_coselect_task *t = &w->c->tasks[place->task];
  int choice = t->choices[pick(w, t->n)];
  if (choice == place->choice) return false;
  place->choice = choice;
  return true;
}

static bool change_stream(walk *w, cs_placement *places) {
  cs_placement *place = &places[pick(w, w->n)];
  int stream = pick(w, w->n_streams);
  if (stream == place->stream) return false;
  place->stream = stream;
  return true;
}

/* One placement to another position, as far as dependencies let it. */
static bool change_order(walk *w, cs_placement *places) {
  int from = pick(w, w->n), to = pick(w, w->n), at = from;
  cs_placement moved = places[from];
  while (at > to && !depends(w, moved.task, places[at - 1].task)) {
    places[at] = places[at - 1];
    at--;
  }
  while (at < to && !depends(w, places[at + 1].task, moved.task)) {
    places[at] = places[at + 1];
    at++;
  }
  places[at] = moved;
  return at != from;
}

static bool change(walk *w, cs_placement *places) {
  switch (pick(w, 4)) {
    case 0:
    case 1:
      return change_choice(w, places);
    case 2:
      return change_stream(w, places);
    default:
      return change_order(w, places);
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

static cs_status walk_from(walk *w, const cs_configuration *start, int window, int steps,
                           cs_coselect_variants *out) {
  (void)cs_coselect_gather(w->c, start, window, w->now);
  CS_RETURN_IF_ERROR(cs_coselect_predict(w->c, w->now, w->n, &w->now_us));
  keep(out, w->now, w->now_us);
  for (int s = 0; s < steps; s++) CS_RETURN_IF_ERROR(step(w, out));
  return CS_OK;
}

cs_status cs_coselect_search(cs_coselect *c, int window, const cs_configuration *const *starts,
                             int n_starts, int steps, uint64_t seed, cs_coselect_variants *out) {
  walk w = {.c = c, .n = c->windows.first[window + 1] - c->windows.first[window]};
  memset(out, 0, sizeof *out);
  out->n_tasks = w.n;
  cs_rng_init(&w.rng, seed, (uint64_t)window);
  for (int s = 0; s < n_starts; s++) {
    int streams = cs_configuration_streams(starts[s]) + 1;
    if (streams > w.n_streams) w.n_streams = streams;
  }
  if (w.n_streams > c->input->max_streams) w.n_streams = c->input->max_streams;
  if (w.n == 1) steps = 0; /* nothing beside it: the fastest alone is the fastest */
  for (int s = 0; s < n_starts; s++) {
    CS_RETURN_IF_ERROR(walk_from(&w, starts[s], window, steps, out));
  }
  return CS_OK;
}
