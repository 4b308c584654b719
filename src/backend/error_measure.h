/* How far an output is from its reference, and the sums that come to it: over the elements in any
 * order and partition, on the host or in a kernel. docs/verification.md says why these measures. */
#ifndef CONVSCHED_BACKEND_ERROR_MEASURE_H_
#define CONVSCHED_BACKEND_ERROR_MEASURE_H_

#include <math.h>
#include <stdbool.h>

#ifdef __CUDACC__
#define CS_HOST_DEVICE __host__ __device__
#else
#define CS_HOST_DEVICE
#endif

/* Below the smallest normal f16 errors are absolute: a subnormal keeps 2^-25 of it. */
#define CS_SMALLEST_SCALE 0x1p-14

typedef struct cs_error_measure {
  double rel_l2;     /* ‖out − ref‖₂ / ‖ref‖₂ (0 when both are 0) */
  double max_scaled; /* max |out − ref| / max(magnitude of the element, tiny) */
  bool finite;       /* no NaN or infinity where the reference has none */
} cs_error_measure;

/* Of some elements; of none: cs_no_error. */
typedef struct cs_error_sums {
  double squares;    /* of out − ref, over the elements where both are finite */
  double reference;  /* squares of ref, over the same */
  double max_scaled; /* over the same */
  bool finite;
} cs_error_sums;

static inline CS_HOST_DEVICE cs_error_sums cs_no_error(void) {
  cs_error_sums none = {0, 0, 0, true};
  return none;
}

/* One more element: `out` of the device, `value` and `magnitude` of the reference. */
static inline CS_HOST_DEVICE void cs_error_add(cs_error_sums *sums, double out, double value,
                                               double magnitude) {
  if (!isfinite(out)) {
    bool same = isnan(value) ? isnan(out) : out == value;
    if (!same) sums->finite = false;
    return;
  }
  if (!isfinite(value)) {
    sums->finite = false;
    return;
  }
  double error = fabs(out - value);
  double scale = fmax(fmax(magnitude, fabs(value)), CS_SMALLEST_SCALE);
  sums->squares += error * error;
  sums->reference += value * value;
  sums->max_scaled = fmax(sums->max_scaled, error / scale);
}

/* Those of other elements. */
static inline CS_HOST_DEVICE void cs_error_merge(cs_error_sums *sums, const cs_error_sums *others) {
  sums->squares += others->squares;
  sums->reference += others->reference;
  sums->max_scaled = fmax(sums->max_scaled, others->max_scaled);
  sums->finite = sums->finite && others->finite;
}

static inline cs_error_measure cs_error_of(const cs_error_sums *sums) {
  cs_error_measure measure = {0, sums->max_scaled, sums->finite};
  if (sums->squares != 0) {
    measure.rel_l2 =
        sums->reference == 0 ? (double)INFINITY : sqrt(sums->squares / sums->reference);
  }
  return measure;
}

#endif
