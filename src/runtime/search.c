#include "runtime/search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "runtime/planning.h"

#define QUICK_SAMPLES 2 /* pairs after which most are seen to be no faster */
#define QUICK_WORSE 0.004
#define FIRST_SAMPLES 5
#define MORE_SAMPLES 15
#define WINS_WANTED 11     /* of MORE_SAMPLES pairs */
#define IDLE_ROUNDS 3      /* without anything faster, each looking further than the one before */
#define LATER_DESCENTS 0.5 /* of the time left, for descents behind the next one */
#define LEAST_GAIN 0.002   /* smaller gains are taken for chance */

/* ---- One trial ---- */

static bool is_cancelled(const cs_search *s) {
  const cs_session_options *options = &s->session->settings.options;
  return options->cancelled && options->cancelled(options->cancelled_user);
}

/* Of the time or the steps, whichever is more; 1 and more: all. */
static double used_share(const cs_search *s) {
  int steps = s->session->settings.options.search_steps;
  double of_time = s->seconds > 0 ? (cs_now_seconds() - s->begun) / s->seconds : 1;
  return fmax(of_time, steps > 0 ? (double)s->measured / steps : 0);
}

static bool is_used_up(const cs_search *s) {
  return is_cancelled(s) || used_share(s) >= 1;
}

bool cs_search_is_over(const cs_search *s) {
  return is_cancelled(s) || used_share(s) >= 1 - s->held_back;
}

cs_status cs_search_check_cancelled(const cs_search *s) {
  if (!is_cancelled(s)) return CS_OK;
  return cs_error(CS_CODE_CANCELLED, "the search was interrupted; what was measured is kept");
}

static void show_progress(const cs_search *s) {
  cs_progress_timed("search", "schedules", s->measured, s->session->settings.options.search_steps,
                    cs_now_seconds() - s->begun, s->seconds, "%d taken, best %.1f us (first %.1f)",
                    s->accepted, s->best_us, s->begun_us);
}

/* *fits false: it does not hold the limits, or the device has no room for it; *why says so where it
 * is asked for. */
static cs_status set_slot(cs_search *s, cs_bench_slot slot, const cs_configuration *configuration,
                          bool *fits, cs_status *why) {
  cs_status st = cs_bench_set(s->bench, slot, configuration);
  cs_code code = cs_status_code(st);
  *fits = st == CS_OK;
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_NO_MEMORY) return st;
  if (why) {
    cs_status_free(*why);
    *why = st;
  } else {
    cs_status_free(st);
  }
  return CS_OK;
}

cs_status cs_search_set_trial(cs_search *s, const cs_configuration *configuration, bool *fits) {
  return set_slot(s, CS_BENCH_TRIAL, configuration, fits, NULL);
}

cs_status cs_search_accept(cs_search *s) {
  cs_configuration held;
  CS_RETURN_IF_ERROR(cs_bench_configuration(s->bench, CS_BENCH_TRIAL, &held));
  cs_configuration_free(&s->best);
  s->best = held;
  cs_bench_swap(s->bench);
  return CS_OK;
}

/* Whether the trial, as the limits left it, is worth measuring. */
static cs_status is_news(cs_search *s, bool again, bool *out) {
  cs_configuration held;
  CS_RETURN_IF_ERROR(cs_bench_configuration(s->bench, CS_BENCH_TRIAL, &held));
  cs_status st = CS_OK;
  bool known = false;
  if (!again) st = cs_search_is_known(s, &held, &known);
  *out = !known && !cs_configuration_equal(&held, &s->best);
  cs_configuration_free(&held);
  return st;
}

/* Measures a configuration beside the best one; it takes its place where it is faster on fresh
 * samples. `again`: also one that was measured before. */
static cs_status try_one(cs_search *s, const cs_configuration *configuration, bool again) {
  bool fits = false, known = false, news = false;
  cs_bench_pairs first, more;
  CS_RETURN_IF_ERROR(cs_search_check_cancelled(s));
  if (cs_configuration_equal(configuration, &s->best)) return CS_OK;
  /* Variants of a block may have priorities where the best is split. */
  if (!cs_configuration_valid(configuration, s->input)) return CS_OK;
  if (!again) CS_RETURN_IF_ERROR(cs_search_is_known(s, configuration, &known));
  if (known) return CS_OK;
  CS_RETURN_IF_ERROR(cs_search_set_trial(s, configuration, &fits));
  if (!fits) return CS_OK;
  CS_RETURN_IF_ERROR(is_news(s, again, &news));
  if (!news) return CS_OK;
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, QUICK_SAMPLES, &first));
  if (first.ratio <= 1 + QUICK_WORSE) {
    CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FIRST_SAMPLES, &first));
  }
  CS_RETURN_IF_ERROR(cs_search_record(s, CS_BENCH_TRIAL, first.trial, first.n));
  s->measured++;
  show_progress(s);
  if (first.ratio > 1 - LEAST_GAIN) return CS_OK;
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, MORE_SAMPLES, &more));
  if (more.ratio > 1 - LEAST_GAIN || more.wins < WINS_WANTED) return CS_OK;
  s->best_us = more.trial_us;
  s->accepted++;
  return cs_search_accept(s);
}

cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) {
  return try_one(s, configuration, s->anew);
}

/* ---- Whole configurations ---- */

/* *begun false: it does not fit; *why says why. */
static cs_status begin_with(cs_search *s, const cs_configuration *start, bool *begun,
                            cs_status *why) {
  cs_bench_pairs same;
  CS_RETURN_IF_ERROR(set_slot(s, CS_BENCH_BEST, start, begun, why));
  if (*begun) CS_RETURN_IF_ERROR(set_slot(s, CS_BENCH_TRIAL, start, begun, why));
  if (!*begun) return CS_OK;
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FIRST_SAMPLES, &same));
  s->best_us = s->begun_us = same.best_us;
  CS_RETURN_IF_ERROR(cs_bench_configuration(s->bench, CS_BENCH_BEST, &s->best));
  return cs_search_record(s, CS_BENCH_BEST, same.best, same.n);
}

/* Begins with the first that fits, from starts[first] on. *begun false: the device has no room for
 * any. */
static cs_status begin(cs_search *s, const cs_configuration *starts, int n, int first,
                       bool *begun) {
  cs_status st = CS_OK, why = CS_OK;
  *begun = false;
  for (int i = 0; i < n && st == CS_OK && !*begun; i++) {
    st = begin_with(s, &starts[(first + i) % n], begun, &why);
  }
  if (st == CS_OK && !*begun && cs_status_code(why) == CS_CODE_NO_MEMORY) {
    cs_log(&s->session->device->logger, CS_LOG_WARNING,
           "no search: no room to time schedules (%s); what is known serves",
           cs_status_message(why));
  } else if (st == CS_OK && !*begun) {
    st = why, why = CS_OK;
  }
  cs_status_free(why);
  return st;
}

/* The starts: the policies' plans, `sequential` first, and the best of an earlier search, which is
 * to be beaten as they are. */
static cs_status try_wholes(cs_search *s, cs_configuration *starts, int *n, bool *begun) {
  cs_status st = CS_OK;
  cs_configuration earlier[CS_SEARCH_EARLIER] = {{0}};
  bool confirmed = false;
  int n_earlier = 0, policies = *n;
  CS_TRY(st, cs_search_earlier(s, earlier, &n_earlier, &confirmed), done);
  if (confirmed) {
    starts[(*n)++] = earlier[0];
    earlier[0] = (cs_configuration){0};
  }
  CS_TRY(st, begin(s, starts, *n, confirmed ? policies : 0, begun), done);
  if (!*begun) goto done;
  for (int i = 0; i < policies; i++) CS_TRY(st, try_one(s, &starts[i], true), done);
  if (s->in_flight) CS_TRY(st, cs_search_in_flight_wholes(s, starts, policies), done);
  for (int i = confirmed; i < n_earlier && !cs_search_is_over(s); i++) {
    CS_TRY(st, try_one(s, &earlier[i], true), done);
  }
  if (cs_search_is_over(s)) goto done;
  CS_TRY(st, cs_coselect_by_model(s->model, &s->made), done);
  CS_TRY(st, cs_search_try(s, &s->made), done);
  st = cs_search_early_at_all(s);
done:
  for (int i = 0; i < CS_SEARCH_EARLIER; i++) cs_configuration_free(&earlier[i]);
  return st;
}

/* ---- Rounds ---- */

/* What there is to gain where the device is full: the model's timelines are of one request. */
static cs_status run_round_in_flight(cs_search *s) {
  CS_RETURN_IF_ERROR(cs_search_early_at_all(s));
  CS_RETURN_IF_ERROR(cs_search_in_flight_candidates(s));
  CS_RETURN_IF_ERROR(cs_search_merges(s));
  CS_RETURN_IF_ERROR(cs_search_hints(s));
  CS_RETURN_IF_ERROR(cs_search_streams(s));
  return cs_search_early(s);
}

/* Everything once, from the best. What gains most for its time comes first: time is up before a
 * round ends on large networks. */
static cs_status run_round(cs_search *s, const cs_configuration *starts, int n) {
  if (s->in_flight) return run_round_in_flight(s);
  CS_RETURN_IF_ERROR(cs_search_early_at_all(s));
  CS_RETURN_IF_ERROR(cs_search_candidates(s));
  CS_RETURN_IF_ERROR(cs_search_blocks(s, starts, n));
  CS_RETURN_IF_ERROR(cs_search_merges(s));
  CS_RETURN_IF_ERROR(cs_search_streams(s));
  CS_RETURN_IF_ERROR(cs_search_order(s));
  CS_RETURN_IF_ERROR(cs_search_hints(s));
  CS_RETURN_IF_ERROR(cs_search_early(s));
  CS_RETURN_IF_ERROR(cs_search_pairs(s));
  CS_RETURN_IF_ERROR(cs_search_priorities(s));
  return cs_search_partitions(s);
}

/* Ends a descent: the next one has half of what is left, the last one all of it. */
static cs_status next_descent(cs_search *s, const cs_configuration *starts, int n) {
  bool begun = false;
  s->held_back = fmax(0, 1 - used_share(s)) * LATER_DESCENTS;
  CS_RETURN_IF_ERROR(cs_search_restart(s, starts, n, &begun));
  if (begun)
    s->idle = 0;
  else
    s->held_back = 0;
  return CS_OK;
}

/* A descent ends with a round that found nothing, or with its share of the time, and another
 * begins; once there is none to begin from, rounds look further from the best of all, until
 * IDLE_ROUNDS found nothing. A round that was cut short says nothing of what there is to find. */
static cs_status run_rounds(cs_search *s, const cs_configuration *starts, int n, bool *converged) {
  *converged = false;
  s->held_back = LATER_DESCENTS;
  while (!is_used_up(s) && !*converged) {
    int before = s->accepted;
    CS_RETURN_IF_ERROR(run_round(s, starts, n));
    CS_RETURN_IF_ERROR(cs_search_check_cancelled(s));
    bool cut = cs_search_is_over(s);
    s->idle = s->accepted == before && !cut ? s->idle + 1 : 0;
    s->round++;
    if (s->idle > 0 || cut) CS_RETURN_IF_ERROR(next_descent(s, starts, n));
    *converged = !is_used_up(s) && s->idle >= IDLE_ROUNDS;
  }
  return cs_search_settle(s);
}

static cs_status run_search(cs_search *s) {
  cs_status st = CS_OK;
  cs_configuration starts[CS_COSELECT_STARTS] = {{0}};
  bool converged = false, begun = false;
  int n = 0;
  /* Under a memory limit as the policies hold it: what they plan without may not fit. */
  bool limited = s->input->memory_limit > 0;
  CS_TRY(st, cs_coselect_starts(limited ? s->limited : s->input, limited, starts, &n), done);
  for (int i = 0; i < n && !s->in_flight; i++) { /* as they will run */
    CS_TRY(st, cs_choose_early(s->session, s->input, s->bench, &starts[i]), done);
  }
  CS_TRY(st, try_wholes(s, starts, &n, &begun), done);
  if (!begun) goto done;
  s->session->search.searched = true;
  CS_TRY(st, run_rounds(s, starts, n, &converged), done);
  CS_TRY(st, cs_search_fall_back(s, &starts[0]), done);
  CS_TRY(st, cs_search_finals(s, starts, n), done);
  cs_search_settle_fallbacks(s);
  cs_completion completion = {.workspace_limit = s->input->workspace_limit,
                              .threads = s->input->max_streams};
  CS_TRY(st, cs_profile_mark_completion(s->profile, s->name, &completion), done);
  cs_log(&s->session->device->logger, CS_LOG_INFO,
         "search: %d schedules measured in %.1f s, %d taken%s: %.1f us%s (sequential %.1f)",
         s->measured, cs_now_seconds() - s->begun, s->accepted,
         converged ? ", nothing faster left to try" : "", s->best_us,
         s->in_flight ? " a request" : "", s->sequential_us);
  cs_search_log_comparisons(s);
done:
  for (int i = 0; i < CS_COSELECT_STARTS; i++) cs_configuration_free(&starts[i]);
  return st;
}

/* By a program that knew the candidates there are of its operations. */
static cs_status is_searched(const cs_search *s, const char *name, bool *out) {
  const cs_session_options *options = &s->session->settings.options;
  const cs_op_profile *known = cs_profile_find(s->profile, name);
  cs_completion wanted = {.workspace_limit = s->input->workspace_limit,
                          .threads = s->input->max_streams};
  int since = 0;
  CS_RETURN_IF_ERROR(cs_program_candidates_since(s->profile, s->input->program, &since));
  *out = !options->refresh && options->search_seconds < 0 &&
         cs_op_profile_covers_since(known, &wanted, since);
  return CS_OK;
}

cs_status cs_search_schedules(cs_session *session, const cs_policy_input *input) {
  cs_status st = CS_OK;
  char *name = NULL, *signature = NULL;
  const cs_session_options *options = &session->settings.options;
  cs_policy_input plain = *input;
  plain.model = NULL; /* what is measured needs no predicted timeline */
  cs_search s = {.session = session, .input = &plain, .limited = input};
  int in_flight = cs_session_in_flight(session);
  bool searched = false;
  if (options->frozen || options->search_seconds == 0) return CS_OK;
  CS_TRY(st, cs_session_schedules_signature(session, input->program, &signature), done);
  s.signature = signature;
  CS_TRY(st, cs_device_profile(session->device, session->settings.cache_dir, &s.profile), done);
  CS_TRY(st, cs_search_name(session, input, signature, &name), done);
  CS_TRY(st, is_searched(&s, name, &searched), done);
  if (searched) goto done;
  s.name = name;
  s.begun = cs_now_seconds();
  double seconds = options->search_seconds > 0 ? options->search_seconds : CS_SEARCH_SECONDS;
  s.fallback_seconds = cs_search_fallback_seconds(seconds);
  s.seconds = seconds - s.fallback_seconds;
  CS_TRY(st, cs_session_generate_inputs(session), done);
  CS_TRY(st, cs_coselect_create(&plain, &s.model), done);
  CS_TRY(st, cs_bench_create(session, &plain, in_flight, &s.bench), done);
  if (in_flight > 1) CS_TRY(st, cs_search_know_in_flight(&s, in_flight), done);
  st = run_search(&s);
done:
  cs_search_forget_in_flight(&s);
  cs_bench_destroy(s.bench);
  cs_coselect_destroy(s.model);
  cs_configuration_free(&s.best);
  cs_configuration_free(&s.made);
  cs_configuration_free(&s.champion);
  free(name);
  free(signature);
  return st;
}

/* ---- Candidates only ---- */

static cs_status run_candidate_rounds(cs_search *s, const cs_configuration *base,
                                      const cs_configuration *other) {
  cs_status why = CS_OK;
  bool begun = false;
  cs_status st = begin_with(s, base, &begun, &why);
  if (st == CS_OK && begun) st = cs_search_try(s, other);
  while (st == CS_OK && begun && s->idle < 2 && !cs_search_is_over(s)) {
    int before = s->accepted;
    st = cs_search_candidates(s);
    if (st == CS_OK) st = cs_search_pairs(s);
    s->idle = s->accepted == before ? s->idle + 1 : 0;
  }
  if (st == CS_OK && !begun) return why;
  cs_status_free(why);
  return st;
}

cs_status cs_search_candidates_of(cs_session *session, cs_coselect *model, cs_bench *bench,
                                  const cs_configuration *base, const cs_configuration *other,
                                  double seconds, cs_configuration *out) {
  cs_status st = CS_OK;
  char *signature = NULL;
  const cs_policy_input *input = model->input;
  cs_search s = {.session = session,
                 .input = input,
                 .limited = input,
                 .model = model,
                 .bench = bench,
                 .begun = cs_now_seconds(),
                 .seconds = seconds,
                 .anew = true};
  *out = (cs_configuration){0};
  CS_RETURN_IF_ERROR(cs_session_schedules_signature(session, input->program, &signature));
  s.signature = signature;
  CS_TRY(st, cs_device_profile(session->device, session->settings.cache_dir, &s.profile), done);
  CS_TRY(st, run_candidate_rounds(&s, base, other), done);
  *out = s.best;
  s.best = (cs_configuration){0};
done:
  cs_configuration_free(&s.best);
  free(signature);
  return st;
}
