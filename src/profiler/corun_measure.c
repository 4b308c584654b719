/* Times of a set's combinations: everyone screened, fresh samples of the best. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/corun.h"

#define SCREEN_SAMPLES 2
#define COLD_FINALISTS 3 /* beside the fastest alone */
#define WARM_FINALISTS 2
#define LEAST_SWEEPS 5
#define MOST_SWEEPS 11
#define LEAST_SCREENED 4 /* whatever the budget */
#define HOPELESS 1.05    /* one member alone takes this many times the best together */

static cs_status median_of(const double *samples, int n, double *out) {
  cs_stats stats;
  CS_RETURN_IF_ERROR(cs_stats_of(samples, n, &stats));
  *out = stats.median;
  return CS_OK;
}

/* The schedules of ways `from` … `to`. */
static cs_status make_schedules(const cs_corun_case *c, cs_combination *combination,
                                cs_corun_way from, cs_corun_way to) {
  for (int w = (int)from; w <= (int)to; w++) {
    CS_RETURN_IF_ERROR(
        cs_corun_schedule(c, combination, (cs_corun_way)w, &combination->schedules[w]));
  }
  return CS_OK;
}

static bool is_live(const cs_combination *combination) {
  return combination->schedules[CS_CORUN_COLD] != NULL;
}

/* ---- Records ---- */

cs_status cs_corun_of(const cs_corun_case *c, const cs_combination *combination, cs_corun *out) {
  cs_status st = CS_OK;
  const cs_device_info *device =
      c->group->profiling->backend->vtable->info(c->group->profiling->backend);
  const cs_demand *demands[CS_CORUN_MOST];
  memset(out, 0, sizeof *out);
  out->members = cs_calloc((size_t)c->n, sizeof *out->members);
  if (!out->members) return cs_no_memory("members", (size_t)c->n * sizeof *out->members);
  for (int i = 0; i < c->n; i++) {
    const cs_operation *operation = &c->members[i]->operation;
    int t = combination->choice[i];
    out->n = i + 1;
    CS_TRY(st, cs_strdup_to(operation->signature, &out->members[i].signature), done);
    CS_TRY(st, cs_strdup_to(operation->trials[t].candidate.id, &out->members[i].candidate), done);
    demands[i] = &c->members[i]->demands[t];
  }
  snprintf(out->limiter, sizeof out->limiter, "%s", cs_demands_limiter(device, demands, c->n));
  out->overlap = out->serial_us = out->serial_warm_us = out->concurrent_warm_us = NAN;
  for (int k = 0; k < CS_COUNTER_COUNT; k++) out->counters.value[k] = NAN;
  cs_corun_sort(out);
done:
  if (st != CS_OK) cs_corun_clear(out);
  return st;
}

static cs_status record(const cs_corun_case *c, const cs_combination *combination) {
  cs_status st = CS_OK;
  cs_corun corun;
  cs_stats stats;
  double *medians[CS_CORUN_WAYS] = {&corun.concurrent_us, &corun.concurrent_warm_us,
                                    &corun.serial_us, &corun.serial_warm_us};
  if (combination->n[CS_CORUN_COLD] == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_corun_of(c, combination, &corun));
  for (int w = 0; w < CS_CORUN_WAYS; w++) {
    if (combination->n[w] == 0) continue; /* of who was screened only */
    CS_TRY(st, median_of(combination->us[w], combination->n[w], medians[w]), done);
  }
  CS_TRY(st, cs_stats_of(combination->us[CS_CORUN_COLD], combination->n[CS_CORUN_COLD], &stats),
         done);
  corun.p10_us = stats.p10;
  corun.p90_us = stats.p90;
  corun.variation = stats.variation;
  corun.samples = combination->n[CS_CORUN_COLD];
  CS_TRY(st, cs_profile_add_corun(c->group->profiling->profile, &corun), done);
  c->group->report->combinations++;
done:
  cs_corun_clear(&corun);
  return st;
}

/* ---- Screening ---- */

static cs_status screen(const cs_corun_case *c, cs_combination *combination) {
  CS_RETURN_IF_ERROR(make_schedules(c, combination, CS_CORUN_COLD, CS_CORUN_WARM));
  for (int s = 0; s < SCREEN_SAMPLES; s++) CS_RETURN_IF_ERROR(cs_corun_sample(c, combination, s));
  return CS_OK;
}

/* A combination that fails to run is given up, if the device still works. */
static cs_status give_up(const cs_corun_case *c, cs_combination *combination, cs_status why) {
  cs_code code = cs_status_code(why);
  if (code == CS_CODE_NO_MEMORY || code == CS_CODE_CANCELLED) return why;
  cs_log(c->group->profiling->logger, CS_LOG_WARNING, "%s beside others: a combination failed: %s",
         c->members[0]->operation.name, cs_status_message(why));
  cs_status_free(why);
  cs_combination_drop(c, combination);
  memset(combination->n, 0, sizeof combination->n);
  return cs_device_alive(&c->members[0]->buffers);
}

static double screened_us(const cs_combination *combination, cs_corun_way way) {
  double us = INFINITY;
  for (int s = 0; s < combination->n[way]; s++) us = fmin(us, combination->us[way][s]);
  return us;
}

/* How many live combinations other than the fastest alone are faster in one way. */
static int place_of(const cs_corun_case *c, const cs_combination *combination, cs_corun_way way) {
  int place = 0;
  for (int i = 1; i < c->n_combinations; i++) {
    const cs_combination *other = &c->combinations[i];
    double us = screened_us(combination, way), others = screened_us(other, way);
    if (!is_live(other) || other == combination) continue;
    if (others < us || (others == us && other < combination)) place++;
  }
  return place;
}

/* Keeps the schedules of the fastest-alone combination and of the best others, cold or warm. */
static void keep_finalists(cs_corun_case *c) {
  bool drop[CS_CORUN_COMBINATIONS] = {false};
  for (int i = 1; i < c->n_combinations; i++) {
    const cs_combination *combination = &c->combinations[i];
    drop[i] = is_live(combination) && place_of(c, combination, CS_CORUN_COLD) >= COLD_FINALISTS &&
              place_of(c, combination, CS_CORUN_WARM) >= WARM_FINALISTS;
  }
  for (int i = 1; i < c->n_combinations; i++) {
    if (drop[i]) cs_combination_drop(c, &c->combinations[i]);
  }
}

static cs_status screen_all(cs_corun_case *c, double each_us) {
  double best_us = screened_us(&c->combinations[0], CS_CORUN_COLD);
  int left = (int)fmax(LEAST_SCREENED, 0.6 * c->group->budget_us / fmax(each_us, 1));
  for (int i = 1; i < c->n_combinations && left > 0; i++) {
    cs_combination *combination = &c->combinations[i];
    if (combination->longest_us > HOPELESS * best_us) continue;
    if (cs_measuring_cancelled(c->group->measuring)) {
      return cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
    }
    cs_status st = screen(c, combination);
    if (st != CS_OK) CS_RETURN_IF_ERROR(give_up(c, combination, st));
    best_us = fmin(best_us, screened_us(combination, CS_CORUN_COLD));
    keep_finalists(c);
    left--;
  }
  return CS_OK;
}

/* ---- Finals ---- */

static cs_status sweep(cs_corun_case *c, int at) {
  for (int i = 0; i < c->n_combinations; i++) {
    cs_combination *combination = &c->combinations[i];
    if (is_live(combination)) CS_RETURN_IF_ERROR(cs_corun_sample(c, combination, at));
  }
  return CS_OK;
}

static int affordable_sweeps(const cs_corun_case *c) {
  double us = cs_anchor_cost_us(c->group->measuring->anchor);
  for (int i = 0; i < c->n_combinations; i++) {
    const cs_combination *combination = &c->combinations[i];
    if (!is_live(combination)) continue;
    us += (c->scrub ? 6 : 4) * c->rounds * combination->alone_us + 400;
    if (c->scrub) us += 2 * c->group->measuring->scrub_us;
  }
  return (int)fmin(fmax(0.4 * c->group->budget_us / us, LEAST_SWEEPS), MOST_SWEEPS);
}

/* Fresh samples of the finalists, interleaved: what was screened is overwritten. */
static cs_status finals(cs_corun_case *c) {
  cs_anchor *anchor = c->group->measuring->anchor;
  int wanted = affordable_sweeps(c);
  cs_sweeps sweeps;
  for (int i = 0; i < c->n_combinations; i++) {
    if (!is_live(&c->combinations[i])) continue;
    CS_RETURN_IF_ERROR(
        make_schedules(c, &c->combinations[i], CS_CORUN_SERIAL, CS_CORUN_SERIAL_WARM));
  }
  CS_RETURN_IF_ERROR(cs_sweeps_begin(&sweeps, anchor));
  while (!cs_sweeps_done(&sweeps, wanted)) {
    if (cs_measuring_cancelled(c->group->measuring)) {
      return cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
    }
    CS_RETURN_IF_ERROR(sweep(c, sweeps.n));
    CS_RETURN_IF_ERROR(cs_sweeps_end_one(&sweeps, anchor));
  }
  for (int i = 0; i < c->n_combinations; i++) {
    cs_combination *combination = &c->combinations[i];
    if (!is_live(combination)) continue;
    for (int w = 0; w < CS_CORUN_WAYS; w++) {
      combination->n[w] = cs_sweeps_keep(&sweeps, wanted, combination->us[w]);
    }
  }
  return CS_OK;
}

cs_status cs_corun_measure(cs_corun_case *c) {
  double start = cs_now_seconds();
  cs_status st = screen(c, &c->combinations[0]);
  if (st != CS_OK) {
    CS_RETURN_IF_ERROR(give_up(c, &c->combinations[0], st));
    c->group->report->sets_skipped++;
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(screen_all(c, 1e6 * (cs_now_seconds() - start)));
  CS_RETURN_IF_ERROR(finals(c));
  /* The fastest alone comes last: a set counts as measured once it is there. */
  for (int i = c->n_combinations - 1; i >= 0; i--) {
    CS_RETURN_IF_ERROR(record(c, &c->combinations[i]));
    cs_combination_drop(c, &c->combinations[i]);
  }
  return CS_OK;
}
