/* Lines, one a series: colour, dash and marker tell them apart. */
#include <math.h>
#include <stdio.h>

#include "report/chart.h"

#define LEFT 72
#define RIGHT 28
#define TOP 40
#define BOTTOM 44

static bool has_interval(const cs_line_point *p) {
  return isfinite(p->low) && isfinite(p->high) && p->high > p->low;
}

static void fit_axes(const cs_series *series, int n, double line, cs_plot *plot) {
  for (int s = 0; s < n; s++) {
    for (int i = 0; i < series[s].n; i++) {
      const cs_line_point *p = &series[s].points[i];
      cs_axis_fit(&plot->across, p->x);
      cs_axis_fit(&plot->up, p->y);
      if (has_interval(p)) cs_axis_fit(&plot->up, p->low);
      if (has_interval(p)) cs_axis_fit(&plot->up, p->high);
    }
  }
  cs_axis_fit(&plot->up, line);
  cs_axis_round(&plot->across);
  cs_axis_round(&plot->up);
}

static void draw_line(cs_strbuf *out, const cs_plot *plot, const cs_series *series, int index) {
  char class[32];
  bool drawing = false;
  double last_y = 0;
  snprintf(class, sizeof class, "line s%d", index);
  cs_svg_path_open(out, class);
  for (int i = 0; i < series->n; i++) {
    const cs_line_point *p = &series->points[i];
    if (!isfinite(p->y)) {
      drawing = false;
      continue;
    }
    double x = cs_plot_x(plot, p->x), y = cs_plot_y(plot, p->y);
    if (drawing && series->step) cs_svg_path_to(out, 'L', x, last_y);
    cs_svg_path_to(out, drawing ? 'L' : 'M', x, y);
    drawing = true;
    last_y = y;
  }
  cs_svg_path_close(out);
}

/* Circle, square, triangle, diamond, in turn. */
static void draw_marker(cs_strbuf *out, double x, double y, int index) {
  char class[32];
  static const double shapes[4][8] = {
      {0}, {-4, -4, 4, -4, 4, 4, -4, 4}, {-5, 4, 0, -5, 5, 4, -5, 4}, {-5, 0, 0, -5, 5, 0, 0, 5}};
  snprintf(class, sizeof class, "point f%d", index);
  if (index % 4 == 0) {
    cs_svg_circle(out, class, x, y, 4.2);
    return;
  }
  cs_svg_path_open(out, class);
  for (int k = 0; k < 4; k++) {
    const double *at = &shapes[index % 4][2 * k];
    cs_svg_path_to(out, k ? 'L' : 'M', x + at[0], y + at[1]);
  }
  cs_markup_raw(out, "Z");
  cs_svg_path_close(out);
}

static void draw_point(cs_strbuf *out, const cs_plot *plot, const cs_series *series,
                       const cs_line_point *p, int index) {
  char at[32], value[32], low[32], high[32], class[32];
  double x = cs_plot_x(plot, p->x), y = cs_plot_y(plot, p->y);
  cs_unit unit = plot->up.unit;
  cs_unit_text(plot->across.unit, p->x, at);
  cs_unit_text(unit, p->y, value);
  cs_unit_text(unit, p->low, low);
  cs_unit_text(unit, p->high, high);
  cs_svg_mark(out, NULL, "%s\n%s %s: %s%s%s%s%s%s%s%s", series->name,
              plot->across.title ? plot->across.title : "", at, value, has_interval(p) ? " (" : "",
              has_interval(p) ? low : "", has_interval(p) ? " to " : "",
              has_interval(p) ? high : "", has_interval(p) ? ")" : "", p->tip ? "\n" : "",
              p->tip ? p->tip : "");
  if (has_interval(p)) {
    double a = cs_plot_y(plot, p->low), b = cs_plot_y(plot, p->high);
    snprintf(class, sizeof class, "whisker s%d", index);
    cs_svg_line(out, class, x, a, x, b);
    cs_svg_line(out, class, x - 4, a, x + 4, a);
    cs_svg_line(out, class, x - 4, b, x + 4, b);
  }
  draw_marker(out, x, y, index);
  cs_svg_end(out);
}

/* Returns the height taken. */
static double draw_legend(cs_strbuf *out, const cs_series *series, int n, double width) {
  cs_legend_entry entries[CS_MOST_SERIES];
  char classes[CS_MOST_SERIES][32];
  for (int s = 0; s < n; s++) {
    snprintf(classes[s], sizeof classes[s], "line s%d", s);
    entries[s] = (cs_legend_entry){classes[s], series[s].name, true};
  }
  return cs_legend(out, LEFT, 4, width, entries, n);
}

static void draw_limit(cs_strbuf *out, const cs_plot *plot, const cs_lines *lines) {
  if (!isfinite(lines->line)) return;
  double y = cs_plot_y(plot, lines->line);
  cs_svg_line(out, "limit", plot->x, y, plot->x + plot->width, y);
  if (!lines->line_name) return;
  cs_svg_text(out, "tick end", plot->x + plot->width - 2, y - 4, "%s", lines->line_name);
}

cs_status cs_figure_lines(cs_strbuf *out, const cs_lines *lines, const cs_series *series, int n) {
  if (n > CS_MOST_SERIES) {
    return cs_error(CS_CODE_USAGE, "%s: %d series, wanted at most %d", lines->id, n,
                    CS_MOST_SERIES);
  }
  double width = lines->width > 0 ? lines->width : 720;
  double height = lines->height > 0 ? lines->height : 320;
  cs_strbuf legend = {0};
  double top = fmax(TOP, draw_legend(&legend, series, n, width - LEFT - RIGHT));
  cs_plot plot = {LEFT, top, width - LEFT - RIGHT, height - TOP - BOTTOM, lines->across, lines->up};
  cs_svg_head head = {.width = width,
                      .height = height + top - TOP,
                      .id = lines->id,
                      .label = lines->label,
                      .description = lines->description,
                      .style = lines->style,
                      .frame = true};
  fit_axes(series, n, lines->line, &plot);
  cs_svg_open(out, &head);
  cs_plot_axes(out, &plot);
  draw_limit(out, &plot, lines);
  for (int s = 0; s < n; s++) draw_line(out, &plot, &series[s], s);
  for (int s = 0; s < n; s++) {
    for (int i = 0; i < series[s].n; i++) {
      const cs_line_point *p = &series[s].points[i];
      if (isfinite(p->y) && !series[s].step) draw_point(out, &plot, &series[s], p, s);
    }
  }
  if (legend.length) cs_strbuf_append(out, legend.data, legend.length);
  if (legend.failed) out->failed = true;
  cs_strbuf_free(&legend);
  cs_svg_close(out);
  return CS_OK;
}
