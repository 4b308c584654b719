#include "backend/cuda/kernels.h"
#include "backend/cuda/schedule.h"

/* The spin kernel must outlast the host's enqueueing; where it did not, the sample is taken anew
 * with a longer one. */
#define SPIN_MARGIN_US 30.0
#define ENQUEUE_LONGEST_US 10000.0
#define MAX_ATTEMPTS 6

static cs_status record(cudaEvent_t event, cudaStream_t stream) {
  return cs_cuda_status(cudaEventRecord(event, stream), "recording a timing event");
}

/* Up at once, down slowly; one stall of the host does not make all further spins long. */
static void learn_enqueue_time(cs_schedule *s, double us) {
  if (us > ENQUEUE_LONGEST_US) us = ENQUEUE_LONGEST_US;
  if (us > s->enqueue_us) {
    s->enqueue_us = us;
  } else {
    s->enqueue_us += 0.25 * (us - s->enqueue_us);
  }
}

/* Device microseconds of n launches back to back behind a spin of `spin_us`; *hidden tells whether
 * everything was enqueued before the spin ended. */
static cs_status time_once(cs_schedule *s, int n, double spin_us, double *us, bool *hidden) {
  cs_cuda_backend *backend = s->backend;
  cudaStream_t stream = s->origin;
  CS_RETURN_IF_ERROR(cs_schedule_synchronize(s));
  CS_RETURN_IF_ERROR(cs_cuda_spin_launch(spin_us, stream));
  CS_RETURN_IF_ERROR(record(backend->start, stream));
  double before = cs_now_seconds();
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(cs_schedule_enqueue(s));
  CS_RETURN_IF_ERROR(record(backend->stop, stream));
  double enqueue_us = (cs_now_seconds() - before) * 1e6 / n;
  cudaError_t started = cudaEventQuery(backend->start);
  *hidden = started == cudaErrorNotReady;
  if (*hidden) {
    (void)cudaGetLastError();
  } else {
    CS_RETURN_IF_ERROR(cs_cuda_status(started, "asking for a timing event"));
  }
  if (n == 1) learn_enqueue_time(s, enqueue_us);
  CS_RETURN_IF_ERROR(cs_schedule_synchronize(s));
  float ms = 0;
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaEventElapsedTime(&ms, backend->start, backend->stop),
                                    "reading a timing event"));
  *us = (double)ms * 1e3;
  return CS_OK;
}

/* One sample whose enqueueing was hidden. */
static cs_status time_hidden(cs_schedule *s, double *us) {
  double spin_us = 1.5 * s->enqueue_us + SPIN_MARGIN_US;
  for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    bool hidden = false;
    CS_RETURN_IF_ERROR(time_once(s, 1, spin_us, us, &hidden));
    if (hidden) return CS_OK;
    spin_us = 2.0 * (spin_us > s->enqueue_us ? spin_us : s->enqueue_us);
  }
  return cs_error(CS_CODE_DEVICE,
                  "no latency sample: enqueueing %d launches took the host longer than %.0f us in "
                  "%d attempts",
                  s->n_launches, spin_us / 2.0, MAX_ATTEMPTS);
}

cs_status cs_schedule_latency(cs_schedule *schedule, int count, double *us) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  for (int i = 0; i < count; i++) CS_RETURN_IF_ERROR(time_hidden(schedule, &us[i]));
  return CS_OK;
}

cs_status cs_schedule_b2b(cs_schedule *schedule, int n, double *us) {
  *us = 0;
  if (n < 1) return cs_error(CS_CODE_USAGE, "%d launches back to back; at least 1 wanted", n);
  CS_RETURN_IF_ERROR(cs_cuda_enter(schedule->backend));
  bool hidden = false;
  double total = 0;
  CS_RETURN_IF_ERROR(
      time_once(schedule, n, 1.5 * schedule->enqueue_us + SPIN_MARGIN_US, &total, &hidden));
  *us = total / n;
  return CS_OK;
}
