/* Merged launches of a search: which are tried, and which come apart again. */
#include "runtime/search_state.h"

#define SIBLING_IDS 3 /* candidates that siblings are tried with, together */
#define PAIR_IDS 2    /* and two launches */
/* Merges that the model expects to be slower than this are not measured. */
#define WORSE_MERGE 1.03

/* ---- Joining ---- */

/* The best configuration with these tasks, and what they are launched with, as one launch. */
static cs_status try_joined(cs_search *s, const int *tasks, int n, int n_ids) {
  cs_status st = CS_OK;
  for (int rank = 0; rank < n_ids && st == CS_OK && !cs_search_is_over(s); rank++) {
    const char *id = cs_coselect_common(s->model, tasks, n, rank);
    cs_configuration next = {0};
    if (!id) return CS_OK;
    CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
    if (cs_coselect_join_tasks(s->model, next.places, next.n, tasks, n, id)) {
      st = cs_search_try_changed(s, &next, s->model->window_of[tasks[0]], WORSE_MERGE);
    }
    cs_configuration_free(&next);
  }
  return st;
}

static cs_status join_siblings(cs_search *s, int window) {
  const cs_ios_windows *windows = &s->model->windows;
  int siblings[CS_MERGE_MOST];
  for (int i = windows->first[window]; i < windows->first[window + 1]; i++) {
    int n = cs_coselect_siblings(s->model, windows->order[i], siblings);
    if (n > 2) CS_RETURN_IF_ERROR(try_joined(s, siblings, n, SIBLING_IDS));
  }
  return CS_OK;
}

/* Where two tasks are in one launch already, that is left as it is. */
static bool are_joined(const cs_search *s, const int tasks[2]) {
  int at[2] = {-1, -1};
  for (int p = 0; p < s->best.n; p++) {
    for (int k = 0; k < 2; k++) {
      if (s->best.places[p].task == tasks[k]) at[k] = cs_launch_first(s->best.places, p);
    }
  }
  return at[0] == at[1];
}

static cs_status join_pairs(cs_search *s, int window) {
  const cs_ios_windows *windows = &s->model->windows;
  for (int i = windows->first[window]; i < windows->first[window + 1]; i++) {
    for (int k = i + 1; k < windows->first[window + 1] && !cs_search_is_over(s); k++) {
      int tasks[] = {windows->order[i], windows->order[k]};
      if (!cs_coselect_independent(s->model, tasks[0], tasks[1]) || are_joined(s, tasks)) continue;
      CS_RETURN_IF_ERROR(try_joined(s, tasks, 2, PAIR_IDS));
    }
  }
  return CS_OK;
}

/* ---- Splitting ---- */

/* The fastest of a task's set, which alone need not be one that merges. */
static int fastest_of(const cs_search *s, int task) {
  const cs_coselect_task *set = &s->model->tasks[task];
  const cs_task_choices *choices = &s->input->choices[task];
  int best = set->choices[0];
  for (int i = 1; i < set->n; i++) {
    if (choices->choices[set->choices[i]].cold_us < choices->choices[best].cold_us) {
      best = set->choices[i];
    }
  }
  return best;
}

/* The launch at p with one task of it, or (`out` < 0) every one, launched by itself, on streams of
 * their own where there are any left. */
static cs_status try_split(cs_search *s, int p, int out, bool fastest) {
  cs_configuration next = {0};
  int end = cs_launch_end(s->best.places, s->best.n, p), window;
  int n_streams = s->input->max_streams, stream = s->best.places[p].stream;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  window = s->model->window_of[next.places[p].task];
  if (out >= 0) {
    int at = cs_coselect_leave(next.places, next.n, p + out);
    next.places[at].stream = (stream + 1) % n_streams;
    if (fastest) next.places[at].choice = fastest_of(s, next.places[at].task);
  }
  for (int q = p; out < 0 && q < end; q++) {
    next.places[q].joined = false;
    next.places[q].stream = (stream + q - p) % n_streams;
    if (fastest) next.places[q].choice = fastest_of(s, next.places[q].task);
  }
  cs_status st = cs_search_try_changed(s, &next, window, WORSE_MERGE);
  cs_configuration_free(&next);
  return st;
}

/* All at once, then without one of them at a time; with their candidates and with the fastest. */
static cs_status split_launches(cs_search *s) {
  for (int p = 0, end = 0; p < s->best.n && !cs_search_is_over(s); p = end) {
    end = cs_launch_end(s->best.places, s->best.n, p);
    int size = end - p;
    if (size < 2) continue;
    for (int out = size == 2 ? -1 : size - 1; out >= -1 && !cs_search_is_over(s); out--) {
      for (int fastest = 0; fastest < 2; fastest++) {
        int taken = s->accepted;
        CS_RETURN_IF_ERROR(try_split(s, p, out, fastest));
        if (s->accepted != taken) return CS_OK; /* positions are others now; a round follows */
      }
    }
  }
  return CS_OK;
}

cs_status cs_search_merges(cs_search *s) {
  for (int w = 0; w < s->model->windows.n && !cs_search_is_over(s); w++) {
    CS_RETURN_IF_ERROR(join_siblings(s, w));
    CS_RETURN_IF_ERROR(join_pairs(s, w));
  }
  return split_launches(s);
}
