/* Blocks on parts of the device: moving streams of a window into parts of a split and out of them,
 * and what the model expects of it. Streams of other windows stay where they are. */
#include <math.h>
#include <string.h>

#include "scheduler/coselect.h"

/* Of the time a window takes unsplit: less is taken for the model's error. */
#define LEAST_GAIN 0.02
/* Placements that may be simulated for a split. */
#define PLACEMENT_BUDGET 50000

/* ---- Streams ---- */

/* The streams of a window's tasks, used[max_streams]. */
static void streams_of(const cs_coselect *c, const cs_configuration *configuration, int window,
                       bool *used) {
  memset(used, 0, CS_MAX_SPLIT_STREAMS * sizeof *used);
  for (int p = 0; p < configuration->n; p++) {
    const cs_placement *place = &configuration->places[p];
    if (c->window_of[place->task] == window && place->stream < CS_MAX_SPLIT_STREAMS) {
      used[place->stream] = true;
    }
  }
}

/* The first stream of a part (-1: of the whole device) that is not `taken`, or else one that has no
 * tasks at all, then given to that part; -1: there is none. */
static int stream_of_part(const cs_coselect *c, cs_configuration *configuration, int part,
                          const bool *taken) {
  int used = cs_configuration_streams(configuration);
  int most = (int)cs_min_i64(c->input->max_streams, CS_MAX_SPLIT_STREAMS);
  for (int s = 0; s < used && s < most; s++) {
    if (configuration->part_of[s] == part && !taken[s]) return s;
  }
  for (int s = used; s < most; s++) {
    if (taken[s]) continue;
    configuration->part_of[s] = part;
    return s;
  }
  return -1;
}

/* Every task of the window goes from its stream to to[stream]. */
static void move(const cs_coselect *c, cs_configuration *configuration, int window, const int *to) {
  for (int p = 0; p < configuration->n; p++) {
    cs_placement *place = &configuration->places[p];
    if (c->window_of[place->task] == window) place->stream = to[place->stream];
  }
}

/* ---- Into parts and out of them ---- */

/* A split leaves no priorities and no hints. */
static bool take_split(const cs_sm_parts *split, cs_configuration *configuration) {
  size_t bytes = (size_t)split->n * sizeof *split->units;
  if (configuration->n_parts > 0) {
    return configuration->n_parts == split->n &&
           memcmp(configuration->parts, split->units, bytes) == 0;
  }
  configuration->n_parts = split->n;
  memcpy(configuration->parts, split->units, sizeof split->units);
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++) configuration->part_of[s] = -1;
  for (int p = 0; p < configuration->n; p++) configuration->places[p].priority = 0;
  configuration->hints = false;
  return true;
}

bool cs_coselect_enter_parts(const cs_coselect *c, int window, const int from[2],
                             const cs_sm_parts *split, const int to[2],
                             cs_configuration *configuration) {
  bool used[CS_MAX_SPLIT_STREAMS], none[CS_MAX_SPLIT_STREAMS] = {false};
  int target[CS_MAX_SPLIT_STREAMS];
  if (cs_configuration_streams(configuration) > CS_MAX_SPLIT_STREAMS) return false;
  streams_of(c, configuration, window, used);
  if (from[0] >= CS_MAX_SPLIT_STREAMS || from[1] >= CS_MAX_SPLIT_STREAMS) return false;
  if (from[0] == from[1] || !used[from[0]] || !used[from[1]]) return false;
  if (!take_split(split, configuration)) return false;
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++) target[s] = s;
  for (int i = 0; i < 2; i++) {
    int stream = stream_of_part(c, configuration, to[i], none);
    if (stream < 0) return false;
    target[from[i]] = stream;
    none[stream] = true; /* the other one's is another stream */
  }
  move(c, configuration, window, target);
  return true;
}

static bool any_in_parts(const cs_configuration *configuration) {
  for (int p = 0; p < configuration->n; p++) {
    if (configuration->part_of[configuration->places[p].stream] >= 0) return true;
  }
  return false;
}

bool cs_coselect_leave_parts(const cs_coselect *c, int window, cs_configuration *configuration) {
  bool used[CS_MAX_SPLIT_STREAMS], any = false;
  int target[CS_MAX_SPLIT_STREAMS];
  if (configuration->n_parts == 0) return false;
  streams_of(c, configuration, window, used);
  for (int s = 0; s < CS_MAX_SPLIT_STREAMS; s++) {
    target[s] = s;
    if (!used[s] || configuration->part_of[s] < 0) continue;
    target[s] = stream_of_part(c, configuration, -1, used);
    if (target[s] < 0) return false;
    used[target[s]] = true;
    any = true;
  }
  move(c, configuration, window, target);
  if (!any_in_parts(configuration)) configuration->n_parts = 0;
  return any;
}

/* ---- By the model ---- */

typedef struct attempt {
  cs_coselect *c;
  const cs_sm_parts *split;
  int budget; /* placements that may still be simulated */
} attempt;

static cs_status window_us(attempt *a, const cs_configuration *configuration, int window,
                           double *us) {
  cs_placement places[CS_IOS_MOST_TASKS];
  int n = cs_coselect_gather(a->c, configuration, window, places);
  a->budget -= n;
  cs_coselect_use_split(a->c, configuration);
  return cs_coselect_predict(a->c, places, n, us);
}

/* One pair of the window's streams in two of the parts; taken where it is faster than *us. */
static cs_status try_pair(attempt *a, int window, const int from[2], const int to[2],
                          const cs_configuration *before, double *us, cs_configuration *best) {
  cs_configuration next = {0};
  double then = INFINITY;
  CS_RETURN_IF_ERROR(cs_configuration_copy(before, &next));
  cs_status st = CS_OK;
  if (cs_coselect_enter_parts(a->c, window, from, a->split, to, &next) &&
      cs_configuration_valid(&next, a->c->input)) {
    st = window_us(a, &next, window, &then);
  }
  if (st == CS_OK && then < *us) {
    *us = then;
    cs_configuration_free(best);
    *best = next;
    return CS_OK;
  }
  cs_configuration_free(&next);
  return st;
}

/* The best pair of streams of one window; *gain_us grows by what it brings. */
static cs_status split_window(attempt *a, int window, cs_configuration *configuration,
                              double *gain_us) {
  cs_status st = CS_OK;
  cs_configuration best = {0};
  double now = 0, us;
  int n = cs_configuration_streams(configuration), parts = a->split->n;
  CS_RETURN_IF_ERROR(window_us(a, configuration, window, &now));
  us = (1 - LEAST_GAIN) * now;
  /* Every ordered pair of streams with every ordered pair of parts. */
  for (int k = 0; k < n * n * parts * parts && st == CS_OK && a->budget > 0; k++) {
    const int from[2] = {k % n, k / n % n};
    const int to[2] = {k / (n * n) % parts, k / (n * n * parts)};
    if (from[0] >= from[1] || to[0] == to[1]) continue;
    st = try_pair(a, window, from, to, configuration, &us, &best);
  }
  if (st != CS_OK || !best.places) {
    cs_configuration_free(&best);
    return st;
  }
  *gain_us += now - us;
  cs_configuration_free(configuration);
  *configuration = best;
  return CS_OK;
}

cs_status cs_coselect_split_by_model(cs_coselect *c, cs_configuration *configuration) {
  cs_status st = CS_OK;
  double most = 0;
  cs_configuration best = {0};
  attempt a = {.c = c};
  if (!c->model || configuration->n_parts > 0) return CS_OK;
  for (int i = 0; i < c->input->n_splits && st == CS_OK; i++) {
    cs_configuration next = {0};
    double gain = 0;
    a.split = &c->input->splits[i];
    a.budget = PLACEMENT_BUDGET;
    st = cs_configuration_copy(configuration, &next);
    for (int w = 0; w < c->windows.n && st == CS_OK && a.budget > 0; w++) {
      if (c->windows.first[w + 1] - c->windows.first[w] < 2) continue;
      st = split_window(&a, w, &next, &gain);
    }
    if (st != CS_OK || gain <= most) {
      cs_configuration_free(&next);
      continue;
    }
    most = gain;
    cs_configuration_free(&best);
    best = next;
  }
  cs_coselect_use_split(c, NULL);
  if (st == CS_OK && best.places) {
    cs_configuration_free(configuration);
    *configuration = best;
    return CS_OK;
  }
  cs_configuration_free(&best);
  return st;
}
