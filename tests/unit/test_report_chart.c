/* SVG, axes and charts: what is written is well-formed, ticks are round, values are where they
 * belong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/chart.h"
#include "report/page.h"

/* free() releases. */
static char *taken(cs_strbuf *buffer) {
  assert_false(buffer->failed);
  return buffer->data;
}

static void expect_text(cs_strbuf *buffer, const char *wanted) {
  char *text = taken(buffer);
  assert_string_equal(text, wanted);
  free(text);
}

/* ---- Text ---- */

static void text_is_escaped(void **state) {
  (void)state;
  cs_strbuf out = {0};
  char longer[2001] = {0};
  cs_markup_text(&out, "a<b> & \"c\"\x01\x1f µ");
  expect_text(&out, "a&lt;b&gt; &amp; &quot;c&quot; µ");
  memset(longer, '<', sizeof longer - 1);
  out = (cs_strbuf){0};
  cs_markup_printf(&out, "%s", longer);
  assert_int_equal(out.length, 4 * 2000);
  cs_strbuf_free(&out);
}

/* One decimal, trailing zeros left out, no sign of what rounds to 0. */
static void numbers(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *text;
  } cases[] = {{12, "12"},     {0.04, "0"},      {-0.04, "0"}, {-0.25, "-0.3"},
               {-3.5, "-3.5"}, {1e6, "1000000"}, {NAN, "0"},   {99.96, "100"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cs_strbuf out = {0};
    cs_svg_number(&out, cases[i].value);
    expect_text(&out, cases[i].text);
  }
}

static void texts_are_cut_in_the_middle(void **state) {
  (void)state;
  char out[64];
  cs_text_fit("inception_3a", 10, 500, out, sizeof out);
  assert_string_equal(out, "inception_3a");
  cs_text_fit("inception_3a/3x3_reduce", 10, 90, out, sizeof out);
  assert_non_null(strstr(out, "…"));
  assert_true(cs_text_width(out, 10) <= 90);
  assert_int_equal(strncmp(out, "inc", 3), 0);
  cs_text_fit("inception_3a/3x3_reduce", 10, 12, out, sizeof out);
  assert_string_equal(out, "");                      /* nothing that is understood fits */
  for (double width = 20; width < 120; width += 1) { /* no half of a character */
    cs_text_fit("µµµµµµµµµµµµµµ", 10, width, out, sizeof out);
    size_t length = strlen(out);
    assert_true(length % 2 == (strstr(out, "…") ? 1u : 0u));
  }
}

static void units(void **state) {
  (void)state;
  static const struct {
    cs_unit unit;
    double value;
    const char *text;
  } cases[] = {{CS_UNIT_US, 12.34, "12.3 µs"},    {CS_UNIT_US, 1450, "1.45 ms"},
               {CS_UNIT_US, 2e6, "2 s"},          {CS_UNIT_US, 0, "0 µs"},
               {CS_UNIT_BYTES, 512, "512 B"},     {CS_UNIT_BYTES, 1536, "1.50 KiB"},
               {CS_UNIT_BYTES, 1 << 20, "1 MiB"}, {CS_UNIT_PERCENT, 45, "45%"},
               {CS_UNIT_NUMBER, 1.5, "1.50"},     {CS_UNIT_US, NAN, "–"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[32];
    cs_unit_text(cases[i].unit, cases[i].value, text);
    assert_string_equal(text, cases[i].text);
  }
}

/* ---- Axes ---- */

/* Times of one axis, and of axes that are compared, are in one unit; a log axis has many. */
static void times_of_an_axis_have_one_unit(void **state) {
  (void)state;
  static const struct {
    double most, compared, value;
    bool log;
    const char *text;
  } cases[] = {{1600, 0, 500, false, "0.5 ms"},        {1600, 0, 0, false, "0 ms"},
               {1600, 0, 1234.5, false, "1.23 ms"},    {900, 1100, 900, false, "0.9 ms"},
               {900, 1100, 42.37, false, "0.0424 ms"}, {900, 0, 900, false, "900 µs"},
               {900, 0, 42.37, false, "42.4 µs"},      {900, 0, 123.4, false, "123 µs"},
               {2e6, 0, 50000, false, "0.05 s"},       {250000, 0, 120000, false, "120 ms"},
               {1600, 0, 500, true, "500 µs"},         {1600, 0, NAN, false, "–"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[32];
    cs_axis axis = {.unit = CS_UNIT_US,
                    .most = cases[i].most,
                    .compared = cases[i].compared,
                    .log = cases[i].log};
    cs_axis_tick_text(&axis, cases[i].value, text);
    assert_string_equal(text, cases[i].text);
  }
  char text[32];
  cs_axis bytes = {.unit = CS_UNIT_BYTES, .most = 1 << 20};
  cs_axis_tick_text(&bytes, 512, text);
  assert_string_equal(text, "512 B");
  cs_axis us = {.unit = CS_UNIT_US, .most = 1600}, number = {.most = 2};
  cs_axis_value_text(&us, 1500, text);
  assert_string_equal(text, "1.50 ms");
  cs_axis_value_text(&us, 42.37, text);
  assert_string_equal(text, "0.0424 ms");
  cs_axis_tick_text(&number, 0.5, text);
  assert_string_equal(text, "0.5");
}

static void expect_ticks(const cs_axis *axis, int wanted, const double *at, int n) {
  cs_ticks ticks;
  cs_axis_ticks(axis, wanted, &ticks);
  assert_int_equal(ticks.n, n);
  for (int i = 0; i < n; i++) assert_true(fabs(ticks.at[i] - at[i]) <= 1e-9 * fabs(at[i]) + 1e-12);
}

static void linear_axes_end_at_round_numbers(void **state) {
  (void)state;
  static const double fives[] = {0, 100, 200, 300, 400, 500, 600};
  cs_axis axis = {.unit = CS_UNIT_US};
  cs_axis_fit(&axis, 507.3);
  cs_axis_fit(&axis, NAN);
  cs_axis_fit(&axis, 12);
  cs_axis_round(&axis);
  assert_true(axis.least == 0);
  assert_true(axis.most >= 507.3 && axis.most <= 600);
  axis.most = 600;
  expect_ticks(&axis, 6, fives, 7);
}

static void no_tick_is_minus_zero(void **state) {
  (void)state;
  cs_ticks ticks;
  cs_axis axis = {.unit = CS_UNIT_PERCENT};
  cs_axis_fit(&axis, 70);
  cs_axis_round(&axis);
  cs_axis_ticks(&axis, 5, &ticks);
  assert_false(signbit(ticks.at[0]));
}

static void log_axes_have_decades_or_powers_of_two(void **state) {
  (void)state;
  static const double parts[] = {1, 2, 5, 10, 20, 50, 100};
  static const double powers[] = {1024, 4096, 16384, 65536};
  cs_axis us = {.unit = CS_UNIT_US, .log = true}, bytes = {.unit = CS_UNIT_BYTES, .log = true};
  cs_axis_fit(&us, 1.5);
  cs_axis_fit(&us, 80);
  cs_axis_round(&us);
  expect_ticks(&us, 7, parts, 7);
  cs_axis_fit(&bytes, 0);
  cs_axis_fit(&bytes, 1500);
  cs_axis_fit(&bytes, 60000);
  cs_axis_round(&bytes);
  assert_true(bytes.zero);
  expect_ticks(&bytes, 4, powers, 4);
}

static void whole_axes_have_no_halves(void **state) {
  (void)state;
  static const double streams[] = {0, 1, 2, 3};
  cs_axis axis = {.whole = true};
  cs_axis_fit(&axis, 3);
  cs_axis_round(&axis);
  expect_ticks(&axis, 9, streams, 4);
}

/* Values of 0 lie before the beginning of a log axis, and the rest in the order of their sizes. */
static void places_of_values(void **state) {
  (void)state;
  cs_plot plot = {.x = 100, .y = 10, .width = 400, .height = 200};
  plot.across = (cs_axis){.log = true, .zero = true, .least = 1, .most = 100, .any = true};
  plot.up = (cs_axis){.least = 0, .most = 50, .any = true};
  assert_true(cs_plot_x(&plot, 0) > 100 && cs_plot_x(&plot, 0) < cs_plot_x(&plot, 1));
  assert_true(fabs(cs_plot_x(&plot, 100) - 500) <= 1e-9);
  double middle = (cs_plot_x(&plot, 1) + cs_plot_x(&plot, 100)) / 2;
  assert_true(fabs(cs_plot_x(&plot, 10) - middle) <= 1e-9);
  assert_true(fabs(cs_plot_y(&plot, 0) - 210) <= 1e-9);
  assert_true(fabs(cs_plot_y(&plot, 50) - 10) <= 1e-9);
}

/* ---- Figures ---- */

static int count(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)); text += strlen(what)) n++;
  return n;
}

/* Where the path of a class goes. */
static void path_of(const char *svg, const char *class, char out[256]) {
  const char *path = strstr(svg, class);
  path = path ? strstr(path, "d=\"") : NULL;
  snprintf(out, 256, "%.*s", path ? (int)strcspn(path + 3, "\"") : 0, path ? path + 3 : "");
}

/* A value that is not known interrupts the line and has no point; nothing is drawn in its place. */
static void lines_are_interrupted(void **state) {
  (void)state;
  static const cs_line_point points[] = {{1, 10, 9, 11, NULL},
                                         {2, 20, NAN, NAN, "seen"},
                                         {4, NAN, NAN, NAN, NULL},
                                         {8, 40, NAN, NAN, NULL}};
  const cs_series series[] = {{"str<eams", points, 4, false}};
  const cs_lines lines = {.id = "lines", .label = "Lines", .line = NAN};
  cs_strbuf out = {0};
  assert_null(cs_figure_lines(&out, &lines, series, 1));
  char *text = taken(&out);
  assert_int_equal(count(text, "<g class=\"m\">"), 3);
  char d[256];
  path_of(text, "line s0", d);
  assert_int_equal(count(d, "M"), 2);
  assert_int_equal(count(d, "L"), 1);
  assert_non_null(strstr(text, "str&lt;eams"));
  assert_int_equal(count(text, "whisker"), 3); /* of the one interval */
  assert_null(strstr(text, "nan"));
  free(text);
}

/* A number behind `what`, the n-th of it. */
static double number_behind(const char *text, const char *what, int n) {
  for (; text && n >= 0; n--) {
    text = strstr(text, what);
    if (text) text += strlen(what);
  }
  if (!text) fail_msg("no %s", what);
  return strtod(text ? text : "", NULL);
}

/* The rows of a legend, however many, are above the plot, whose height they leave. */
static void names_of_lines_are_above_the_plot(void **state) {
  (void)state;
  static const cs_line_point points[] = {{1, 10, NAN, NAN, NULL}, {2, 100, NAN, NAN, NULL}};
  const cs_lines lines = {.id = "names", .label = "Names", .height = 300, .line = 100};
  double inside[2];
  for (int many = 0; many < 2; many++) {
    int n = many ? CS_MOST_SERIES : 1;
    cs_series series[CS_MOST_SERIES];
    cs_strbuf out = {0};
    for (int s = 0; s < n; s++)
      series[s] = (cs_series){"the rather long name of one of many lines", points, 2, false};
    assert_null(cs_figure_lines(&out, &lines, series, n));
    char *text = taken(&out);
    const char *limit = strstr(text, "class=\"limit\""), *legend = strstr(text, "\"legend\"");
    assert_non_null(limit);
    assert_non_null(legend);
    double top = number_behind(limit, " y1=\"", 0);
    double last = number_behind(legend, " y1=\"", n - 1);
    if (!(last + 6 <= top)) fail_msg("names to %g, plot from %g", last + 6, top);
    inside[many] = number_behind(text, " height=\"", 0) - top;
    free(text);
  }
  assert_true(fabs(inside[0] - inside[1]) <= 1e-9);
}

static void too_many_lines_are_refused(void **state) {
  (void)state;
  cs_series series[CS_MOST_SERIES + 1] = {{0}};
  const cs_lines lines = {.id = "many", .label = "Many", .line = NAN};
  cs_strbuf out = {0};
  cs_status st = cs_figure_lines(&out, &lines, series, CS_MOST_SERIES + 1);
  assert_int_equal(cs_status_code(st), CS_CODE_USAGE);
  cs_status_free(st);
  cs_strbuf_free(&out);
}

/* All variables of the page's style have become values, those of the light page. */
static void figures_have_a_style_of_their_own(void **state) {
  (void)state;
  char *style = NULL;
  assert_null(cs_figure_style(&style));
  assert_null(strstr(style, "var("));
  assert_null(strstr(style, "--"));
  assert_non_null(strstr(style, "svg .s0 { stroke: #0a5fb4; }"));
  assert_int_equal(count(style, "{"), count(style, "}"));
  free(style);
}

/* ---- Pages ---- */

static void a_page_is_whole(void **state) {
  (void)state;
  char *text = NULL;
  cs_html page = {0};
  cs_html_open(&page, "a<b", "sub & title");
  cs_html_section(&page, "first", "First");
  cs_html_missing(&page, "convsched profile x", "kernels");
  cs_html_missing(&page, "convsched profile x", "kernels; run `convsched run`");
  cs_html_section(&page, "second", "Second");
  assert_null(cs_html_close(&page, &text));
  assert_non_null(strstr(text, "<title>a&lt;b</title>"));
  assert_int_equal(count(text, "<section "), 2);
  assert_int_equal(count(text, "</section>"), 2);
  assert_non_null(strstr(text, "href=\"#second\">Second</a>"));
  assert_int_equal(count(text, "<code>convsched profile x</code>"), 1);
  assert_non_null(strstr(text, "<code>convsched run</code>"));
  cs_html_free(&page);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_escaped),
      cmocka_unit_test(numbers),
      cmocka_unit_test(texts_are_cut_in_the_middle),
      cmocka_unit_test(units),
      cmocka_unit_test(times_of_an_axis_have_one_unit),
      cmocka_unit_test(linear_axes_end_at_round_numbers),
      cmocka_unit_test(no_tick_is_minus_zero),
      cmocka_unit_test(log_axes_have_decades_or_powers_of_two),
      cmocka_unit_test(whole_axes_have_no_halves),
      cmocka_unit_test(places_of_values),
      cmocka_unit_test(lines_are_interrupted),
      cmocka_unit_test(names_of_lines_are_above_the_plot),
      cmocka_unit_test(too_many_lines_are_refused),
      cmocka_unit_test(figures_have_a_style_of_their_own),
      cmocka_unit_test(a_page_is_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
