/* Plots of an experiment: lines over a dimension. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/experiment.h"

#define MOST_FIGURES 60
#define LOG_RANGE 20 /* latencies that differ more have a logarithmic axis */

/* One way to draw: what goes across, and what a line is. */
typedef struct drawing {
  const cs_experiment_records *records;
  cs_html *page;
  const char *across;   /* a dimension */
  bool by_family;       /* a line is a family, else a policy */
  json_t *figures;      /* text of a figure → its number */
  json_t *names;        /* of lines, in order of their appearance */
  int *figure, *series; /* per trial; figure −1: in none; series −1: the cell failed, of any */
  int drawn, left_out;
} drawing;

/* ---- Which figure and which line a trial belongs to ---- */

static int number_of(json_t *numbers, const char *text) {
  json_t *known = json_object_get(numbers, text);
  if (known) return (int)json_integer_value(known);
  int n = (int)json_object_size(numbers);
  return json_object_set_new(numbers, text, json_integer(n)) == 0 ? n : -1;
}

static cs_status place_trial(drawing *d, size_t t, const char *policy) {
  const cs_trial *trial = &d->records->trials[t];
  cs_strbuf text = {0};
  char *figure = NULL;
  cs_experiment_cell_text(d->records, trial->cell, d->across, d->by_family ? "family" : NULL,
                          &text);
  if (d->by_family) cs_strbuf_printf(&text, ", %s", policy);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &figure));
  const char *name =
      d->by_family ? json_string_value(json_object_get(trial->cell, "family")) : policy;
  d->figure[t] = number_of(d->figures, figure);
  d->series[t] = name ? number_of(d->names, name) : -1;
  free(figure);
  return CS_OK;
}

/* Values without a number ("default" streams) have no place on an axis, nor has what failed. */
static cs_status place_trials(drawing *d) {
  for (size_t t = 0; t < d->records->n; t++) {
    const cs_trial *trial = &d->records->trials[t];
    d->figure[t] = -1;
    if (!trial->policy || !json_is_number(json_object_get(trial->cell, d->across))) continue;
    CS_RETURN_IF_ERROR(place_trial(d, t, trial->policy));
  }
  return CS_OK;
}

/* ---- A figure ---- */

static int compare_points(const void *a, const void *b) {
  double x = ((const cs_line_point *)a)->x, y = ((const cs_line_point *)b)->x;
  return (x > y) - (x < y);
}

static int points_of(const drawing *d, int figure, int series, bool gain, cs_line_point *out) {
  int n = 0;
  for (size_t t = 0; t < d->records->n; t++) {
    const cs_trial *trial = &d->records->trials[t];
    if (d->figure[t] != figure || d->series[t] != series) continue;
    out[n++] = (cs_line_point){.x = json_number_value(json_object_get(trial->cell, d->across)),
                               .y = gain ? trial->gain : trial->us,
                               .low = trial->samples == 0 ? NAN
                                      : gain              ? trial->gain_low
                                                          : trial->low,
                               .high = trial->samples == 0 ? NAN
                                       : gain              ? trial->gain_high
                                                           : trial->high};
  }
  qsort(out, (size_t)n, sizeof *out, compare_points);
  return n;
}

static double longest(const cs_experiment_records *records) {
  double most = 0;
  for (size_t t = 0; t < records->n; t++) {
    if (records->trials[t].policy) most = fmax(most, records->trials[t].us);
  }
  return most;
}

static cs_lines figure_of(const drawing *d, const char *id, const char *label, bool gain,
                          bool log_up) {
  bool bytes = strcmp(d->across, "workspace_limit") == 0;
  return (cs_lines){.id = id,
                    .label = label,
                    .across = {.title = bytes ? "workspace limit" : d->across,
                               .unit = bytes ? CS_UNIT_BYTES : CS_UNIT_NUMBER,
                               .log = bytes || strcmp(d->across, "batch") == 0,
                               .whole = !bytes},
                    .up = {.title = gain ? "times as fast as sequential" : "latency",
                           .unit = gain ? CS_UNIT_NUMBER : CS_UNIT_US,
                           .compared = gain ? 0 : longest(d->records),
                           .log = log_up},
                    .line = gain ? 1 : NAN};
}

/* The lines of one figure; *n is how many have points. */
static cs_status gather(const drawing *d, int figure, bool gain, cs_line_point *points,
                        cs_series *series, int *n) {
  const char *name;
  json_t *number;
  cs_line_point *at = points;
  *n = 0;
  json_object_foreach(d->names, name, number) {
    int found = points_of(d, figure, (int)json_integer_value(number), gain, at);
    if (found == 0) continue;
    if (*n == CS_MOST_SERIES) {
      return cs_error(CS_CODE_INTERNAL, "%s: more than %d lines", d->records->path, CS_MOST_SERIES);
    }
    series[(*n)++] = (cs_series){.name = name, .points = at, .n = found};
    at += found;
  }
  return CS_OK;
}

/* Where nothing but `sequential` is drawn its gain, 1, tells nothing. */
static bool tells(const drawing *d, int figure) {
  for (size_t t = 0; t < d->records->n; t++) {
    if (d->figure[t] != figure) continue;
    if (strcmp(d->records->trials[t].policy, "sequential") != 0) return true;
  }
  return false;
}

static bool wants_log(const cs_series *series, int n) {
  double least = INFINITY, most = 0;
  for (int s = 0; s < n; s++) {
    for (int i = 0; i < series[s].n; i++) {
      least = fmin(least, series[s].points[i].y);
      most = fmax(most, series[s].points[i].y);
    }
  }
  return most > LOG_RANGE * least;
}

static cs_status draw_one(drawing *d, int figure, const char *of, bool gain,
                          cs_line_point *points) {
  cs_series series[CS_MOST_SERIES];
  cs_strbuf svg = {0};
  char id[96], caption[1024];
  int n;
  CS_RETURN_IF_ERROR(gather(d, figure, gain, points, series, &n));
  snprintf(id, sizeof id, "%s-%s-%s-%d", gain ? "gain" : "latency", d->across,
           d->by_family ? "family" : "policy", figure);
  snprintf(caption, sizeof caption, "%s against %s: %s. %s", gain ? "Gain" : "Latency",
           strcmp(d->across, "workspace_limit") == 0 ? "workspace limit" : d->across, of,
           json_is_true(json_object_get(d->records->head, "predicted"))
               ? "Predicted by the SM model."
               : "Medians with 95% intervals.");
  cs_lines lines = figure_of(d, id, caption, gain, !gain && wants_log(series, n));
  cs_status st = cs_figure_lines(&svg, &lines, series, n);
  if (st == CS_OK) cs_html_figure(d->page, &svg, caption, false);
  cs_strbuf_free(&svg);
  return st;
}

static cs_status draw_all(drawing *d, cs_line_point *points) {
  const char *of;
  json_t *number;
  json_object_foreach(d->figures, of, number) {
    int figure = (int)json_integer_value(number);
    if (d->drawn + 2 > MOST_FIGURES) {
      d->left_out += 2;
      continue;
    }
    CS_RETURN_IF_ERROR(draw_one(d, figure, of, false, points));
    d->drawn++;
    if (!tells(d, figure)) continue;
    CS_RETURN_IF_ERROR(draw_one(d, figure, of, true, points));
    d->drawn++;
  }
  return CS_OK;
}

static cs_status draw(drawing *d, cs_line_point *points) {
  d->figures = json_object();
  d->names = json_object();
  cs_status st = d->figures && d->names ? place_trials(d) : cs_no_memory("figures", 0);
  if (st == CS_OK) st = draw_all(d, points);
  json_decref(d->figures);
  json_decref(d->names);
  return st;
}

/* ---- All of them ---- */

static cs_status plot_dimensions(drawing *d, cs_line_point *points) {
  static const char *const dimensions[] = {"batch", "workspace_limit", "streams"};
  static const char *const headings[] = {"Against the batch", "Against the workspace limit",
                                         "Against the number of streams"};
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
    d->across = dimensions[i];
    if (cs_experiment_count(d->records, d->across) < 2) continue;
    char id[64];
    snprintf(id, sizeof id, "against-%s", i == 1 ? "workspace" : d->across);
    cs_html_section(d->page, id, headings[i]);
    for (int by_family = 0; by_family < 2; by_family++) {
      d->by_family = by_family;
      size_t families = cs_experiment_count(d->records, "family");
      if (by_family && families < 2) continue;
      if (by_family && families > CS_MOST_SERIES) {
        cs_html_missing(d->page, NULL, "Figures by family: %zu of them, and a figure has %d lines",
                        families, CS_MOST_SERIES);
        continue;
      }
      if (by_family) cs_html_heading(d->page, "By family of candidates");
      CS_RETURN_IF_ERROR(draw(d, points));
    }
  }
  if (d->left_out > 0) {
    cs_html_missing(d->page, NULL, "%d more figures: a page draws %d; the table has all numbers",
                    d->left_out, MOST_FIGURES);
  }
  return CS_OK;
}

cs_status cs_experiment_plots(const cs_experiment_records *records, cs_html *page) {
  drawing d = {.records = records, .page = page};
  cs_line_point *points = cs_calloc(records->n, sizeof *points);
  d.figure = cs_calloc(records->n, sizeof *d.figure);
  d.series = cs_calloc(records->n, sizeof *d.series);
  cs_status st = points && d.figure && d.series ? plot_dimensions(&d, points)
                                                : cs_no_memory("points", records->n);
  free(points);
  free(d.figure);
  free(d.series);
  return st;
}
