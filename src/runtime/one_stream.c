/* `coselect` on a CPU: its program runs on several streams with a part of the cores each. Where one
 * stream that has all cores is faster, that is the plan, so that it is not slower than `sequential`
 * there. Both are timed in turn as whole schedules, and the profile keeps what was measured: the
 * same profile gives the same plan. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/planning.h"
#include "runtime/timed_programs.h"

#define SAMPLES 15
#define LEAST_SAMPLES 5
#define MOST_SECONDS 2 /* no more samples than the least after that */

enum { STREAMS, ONE, N_SIDES };

/* The other way to run the graph: layouts and candidates of its own. */
typedef struct alternative {
  cs_alternative way;
  int threads; /* of its one stream */
} alternative;

static cs_status make_alternative(cs_session *session, const cs_measure_options *measure,
                                  alternative *out) {
  cs_near near = {0};
  cs_measure_options whole = *measure;
  whole.threads = out->threads;
  cs_alternative *way = &out->way;
  CS_RETURN_IF_ERROR(cs_choose_program(session, &whole, &way->program));
  CS_RETURN_IF_ERROR(cs_choices_of_program(session->device->profile, way->program,
                                           &session->settings, whole.threads, &near,
                                           &way->choices));
  cs_policy_input input = cs_planning_input(session);
  input.program = way->program;
  input.choices = way->choices;
  input.max_streams = 1;
  return cs_alternative_plan(&cs_policy_sequential, &input, way);
}

/* ---- Both, as the profile has them ---- */

static void both(const cs_session *session, const alternative *a, cs_timed_program out[N_SIDES]) {
  const cs_planned *planned = &session->planned;
  out[STREAMS] = (cs_timed_program){planned->program, planned->choices, planned->plan};
  out[ONE] = (cs_timed_program){a->way.program, a->way.choices, a->way.plan};
}

static cs_status make_key(const cs_session *session, const alternative *a, cs_timed_pair *out) {
  static const char *const names[N_SIDES] = {"streams", "one"};
  cs_timed_program programs[N_SIDES];
  char beside[40];
  both(session, a, programs);
  snprintf(beside, sizeof beside, "one stream of %d threads", a->threads);
  return cs_timed_programs_name(session, programs, names, beside, out);
}

/* Samples in turn; the medians that are kept stand in the ratio of the pairs. */
static cs_status measure_pair(cs_session *session, const alternative *a, cs_profile *profile,
                              const cs_timed_pair *key) {
  cs_timed_program programs[N_SIDES];
  cs_timed_samples samples;
  double ratios[SAMPLES];
  cs_stats streams, one, ratio;
  both(session, a, programs);
  CS_RETURN_IF_ERROR(cs_timed_programs_sample(session, programs, "the comparison with one stream",
                                              LEAST_SAMPLES, SAMPLES, MOST_SECONDS, &samples));
  int n = samples.n;
  for (int i = 0; i < n; i++) ratios[i] = samples.us[ONE][i] / samples.us[STREAMS][i];
  CS_RETURN_IF_ERROR(cs_stats_of(samples.us[STREAMS], n, &streams));
  CS_RETURN_IF_ERROR(cs_stats_of(samples.us[ONE], n, &one));
  CS_RETURN_IF_ERROR(cs_stats_of(ratios, n, &ratio));
  CS_RETURN_IF_ERROR(cs_timed_pair_keep(profile, key, STREAMS, samples.us[STREAMS], n, 1));
  return cs_timed_pair_keep(profile, key, ONE, samples.us[ONE], n,
                            streams.median * ratio.median / one.median);
}

/* ---- Choosing ---- */

static void take(cs_session *session, alternative *a) {
  cs_alternative_take(session, &a->way);
  session->planned.one_stream = true;
}

static cs_status choose(cs_session *session, alternative *a, int threads) {
  cs_status st = CS_OK;
  cs_profile *profile = session->device->profile;
  cs_timed_pair key = {0};
  double us[N_SIDES] = {session->planned.plan->predicted_us, a->way.plan->predicted_us};
  bool known = false;
  CS_TRY(st, make_key(session, a, &key), done);
  cs_timed_pair_find(profile, &key, us, &known);
  if (cs_may_time_programs(session) && (!known || session->settings.options.refresh)) {
    st = measure_pair(session, a, profile, &key);
    if (st != CS_OK)
      st = cs_remeasure_gone(session, st, a->way.program, a->way.choices, a->threads);
    if (st != CS_OK) goto done;
    cs_timed_pair_find(profile, &key, us, &known);
  }
  if (!known) {
    us[STREAMS] = session->planned.plan->predicted_us;
    us[ONE] = a->way.plan->predicted_us;
  }
  bool one = us[ONE] <= us[STREAMS];
  cs_log(&session->device->logger, CS_LOG_INFO,
         "coselect: streams: %d (threads each: %d) %.1f us, one with %d threads %.1f us, %s: %s",
         session->planned.plan->n_streams, threads, us[STREAMS], a->threads, us[ONE],
         known ? "measured" : "predicted", one ? "the one is planned" : "the streams are planned");
  if (one) take(session, a);
done:
  free(key.signature);
  return st;
}

/* The streams have no plan: the one takes its place. */
static void take_only(cs_session *session, alternative *a, cs_status streams) {
  cs_log(&session->device->logger, CS_LOG_INFO, "%s; one stream with %d threads is planned",
         cs_status_message(streams), a->threads);
  cs_status_free(streams);
  take(session, a);
}

cs_status cs_consider_one_stream(cs_session *session, const cs_measure_options *measure,
                                 cs_status streams) {
  const cs_device_info *info = session->device->backend->vtable->info(session->device->backend);
  alternative a = {.threads = cs_threads_per_stream(info, 1)};
  bool none = cs_status_code(streams) == CS_CODE_NOT_FOUND &&
              session->settings.options.memory_limit > 0 && session->planned.choices;
  if (streams != CS_OK && !none) return streams;
  if (a.threads == measure->threads) return streams; /* nothing else to have, or no CPU */
  cs_status st = make_alternative(session, measure, &a);
  cs_code code = cs_status_code(st);
  if (code == CS_CODE_NOT_FOUND || code == CS_CODE_BAD_INPUT) { /* pins, limits, frozen */
    cs_log(&session->device->logger, CS_LOG_DEBUG, "no plan of one stream with %d threads: %s",
           a.threads, cs_status_message(st));
    cs_status_free(st);
    st = streams;
  } else if (st == CS_OK && none) {
    take_only(session, &a, streams);
  } else if (st == CS_OK) {
    st = choose(session, &a, measure->threads);
  } else {
    cs_status_free(streams);
  }
  cs_alternative_free(&a.way);
  return st;
}
