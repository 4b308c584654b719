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

/* What the members behind the signature begin with, by kind. */
#define RECORD_START ",\"candidate\":{\"id\":\""
#define KERNELS_START ",\"kernels\":{\"candidate\":\""
#define CORUN_START ",\"corun\":{\"members\":["
#define CORUN_VALUES "\"}],\"" /* ends the members */
#define COMPLETION_START ",\"complete\":{"
#define DEVICE_START ",\"device_info\":{"

/* Up to where a line's tail says what a later line overrides it by. */
static const char *end_of_key(const char *tail, const char *end) {
  const char *close = end;
  bool escapes;
  size_t start = 0;
  if (starts_with(tail, end, RECORD_START)) start = sizeof RECORD_START - 1;
  if (starts_with(tail, end, KERNELS_START)) start = sizeof KERNELS_START - 1;
  if (start > 0) return scan_string(tail + start, end, &close, &escapes) ? close : end;
  if (starts_with(tail, end, DEVICE_START)) return tail + sizeof DEVICE_START - 1;
  if (!starts_with(tail, end, CORUN_START)) return end;
  const char *values = memmem(tail, (size_t)(end - tail), CORUN_VALUES, sizeof CORUN_VALUES - 1);
  return values ? values : end;
}

static cs_status add_key(cs_profile *profile, uint64_t signature_hash, const char *tail,
                         const char *end) {
  const char *close = end_of_key(tail, end);
  CS_RETURN_IF_ERROR(
      cs_grow(&profile->keys, &profile->keys_capacity, profile->n_keys + 1, sizeof *profile->keys));
  profile->keys[profile->n_keys++] = cs_profile_hash(signature_hash, tail, (size_t)(close - tail));
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
  return add_key(profile, entry->hash, tail, end);
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
  bool usual = starts_with(tail, end, ",\"candidate\":{") ||
               starts_with(tail, end, KERNELS_START) || starts_with(tail, end, CORUN_START) ||
               starts_with(tail, end, COMPLETION_START) || starts_with(tail, end, DEVICE_START);
  if (!usual || end[-1] != '}' || end[-2] != '}') return CS_OK;
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
    case CS_LINE_COMPLETION:
    case CS_LINE_KERNELS:
    case CS_LINE_CORUN:
    case CS_LINE_DEVICE: {
      const char *signature = json_string_value(json_object_get(root, "op"));
      CS_TRY(st, cs_profile_entry_of(profile, signature, strlen(signature), true, &entry), done);
      CS_TRY(st, cs_profile_materialise(profile, entry), done);
      CS_TRY(st, cs_profile_apply(profile, entry, root, &damaged), done);
      cs_profile_sort(entry);
      break;
    }
  }
done:
  json_decref(root);
  return st;
}

cs_status cs_profile_index(cs_profile *profile, size_t length) {
  int number = 0;
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

cs_status cs_profile_load(cs_profile *profile) {
  size_t length = 0;
  cs_status st = cs_file_read(profile->path, CS_PROFILE_FILE_LIMIT, &profile->text, &length);
  if (cs_status_code(st) == CS_CODE_IO && access(profile->path, F_OK) != 0 && errno == ENOENT) {
    cs_status_free(st);
    return CS_OK;
  }
  CS_RETURN_IF_ERROR(st);
  return cs_profile_index(profile, length);
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
