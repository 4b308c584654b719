/* Bounds of a plan, by rates that nothing measured disproves. */
#include <math.h>
#include <stdio.h>

#include "runtime/planning.h"

/* A candidate of the network that is faster than the peak rate by so much says that the peak was
 * measured while something else held the device. */
#define DISPROVED 1.25
#define UNIT_FLOP 1e9 /* what the record below says the time of */

/* FLOP/s of the task that does most, by its fastest choice. */
static double seen_flops(const cs_planned *planned) {
  double most = 0;
  for (int t = 0; t < planned->program->n_tasks; t++) {
    const cs_task_choices *choices = &planned->choices[t];
    double flops = cs_op_flops(&planned->program->tasks[t].desc), best_us = INFINITY;
    for (int c = 0; c < choices->n; c++) {
      if (choices->choices[c].warm_us > 0) best_us = fmin(best_us, choices->choices[c].warm_us);
    }
    most = fmax(most, flops / best_us * 1e6);
  }
  return most;
}

static cs_status peak_rates(cs_session *session, const cs_measure_options *measure, double *flops,
                            double *bandwidth) {
  return cs_profile_peaks(session->device->profile, session->device->backend,
                          session->settings.options.precision, measure, flops, bandwidth);
}

/* Where the peaks were measured again and the network is faster still (by another algorithm, say),
 * the profile has that: they are not measured a third time for it. */
static bool was_seen(const cs_session *session, const char *signature, double seen) {
  const cs_op_profile *known = cs_profile_find(session->device->profile, signature);
  const cs_record *record = cs_op_profile_record(known, "network");
  return record && seen <= DISPROVED * UNIT_FLOP / record->measured.cold_us * 1e6;
}

static cs_status record_seen(cs_session *session, const char *signature, double seen) {
  static char id[] = "network", family[] = "rate";
  const cs_candidate candidate = {.id = id, .family = family};
  const double us = UNIT_FLOP / seen * 1e6;
  cs_measurement measured;
  CS_RETURN_IF_ERROR(cs_measurement_of(&us, 1, 1, &measured));
  return cs_profile_add(session->device->profile, signature, &candidate, &measured);
}

static cs_status measure_again(cs_session *session, const cs_measure_options *measure, double seen,
                               double *flops, double *bandwidth) {
  char signature[64];
  cs_measure_options again = *measure;
  snprintf(signature, sizeof signature, "peak FLOP/s seen, %s",
           cs_precision_name(session->settings.options.precision));
  if (was_seen(session, signature, seen)) return CS_OK;
  cs_log(&session->device->logger, CS_LOG_INFO,
         "peak FLOP/s: %.3g recorded, %.3g seen; measured again", *flops, seen);
  again.refresh = true;
  CS_RETURN_IF_ERROR(peak_rates(session, &again, flops, bandwidth));
  return seen > DISPROVED * *flops ? record_seen(session, signature, seen) : CS_OK;
}

/* The peaks are those of one stream that has the whole device, whatever the plan's streams have. */
static cs_status find_rates(cs_session *session, const cs_device_info *info,
                            const cs_measure_options *measure, double *flops, double *bandwidth) {
  cs_measure_options whole = *measure;
  double seen = seen_flops(&session->planned);
  whole.threads = cs_threads_per_stream(info, 1);
  CS_RETURN_IF_ERROR(peak_rates(session, &whole, flops, bandwidth));
  if (*flops == 0) return CS_OK; /* a recorded device's, not known */
  bool measures = !measure->frozen && !session->device->backend->vtable->recorded;
  if (measures && seen > DISPROVED * *flops) {
    CS_RETURN_IF_ERROR(measure_again(session, &whole, seen, flops, bandwidth));
  }
  *flops = fmax(*flops, seen);
  return CS_OK;
}

/* Of the choices, so a loaded plan has none: it is run without the profile. */
cs_status cs_compute_bounds(cs_session *session, const cs_device_info *info,
                            const cs_measure_options *measure) {
  cs_planned *planned = &session->planned;
  double flops, bandwidth;
  CS_RETURN_IF_ERROR(find_rates(session, info, measure, &flops, &bandwidth));
  CS_RETURN_IF_ERROR(
      cs_bounds_of(planned->program, planned->choices, flops, bandwidth, &planned->bounds));
  planned->bounds.area_us = cs_area_us(planned->program, planned->choices, info);
  return CS_OK;
}
