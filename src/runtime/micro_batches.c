/* Micro-batches as asked for, and as `coselect` chooses them: from what is measured of parts, a
 * division by scheduler/micro_batch.h; the divided program planned and timed beside the plan there
 * is, whose place it takes where it is faster. The profile keeps both, so that the same profile
 * gives the same plan. */
#include "runtime/micro_batches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/micro_ways.h"
#include "runtime/search.h"
#include "runtime/timed_programs.h"

#define LEAST_EXPECTED 0.02 /* gain for which a divided program is planned */
#define LEAST_SAMPLES 9
#define MOST_SECONDS 2 /* no more samples than the least after that */

enum { WHOLE, DIVIDED };

static const cs_device_info *info_of(const cs_session *session) {
  const cs_backend *backend = session->device->backend;
  return backend->vtable->info(backend);
}

static bool is_cpu(const cs_session *session) {
  return strcmp(info_of(session)->backend, "cpu") == 0;
}

/* ---- As asked for ---- */

static void tell_whole(const cs_session *session, const cs_division *division) {
  const cs_graph *graph = session->planned.graph;
  const cs_logger *logger = &session->device->logger;
  for (int i = 0; i < graph->n_nodes; i++) {
    if (cs_division_parts(division, i)) continue;
    cs_log(logger, CS_LOG_DEBUG, "micro-batches: %s (%s) stays whole", graph->nodes[i].name,
           cs_op_name(graph->nodes[i].op));
  }
  int n = cs_division_count(division);
  if (n == 0) {
    cs_log(logger, CS_LOG_INFO, "micro-batches: none of %d nodes is divided%s", graph->n_nodes,
           graph->batch == 1 ? ": the batch is 1" : "");
    return;
  }
  cs_log(logger, CS_LOG_INFO, "micro-batches: %d of %d nodes in %d parts", n, graph->n_nodes,
         (int)cs_min_i64(session->settings.options.micro_batches, graph->batch));
}

cs_status cs_divide_as_asked(cs_session *session) {
  cs_planned *planned = &session->planned;
  int parts = session->settings.options.micro_batches;
  if (parts < 2 || session->settings.plan_path) return CS_OK;
  CS_RETURN_IF_ERROR(cs_division_create(planned->graph, &planned->division));
  CS_RETURN_IF_ERROR(cs_division_evenly(planned->division, planned->graph, parts));
  tell_whole(session, planned->division);
  return CS_OK;
}

/* ---- A division ---- */

typedef struct divided {
  cs_division *division; /* NULL: nothing is expected of one */
  cs_alternative way;
  cs_micro_trial trial;
} divided;

static void divided_free(divided *d) {
  cs_alternative_free(&d->way);
  cs_division_destroy(d->division);
  *d = (divided){0};
}

/* out->division stays NULL where too little is expected. */
static cs_status divide(const cs_session *session, const cs_ways *u, int streams, divided *out) {
  cs_micro_result at_once = {0};
  const cs_micro_result *result = &u->in_turn;
  if (streams > 1) {
    CS_RETURN_IF_ERROR(cs_ways_solve(session, u, streams, &at_once));
    result = &at_once;
  }
  cs_status st = CS_OK;
  const cs_graph *graph = u->program->graph;
  out->trial = (cs_micro_trial){.streams = streams,
                                .whole_us = result->whole_us,
                                .divided_us = result->us,
                                .cache_us = result->cache_us};
  if (result->us > (1 - LEAST_EXPECTED) * result->whole_us) goto done;
  CS_TRY(st, cs_division_create(graph, &out->division), done);
  for (int t = 0; t < u->program->n_tasks; t++) {
    const cs_micro_parts *parts = &result->parts[t];
    if (parts->n < 2 || parts->n > CS_MOST_PARTS) continue;
    CS_TRY(st,
           cs_division_set(out->division, graph, u->program->tasks[t].node, parts->sizes, parts->n),
           done);
  }
  out->trial.nodes = cs_division_count(out->division);
  if (out->trial.nodes == 0) {
    cs_division_destroy(out->division);
    out->division = NULL;
  }
done:
  cs_micro_result_free(&at_once);
  return st;
}

/* ---- The divided program's plan ---- */

static cs_status plan_divided(cs_session *session, const cs_ways *u, divided *d) {
  cs_status st = CS_OK;
  cs_measure_report report = {0};
  cs_near near = {0};
  const cs_policy *policy = d->trial.streams > 1 ? &cs_policy_streams : &cs_policy_sequential;
  CS_RETURN_IF_ERROR(cs_program_lower_divided(session->planned.graph,
                                              session->settings.options.precision,
                                              u->program->layouts, d->division, &d->way.program));
  /* What is not measured yet lies at other alignments. */
  CS_RETURN_IF_ERROR(cs_profile_program(session->device->profile, session->device->backend,
                                        d->way.program, &u->measure, &session->device->logger,
                                        &report));
  CS_RETURN_IF_ERROR(cs_choices_of_program(session->device->profile, d->way.program,
                                           &session->settings, u->measure.threads, &near,
                                           &d->way.choices));
  if (!session->settings.options.no_graph) {
    cs_choices_begin_early(session->device->backend, d->way.choices, d->way.program->n_tasks);
  }
  cs_policy_input input;
  CS_RETURN_IF_ERROR(cs_planning_input_open(session, &input));
  input.program = d->way.program;
  input.choices = d->way.choices;
  input.max_streams = d->trial.streams;
  input.schedules = NULL;
  CS_TRY(st, cs_alternative_plan(policy, &input, &d->way), done);
  CS_TRY(st, cs_plan_begin_early(session, &input, d->way.plan), done);
  d->trial.tasks = d->way.program->n_tasks;
done:
  cs_planning_input_close(&input);
  return st;
}

/* ---- Beside the plan there is ---- */

/* Pairs of samples, and where the divided one is faster, fresh ones to confirm it. *ratio: of the
 * last ones; *end: the upper end of the interval, the larger one of both. */
static cs_status compare(cs_session *session, const cs_timed_program programs[2],
                         cs_timed_samples *samples, cs_ratio *ratio, double *end) {
  *end = 0;
  for (int round = 0; round < 2 && *end < 1; round++) {
    double ratios[CS_TIMED_PROGRAMS_SAMPLES];
    cs_median_interval interval;
    cs_stats stats;
    CS_RETURN_IF_ERROR(cs_timed_programs_sample(session, programs, "timing micro-batches",
                                                LEAST_SAMPLES, CS_TIMED_PROGRAMS_SAMPLES,
                                                MOST_SECONDS, samples));
    for (int i = 0; i < samples->n; i++)
      ratios[i] = samples->us[DIVIDED][i] / samples->us[WHOLE][i];
    CS_RETURN_IF_ERROR(cs_median_interval_of(ratios, samples->n, CS_SEARCH_CONFIDENCE, &interval));
    CS_RETURN_IF_ERROR(cs_stats_of(ratios, samples->n, &stats));
    *ratio = (cs_ratio){stats.median, interval.low, interval.high, samples->n};
    *end = fmax(*end, interval.high);
  }
  return CS_OK;
}

/* What is kept of the divided one are its samples as the upper end of the interval has them: that
 * end must be below 1 for it to be taken. */
static cs_status measure_pair(cs_session *session, const cs_timed_program programs[2],
                              const cs_timed_pair *key, cs_ratio *ratio) {
  cs_timed_samples samples = {.n = 0};
  cs_stats of_whole, of_divided;
  double end;
  cs_profile *profile = session->device->profile;
  CS_RETURN_IF_ERROR(compare(session, programs, &samples, ratio, &end));
  CS_RETURN_IF_ERROR(cs_stats_of(samples.us[WHOLE], samples.n, &of_whole));
  CS_RETURN_IF_ERROR(cs_stats_of(samples.us[DIVIDED], samples.n, &of_divided));
  CS_RETURN_IF_ERROR(cs_timed_pair_keep(profile, key, WHOLE, samples.us[WHOLE], samples.n, 1));
  return cs_timed_pair_keep(profile, key, DIVIDED, samples.us[DIVIDED], samples.n,
                            of_whole.median * end / of_divided.median);
}

static void take(cs_session *session, divided *d) {
  cs_alternative_take(session, &d->way);
  if (is_cpu(session)) session->planned.one_stream = true;
}

static void tell(const cs_session *session, const cs_micro_trial *trial, const double us[2]) {
  double gain = trial->whole_us - trial->divided_us;
  cs_log(
      &session->device->logger, CS_LOG_INFO,
      "coselect: %d nodes in micro-batches on %d stream%s: %.1f us, undivided %.1f us, %s: %s "
      "(expected of the operations %.1f and %.1f us: %+.1f us by other candidates, %+.1f us by the "
      "cache)",
      trial->nodes, trial->streams, trial->streams > 1 ? "s" : "", us[DIVIDED], us[WHOLE],
      trial->known ? "measured" : "predicted", trial->taken ? "taken" : "not taken",
      trial->divided_us, trial->whole_us, trial->cache_us - gain, -trial->cache_us);
}

static cs_status choose(cs_session *session, const cs_ways *u, divided *d) {
  static const char *const names[2] = {"whole", "divided"};
  cs_status st = CS_OK;
  const cs_planned *planned = &session->planned;
  cs_profile *profile = session->device->profile;
  cs_timed_pair key = {0};
  cs_timed_program programs[2] = {{planned->program, planned->choices, planned->plan},
                                  {d->way.program, d->way.choices, d->way.plan}};
  double us[2] = {planned->plan->predicted_us, d->way.plan->predicted_us};
  CS_TRY(st, cs_timed_programs_name(session, programs, names, "micro-batches", &key), done);
  cs_timed_pair_find(profile, &key, us, &d->trial.known);
  if (cs_may_time_programs(session) && (!d->trial.known || session->settings.options.refresh)) {
    st = measure_pair(session, programs, &key, &d->trial.ratio);
    if (st != CS_OK) {
      st = cs_remeasure_gone(session, st, d->way.program, d->way.choices, u->measure.threads);
    }
    if (st != CS_OK) goto done;
    d->trial.measured = true;
    cs_timed_pair_find(profile, &key, us, &d->trial.known);
  }
  if (!d->trial.known) {
    us[WHOLE] = planned->plan->predicted_us;
    us[DIVIDED] = d->way.plan->predicted_us / (1 - LEAST_EXPECTED);
  }
  /* Predicted, parts on several streams may seem to cost one another nothing. */
  d->trial.taken = us[DIVIDED] < us[WHOLE] && (d->trial.known || d->trial.streams == 1);
  tell(session, &d->trial, us);
  if (d->trial.taken) take(session, d);
done:
  free(key.signature);
  return st;
}

/* ---- All ---- */

/* A divided program that holds no limit, or has no room beside the plan there is, is none. */
static cs_status give_up(const cs_session *session, int streams, cs_status st) {
  cs_code code = cs_status_code(st);
  if (code != CS_CODE_NOT_FOUND && code != CS_CODE_BAD_INPUT && code != CS_CODE_NO_MEMORY) {
    return st;
  }
  cs_log(&session->device->logger, CS_LOG_INFO, "no micro-batches on %d stream%s: %s", streams,
         streams > 1 ? "s" : "", cs_status_message(st));
  cs_status_free(st);
  return CS_OK;
}

static cs_status try_division(cs_session *session, const cs_ways *u, int streams) {
  divided d = {0};
  cs_status st = CS_OK;
  CS_TRY(st, cs_micro_pass_over(divide(session, u, streams, &d)), done);
  if (!d.division) {
    cs_log(&session->device->logger, CS_LOG_DEBUG,
           "micro-batches on %d streams: expected %.1f us, undivided %.1f us: not worth it",
           streams, d.trial.divided_us, d.trial.whole_us);
    goto done;
  }
  CS_TRY(st, plan_divided(session, u, &d), done);
  CS_TRY(st, choose(session, u, &d), done);
  session->micro.trials[session->micro.n_trials++] = d.trial;
done:
  divided_free(&d);
  return give_up(session, streams, st);
}

static bool is_wanted(const cs_session *session) {
  const cs_session_options *options = &session->settings.options;
  return options->micro_batches == 0 && options->n_pins == 0 &&
         session->planned.graph->batch >= CS_MICRO_LEAST_BATCH;
}

cs_status cs_consider_micro_batches(cs_session *session, const cs_measure_options *measure) {
  cs_status st = CS_OK;
  cs_ways u = {0};
  if (!is_wanted(session)) return CS_OK;
  double begun = cs_now_seconds();
  cs_measure_options alone = *measure;
  if (is_cpu(session)) alone.threads = cs_threads_per_stream(info_of(session), 1);
  session->micro.considered = true;
  CS_TRY(st, cs_micro_pass_over(cs_ways_in_best_layouts(session, &alone, &u)), done);
  if (!u.ops) goto done;
  CS_TRY(st, try_division(session, &u, 1), done);
  /* On a CPU parts on streams have fewer threads, and candidates of their own. */
  if (!is_cpu(session) && session->settings.options.max_streams != 1) {
    CS_TRY(st, try_division(session, &u, 2), done);
  }
done:
  session->micro.seconds = cs_now_seconds() - begun;
  cs_ways_close(&u);
  return st;
}
