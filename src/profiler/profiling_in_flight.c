/* What a candidate takes of a device that is full of it: with requests in flight that counts, not
 * how long it takes alone. Measured with copies of one launch on streams of their own, weights
 * shared as requests share them. */
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "profiler/profiling_in_flight.h"
#include "profiler/profiling_operations.h"

#define SLOWER_ALONE 4.0 /* times the fastest alone: candidates that are slower are left out */
#define MOST_CANDIDATES 48
#define SAMPLES 3
/* Copies of an operation take one part in so many of the device's memory. */
#define MEMORY_SHARE 4

typedef struct in_flight_pass {
  const cs_profiling *profiling;
  const cs_measuring *measuring;
  cs_in_flight_report *report;
  int in_flight;
  double begun, seconds;
} in_flight_pass;

cs_status cs_in_flight_signature(const char *signature, int in_flight, char **out) {
  cs_strbuf text = {0};
  cs_strbuf_printf(&text, "%s with %d in flight", signature, in_flight);
  return cs_strbuf_take(&text, out);
}

/* ---- What is wanted ---- */

/* Those that the profile has no record of under `name`, the fastest alone first. */
static int wanted_of(const in_flight_pass *pass, const char *operation, const char *name,
                     const cs_candidate *out[MOST_CANDIDATES]) {
  const cs_op_profile *known = cs_profile_find(pass->profiling->profile, operation),
                      *measured = cs_profile_find(pass->profiling->profile, name);
  double fastest = 0;
  int n = 0, seen = 0;
  for (int r = 0; known && r < known->n_records && seen < MOST_CANDIDATES; r++) {
    const cs_record *record = &known->records[r];
    if (record->measured.rejected || record->absent) continue;
    if (record->candidate.workspace_bytes > pass->profiling->options->workspace_limit) continue;
    if (fastest <= 0) fastest = record->measured.cold_us;
    if (record->measured.cold_us > SLOWER_ALONE * fastest) break;
    seen++;
    if (!cs_op_profile_record(measured, record->candidate.id)) out[n++] = &record->candidate;
  }
  return n;
}

/* ---- Measuring ---- */

/* Fewer than are in flight where their tensors would take much of the device's memory: one launch
 * of such an operation fills the device. */
static int streams_of(const in_flight_pass *pass, const cs_op_buffers *buffers) {
  const cs_backend *backend = pass->profiling->backend;
  int64_t memory = backend->vtable->info(backend)->memory_bytes / MEMORY_SHARE;
  int64_t one = cs_op_buffers_set_bytes(buffers) + buffers->workspace_bytes;
  if (memory <= 0 || one <= 0) return pass->in_flight;
  return (int)cs_max_i64(1, cs_min_i64(pass->in_flight, memory / one));
}

/* Workspaces of `streams` launches at a time. */
static cs_status allocate_workspaces(const in_flight_pass *pass, const cs_operation *operation,
                                     int streams, int64_t *bytes, void **out) {
  cs_backend *backend = pass->profiling->backend;
  *bytes = 0;
  *out = NULL;
  for (int i = 0; i < operation->n_trials; i++) {
    if (operation->trials[i].rejected) continue;
    *bytes = cs_max_i64(*bytes, cs_round_up(operation->trials[i].workspace_bytes, 256));
  }
  if (*bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(backend->vtable->allocate(backend, *bytes * streams, out));
  return backend->vtable->fill(backend, *out, 0, *bytes * streams);
}

typedef struct copies {
  const cs_op_buffers *buffers;
  char *workspaces;
  int64_t workspace_bytes; /* of one */
  int streams, launches;
} copies;

static cs_status make_schedule(const copies *c, const cs_trial *trial, cs_schedule **out) {
  cs_launch launches[CS_MAX_CHAIN];
  cs_backend *backend = c->buffers->backend;
  const cs_stream_set streams = {.n = c->streams};
  for (int i = 0; i < c->launches; i++) {
    int stream = i % c->streams;
    launches[i] = cs_op_buffers_launch(c->buffers, trial, stream);
    launches[i].stream = stream;
    if (trial->workspace_bytes > 0) {
      launches[i].workspace = c->workspaces + stream * c->workspace_bytes;
    }
  }
  return backend->vtable->schedule_create(backend, launches, c->launches, &streams, true, out);
}

static cs_status time_trial(const in_flight_pass *pass, const copies *c, const char *name,
                            const cs_trial *trial) {
  cs_status st = CS_OK;
  cs_schedule *schedule = NULL;
  cs_measurement measured;
  double us[SAMPLES], first;
  const cs_backend_vtable *vtable = c->buffers->backend->vtable;
  CS_TRY(st, make_schedule(c, trial, &schedule), done);
  CS_TRY(st, vtable->schedule_latency(schedule, 1, &first), done);
  CS_TRY(st, vtable->schedule_latency(schedule, SAMPLES, us), done);
  for (int i = 0; i < SAMPLES; i++) us[i] /= c->launches;
  CS_TRY(st, cs_measurement_of(us, SAMPLES, 1, &measured), done);
  cs_candidate candidate = trial->candidate;
  candidate.payload = NULL; /* it is in the record of the candidate alone */
  CS_TRY(st, cs_profile_add(pass->profiling->profile, name, &candidate, &measured), done);
  pass->report->measured++;
done:
  if (schedule) vtable->schedule_destroy(schedule);
  return cs_annotate(st, "candidate %s: ", trial->candidate.id);
}

static bool is_over(const in_flight_pass *pass) {
  return cs_now_seconds() - pass->begun >= pass->seconds;
}

static cs_status time_trials(const in_flight_pass *pass, const char *name, cs_operation *operation,
                             cs_op_buffers *buffers) {
  cs_status st = CS_OK;
  void *workspaces = NULL;
  copies c = {.buffers = buffers, .streams = streams_of(pass, buffers)};
  c.launches = CS_MAX_CHAIN / c.streams * c.streams;
  CS_RETURN_IF_ERROR(cs_op_buffers_grow(buffers, c.streams));
  CS_TRY(st, allocate_workspaces(pass, operation, c.streams, &c.workspace_bytes, &workspaces),
         done);
  c.workspaces = workspaces;
  for (int i = 0; i < operation->n_trials && !is_over(pass); i++) {
    const cs_trial *trial = &operation->trials[i];
    if (!trial->exec || trial->rejected) continue;
    CS_TRY(st, time_trial(pass, &c, name, trial), done);
  }
done:
  if (workspaces) buffers->backend->vtable->release(buffers->backend, workspaces);
  return cs_annotate(st, "%s, %d in flight: ", operation->name, pass->in_flight);
}

static cs_status measure_operation(const in_flight_pass *pass, const cs_distinct_op *op) {
  cs_status st = CS_OK;
  char *name = NULL;
  cs_operation operation = {0};
  cs_op_buffers buffers = {0};
  const cs_candidate *wanted[MOST_CANDIDATES];
  CS_RETURN_IF_ERROR(cs_in_flight_signature(op->signature, pass->in_flight, &name));
  int n = wanted_of(pass, op->signature, name, wanted);
  CS_TRY(st, cs_operation_again(pass->profiling, op->task, wanted, n, &operation), done);
  CS_TRY(st, cs_prepare_trials(pass->measuring, &operation, 1), done);
  CS_TRY(st, cs_operation_buffers(pass->measuring, &operation, &buffers), done);
  st = time_trials(pass, name, &operation, &buffers);
done:
  if (buffers.backend) cs_op_buffers_destroy(&buffers);
  cs_operation_clear(pass->profiling->backend, &operation);
  free(name);
  return st;
}

static cs_status measure_all(const in_flight_pass *pass, const cs_distinct_op *ops, int n) {
  for (int i = 0; i < n; i++) {
    if (cs_measuring_cancelled(pass->measuring)) {
      return cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
    }
    if (is_over(pass)) {
      pass->report->left_out += n - i;
      return CS_OK;
    }
    cs_progress_step("profiling in flight", "operations", i, n, "%d in flight", pass->in_flight);
    cs_status st = measure_operation(pass, &ops[i]);
    if (cs_status_code(st) != CS_CODE_NO_MEMORY) {
      CS_RETURN_IF_ERROR(st);
      continue;
    }
    cs_log(pass->profiling->logger, CS_LOG_INFO, "candidates with %d in flight: no room (%s)",
           pass->in_flight, cs_status_message(st));
    cs_status_free(st);
    pass->report->left_out++;
  }
  return CS_OK;
}

/* Drops those of which nothing is wanted. */
static cs_status keep_wanted(const in_flight_pass *pass, cs_distinct_op *ops, int *n) {
  int kept = 0;
  for (int i = 0; i < *n; i++) {
    char *name = NULL;
    const cs_candidate *wanted[MOST_CANDIDATES];
    CS_RETURN_IF_ERROR(cs_in_flight_signature(ops[i].signature, pass->in_flight, &name));
    int count = wanted_of(pass, ops[i].signature, name, wanted);
    free(name);
    if (count == 0) continue;
    cs_distinct_op one = ops[kept];
    ops[kept++] = ops[i];
    ops[i] = one;
  }
  *n = kept;
  return CS_OK;
}

cs_status cs_profiling_in_flight(const cs_profiling *profiling, int in_flight, double seconds,
                                 cs_in_flight_report *report) {
  cs_status st = CS_OK;
  cs_distinct_op *ops = NULL;
  cs_measure_report unused = {0};
  cs_measuring measuring = {0};
  int n = 0;
  in_flight_pass pass = {.profiling = profiling,
                         .measuring = &measuring,
                         .report = report,
                         .in_flight = in_flight,
                         .begun = cs_now_seconds(),
                         .seconds = seconds};
  CS_RETURN_IF_ERROR(cs_distinct_ops(profiling, &ops, &n));
  int all = n;
  CS_TRY(st, keep_wanted(&pass, ops, &n), done);
  if (n == 0) goto done;
  cs_wanted session = cs_profiling_wanted(profiling, &unused);
  CS_TRY(st, cs_measuring_open(&session, n, &measuring), done);
  st = measure_all(&pass, ops, n);
  cs_measuring_close(&measuring);
done:
  cs_distinct_ops_free(ops, all);
  return st;
}
