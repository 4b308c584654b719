#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void cs_table_init(cs_table *table, const cs_table_column *columns, int n_columns) {
  *table = (cs_table){.columns = columns, .n_columns = n_columns};
  table->hidden = cs_calloc((size_t)n_columns, sizeof *table->hidden);
  table->about = json_object();
  table->summary = json_object();
  table->failed = !table->hidden || !table->about || !table->summary;
}

void cs_table_free(cs_table *table) {
  for (size_t i = 0; i < table->n_rows * (size_t)table->n_columns; i++) free(table->cells[i].text);
  for (size_t i = 0; i < table->n_notes; i++) free(table->notes[i]);
  free(table->title);
  free(table->hidden);
  free(table->cells);
  free(table->continues);
  free(table->notes);
  json_decref(table->about);
  json_decref(table->summary);
  *table = (cs_table){0};
}

/* The formatted text; NULL marks the table as failed. */
static char *CS_PRINTF(2, 0) formatted(cs_table *table, const char *format, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, format, args) < 0) {
    table->failed = true;
    return NULL;
  }
  return text;
}

/* Grows an array of the table; false marks it as failed. */
static bool grow(cs_table *table, void *array, size_t *capacity, size_t need, size_t size) {
  cs_status st = cs_grow(array, capacity, need, size);
  table->failed = table->failed || st != CS_OK;
  cs_status_free(st);
  return !table->failed;
}

void cs_table_title(cs_table *table, const char *format, ...) {
  va_list args;
  va_start(args, format);
  free(table->title);
  table->title = formatted(table, format, args);
  va_end(args);
}

void cs_table_hide(cs_table *table, int column) {
  if (!table->failed) table->hidden[column] = true;
}

void cs_table_row(cs_table *table, bool continues) {
  size_t width = (size_t)table->n_columns;
  if (!grow(table, &table->cells, &table->cells_capacity, (table->n_rows + 1) * width,
            sizeof *table->cells) ||
      !grow(table, &table->continues, &table->rows_capacity, table->n_rows + 1,
            sizeof *table->continues)) {
    return;
  }
  for (size_t c = 0; c < width; c++) {
    table->cells[table->n_rows * width + c] = (cs_cell){NULL, NAN};
  }
  table->continues[table->n_rows] = continues && table->n_rows > 0;
  table->n_rows++;
}

static cs_cell *newest(cs_table *table, int column) {
  if (table->failed || table->n_rows == 0) return NULL;
  return &table->cells[(table->n_rows - 1) * (size_t)table->n_columns + (size_t)column];
}

void cs_table_number(cs_table *table, int column, double value) {
  cs_cell *cell = newest(table, column);
  if (cell) cell->number = value;
}

void cs_table_text(cs_table *table, int column, const char *format, ...) {
  cs_cell *cell = newest(table, column);
  if (!cell) return;
  va_list args;
  va_start(args, format);
  free(cell->text);
  cell->text = formatted(table, format, args);
  va_end(args);
}

void cs_table_note(cs_table *table, const char *format, ...) {
  if (!grow(table, &table->notes, &table->notes_capacity, table->n_notes + 1,
            sizeof *table->notes)) {
    return;
  }
  va_list args;
  va_start(args, format);
  char *note = formatted(table, format, args);
  va_end(args);
  if (note) table->notes[table->n_notes++] = note;
}
