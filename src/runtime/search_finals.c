/* The end of a search: the best beside every start, and beside what earlier searches left, on fresh
 * samples. What is measured here is what counts as confirmed. */
#include <string.h>

#include "base/progress.h"
#include "runtime/search_state.h"

#define FINAL_SAMPLES 40
#define MOST_RIVALS 16

/* Brings the pairs to the clock at which the best took `best_us`: those compared one after the
 * other keep their order in the profile, however the clock drifted meanwhile. */
static void to_one_clock(cs_bench_pairs *p, double best_us) {
  double of_best = best_us / p->best_us, of_trial = best_us * p->ratio / p->trial_us;
  for (int i = 0; i < p->n; i++) {
    p->best[i] *= of_best;
    p->trial[i] *= of_trial;
  }
  p->best_us = best_us;
  p->trial_us = best_us * p->ratio;
}

/* *fits false: not, or only with other candidates. */
static cs_status set_as_it_is(cs_search *s, const cs_configuration *configuration, bool *fits) {
  cs_configuration held = {0};
  CS_RETURN_IF_ERROR(cs_search_set_trial(s, configuration, fits));
  if (!*fits) return CS_OK;
  CS_RETURN_IF_ERROR(cs_bench_configuration(s->bench, CS_BENCH_TRIAL, &held));
  *fits = cs_configuration_equal(&held, configuration);
  cs_configuration_free(&held);
  return CS_OK;
}

/* The policies in the order of cs_coselect_starts, then what an earlier search left. */
static const char *start_name(int start) {
  int count;
  const cs_policy *const *policies = cs_policy_all(&count);
  for (int i = 0; i < count; i++) {
    if (policies[i] != &cs_policy_coselect && start-- == 0) return policies[i]->name;
  }
  return "earlier search";
}

/* What earlier searches confirmed counts by its number, which may be of a faster clock: all that
 * would be planned before the best is timed beside it, and takes its place only where it is faster.
 */
static cs_status time_rivals(cs_search *s, double best[FINAL_SAMPLES], double *best_us) {
  int unfit = 0;
  for (int i = 0; i < MOST_RIVALS; i++) {
    cs_configuration rival = {0};
    cs_bench_pairs p;
    bool fits = false;
    CS_RETURN_IF_ERROR(cs_search_check_cancelled(s));
    CS_RETURN_IF_ERROR(cs_search_rival(s, *best_us, unfit, &rival));
    if (rival.n == 0) return CS_OK;
    cs_status st = set_as_it_is(s, &rival, &fits);
    cs_configuration_free(&rival);
    CS_RETURN_IF_ERROR(st);
    unfit += !fits;
    if (!fits) continue;
    CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FINAL_SAMPLES, &p));
    to_one_clock(&p, *best_us);
    CS_RETURN_IF_ERROR(cs_search_record(s, CS_BENCH_TRIAL, p.trial, p.n));
    if (p.ratio >= 1) continue;
    CS_RETURN_IF_ERROR(cs_search_accept(s));
    memcpy(best, p.trial, sizeof p.trial[0] * FINAL_SAMPLES);
    *best_us = p.trial_us;
  }
  return CS_OK;
}

/* Fresh samples of the best beside every start: one that is faster (`sequential`: no slower) takes
 * its place, and what is measured here is what counts as confirmed. */
cs_status cs_search_finals(cs_search *s, const cs_configuration *starts, int n) {
  cs_bench_pairs p;
  cs_comparison *told = NULL;
  bool fits = false;
  double best[FINAL_SAMPLES] = {0}, best_us = 0;
  bool sampled = false;
  for (int i = 0; i < n; i++) {
    CS_RETURN_IF_ERROR(cs_search_report_comparison(&s->session->search, start_name(i), &told));
    told->same = cs_configuration_equal(&starts[i], &s->best);
    if (told->same) continue;
    CS_RETURN_IF_ERROR(cs_search_check_cancelled(s));
    CS_RETURN_IF_ERROR(cs_search_set_trial(s, &starts[i], &fits));
    if (!fits) continue;
    cs_progress_step("search, finals", "plans", i, n, "%s", start_name(i));
    CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FINAL_SAMPLES, &p));
    told->ratio = cs_bench_ratio(&p);
    told->took_over = p.ratio < 1 || (i == 0 && p.ratio <= 1); /* of equals the plainest */
    to_one_clock(&p, sampled ? best_us : p.best_us);
    CS_RETURN_IF_ERROR(cs_search_record(s, CS_BENCH_TRIAL, p.trial, p.n));
    memcpy(best, p.best, sizeof best);
    best_us = p.best_us;
    sampled = true;
    if (i == 0) s->sequential_us = p.trial_us; /* the first of the policies */
    if (!told->took_over) continue;
    CS_RETURN_IF_ERROR(cs_search_accept(s));
    memcpy(best, p.trial, sizeof best);
    best_us = p.trial_us;
  }
  if (!sampled) {
    CS_RETURN_IF_ERROR(cs_bench_set(s->bench, CS_BENCH_TRIAL, &s->best));
    CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FINAL_SAMPLES, &p));
    memcpy(best, p.best, sizeof best);
    best_us = p.best_us;
  }
  CS_RETURN_IF_ERROR(time_rivals(s, best, &best_us));
  s->best_us = best_us;
  if (cs_configuration_equal(&starts[0], &s->best)) s->sequential_us = s->best_us;
  return cs_search_record(s, CS_BENCH_BEST, best, FINAL_SAMPLES);
}

void cs_search_log_comparisons(const cs_search *s) {
  const cs_search_report *report = &s->session->search;
  for (int i = 0; i < report->n_comparisons; i++) {
    const cs_comparison *c = &report->comparisons[i];
    if (c->ratio.samples == 0) continue;
    cs_log(&s->session->device->logger, CS_LOG_INFO,
           "search: %s takes %.4f times as long as the best (%.0f%%: %.4f to %.4f, %d pairs)%s",
           c->name, c->ratio.median, 100 * CS_SEARCH_CONFIDENCE, c->ratio.low, c->ratio.high,
           c->ratio.samples, c->took_over ? ": it takes its place" : "");
  }
}
