/* How much the members of a set really overlapped, and what counters say of that: runs of their own
 * under the tracer, never timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/corun.h"

#define MOST_TRACED 1024

/* Which combination of the case a record is of; NULL: none (its candidates are no longer there). */
static const cs_combination *combination_of(const cs_corun_case *c, const cs_corun *record) {
  for (int i = 0; i < c->n_combinations; i++) {
    cs_corun own;
    cs_status st = cs_corun_of(c, &c->combinations[i], &own);
    if (st != CS_OK) {
      cs_status_free(st);
      return NULL;
    }
    bool same = own.n == record->n;
    for (int k = 0; same && k < own.n; k++) {
      same = strcmp(own.members[k].signature, record->members[k].signature) == 0 &&
             strcmp(own.members[k].candidate, record->members[k].candidate) == 0;
    }
    cs_corun_clear(&own);
    if (same) return &c->combinations[i];
  }
  return NULL;
}

static cs_status trace_overlap(const cs_backend_vtable *vtable, cs_schedule *schedule,
                               double *overlap) {
  int n = 0;
  cs_kernel_trace *trace = cs_calloc(MOST_TRACED, sizeof *trace);
  if (!trace) return cs_no_memory("a trace", MOST_TRACED * sizeof *trace);
  cs_status st = vtable->schedule_trace(schedule, trace, MOST_TRACED, &n);
  if (st == CS_OK) *overlap = cs_trace_overlap(trace, n < MOST_TRACED ? n : MOST_TRACED);
  free(trace);
  return st;
}

/* NOT_FOUND is no error: what is missing is said once, at the end. */
static cs_status note_unavailable(char reason[256], cs_status st) {
  if (cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  snprintf(reason, 256, "%s", cs_status_message(st));
  cs_status_free(st);
  return CS_OK;
}

static bool wants_trace(const cs_corun_group *group, const cs_corun *record) {
  return group->profiling->backend->vtable->schedule_trace && !group->report->untraced[0] &&
         isnan(record->overlap);
}

static bool wants_counters(const cs_corun_group *group, const cs_corun *record) {
  return group->profiling->backend->vtable->schedule_counters_whole &&
         !group->report->unavailable[0] && !record->counted;
}

static cs_status run_inspected(const cs_corun_case *c, cs_schedule *schedule, bool counters,
                               cs_corun *record) {
  const cs_backend_vtable *vtable = c->group->profiling->backend->vtable;
  cs_corun_report *report = c->group->report;
  if (vtable->schedule_trace && isnan(record->overlap)) {
    CS_RETURN_IF_ERROR(
        note_unavailable(report->untraced, trace_overlap(vtable, schedule, &record->overlap)));
    report->traced += !isnan(record->overlap);
  }
  if (!counters || !wants_counters(c->group, record)) return CS_OK;
  cs_status st = vtable->schedule_counters_whole(schedule, &record->counters);
  record->counted = st == CS_OK;
  CS_RETURN_IF_ERROR(note_unavailable(report->unavailable, st));
  if (!record->counted) return CS_OK;
  report->counted++;
  const char *counted = cs_counters_limiter(&record->counters);
  report->limiter_differences += counted[0] && record->limiter[0] &&
                                 strcmp(record->limiter, "threads") != 0 &&
                                 strcmp(counted, record->limiter) != 0;
  return CS_OK;
}

/* A record like `known`, for adding it again. */
static cs_status copy_record(const cs_corun_case *c, const cs_combination *combination,
                             const cs_corun *known, cs_corun *out) {
  CS_RETURN_IF_ERROR(cs_corun_of(c, combination, out));
  cs_corun_member *members = out->members;
  *out = *known;
  out->members = members;
  return CS_OK;
}

static cs_status inspect_record(const cs_corun_case *c, const cs_corun *known, bool counters) {
  const cs_backend_vtable *vtable = c->group->profiling->backend->vtable;
  cs_status st = CS_OK;
  cs_corun record;
  cs_schedule *schedule = NULL;
  if (!wants_trace(c->group, known) && !(counters && wants_counters(c->group, known))) {
    return CS_OK;
  }
  const cs_combination *combination = combination_of(c, known);
  if (!combination) return CS_OK;
  CS_RETURN_IF_ERROR(copy_record(c, combination, known, &record));
  bool counted = record.counted;
  double overlap = record.overlap;
  CS_TRY(st, cs_corun_schedule(c, combination, CS_CORUN_COLD, &schedule), done);
  CS_TRY(st, run_inspected(c, schedule, counters, &record), done);
  if (record.counted != counted || isnan(record.overlap) != isnan(overlap)) {
    st = cs_profile_add_corun(c->group->profiling->profile, &record);
  }
done:
  if (schedule) vtable->schedule_destroy(schedule);
  cs_corun_clear(&record);
  return st;
}

cs_status cs_corun_inspect(cs_corun_group *group, const cs_corun_set *set, bool counters) {
  cs_status st = CS_OK;
  cs_corun_case *c = NULL;
  cs_corun_outcome outcome;
  CS_RETURN_IF_ERROR(cs_corun_case_create(group, set, &c));
  if (!c) return CS_OK;
  CS_TRY(st, cs_profiling_corun_outcome(group->profiling, set, &outcome), done);
  if (!outcome.fastest_alone) goto done;
  bool joint = outcome.best != outcome.fastest_alone;
  CS_TRY(st, inspect_record(c, outcome.fastest_alone, counters), done);
  /* Found again: what was added may have moved it. */
  CS_TRY(st, cs_profiling_corun_outcome(group->profiling, set, &outcome), done);
  if (joint && outcome.best) CS_TRY(st, inspect_record(c, outcome.best, counters), done);
done:
  cs_corun_case_destroy(c);
  return st;
}
