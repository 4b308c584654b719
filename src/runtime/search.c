#include "runtime/search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SAMPLES 5
#define MORE_SAMPLES 15
#define FINAL_SAMPLES 40
#define WINS_WANTED 11   /* of MORE_SAMPLES pairs */
#define LEAST_GAIN 0.002 /* smaller gains are taken for chance */

/* ---- Samples ---- */

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of(const double *values, int n) {
  double sorted[FINAL_SAMPLES];
  memcpy(sorted, values, (size_t)n * sizeof *values);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* n pairs of samples of the best and the trial. */
typedef struct pairs {
  double best[FINAL_SAMPLES], trial[FINAL_SAMPLES];
  double best_us, trial_us, ratio; /* medians; ratio: trial / best, pair by pair */
  int n, wins;
} pairs;

static cs_status take_pairs(cs_search *s, int n, pairs *out) {
  double ratios[FINAL_SAMPLES];
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, n, out->best, out->trial));
  out->n = n;
  out->wins = 0;
  for (int i = 0; i < n; i++) {
    ratios[i] = out->trial[i] / out->best[i];
    out->wins += ratios[i] < 1;
  }
  out->best_us = median_of(out->best, n);
  out->trial_us = median_of(out->trial, n);
  out->ratio = median_of(ratios, n);
  return CS_OK;
}

static cs_status record(cs_search *s, const cs_configuration *configuration, cs_bench_slot slot,
                        const double *samples, int n) {
  cs_stats stats;
  char *id = NULL;
  CS_RETURN_IF_ERROR(cs_stats_of(samples, n, &stats));
  CS_RETURN_IF_ERROR(cs_configuration_text(configuration, s->input->choices, &id));
  cs_candidate candidate = {.id = id,
                            .family = (char *)(uintptr_t) "schedule",
                            .workspace_bytes = cs_bench_workspace(s->bench, slot)};
  cs_measurement measured = {.cold_us = stats.median,
                             .warm_us = stats.median,
                             .p10_us = stats.p10,
                             .p90_us = stats.p90,
                             .variation = stats.variation,
                             .samples = n};
  cs_status st = cs_profile_add(s->profile, s->signature, &candidate, &measured);
  free(id);
  return st;
}

static cs_status is_known(const cs_search *s, const cs_configuration *configuration, bool *out) {
  char *id = NULL;
  CS_RETURN_IF_ERROR(cs_configuration_text(configuration, s->input->choices, &id));
  *out = cs_op_profile_record(cs_profile_find(s->profile, s->signature), id) != NULL;
  free(id);
  return CS_OK;
}

/* ---- One trial ---- */

bool cs_search_is_over(const cs_search *s) {
  int steps = s->session->settings.options.search_steps;
  return cs_now_seconds() - s->begun > s->seconds || (steps > 0 && s->measured >= steps);
}

static cs_status check_cancelled(const cs_search *s) {
  const cs_session_options *options = &s->session->settings.options;
  if (!options->cancelled || !options->cancelled(options->cancelled_user)) return CS_OK;
  return cs_error(CS_CODE_CANCELLED, "the search was interrupted; what was measured is kept");
}

static void show_progress(const cs_search *s) {
  cs_log(&s->session->device->logger, CS_LOG_PROGRESS,
         "searching: %d schedules measured, %d taken, %.1f us (at first %.1f), at most %.0f s more",
         s->measured, s->accepted, s->best_us, s->begun_us,
         fmax(0, s->seconds - (cs_now_seconds() - s->begun)));
}

/* Sets the trial; *fits false: it does not hold the limits. */
static cs_status set_trial(cs_search *s, const cs_configuration *configuration, bool *fits) {
  cs_status st = cs_bench_set(s->bench, CS_BENCH_TRIAL, configuration);
  cs_code code = cs_status_code(st);
  *fits = st == CS_OK;
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_NO_MEMORY) return st;
  cs_status_free(st);
  return CS_OK;
}

/* Measures a configuration beside the best one and takes its place where it is faster on fresh
 * samples. */
cs_status cs_search_try(cs_search *s, const cs_configuration *configuration) {
  bool fits = false, known = false;
  pairs first, more;
  CS_RETURN_IF_ERROR(check_cancelled(s));
  if (cs_configuration_equal(configuration, &s->best)) return CS_OK;
  CS_RETURN_IF_ERROR(is_known(s, configuration, &known));
  if (known) return CS_OK;
  CS_RETURN_IF_ERROR(set_trial(s, configuration, &fits));
  if (!fits) return CS_OK;
  CS_RETURN_IF_ERROR(take_pairs(s, FIRST_SAMPLES, &first));
  CS_RETURN_IF_ERROR(record(s, configuration, CS_BENCH_TRIAL, first.trial, first.n));
  s->measured++;
  show_progress(s);
  if (first.ratio > 1 - LEAST_GAIN) return CS_OK;
  CS_RETURN_IF_ERROR(take_pairs(s, MORE_SAMPLES, &more));
  if (more.ratio > 1 - LEAST_GAIN || more.wins < WINS_WANTED) return CS_OK;
  cs_configuration copy;
  CS_RETURN_IF_ERROR(cs_configuration_copy(configuration, &copy));
  cs_configuration_free(&s->best);
  s->best = copy;
  s->best_us = more.trial_us;
  s->accepted++;
  cs_bench_swap(s->bench);
  return CS_OK;
}

/* ---- Whole configurations ---- */

static cs_status begin_with(cs_search *s, const cs_configuration *start) {
  double unused[FIRST_SAMPLES], samples[FIRST_SAMPLES];
  CS_RETURN_IF_ERROR(cs_configuration_copy(start, &s->best));
  CS_RETURN_IF_ERROR(cs_bench_set(s->bench, CS_BENCH_BEST, start));
  CS_RETURN_IF_ERROR(cs_bench_set(s->bench, CS_BENCH_TRIAL, start));
  CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FIRST_SAMPLES, samples, unused));
  s->best_us = s->begun_us = median_of(samples, FIRST_SAMPLES);
  return record(s, start, CS_BENCH_BEST, samples, FIRST_SAMPLES);
}

/* The best configuration that an earlier search confirmed; valid false: none. */
static cs_status known_best(const cs_search *s, cs_configuration *out, bool *valid) {
  const cs_op_profile *known = cs_profile_find(s->profile, s->signature);
  *valid = false;
  for (int r = 0; known && r < known->n_records && !*valid; r++) {
    if (known->records[r].measured.rejected ||
        known->records[r].measured.samples < CS_SCHEDULE_CONFIRMED) {
      continue;
    }
    CS_RETURN_IF_ERROR(
        cs_configuration_parse(known->records[r].candidate.id, s->input, out, valid));
  }
  return CS_OK;
}

static cs_status try_wholes(cs_search *s, const cs_configuration *starts, int n) {
  cs_status st = CS_OK;
  cs_configuration made = {0}, earlier = {0};
  bool valid = false;
  CS_RETURN_IF_ERROR(known_best(s, &earlier, &valid));
  CS_TRY(st, begin_with(s, valid ? &earlier : &starts[0]), done);
  for (int i = 0; i < n; i++) CS_TRY(st, cs_search_try(s, &starts[i]), done);
  CS_TRY(st, cs_coselect_by_model(s->model, &made), done);
  st = cs_search_try(s, &made);
done:
  cs_configuration_free(&made);
  cs_configuration_free(&earlier);
  return st;
}

/* ---- The end ---- */

/* Fresh samples of the best beside every start: one that is no slower takes its place, and what is
 * measured here is what counts as confirmed. */
static cs_status finals(cs_search *s, const cs_configuration *starts, int n) {
  pairs p;
  bool fits = false;
  double best[FINAL_SAMPLES] = {0};
  bool sampled = false;
  for (int i = 0; i < n; i++) {
    if (cs_configuration_equal(&starts[i], &s->best)) continue;
    CS_RETURN_IF_ERROR(check_cancelled(s));
    CS_RETURN_IF_ERROR(set_trial(s, &starts[i], &fits));
    if (!fits) continue;
    CS_RETURN_IF_ERROR(take_pairs(s, FINAL_SAMPLES, &p));
    CS_RETURN_IF_ERROR(record(s, &starts[i], CS_BENCH_TRIAL, p.trial, p.n));
    memcpy(best, p.best, sizeof best);
    sampled = true;
    if (i == 0) s->sequential_us = p.trial_us; /* the first of the policies */
    if (p.ratio > 1) continue;
    cs_configuration copy;
    CS_RETURN_IF_ERROR(cs_configuration_copy(&starts[i], &copy));
    cs_configuration_free(&s->best);
    s->best = copy;
    cs_bench_swap(s->bench);
    memcpy(best, p.trial, sizeof best);
  }
  if (!sampled) {
    double unused[FINAL_SAMPLES];
    CS_RETURN_IF_ERROR(cs_bench_set(s->bench, CS_BENCH_TRIAL, &s->best));
    CS_RETURN_IF_ERROR(cs_bench_compare(s->bench, FINAL_SAMPLES, best, unused));
  }
  s->best_us = median_of(best, FINAL_SAMPLES);
  if (cs_configuration_equal(&starts[0], &s->best)) s->sequential_us = s->best_us;
  return record(s, &s->best, CS_BENCH_BEST, best, FINAL_SAMPLES);
}

static cs_status run_rounds(cs_search *s, const cs_configuration *starts, int n, bool *converged) {
  *converged = false;
  while (!cs_search_is_over(s) && !*converged) {
    int before = s->accepted;
    CS_RETURN_IF_ERROR(cs_search_blocks(s, starts, n));
    CS_RETURN_IF_ERROR(cs_search_candidates(s));
    CS_RETURN_IF_ERROR(cs_search_pairs(s));
    CS_RETURN_IF_ERROR(cs_search_streams(s));
    CS_RETURN_IF_ERROR(cs_search_order(s));
    *converged = !cs_search_is_over(s) && s->accepted == before && s->round > 0;
    s->round++;
  }
  return CS_OK;
}

static cs_status run_search(cs_search *s) {
  cs_status st = CS_OK;
  cs_configuration starts[CS_COSELECT_STARTS] = {{0}};
  bool converged = false;
  int n = 0;
  CS_TRY(st, cs_coselect_starts(s->input, starts, &n), done);
  CS_TRY(st, try_wholes(s, starts, n), done);
  CS_TRY(st, run_rounds(s, starts, n, &converged), done);
  CS_TRY(st, finals(s, starts, n), done);
  cs_completion completion = {.workspace_limit = s->input->workspace_limit,
                              .threads = s->input->max_streams};
  CS_TRY(st, cs_profile_mark_completion(s->profile, s->signature, &completion), done);
  cs_log(&s->session->device->logger, CS_LOG_INFO,
         "search: %d schedules measured in %.1f s, %d taken%s: %.1f us (sequential %.1f)",
         s->measured, cs_now_seconds() - s->begun, s->accepted,
         converged ? ", nothing faster left to try" : "", s->best_us, s->sequential_us);
done:
  for (int i = 0; i < CS_COSELECT_STARTS; i++) cs_configuration_free(&starts[i]);
  return st;
}

static bool is_searched(const cs_session *session, const cs_policy_input *input,
                        const cs_op_profile *known) {
  cs_completion wanted = {.workspace_limit = input->workspace_limit, .threads = input->max_streams};
  const cs_session_options *options = &session->settings.options;
  return !options->refresh && options->search_seconds < 0 && cs_op_profile_covers(known, &wanted);
}

cs_status cs_search_schedules(cs_session *session, const cs_policy_input *input,
                              const char *signature) {
  cs_status st = CS_OK;
  const cs_session_options *options = &session->settings.options;
  cs_search s = {.session = session, .input = input, .signature = signature};
  CS_RETURN_IF_ERROR(cs_device_profile(session->device, session->settings.cache_dir, &s.profile));
  if (options->frozen || options->search_seconds == 0 ||
      is_searched(session, input, cs_profile_find(s.profile, signature))) {
    return CS_OK;
  }
  s.begun = cs_now_seconds();
  s.seconds = options->search_seconds > 0 ? options->search_seconds : CS_SEARCH_SECONDS;
  CS_TRY(st, cs_session_generate_inputs(session), done);
  CS_TRY(st, cs_coselect_create(input, &s.model), done);
  CS_TRY(st, cs_bench_create(session, input, &s.bench), done);
  st = run_search(&s);
done:
  cs_bench_destroy(s.bench);
  cs_coselect_destroy(s.model);
  cs_configuration_free(&s.best);
  return st;
}
