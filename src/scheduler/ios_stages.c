/* The dynamic program of IOS (Ding et al., MLSys 2021, section 4): the least cost of a set of tasks
 * that can run first is, over every ending of the set (no task of it leads to one outside), the
 * least cost of the rest and the cost of the ending as the last stage. Endings are pruned to groups
 * of few tasks and to few groups. A stage costs what its groups take beside one another or, where
 * one kernel can run all of it, as one, whichever is less (the paper's two transitions). */
#include "scheduler/ios.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs this close are the same: sums of the same times in another order. */
#define SAME 1e-9

/* ---- Sets ---- */

static int members(uint32_t set) {
  return __builtin_popcount(set);
}

/* The weakly connected part of a set that holds task i. */
static uint32_t part_of(const cs_ios_window *window, uint32_t set, int i) {
  uint32_t part = UINT32_C(1) << i, open = part;
  while (open) {
    int next = __builtin_ctz(open);
    uint32_t found = (window->preds[next] | window->succs[next]) & set & ~part;
    open = (open & (open - 1)) | found;
    part |= found;
  }
  return part;
}

static int count_parts(const cs_ios_window *window, uint32_t set) {
  int n = 0;
  for (; set; set &= ~part_of(window, set, __builtin_ctz(set))) n++;
  return n;
}

void cs_ios_stage_of(const cs_ios_window *window, uint32_t set, cs_ios_stage *out) {
  int n = 0, groups = 0;
  for (uint32_t left = set; left; groups++) {
    uint32_t part = part_of(window, left, __builtin_ctz(left));
    left &= ~part;
    for (; part; part &= part - 1) {
      out->tasks[n] = window->tasks[__builtin_ctz(part)];
      out->group_of[n++] = groups;
    }
  }
  out->stage =
      (cs_stage){.tasks = out->tasks, .group_of = out->group_of, .n = n, .n_groups = groups};
}

/* ---- Tables by set ---- */

typedef struct entry {
  uint32_t set;  /* 0: free */
  uint32_t last; /* of a state: its last stage */
  int n_stages;
  double us;
  const char *merged; /* of a stage: the candidate of its one kernel */
} entry;
typedef struct table {
  entry *entries;
  size_t capacity, n; /* capacity: a power of two, or 0 */
} table;

static entry *slot_of(const table *t, uint32_t set) {
  size_t i = (size_t)(set * UINT32_C(2654435769) >> 7) & (t->capacity - 1);
  while (t->entries[i].set != 0 && t->entries[i].set != set) i = (i + 1) & (t->capacity - 1);
  return &t->entries[i];
}

static const entry *look_up(const table *t, uint32_t set) {
  const entry *found = t->capacity ? slot_of(t, set) : NULL;
  return found && found->set == set ? found : NULL;
}

static cs_status put(table *t, entry added) {
  if (2 * (t->n + 1) > t->capacity) {
    table wider = {.capacity = t->capacity ? 2 * t->capacity : 256, .n = t->n};
    wider.entries = cs_calloc(wider.capacity, sizeof *wider.entries);
    if (!wider.entries) return cs_no_memory("stages", wider.capacity * sizeof *wider.entries);
    for (size_t i = 0; i < t->capacity; i++)
      if (t->entries[i].set) *slot_of(&wider, t->entries[i].set) = t->entries[i];
    free(t->entries);
    *t = wider;
  }
  *slot_of(t, added.set) = added;
  t->n++;
  return CS_OK;
}

/* ---- The dynamic program ---- */

typedef struct solver {
  const cs_ios_window *window;
  const cs_ios_options *options;
  table stages, states;
  int tries;
  bool exceeded;
} solver;

/* The candidate with which the set can run as one kernel; NULL: there is none. */
static const char *merging_of(const solver *s, const cs_stage *stage) {
  if (!s->options->merging || stage->n < 2 || stage->n > CS_MERGE_MOST) return NULL;
  if (stage->n_groups < stage->n) return NULL;
  return s->options->merging(s->options->merging_user, stage->tasks, stage->n);
}

static cs_status price(const solver *s, const cs_stage *stage, double *us) {
  CS_RETURN_IF_ERROR(s->options->cost(s->options->user, stage, us));
  if (*us >= 0 && !isinf(*us)) return CS_OK;
  return cs_error(CS_CODE_INTERNAL,
                  "a stage of %d tasks in %d groups costs %g us: wanted a time of 0 or more",
                  stage->n, stage->n_groups, *us);
}

/* INFINITY: it has too many groups and cannot be merged. */
static cs_status stage_us(solver *s, uint32_t set, double *us) {
  const entry *known = look_up(&s->stages, set);
  if (known) {
    *us = known->us;
    return CS_OK;
  }
  s->exceeded = s->exceeded || s->stages.n >= CS_IOS_MOST_STAGES;
  if (s->exceeded) return CS_OK;
  cs_ios_stage stage;
  cs_ios_stage_of(s->window, set, &stage);
  entry found = {.set = set, .us = INFINITY};
  if (stage.stage.n_groups <= s->options->groups)
    CS_RETURN_IF_ERROR(price(s, &stage.stage, &found.us));
  stage.stage.merged = merging_of(s, &stage.stage);
  if (stage.stage.merged) {
    double merged_us;
    CS_RETURN_IF_ERROR(price(s, &stage.stage, &merged_us));
    if (merged_us < found.us) {
      found.us = merged_us;
      found.merged = stage.stage.merged;
    }
  }
  *us = found.us;
  return isinf(found.us) ? CS_OK : put(&s->stages, found);
}

static bool is_better(const entry *a, const entry *b) {
  if (b->n_stages == 0) return true;
  if (fabs(a->us - b->us) > SAME * b->us) return a->us < b->us;
  return a->n_stages < b->n_stages;
}

static cs_status solve_state(solver *s, uint32_t state, entry *out);

/* The state with `ending` as its last stage. */
static cs_status try_ending(solver *s, uint32_t state, uint32_t ending, entry *best) {
  entry rest = {0}, found = {.set = state, .last = ending};
  double us = 0;
  CS_RETURN_IF_ERROR(stage_us(s, ending, &us));
  if (s->exceeded || isinf(us) || (best->n_stages > 0 && us > best->us * (1 + SAME))) return CS_OK;
  CS_RETURN_IF_ERROR(solve_state(s, state & ~ending, &rest));
  if (s->exceeded) return CS_OK;
  found.us = rest.us + us;
  found.n_stages = rest.n_stages + 1;
  if (is_better(&found, best)) *best = found;
  return CS_OK;
}

/* Every ending that holds `ending` and otherwise only tasks below `bound`. */
static cs_status extend(solver *s, uint32_t state, uint32_t ending, int bound, entry *best) {
  for (int i = bound - 1; i >= 0 && !s->exceeded; i--) {
    uint32_t wider = ending | UINT32_C(1) << i;
    if (!(state >> i & 1) || (s->window->succs[i] & state & ~ending)) continue;
    if (members(part_of(s->window, wider, i)) > s->options->group_tasks) continue;
    s->exceeded = ++s->tries > CS_IOS_MOST_TRIES;
    if (s->exceeded) return CS_OK;
    /* More groups than that are worth a look only where they may be merged. */
    if (s->options->merging || count_parts(s->window, wider) <= s->options->groups)
      CS_RETURN_IF_ERROR(try_ending(s, state, wider, best));
    CS_RETURN_IF_ERROR(extend(s, state, wider, i, best));
  }
  return CS_OK;
}

static cs_status solve_state(solver *s, uint32_t state, entry *out) {
  *out = (entry){0};
  if (state == 0) return CS_OK;
  const entry *known = look_up(&s->states, state);
  if (known) {
    *out = *known;
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(extend(s, state, 0, s->window->n, out));
  return s->exceeded ? CS_OK : put(&s->states, *out);
}

cs_status cs_ios_solve(const cs_ios_window *window, const cs_ios_options *options,
                       uint32_t stages[CS_IOS_MOST_TASKS], const char *merged[CS_IOS_MOST_TASKS],
                       int *n_stages, bool *solved) {
  cs_status st = CS_OK;
  solver s = {.window = window, .options = options};
  entry state = {0};
  uint32_t all = (uint32_t)((UINT64_C(1) << window->n) - 1);
  *n_stages = 0;
  *solved = false;
  CS_TRY(st, solve_state(&s, all, &state), done);
  if (s.exceeded) goto done;
  *n_stages = state.n_stages;
  for (int i = state.n_stages - 1; i >= 0; i--) {
    const entry *known = look_up(&s.states, all);
    stages[i] = known->last;
    if (merged) merged[i] = look_up(&s.stages, known->last)->merged;
    all &= ~known->last;
  }
  *solved = true;
done:
  free(s.stages.entries);
  free(s.states.entries);
  return st;
}
