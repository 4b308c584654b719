/* The area of a chart: places of values, grid, ticks, titles, legends. */
#include <math.h>
#include <string.h>

#include "report/chart.h"

#define ZERO_PLACE 56.0 /* pixels that values of 0 take before a log axis */
#define TICK_SIZE 11.0  /* of the style sheet, pixels */

/* Part of the way from the axis's beginning to its end. */
static double along(const cs_axis *axis, double length, double value) {
  if (!axis->log) return (value - axis->least) / (axis->most - axis->least) * length;
  double before = axis->zero ? ZERO_PLACE : 0;
  if (value <= 0) return before / 3;
  double part = log(value / axis->least) / log(axis->most / axis->least);
  return before + part * (length - before);
}

double cs_plot_x(const cs_plot *plot, double value) {
  return plot->x + along(&plot->across, plot->width, value);
}

double cs_plot_y(const cs_plot *plot, double value) {
  return plot->y + plot->height - along(&plot->up, plot->height, value);
}

/* ---- Axes ---- */

static void horizontal_tick(cs_strbuf *out, const cs_plot *plot, double value) {
  char text[32];
  double x = cs_plot_x(plot, value), bottom = plot->y + plot->height;
  cs_axis_tick_text(&plot->across, value, text);
  cs_svg_line(out, "grid", x, plot->y, x, bottom);
  cs_svg_text(out, "tick mid", x, bottom + 16, "%s", text);
}

void cs_plot_across(cs_strbuf *out, const cs_plot *plot) {
  cs_ticks ticks;
  double bottom = plot->y + plot->height;
  cs_axis_ticks(&plot->across, (int)(plot->width / 72), &ticks);
  cs_svg_group(out, "axis x");
  if (plot->across.log && plot->across.zero) horizontal_tick(out, plot, 0);
  for (int i = 0; i < ticks.n; i++) horizontal_tick(out, plot, ticks.at[i]);
  cs_svg_line(out, "base", plot->x, bottom, plot->x + plot->width, bottom);
  if (plot->across.title) {
    cs_svg_text(out, "label end", plot->x + plot->width, bottom + 33, "%s", plot->across.title);
  }
  cs_svg_end(out);
}

static void vertical_tick(cs_strbuf *out, const cs_plot *plot, double value) {
  char text[32];
  double y = cs_plot_y(plot, value);
  cs_axis_tick_text(&plot->up, value, text);
  cs_svg_line(out, "grid", plot->x, y, plot->x + plot->width, y);
  cs_svg_text(out, "tick end", plot->x - 8, y + 4, "%s", text);
}

void cs_plot_axes(cs_strbuf *out, const cs_plot *plot) {
  cs_ticks ticks;
  cs_plot_across(out, plot);
  cs_axis_ticks(&plot->up, (int)(plot->height / 40), &ticks);
  cs_svg_group(out, "axis y");
  if (plot->up.log && plot->up.zero) vertical_tick(out, plot, 0);
  for (int i = 0; i < ticks.n; i++) vertical_tick(out, plot, ticks.at[i]);
  if (plot->up.title) {
    cs_svg_text(out, "label", fmax(plot->x - 56, 0), plot->y - 12, "%s", plot->up.title);
  }
  cs_svg_end(out);
}

/* ---- Legends ---- */

static double entry_width(const cs_legend_entry *entry) {
  return 40 + cs_text_width(entry->name, TICK_SIZE + 1);
}

double cs_legend(cs_strbuf *out, double x, double y, double width, const cs_legend_entry *entries,
                 int n) {
  double at = 0, row = 0;
  cs_svg_group(out, "legend");
  for (int i = 0; i < n; i++) {
    double takes = entry_width(&entries[i]);
    if (at > 0 && at + takes > width) {
      at = 0;
      row += 20;
    }
    if (entries[i].line) {
      cs_svg_line(out, entries[i].class, x + at, y + row + 6, x + at + 22, y + row + 6);
    } else {
      cs_svg_rect(out, entries[i].class, x + at + 8, y + row, 14, 12);
    }
    cs_svg_text(out, "tick", x + at + 28, y + row + 10, "%s", entries[i].name);
    at += takes;
  }
  cs_svg_end(out);
  return n > 0 ? row + 20 : 0;
}
