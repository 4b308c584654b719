#include "report/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_KEPT 6      /* characters of a cut text: of fewer nothing is understood */
#define LEAST_WIDTH 640.0 /* pixels; narrower, text of a wide figure could not be read */
#define MOST_SHRUNK 1200.0

/* ---- Text ---- */

void cs_markup_raw(cs_strbuf *out, const char *markup) {
  cs_strbuf_append(out, markup, strlen(markup));
}

static const char *entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return (unsigned char)c < 0x20 && c != '\n' && c != '\t' ? "" : NULL;
  }
}

/* Bytes of the character at `at`, of `left` at most, that XML may hold beyond ASCII; 0: it is none.
 */
static size_t wide_character(const unsigned char *at, size_t left) {
  static const uint32_t least[] = {0x80, 0x800, 0x10000};
  size_t n = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 0;
  if (n == 0 || n > left) return 0;
  uint32_t code = *at & (0x7fU >> n);
  for (size_t i = 1; i < n; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (at[i] & 0x3f);
  }
  bool surrogate = code >= 0xd800 && code < 0xe000, none = code == 0xfffe || code == 0xffff;
  return code >= least[n - 2] && code <= 0x10ffff && !surrogate && !none ? n : 0;
}

void cs_markup_part(cs_strbuf *out, const char *text, size_t length) {
  const char *from = text, *end = text + length;
  while (text < end) {
    bool wide = (unsigned char)*text >= 0x80;
    size_t n = wide ? wide_character((const unsigned char *)text, (size_t)(end - text)) : 1;
    const char *instead = n == 0 ? "" : wide ? NULL : entity(*text);
    if (instead) {
      cs_strbuf_append(out, from, (size_t)(text - from));
      cs_markup_raw(out, instead);
      from = text + 1;
    }
    text += n > 0 ? n : 1;
  }
  cs_strbuf_append(out, from, (size_t)(text - from));
}

void cs_markup_text(cs_strbuf *out, const char *text) {
  cs_markup_part(out, text, strlen(text));
}

static void escape_list(cs_strbuf *out, const char *format, va_list args) {
  char text[512], *longer = NULL;
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(text, sizeof text, format, args);
  if (n >= 0 && (size_t)n >= sizeof text) {
    longer = cs_calloc((size_t)n + 1, 1);
    if (longer) vsnprintf(longer, (size_t)n + 1, format, again);
    if (!longer) out->failed = true;
  }
  cs_markup_text(out, longer ? longer : text);
  free(longer);
  va_end(again);
}

void cs_markup_printf(cs_strbuf *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  escape_list(out, format, args);
  va_end(args);
}

/* Parts of an em, of common sans-serif fonts. */
static double width_of(unsigned char c) {
  if ((c & 0xc0) == 0x80) return 0;
  if (strchr("il.,:;'|!j", c)) return 0.33;
  if (strchr(" frt/()[]-", c)) return 0.40;
  if (strchr("mwMW@%", c)) return 0.96;
  return c >= 'A' && c <= 'Z' ? 0.71 : 0.62;
}

double cs_text_width(const char *text, double size) {
  double width = 0;
  for (; *text; text++) width += width_of((unsigned char)*text);
  return width * size;
}

static bool continues(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* As many characters of the end as of the beginning, or one less. */
static void cut_to(const char *text, size_t head, size_t tail, char *out, size_t out_size) {
  size_t length = strlen(text);
  while (head > 0 && continues(text[head])) head--;
  while (tail > 0 && continues(text[length - tail])) tail--;
  snprintf(out, out_size, "%.*s…%s", (int)head, text, text + length - tail);
}

void cs_text_fit(const char *text, double size, double width, char *out, size_t out_size) {
  snprintf(out, out_size, "%s", text);
  size_t length = strlen(text);
  if (length < out_size && cs_text_width(text, size) <= width) return;
  for (size_t keep = length < out_size - 4 ? length - 1 : out_size - 5; keep >= LEAST_KEPT;
       keep--) {
    cut_to(text, keep - keep / 2, keep / 2, out, out_size);
    if (cs_text_width(out, size) <= width) return;
  }
  out[0] = '\0';
}

/* ---- Elements ---- */

void cs_svg_number(cs_strbuf *out, double value) {
  long long tenths = isfinite(value) ? llround(value * 10) : 0;
  long long whole = tenths / 10, rest = tenths % 10;
  if (tenths < 0 && whole == 0) cs_markup_raw(out, "-");
  cs_strbuf_printf(out, "%lld", whole);
  if (rest) cs_strbuf_printf(out, ".%lld", rest < 0 ? -rest : rest);
}

static void attribute(cs_strbuf *out, const char *name, double value) {
  cs_strbuf_printf(out, " %s=\"", name);
  cs_svg_number(out, value);
  cs_markup_raw(out, "\"");
}

static void begin(cs_strbuf *out, const char *element, const char *class) {
  cs_strbuf_printf(out, "<%s", element);
  if (class) cs_strbuf_printf(out, " class=\"%s\"", class);
}

/* Below this it scrolls: a figure of about a page's width shrinks, one of several pages does not.
 */
static double least_width(double width) {
  return width > MOST_SHRUNK ? width : fmin(0.9 * width, LEAST_WIDTH);
}

void cs_svg_open(cs_strbuf *out, const cs_svg_head *head) {
  cs_markup_raw(out, head->style ? "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
                                 : "<svg viewBox=\"0 0 ");
  cs_svg_number(out, head->width);
  cs_markup_raw(out, " ");
  cs_svg_number(out, head->height);
  cs_markup_raw(out, "\"");
  attribute(out, "width", head->width);
  attribute(out, "height", head->height);
  cs_strbuf_printf(out, " id=\"%s\" class=\"figure\"", head->id);
  if (head->frame) {
    cs_strbuf_printf(out, " style=\"min-width:%dpx\"", (int)least_width(head->width));
  }
  cs_markup_raw(out, " role=\"group\" aria-label=\"");
  cs_markup_text(out, head->label);
  cs_markup_raw(out, "\">");
  if (head->style) {
    cs_markup_raw(out, "<style>");
    cs_markup_text(out, head->style);
    cs_markup_raw(out, "</style>");
  }
  if (!head->description) return;
  cs_markup_raw(out, "<desc>");
  cs_markup_text(out, head->description);
  cs_markup_raw(out, "</desc>");
}

void cs_svg_close(cs_strbuf *out) {
  cs_markup_raw(out, "</svg>\n");
}

void cs_svg_group(cs_strbuf *out, const char *class) {
  begin(out, "g", class);
  cs_markup_raw(out, ">");
}

void cs_svg_mark_text(cs_strbuf *out, const char *class, const char *tip) {
  cs_strbuf_printf(out, "<g class=\"m%s%s\"><title>", class ? " " : "", class ? class : "");
  cs_markup_text(out, tip);
  cs_markup_raw(out, "</title>");
}

void cs_svg_mark(cs_strbuf *out, const char *class, const char *format, ...) {
  va_list args;
  cs_strbuf_printf(out, "<g class=\"m%s%s\"><title>", class ? " " : "", class ? class : "");
  va_start(args, format);
  escape_list(out, format, args);
  va_end(args);
  cs_markup_raw(out, "</title>");
}

void cs_svg_end(cs_strbuf *out) {
  cs_markup_raw(out, "</g>\n");
}

void cs_svg_rect(cs_strbuf *out, const char *class, double x, double y, double w, double h) {
  begin(out, "rect", class);
  attribute(out, "x", x);
  attribute(out, "y", y);
  attribute(out, "width", fmax(w, 0));
  attribute(out, "height", fmax(h, 0));
  cs_markup_raw(out, "/>");
}

void cs_svg_line(cs_strbuf *out, const char *class, double x1, double y1, double x2, double y2) {
  begin(out, "line", class);
  attribute(out, "x1", x1);
  attribute(out, "y1", y1);
  attribute(out, "x2", x2);
  attribute(out, "y2", y2);
  cs_markup_raw(out, "/>");
}

void cs_svg_circle(cs_strbuf *out, const char *class, double x, double y, double radius) {
  begin(out, "circle", class);
  attribute(out, "cx", x);
  attribute(out, "cy", y);
  attribute(out, "r", radius);
  cs_markup_raw(out, "/>");
}

void cs_svg_text(cs_strbuf *out, const char *class, double x, double y, const char *format, ...) {
  va_list args;
  begin(out, "text", class);
  attribute(out, "x", x);
  attribute(out, "y", y);
  cs_markup_raw(out, ">");
  va_start(args, format);
  escape_list(out, format, args);
  va_end(args);
  cs_markup_raw(out, "</text>");
}

void cs_svg_path_open(cs_strbuf *out, const char *class) {
  begin(out, "path", class);
  cs_markup_raw(out, " d=\"");
}

void cs_svg_path_to(cs_strbuf *out, char command, double x, double y) {
  cs_strbuf_printf(out, "%c", command);
  cs_svg_number(out, x);
  cs_markup_raw(out, " ");
  cs_svg_number(out, y);
}

void cs_svg_path_close(cs_strbuf *out) {
  cs_markup_raw(out, "\"/>");
}
