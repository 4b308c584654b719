/* A search for requests in flight: what counts of a candidate is what it takes of a device that is
 * full of it, which is measured first; the SM model knows nothing of that. Then whole schedules are
 * timed as in any search, with as many copies in flight. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/profiling_in_flight.h"
#include "runtime/search_state.h"

#define PROFILE_SHARE 0.5 /* of the search's time, at most, for candidates by themselves */
#define WORSE 1.15        /* candidates that take this much more of the device are not tried */
#define TRIES 3           /* of an operation, so many more after each round that found nothing */

/* What the device takes for one launch of each candidate of an operation, in a pipeline of them. */
struct cs_in_flight_times {
  int n;       /* tasks */
  int *first;  /* per task: the first of the same operation */
  double **us; /* [task][choice]; NaN: not known */
};

/* ---- Knowing ---- */

void cs_search_forget_in_flight(cs_search *s) {
  cs_in_flight_times *times = s->in_flight;
  if (!times) return;
  for (int t = 0; times->us && t < times->n; t++) free(times->us[t]);
  free(times->us);
  free(times->first);
  free(times);
  s->in_flight = NULL;
}

static cs_status measure(cs_search *s, int in_flight) {
  const cs_session_options *options = &s->session->settings.options;
  cs_measure_options measure = {.workspace_limit = options->workspace_limit,
                                .cancelled = options->cancelled,
                                .user = options->cancelled_user};
  cs_profiling profiling = {.profile = s->profile,
                            .backend = s->session->device->backend,
                            .program = s->input->program,
                            .options = &measure,
                            .logger = &s->session->device->logger};
  cs_in_flight_report report = {0};
  double started = cs_now_seconds();
  CS_RETURN_IF_ERROR(
      cs_profiling_in_flight(&profiling, in_flight, PROFILE_SHARE * s->seconds, &report));
  if (report.measured == 0 && report.left_out == 0) return CS_OK;
  cs_log(&s->session->device->logger, CS_LOG_INFO,
         "search: %d candidates measured with %d in flight in %.1f s, %d operations left out "
         "(no time or room)",
         report.measured, in_flight, cs_now_seconds() - started, report.left_out);
  return CS_OK;
}

static cs_status read_task(const cs_search *s, int task, const char *operation, int in_flight) {
  cs_in_flight_times *times = s->in_flight;
  const cs_task_choices *choices = &s->input->choices[task];
  char *name = NULL;
  times->us[task] = cs_calloc((size_t)choices->n, sizeof *times->us[task]);
  if (!times->us[task]) return cs_no_memory("times", (size_t)choices->n * sizeof(double));
  CS_RETURN_IF_ERROR(cs_in_flight_signature(operation, in_flight, &name));
  const cs_op_profile *known = cs_profile_find(s->profile, name);
  for (int i = 0; i < choices->n; i++) {
    const cs_record *record = cs_op_profile_record(known, choices->choices[i].candidate->id);
    times->us[task][i] = record ? record->measured.cold_us : NAN;
  }
  free(name);
  return CS_OK;
}

/* The first task with this signature, of those before and at `task`. */
static int first_of(char *const *signatures, int task) {
  for (int t = 0; t < task; t++) {
    if (strcmp(signatures[t], signatures[task]) == 0) return t;
  }
  return task;
}

static cs_status read_times(cs_search *s, int in_flight) {
  cs_status st = CS_OK;
  const cs_program *program = s->input->program;
  size_t n = (size_t)program->n_tasks;
  char **signatures = cs_calloc(n, sizeof *signatures);
  cs_in_flight_times *times = s->in_flight = cs_calloc(1, sizeof *times);
  if (!signatures || !times) {
    st = cs_no_memory("times", n * sizeof *signatures);
    goto done;
  }
  times->n = program->n_tasks;
  times->first = cs_calloc(n, sizeof *times->first);
  times->us = cs_calloc(n, sizeof *times->us);
  if (!times->first || !times->us) {
    st = cs_no_memory("times", n * sizeof *times->us);
    goto done;
  }
  for (int t = 0; t < program->n_tasks; t++) {
    CS_TRY(st, cs_op_signature(&program->tasks[t].desc, &signatures[t]), done);
    times->first[t] = first_of(signatures, t);
    CS_TRY(st, read_task(s, t, signatures[t], in_flight), done);
  }
done:
  for (size_t t = 0; signatures && t < n; t++) free(signatures[t]);
  free(signatures);
  return st;
}

/* -1: no candidate's is known. */
static int least_of(const cs_search *s, int task) {
  const double *us = s->in_flight->us[task];
  int least = -1;
  for (int i = 0; i < s->input->choices[task].n; i++) {
    if (isfinite(us[i]) && (least < 0 || us[i] < us[least])) least = i;
  }
  return least;
}

static void tell_least(const cs_search *s, int in_flight) {
  double sum = 0;
  int known = 0;
  for (int t = 0; t < s->in_flight->n; t++) {
    int least = least_of(s, t);
    if (least < 0) continue;
    sum += s->in_flight->us[t][least];
    known++;
  }
  cs_log(&s->session->device->logger, CS_LOG_INFO,
         "search: with %d in flight, the candidates that take least of the device take %.1f us a "
         "request, operation by operation (%d of %d tasks)",
         in_flight, sum, known, s->in_flight->n);
}

cs_status cs_search_know_in_flight(cs_search *s, int in_flight) {
  CS_RETURN_IF_ERROR(measure(s, in_flight));
  CS_RETURN_IF_ERROR(read_times(s, in_flight));
  tell_least(s, in_flight);
  return CS_OK;
}

/* ---- Whole schedules ---- */

/* A start with the candidates that take least, all launches early or none. */
static cs_status try_least(cs_search *s, const cs_configuration *start, bool late) {
  cs_configuration next = {0};
  CS_RETURN_IF_ERROR(cs_configuration_copy(start, &next));
  for (int p = 0; p < next.n; p++) {
    int least = least_of(s, next.places[p].task);
    if (least >= 0) next.places[p].choice = least;
    next.places[p].joined = false;
    next.places[p].late = late;
  }
  cs_status st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  return st;
}

static cs_status try_early_and_late(cs_search *s, const cs_configuration *start) {
  if (cs_search_is_over(s)) return CS_OK;
  CS_RETURN_IF_ERROR(try_least(s, start, false));
  return try_least(s, start, true);
}

cs_status cs_search_in_flight_wholes(cs_search *s, const cs_configuration *starts, int n) {
  cs_configuration of_latency = {0};
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(try_early_and_late(s, &starts[i]));
  CS_RETURN_IF_ERROR(cs_search_of_latency(s, &of_latency));
  if (of_latency.n == 0) return CS_OK;
  cs_status st = cs_search_try(s, &of_latency);
  if (st == CS_OK) st = try_early_and_late(s, &of_latency);
  cs_configuration_free(&of_latency);
  return st;
}

/* ---- Candidates: of all tasks of an operation at once ---- */

/* The best with `choice` of `task` for every task of the operation that has it. */
static cs_status try_for_all(cs_search *s, int task, int choice) {
  cs_configuration next = {0};
  const char *id = s->input->choices[task].choices[choice].candidate->id;
  CS_RETURN_IF_ERROR(cs_configuration_copy(&s->best, &next));
  for (int t = task; t < s->in_flight->n; t++) {
    int same = s->in_flight->first[t] == task ? cs_choice_find(&s->input->choices[t], id) : -1;
    if (same < 0) continue;
    int p = cs_configuration_position(&next, t);
    cs_placement placement = next.places[p];
    placement.choice = same;
    cs_coselect_change(s->model, next.places, next.n, p, placement);
  }
  cs_status st = cs_search_try(s, &next);
  cs_configuration_free(&next);
  return st;
}

/* The choice with the least time above that of `after` (-1: of all), ties by index; -1: none. */
static int next_choice(const double *us, int n, int after) {
  int found = -1;
  for (int i = 0; i < n; i++) {
    bool behind = after < 0 || us[i] > us[after] || (us[i] == us[after] && i > after);
    if (isfinite(us[i]) && behind && (found < 0 || us[i] < us[found])) found = i;
  }
  return found;
}

static cs_status try_operation(cs_search *s, int task) {
  const double *us = s->in_flight->us[task];
  int n = s->input->choices[task].n, tries = TRIES * (s->idle + 1);
  for (int i = next_choice(us, n, -1); i >= 0 && tries > 0; i = next_choice(us, n, i)) {
    int now = s->best.places[cs_configuration_position(&s->best, task)].choice;
    if (cs_search_is_over(s)) return CS_OK;
    if (isfinite(us[now]) && us[i] > WORSE * us[now]) return CS_OK;
    if (i == now) continue;
    tries--;
    CS_RETURN_IF_ERROR(try_for_all(s, task, i));
  }
  return CS_OK;
}

cs_status cs_search_in_flight_candidates(cs_search *s) {
  for (int t = 0; t < s->in_flight->n; t++) {
    if (s->in_flight->first[t] == t) CS_RETURN_IF_ERROR(try_operation(s, t));
  }
  return CS_OK;
}
