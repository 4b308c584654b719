/* Timing by successive halving. A sample is one replay of a chain of launches that rotates through
 * sets of inputs, outputs and weights; the cache is emptied before it where the chain is too short
 * to do so itself. */
#include <math.h>
#include <stdlib.h>

#include "profiler/measure.h"

#define CHAIN_US 300.0        /* a chain is about this long */
#define SLOW_LAUNCH_US 1000.0 /* above it a chain may be one launch */
#define MEMORY_CAP ((int64_t)1 << 30)
/* Timed by their check alone: candidates so many times slower than the fastest check, and all where
 * that took longer than this. */
#define HOPELESS 5.0
#define CHECK_WILL_DO_US 1e6
/* Baselines, however slow, and whatever is compared with them have so many samples beyond their
 * check, within so long. */
#define BASELINE_SAMPLES 5
#define BASELINE_US 1e6
#define COMPARED_US 0.1e6
#define KEEP_WITHIN 1.5 /* of the best: kept in round 2, and at least … */
#define KEEP_AT_LEAST 8
#define FINALISTS 4
#define SAMPLE_OVERHEAD_US 100.0

typedef struct chain_plan {
  int launches, sets;
  bool scrub;
  int warm_launches;
} chain_plan;

typedef struct timing {
  cs_measuring *measuring;
  cs_op_buffers *buffers;
  const char *name;  /* of the operation */
  cs_trial **trials; /* those still in */
  int n;
  chain_plan plan;
} timing;

/* ---- The chain ---- */

static int clamp_int(double value, int low, int high) {
  return value < low ? low : value > high ? high : (int)value;
}

int64_t cs_measure_memory_cap(const cs_measuring *m) {
  int64_t bytes = m->backend->vtable->info(m->backend)->memory_bytes;
  return bytes > 0 ? cs_min_i64(MEMORY_CAP, bytes / 4) : MEMORY_CAP;
}

static chain_plan plan_chain(const cs_measuring *m, const cs_op_buffers *buffers, double best_us) {
  int64_t set_bytes = cs_max_i64(1, cs_op_buffers_set_bytes(buffers));
  int fits = (int)cs_max_i64(1, cs_min_i64(cs_measure_memory_cap(m) / set_bytes, CS_MAX_CHAIN));
  int timed = clamp_int(ceil(CHAIN_US / fmax(best_us, 0.1)), best_us > SLOW_LAUNCH_US ? 1 : 4,
                        CS_MAX_CHAIN);
  /* Sets enough that the chain is past twice the cache before it comes back to one. */
  double covering =
      m->scrub_bytes > 0 ? ceil((double)m->scrub_bytes / (double)set_bytes) + 1 : timed;
  chain_plan plan = {.launches = timed, .warm_launches = timed};
  double rotated = fmax(covering, timed) * best_us, scrubbed = timed * best_us + m->scrub_us;
  if (covering <= fits && rotated <= 2 * scrubbed) {
    plan.launches = (int)fmax(covering, timed);
    plan.sets = (int)covering;
  } else {
    plan.sets = timed < fits ? timed : fits;
    plan.scrub = m->scrub != NULL;
  }
  return plan;
}

static cs_status create_chain(const timing *t, const cs_trial *trial, int launches, bool rotate,
                              cs_schedule **out) {
  cs_launch chain[CS_MAX_CHAIN];
  cs_backend *backend = t->buffers->backend;
  for (int i = 0; i < launches; i++) {
    chain[i] = cs_op_buffers_launch(t->buffers, trial, rotate ? i % t->plan.sets : 0);
  }
  CS_RETURN_IF_ERROR(
      backend->vtable->schedule_create(backend, chain, launches, &cs_one_stream, true, out));
  return backend->vtable->schedule_run(*out); /* the first replay is not a sample */
}

static cs_status sample_cold(const timing *t, cs_trial *trial, double *us) {
  const cs_measuring *m = t->measuring;
  cs_backend *backend = m->backend;
  if (t->plan.scrub) {
    CS_RETURN_IF_ERROR(backend->vtable->fill(backend, m->scrub, 0, m->scrub_bytes));
  }
  CS_RETURN_IF_ERROR(backend->vtable->schedule_latency(trial->cold, 1, us));
  *us /= t->plan.launches;
  return CS_OK;
}

static cs_status sample_warm(const timing *t, cs_trial *trial, int count) {
  cs_status st = CS_OK;
  cs_schedule *warm = NULL;
  cs_stats stats;
  double us[CS_MAX_SAMPLES];
  const cs_backend_vtable *vtable = t->buffers->backend->vtable;
  CS_TRY(st, create_chain(t, trial, t->plan.warm_launches, false, &warm), done);
  CS_TRY(st, vtable->schedule_latency(warm, count, us), done);
  CS_TRY(st, cs_stats_of(us, count, &stats), done);
  trial->warm_us = stats.median / t->plan.warm_launches;
done:
  if (warm) vtable->schedule_destroy(warm);
  return st;
}

/* ---- Rounds ---- */

static double median_of(const cs_trial *trial) {
  cs_stats stats;
  cs_status st = cs_stats_of(trial->samples, trial->n_samples, &stats);
  if (st != CS_OK) {
    cs_status_free(st);
    return trial->n_samples > 0 ? trial->samples[0] : trial->rough_us;
  }
  return trial->n_samples > 0 ? stats.median : trial->rough_us;
}

static int compare_trials(const void *a, const void *b) {
  double x = median_of(*(cs_trial *const *)a), y = median_of(*(cs_trial *const *)b);
  return (x > y) - (x < y);
}

static void drop_schedule(const timing *t, cs_trial *trial) {
  if (trial->cold) t->buffers->backend->vtable->schedule_destroy(trial->cold);
  trial->cold = NULL;
}

static void sort_and_keep(timing *t, int at_least, double within) {
  if (t->n == 0) return;
  qsort(t->trials, (size_t)t->n, sizeof(cs_trial *), compare_trials);
  double limit = within * median_of(t->trials[0]);
  int keep = 0;
  while (keep < t->n && (keep < at_least || median_of(t->trials[keep]) <= limit)) keep++;
  for (int i = keep; i < t->n; i++) drop_schedule(t, t->trials[i]);
  t->n = keep;
}

/* How many samples of every trial that is still in the share of the budget pays for. */
static int affordable(const timing *t, double share, int low, int high) {
  double sweep = cs_anchor_cost_us(t->measuring->anchor);
  for (int i = 0; i < t->n; i++) {
    sweep += t->plan.launches * median_of(t->trials[i]) + SAMPLE_OVERHEAD_US;
    if (t->plan.scrub) sweep += t->measuring->scrub_us;
  }
  return clamp_int(share * t->measuring->budget_us / sweep, low, high);
}

static cs_status cancelled_error(void) {
  return cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
}

static cs_status first_samples(timing *t, cs_trial *trial, int samples) {
  CS_RETURN_IF_ERROR(cs_op_buffers_grow_pool(t->buffers, trial, t->plan.sets,
                                             cs_measure_memory_cap(t->measuring) / 4));
  CS_RETURN_IF_ERROR(create_chain(t, trial, t->plan.launches, true, &trial->cold));
  for (int s = 0; s < samples; s++) {
    CS_RETURN_IF_ERROR(sample_cold(t, trial, &trial->samples[s]));
    trial->n_samples = s + 1;
  }
  return CS_OK;
}

/* Round 1: everyone, a sample or two; who fails is rejected. */
static cs_status round_one(timing *t) {
  int samples = affordable(t, 0.15, 1, 2), kept = 0, i = 0;
  cs_status st = CS_OK;
  for (; i < t->n && st == CS_OK; i++) {
    cs_trial *trial = t->trials[i];
    if (cs_measuring_cancelled(t->measuring)) {
      st = cancelled_error();
      break;
    }
    cs_measuring_tell(t->measuring, t->name, trial->candidate.id);
    st = first_samples(t, trial, samples);
    if (st == CS_OK) {
      t->trials[kept++] = trial;
      continue;
    }
    drop_schedule(t, trial);
    trial->n_samples = 0;
    st = cs_trial_reject(trial, "failed to run in a chain", st);
    if (st == CS_OK) st = cs_device_alive(t->buffers);
  }
  if (st == CS_OK) t->n = kept;
  return st;
}

/* Round 2: the rest, interleaved; who of them reaches the finals. */
static cs_status round_two(timing *t) {
  if (t->n <= FINALISTS) return CS_OK;
  int samples = affordable(t, 0.35, 2, 5);
  for (int s = 0; s < samples; s++) {
    for (int i = 0; i < t->n; i++) {
      if (cs_measuring_cancelled(t->measuring)) return cancelled_error();
      cs_measuring_tell(t->measuring, t->name, t->trials[i]->candidate.id);
      double us = 0;
      CS_RETURN_IF_ERROR(sample_cold(t, t->trials[i], &us));
      t->trials[i]->samples[s] = us;
      t->trials[i]->n_samples = s + 1;
    }
  }
  return CS_OK;
}

/* ---- Finals ---- */

static cs_status sweep(timing *t, int s) {
  for (int i = 0; i < t->n; i++) {
    double us = 0;
    CS_RETURN_IF_ERROR(sample_cold(t, t->trials[i], &us));
    t->trials[i]->samples[s] = us;
    t->trials[i]->n_samples = s + 1;
  }
  return CS_OK;
}

/* Fresh samples of the finalists, swept in turn with the anchor. On a device that is never steady
 * all are kept, and the variation recorded says so. One that has no rival is timed, not compared:
 * fewer samples do. */
static cs_status finals(timing *t) {
  cs_anchor *anchor = t->n > 1 ? t->measuring->anchor : NULL;
  int wanted = affordable(t, 0.5, 5, t->n > 1 ? 15 : 5);
  cs_sweeps sweeps;
  CS_RETURN_IF_ERROR(cs_sweeps_begin(&sweeps, anchor));
  while (!cs_sweeps_done(&sweeps, wanted)) {
    if (cs_measuring_cancelled(t->measuring)) return cancelled_error();
    cs_measuring_tell(t->measuring, t->name, "finals");
    CS_RETURN_IF_ERROR(sweep(t, sweeps.n));
    CS_RETURN_IF_ERROR(cs_sweeps_end_one(&sweeps, anchor));
  }
  for (int i = 0; i < t->n; i++) {
    t->trials[i]->n_samples = cs_sweeps_keep(&sweeps, wanted, t->trials[i]->samples);
  }
  return CS_OK;
}

static cs_status warm_finals(const timing *t) {
  for (int i = 0; i < t->n; i++) CS_RETURN_IF_ERROR(sample_warm(t, t->trials[i], 5));
  return CS_OK;
}

static cs_status run_rounds(timing *t, double best_us) {
  t->plan = plan_chain(t->measuring, t->buffers, best_us);
  CS_RETURN_IF_ERROR(cs_op_buffers_grow(t->buffers, t->plan.sets));
  CS_RETURN_IF_ERROR(round_one(t));
  sort_and_keep(t, KEEP_AT_LEAST, KEEP_WITHIN);
  CS_RETURN_IF_ERROR(round_two(t));
  sort_and_keep(t, t->n < FINALISTS ? t->n : FINALISTS, 0);
  if (t->n == 0) return CS_OK;
  CS_RETURN_IF_ERROR(finals(t));
  return warm_finals(t);
}

static cs_status launch_again(const cs_op_buffers *buffers, cs_trial *trial) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_schedule *schedule = NULL;
  double us = 0;
  CS_RETURN_IF_ERROR(cs_trial_schedule(buffers, trial, &schedule));
  cs_status st = vtable->schedule_latency(schedule, 1, &us);
  vtable->schedule_destroy(schedule);
  if (st == CS_OK) trial->rough_us = fmin(us, trial->rough_us);
  return st;
}

/* The fastest by its check; NULL: all are rejected. */
static cs_trial *fastest_of(const cs_operation *operation) {
  cs_trial *fastest = NULL;
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (!trial->rejected && (!fastest || trial->rough_us < fastest->rough_us)) fastest = trial;
  }
  return fastest;
}

/* A first launch can be slow for reasons of its own (what is loaded at first use, a busy host).
 * Before all are taken for slow, the fastest has a second one; if that is far faster, all have. */
static cs_status doubt_slow_checks(const cs_op_buffers *buffers, cs_operation *operation) {
  cs_trial *fastest = fastest_of(operation);
  if (!fastest || fastest->rough_us <= CHECK_WILL_DO_US) return CS_OK;
  double first_us = fastest->rough_us;
  CS_RETURN_IF_ERROR(launch_again(buffers, fastest));
  for (int i = 0; i < operation->n_trials && fastest->rough_us < 0.5 * first_us; i++) {
    cs_trial *trial = &operation->trials[i];
    if (!trial->rejected && trial != fastest) CS_RETURN_IF_ERROR(launch_again(buffers, trial));
  }
  return CS_OK;
}

/* What was not among those timed in turn; short ones in chains, as those are. */
static cs_status sample_baseline(const timing *t, cs_trial *trial) {
  cs_status st = CS_OK;
  double spent = trial->rough_us, limit = trial->candidate.baseline ? BASELINE_US : COMPARED_US;
  const cs_backend_vtable *vtable = t->buffers->backend->vtable;
  int launches = clamp_int(CHAIN_US / fmax(trial->rough_us, 0.1), 1, CS_MAX_CHAIN);
  CS_RETURN_IF_ERROR(launches > 1 ? create_chain(t, trial, launches, false, &trial->cold)
                                  : cs_trial_schedule(t->buffers, trial, &trial->cold));
  while (st == CS_OK && trial->n_samples < BASELINE_SAMPLES && spent < limit) {
    double us = 0;
    if (cs_measuring_cancelled(t->measuring)) return cancelled_error();
    cs_measuring_tell(t->measuring, t->name, trial->candidate.id);
    st = vtable->schedule_latency(trial->cold, 1, &us);
    trial->samples[trial->n_samples] = us / launches;
    trial->n_samples += st == CS_OK;
    spent += us;
  }
  return st;
}

static cs_status sample_baselines(const timing *t, cs_operation *operation) {
  bool any = false;
  for (int i = 0; i < operation->n_trials; i++) any |= operation->trials[i].candidate.baseline;
  for (int i = 0; any && i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (trial->rejected || trial->n_samples > 0) continue;
    cs_status st = sample_baseline(t, trial);
    drop_schedule(t, trial);
    if (st == CS_OK) continue;
    trial->n_samples = 0;
    CS_RETURN_IF_ERROR(cs_trial_reject(trial, "failed to run again", st));
    CS_RETURN_IF_ERROR(cs_device_alive(t->buffers));
  }
  return CS_OK;
}

cs_status cs_time_trials(cs_measuring *measuring, cs_op_buffers *buffers, cs_operation *operation) {
  timing t = {.measuring = measuring, .buffers = buffers, .name = operation->name};
  t.trials = cs_calloc((size_t)operation->n_trials, sizeof(cs_trial *));
  if (!t.trials) return cs_no_memory("trials", (size_t)operation->n_trials * sizeof(cs_trial *));
  cs_status st = doubt_slow_checks(buffers, operation);
  const cs_trial *fastest = fastest_of(operation);
  double best_us = fastest ? fastest->rough_us : INFINITY;
  for (int i = 0; i < operation->n_trials; i++) {
    cs_trial *trial = &operation->trials[i];
    if (!trial->rejected && trial->rough_us <= HOPELESS * best_us) t.trials[t.n++] = trial;
  }
  if (st == CS_OK && t.n > 0 && best_us <= CHECK_WILL_DO_US) st = run_rounds(&t, best_us);
  if (st == CS_OK) st = sample_baselines(&t, operation);
  for (int i = 0; i < operation->n_trials; i++) drop_schedule(&t, &operation->trials[i]);
  free(t.trials);
  return st;
}
