/* Horizontal bars with an interval, and a diamond for another value of the same thing. */
#include <math.h>

#include "report/chart.h"

#define WIDTH 860
#define ROW 28
#define TOP 30
#define BOTTOM 44
#define MOST_NAMES 230
#define NOTES 120

static void fit(cs_axis *axis, const cs_bar *items, int n) {
  for (int i = 0; i < n; i++) {
    cs_axis_fit(axis, items[i].value);
    cs_axis_fit(axis, items[i].high);
    cs_axis_fit(axis, items[i].mark);
  }
  cs_axis_fit(axis, 0);
  cs_axis_round(axis);
}

static void diamond(cs_strbuf *out, double x, double y) {
  cs_svg_path_open(out, "diamond");
  cs_svg_path_to(out, 'M', x - 5, y);
  cs_svg_path_to(out, 'L', x, y - 6);
  cs_svg_path_to(out, 'L', x + 5, y);
  cs_svg_path_to(out, 'L', x, y + 6);
  cs_markup_raw(out, "Z");
  cs_svg_path_close(out);
}

static void interval(cs_strbuf *out, const cs_plot *plot, const cs_bar *bar, double y) {
  double a = cs_plot_x(plot, bar->low), b = cs_plot_x(plot, bar->high);
  cs_svg_line(out, "whisker", a, y, b, y);
  cs_svg_line(out, "whisker", a, y - 4, a, y + 4);
  cs_svg_line(out, "whisker", b, y - 4, b, y + 4);
}

static void draw_bar(cs_strbuf *out, const cs_plot *plot, const cs_bar *bar, int row) {
  char value[32], name[96];
  double y = plot->y + row * ROW + ROW / 2.0, end = cs_plot_x(plot, bar->value);
  bool spread = isfinite(bar->low) && isfinite(bar->high) && bar->high > bar->low;
  cs_axis_value_text(&plot->across, bar->value, value);
  cs_text_fit(bar->name, 12, MOST_NAMES - 16, name, sizeof name);
  if (bar->tip) {
    cs_svg_mark_text(out, NULL, bar->tip);
  } else {
    cs_svg_mark(out, NULL, "%s\n%s", bar->name, value);
  }
  cs_svg_rect(out, bar->ours ? "bar ours" : "bar", plot->x, y - 8, fmax(end - plot->x, 1), 16);
  if (spread) interval(out, plot, bar, y);
  if (isfinite(bar->mark)) diamond(out, cs_plot_x(plot, bar->mark), y);
  cs_svg_text(out, bar->ours ? "name end strong" : "name end", plot->x - 8, y + 4, "%s", name);
  cs_svg_text(out, "value", plot->x + plot->width + 10, y + 4, "%s%s%s", value,
              bar->note ? " · " : "", bar->note ? bar->note : "");
  cs_svg_end(out);
}

/* Pixels that the longest name takes, within reason. */
static double names_width(const cs_bar *items, int n) {
  double most = 60;
  for (int i = 0; i < n; i++) most = fmax(most, cs_text_width(items[i].name, 12.5));
  return fmin(most + 18, MOST_NAMES);
}

void cs_figure_bars(cs_strbuf *out, const cs_bars *bars, const cs_bar *items, int n) {
  bool legend = bars->value_name && bars->mark_name;
  double top = legend ? TOP : 8;
  double names = names_width(items, n);
  cs_plot plot = {names, top, WIDTH - names - NOTES, (double)n * ROW, bars->across, {0}};
  cs_svg_head head = {.width = WIDTH,
                      .height = top + n * ROW + BOTTOM,
                      .id = bars->id,
                      .label = bars->label,
                      .description = bars->description,
                      .style = bars->style,
                      .frame = true};
  fit(&plot.across, items, n);
  cs_svg_open(out, &head);
  cs_plot_across(out, &plot);
  for (int i = 0; i < n; i++) draw_bar(out, &plot, &items[i], i);
  if (legend) {
    cs_legend_entry entries[] = {{"bar ours", bars->value_name, false},
                                 {"diamond", bars->mark_name, false}};
    cs_legend(out, names - 8, 4, plot.width, entries, 2);
  }
  cs_svg_close(out);
}
