#include "report/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_TABLE 20 /* rows */

/* ---- Text ---- */

static void element_begin(cs_strbuf *out, const char *element, const char *class) {
  cs_strbuf_printf(out, class ? "<%s class=\"%s\">" : "<%s>", element, class);
}

/* Escaped, and `code` as code. */
static void with_code(cs_strbuf *out, const char *text) {
  bool code = false;
  for (;;) {
    size_t length = strcspn(text, "`");
    cs_markup_part(out, text, length);
    if (!text[length]) break;
    code = !code;
    cs_markup_raw(out, code ? "<code>" : "</code>");
    text += length + 1;
  }
  if (code) cs_markup_raw(out, "</code>");
}

/* Whether there was code in it. */
static bool print_list(cs_strbuf *out, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = n >= 0 ? cs_calloc((size_t)n + 1, 1) : NULL;
  bool code = false;
  if (text) {
    vsnprintf(text, (size_t)n + 1, format, args);
    with_code(out, text);
    code = strchr(text, '`') != NULL;
  } else {
    out->failed = true;
  }
  free(text);
  return code;
}

void cs_html_heading(cs_html *page, const char *format, ...) {
  va_list args;
  cs_markup_raw(&page->body, "<h3>");
  va_start(args, format);
  print_list(&page->body, format, args);
  va_end(args);
  cs_markup_raw(&page->body, "</h3>\n");
}

void cs_html_paragraph(cs_html *page, const char *format, ...) {
  va_list args;
  cs_markup_raw(&page->body, "<p>");
  va_start(args, format);
  print_list(&page->body, format, args);
  va_end(args);
  cs_markup_raw(&page->body, "</p>\n");
}

void cs_html_missing(cs_html *page, const char *command, const char *format, ...) {
  va_list args;
  cs_markup_raw(&page->body, "<p class=\"missing\">");
  va_start(args, format);
  bool code = print_list(&page->body, format, args);
  va_end(args);
  if (command && !code) {
    cs_markup_raw(&page->body, " <code>");
    cs_markup_text(&page->body, command);
    cs_markup_raw(&page->body, "</code>");
  }
  cs_markup_raw(&page->body, "</p>\n");
}

void cs_html_note(cs_html *page, const char *text) {
  cs_markup_raw(&page->body, "<p class=\"note\">");
  with_code(&page->body, text);
  cs_markup_raw(&page->body, "</p>\n");
}

/* ---- Structure ---- */

void cs_html_open(cs_html *page, const char *title, const char *subtitle) {
  page->title = cs_strdup(title);
  if (!page->title) page->body.failed = true;
  cs_markup_raw(&page->body, "<header><h1>");
  cs_markup_text(&page->body, title);
  cs_markup_raw(&page->body, "</h1>\n<p class=\"subtitle\">");
  cs_markup_text(&page->body, subtitle);
  cs_markup_raw(&page->body, "</p></header>\n");
}

void cs_html_free(cs_html *page) {
  cs_strbuf_free(&page->body);
  cs_strbuf_free(&page->nav);
  free(page->title);
  page->title = NULL;
}

static void end_section(cs_html *page) {
  if (page->in_section) cs_markup_raw(&page->body, "</section>\n");
  page->in_section = false;
}

void cs_html_section(cs_html *page, const char *id, const char *heading) {
  end_section(page);
  page->in_section = true;
  cs_strbuf_printf(&page->nav, "<li><a href=\"#%s\">", id);
  cs_markup_text(&page->nav, heading);
  cs_markup_raw(&page->nav, "</a></li>");
  cs_strbuf_printf(&page->body, "<section id=\"%s\" aria-labelledby=\"%s-h\"><h2 id=\"%s-h\">", id,
                   id, id);
  cs_markup_text(&page->body, heading);
  cs_markup_raw(&page->body, "</h2>\n");
}

void cs_html_cards_begin(cs_html *page) {
  cs_markup_raw(&page->body, "<dl class=\"cards\">\n");
}

void cs_html_card(cs_html *page, const char *label, const char *value, const char *note) {
  cs_markup_raw(&page->body, "<div><dt>");
  cs_markup_text(&page->body, label);
  cs_markup_raw(&page->body, "</dt><dd><strong>");
  cs_markup_text(&page->body, value);
  cs_markup_raw(&page->body, "</strong><span>");
  cs_markup_text(&page->body, note);
  cs_markup_raw(&page->body, "</span></dd></div>\n");
}

void cs_html_cards_end(cs_html *page) {
  cs_markup_raw(&page->body, "</dl>\n");
}

void cs_html_figure(cs_html *page, const cs_strbuf *svg, const char *caption, bool zoom) {
  cs_strbuf *out = &page->body;
  if (svg->failed) out->failed = true;
  element_begin(out, "figure", zoom ? "zoom" : NULL);
  cs_markup_raw(out, "<div class=\"scroll\">");
  cs_strbuf_append(out, svg->data ? svg->data : "", svg->length);
  cs_markup_raw(out, "</div><figcaption>");
  cs_markup_text(out, caption);
  cs_markup_raw(out, "</figcaption></figure>\n");
}

void cs_html_details_begin(cs_html *page, const char *summary) {
  cs_markup_raw(&page->body, "<details><summary>");
  cs_markup_text(&page->body, summary);
  cs_markup_raw(&page->body, "</summary>\n");
}

void cs_html_details_end(cs_html *page) {
  cs_markup_raw(&page->body, "</details>\n");
}

void cs_html_panels_begin(cs_html *page, const char *label) {
  cs_markup_raw(&page->body, "<div class=\"panels\" data-label=\"");
  cs_markup_text(&page->body, label);
  cs_markup_raw(&page->body, "\">\n<div>");
}

void cs_html_panel(cs_html *page, const char *id, const char *name) {
  cs_strbuf_printf(&page->body, "</div><div class=\"panel\" id=\"%s\" data-name=\"", id);
  cs_markup_text(&page->body, name);
  cs_markup_raw(&page->body, "\"><h3>");
  cs_markup_text(&page->body, name);
  cs_markup_raw(&page->body, "</h3>\n");
}

void cs_html_panels_end(cs_html *page) {
  cs_markup_raw(&page->body, "</div></div>\n");
}

/* ---- Tables ---- */

static bool is_shown(const cs_table *table, int column) {
  return !table->hidden[column] && table->columns[column].use != CS_COLUMN_DATA;
}

static void head_row(cs_strbuf *out, const cs_table *table) {
  cs_markup_raw(out, "<thead><tr>");
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    bool number = table->columns[c].digits != CS_COLUMN_TEXT;
    cs_strbuf_printf(out, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
    cs_markup_text(out, table->columns[c].title);
    cs_markup_raw(out, "</th>");
  }
  cs_markup_raw(out, "</tr></thead>\n");
}

/* Cells that repeat those above are told all the same, so that a sorted table reads right: the
 * style makes them faint. */
static void body_row(cs_strbuf *out, const cs_table *table, size_t row) {
  cs_markup_raw(out, "<tr>");
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    const cs_table_column *as = &table->columns[c];
    const cs_cell *cell = &table->cells[row * (size_t)table->n_columns + (size_t)c];
    bool number = as->digits != CS_COLUMN_TEXT, again = as->merged && table->continues[row];
    cs_strbuf_printf(out, "<td%s>", number ? " class=\"n\"" : again ? " class=\"again\"" : "");
    if (cell->text) {
      cs_markup_text(out, cell->text);
    } else if (number && !isnan(cell->number)) {
      cs_strbuf_printf(out, "%.*f", as->digits, cell->number);
    } else {
      cs_markup_raw(out, "–");
    }
    cs_markup_raw(out, "</td>");
  }
  cs_markup_raw(out, "</tr>\n");
}

void cs_html_table(cs_html *page, const cs_table *table, const char *caption) {
  cs_strbuf *out = &page->body;
  if (table->failed) out->failed = true;
  cs_markup_raw(
      out, table->n_rows > LONG_TABLE ? "<div class=\"table long\">" : "<div class=\"table\">");
  cs_markup_raw(out, "<table><caption>");
  cs_markup_text(out, caption);
  cs_markup_raw(out, "</caption>");
  head_row(out, table);
  cs_markup_raw(out, "<tbody>");
  for (size_t r = 0; r < table->n_rows; r++) body_row(out, table, r);
  cs_markup_raw(out, "</tbody></table></div>\n");
  for (size_t i = 0; i < table->n_notes; i++) cs_html_note(page, table->notes[i]);
}

/* ---- The document ---- */

cs_status cs_html_close(cs_html *page, char **out) {
  cs_strbuf text = {0};
  end_section(page);
  cs_markup_raw(&text,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
                "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
                "name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
                "href=\"data:,\">\n<title>");
  cs_markup_text(&text, page->title ? page->title : "");
  cs_markup_raw(&text, "</title>\n<style>\n");
  cs_markup_raw(&text, cs_page_css);
  cs_markup_raw(&text,
                "</style></head>\n<body><a class=\"skip\" href=\"#main\">Skip to the report</a>\n"
                "<nav aria-label=\"Sections\"><ul>");
  cs_strbuf_append(&text, page->nav.data ? page->nav.data : "", page->nav.length);
  cs_markup_raw(&text, "</ul></nav>\n<main id=\"main\" tabindex=\"-1\">\n");
  cs_strbuf_append(&text, page->body.data ? page->body.data : "", page->body.length);
  cs_markup_raw(&text, "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n");
  cs_markup_raw(&text, cs_page_js);
  cs_markup_raw(&text, "</script></body></html>\n");
  if (page->body.failed || page->nav.failed) text.failed = true;
  return cs_strbuf_take(&text, out);
}

/* ---- The style of a figure in a file of its own ---- */

/* The value of --name in the style sheet: its first, which is the light one. */
static void append_value(cs_strbuf *out, const char *name, size_t length) {
  for (const char *at = cs_page_css; (at = strstr(at, "--")); at += 2) {
    if (strncmp(at, name, length) != 0 || at[length] != ':') continue;
    const char *value = at + length + 1, *end = strchr(value, ';');
    while (*value == ' ') value++;
    if (end) cs_strbuf_append(out, value, (size_t)(end - value));
    return;
  }
}

cs_status cs_figure_style(char **out) {
  static const char begin[] = "/* figures */", end[] = "/* end of figures */", var[] = "var(";
  cs_strbuf text = {0};
  const char *at = strstr(cs_page_css, begin), *last = strstr(cs_page_css, end);
  if (!at || !last) return cs_error(CS_CODE_INTERNAL, "page.css has no part of figures");
  at += strlen(begin);
  cs_markup_raw(&text, "svg{background:#fff;font-family:Helvetica,Arial,sans-serif}");
  for (const char *next; (next = strstr(at, var)) && next < last;) {
    const char *name = next + strlen(var), *close = strchr(name, ')');
    cs_strbuf_append(&text, at, (size_t)(next - at));
    if (!close) break;
    append_value(&text, name, (size_t)(close - name));
    at = close + 1;
  }
  cs_strbuf_append(&text, at, (size_t)(last - at));
  return cs_strbuf_take(&text, out);
}
