/* What a search tries: changes of the best configuration, those that the model expects to be no (or
 * little) slower. */
#include "runtime/search_state.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_STEPS 300
#define BLOCK_TRIES 8     /* variants of a block that are measured in a round */
#define PAIR_TRIES 4      /* candidates of a pair of tasks */
#define CANDIDATE_TRIES 5 /* of a task, so many more after each round that found nothing */
/* Moves that the model expects to be slower than this are not measured. */
#define WORSE_CANDIDATE 1.04
#define WORSE_PLACE 1.01
/* More of what the model does not expect is measured in each round after one that found nothing:
 * the model is some 7% off in the median. */
#define WORSE_WHEN_IDLE 0.05

/* ---- Blocks: the variants that the model likes best ---- */

static cs_status try_variants(cs_search *s, int window, const cs_coselect_variants *variants) {
  cs_status st = CS_OK;
  for (int v = 0; v < variants->n && v < BLOCK_TRIES && !cs_search_is_over(s) && st == CS_OK; v++) {
    cs_configuration next = {0};
    st = cs_coselect_window_order(s->model, &s->best, &next);
    if (st == CS_OK) {
      cs_coselect_scatter(s->model, window, variants->places[v], &next);
      cs_configuration_begin_as(&s->best, &next);
      cs_configuration_number_streams(&next);
      st = cs_search_try(s, &next);
    }
    cs_configuration_free(&next);
  }
  return st;
}

cs_status cs_search_blocks(cs_search *s, const cs_configuration *starts, int n) {
  cs_status st = CS_OK;
  cs_coselect_variants *variants = cs_calloc(1, sizeof *variants);
  if (!variants) return cs_no_memory("variants", sizeof *variants);
  for (int w = 0; w < s->model->windows.n && !cs_search_is_over(s) && st == CS_OK; w++) {
    const cs_configuration *from[] = {&s->best, &starts[n > 1 ? 1 + s->round % (n - 1) : 0]};
    if (s->model->windows.first[w + 1] - s->model->windows.first[w] < 2) continue;
    cs_coselect_use_split(s->model, &s->best); /* whose streams the variants will be on */
    st = cs_coselect_search(s->model, w, from, 2, BLOCK_STEPS, s->input->seed + (uint64_t)s->round,
                            variants);
    if (st == CS_OK) st = try_variants(s, w, variants);
  }
  free(variants);
  return st;
}

/* ---- Single moves ---- */

static cs_status window_us(cs_search *s, int window, const cs_configuration *configuration,
                           double *us) {
  cs_placement places[CS_IOS_MOST_TASKS];
  int n = cs_coselect_gather(s->model, configuration, window, places);
  cs_coselect_use_split(s->model, configuration);
  return cs_coselect_predict(s->model, places, n, us);
}

cs_status cs_search_try_changed(cs_search *s, cs_configuration *changed, int window, double worst) {
  double now = 0, then = 0;
  CS_RETURN_IF_ERROR(window_us(s, window, &s->best, &now));
  CS_RETURN_IF_ERROR(window_us(s, window, changed, &then));
  if (then > (worst + WORSE_WHEN_IDLE * s->idle) * now) return CS_OK;
  cs_configuration_number_streams(changed);
  return cs_search_try(s, changed);
}

/* The best configuration with one placement changed, and what it is launched with as it must be. */
static cs_status try_move(cs_search *s, int position, cs_placement placement, double worst) {
  cs_configuration next = {0};
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  cs_coselect_change(s->model, next.places, next.n, position, placement);
  cs_status st = cs_search_try_changed(s, &next, s->model->window_of[placement.task], worst);
  cs_configuration_free(&next);
  return st;
}

static int position_of(const cs_search *s, int task) {
  return cs_configuration_position(&s->best, task);
}

/* Other candidates of a task by what the model expects of its block, the fastest first; free()
 * releases. */
typedef struct ranked {
  int choice;
  double us;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->us != y->us) return x->us < y->us ? -1 : 1;
  return (x->choice > y->choice) - (x->choice < y->choice);
}

static cs_status rank_candidates(cs_search *s, int task, ranked **out, int *n) {
  const cs_coselect_task *set = &s->model->tasks[task];
  int p = position_of(s, task);
  cs_placement placement = s->best.places[p];
  int now = placement.choice;
  cs_configuration next = {0};
  cs_status st = CS_OK;
  *n = 0;
  *out = cs_calloc((size_t)set->n, sizeof **out);
  if (!*out) return cs_no_memory("candidates", (size_t)set->n * sizeof **out);
  CS_TRY(st, cs_configuration_copy(&s->best, &next), done);
  for (int i = 0; i < set->n; i++) {
    ranked *one = &(*out)[*n];
    if (set->choices[i] == now) continue;
    placement.choice = one->choice = set->choices[i];
    memcpy(next.places, s->best.places, (size_t)next.n * sizeof *next.places);
    cs_coselect_change(s->model, next.places, next.n, p, placement);
    CS_TRY(st, window_us(s, s->model->window_of[task], &next, &one->us), done);
    (*n)++;
  }
  qsort(*out, (size_t)*n, sizeof **out, compare_ranked);
done:
  cs_configuration_free(&next);
  if (st != CS_OK) free(*out);
  return st;
}

cs_status cs_search_candidates(cs_search *s) {
  cs_status st = CS_OK;
  for (int t = 0; t < s->input->program->n_tasks && !cs_search_is_over(s) && st == CS_OK; t++) {
    ranked *list;
    int n;
    CS_RETURN_IF_ERROR(rank_candidates(s, t, &list, &n));
    for (int i = 0; i < n && i < CANDIDATE_TRIES * (s->idle + 1) && st == CS_OK; i++) {
      if (cs_search_is_over(s)) break;
      int p = position_of(s, t);
      cs_placement placement = s->best.places[p];
      if (placement.choice == list[i].choice) continue;
      placement.choice = list[i].choice;
      st = try_move(s, p, placement, WORSE_CANDIDATE);
    }
    free(list);
  }
  return st;
}

/* ---- Pairs: candidates of two tasks that may run beside each other, changed together ---- */

typedef struct pair_choice {
  int first, second; /* members of the tasks' sets */
  double us;         /* of the block, predicted */
} pair_choice;

/* Keeps the PAIR_TRIES that are expected to be fastest. */
static int keep_pair(pair_choice *list, int n, pair_choice choice) {
  int at = n;
  while (at > 0 && list[at - 1].us > choice.us) at--;
  if (at == PAIR_TRIES) return n;
  if (n < PAIR_TRIES) n++;
  memmove(&list[at + 1], &list[at], (size_t)(n - 1 - at) * sizeof *list);
  list[at] = choice;
  return n;
}

static void set_choice(const cs_search *s, cs_configuration *configuration, int task, int member) {
  int p = cs_configuration_position(configuration, task);
  cs_placement to = configuration->places[p];
  to.choice = s->model->tasks[task].choices[member];
  cs_coselect_change(s->model, configuration->places, configuration->n, p, to);
}

/* The best configuration with the candidates of two tasks changed; `next` has room for it. */
static void set_choices(const cs_search *s, cs_configuration *next, int a, int b,
                        const pair_choice *choice) {
  memcpy(next->places, s->best.places, (size_t)next->n * sizeof *next->places);
  set_choice(s, next, a, choice->first);
  set_choice(s, next, b, choice->second);
}

static cs_status try_pair(cs_search *s, int a, int b) {
  const cs_coselect_task *first = &s->model->tasks[a], *second = &s->model->tasks[b];
  pair_choice list[PAIR_TRIES];
  cs_configuration next = {0};
  int n = 0, window = s->model->window_of[a];
  cs_placement now_a = s->best.places[position_of(s, a)];
  cs_placement now_b = s->best.places[position_of(s, b)];
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  cs_status st = CS_OK;
  for (int i = 0; i < first->n && st == CS_OK; i++) {
    for (int k = 0; k < second->n && st == CS_OK; k++) {
      pair_choice choice = {.first = i, .second = k};
      if (first->choices[i] == now_a.choice || second->choices[k] == now_b.choice) continue;
      set_choices(s, &next, a, b, &choice);
      st = window_us(s, window, &next, &choice.us);
      if (st == CS_OK) n = keep_pair(list, n, choice);
    }
  }
  cs_configuration_free(&next);
  for (int i = 0; i < n && st == CS_OK && !cs_search_is_over(s); i++) {
    CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
    set_choices(s, &next, a, b, &list[i]);
    st = cs_search_try(s, &next);
    cs_configuration_free(&next);
  }
  return st;
}

cs_status cs_search_pairs(cs_search *s) {
  const cs_ios_windows *windows = &s->model->windows;
  for (int w = 0; w < windows->n; w++) {
    for (int i = windows->first[w]; i < windows->first[w + 1]; i++) {
      for (int k = i + 1; k < windows->first[w + 1] && !cs_search_is_over(s); k++) {
        int a = windows->order[i], b = windows->order[k];
        if (cs_coselect_independent(s->model, a, b)) CS_RETURN_IF_ERROR(try_pair(s, a, b));
      }
    }
  }
  return CS_OK;
}

/* ---- Streams and order ---- */

cs_status cs_search_streams(cs_search *s) {
  for (int t = 0; t < s->input->program->n_tasks; t++) {
    int window = s->model->window_of[t];
    if (s->model->windows.first[window + 1] - s->model->windows.first[window] < 2) continue;
    int n = cs_configuration_streams(&s->best) + 1;
    if (n > s->input->max_streams) n = s->input->max_streams;
    for (int stream = 0; stream < n && !cs_search_is_over(s); stream++) {
      int p = position_of(s, t);
      cs_placement placement = s->best.places[p];
      if (placement.stream == stream) continue;
      placement.stream = stream;
      CS_RETURN_IF_ERROR(try_move(s, p, placement, WORSE_PLACE));
    }
  }
  return CS_OK;
}

/* Neighbouring launches that do not depend on each other change places. */
cs_status cs_search_order(cs_search *s) {
  cs_status st = CS_OK;
  for (int p = 0; p < s->best.n && !cs_search_is_over(s) && st == CS_OK;
       p = cs_launch_end(s->best.places, s->best.n, p)) {
    cs_configuration next = {0};
    int behind = cs_launch_end(s->best.places, s->best.n, p);
    if (behind == s->best.n || s->best.places[p].stream == s->best.places[behind].stream) continue;
    CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
    cs_placements_move_up(next.places, p, behind,
                          cs_launch_end(next.places, next.n, behind) - behind);
    if (cs_configuration_valid(&next, s->input)) {
      st = cs_search_try_changed(s, &next, s->model->window_of[next.places[p].task], WORSE_PLACE);
    }
    cs_configuration_free(&next);
  }
  return st;
}
