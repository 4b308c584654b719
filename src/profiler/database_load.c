/* Reading the database: index every line by its fixed prefix and signature, parse an operation's
 * lines when it is asked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"
#include "profiler/record_json.h"

/* Files below this many lines are not worth compacting. */
#define SMALL_FILE_LINES 64

/* ---- Reports ---- */

void cs_skipped_add(cs_skipped_lines *skipped, int number) {
  const int room = (int)(sizeof skipped->numbers / sizeof skipped->numbers[0]);
  if (skipped->n < room) skipped->numbers[skipped->n] = number;
  skipped->n++;
}

static void print_skipped(cs_strbuf *text, const cs_skipped_lines *skipped, const char *what) {
  const int room = (int)(sizeof skipped->numbers / sizeof skipped->numbers[0]);
  if (skipped->n == 0) return;
  cs_strbuf_printf(text, "%s%d %s (line%s", text->length ? ", " : "", skipped->n, what,
                   skipped->n == 1 ? "" : "s");
  for (int i = 0; i < skipped->n && i < room; i++) {
    cs_strbuf_printf(text, "%s %d", i ? "," : "", skipped->numbers[i]);
  }
  cs_strbuf_printf(text, "%s)", skipped->n > room ? ", …" : "");
}

void cs_profile_report_skipped(const cs_profile *profile, const cs_skipped_lines *damaged,
                               const cs_skipped_lines *foreign) {
  cs_strbuf text = {0};
  print_skipped(&text, damaged, "damaged");
  print_skipped(&text, foreign, "of another version or device");
  if (text.length > 0 && !text.failed) {
    cs_log(&profile->logger, damaged->n ? CS_LOG_WARNING : CS_LOG_INFO,
           "%s: skipped lines count as not measured: %s", profile->path, text.data);
  }
  cs_strbuf_free(&text);
}

/* ---- Classifying a line by parsing it ---- */

cs_line_kind cs_line_classify(const char *identity, const char *line, size_t length,
                              json_t **root) {
  *root = json_loadb(line, length, 0, NULL);
  const char *schema = json_string_value(json_object_get(*root, "schema"));
  const char *device = json_string_value(json_object_get(*root, "device"));
  const json_t *method = json_object_get(*root, "method");
  if (!schema || strncmp(schema, "convsched.profile/", 18) != 0) return CS_LINE_DAMAGED;
  if (strcmp(schema, "convsched.profile/1") != 0) return CS_LINE_FOREIGN;
  if (!device || !json_is_integer(method)) return CS_LINE_DAMAGED;
  if (json_integer_value(method) != CS_MEASURE_VERSION || strcmp(device, identity) != 0) {
    return CS_LINE_FOREIGN;
  }
  if (!json_is_string(json_object_get(*root, "op"))) return CS_LINE_DAMAGED;
  if (json_object_get(*root, "complete")) {
    cs_completion completion;
    return cs_completion_from_json(*root, &completion) == CS_PARSED ? CS_LINE_COMPLETION
                                                                    : CS_LINE_DAMAGED;
  }
  cs_record record;
  cs_parse_result parsed = cs_record_from_json(*root, &record);
  if (parsed == CS_PARSED) cs_record_clear(&record);
  return parsed == CS_PARSE_DAMAGED ? CS_LINE_DAMAGED : CS_LINE_RECORD;
}

/* ---- Putting a parsed line into its entry ---- */

static cs_status apply(cs_profile_entry *entry, const json_t *object, bool *damaged) {
  cs_status st = CS_OK;
  cs_record record = {0};
  cs_completion completion = {0};
  cs_parse_result result;
  if (json_object_get(object, "complete")) {
    result = cs_completion_from_json(object, &completion);
    if (result == CS_PARSED) st = cs_profile_put_completion(entry, &completion);
  } else {
    result = cs_record_from_json(object, &record);
    if (result == CS_PARSED) st = cs_profile_put_record(entry, &record);
    cs_record_clear(&record);
  }
  if (result == CS_PARSE_NO_MEMORY) st = cs_no_memory("a profile record", 0);
  *damaged = result == CS_PARSE_DAMAGED;
  return st;
}

static cs_status apply_line(cs_profile *profile, cs_profile_entry *entry,
                            const cs_pending_line *line, bool *damaged) {
  cs_record record;
  if (cs_record_scan(profile->text + line->tail, line->length, &record)) {
    cs_status st = cs_profile_put_record(entry, &record);
    cs_record_clear(&record);
    return st;
  }
  /* `,"candidate":{…},"measured":{…}}` with a brace for its comma is an object of its own. */
  profile->text[line->tail] = '{';
  json_t *object = json_loadb(profile->text + line->tail, line->length, 0, NULL);
  profile->text[line->tail] = ',';
  *damaged = object == NULL;
  if (!object) return CS_OK;
  cs_status st = apply(entry, object, damaged);
  json_decref(object);
  return st;
}

static cs_status apply_pending(cs_profile *profile, cs_profile_entry *entry,
                               cs_skipped_lines *damaged) {
  while (entry->first_pending >= 0) {
    const cs_pending_line *line = &profile->pending[entry->first_pending];
    bool bad = false;
    CS_RETURN_IF_ERROR(apply_line(profile, entry, line, &bad));
    if (bad) cs_skipped_add(damaged, line->number);
    entry->first_pending = line->next;
  }
  entry->last_pending = -1;
  return CS_OK;
}

cs_status cs_profile_materialise(cs_profile *profile, cs_profile_entry *entry) {
  cs_skipped_lines damaged = {0}, none = {0};
  if (entry->first_pending < 0) return CS_OK;
  cs_status st = apply_pending(profile, entry, &damaged);
  cs_profile_sort(entry);
  cs_profile_report_skipped(profile, &damaged, &none);
  return st;
}

/* ---- Indexing ---- */

/* The signature of a line that begins with the prefix, still in JSON's escapes: from behind the
 * opening quote to the closing one. */
static bool scan_string(const char *from, const char *end, const char **close, bool *escapes) {
  *escapes = false;
  for (const char *p = from; p < end; p++) {
    if (*p == '"') {
      *close = p;
      return true;
    }
    if (*p == '\\') {
      *escapes = true;
      p++;
    }
  }
  return false;
}

static bool starts_with(const char *text, const char *end, const char *with) {
  size_t length = strlen(with);
  return (size_t)(end - text) >= length && memcmp(text, with, length) == 0;
}

static cs_status add_key(cs_profile *profile, uint64_t signature_hash, const char *tail,
                         const char *end) {
  static const char record_start[] = ",\"candidate\":{\"id\":\"";
  const char *close = end;
  bool escapes;
  if (starts_with(tail, end, record_start)) {
    tail += sizeof record_start - 1;
    if (!scan_string(tail, end, &close, &escapes)) close = end;
  }
  CS_RETURN_IF_ERROR(
      cs_grow(&profile->keys, &profile->keys_capacity, profile->n_keys + 1, sizeof *profile->keys));
  profile->keys[profile->n_keys++] = cs_hash_bytes(signature_hash, tail, (size_t)(close - tail));
  return CS_OK;
}

static cs_status add_pending(cs_profile *profile, const char *signature, size_t signature_length,
                             const char *tail, const char *end, int number) {
  cs_profile_entry *entry = NULL;
  CS_RETURN_IF_ERROR(cs_profile_entry_of(profile, signature, signature_length, true, &entry));
  CS_RETURN_IF_ERROR(cs_grow(&profile->pending, &profile->pending_capacity, profile->n_pending + 1,
                             sizeof *profile->pending));
  int index = (int)profile->n_pending++;
  profile->pending[index] = (cs_pending_line){.tail = (size_t)(tail - profile->text),
                                              .length = (size_t)(end - tail),
                                              .number = number,
                                              .next = -1};
  if (entry->last_pending >= 0) {
    profile->pending[entry->last_pending].next = index;
  } else {
    entry->first_pending = index;
  }
  entry->last_pending = index;
  return add_key(profile, cs_hash_bytes(CS_HASH_SEED, signature, signature_length), tail, end);
}

/* A line in the form that this program writes. *taken false: it is not. */
static cs_status index_usual_line(cs_profile *profile, const char *line, const char *end,
                                  int number, bool *taken) {
  const char *close = NULL;
  bool escapes = false;
  *taken = false;
  if (!starts_with(line, end, profile->prefix)) return CS_OK;
  const char *signature = line + profile->prefix_length;
  if (signature >= end || *signature != '"' || !scan_string(signature + 1, end, &close, &escapes)) {
    return CS_OK;
  }
  const char *tail = close + 1;
  if ((!starts_with(tail, end, ",\"candidate\":{") && !starts_with(tail, end, ",\"complete\":{")) ||
      end[-1] != '}' || end[-2] != '}') {
    return CS_OK;
  }
  *taken = true;
  if (!escapes) {
    return add_pending(profile, signature + 1, (size_t)(close - signature - 1), tail, end, number);
  }
  json_t *string = json_loadb(signature, (size_t)(tail - signature), JSON_DECODE_ANY, NULL);
  if (!string) {
    *taken = false;
    return CS_OK;
  }
  cs_status st = add_pending(profile, json_string_value(string), json_string_length(string), tail,
                             end, number);
  json_decref(string);
  return st;
}

/* Any other line: of another version, damaged, or ours with its members in another order. */
static cs_status index_other_line(cs_profile *profile, const char *line, const char *end,
                                  int number) {
  cs_status st = CS_OK;
  json_t *root = NULL;
  bool damaged = false;
  cs_profile_entry *entry = NULL;
  switch (cs_line_classify(profile->identity, line, (size_t)(end - line), &root)) {
    case CS_LINE_FOREIGN:
      cs_skipped_add(&profile->foreign, number);
      break;
    case CS_LINE_DAMAGED:
      cs_skipped_add(&profile->damaged, number);
      break;
    case CS_LINE_RECORD:
    case CS_LINE_COMPLETION: {
      const char *signature = json_string_value(json_object_get(root, "op"));
      CS_TRY(st, cs_profile_entry_of(profile, signature, strlen(signature), true, &entry), done);
      CS_TRY(st, cs_profile_materialise(profile, entry), done);
      CS_TRY(st, apply(entry, root, &damaged), done);
      cs_profile_sort(entry);
      break;
    }
  }
done:
  json_decref(root);
  return st;
}

cs_status cs_profile_load(cs_profile *profile) {
  size_t length = 0;
  int number = 0;
  cs_status st = cs_file_read(profile->path, CS_PROFILE_FILE_LIMIT, &profile->text, &length);
  if (cs_status_code(st) == CS_CODE_IO && access(profile->path, F_OK) != 0 && errno == ENOENT) {
    cs_status_free(st);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(st);
  const char *end_of_text = profile->text + length;
  for (const char *line = profile->text; line < end_of_text;) {
    const char *end = memchr(line, '\n', (size_t)(end_of_text - line));
    bool torn = end == NULL, taken = false;
    if (torn) end = end_of_text;
    number++;
    if (torn) {
      cs_skipped_add(&profile->damaged, number);
    } else if (end - line > 0) {
      CS_RETURN_IF_ERROR(index_usual_line(profile, line, end, number, &taken));
      if (!taken) CS_RETURN_IF_ERROR(index_other_line(profile, line, end, number));
    }
    line = end + 1;
  }
  return CS_OK;
}

static int compare_keys(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

bool cs_profile_wants_compaction(const cs_profile *profile) {
  if (profile->n_keys < SMALL_FILE_LINES) return false;
  size_t distinct = 1;
  qsort(profile->keys, profile->n_keys, sizeof *profile->keys, compare_keys);
  for (size_t i = 1; i < profile->n_keys; i++) {
    distinct += profile->keys[i] != profile->keys[i - 1];
  }
  return profile->n_keys > 2 * distinct;
}
