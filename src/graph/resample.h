/* Which elements of an axis one of a Pad's or Resize's output is made of: for the host and for
 * kernels. Nothing here can be contracted into fused multiply-adds where it decides on an index, so
 * both sides choose the same one. */
#ifndef CONVSCHED_GRAPH_RESAMPLE_H_
#define CONVSCHED_GRAPH_RESAMPLE_H_

#include <math.h>

#include "graph/op.h"

#ifdef __CUDACC__
#define CS_EVERYWHERE __host__ __device__ static inline
#else
#define CS_EVERYWHERE static inline
#endif

/* Where a Pad's output index lies in an axis of `extent` elements, `at` counted from its first one;
 * -1: outside in constant mode. Elements from `low` to `high` − 1 are left of it. */
CS_EVERYWHERE int64_t cs_pad_source(cs_pad_mode mode, int64_t at, int64_t low, int64_t high) {
  if (at >= low && at < high) return at;
  switch (mode) {
    case CS_PAD_REFLECT:
      return at < low ? 2 * low - at : 2 * (high - 1) - at;
    case CS_PAD_EDGE:
      return at < low ? low : high - 1;
    case CS_PAD_WRAP:
      return at < low ? at + (high - low) : at - (high - low);
    case CS_PAD_CONSTANT:
      break;
  }
  return -1;
}

#define CS_RESIZE_TAPS 4

/* Output index i lies at (i + add) · times / by + offset of the input's axis. A filter weighs what
 * is nearer than `support` elements, by the distance times `narrow`: below 1 where it is widened.
 */
typedef struct cs_resize_axis {
  double add, times, by, offset;
  double narrow, support;
  double cubic_coeff_a;
  int64_t extent; /* of the input */
  cs_resize_mode mode;
  cs_resize_nearest nearest;
  bool exclude_outside, crops;
  bool rounds; /* the quotient, to f32, where it decides on an index: a scale is an f32, too */
} cs_resize_axis;

#ifdef __cplusplus
extern "C" {
#endif
/* Of H (0) or W (1). */
void cs_resize_axis_of(const cs_op_desc *desc, int i, cs_resize_axis *out);
/* Weighted elements an axis where no filter is widened: 1, 2 or 4. */
int cs_resize_taps_of(cs_resize_mode mode);
#ifdef __cplusplus
}
#endif

CS_EVERYWHERE int64_t cs_resize_inside(const cs_resize_axis *axis, int64_t index) {
  return index < 0 ? 0 : index >= axis->extent ? axis->extent - 1 : index;
}

CS_EVERYWHERE int64_t cs_resize_nearest_to(cs_resize_nearest nearest, double x) {
  switch (nearest) {
    case CS_RESIZE_ROUND_PREFER_FLOOR:
      return (int64_t)ceil(x - 0.5);
    case CS_RESIZE_ROUND_PREFER_CEIL:
      return (int64_t)floor(x + 0.5);
    case CS_RESIZE_FLOOR:
      return (int64_t)floor(x);
    case CS_RESIZE_CEIL:
      break;
  }
  return (int64_t)ceil(x);
}

/* Keys, 1981: the weight of a neighbour at distance d < 2. */
CS_EVERYWHERE double cs_resize_cubic(double a, double d) {
  d = fabs(d);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

CS_EVERYWHERE double cs_resize_place(const cs_resize_axis *axis, int64_t i) {
  double place = ((double)i + axis->add) * axis->times / axis->by;
  return (axis->rounds ? (double)(float)place : place) + axis->offset;
}

CS_EVERYWHERE bool cs_resize_cropped(const cs_resize_axis *axis, double x) {
  return axis->crops && (x < 0 || x > (double)(axis->extent - 1));
}

/* ---- In general ---- */

/* The elements that one of the output is the weighted sum of follow each other; one outside the
 * axis stands for the nearest inside (cs_resize_inside). */
typedef struct cs_resize_window {
  int64_t first, n; /* n 0: the extrapolation value */
  double place;
  double unit; /* times the filter's values: so the weights add up to 1 */
} cs_resize_window;

/* At `distance` elements. */
CS_EVERYWHERE double cs_resize_filter(const cs_resize_axis *axis, double distance) {
  double d = fabs(distance) * axis->narrow;
  if (axis->mode == CS_RESIZE_NEAREST) return 1;
  if (axis->mode == CS_RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
  return d < 2 ? cs_resize_cubic(axis->cubic_coeff_a, d) : 0;
}

/* At a distance of `support` a weight is 0: of the two elements that may be there one is left out.
 */
CS_EVERYWHERE cs_resize_window cs_resize_window_of(const cs_resize_axis *axis, int64_t i) {
  cs_resize_window window = {0, 0, cs_resize_place(axis, i), 1};
  if (cs_resize_cropped(axis, window.place)) return window;
  if (axis->mode == CS_RESIZE_NEAREST) {
    window.first = cs_resize_nearest_to(axis->nearest, window.place), window.n = 1;
    return window;
  }
  int64_t first = (int64_t)floor(window.place - axis->support) + 1;
  int64_t end = (int64_t)floor(window.place + axis->support) + 1;
  if (axis->exclude_outside) {
    if (first < 0) first = 0;
    if (end > axis->extent) end = axis->extent;
  }
  if (end <= first) return window;
  double sum = 0;
  for (int64_t k = first; k < end; k++) sum += cs_resize_filter(axis, (double)k - window.place);
  window.first = first, window.n = end - first, window.unit = 1 / sum;
  return window;
}

/* Of its t-th element. */
CS_EVERYWHERE double cs_resize_weight(const cs_resize_axis *axis, const cs_resize_window *window,
                                      int64_t t) {
  double distance = (double)(window->first + t) - window->place;
  return cs_resize_filter(axis, distance) * window->unit;
}

/* ---- Without a widened filter, for kernels that know the mode when they are compiled ---- */

/* Weights of the elements from *first on; returns how many, 0: the extrapolation value. */
CS_EVERYWHERE int cs_resize_taps_in(cs_resize_mode mode, const cs_resize_axis *axis, int64_t i,
                                    int64_t *first, double weight[CS_RESIZE_TAPS]) {
  double x = cs_resize_place(axis, i);
  if (cs_resize_cropped(axis, x)) return 0;
  if (mode == CS_RESIZE_NEAREST) {
    *first = cs_resize_nearest_to(axis->nearest, x);
    weight[0] = 1;
    return 1;
  }
  double below = floor(x), ratio = x - below;
  const int taps = mode == CS_RESIZE_LINEAR ? 2 : 4, before = taps / 2 - 1;
  *first = (int64_t)below - before;
  for (int t = 0; t < taps; t++) {
    double distance = ratio - (double)(t - before);
    weight[t] = taps == 2 ? 1 - fabs(distance) : cs_resize_cubic(axis->cubic_coeff_a, distance);
  }
  if (!axis->exclude_outside) return taps;
  double sum = 0;
  for (int t = 0; t < taps; t++) {
    if (cs_resize_inside(axis, *first + t) != *first + t) weight[t] = 0;
    sum += weight[t];
  }
  for (int t = 0; t < taps; t++) weight[t] /= sum;
  return taps;
}

#endif
