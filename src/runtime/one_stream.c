/* `coselect` on a CPU: its program runs on several streams with a part of the cores each. Where one
 * stream that has all cores is faster, that is the plan, so that it is not slower than `sequential`
 * there. Both are timed in turn as whole schedules, and the profile keeps what was measured: the
 * same profile gives the same plan. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "runtime/planning.h"
#include "runtime/timed_pair.h"
#include "scheduler/configuration.h"

#define SAMPLES 15
#define LEAST_SAMPLES 5
#define MOST_SECONDS 2 /* no more samples than the least after that */

enum { STREAMS, ONE, N_SIDES };

/* The other way to run the graph: layouts, candidates and plan of its own. */
typedef struct alternative {
  cs_program *program;
  cs_task_choices *choices;
  cs_plan *plan;
  cs_plan_bytes sequential;
  int threads; /* of its one stream */
} alternative;

static void alternative_free(alternative *a) {
  if (a->program) cs_choices_free(a->choices, a->program->n_tasks);
  cs_plan_destroy(a->plan);
  cs_program_destroy(a->program);
}

static cs_status make_alternative(cs_session *session, const cs_measure_options *measure,
                                  alternative *out) {
  cs_near near = {0};
  cs_measure_options whole = *measure;
  whole.threads = out->threads;
  CS_RETURN_IF_ERROR(cs_choose_program(session, &whole, &out->program));
  CS_RETURN_IF_ERROR(cs_choices_of_program(session->device->profile, out->program,
                                           &session->settings, whole.threads, &near,
                                           &out->choices));
  cs_policy_input input = cs_planning_input(session);
  input.program = out->program;
  input.choices = out->choices;
  input.max_streams = 1;
  CS_RETURN_IF_ERROR(cs_plan_make(&cs_policy_sequential, &input, &out->plan));
  free(out->plan->policy);
  out->plan->policy = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(cs_policy_coselect.name, &out->plan->policy));
  return cs_sequential_memory(&input, &out->sequential);
}

/* ---- In the profile: a pair of plans is an operation with two candidates ---- */

static cs_status hash_plan(const cs_program *program, const cs_task_choices *choices,
                           const cs_plan *plan, uint64_t *hash) {
  cs_status st = CS_OK;
  cs_configuration configuration = {0};
  char *text = NULL, *signature = NULL;
  CS_TRY(st, cs_program_signature(program, true, &signature), done);
  CS_TRY(st, cs_configuration_of_plan(plan, choices, &configuration), done);
  CS_TRY(st, cs_configuration_text(&configuration, choices, &text), done);
  *hash = cs_hash_string(cs_hash_string(*hash, signature), text);
done:
  cs_configuration_free(&configuration);
  free(signature);
  free(text);
  return st;
}

static cs_status make_key(const cs_session *session, const alternative *a, cs_timed_pair *out) {
  cs_status st = CS_OK;
  const cs_planned *planned = &session->planned;
  cs_strbuf text = {0};
  char *signature = NULL;
  uint64_t hash = CS_HASH_SEED;
  CS_RETURN_IF_ERROR(
      cs_program_signature(planned->program, !session->settings.options.no_graph, &signature));
  CS_TRY(st, hash_plan(planned->program, planned->choices, planned->plan, &hash), done);
  CS_TRY(st, hash_plan(a->program, a->choices, a->plan, &hash), done);
  snprintf(out->ids[STREAMS], sizeof out->ids[STREAMS], "streams %016" PRIx64, hash);
  snprintf(out->ids[ONE], sizeof out->ids[ONE], "one %016" PRIx64, hash);
  cs_strbuf_printf(&text, "%s beside one stream of %d threads", signature, a->threads);
  st = cs_strbuf_take(&text, &out->signature);
done:
  free(signature);
  return st;
}

/* ---- Measuring ---- */

static cs_status upload_inputs(const cs_session *session, const cs_realised *realised,
                               const cs_program *program, const cs_plan *plan) {
  for (int i = 0; i < program->graph->n_inputs; i++) {
    CS_RETURN_IF_ERROR(
        cs_tensor_write(realised, program, plan, program->input_tensors[i], session->inputs[i]));
  }
  return CS_OK;
}

/* A discarded run before each sample: going from one to the other wakes other threads. */
static cs_status sample(const cs_session *session, const cs_realised realised[N_SIDES],
                        double samples[N_SIDES][SAMPLES], int *n) {
  const cs_backend_vtable *vtable = session->device->backend->vtable;
  double begun = cs_now_seconds(), discarded;
  *n = 0;
  while (*n < SAMPLES && (*n < LEAST_SAMPLES || cs_now_seconds() - begun < MOST_SECONDS)) {
    CS_RETURN_IF_ERROR(cs_session_check_cancelled(session, "the comparison with one stream"));
    cs_progress_step("timing one stream", "samples", *n, SAMPLES, "%s", session->settings.policy);
    for (int s = 0; s < N_SIDES; s++) {
      CS_RETURN_IF_ERROR(vtable->schedule_latency(realised[s].schedule, 1, &discarded));
      CS_RETURN_IF_ERROR(vtable->schedule_latency(realised[s].schedule, 1, &samples[s][*n]));
    }
    (*n)++;
  }
  return CS_OK;
}

/* Samples in turn; the medians that are kept stand in the ratio of the pairs. */
static cs_status measure_pair(const cs_session *session, const alternative *a, cs_profile *profile,
                              const cs_timed_pair *key) {
  cs_status st = CS_OK;
  cs_realised realised[N_SIDES] = {{0}};
  double samples[N_SIDES][SAMPLES], ratios[SAMPLES];
  cs_stats streams, one, ratio;
  int n = 0;
  const cs_planned *planned = &session->planned;
  const cs_params *params = session->shared->params;
  cs_backend *backend = session->device->backend;
  bool no_graph = session->settings.options.no_graph;
  CS_TRY(st, cs_realise(backend, planned->program, planned->plan, params, no_graph, &realised[0]),
         done);
  CS_TRY(st, cs_realise(backend, a->program, a->plan, params, no_graph, &realised[ONE]), done);
  CS_TRY(st, upload_inputs(session, &realised[0], planned->program, planned->plan), done);
  CS_TRY(st, upload_inputs(session, &realised[ONE], a->program, a->plan), done);
  CS_TRY(st, sample(session, (const cs_realised *)realised, samples, &n), done);
  for (int i = 0; i < n; i++) ratios[i] = samples[ONE][i] / samples[STREAMS][i];
  CS_TRY(st, cs_stats_of(samples[STREAMS], n, &streams), done);
  CS_TRY(st, cs_stats_of(samples[ONE], n, &one), done);
  CS_TRY(st, cs_stats_of(ratios, n, &ratio), done);
  CS_TRY(st, cs_timed_pair_keep(profile, key, STREAMS, samples[STREAMS], n, 1), done);
  st = cs_timed_pair_keep(profile, key, ONE, samples[ONE], n,
                          streams.median * ratio.median / one.median);
done:
  for (int s = 0; s < N_SIDES; s++) cs_realised_free(&realised[s]);
  return st;
}

/* ---- Choosing ---- */

static bool may_measure(const cs_session *session) {
  const cs_session_options *options = &session->settings.options;
  return session->shared && !cs_device_is_simulated(session->device) && !options->frozen &&
         options->search_seconds != 0;
}

static void take(cs_session *session, alternative *a) {
  cs_planned *planned = &session->planned;
  alternative old = {planned->program, planned->choices, planned->plan, {0}, 0};
  planned->program = a->program;
  planned->choices = a->choices;
  planned->plan = a->plan;
  planned->sequential = a->sequential;
  planned->one_stream = true;
  *a = old;
}

static cs_status choose(cs_session *session, alternative *a, int threads) {
  cs_status st = CS_OK;
  cs_profile *profile = session->device->profile;
  cs_timed_pair key = {0};
  double us[N_SIDES] = {session->planned.plan->predicted_us, a->plan->predicted_us};
  bool known = false;
  CS_TRY(st, make_key(session, a, &key), done);
  cs_timed_pair_find(profile, &key, us, &known);
  if (may_measure(session) && (!known || session->settings.options.refresh)) {
    CS_TRY(st, cs_session_generate_inputs(session), done);
    st = measure_pair(session, a, profile, &key);
    if (st != CS_OK) st = cs_remeasure_gone(session, st, a->program, a->choices, a->threads);
    if (st != CS_OK) goto done;
    cs_timed_pair_find(profile, &key, us, &known);
  }
  if (!known) {
    us[STREAMS] = session->planned.plan->predicted_us;
    us[ONE] = a->plan->predicted_us;
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
  alternative_free(&a);
  return st;
}
