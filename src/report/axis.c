/* Axes: units, round ends, ticks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart.h"

/* ---- Units ---- */

/* Three digits that count, or as many as a whole number has. */
static int digits_of(double value) {
  double size = fabs(value);
  return size == 0 || size >= 100 || size == floor(size) ? 0 : size >= 10 ? 1 : 2;
}

static void print(char out[32], double value, const char *suffix) {
  snprintf(out, 32, "%.*f%s", digits_of(value), value, suffix);
}

static void bytes_text(double value, char out[32]) {
  static const char *const suffixes[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t k = 0;
  for (; fabs(value) >= 1024 && k + 1 < sizeof suffixes / sizeof suffixes[0]; k++) value /= 1024;
  print(out, value, suffixes[k]);
}

void cs_unit_text(cs_unit unit, double value, char out[32]) {
  if (!isfinite(value)) {
    snprintf(out, 32, "–");
    return;
  }
  switch (unit) {
    case CS_UNIT_NUMBER:
      print(out, value, "");
      return;
    case CS_UNIT_US:
      if (fabs(value) >= 1e6) {
        print(out, value / 1e6, " s");
      } else if (fabs(value) >= 1e3) {
        print(out, value / 1e3, " ms");
      } else {
        print(out, value, " µs");
      }
      return;
    case CS_UNIT_BYTES:
      bytes_text(value, out);
      return;
    case CS_UNIT_PERCENT:
      print(out, value, "%");
      return;
  }
}

/* Three digits that count, or as many as a whole number has; with `zeros` those at the end, too. */
static void scaled(double value, bool zeros, const char *suffix, char out[32]) {
  double size = fabs(value);
  int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  if (zeros) {
    snprintf(out, 32, "%.*f%s", digits, value, suffix);
  } else {
    snprintf(out, 32, size >= 100 ? "%.0f%s" : "%.3g%s", value, suffix);
  }
}

static void axis_text(const cs_axis *axis, double value, bool zeros, char out[32]) {
  double most = fmax(axis->most, axis->compared);
  if (axis->log || !isfinite(value) || axis->unit == CS_UNIT_BYTES) {
    cs_unit_text(axis->unit, value, out);
  } else if (axis->unit == CS_UNIT_NUMBER) {
    scaled(value, zeros, "", out);
  } else if (axis->unit == CS_UNIT_PERCENT) {
    scaled(value, zeros, "%", out);
  } else if (most >= 1e6) {
    scaled(value / 1e6, zeros, " s", out);
  } else if (most >= 1e3) {
    scaled(value / 1e3, zeros, " ms", out);
  } else {
    scaled(value, zeros, " µs", out);
  }
}

void cs_axis_tick_text(const cs_axis *axis, double value, char out[32]) {
  axis_text(axis, value, false, out);
}

void cs_axis_value_text(const cs_axis *axis, double value, char out[32]) {
  axis_text(axis, value, true, out);
}

/* ---- Ends ---- */

void cs_axis_fit(cs_axis *axis, double value) {
  if (!isfinite(value)) return;
  if (axis->log && value <= 0) {
    axis->zero = true;
    return;
  }
  if (!axis->any || value < axis->least) axis->least = value;
  if (!axis->any || value > axis->most) axis->most = value;
  axis->any = true;
}

/* 1, 2 or 5 times a power of 10; of bytes a power of 2; at least `size`. */
static double round_step(cs_unit unit, double size) {
  if (unit == CS_UNIT_BYTES) return exp2(ceil(log2(size)));
  double power = pow(10, floor(log10(size)));
  double part = size / power;
  return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static double step_of(const cs_axis *axis, int wanted) {
  double step = round_step(axis->unit, (axis->most - axis->least) / wanted * 0.999);
  return axis->whole ? fmax(step, 1) : step;
}

static void round_log(cs_axis *axis) {
  double base = axis->unit == CS_UNIT_BYTES ? 2 : 10;
  axis->least = pow(base, floor(log(axis->least) / log(base) + 1e-9));
  axis->most = pow(base, ceil(log(axis->most) / log(base) - 1e-9));
  if (axis->most <= axis->least) axis->most = axis->least * base;
}

void cs_axis_round(cs_axis *axis) {
  if (!axis->any) {
    axis->least = axis->log ? 1 : 0;
    axis->most = axis->log ? 10 : 1;
    return;
  }
  if (axis->log) {
    round_log(axis);
    return;
  }
  if (axis->least > 0) axis->least = 0;
  if (axis->most <= axis->least) axis->most = axis->least + 1;
  if (axis->tight) return;
  double step = step_of(axis, 10);
  axis->least = floor(axis->least / step) * step;
  axis->most = ceil(axis->most / step - 1e-9) * step;
}

/* ---- Ticks ---- */

static void add(cs_ticks *ticks, double at) {
  if (ticks->n < CS_MOST_TICKS) ticks->at[ticks->n++] = at;
}

/* Powers of the base, every so many that about `wanted` stay; with few decades their 2 and 5, too.
 */
static void log_ticks(const cs_axis *axis, int wanted, cs_ticks *out) {
  double base = axis->unit == CS_UNIT_BYTES ? 2 : 10;
  double from = log(axis->least) / log(base), to = log(axis->most) / log(base);
  int every = (int)fmax(1, ceil((to - from) / wanted - 1e-9));
  bool parts = base == 10 && to - from <= wanted / 3.0;
  for (int e = (int)ceil(from - 1e-9); e <= to + 1e-9; e += every) {
    double at = pow(base, e);
    add(out, at);
    if (!parts) continue;
    if (2 * at <= axis->most) add(out, 2 * at);
    if (5 * at <= axis->most) add(out, 5 * at);
  }
}

void cs_axis_ticks(const cs_axis *axis, int wanted, cs_ticks *out) {
  out->n = 0;
  if (wanted < 1) wanted = 1;
  if (axis->log) {
    log_ticks(axis, wanted, out);
    return;
  }
  double step = step_of(axis, wanted);
  int k = (int)ceil(axis->least / step - 1e-9);
  for (; k * step <= axis->most + step * 1e-9 && out->n < CS_MOST_TICKS; k++) add(out, k * step);
}
