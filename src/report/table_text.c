/* Tables for a person: aligned text and Markdown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"

#define UNKNOWN "–"

static bool is_shown(const cs_table *table, int column) {
  return !table->hidden[column] && table->columns[column].use != CS_COLUMN_DATA;
}

/* Columns that a terminal needs for UTF-8 text without wide characters. */
static int width_of(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static void cell_text(const cs_table *table, size_t row, int column, cs_strbuf *out) {
  const cs_table_column *as = &table->columns[column];
  const cs_cell *cell = &table->cells[row * (size_t)table->n_columns + (size_t)column];
  if (as->merged && table->continues[row]) return;
  if (cell->text) {
    cs_strbuf_append(out, cell->text, strlen(cell->text));
  } else if (as->digits != CS_COLUMN_TEXT && !isnan(cell->number)) {
    cs_strbuf_printf(out, "%.*f", as->digits, cell->number);
  } else {
    cs_strbuf_printf(out, UNKNOWN);
  }
}

/* Every shown cell as text, rows × columns, or NULL in what is hidden. */
typedef struct shown_cells {
  char **texts;
  int *widths; /* per column */
} shown_cells;

static void shown_free(const cs_table *table, shown_cells *shown) {
  size_t n = shown->texts ? table->n_rows * (size_t)table->n_columns : 0;
  for (size_t i = 0; i < n; i++) free(shown->texts[i]);
  free(shown->texts);
  free(shown->widths);
}

static cs_status shown_cells_of(const cs_table *table, shown_cells *out) {
  size_t n = table->n_rows * (size_t)table->n_columns;
  *out = (shown_cells){.texts = cs_calloc(n + 1, sizeof *out->texts),
                       .widths = cs_calloc((size_t)table->n_columns, sizeof *out->widths)};
  if (!out->texts || !out->widths) return cs_no_memory("a table", n * sizeof *out->texts);
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    out->widths[c] = width_of(table->columns[c].title);
    for (size_t r = 0; r < table->n_rows; r++) {
      cs_strbuf text = {0};
      char **place = &out->texts[r * (size_t)table->n_columns + (size_t)c];
      cell_text(table, r, c, &text);
      CS_RETURN_IF_ERROR(cs_strbuf_take(&text, place));
      int width = width_of(*place);
      if (width > out->widths[c]) out->widths[c] = width;
    }
  }
  return CS_OK;
}

/* ---- Text ---- */

static void pad(cs_strbuf *out, int count) {
  if (count > 0) cs_strbuf_printf(out, "%*s", count, "");
}

static void text_line(const cs_table *table, char *const *texts, const int *widths,
                      cs_strbuf *out) {
  int blanks = 0; /* held back, so that no line ends in them */
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    const char *text = texts ? texts[c] : table->columns[c].title;
    int space = widths[c] - width_of(text);
    bool right = table->columns[c].digits != CS_COLUMN_TEXT;
    if (!*text) {
      blanks += widths[c] + 2;
      continue;
    }
    pad(out, blanks + (right ? space : 0));
    cs_strbuf_append(out, text, strlen(text));
    blanks = 2 + (right ? 0 : space);
  }
  cs_strbuf_printf(out, "\n");
}

cs_status cs_table_to_text(const cs_table *table, char **out) {
  if (table->failed) return cs_no_memory("a table", 0);
  shown_cells shown;
  cs_strbuf text = {0};
  cs_status st = shown_cells_of(table, &shown);
  if (st == CS_OK) {
    if (table->title) cs_strbuf_printf(&text, "%s\n\n", table->title);
    text_line(table, NULL, shown.widths, &text);
    for (size_t r = 0; r < table->n_rows; r++) {
      text_line(table, &shown.texts[r * (size_t)table->n_columns], shown.widths, &text);
    }
    for (size_t i = 0; i < table->n_notes; i++) {
      cs_strbuf_printf(&text, "%s%s\n", i == 0 ? "\n" : "", table->notes[i]);
    }
    st = cs_strbuf_take(&text, out);
  }
  shown_free(table, &shown);
  return st;
}

/* ---- Markdown ---- */

/* What would be markup is escaped; a line break would end the row. */
static void escaped(cs_strbuf *out, const char *text) {
  for (; *text; text++) {
    if (strchr("\\|*<>[]`", *text)) cs_strbuf_append(out, "\\", 1);
    cs_strbuf_append(out, *text == '\n' || *text == '\r' ? " " : text, 1);
  }
}

static void markdown_line(const cs_table *table, char *const *texts, cs_strbuf *out) {
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    cs_strbuf_printf(out, "| ");
    escaped(out, texts ? texts[c] : table->columns[c].title);
    cs_strbuf_printf(out, " ");
  }
  cs_strbuf_printf(out, "|\n");
}

static void markdown_rule(const cs_table *table, cs_strbuf *out) {
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_shown(table, c)) continue;
    cs_strbuf_printf(out, table->columns[c].digits == CS_COLUMN_TEXT ? "|---" : "|--:");
  }
  cs_strbuf_printf(out, "|\n");
}

cs_status cs_table_to_markdown(const cs_table *table, char **out) {
  if (table->failed) return cs_no_memory("a table", 0);
  shown_cells shown;
  cs_strbuf text = {0};
  cs_status st = shown_cells_of(table, &shown);
  if (st == CS_OK) {
    if (table->title) {
      escaped(&text, table->title);
      cs_strbuf_printf(&text, "\n\n");
    }
    markdown_line(table, NULL, &text);
    markdown_rule(table, &text);
    for (size_t r = 0; r < table->n_rows; r++) {
      markdown_line(table, &shown.texts[r * (size_t)table->n_columns], &text);
    }
    for (size_t i = 0; i < table->n_notes; i++) {
      cs_strbuf_printf(&text, "\n");
      escaped(&text, table->notes[i]);
      cs_strbuf_printf(&text, "\n");
    }
    st = cs_strbuf_take(&text, out);
  }
  shown_free(table, &shown);
  return st;
}
