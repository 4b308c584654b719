/* Merged launches within placements: joining launches, splitting them, and changes of a placement
 * that leave its launch one that a kernel can run. */
#include <string.h>

#include "scheduler/coselect.h"

bool cs_coselect_merges(const cs_coselect *c, int task, int choice) {
  const cs_candidate *candidate = c->input->choices[task].choices[choice].candidate;
  return candidate->merges && candidate->workspace_bytes == 0;
}

bool cs_coselect_may_merge(const cs_coselect *c, int task) {
  const cs_coselect_task *t = &c->tasks[task];
  for (int i = 0; i < t->n; i++) {
    if (cs_coselect_merges(c, task, t->choices[i])) return true;
  }
  return false;
}

/* The choice of a task with this id, if it merges; -1: it has none. */
static int merging_choice(const cs_coselect *c, int task, const char *id) {
  int choice = cs_choice_find(&c->input->choices[task], id);
  return choice >= 0 && cs_coselect_merges(c, task, choice) ? choice : -1;
}

/* ---- Moving launches ---- */

void cs_placements_move_up(cs_placement *places, int to, int from, int n) {
  cs_placement moved[CS_MERGE_MOST];
  memcpy(moved, places + from, (size_t)n * sizeof *moved);
  memmove(places + to + n, places + to, (size_t)(from - to) * sizeof *places);
  memcpy(places + to, moved, (size_t)n * sizeof *moved);
}

/* Whether a task of the placements [begin, end) depends on one of [from, to). */
static bool any_behind(const cs_coselect *c, const cs_placement *places, int begin, int end,
                       int from, int to) {
  size_t words = cs_bit_words(c->input->program->n_tasks);
  for (int p = begin; p < end; p++) {
    const uint64_t *ancestors = c->ancestors + (size_t)places[p].task * words;
    for (int q = from; q < to; q++) {
      if (cs_bit_get(ancestors, places[q].task)) return true;
    }
  }
  return false;
}

/* Marks, at their first placement, the launches between two that have to run before the second; a
 * launch that has to run behind the first as well makes it impossible. */
static bool mark_needed(cs_coselect *c, const cs_placement *places, int first, int first_end,
                        int second, int second_end) {
  for (int p = second; p > first_end;) {
    int end = p;
    p = cs_launch_first(places, end - 1);
    bool needed = any_behind(c, places, second, second_end, p, end);
    for (int q = end; q < second && !needed; q = cs_launch_end(places, second, q)) {
      if (!c->marks[q]) continue;
      needed = any_behind(c, places, q, cs_launch_end(places, second, q), p, end);
    }
    c->marks[p] = needed;
    if (needed && any_behind(c, places, p, end, first, first_end)) return false;
  }
  return true;
}

/* ---- Joining ---- */

static bool may_join(const cs_coselect *c, const cs_placement *places, int begin, int end,
                     const char *id) {
  for (int p = begin; p < end; p++) {
    if (merging_choice(c, places[p].task, id) < 0) return false;
  }
  return true;
}

bool cs_coselect_join(cs_coselect *c, cs_placement *places, int n, int p, int q, const char *id) {
  int first = cs_launch_first(places, p < q ? p : q), first_end = cs_launch_end(places, n, first);
  int second = cs_launch_first(places, p < q ? q : p);
  int second_end = cs_launch_end(places, n, second), size = second_end - second;
  if (first == second || first_end - first + size > CS_MERGE_MOST) return false;
  if (!may_join(c, places, first, first_end, id) || !may_join(c, places, second, second_end, id) ||
      any_behind(c, places, second, second_end, first, first_end) ||
      !mark_needed(c, places, first, first_end, second, second_end)) {
    return false;
  }
  for (int at = first_end, end = 0; at < second; at = end) {
    end = cs_launch_end(places, second, at);
    if (!c->marks[at]) continue;
    cs_placements_move_up(places, first, at, end - at);
    first += end - at;
    first_end += end - at;
  }
  cs_placements_move_up(places, first_end, second, size);
  for (int at = first; at < first_end + size; at++) {
    places[at].stream = places[first].stream;
    places[at].priority = places[first].priority;
    places[at].late = places[first].late;
    places[at].choice = merging_choice(c, places[at].task, id);
    places[at].joined = at > first;
  }
  return true;
}

/* ---- Splitting ---- */

int cs_coselect_leave(cs_placement *places, int n, int p) {
  int first = cs_launch_first(places, p), end = cs_launch_end(places, n, p);
  cs_placement alone = places[p];
  alone.joined = false;
  memmove(places + p, places + p + 1, (size_t)(end - 1 - p) * sizeof *places);
  places[end - 1] = alone;
  places[first].joined = false;
  return end - 1;
}

/* ---- Changes ---- */

/* Gives every task of a launch the candidate of one of them; false: one has none such. */
static bool change_launch(const cs_coselect *c, cs_placement *places, int begin, int end,
                          int choice, int task) {
  const char *id = c->input->choices[task].choices[choice].candidate->id;
  if (!may_join(c, places, begin, end, id)) return false;
  for (int p = begin; p < end; p++) places[p].choice = merging_choice(c, places[p].task, id);
  return true;
}

void cs_coselect_change(const cs_coselect *c, cs_placement *places, int n, int p, cs_placement to) {
  int first = cs_launch_first(places, p), end = cs_launch_end(places, n, p);
  for (int q = first; q < end; q++) {
    places[q].stream = to.stream;
    places[q].priority = to.priority;
    places[q].late = to.late;
  }
  if (to.choice == places[p].choice) return;
  if (end - first > 1 && change_launch(c, places, first, end, to.choice, places[p].task)) return;
  if (end - first > 1) p = cs_coselect_leave(places, n, p);
  places[p].choice = to.choice;
}

/* ---- Tasks that have candidates in common ---- */

/* The times alone of all tasks with an id of the first one's set; < 0: not all have it. */
static double common_us(const cs_coselect *c, const int *tasks, int n, const char *id) {
  double us = 0;
  for (int i = 0; i < n; i++) {
    int choice = merging_choice(c, tasks[i], id);
    if (choice < 0 || cs_coselect_member(c, tasks[i], choice) < 0) return -1;
    us += c->input->choices[tasks[i]].choices[choice].cold_us;
  }
  return us;
}

const char *cs_coselect_common(const cs_coselect *c, const int *tasks, int n, int rank) {
  const cs_coselect_task *own = &c->tasks[tasks[0]];
  double passed_us[CS_COSELECT_CHOICES];
  const char *ids[CS_COSELECT_CHOICES];
  int found = 0;
  for (int i = 0; i < own->n; i++) {
    const char *id = c->input->choices[tasks[0]].choices[own->choices[i]].candidate->id;
    double us = common_us(c, tasks, n, id);
    int at = found;
    if (us < 0) continue;
    for (; at > 0 && passed_us[at - 1] > us; at--) {
      passed_us[at] = passed_us[at - 1];
      ids[at] = ids[at - 1];
    }
    passed_us[at] = us;
    ids[at] = id;
    found++;
  }
  return rank < found ? ids[rank] : NULL;
}

int cs_coselect_siblings(const cs_coselect *c, int task, int *out) {
  const cs_program *program = c->input->program;
  int window = c->window_of[task], n = 0;
  for (int i = c->windows.first[window]; i < c->windows.first[window + 1]; i++) {
    int other = c->windows.order[i];
    bool fits = program->tasks[other].desc.n_inputs > 0 && program->tasks[task].desc.n_inputs > 0 &&
                program->tasks[other].inputs[0] == program->tasks[task].inputs[0] &&
                cs_coselect_may_merge(c, other);
    for (int k = 0; k < n && fits; k++) fits = cs_coselect_independent(c, out[k], other);
    if (!fits) continue;
    if (n == 0 && other != task) return 0; /* told of the first of them */
    if (n < CS_MERGE_MOST) out[n++] = other;
  }
  return n;
}

static int position_of(const cs_placement *places, int n, int task) {
  int p = 0;
  while (p < n && places[p].task != task) p++;
  return p;
}

bool cs_coselect_join_tasks(cs_coselect *c, cs_placement *places, int n, const int *tasks,
                            int n_tasks, const char *id) {
  for (int i = 1; i < n_tasks; i++) {
    int first = position_of(places, n, tasks[0]), next = position_of(places, n, tasks[i]);
    if (first == n || next == n) return false;
    if (cs_launch_first(places, first) == cs_launch_first(places, next)) {
      cs_placement changed = places[first];
      changed.choice = merging_choice(c, tasks[0], id);
      cs_coselect_change(c, places, n, first, changed);
    } else if (!cs_coselect_join(c, places, n, first, next, id)) {
      return false;
    }
  }
  return true;
}
