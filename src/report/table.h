/* A table of named columns and its forms: aligned text, Markdown, CSV, JSON. Pure data. */
#ifndef CONVSCHED_REPORT_TABLE_H_
#define CONVSCHED_REPORT_TABLE_H_

#include <jansson.h>

#include "base/base.h"

/* Who a column is for. Data: CSV and JSON, nothing shortened or put together. */
typedef enum cs_column_use {
  CS_COLUMN_ALL,
  CS_COLUMN_PERSON, /* text and Markdown alone */
  CS_COLUMN_DATA
} cs_column_use;

#define CS_COLUMN_TEXT (-1)

typedef struct cs_table_column {
  const char *key;   /* in data: "cold_us" */
  const char *title; /* for a person: "time us" */
  int digits;        /* of numbers, behind the point, for a person; CS_COLUMN_TEXT: text */
  cs_column_use use;
  bool merged; /* for a person: blank in rows that continue the one above */
} cs_table_column;

typedef struct cs_cell {
  char *text;    /* NULL: not known, or a number */
  double number; /* NaN: not known, or text */
} cs_cell;

/* Zero-initialise, cs_table_init, fill, render, cs_table_free. A failed allocation is kept and
 * reported by rendering. */
typedef struct cs_table {
  char *title;
  const cs_table_column *columns; /* static */
  int n_columns;
  bool *hidden; /* per column */
  cs_cell *cells;
  bool *continues; /* per row */
  size_t n_rows, cells_capacity, rows_capacity;
  char **notes;
  size_t n_notes, notes_capacity;
  json_t *about, *summary; /* objects: what the table is of; totals */
  bool failed;
} cs_table;

void cs_table_init(cs_table *table, const cs_table_column *columns, int n_columns);
void cs_table_free(cs_table *table);
void cs_table_title(cs_table *table, const char *format, ...) CS_PRINTF(2, 3);
void cs_table_hide(cs_table *table, int column);
/* A row of unknown cells; `continues`: it tells more of what the row above began. */
void cs_table_row(cs_table *table, bool continues);
/* Cells of the newest row. NaN: not known. */
void cs_table_number(cs_table *table, int column, double value);
void cs_table_text(cs_table *table, int column, const char *format, ...) CS_PRINTF(3, 4);
/* A line below the table. */
void cs_table_note(cs_table *table, const char *format, ...) CS_PRINTF(2, 3);

/* Aligned for a terminal; unknown cells are "–". */
cs_status cs_table_to_text(const cs_table *table, char **out) CS_MUST_USE;
/* A GitHub-flavoured Markdown table, notes as paragraphs below it. */
cs_status cs_table_to_markdown(const cs_table *table, char **out) CS_MUST_USE;
/* RFC 4180: a header of keys, CRLF, quotes where needed; unknown cells are empty. No notes. */
cs_status cs_table_to_csv(const cs_table *table, char **out) CS_MUST_USE;
/* `convsched.report/1`: what `about` holds, columns, rows by key (unknown: null), summary, notes.
 */
cs_status cs_table_to_json(const cs_table *table, char **out) CS_MUST_USE;

#endif
