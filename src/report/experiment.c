/* The table of an experiment. */
#include "report/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan.h"

#define MOST_NOTED 8 /* failed cells, below the table */

enum {
  MODEL,
  DTYPE,
  BATCH,
  FAMILY,
  FAMILY_SHOWN,
  WORKSPACE,
  WORKSPACE_SHOWN,
  STREAMS,
  STREAMS_SHOWN,
  PARTITION,
  PARTITION_SHOWN,
  POLICY,
  OUTCOME,
  SAMPLES,
  US,
  US_SHOWN,
  US_PREDICTED,
  LOW,
  HIGH,
  INTERVAL,
  GAIN,
  GAIN_LOW,
  GAIN_HIGH,
  GAIN_INTERVAL,
  USED_STREAMS,
  USED_PARTITION,
  STREAM_PARTS,
  SPLIT_SHOWN,
  WORKSPACE_BYTES,
  ARENA_BYTES,
  MEMORY,
  REASON,
  N_COLUMNS
};

/* What does not differ in an experiment is not shown to a person. */
static const cs_table_column columns[N_COLUMNS] = {
    [MODEL] = {"model", "model", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [DTYPE] = {"dtype", "dtype", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [BATCH] = {"batch", "batch", 0, CS_COLUMN_ALL, false},
    [FAMILY] = {"family", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [FAMILY_SHOWN] = {"", "family", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [WORKSPACE] = {"workspace_limit", "", 0, CS_COLUMN_DATA, false},
    [WORKSPACE_SHOWN] = {"", "workspace limit", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [STREAMS] = {"streams", "", 0, CS_COLUMN_DATA, false},
    [STREAMS_SHOWN] = {"", "most streams", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [PARTITION] = {"partition", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [PARTITION_SHOWN] = {"", "partition", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [POLICY] = {"policy", "policy", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [OUTCOME] = {"outcome", "outcome", CS_COLUMN_TEXT, CS_COLUMN_ALL, false},
    [SAMPLES] = {"samples", "", 0, CS_COLUMN_DATA, false},
    [US] = {"us", "", 1, CS_COLUMN_DATA, false},
    [US_SHOWN] = {"", "median us", 1, CS_COLUMN_PERSON, false},
    [US_PREDICTED] = {"", "predicted us", 1, CS_COLUMN_PERSON, false},
    [LOW] = {"us_low", "", 1, CS_COLUMN_DATA, false},
    [HIGH] = {"us_high", "", 1, CS_COLUMN_DATA, false},
    [INTERVAL] = {"", "95% interval", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [GAIN] = {"gain", "vs sequential", 3, CS_COLUMN_ALL, false},
    [GAIN_LOW] = {"gain_low", "", 3, CS_COLUMN_DATA, false},
    [GAIN_HIGH] = {"gain_high", "", 3, CS_COLUMN_DATA, false},
    [GAIN_INTERVAL] = {"", "its interval", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [USED_STREAMS] = {"used_streams", "streams", 0, CS_COLUMN_ALL, false},
    [USED_PARTITION] = {"used_partition", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [STREAM_PARTS] = {"stream_parts", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
    [SPLIT_SHOWN] = {"", "split", CS_COLUMN_TEXT, CS_COLUMN_PERSON, false},
    [WORKSPACE_BYTES] = {"workspace_bytes", "", 0, CS_COLUMN_DATA, false},
    [ARENA_BYTES] = {"arena_bytes", "", 0, CS_COLUMN_DATA, false},
    [MEMORY] = {"", "arena MiB", 1, CS_COLUMN_PERSON, false},
    [REASON] = {"reason", "", CS_COLUMN_TEXT, CS_COLUMN_DATA, false},
};

static double number_of(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* ---- Rows ---- */

static void put_coordinates(const json_t *cell, cs_table *table) {
  static const struct {
    int column;
    const char *key;
  } shown[] = {{FAMILY_SHOWN, "family"},
               {WORKSPACE_SHOWN, "workspace_limit"},
               {STREAMS_SHOWN, "streams"},
               {PARTITION_SHOWN, "partition"}};
  cs_table_text(table, MODEL, "%s", text_of(cell, "model"));
  cs_table_text(table, DTYPE, "%s", text_of(cell, "dtype"));
  cs_table_number(table, BATCH, number_of(cell, "batch"));
  cs_table_text(table, FAMILY, "%s", text_of(cell, "family"));
  cs_table_number(table, WORKSPACE, number_of(cell, "workspace_limit"));
  cs_table_number(table, STREAMS, number_of(cell, "streams"));
  const char *partition = text_of(cell, "partition");
  if (partition[0]) cs_table_text(table, PARTITION, "%s", partition);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    char text[256];
    cs_experiment_value_text(cell, shown[i].key, text);
    cs_table_text(table, shown[i].column, "%s", text);
  }
}

/* "0, 2": the streams on a part, -1: on the whole device. */
static void stream_list(const json_t *streams, json_int_t part, cs_strbuf *out) {
  const char *before = "";
  size_t i;
  json_t *stream;
  json_array_foreach(streams, i, stream) {
    json_int_t on = json_is_integer(stream) ? json_integer_value(stream) : -1;
    if (on != part) continue;
    cs_strbuf_printf(out, "%s%zu", before, i);
    before = ", ";
  }
}

/* "32 SMs: 0, 2; 100 SMs: 1; all: 3", streams behind the parts that they are on. */
static void split_text(const json_t *split, cs_strbuf *out) {
  const json_t *parts = json_object_get(split, "parts"),
               *streams = json_object_get(split, "streams");
  cs_strbuf whole = {0};
  for (size_t p = 0; p < json_array_size(parts) && p < CS_MAX_PARTS; p++) {
    cs_strbuf_printf(out, "%s%lld SMs: ", p ? "; " : "",
                     (long long)json_integer_value(json_array_get(parts, p)));
    stream_list(streams, (json_int_t)p, out);
  }
  stream_list(streams, -1, &whole);
  if (whole.length > 0) cs_strbuf_printf(out, "; all: %s", whole.data);
  out->failed = out->failed || whole.failed;
  cs_strbuf_free(&whole);
}

/* "32,100", "0,1,-": integers, with "-" for anything else. */
static void list_text(const json_t *list, cs_strbuf *out) {
  size_t i;
  json_t *value;
  json_array_foreach(list, i, value) {
    if (i > 0) cs_strbuf_printf(out, ",");
    if (json_is_integer(value)) {
      cs_strbuf_printf(out, "%lld", (long long)json_integer_value(value));
    } else {
      cs_strbuf_printf(out, "-");
    }
  }
}

/* A buffer, which is released, as a cell's text. */
static void put_buffer(cs_table *table, int column, cs_strbuf *text) {
  cs_table_text(table, column, "%s", text->data ? text->data : "");
  table->failed = table->failed || text->failed;
  cs_strbuf_free(text);
}

/* Nothing where the record, an older one, does not tell. */
static void put_split(const json_t *told, cs_table *table) {
  const json_t *split = json_object_get(told, "split");
  cs_strbuf parts = {0}, streams = {0}, shown = {0};
  if (!split) return;
  if (!json_is_object(split)) {
    cs_table_text(table, USED_PARTITION, "none");
    cs_table_text(table, SPLIT_SHOWN, "none");
    return;
  }
  list_text(json_object_get(split, "parts"), &parts);
  list_text(json_object_get(split, "streams"), &streams);
  split_text(split, &shown);
  put_buffer(table, USED_PARTITION, &parts);
  put_buffer(table, STREAM_PARTS, &streams);
  put_buffer(table, SPLIT_SHOWN, &shown);
}

static void add_row(const cs_trial *trial, cs_table *table) {
  cs_table_row(table, false);
  put_coordinates(trial->cell, table);
  cs_table_text(table, OUTCOME, "%s", trial->outcome);
  if (trial->reason) cs_table_text(table, REASON, "%s", trial->reason);
  if (!trial->policy) return;
  double arena = number_of(trial->told, "arena_bytes");
  cs_table_text(table, POLICY, "%s", trial->policy);
  cs_table_number(table, SAMPLES, trial->samples);
  for (int column = US; column <= US_PREDICTED; column++) {
    cs_table_number(table, column, trial->us);
  }
  cs_table_number(table, LOW, trial->low);
  cs_table_number(table, HIGH, trial->high);
  cs_table_number(table, GAIN, trial->gain);
  cs_table_number(table, GAIN_LOW, trial->gain_low);
  cs_table_number(table, GAIN_HIGH, trial->gain_high);
  if (trial->samples > 0) {
    cs_table_text(table, INTERVAL, "%.1f to %.1f", trial->low, trial->high);
    cs_table_text(table, GAIN_INTERVAL, "%.3f to %.3f", trial->gain_low, trial->gain_high);
  }
  cs_table_number(table, USED_STREAMS, number_of(trial->told, "streams"));
  put_split(trial->told, table);
  cs_table_number(table, WORKSPACE_BYTES, number_of(trial->told, "workspace_bytes"));
  cs_table_number(table, ARENA_BYTES, arena);
  cs_table_number(table, MEMORY, arena / 1048576);
}

static void hide_uniform(const cs_experiment_records *records, const char *dimension, int column,
                         cs_table *table) {
  if (cs_experiment_count(records, dimension) < 2) cs_table_hide(table, column);
}

/* Some plan is split, or parts were asked for. */
static bool has_splits(const cs_experiment_records *records) {
  for (size_t t = 0; t < records->n; t++) {
    const cs_trial *trial = &records->trials[t];
    const char *partition = text_of(trial->cell, "partition");
    if (json_is_object(json_object_get(trial->told, "split"))) return true;
    if (partition[0] && strcmp(partition, "none") != 0) return true;
  }
  return false;
}

/* ---- Around the rows ---- */

/* The first of them; data has all. */
static void note_failures(const cs_experiment_records *records, cs_table *table) {
  int told = 0;
  for (size_t t = 0; t < records->n && told <= MOST_NOTED; t++) {
    const cs_trial *trial = &records->trials[t];
    cs_strbuf text = {0};
    if (trial->policy) continue;
    if (told++ == MOST_NOTED) {
      cs_table_note(table, "Failed, too: %d more; CSV has all reasons.",
                    records->n_failed - MOST_NOTED);
      continue;
    }
    cs_experiment_cell_text(records, trial->cell, NULL, NULL, &text);
    cs_table_note(table, "Failed: %s: %s", text.data ? text.data : "",
                  trial->reason ? trial->reason : "");
    table->failed = table->failed || text.failed;
    cs_strbuf_free(&text);
  }
}

static void describe_data(const cs_experiment_records *records, cs_table *table) {
  const json_t *head = records->head, *device = json_object_get(head, "device");
  json_t *about = json_pack("{s:s, s:{s:s, s:s}}", "table", "experiment", "device", "name",
                            text_of(device, "name"), "identity", text_of(device, "identity"));
  json_t *summary = json_pack(
      "{s:s, s:O?, s:s, s:s, s:b, s:I, s:i, s:i, s:i}", "name", text_of(head, "name"), "title",
      json_object_get(head, "title"), "hash", text_of(head, "hash"), "commit",
      text_of(head, "commit"), "predicted", json_is_true(json_object_get(head, "predicted")),
      "cells", json_integer_value(json_object_get(head, "cells")), "recorded", records->n_cells,
      "failed", records->n_failed, "wrong", records->n_wrong);
  if (!about || !summary || json_object_update(table->about, about) != 0 ||
      json_object_update(table->summary, summary) != 0) {
    table->failed = true;
  }
  json_decref(about);
  json_decref(summary);
}

static void describe(const cs_experiment_records *records, cs_table *table) {
  const json_t *head = records->head, *device = json_object_get(head, "device");
  const char *title = text_of(head, "title");
  long long cells = (long long)json_integer_value(json_object_get(head, "cells"));
  cs_table_title(table, "experiment %s%s%s", text_of(head, "name"), title[0] ? ": " : "", title);
  cs_table_note(table, "%s; commit %s; specification %s.", text_of(device, "name"),
                text_of(head, "commit"), text_of(head, "hash"));
  if (json_is_true(json_object_get(head, "predicted"))) {
    cs_table_note(table, "Times are predicted by the SM model; nothing was run.");
  }
  cs_table_note(table, "Recorded: %d of %lld cells, %d of them failed, %d with wrong results.",
                records->n_cells, cells, records->n_failed, records->n_wrong);
  note_failures(records, table);
  if (records->torn) cs_table_note(table, "The last line was cut off and is left out.");
  describe_data(records, table);
}

void cs_experiment_table_of(const cs_experiment_records *records, cs_table *out) {
  cs_table_init(out, columns, N_COLUMNS);
  for (size_t t = 0; t < records->n; t++) add_row(&records->trials[t], out);
  hide_uniform(records, "family", FAMILY_SHOWN, out);
  hide_uniform(records, "workspace_limit", WORKSPACE_SHOWN, out);
  hide_uniform(records, "streams", STREAMS_SHOWN, out);
  hide_uniform(records, "partition", PARTITION_SHOWN, out);
  if (!has_splits(records)) cs_table_hide(out, SPLIT_SHOWN);
  bool predicted = json_is_true(json_object_get(records->head, "predicted"));
  cs_table_hide(out, predicted ? US_SHOWN : US_PREDICTED);
  if (predicted) { /* they are of samples */
    cs_table_hide(out, INTERVAL);
    cs_table_hide(out, GAIN_INTERVAL);
  }
  describe(records, out);
}

cs_status cs_report_experiment(const char *path, cs_table *out) {
  cs_experiment_records records;
  *out = (cs_table){0};
  cs_status st = cs_experiment_records_read(path, &records);
  if (st == CS_OK) cs_experiment_table_of(&records, out);
  cs_experiment_records_free(&records);
  return st;
}
