/* Curves of a bench, and its page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/bench.h"
#include "report/chart.h"

#define MOST_LINES 64

/* One line of a figure. */
typedef struct line {
  const cs_bench_row *row; /* the first of it */
  char name[96];
} line;

/* What a figure takes; NULL: any. */
typedef struct filter {
  const char *bench, *device, *dtype;
  bool few; /* of rungs the naive one, the library's and the best alone */
} filter;

typedef double (*value_fn)(const cs_bench_row *row);

static double gflops_of(const cs_bench_row *row) {
  return 1e-9 * row->flops;
}
static double us_of(const cs_bench_row *row) {
  return row->us;
}
static double peak_of(const cs_bench_row *row) {
  return 100 * row->of_peak;
}

static bool is_layers(const cs_bench_row *row) {
  return !isnan(row->batch);
}

/* ---- Which rows make a line ---- */

static bool is_taken(const filter *f, const cs_bench_row *row) {
  bool named = f->few == row->best || strcmp(row->rung, CS_BENCH_NAIVE) == 0 ||
               strcmp(row->rung, "library") == 0;
  return named && (!f->bench || strcmp(f->bench, row->bench) == 0) &&
         (!f->device || strcmp(f->device, row->device) == 0) &&
         (!f->dtype || strcmp(f->dtype, row->dtype) == 0);
}

static bool same_line(const cs_bench_row *a, const cs_bench_row *b) {
  bool same_batch = isnan(a->batch) ? isnan(b->batch) : a->batch == b->batch;
  return same_batch && strcmp(a->bench, b->bench) == 0 && strcmp(a->device, b->device) == 0 &&
         strcmp(a->dtype, b->dtype) == 0 && strcmp(a->rung, b->rung) == 0;
}

/* Rows without a time make no line. */
static int lines_of(const cs_bench_records *records, const filter *f, line out[MOST_LINES]) {
  int n = 0;
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    bool known = row->skipped || !is_taken(f, row);
    for (int l = 0; l < n && !known; l++) known = same_line(out[l].row, row);
    if (known || n == MOST_LINES) continue;
    out[n].row = row;
    snprintf(out[n].name, sizeof out[n].name, "%s %s %s", row->device, row->rung, row->dtype);
    if (is_layers(row)) {
      size_t used = strlen(out[n].name);
      snprintf(out[n].name + used, sizeof out[n].name - used, " batch %.0f", row->batch);
    }
    n++;
  }
  return n;
}

static int compare_points(const void *a, const void *b) {
  double x = ((const cs_line_point *)a)->x, y = ((const cs_line_point *)b)->x;
  return (x > y) - (x < y);
}

static int points_of(const cs_bench_records *records, const line *of, value_fn value,
                     cs_line_point *out) {
  int n = 0;
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    if (row->skipped || !same_line(of->row, row)) continue;
    out[n++] =
        (cs_line_point){.x = row->at, .y = value(row), .low = NAN, .high = NAN, .tip = row->id};
  }
  qsort(out, (size_t)n, sizeof *out, compare_points);
  return n;
}

/* ---- A figure ---- */

static cs_status draw(const cs_bench_records *records, const cs_lines *figure, const line *lines,
                      int n, value_fn value, cs_strbuf *out) {
  cs_series series[CS_MOST_SERIES];
  cs_line_point *points = cs_calloc(records->n, sizeof *points), *at = points;
  if (!points) return cs_no_memory("points", records->n * sizeof *points);
  for (int l = 0; l < n && l < CS_MOST_SERIES; l++) {
    int found = points_of(records, &lines[l], value, at);
    series[l] = (cs_series){.name = lines[l].name, .points = at, .n = found};
    at += found;
  }
  cs_status st = cs_figure_lines(out, figure, series, n);
  free(points);
  return st;
}

static cs_axis across_of(const cs_bench_row *row) {
  bool layers = is_layers(row);
  return (cs_axis){.title = layers ? "layer" : "size", .log = !layers, .whole = true};
}

static cs_status no_lines(const cs_bench_records *records) {
  return cs_error(CS_CODE_BAD_INPUT, "%s: nothing was measured that could be drawn", records->name);
}

/* *left_out: lines that there is no colour for. */
static cs_status overview_of(const cs_bench_records *records, filter f, const char *id,
                             const char *style, int *left_out, cs_strbuf *out) {
  line lines[MOST_LINES];
  int n = lines_of(records, &f, lines);
  f.few = n > CS_MOST_SERIES;
  if (f.few) n = lines_of(records, &f, lines);
  if (n == 0) return no_lines(records);
  *left_out = n > CS_MOST_SERIES ? n - CS_MOST_SERIES : 0; /* the table has them */
  n -= *left_out;
  bool layers = is_layers(lines[0].row);
  cs_lines figure = {.id = id,
                     .label = layers ? "time of each layer" : "FLOP/s over sizes",
                     .style = style,
                     .across = across_of(lines[0].row),
                     .up = {.title = layers ? "time" : "GFLOP/s",
                            .unit = layers ? CS_UNIT_US : CS_UNIT_NUMBER,
                            .log = true},
                     .height = 420,
                     .line = NAN};
  return draw(records, &figure, lines, n, layers ? us_of : gflops_of, out);
}

cs_status cs_bench_overview(const cs_bench_records *records, const char *style, cs_strbuf *out) {
  int left_out;
  filter f = {.bench = records->rows[0].bench};
  return overview_of(records, f, "overview", style, &left_out, out);
}

/* ---- The page ---- */

static cs_status add_figure(cs_html *page, cs_status drawn, cs_strbuf *svg, const char *caption) {
  if (drawn == CS_OK) cs_html_figure(page, svg, caption, false);
  cs_strbuf_free(svg);
  return drawn;
}

static bool is_news(const cs_bench_records *records, size_t index, bool by_device) {
  const cs_bench_row *row = &records->rows[index];
  for (size_t i = 0; i < index; i++) {
    const cs_bench_row *before = &records->rows[i];
    if (strcmp(before->bench, row->bench) == 0 &&
        (!by_device ||
         (strcmp(before->device, row->device) == 0 && strcmp(before->dtype, row->dtype) == 0)))
      return false;
  }
  return true;
}

/* Of lines that there is no colour for. */
static const char *more_text(int left_out, char out[64]) {
  out[0] = '\0';
  if (left_out > 0) snprintf(out, 64, " %d more lines are in the table alone.", left_out);
  return out;
}

static void caption_of(const cs_bench_row *row, int left_out, char *out, size_t size) {
  char more[64];
  snprintf(out, size, "%s%s",
           is_layers(row)
               ? "Time of each layer, the same tensors every time (of slow rungs others)."
               : "Rate of a product of matrices by their extent (of three the geometric mean).",
           more_text(left_out, more));
}

static cs_status overviews(const cs_bench_records *records, cs_html *page) {
  cs_html_section(page, "overview", "Overview");
  for (size_t i = 0; i < records->n; i++) {
    char id[32], caption[256];
    int left_out = 0;
    cs_strbuf svg = {0};
    if (!is_news(records, i, false)) continue;
    snprintf(id, sizeof id, "overview-%zu", i);
    filter f = {.bench = records->rows[i].bench};
    cs_status drawn = overview_of(records, f, id, NULL, &left_out, &svg);
    caption_of(&records->rows[i], left_out, caption, sizeof caption);
    CS_RETURN_IF_ERROR(add_figure(page, drawn, &svg, caption));
  }
  return CS_OK;
}

static cs_status shares(const cs_bench_records *records, cs_html *page) {
  cs_html_section(page, "peak", "Share of peak");
  for (size_t i = 0; i < records->n; i++) {
    const cs_bench_row *row = &records->rows[i];
    char id[32], caption[256], more[64];
    cs_strbuf svg = {0};
    line lines[MOST_LINES];
    if (!is_news(records, i, true)) continue;
    filter f = {.bench = row->bench, .device = row->device, .dtype = row->dtype};
    int n = lines_of(records, &f, lines);
    if (n == 0) continue;
    snprintf(id, sizeof id, "peak-%zu", i);
    snprintf(caption, sizeof caption, "%s, %s on %s: share of the rate that the device sustains.%s",
             row->bench, row->dtype, row->device, more_text(n - CS_MOST_SERIES, more));
    cs_lines figure = {.id = id,
                       .label = "share of peak",
                       .across = across_of(row),
                       .up = {.title = "of peak", .unit = CS_UNIT_PERCENT, .log = true},
                       .line = 100,
                       .line_name = "peak"};
    n = n < CS_MOST_SERIES ? n : CS_MOST_SERIES;
    CS_RETURN_IF_ERROR(
        add_figure(page, draw(records, &figure, lines, n, peak_of, &svg), &svg, caption));
  }
  return CS_OK;
}

/* Of what, if it is one operation. */
static void title_of(const cs_bench_records *records, char *out, size_t size) {
  const char *bench = records->rows[0].bench;
  bool one = true;
  for (size_t i = 1; i < records->n; i++) one = one && strcmp(records->rows[i].bench, bench) == 0;
  snprintf(out, size, "Bench%s%s", one ? ": " : "", one ? bench : "");
}

static cs_status write_page(const cs_bench_records *records, cs_html *page) {
  const json_t *first = json_array_get(records->list, 0);
  const json_t *device = json_object_get(first, "device");
  char title[256], subtitle[1024];
  cs_table table = {0};
  snprintf(subtitle, sizeof subtitle, "%s, commit %s, begun %s",
           json_string_value(json_object_get(device, "name")),
           json_string_value(json_object_get(first, "commit")),
           json_string_value(json_object_get(first, "started")));
  title_of(records, title, sizeof title);
  cs_html_open(page, title, subtitle);
  CS_RETURN_IF_ERROR(overviews(records, page));
  CS_RETURN_IF_ERROR(shares(records, page));
  cs_html_section(page, "rungs", "All rungs");
  cs_bench_table_of(records, &table);
  cs_html_table(page, &table, "Every rung in every case");
  cs_table_free(&table);
  return CS_OK;
}

cs_status cs_bench_page_of(const cs_bench_records *records, char **out) {
  cs_html page = {0};
  *out = NULL;
  cs_status st = write_page(records, &page);
  if (st == CS_OK) st = cs_html_close(&page, out);
  cs_html_free(&page);
  return st;
}

/* ---- Every form ---- */

static cs_status curves(const cs_bench_records *records, char **out) {
  char *style = NULL;
  cs_strbuf svg = {0};
  CS_RETURN_IF_ERROR(cs_figure_style(&style));
  cs_status st = cs_bench_overview(records, style, &svg);
  free(style);
  if (st == CS_OK) return cs_strbuf_take(&svg, out);
  cs_strbuf_free(&svg);
  return st;
}

static cs_status table_in(const cs_bench_records *records, cs_report_format format, char **out) {
  cs_table table = {0};
  cs_bench_table_of(records, &table);
  cs_status st = format == CS_REPORT_TEXT       ? cs_table_to_text(&table, out)
                 : format == CS_REPORT_MARKDOWN ? cs_table_to_markdown(&table, out)
                                                : cs_table_to_csv(&table, out);
  cs_table_free(&table);
  return st;
}

cs_status cs_bench_text_of(const char *text, size_t length, const char *name,
                           cs_report_format format, char **out) {
  cs_bench_records records;
  *out = NULL;
  if (format == CS_REPORT_JSON)
    return cs_error(CS_CODE_USAGE, "%s: a bench has no JSON but its records", name);
  cs_status st = cs_bench_records_parse(text, length, name, &records);
  if (st == CS_OK) {
    st = format == CS_REPORT_HTML  ? cs_bench_page_of(&records, out)
         : format == CS_REPORT_SVG ? curves(&records, out)
                                   : table_in(&records, format, out);
  }
  cs_bench_records_free(&records);
  return st;
}
