/* Priorities and parts of the device in a search: what is tried after candidates, streams and
 * order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/search_state.h"

/* Moves that the model expects to be slower than this are not measured. */
#define WORSE_PRIORITY 1.005
#define WORSE_PART 1.03 /* the model knows nothing of what parts keep from each other's caches */
#define PART_TRIES 6    /* pairs of streams of a block that are measured in a round */

static bool is_small(const cs_search *s, int window) {
  return s->model->windows.first[window + 1] - s->model->windows.first[window] < 2;
}

/* ---- Priorities ---- */

/* Marks the tasks of the longest path by times alone. */
static cs_status critical_path(const cs_search *s, bool *marked) {
  const cs_program *program = s->input->program;
  double *end = cs_calloc((size_t)program->n_tasks, sizeof *end);
  int *before = cs_calloc((size_t)program->n_tasks, sizeof *before), last = 0;
  if (!end || !before) {
    free(end);
    free(before);
    return cs_no_memory("a critical path", (size_t)program->n_tasks * sizeof *end);
  }
  for (int p = 0; p < s->best.n; p++) { /* behind what they depend on */
    int t = s->best.places[p].task;
    const cs_task *task = &program->tasks[t];
    before[t] = -1;
    for (int i = 0; i < task->n_preds; i++) {
      if (end[task->preds[i]] > end[t]) end[t] = end[before[t] = task->preds[i]];
    }
    end[t] += s->input->choices[t].choices[s->best.places[p].choice].cold_us;
    if (end[t] > end[last]) last = t;
  }
  for (int t = last; t >= 0; t = before[t]) marked[t] = true;
  free(end);
  free(before);
  return CS_OK;
}

/* All launches with a task of the critical path high, in blocks of more than one task, all others
 * normal. */
static cs_status try_critical_path(cs_search *s) {
  cs_configuration next = {0};
  bool *marked = cs_calloc((size_t)s->input->program->n_tasks, sizeof *marked);
  if (!marked) return cs_no_memory("a critical path", (size_t)s->input->program->n_tasks);
  cs_status st = critical_path(s, marked);
  if (st == CS_OK) st = cs_configuration_copy(&s->best, &next);
  for (int p = 0, end = 0; st == CS_OK && p < next.n; p = end) {
    bool high = false;
    end = cs_launch_end(next.places, next.n, p);
    for (int q = p; q < end; q++) {
      int task = next.places[q].task;
      high = high || (marked[task] && !is_small(s, s->model->window_of[task]));
    }
    if (next.places[p].priority != high) cs_launch_toggle_priority(next.places, next.n, p);
  }
  if (st == CS_OK) st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  free(marked);
  return st;
}

cs_status cs_search_priorities(cs_search *s) {
  if (!s->input->priorities || s->best.n_parts > 0 || s->best.n == 0 || cs_search_is_over(s)) {
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(try_critical_path(s));
  for (int p = 0; p < s->best.n && !cs_search_is_over(s);
       p = cs_launch_end(s->best.places, s->best.n, p)) {
    int window = s->model->window_of[s->best.places[p].task];
    cs_configuration next = {0};
    if (is_small(s, window)) continue;
    CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
    cs_launch_toggle_priority(next.places, next.n, p);
    cs_status st = cs_search_try_changed(s, &next, window, WORSE_PRIORITY);
    cs_configuration_free(&next);
    CS_RETURN_IF_ERROR(st);
  }
  return CS_OK;
}

/* ---- Parts ---- */

/* Tries a configuration that the caller made of the best one, unless it may not be planned. */
static cs_status try_made(cs_search *s, cs_configuration *next, bool made, int window) {
  cs_status st = CS_OK;
  if (made && cs_configuration_valid(next, s->input)) {
    st = cs_search_try_changed(s, next, window, WORSE_PART);
  }
  cs_configuration_free(next);
  return st;
}

/* Pairs of the window's streams into pairs of parts; once the device is split, into parts of that
 * split. */
static cs_status enter(cs_search *s, int window, const cs_sm_parts *split, int *tries) {
  for (int to0 = 0; to0 < split->n; to0++) {
    for (int to1 = 0; to1 < split->n; to1++) {
      /* A schedule that was taken numbers its streams anew: all pairs of what it has now. */
      for (int k = 0; k < s->input->max_streams * s->input->max_streams; k++) {
        const int from[2] = {k % s->input->max_streams, k / s->input->max_streams};
        const int to[2] = {to0, to1};
        int before = s->measured;
        cs_configuration next = {0};
        if (to0 == to1 || from[0] >= from[1] || *tries <= 0 || cs_search_is_over(s)) continue;
        CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
        bool made = cs_coselect_enter_parts(s->model, window, from, split, to, &next);
        CS_RETURN_IF_ERROR(try_made(s, &next, made, window));
        *tries -= s->measured - before;
      }
    }
  }
  return CS_OK;
}

static cs_status leave(cs_search *s, int window) {
  cs_configuration next = {0};
  if (s->best.n_parts == 0 || cs_search_is_over(s)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  bool made = cs_coselect_leave_parts(s->model, window, &next);
  return try_made(s, &next, made, window);
}

/* The best configuration on another split of as many parts, its streams `turn` parts further. */
static cs_status try_split(cs_search *s, const cs_sm_parts *split, int turn) {
  cs_configuration next = {0};
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  memcpy(next.parts, split->units, sizeof next.parts);
  for (int i = 0; i < CS_MAX_SPLIT_STREAMS; i++) {
    if (next.part_of[i] >= 0) next.part_of[i] = (next.part_of[i] + turn) % split->n;
  }
  cs_status st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  return st;
}

/* The same streams in parts of other sizes. */
static cs_status exchange_split(cs_search *s) {
  for (int i = 0; i < s->input->n_splits; i++) {
    const cs_sm_parts *split = &s->input->splits[i];
    for (int turn = 0; turn < split->n && !cs_search_is_over(s); turn++) {
      if (s->best.n_parts == split->n) CS_RETURN_IF_ERROR(try_split(s, split, turn));
    }
  }
  return CS_OK;
}

cs_status cs_search_partitions(cs_search *s) {
  if (s->input->n_splits == 0) return CS_OK;
  for (int w = 0; w < s->model->windows.n; w++) {
    if (is_small(s, w)) continue;
    CS_RETURN_IF_ERROR(leave(s, w));
    for (int i = 0; i < s->input->n_splits; i++) {
      int tries = PART_TRIES;
      CS_RETURN_IF_ERROR(enter(s, w, &s->input->splits[i], &tries));
    }
  }
  return exchange_split(s);
}
