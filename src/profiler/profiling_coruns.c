/* Co-runs of a program: block by block, first all times, then (with counters) traces and counters.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "profiler/corun.h"

/* Time for samples: of a whole call, and the least and most of a set. */
#define CALL_BUDGET_US 25e6
#define LEAST_BUDGET_US 0.08e6
#define MOST_BUDGET_US 0.5e6
/* Sets whose records are counted: replaying a chain for every group of counters takes long. */
#define COUNTED_SETS 32

/* ---- Sets and what is known of them ---- */

/* The fastest time alone of each task; 0 where nothing is known. */
static cs_status times_alone(const cs_profiling *profiling, double *out) {
  const cs_device_info *device = profiling->backend->vtable->info(profiling->backend);
  for (int t = 0; t < profiling->program->n_tasks; t++) {
    const cs_record *set[CS_PARETO_MOST];
    char *signature = NULL;
    CS_RETURN_IF_ERROR(cs_op_signature(&profiling->program->tasks[t].desc, &signature));
    int n = cs_op_pareto(cs_profile_find(profiling->profile, signature), device, profiling->options,
                         1, set);
    out[t] = n > 0 ? set[0]->measured.cold_us : 0;
    free(signature);
  }
  return CS_OK;
}

/* Streams that run beside each other: on a CPU, as many as its cores have threads for. */
static int most_members(const cs_profiling *profiling) {
  const cs_device_info *device = profiling->backend->vtable->info(profiling->backend);
  int most = device->max_streams > 0 ? device->max_streams : CS_CORUN_MOST;
  int threads = profiling->options->threads;
  if (threads > 0 && device->units / threads < most) most = device->units / threads;
  return most;
}

cs_status cs_profiling_corun_sets(const cs_profiling *profiling, cs_corun_set **out, int *n) {
  double *weights = cs_calloc((size_t)profiling->program->n_tasks, sizeof *weights);
  if (!weights) return cs_no_memory("times", (size_t)profiling->program->n_tasks * sizeof(double));
  cs_status st = times_alone(profiling, weights);
  if (st == CS_OK) {
    st = cs_corun_sets_of(profiling->program, profiling->tasks, weights, most_members(profiling),
                          out, n);
  }
  free(weights);
  return st;
}

typedef struct set_names { /* signatures sorted, and the fastest-alone candidate of each */
  char *signatures[CS_CORUN_MOST];
  cs_corun base; /* members alone */
  bool fits;
} set_names;

static void names_clear(set_names *names, int n) {
  for (int i = 0; i < n; i++) free(names->signatures[i]);
  cs_corun_clear(&names->base);
}

static cs_status names_of(const cs_profiling *profiling, const cs_corun_set *set, set_names *out) {
  const cs_device_info *device = profiling->backend->vtable->info(profiling->backend);
  const cs_record *records[CS_CORUN_MOST][CS_PARETO_MOST];
  int64_t workspace[CS_CORUN_MOST][CS_PARETO_MOST] = {{0}};
  int sizes[CS_CORUN_MOST] = {0}, choice[CS_CORUN_MOST] = {0};
  cs_status st = CS_OK;
  memset(out, 0, sizeof *out);
  out->fits = true;
  out->base.members = cs_calloc((size_t)set->n, sizeof *out->base.members);
  if (!out->base.members) return cs_no_memory("members", (size_t)set->n);
  for (int i = 0; i < set->n; i++) {
    const cs_op_desc *desc = &profiling->program->tasks[set->tasks[i]].desc;
    out->base.n = i + 1;
    CS_TRY(st, cs_op_signature(desc, &out->base.members[i].signature), done);
    sizes[i] = cs_op_pareto(cs_profile_find(profiling->profile, out->base.members[i].signature),
                            device, profiling->options, CS_PARETO_MOST, records[i]);
    for (int r = 0; r < sizes[i]; r++) workspace[i][r] = records[i][r]->candidate.workspace_bytes;
    out->fits = out->fits && sizes[i] > 0;
  }
  out->fits = out->fits && cs_corun_base((const int64_t(*)[CS_PARETO_MOST])workspace, sizes, set->n,
                                         profiling->options->workspace_limit, choice);
  for (int i = 0; i < set->n; i++) {
    const char *id = out->fits ? records[i][choice[i]]->candidate.id : "";
    CS_TRY(st, cs_strdup_to(id, &out->base.members[i].candidate), done);
  }
  cs_corun_sort(&out->base);
  for (int i = 0; i < set->n; i++) {
    CS_TRY(st, cs_strdup_to(out->base.members[i].signature, &out->signatures[i]), done);
  }
done:
  if (st != CS_OK) names_clear(out, set->n);
  return st;
}

static bool same_candidates(const cs_corun *a, const cs_corun *b) {
  for (int i = 0; i < a->n; i++) {
    if (strcmp(a->members[i].candidate, b->members[i].candidate) != 0) return false;
  }
  return a->n == b->n;
}

cs_status cs_profiling_corun_outcome(const cs_profiling *profiling, const cs_corun_set *set,
                                     cs_corun_outcome *out) {
  const cs_corun **known = NULL;
  int n = 0;
  set_names names;
  *out = (cs_corun_outcome){NULL, NULL, NULL, false};
  CS_RETURN_IF_ERROR(names_of(profiling, set, &names));
  cs_status st = cs_profile_coruns(profiling->profile, (const char *const *)names.signatures,
                                   set->n, &known, &n);
  for (int i = 0; st == CS_OK && i < n; i++) {
    if (names.fits && same_candidates(known[i], &names.base)) out->fastest_alone = known[i];
    if (known[i]->samples < CS_CORUN_CONFIRMED) continue;
    if (!out->best || known[i]->concurrent_us < out->best->concurrent_us) out->best = known[i];
    if (isnan(known[i]->concurrent_warm_us)) continue;
    if (!out->best_warm || known[i]->concurrent_warm_us < out->best_warm->concurrent_warm_us) {
      out->best_warm = known[i];
    }
  }
  if (!out->best) out->best = out->fastest_alone;
  out->fits = names.fits;
  free(known);
  names_clear(&names, set->n);
  return st;
}

/* ---- Measuring ---- */

typedef struct coruns_pass {
  const cs_profiling *profiling;
  cs_measuring measuring;
  cs_corun_report *report;
  const cs_corun_set **wanted;
  int n_wanted;
  double start;
  bool inspecting;
} coruns_pass;

static cs_status missing(const cs_profiling *profiling, const cs_corun_set *set) {
  cs_strbuf names = {0};
  for (int i = 0; i < set->n; i++) {
    cs_strbuf_printf(&names, "%s%s", i > 0 ? " + " : "",
                     profiling->program->tasks[set->tasks[i]].name);
  }
  cs_status st =
      cs_error(CS_CODE_NOT_FOUND, "%s: not measured together, and measuring is forbidden (frozen)",
               names.data ? names.data : "a set");
  cs_strbuf_free(&names);
  return st;
}

/* The sets that lack times. */
static cs_status find_unmeasured(coruns_pass *pass, const cs_corun_set *sets, int n) {
  const cs_profiling *profiling = pass->profiling;
  pass->n_wanted = 0;
  for (int i = 0; i < n; i++) {
    cs_corun_outcome outcome;
    CS_RETURN_IF_ERROR(cs_profiling_corun_outcome(profiling, &sets[i], &outcome));
    if (!outcome.fits) {
      pass->report->sets_skipped++;
    } else if (outcome.fastest_alone && !profiling->options->refresh) {
      pass->report->sets_cached++;
    } else if (profiling->options->frozen) {
      return missing(profiling, &sets[i]);
    } else {
      pass->wanted[pass->n_wanted++] = &sets[i];
    }
  }
  return CS_OK;
}

static bool lacks(const coruns_pass *pass, const cs_corun *record, bool counters) {
  const cs_backend_vtable *vtable = pass->profiling->backend->vtable;
  return record && ((vtable->schedule_trace && isnan(record->overlap)) ||
                    (counters && vtable->schedule_counters_whole && !record->counted));
}

/* The sets whose records lack overlap or, of the first ones, counters. */
static cs_status find_uninspected(coruns_pass *pass, const cs_corun_set *sets, int n) {
  pass->n_wanted = 0;
  for (int i = 0; i < n; i++) {
    cs_corun_outcome outcome;
    CS_RETURN_IF_ERROR(cs_profiling_corun_outcome(pass->profiling, &sets[i], &outcome));
    bool counters = i < COUNTED_SETS;
    if (!outcome.fastest_alone) continue;
    if (lacks(pass, outcome.fastest_alone, counters) || lacks(pass, outcome.best, counters)) {
      pass->wanted[pass->n_wanted++] = &sets[i];
    }
  }
  return CS_OK;
}

static cs_status measure_set(cs_corun_group *group, const cs_corun_set *set) {
  cs_corun_case *c = NULL;
  CS_RETURN_IF_ERROR(cs_corun_case_create(group, set, &c));
  if (!c) {
    group->report->sets_skipped++;
    return CS_OK;
  }
  cs_status st = cs_corun_measure(c);
  cs_corun_case_destroy(c);
  return st;
}

/* The device gives neither traces nor counters. */
static bool given_up(const coruns_pass *pass) {
  const cs_backend_vtable *vtable = pass->profiling->backend->vtable;
  return (!vtable->schedule_trace || pass->report->untraced[0]) &&
         (!vtable->schedule_counters_whole || pass->report->unavailable[0]);
}

/* The wanted sets from `first` on that are of one block; *next is behind them. */
static cs_status run_block(coruns_pass *pass, const cs_corun_set *all, int first, int *next) {
  cs_corun_group group;
  int n = 0;
  while (first + n < pass->n_wanted && pass->wanted[first + n]->block == pass->wanted[first]->block)
    n++;
  *next = first + n;
  CS_RETURN_IF_ERROR(
      cs_corun_group_create(pass->profiling, &pass->measuring, &pass->wanted[first], n, &group));
  group.report = pass->report;
  group.budget_us = fmin(fmax(CALL_BUDGET_US / pass->n_wanted, LEAST_BUDGET_US), MOST_BUDGET_US);
  cs_status st = CS_OK;
  for (int i = first; i < *next && st == CS_OK && !(pass->inspecting && given_up(pass)); i++) {
    if (cs_measuring_cancelled(&pass->measuring)) {
      st = cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
      break;
    }
    cs_progress_step(pass->inspecting ? "co-runs traced" : "co-runs", "sets", i, pass->n_wanted,
                     NULL);
    const cs_corun_set *set = pass->wanted[i];
    st = pass->inspecting ? cs_corun_inspect(&group, set, set - all < COUNTED_SETS)
                          : measure_set(&group, set);
  }
  cs_corun_group_destroy(&group);
  return st;
}

static cs_status run_pass(coruns_pass *pass, const cs_corun_set *all) {
  cs_status st = CS_OK;
  cs_measure_report unused = {0};
  if (pass->n_wanted == 0) return CS_OK;
  cs_wanted session = cs_profiling_wanted(pass->profiling, &unused);
  pass->start = cs_now_seconds();
  CS_RETURN_IF_ERROR(cs_measuring_open(&session, pass->n_wanted, &pass->measuring));
  for (int i = 0; i < pass->n_wanted && st == CS_OK;) st = run_block(pass, all, i, &i);
  cs_measuring_close(&pass->measuring);
  return st;
}

typedef cs_status (*find_fn)(coruns_pass *pass, const cs_corun_set *sets, int n);

static cs_status run_sets(coruns_pass *pass, find_fn find) {
  cs_status st = CS_OK;
  double start = cs_now_seconds();
  cs_corun_set *sets = NULL;
  int n = 0;
  CS_TRY(st, cs_profiling_corun_sets(pass->profiling, &sets, &n), done);
  if (!pass->inspecting) pass->report->sets += n;
  pass->wanted = cs_calloc((size_t)n, sizeof *pass->wanted);
  if (!pass->wanted) {
    st = cs_no_memory("sets", (size_t)n * sizeof *pass->wanted);
    goto done;
  }
  CS_TRY(st, find(pass, sets, n), done);
  st = run_pass(pass, sets);
done:
  pass->report->seconds += cs_now_seconds() - start;
  free(pass->wanted);
  free(sets);
  return st;
}

cs_status cs_profiling_coruns(const cs_profiling *profiling, cs_corun_report *report) {
  coruns_pass pass = {.profiling = profiling, .report = report};
  return run_sets(&pass, find_unmeasured);
}

cs_status cs_profiling_corun_counters(const cs_profiling *profiling, cs_corun_report *report) {
  coruns_pass pass = {.profiling = profiling, .report = report, .inspecting = true};
  return profiling->options->frozen ? CS_OK : run_sets(&pass, find_uninspected);
}
