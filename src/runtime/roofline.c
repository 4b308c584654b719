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

/* ---- Rates that the device sustains ---- */

typedef struct rates {
  cs_session *session;
  const cs_measure_options *measure;
  bool products; /* alone */
  double seen;
  double flops, bandwidth;
} rates;

static cs_status find_peaks(rates *r, bool refresh) {
  cs_device *device = r->session->device;
  cs_precision precision = r->session->settings.options.precision;
  cs_measure_options own = *r->measure;
  own.refresh = refresh;
  own.threads = cs_threads_per_stream(device->backend->vtable->info(device->backend), 1);
  CS_RETURN_IF_ERROR(cs_profile_peaks(device->profile, device->backend, precision, &own, &r->flops,
                                      &r->bandwidth));
  if (refresh) device->fresh_rates |= 1U << (unsigned)precision;
  if (!r->products) return CS_OK;
  return cs_profile_product_peak(device->profile, device->backend, precision, &r->flops);
}

/* Where the peaks were measured again and what is seen is faster still (by another algorithm, say),
 * the profile has that: they are not measured a third time for it. */
static bool was_seen(const rates *r, const char *signature) {
  const cs_op_profile *known = cs_profile_find(r->session->device->profile, signature);
  const cs_record *record = cs_op_profile_record(known, "network");
  return record && r->seen <= DISPROVED * UNIT_FLOP / record->measured.cold_us * 1e6;
}

static cs_status record_seen(const rates *r, const char *signature) {
  static char id[] = "network", family[] = "rate";
  const cs_candidate candidate = {.id = id, .family = family};
  const double us = UNIT_FLOP / r->seen * 1e6;
  cs_measurement measured;
  CS_RETURN_IF_ERROR(cs_measurement_of(&us, 1, 1, &measured));
  return cs_profile_add(r->session->device->profile, signature, &candidate, &measured);
}

static cs_status measure_again(rates *r) {
  char signature[64];
  snprintf(signature, sizeof signature, "peak FLOP/s seen%s, %s", r->products ? " of products" : "",
           cs_precision_name(r->session->settings.options.precision));
  if (was_seen(r, signature)) return CS_OK;
  cs_log(&r->session->device->logger, CS_LOG_INFO,
         "peak FLOP/s: %.3g recorded, %.3g seen; measured again", r->flops, r->seen);
  CS_RETURN_IF_ERROR(find_peaks(r, true));
  return r->seen > DISPROVED * r->flops ? record_seen(r, signature) : CS_OK;
}

/* A refresh measures them once, however many networks or cases it is for. */
cs_status cs_sustained_rates(cs_session *session, const cs_measure_options *measure, bool products,
                             double seen, double *flops, double *bandwidth) {
  const cs_device *device = session->device;
  unsigned bit = 1U << (unsigned)session->settings.options.precision;
  rates r = {.session = session, .measure = measure, .products = products, .seen = seen};
  CS_RETURN_IF_ERROR(find_peaks(&r, measure->refresh && !(device->fresh_rates & bit)));
  bool measures = !measure->frozen && !device->backend->vtable->recorded;
  if (measures && r.flops > 0 && seen > DISPROVED * r.flops) CS_RETURN_IF_ERROR(measure_again(&r));
  *flops = r.flops;
  *bandwidth = r.bandwidth;
  return CS_OK;
}

/* ---- Bounds ---- */

/* Of the choices, so a loaded plan has none: it is run without the profile. */
cs_status cs_compute_bounds(cs_session *session, const cs_device_info *info,
                            const cs_measure_options *measure) {
  cs_planned *planned = &session->planned;
  double flops, bandwidth, seen = seen_flops(planned);
  CS_RETURN_IF_ERROR(cs_sustained_rates(session, measure, false, seen, &flops, &bandwidth));
  if (flops > 0) flops = fmax(flops, seen);
  CS_RETURN_IF_ERROR(
      cs_bounds_of(planned->program, planned->choices, flops, bandwidth, &planned->bounds));
  planned->bounds.area_us = cs_area_us(planned->program, planned->choices, info);
  return CS_OK;
}
