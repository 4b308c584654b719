/* Restarts of a search. Where a descent finds nothing faster, or has had its share of the time,
 * another one begins from another schedule (other policies', the model's) with the candidates that
 * the descents before found, which mostly suit it too; what they found at last is held against one
 * another. */
#include "runtime/search_state.h"

#define FIRST_PAIRS 5
#define LAST_PAIRS 40
/* A schedule that is slower than this, with the best's candidates, is not worth a descent. */
#define WORST_START 1.15

/* ---- A start with the best's candidates ---- */

/* Launches of several tasks keep theirs. Which begin early is the best's, too. */
static cs_status with_candidates(const cs_configuration *start, const cs_configuration *best,
                                 cs_configuration *out) {
  CS_RETURN_IF_ERROR(cs_configuration_copy(start, out));
  for (int p = 0, end = 0; p < out->n; p = end) {
    end = cs_launch_end(out->places, out->n, p);
    if (end > p + 1) continue;
    int at = cs_configuration_position(best, out->places[p].task);
    out->places[p].choice = best->places[at].choice;
  }
  cs_configuration_begin_as(best, out);
  return CS_OK;
}

/* ---- The best of all descents ---- */

/* Whether the champion is no slower than the best, beside which it is measured: it is timed first,
 * so that a clock that slows down takes it for the faster. */
static cs_status compare_with_champion(cs_search *s, bool *stays) {
  cs_bench_pairs pairs;
  cs_bench_swap(s->bench);
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, LAST_PAIRS, &pairs));
  *stays = pairs.ratio >= 1;
  s->best_us = *stays ? pairs.best_us : pairs.trial_us;
  if (!*stays) cs_bench_swap(s->bench);
  return CS_OK;
}

cs_status cs_search_settle(cs_search *s) {
  cs_status st = CS_OK;
  bool fits = false, stays = false;
  if (s->champion.n == 0) return CS_OK;
  if (cs_configuration_equal(&s->champion, &s->best)) goto done;
  CS_TRY(st, cs_search_set_trial(s, &s->champion, &fits), done);
  if (!fits) goto done;
  CS_TRY(st, compare_with_champion(s, &stays), done);
  if (!stays) goto done;
  cs_configuration_free(&s->best);
  st = cs_bench_configuration(s->bench, CS_BENCH_BEST, &s->best);
done:
  cs_configuration_free(&s->champion);
  return st;
}

/* ---- Restarting ---- */

/* The n-th schedule to begin from: that of `streams`, which leaves most to candidates that suit one
 * another, the model's, then the other policies' from the last one on; but for the first, which is
 * `sequential`. NULL: there are no more. */
static const cs_configuration *start_of(const cs_search *s, const cs_configuration *starts, int n,
                                        int index) {
  if (n > 1 && index == 0) return &starts[1];
  if (n > 1) index--;
  if (index == 0) return &s->made;
  return index < n - 1 ? &starts[n - index] : NULL;
}

/* Begins from a configuration; what was the best stays as the champion. *begun false: it does not
 * fit or is too slow. */
static cs_status begin_from(cs_search *s, const cs_configuration *start, bool *begun) {
  bool fits = false;
  cs_bench_pairs pairs;
  *begun = false;
  if (!cs_configuration_valid(start, s->input)) return CS_OK;
  CS_RETURN_IF_ERROR(cs_search_set_trial(s, start, &fits));
  if (!fits) return CS_OK;
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FIRST_PAIRS, &pairs));
  CS_RETURN_IF_ERROR(cs_search_record(s, CS_BENCH_TRIAL, pairs.trial, pairs.n));
  s->measured++;
  if (pairs.ratio > WORST_START) return CS_OK;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &s->champion));
  s->best_us = pairs.trial_us;
  *begun = true;
  return cs_search_accept(s);
}

cs_status cs_search_restart(cs_search *s, const cs_configuration *starts, int n, bool *begun) {
  cs_status st = cs_search_settle(s);
  *begun = false;
  while (!*begun && !cs_search_is_over(s) && st == CS_OK) {
    const cs_configuration *start = start_of(s, starts, n, s->restarts);
    cs_configuration next = {0};
    if (!start) return CS_OK;
    s->restarts++;
    if (start->n == 0) continue;
    st = with_candidates(start, &s->best, &next);
    if (st == CS_OK && !cs_configuration_equal(&next, &s->best)) st = begin_from(s, &next, begun);
    cs_configuration_free(&next);
  }
  return st;
}
