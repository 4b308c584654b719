/* Throughput: windows of requests back to back, what their times tell, and energy. */
#include <math.h>
#include <stdlib.h>

#include "runtime/pipeline.h"

/* Requests before the timed ones for each in flight: from all beginning at once to a steady flow.
 */
#define LEAD 2
#define TAIL 1

cs_status cs_pipeline_burst(const cs_pipeline *pipeline, int in_flight, bool copies, int n,
                            cs_request_times *times) {
  const cs_backend_vtable *vtable = pipeline->backend->vtable;
  if (!pipeline->requests) return cs_queue_burst(pipeline, in_flight, copies, n, times);
  return vtable->requests_burst(pipeline->requests, in_flight, copies, n, times);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Requests may end in another order than they began in. */
cs_status cs_pipeline_rate_of(const cs_request_times *times, int lead, int timed, int tail,
                              int64_t batch, cs_pipeline_rate *out) {
  cs_status st = CS_OK;
  cs_stats stats;
  int n = lead + timed + tail;
  double *ends = cs_calloc((size_t)n, sizeof *ends);
  double *latencies = cs_calloc((size_t)timed, sizeof *latencies);
  if (!ends || !latencies) {
    st = cs_no_memory("times of requests", (size_t)n * sizeof *ends);
    goto done;
  }
  for (int i = 0; i < n; i++) ends[i] = times[i].end;
  for (int i = 0; i < timed; i++) latencies[i] = times[lead + i].end - times[lead + i].start;
  qsort(ends, (size_t)n, sizeof *ends, by_value);
  CS_TRY(st, cs_stats_of(latencies, timed, &stats), done);
  out->requests = timed;
  out->all_requests = n;
  out->seconds = (ends[lead + timed - 1] - ends[lead - 1]) * 1e-6;
  out->images_per_s = (double)timed * (double)batch / out->seconds;
  out->latency_us = stats.median;
  out->latency_p10_us = stats.p10;
  out->latency_p90_us = stats.p90;
done:
  free(latencies);
  free(ends);
  return st;
}

static cs_status check_window(const cs_pipeline *pipeline, int in_flight, int requests) {
  CS_RETURN_IF_ERROR(cs_pipeline_must_rest(pipeline, "a window"));
  if (in_flight < 1 || in_flight > pipeline->n) {
    return cs_error(CS_CODE_USAGE, "a window of %d requests in flight: wanted 1 to %d", in_flight,
                    pipeline->n);
  }
  if (requests < 1 || requests > 10000000) {
    return cs_error(CS_CODE_USAGE, "a window of %d requests: wanted 1 to 10000000", requests);
  }
  return CS_OK;
}

/* NaN where there is no counter. */
static cs_status energy_or_nan(const cs_pipeline *pipeline, double *joules) {
  cs_status st = cs_device_energy(pipeline->session->device, joules);
  if (st == CS_OK || cs_status_code(st) != CS_CODE_NOT_FOUND) return st;
  cs_status_free(st);
  *joules = NAN;
  return CS_OK;
}

/* A counter that went back was begun anew: what was used meanwhile is not known. */
static double joules_between(double before, double after) {
  return after >= before ? after - before : NAN;
}

cs_status cs_pipeline_window(cs_pipeline *pipeline, int in_flight, int requests, bool copies,
                             cs_pipeline_rate *out) {
  cs_status st = CS_OK;
  double before, after;
  int lead = LEAD * in_flight, tail = TAIL * in_flight, n = lead + requests + tail;
  int64_t batch = pipeline->session->settings.options.batch;
  CS_RETURN_IF_ERROR(check_window(pipeline, in_flight, requests));
  cs_request_times *times = cs_calloc((size_t)n, sizeof *times);
  if (!times) return cs_no_memory("times of requests", (size_t)n * sizeof *times);
  CS_TRY(st, energy_or_nan(pipeline, &before), done);
  double started = cs_now_seconds();
  CS_TRY(st, cs_pipeline_burst(pipeline, in_flight, copies, n, times), done);
  double seconds = cs_now_seconds() - started;
  CS_TRY(st, energy_or_nan(pipeline, &after), done);
  CS_TRY(st, cs_pipeline_rate_of(times, lead, requests, tail, batch, out), done);
  out->host_images_per_s = (double)n * (double)batch / seconds;
  out->joules = joules_between(before, after);
done:
  free(times);
  return st;
}

cs_status cs_device_energy(cs_device *device, double *joules) {
  const cs_backend_vtable *vtable = device->backend->vtable;
  *joules = NAN;
  if (vtable->energy) return vtable->energy(device->backend, joules);
  return cs_error(CS_CODE_NOT_FOUND, "not available: backend %s reads no energy counter",
                  vtable->name);
}
