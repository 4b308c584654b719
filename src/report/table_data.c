/* Tables for programs: CSV and JSON. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/table.h"

#define MOST_WHOLE 9007199254740992.0 /* 2^53 */

static bool is_data(const cs_table *table, int column) {
  return !table->hidden[column] && table->columns[column].use != CS_COLUMN_PERSON;
}

static const cs_cell *cell_of(const cs_table *table, size_t row, int column) {
  return &table->cells[row * (size_t)table->n_columns + (size_t)column];
}

/* ---- CSV ---- */

static void csv_field(cs_strbuf *out, const char *text) {
  if (!text[strcspn(text, ",\"\r\n")]) {
    cs_strbuf_append(out, text, strlen(text));
    return;
  }
  cs_strbuf_append(out, "\"", 1);
  for (; *text; text++) {
    if (*text == '"') cs_strbuf_append(out, "\"", 1);
    cs_strbuf_append(out, text, 1);
  }
  cs_strbuf_append(out, "\"", 1);
}

static void csv_cell(cs_strbuf *out, const cs_cell *cell) {
  if (cell->text) {
    csv_field(out, cell->text);
  } else if (!isnan(cell->number)) {
    cs_strbuf_printf(out, "%.10g", cell->number);
  }
}

cs_status cs_table_to_csv(const cs_table *table, char **out) {
  if (table->failed) return cs_no_memory("a table", 0);
  cs_strbuf text = {0};
  const char *comma = "";
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_data(table, c)) continue;
    cs_strbuf_printf(&text, "%s", comma);
    csv_field(&text, table->columns[c].key);
    comma = ",";
  }
  cs_strbuf_printf(&text, "\r\n");
  for (size_t r = 0; r < table->n_rows; r++) {
    comma = "";
    for (int c = 0; c < table->n_columns; c++) {
      if (!is_data(table, c)) continue;
      cs_strbuf_printf(&text, "%s", comma);
      csv_cell(&text, cell_of(table, r, c));
      comma = ",";
    }
    cs_strbuf_printf(&text, "\r\n");
  }
  return cs_strbuf_take(&text, out);
}

/* ---- JSON ---- */

static json_t *json_cell(const cs_table_column *column, const cs_cell *cell) {
  if (cell->text) return cs_json_text(cell->text);
  bool whole = column->digits == 0 && fabs(cell->number) < MOST_WHOLE;
  return whole ? json_integer((json_int_t)llround(cell->number)) : cs_json_number(cell->number);
}

/* The functions of jansson that take a new reference refuse NULL: failures add up in `failed`. */
static json_t *json_columns(const cs_table *table, int *failed) {
  json_t *columns = json_array();
  for (int c = 0; c < table->n_columns; c++) {
    if (!is_data(table, c)) continue;
    *failed |= json_array_append_new(columns, json_pack("{s:s, s:s}", "key", table->columns[c].key,
                                                        "title", table->columns[c].title));
  }
  return columns;
}

static json_t *json_rows(const cs_table *table, int *failed) {
  json_t *rows = json_array();
  for (size_t r = 0; r < table->n_rows; r++) {
    json_t *row = json_object();
    for (int c = 0; c < table->n_columns; c++) {
      if (!is_data(table, c)) continue;
      *failed |= json_object_set_new(row, table->columns[c].key,
                                     json_cell(&table->columns[c], cell_of(table, r, c)));
    }
    *failed |= json_array_append_new(rows, row);
  }
  return rows;
}

cs_status cs_table_to_json(const cs_table *table, char **out) {
  if (table->failed) return cs_no_memory("a table", 0);
  int failed = 0;
  json_t *json = json_pack("{s:s}", "schema", "convsched.report/1");
  json_t *notes = json_array();
  for (size_t i = 0; i < table->n_notes; i++) {
    failed |= json_array_append_new(notes, cs_json_text(table->notes[i]));
  }
  failed |= json_object_update(json, table->about);
  failed |= json_object_set_new(json, "columns", json_columns(table, &failed));
  failed |= json_object_set_new(json, "rows", json_rows(table, &failed));
  failed |= json_object_set(json, "summary", table->summary);
  failed |= json_object_set_new(json, "notes", notes);
  if (failed) {
    json_decref(json);
    return cs_error(CS_CODE_BAD_INPUT,
                    "report: no memory, or a name that is not UTF-8 and cannot be written as JSON");
  }
  return cs_json_take_text(json, out);
}
