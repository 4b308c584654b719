/* Whether a policy's plan begins early. A policy that does not search has no opinion: its plan with
 * all launches early that can be, and with none, are timed in turn, and the faster one is planned.
 * The profile keeps what was measured: the same profile gives the same plan. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "runtime/search.h"
#include "runtime/timed_pair.h"

#define SAMPLES 40
#define LEAST_SAMPLES 7
#define MOST_SECONDS 0.5 /* no more samples than the least after that */

enum { EARLY, LATE }; /* the two ways of a pair */

static bool can_begin_early(const cs_policy_input *input, const cs_configuration *configuration) {
  bool any = false;
  for (int p = 0; p < configuration->n; p++) {
    any = any || cs_configuration_can_begin_early(configuration, input->choices, p);
  }
  return any;
}

static void set_late(cs_configuration *configuration, bool late) {
  for (int p = 0; p < configuration->n; p++) configuration->places[p].late = late;
}

static cs_status name_pair(const cs_policy_input *input, const cs_configuration *configuration,
                           cs_timed_pair *out) {
  cs_status st = CS_OK;
  char *text = NULL, *signature = NULL;
  cs_strbuf name = {0};
  CS_TRY(st, cs_program_signature(input->program, true, &signature), done);
  CS_TRY(st, cs_configuration_text(configuration, input->choices, &text), done);
  uint64_t hash = cs_hash_string(CS_HASH_SEED, text);
  snprintf(out->ids[EARLY], sizeof out->ids[EARLY], "early %016" PRIx64, hash);
  snprintf(out->ids[LATE], sizeof out->ids[LATE], "late %016" PRIx64, hash);
  cs_strbuf_printf(&name, "%s begun early or late", signature);
  st = cs_strbuf_take(&name, &out->signature);
done:
  free(signature);
  free(text);
  return st;
}

/* ---- Measuring ---- */

static bool may_measure(const cs_session *session) {
  const cs_session_options *options = &session->settings.options;
  return session->shared && !options->frozen && options->search_seconds != 0;
}

/* A few pairs, and where there is time for more of them, fresh ones. */
static cs_status compare(cs_bench *bench, cs_bench_pairs *out) {
  double begun = cs_now_seconds();
  CS_RETURN_IF_ERROR(cs_bench_compare(bench, LEAST_SAMPLES, out));
  double pairs = MOST_SECONDS / ((cs_now_seconds() - begun) / LEAST_SAMPLES);
  int n = pairs < SAMPLES ? (int)pairs : SAMPLES;
  return n > LEAST_SAMPLES ? cs_bench_compare(bench, n, out) : CS_OK;
}

static cs_status time_both(cs_bench *bench, const cs_configuration *early, cs_bench_pairs *out) {
  cs_configuration late = {0};
  CS_RETURN_IF_ERROR(cs_configuration_copy(early, &late));
  set_late(&late, true);
  cs_status st = cs_bench_set(bench, CS_BENCH_BEST, early);
  if (st == CS_OK) st = cs_bench_set(bench, CS_BENCH_TRIAL, &late);
  if (st == CS_OK) st = compare(bench, out);
  cs_configuration_free(&late);
  return st;
}

static cs_status measure_on(cs_session *session, cs_bench *bench, const cs_configuration *early,
                            const cs_timed_pair *pair) {
  cs_bench_pairs p;
  cs_profile *profile = session->device->profile;
  CS_RETURN_IF_ERROR(
      cs_session_check_cancelled(session, "timing a plan with and without early beginnings"));
  cs_progress_step("timing early beginnings", NULL, 0, 0, "%s", session->settings.policy);
  cs_status st = time_both(bench, early, &p);
  cs_code code = cs_status_code(st);
  if (code == CS_CODE_NOT_FOUND || code == CS_CODE_NO_MEMORY) {
    cs_log(&session->device->logger, CS_LOG_WARNING,
           "%s: no room to time its plan with and without early beginnings (%s); what can begins "
           "early",
           session->settings.policy, cs_status_message(st));
    cs_status_free(st);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(st);
  CS_RETURN_IF_ERROR(cs_timed_pair_keep(profile, pair, EARLY, p.best, p.n, 1));
  return cs_timed_pair_keep(profile, pair, LATE, p.trial, p.n, p.best_us * p.ratio / p.trial_us);
}

static cs_status measure(cs_session *session, const cs_policy_input *input, cs_bench *bench,
                         const cs_configuration *early, const cs_timed_pair *pair) {
  cs_bench *own = NULL;
  cs_policy_input plain = *input;
  plain.model = NULL; /* what is measured needs no predicted timeline */
  if (bench) return measure_on(session, bench, early, pair);
  CS_RETURN_IF_ERROR(cs_session_generate_inputs(session));
  CS_RETURN_IF_ERROR(cs_bench_create(session, &plain, 1, &own));
  cs_status st = measure_on(session, own, early, pair);
  cs_bench_destroy(own);
  return st;
}

cs_status cs_choose_early(cs_session *session, const cs_policy_input *input, cs_bench *bench,
                          cs_configuration *configuration) {
  cs_status st = CS_OK;
  cs_timed_pair pair = {0};
  double us[2] = {0, 0};
  bool known = false;
  set_late(configuration, false);
  if (!can_begin_early(input, configuration)) return CS_OK;
  CS_TRY(st, name_pair(input, configuration, &pair), done);
  cs_timed_pair_find(session->device->profile, &pair, us, &known);
  if (may_measure(session) && (!known || session->settings.options.refresh)) {
    CS_TRY(st, measure(session, input, bench, configuration, &pair), done);
    cs_timed_pair_find(session->device->profile, &pair, us, &known);
  }
  if (known) {
    set_late(configuration, us[LATE] < us[EARLY]);
    cs_log(&session->device->logger, CS_LOG_DEBUG,
           "%s: %.1f us where kernels begin early, %.1f us where none does",
           session->settings.policy, us[EARLY], us[LATE]);
  }
done:
  free(pair.signature);
  return st;
}

cs_status cs_plan_begin_early(cs_session *session, const cs_policy_input *input, cs_plan *plan) {
  cs_configuration configuration = {0};
  CS_RETURN_IF_ERROR(cs_configuration_of_plan(plan, input->choices, &configuration));
  cs_status st = cs_choose_early(session, input, NULL, &configuration);
  for (int p = 0; st == CS_OK && p < plan->n_tasks; p++) {
    plan->tasks[p].late = configuration.places[p].late;
  }
  cs_configuration_free(&configuration);
  return st;
}
