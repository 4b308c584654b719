/* Charts: axes with units and ticks, and the figures that are made of them. All figures are SVG
 * over a string buffer; classes and colours are those of page.css. Pure data. */
#ifndef CONVSCHED_REPORT_CHART_H_
#define CONVSCHED_REPORT_CHART_H_

#include "report/svg.h"

/* ---- Units ---- */

typedef enum cs_unit {
  CS_UNIT_NUMBER, /* as it is */
  CS_UNIT_US,     /* microseconds: "12.3 µs", "1.45 ms" */
  CS_UNIT_BYTES,  /* "512 B", "2.0 MiB" */
  CS_UNIT_PERCENT /* of 100: "45%" */
} cs_unit;
/* A value as a person reads it; "–" for NaN. */
void cs_unit_text(cs_unit unit, double value, char out[32]);

/* ---- Axes ---- */

typedef struct cs_axis {
  const char *title; /* "time", "workspace"; the unit is written at the ticks */
  cs_unit unit;
  /* The largest value of all charts that are compared with this one: µs, ms or s is theirs all; 0:
   * of this axis alone. */
  double compared;
  bool log;           /* decades; values of 0 have a place of their own before the first */
  bool tight;         /* ends where its values do, at no round number */
  bool whole;         /* ticks at whole numbers only (batches, streams) */
  double least, most; /* of the values; cs_axis_fit widens, cs_axis_round makes room */
  bool any, zero;     /* a value was given; of a log axis: one of 0 was */
} cs_axis;
/* Widens to a value; NaN is none. */
void cs_axis_fit(cs_axis *axis, double value);
/* Ends the axis at round numbers (a linear one begins at 0 where values are not below it). Of one
 * without values, 0 to 1. */
void cs_axis_round(cs_axis *axis);

#define CS_MOST_TICKS 24
typedef struct cs_ticks {
  double at[CS_MOST_TICKS];
  int n;
} cs_ticks;
/* Of an axis, once it is rounded: as cs_unit_text, but all times of a linear axis are in one unit.
 * A tick has as few digits as tell it, a value three that count (below 1: behind the point). */
void cs_axis_tick_text(const cs_axis *axis, double value, char out[32]);
void cs_axis_value_text(const cs_axis *axis, double value, char out[32]);

/* About `wanted` of them, at round numbers within the axis. */
void cs_axis_ticks(const cs_axis *axis, int wanted, cs_ticks *out);

/* ---- The plot area ---- */

typedef struct cs_plot {
  double x, y, width, height; /* of the area inside the axes, pixels */
  cs_axis across, up;         /* rounded */
} cs_plot;
double cs_plot_x(const cs_plot *plot, double value);
double cs_plot_y(const cs_plot *plot, double value);
/* Grid lines, ticks and titles of both axes; an axis without a title and of unit NUMBER that has
 * least = most is left out. */
void cs_plot_axes(cs_strbuf *out, const cs_plot *plot);
/* Those of the horizontal axis alone. */
void cs_plot_across(cs_strbuf *out, const cs_plot *plot);

typedef struct cs_legend_entry {
  const char *class, *name; /* class: of the swatch */
  bool line;                /* a piece of a line in place of a square */
} cs_legend_entry;
/* From x on, in rows within `width`; returns the height taken. */
double cs_legend(cs_strbuf *out, double x, double y, double width, const cs_legend_entry *entries,
                 int n);

/* ---- Lines: one series a policy (or other contender) ---- */

typedef struct cs_line_point {
  double x, y;
  double low, high; /* an interval of y; both NaN or y: none */
  const char *tip;  /* more for the tooltip; NULL: series, x and y alone */
} cs_line_point;
typedef struct cs_series {
  const char *name;
  const cs_line_point *points; /* by x; a y of NaN interrupts the line */
  int n;
  bool step; /* y holds from its x to the next */
} cs_series;
#define CS_MOST_SERIES 8 /* that have a colour, dash and marker of their own */
typedef struct cs_lines {
  const char *id, *label;  /* as of cs_svg_head */
  const char *description; /* NULL: none */
  const char *style;       /* as of cs_svg_head */
  cs_axis across, up;      /* title, unit, log, whole; ranges are found */
  double width, height;    /* of the figure; 0: 720 × 320 */
  double line;             /* a horizontal line at y, as a limit; NaN: none */
  const char *line_name;
} cs_lines;
/* Every series has a colour, a dash pattern and a marker; points are marks with tooltips. USAGE:
 * more than CS_MOST_SERIES. */
cs_status cs_figure_lines(cs_strbuf *out, const cs_lines *lines, const cs_series *series,
                          int n) CS_MUST_USE;

/* ---- Bars ---- */

typedef struct cs_bar {
  const char *name, *tip;  /* tip NULL: name and value */
  double value, low, high; /* low, high: an interval; NaN: none */
  double mark;      /* another value of the same thing, as a diamond (predicted); NaN: none */
  const char *note; /* behind the value: "1.97×"; NULL: none */
  bool ours;        /* stressed */
} cs_bar;
typedef struct cs_bars {
  const char *id, *label, *description, *style;
  cs_axis across;
  const char *value_name, *mark_name; /* of the legend; mark_name NULL: none */
} cs_bars;
/* Horizontal, in the order given. */
void cs_figure_bars(cs_strbuf *out, const cs_bars *bars, const cs_bar *items, int n);

/* ---- Boxes in time: Gantt charts and arenas ---- */

typedef struct cs_box {
  double start, end; /* along the horizontal axis */
  double low, high;  /* along the vertical one; of lanes: lane, lane + 1 */
  const char *name;  /* written where it fits; NULL: none */
  const char *tip;
  const char *class; /* "k-conv" */
} cs_box;
typedef struct cs_boxes {
  const char *id, *label, *description, *style;
  cs_axis across, up;       /* up: as it is of an arena; of lanes not used */
  const char *const *lanes; /* names from top to bottom; NULL: `up` is an axis, going up */
  int n_lanes;
  double most_across;  /* the axis ends here at least, so that charts compare */
  const double *rules; /* vertical lines, as where blocks begin */
  int n_rules;
  const cs_legend_entry *legend;
  int n_legend;
  double width, height; /* 0: 1076; as many as the lanes take, of an arena 260 */
} cs_boxes;
void cs_figure_boxes(cs_strbuf *out, const cs_boxes *boxes, const cs_box *items, int n);

#endif
