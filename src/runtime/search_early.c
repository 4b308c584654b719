/* Which launches begin early, in a search. It is tried for all launches at once, for those of one
 * candidate, and for halves of the launch order, halves of these, down to single launches: what one
 * launch gains is often less than a comparison can tell, what many gain together is not. The model
 * knows nothing of it. */
#include <string.h>

#include "runtime/search_state.h"

static bool can_begin_early(const cs_search *s, int p) {
  return cs_configuration_can_begin_early(&s->best, s->input->choices, p);
}

static const char *id_of(const cs_search *s, int p) {
  const cs_placement *place = &s->best.places[p];
  return s->input->choices[place->task].choices[place->choice].candidate->id;
}

/* Launches of the best that can begin early. */
static int count_able(const cs_search *s) {
  int n = 0;
  for (int p = 0; p < s->best.n; p = cs_launch_end(s->best.places, s->best.n, p)) {
    n += can_begin_early(s, p);
  }
  return n;
}

/* Some of the best's launches. Those that cannot begin early count to a group only where it is
 * `all`: then another candidate of theirs begins as the others do. */
typedef struct group {
  bool all;
  const char *id;   /* of their candidate; NULL: any */
  int first, count; /* of those that can begin early, in launch order */
} group;

static bool is_in(const cs_search *s, const group *g, int p, int number) {
  if (g->all) return true;
  if (!can_begin_early(s, p)) return false;
  return g->id ? strcmp(id_of(s, p), g->id) == 0
               : number >= g->first && number < g->first + g->count;
}

/* The best with all of a group late, or none. */
static cs_status try_group(cs_search *s, const group *g, bool late) {
  cs_configuration next = {0};
  cs_status st = CS_OK;
  bool changed = false;
  if (cs_search_is_over(s)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  for (int p = 0, number = 0; p < next.n; p = cs_launch_end(next.places, next.n, p)) {
    bool able = can_begin_early(s, p);
    if (is_in(s, g, p, number)) {
      changed = changed || (able && next.places[p].late != late);
      cs_launch_set_late(next.places, next.n, p, late);
    }
    number += able;
  }
  if (changed) st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  return st;
}

static cs_status try_both(cs_search *s, const group *g) {
  CS_RETURN_IF_ERROR(try_group(s, g, true));
  return try_group(s, g, false);
}

cs_status cs_search_early_at_all(cs_search *s) {
  return try_both(s, &(group){.all = true});
}

/* Those of each candidate, where it first appears. */
static cs_status try_candidates(cs_search *s) {
  for (int p = 0; p < s->best.n; p = cs_launch_end(s->best.places, s->best.n, p)) {
    bool seen = false;
    if (!can_begin_early(s, p)) continue;
    for (int q = 0; q < p && !seen; q++) seen = strcmp(id_of(s, q), id_of(s, p)) == 0;
    if (!seen) CS_RETURN_IF_ERROR(try_both(s, &(group){.id = id_of(s, p)}));
  }
  return CS_OK;
}

cs_status cs_search_early(cs_search *s) {
  CS_RETURN_IF_ERROR(try_candidates(s));
  for (int size = count_able(s); size > 1;) {
    size = (size + 1) / 2;
    for (int first = 0; first < count_able(s) && !cs_search_is_over(s); first += size) {
      CS_RETURN_IF_ERROR(try_both(s, &(group){.first = first, .count = size}));
    }
  }
  return CS_OK;
}
