/* Boxes along time: a lane a stream (Gantt charts), or an axis of bytes (arenas). */
#include <math.h>

#include "report/chart.h"

#define WIDTH 1076
#define LEFT 76
#define RIGHT 20
#define LANE 30
#define BOTTOM 40
#define TEXT_SIZE 10

static void fit(cs_plot *plot, const cs_boxes *boxes, const cs_box *items, int n) {
  cs_axis_fit(&plot->across, 0);
  cs_axis_fit(&plot->across, boxes->most_across);
  for (int i = 0; i < n; i++) {
    cs_axis_fit(&plot->across, items[i].end);
    if (boxes->lanes) continue;
    cs_axis_fit(&plot->up, items[i].low);
    cs_axis_fit(&plot->up, items[i].high);
  }
  /* As long as what it shows: a round end would leave it blank behind. */
  if (plot->across.most <= 0) plot->across.most = 1;
  if (!boxes->lanes) cs_axis_round(&plot->up);
}

static void draw_lanes(cs_strbuf *out, const cs_plot *plot, const cs_boxes *boxes) {
  char name[64];
  cs_svg_group(out, "lanes");
  for (int l = 0; l < boxes->n_lanes; l++) {
    double y = plot->y + l * LANE;
    cs_svg_rect(out, l % 2 ? "lane odd" : "lane", plot->x, y, plot->width, LANE);
    cs_text_fit(boxes->lanes[l], 11, LEFT - 12, name, sizeof name);
    cs_svg_text(out, "tick end", plot->x - 8, y + LANE / 2.0 + 4, "%s", name);
  }
  cs_svg_end(out);
}

static void draw_rules(cs_strbuf *out, const cs_plot *plot, const cs_boxes *boxes) {
  cs_svg_group(out, "rules");
  for (int i = 0; i < boxes->n_rules; i++) {
    double x = cs_plot_x(plot, boxes->rules[i]);
    cs_svg_line(out, "rule", x, plot->y, x, plot->y + plot->height);
  }
  cs_svg_end(out);
}

static void draw_box(cs_strbuf *out, const cs_plot *plot, const cs_boxes *boxes,
                     const cs_box *box) {
  char name[64] = "";
  double x = cs_plot_x(plot, box->start), end = cs_plot_x(plot, box->end), y, height;
  if (boxes->lanes) {
    y = plot->y + box->low * LANE + 3;
    height = (box->high - box->low) * LANE - 6;
  } else {
    y = cs_plot_y(plot, box->high);
    height = cs_plot_y(plot, box->low) - y;
  }
  double w = fmax(end - x, 0.8);
  if (box->name && w > 14 && height >= 11) {
    cs_text_fit(box->name, TEXT_SIZE, w - 5, name, sizeof name);
  }
  cs_svg_mark_text(out, box->class, box->tip);
  cs_svg_rect(out, NULL, x, y, w, fmax(height, 1));
  if (name[0]) cs_svg_text(out, NULL, x + 2.5, y + height / 2 + 3.5, "%s", name);
  cs_svg_end(out);
}

void cs_figure_boxes(cs_strbuf *out, const cs_boxes *boxes, const cs_box *items, int n) {
  double width = boxes->width > 0 ? boxes->width : WIDTH;
  double inside = boxes->lanes ? boxes->n_lanes * LANE : boxes->height > 0 ? boxes->height : 260;
  cs_strbuf legend = {0};
  double top =
      6 + cs_legend(&legend, LEFT - 8, 4, width - LEFT - RIGHT, boxes->legend, boxes->n_legend);
  if (!boxes->lanes) top += 20;
  cs_plot plot = {LEFT, top, width - LEFT - RIGHT, inside, boxes->across, boxes->up};
  cs_svg_head head = {.width = width,
                      .height = top + inside + BOTTOM,
                      .id = boxes->id,
                      .label = boxes->label,
                      .description = boxes->description,
                      .style = boxes->style,
                      .frame = true};
  fit(&plot, boxes, items, n);
  cs_svg_open(out, &head);
  if (boxes->lanes) draw_lanes(out, &plot, boxes);
  if (boxes->lanes) {
    cs_plot_across(out, &plot);
  } else {
    cs_plot_axes(out, &plot);
  }
  draw_rules(out, &plot, boxes);
  cs_svg_group(out, "boxes");
  for (int i = 0; i < n; i++) draw_box(out, &plot, boxes, &items[i]);
  cs_svg_end(out);
  if (legend.length) cs_strbuf_append(out, legend.data, legend.length);
  if (legend.failed) out->failed = true;
  cs_svg_close(out);
  cs_strbuf_free(&legend);
}
