/* The page of an experiment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/experiment.h"

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* ---- Summary ---- */

static const cs_trial *largest_gain(const cs_experiment_records *records) {
  const cs_trial *best = NULL;
  for (size_t t = 0; t < records->n; t++) {
    const cs_trial *trial = &records->trials[t];
    if (trial->policy && (!best || trial->gain > best->gain)) best = trial;
  }
  return best;
}

static cs_status summary(const cs_experiment_records *records, cs_html *page) {
  char value[64], note[512];
  const cs_trial *best = largest_gain(records);
  bool predicted = json_is_true(json_object_get(records->head, "predicted"));
  cs_html_section(page, "summary", "Summary");
  if (predicted) {
    cs_html_paragraph(page,
                      "Times are predicted by the SM model from a recorded profile; nothing was "
                      "run.");
  }
  cs_html_cards_begin(page);
  snprintf(value, sizeof value, "%d of %lld", records->n_cells,
           (long long)json_integer_value(json_object_get(records->head, "cells")));
  cs_html_card(page, "cells recorded", value, predicted ? "predicted" : "measured");
  snprintf(value, sizeof value, "%d", records->n_failed);
  cs_html_card(page, "cells failed", value, "");
  if (records->n_wrong > 0) {
    snprintf(value, sizeof value, "%d", records->n_wrong);
    cs_html_card(page, "cells with wrong results", value, "");
  }
  if (best) {
    cs_strbuf text = {0};
    char *of = NULL;
    cs_experiment_cell_text(records, best->cell, NULL, NULL, &text);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &of));
    snprintf(value, sizeof value, "%.3f×", best->gain);
    snprintf(note, sizeof note, "%s: %s", best->policy, of);
    free(of);
    cs_html_card(page, "largest gain over sequential", value, note);
  }
  cs_html_cards_end(page);
  return CS_OK;
}

/* ---- What failed ---- */

static cs_status failures(const cs_experiment_records *records, cs_html *page) {
  if (records->n_failed == 0) return CS_OK;
  cs_html_section(page, "failures", "What failed");
  for (size_t t = 0; t < records->n; t++) {
    const cs_trial *trial = &records->trials[t];
    cs_strbuf text = {0};
    char *of = NULL;
    if (trial->policy) continue;
    cs_experiment_cell_text(records, trial->cell, NULL, NULL, &text);
    CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &of));
    cs_html_missing(page, NULL, "%s: %s", of, trial->reason ? trial->reason : "");
    free(of);
  }
  return CS_OK;
}

/* ---- Tables of the profile, from convsched.report/1 ---- */

static void fill_rows(const json_t *told, cs_table *table) {
  size_t r;
  json_t *row;
  json_array_foreach(json_object_get(told, "rows"), r, row) {
    cs_table_row(table, false);
    for (int c = 0; c < table->n_columns; c++) {
      const json_t *value = json_object_get(row, table->columns[c].key);
      if (json_is_string(value)) cs_table_text(table, c, "%s", json_string_value(value));
      if (json_is_number(value)) cs_table_text(table, c, "%.6g", json_number_value(value));
    }
  }
}

static cs_status write_table(const json_t *told, cs_html *page) {
  size_t i;
  json_t *one, *list = json_object_get(told, "columns");
  cs_table table = {0};
  cs_table_column *columns = cs_calloc(json_array_size(list), sizeof *columns);
  if (!columns) return cs_no_memory("columns", json_array_size(list));
  json_array_foreach(list, i, one) {
    columns[i] = (cs_table_column){text_of(one, "key"), text_of(one, "title"), CS_COLUMN_TEXT,
                                   CS_COLUMN_ALL, false};
    if (!columns[i].title[0]) columns[i].title = columns[i].key;
  }
  cs_table_init(&table, columns, (int)json_array_size(list));
  fill_rows(told, &table);
  json_array_foreach(json_object_get(told, "notes"), i, one) {
    if (json_is_string(one)) cs_table_note(&table, "%s", json_string_value(one));
  }
  cs_html_table(page, &table, text_of(told, "table"));
  cs_table_free(&table);
  free(columns);
  return CS_OK;
}

static cs_status tables(const cs_experiment_records *records, cs_html *page) {
  size_t c, i;
  json_t *one, *told;
  if (json_array_size(records->cases) == 0) return CS_OK;
  cs_html_section(page, "profile", "What was profiled");
  json_array_foreach(records->cases, c, one) {
    const char *reason = text_of(one, "reason");
    cs_html_heading(page, "%s", text_of(one, "key"));
    if (reason[0]) cs_html_missing(page, NULL, "%s", reason);
    json_array_foreach(json_object_get(one, "tables"), i, told) {
      const char *failed = text_of(told, "failed");
      if (failed[0]) {
        cs_html_missing(page, NULL, "%s: %s", text_of(told, "table"), failed);
        continue;
      }
      cs_html_details_begin(page, text_of(told, "table"));
      CS_RETURN_IF_ERROR(write_table(told, page));
      cs_html_details_end(page);
    }
  }
  return CS_OK;
}

/* ---- Where it was measured ---- */

static const cs_table_column environment_columns[] = {
    {"what", "what", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    {"value", "value", CS_COLUMN_TEXT, CS_COLUMN_ALL, false}};

static void environment_rows(const json_t *object, const char *of, cs_table *table) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (json_is_object(value) || strcmp(key, "schema") == 0) {
      free(text);
      continue;
    }
    cs_table_row(table, false);
    cs_table_text(table, 0, "%s%s", of, key);
    cs_table_text(table, 1, "%s", text ? text : json_string_value(value));
    free(text);
  }
}

static cs_status environment(const cs_experiment_records *records, cs_html *page) {
  cs_table table = {0};
  cs_html_section(page, "environment", "Environment");
  cs_table_init(&table, environment_columns, 2);
  environment_rows(records->head, "", &table);
  environment_rows(json_object_get(records->head, "device"), "device ", &table);
  cs_html_table(page, &table, "Where, by what and of what");
  cs_table_free(&table);
  char *spec = json_dumps(json_object_get(records->head, "spec"), JSON_INDENT(2));
  cs_html_details_begin(page, "specification");
  cs_markup_raw(&page->body, "<pre>");
  cs_markup_text(&page->body, spec ? spec : "");
  cs_markup_raw(&page->body, "</pre>\n");
  cs_html_details_end(page);
  free(spec);
  return CS_OK;
}

/* ---- The page ---- */

static cs_status write_page(const cs_experiment_records *records, cs_html *page) {
  const json_t *head = records->head;
  const char *title = text_of(head, "title");
  char name[512], subtitle[1024];
  cs_table table;
  snprintf(name, sizeof name, "%s", title[0] ? title : text_of(head, "name"));
  snprintf(subtitle, sizeof subtitle, "Experiment %s, %s, commit %s, begun %s",
           text_of(head, "name"), text_of(json_object_get(head, "device"), "name"),
           text_of(head, "commit"), text_of(head, "started"));
  cs_html_open(page, name, subtitle);
  CS_RETURN_IF_ERROR(summary(records, page));
  CS_RETURN_IF_ERROR(cs_experiment_plots(records, page));
  cs_html_section(page, "cells", "All cells");
  cs_experiment_table_of(records, &table);
  cs_html_table(page, &table, "Latency of every policy in every cell, and its gain");
  cs_table_free(&table);
  CS_RETURN_IF_ERROR(failures(records, page));
  CS_RETURN_IF_ERROR(tables(records, page));
  return environment(records, page);
}

cs_status cs_experiment_page_of(const char *path, char **out) {
  cs_experiment_records records;
  cs_html page = {0};
  *out = NULL;
  cs_status st = cs_experiment_records_read(path, &records);
  if (st == CS_OK) st = write_page(&records, &page);
  if (st == CS_OK) st = cs_html_close(&page, out);
  cs_html_free(&page);
  cs_experiment_records_free(&records);
  return st;
}
