/* The scaffold of a page: one HTML file with style, script and figures in it, which reads nothing
 * else. What it shows stands in the HTML; the script adds tooltips, sorting, filters and zoom.
 * Pure. */
#ifndef CONVSCHED_REPORT_PAGE_H_
#define CONVSCHED_REPORT_PAGE_H_

#include "report/svg.h"
#include "report/table.h"

extern const char cs_page_css[], cs_page_js[]; /* page.css and page.js, as they were built in */

/* Zero-initialise, open, fill section by section, close; cs_html_free in any case. A failed
 * allocation is reported by cs_html_close. */
typedef struct cs_html {
  cs_strbuf body, nav;
  char *title;
  bool in_section;
} cs_html;

void cs_html_open(cs_html *page, const char *title, const char *subtitle);
void cs_html_free(cs_html *page);
/* Ends the section before, if there is one; the headings of all are the page's contents. `id`:
 * letters, digits and -. */
void cs_html_section(cs_html *page, const char *id, const char *heading);
/* Of these texts what stands between ` is code. */
void cs_html_heading(cs_html *page, const char *format, ...) CS_PRINTF(2, 3); /* within it */
void cs_html_paragraph(cs_html *page, const char *format, ...) CS_PRINTF(2, 3);
/* A note of a table. */
void cs_html_note(cs_html *page, const char *text);
/* What is not there and why; `command` gives it (NULL: nothing, and not told where the text has
 * `code` itself). */
void cs_html_missing(cs_html *page, const char *command, const char *format, ...) CS_PRINTF(3, 4);
/* A row of numbers that stand out: cards between begin and end. */
void cs_html_cards_begin(cs_html *page);
void cs_html_card(cs_html *page, const char *label, const char *value, const char *note);
void cs_html_cards_end(cs_html *page);
/* A figure (SVG) with a caption; `tools` adds what zooms it. */
void cs_html_figure(cs_html *page, const cs_strbuf *svg, const char *caption, bool zoom);
/* Sorted by its headings; data columns left out, what is not known is "–"; notes below. Of more
 * than some 20 rows it scrolls in a box of its own. */
void cs_html_table(cs_html *page, const cs_table *table, const char *caption);
/* What is folded away until it is wanted. */
void cs_html_details_begin(cs_html *page, const char *summary);
void cs_html_details_end(cs_html *page);
/* Panels of which one is seen at a time, all where there is no script and in print. */
void cs_html_panels_begin(cs_html *page, const char *label);
void cs_html_panel(cs_html *page, const char *id, const char *name); /* ends the one before */
void cs_html_panels_end(cs_html *page);
/* The whole document; free() releases. */
cs_status cs_html_close(cs_html *page, char **out) CS_MUST_USE;

/* The style of figures in a file of their own: page.css's part of figures with the values of the
 * light colours in place of variables, which programs for drawings do not know. free() releases. */
cs_status cs_figure_style(char **out) CS_MUST_USE;

#endif
