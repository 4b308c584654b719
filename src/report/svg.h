/* A small writer of SVG and of escaped text, over a string buffer. Coordinates are user units (CSS
 * pixels at natural size), written with one decimal whatever the locale. A failed allocation stays
 * in the buffer and is reported by cs_strbuf_take. Pure. */
#ifndef CONVSCHED_REPORT_SVG_H_
#define CONVSCHED_REPORT_SVG_H_

#include "base/base.h"

/* Appends text in which & < > " are escaped and what XML cannot hold is left out: control
 * characters but line ends and tabs, bytes that are not UTF-8 (of a name that was cut). */
void cs_markup_text(cs_strbuf *out, const char *text);
/* The first `length` bytes of a text. */
void cs_markup_part(cs_strbuf *out, const char *text, size_t length);
/* The same of what is printed. */
void cs_markup_printf(cs_strbuf *out, const char *format, ...) CS_PRINTF(2, 3);
/* Appends a text as it is (a literal of ours). */
void cs_markup_raw(cs_strbuf *out, const char *markup);

typedef struct cs_svg_head {
  double width, height;
  const char *id;          /* "gantt-coselect": unique on a page; letters, digits, - and _ */
  const char *label;       /* what it shows, in a few words */
  const char *description; /* more of it for those who cannot see it; NULL: none */
  const char *style;       /* a style sheet of its own, for a file; NULL: the page's */
  bool frame;              /* wider than a narrow page: it scrolls there */
} cs_svg_head;

/* Everything between them is the figure. */
void cs_svg_open(cs_strbuf *out, const cs_svg_head *head);
void cs_svg_close(cs_strbuf *out);

void cs_svg_group(cs_strbuf *out, const char *class);
/* A group that has a tooltip, lines separated by \n: hovered, clicked, or reached by arrow keys. */
void cs_svg_mark(cs_strbuf *out, const char *class, const char *format, ...) CS_PRINTF(3, 4);
/* The same with `tip`, escaped here. */
void cs_svg_mark_text(cs_strbuf *out, const char *class, const char *tip);
void cs_svg_end(cs_strbuf *out); /* of a group or mark */

/* Classes name what a thing is; the style sheet says how that looks. NULL: none. */
void cs_svg_rect(cs_strbuf *out, const char *class, double x, double y, double w, double h);
void cs_svg_line(cs_strbuf *out, const char *class, double x1, double y1, double x2, double y2);
void cs_svg_circle(cs_strbuf *out, const char *class, double x, double y, double radius);
void cs_svg_text(cs_strbuf *out, const char *class, double x, double y, const char *format, ...)
    CS_PRINTF(5, 6);
/* "M x y", "L x y", … inside of cs_svg_path_open and cs_svg_path_close. */
void cs_svg_path_open(cs_strbuf *out, const char *class);
void cs_svg_path_to(cs_strbuf *out, char command, double x, double y);
void cs_svg_path_close(cs_strbuf *out);
/* A coordinate, as all of them are written. */
void cs_svg_number(cs_strbuf *out, double value);

/* About how wide a text is in the page's fonts, at a size in pixels. */
double cs_text_width(const char *text, double size);
/* `text` cut to a width, its middle given as "…" ("inception…3x3"); "" where not even that fits.
 * Cuts no UTF-8 sequence. */
void cs_text_fit(const char *text, double size, double width, char *out, size_t out_size);

#endif
