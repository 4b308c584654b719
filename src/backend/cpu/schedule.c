/* Schedules on the CPU: a thread per stream, stream 0 on the caller's own, so that one stream has
 * no hand-over at all. Dependencies are events, set to the number of the run that has passed them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/event.h"
#include "base/ranges.h"
#include "profiler/partition.h"

typedef struct schedule_launch {
  cpu_bound bound;
  char *name;
  int *waits, n_waits; /* of other streams only */
  int stream;
  cpu_event done;
  double began, ended; /* seconds; written by its stream's thread in a traced run */
} schedule_launch;

typedef struct schedule_stream {
  struct cs_schedule *schedule;
  int *launches, n_launches;
  cpu_event finished;
  pthread_t thread; /* streams 1 and up */
} schedule_stream;

struct cs_schedule {
  schedule_launch *launches;
  int n_launches;
  schedule_stream *streams;
  int n_streams, n_started; /* threads that run */
  unsigned run;             /* number of the last run */
  cpu_gate gate;
  cpu_event start; /* the number of the run to be done */
  atomic_bool stop, failed;
  bool traced; /* the run notes when its launches began and ended; changes between runs */
  pthread_mutex_t error_mutex;
  cs_status error; /* the first of a run */
};

/* ---- Running ---- */

static void keep_error(cs_schedule *schedule, const schedule_launch *launch, cs_status st) {
  pthread_mutex_lock(&schedule->error_mutex);
  if (schedule->error == CS_OK)
    schedule->error = cs_annotate(st, "%s: ", launch->name);
  else
    cs_status_free(st);
  pthread_mutex_unlock(&schedule->error_mutex);
  atomic_store(&schedule->failed, true);
}

static void run_stream(schedule_stream *stream, unsigned run) {
  cs_schedule *schedule = stream->schedule;
  bool alone = schedule->n_streams == 1;
  for (int i = 0; i < stream->n_launches; i++) {
    schedule_launch *launch = &schedule->launches[stream->launches[i]];
    for (int w = 0; w < launch->n_waits; w++)
      cpu_event_wait(&schedule->gate, &schedule->launches[launch->waits[w]].done, run);
    if (!atomic_load_explicit(&schedule->failed, memory_order_relaxed)) {
      if (schedule->traced) launch->began = cs_now_seconds();
      cpu_set_threads(launch->bound.exec->threads);
      cs_range_push(launch->name);
      cs_status st = cpu_bound_run(&launch->bound);
      cs_range_pop();
      if (st != CS_OK) keep_error(schedule, launch, st);
      if (schedule->traced) launch->ended = cs_now_seconds();
    }
    if (!alone) cpu_event_set(&schedule->gate, &launch->done, run);
  }
}

static void *worker(void *argument) {
  schedule_stream *stream = argument;
  cs_schedule *schedule = stream->schedule;
  char name[16]; /* as long as Linux allows */
  snprintf(name, sizeof name, "cs stream %d", (int)(stream - schedule->streams) % 1000);
  (void)pthread_setname_np(pthread_self(), name);
  for (unsigned run = 1;; run++) {
    cpu_event_wait(&schedule->gate, &schedule->start, run);
    if (atomic_load(&schedule->stop)) return NULL;
    run_stream(stream, run);
    cpu_event_set(&schedule->gate, &stream->finished, run);
  }
}

cs_status cpu_schedule_run(cs_schedule *schedule) {
  unsigned run = ++schedule->run;
  int former = cpu_set_threads(1);
  atomic_store(&schedule->failed, false);
  if (schedule->n_started > 0) cpu_event_set(&schedule->gate, &schedule->start, run);
  run_stream(&schedule->streams[0], run);
  for (int i = 1; i < schedule->n_streams; i++)
    cpu_event_wait(&schedule->gate, &schedule->streams[i].finished, run);
  cpu_set_threads(former);
  cs_status st = schedule->error;
  schedule->error = CS_OK;
  return st;
}

cs_status cpu_schedule_latency(cs_schedule *schedule, int count, double *us) {
  for (int i = 0; i < count; i++) {
    double start = cs_now_seconds();
    CS_RETURN_IF_ERROR(cpu_schedule_run(schedule));
    us[i] = (cs_now_seconds() - start) * 1e6;
  }
  return CS_OK;
}

cs_status cpu_schedule_b2b(cs_schedule *schedule, int n, double *us) {
  double start = cs_now_seconds();
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(cpu_schedule_run(schedule));
  *us = n > 0 ? (cs_now_seconds() - start) * 1e6 / n : 0;
  return CS_OK;
}

/* ---- Tracing, by the machine's own clock ---- */

static int by_start(const void *a, const void *b) {
  const cs_kernel_trace *x = a, *y = b;
  if (x->start_us != y->start_us) return x->start_us < y->start_us ? -1 : 1;
  return x->launch - y->launch;
}

static void tell_launch(const cs_schedule *schedule, int i, double origin, cs_kernel_trace *out) {
  const schedule_launch *launch = &schedule->launches[i];
  *out = (cs_kernel_trace){.launch = i,
                           .start_us = (launch->began - origin) * 1e6,
                           .end_us = (launch->ended - origin) * 1e6,
                           .stream = launch->stream};
  snprintf(out->name, sizeof out->name, "%s", launch->name);
}

cs_status cpu_schedule_trace(cs_schedule *schedule, cs_kernel_trace *out, int capacity,
                             int *count) {
  int n = schedule->n_launches;
  *count = 0;
  schedule->traced = true;
  cs_status st = cpu_schedule_run(schedule);
  schedule->traced = false;
  if (st != CS_OK || n == 0) return st;
  cs_kernel_trace *all = cs_calloc((size_t)n, sizeof *all);
  if (!all) return cs_no_memory("a trace", (size_t)n * sizeof *all);
  double origin = schedule->launches[0].began;
  for (int i = 1; i < n; i++) {
    if (schedule->launches[i].began < origin) origin = schedule->launches[i].began;
  }
  for (int i = 0; i < n; i++) tell_launch(schedule, i, origin, &all[i]);
  qsort(all, (size_t)n, sizeof *all, by_start);
  for (int i = 0; i < n && i < capacity; i++) out[i] = all[i];
  free(all);
  *count = n;
  return CS_OK;
}

/* ---- Making ---- */

static cs_status check_launch(const cs_launch *launches, int i, int n_streams) {
  const cs_launch *launch = &launches[i];
  if (launch->stream < 0 || launch->stream >= n_streams)
    return cs_error(CS_CODE_INTERNAL, "launch %d (%s): found stream %d, wanted 0 to %d", i,
                    launch->name, launch->stream, n_streams - 1);
  for (int w = 0; w < launch->n_waits; w++)
    if (launch->waits[w] < 0 || launch->waits[w] >= i)
      return cs_error(CS_CODE_INTERNAL,
                      "launch %d (%s): waits for launch %d, wanted an earlier one", i, launch->name,
                      launch->waits[w]);
  if (launch->merged >= 0)
    return cs_error(CS_CODE_BAD_INPUT,
                    "launch %d (%s) is merged with launch %d, wanted -1: no candidate of the CPU "
                    "merges",
                    i, launch->name, launch->merged);
  return CS_OK;
}

static cs_status add_launch(cs_schedule *schedule, const cs_launch *launches, int i) {
  const cs_launch *from = &launches[i];
  schedule_launch *to = &schedule->launches[i];
  CS_RETURN_IF_ERROR(check_launch(launches, i, schedule->n_streams));
  if (from->priority != 0) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: priority %d; a CPU has none, wanted 0",
                    from->name ? from->name : "launch", from->priority);
  }
  CS_RETURN_IF_ERROR(cs_strdup_to(from->name ? from->name : "launch", &to->name));
  to->waits = cs_calloc((size_t)from->n_waits, sizeof *to->waits);
  if (!to->waits) return cs_no_memory("dependencies", (size_t)from->n_waits * sizeof *to->waits);
  for (int w = 0; w < from->n_waits; w++)
    if (launches[from->waits[w]].stream != from->stream) to->waits[to->n_waits++] = from->waits[w];
  to->stream = from->stream;
  schedule_stream *stream = &schedule->streams[from->stream];
  stream->launches[stream->n_launches++] = i;
  return cpu_bind(from, &to->bound);
}

/* Threads that compute at the same time, at most. */
static int busiest(const cs_schedule *schedule) {
  int total = 0;
  for (int i = 0; i < schedule->n_streams; i++) {
    int most = 1;
    for (int j = 0; j < schedule->streams[i].n_launches; j++) {
      int threads = schedule->launches[schedule->streams[i].launches[j]].bound.exec->threads;
      if (threads > most) most = threads;
    }
    total += most;
  }
  return total;
}

static cs_status start_workers(cs_schedule *schedule, int cores) {
  schedule->gate.spin_seconds = busiest(schedule) <= cores ? 50e-6 : 0;
  for (int i = 1; i < schedule->n_streams; i++) {
    int failed = pthread_create(&schedule->streams[i].thread, NULL, worker, &schedule->streams[i]);
    if (failed)
      return cs_error(CS_CODE_DEVICE, "cannot start the thread of stream %d of %d (error %d)", i,
                      schedule->n_streams, failed);
    schedule->n_started++;
  }
  return CS_OK;
}

static cs_status allocate_parts(cs_schedule *schedule, int n, int n_streams) {
  schedule->launches = cs_calloc((size_t)n, sizeof *schedule->launches);
  schedule->streams = cs_calloc((size_t)n_streams, sizeof *schedule->streams);
  if (!schedule->launches || !schedule->streams) return cs_no_memory("a schedule", 0);
  schedule->n_launches = n;
  schedule->n_streams = n_streams;
  for (int i = 0; i < n_streams; i++) {
    schedule->streams[i].schedule = schedule;
    schedule->streams[i].launches = cs_calloc((size_t)n, sizeof(int));
    if (!schedule->streams[i].launches) return cs_no_memory("a stream", (size_t)n * sizeof(int));
  }
  return CS_OK;
}

cs_status cpu_schedule_create(cs_backend *backend, const cs_launch *launches, int n,
                              const cs_stream_set *streams, bool use_graph, cs_schedule **out) {
  (void)use_graph;
  cs_status st = CS_OK;
  *out = NULL;
  if (n < 0) return cs_error(CS_CODE_INTERNAL, "found %d launches, wanted 0 or more", n);
  CS_RETURN_IF_ERROR(cs_stream_set_check(streams, &((cpu_backend *)backend)->info));
  cs_schedule *schedule = cs_calloc(1, sizeof *schedule);
  if (!schedule) return cs_no_memory("a schedule", sizeof *schedule);
  pthread_mutex_init(&schedule->gate.mutex, NULL);
  pthread_cond_init(&schedule->gate.changed, NULL);
  pthread_mutex_init(&schedule->error_mutex, NULL);
  CS_TRY(st, allocate_parts(schedule, n, streams->n), done);
  for (int i = 0; i < n; i++) CS_TRY(st, add_launch(schedule, launches, i), done);
  CS_TRY(st, start_workers(schedule, ((cpu_backend *)backend)->machine.cores), done);
  *out = schedule, schedule = NULL;
done:
  cpu_schedule_destroy(schedule);
  return st;
}

static void stop_workers(cs_schedule *schedule) {
  if (schedule->n_started == 0) return;
  atomic_store(&schedule->stop, true);
  cpu_event_set(&schedule->gate, &schedule->start, schedule->run + 1);
  for (int i = 1; i <= schedule->n_started; i++) pthread_join(schedule->streams[i].thread, NULL);
}

void cpu_schedule_destroy(cs_schedule *schedule) {
  if (!schedule) return;
  stop_workers(schedule);
  for (int i = 0; i < schedule->n_launches; i++) {
    if (schedule->launches[i].bound.exec) cpu_bound_clear(&schedule->launches[i].bound);
    free(schedule->launches[i].name);
    free(schedule->launches[i].waits);
  }
  for (int i = 0; i < schedule->n_streams; i++) free(schedule->streams[i].launches);
  free(schedule->launches);
  free(schedule->streams);
  pthread_mutex_destroy(&schedule->error_mutex);
  pthread_cond_destroy(&schedule->gate.changed);
  pthread_mutex_destroy(&schedule->gate.mutex);
  free(schedule);
}
