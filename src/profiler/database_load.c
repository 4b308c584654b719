/* Reading the database: index every line by its fixed prefix and signature. */
#include <stdlib.h>
#include <string.h>

#include "profiler/database.h"

/* Files below this many lines are not worth compacting. */
#define SMALL_FILE_LINES 64

/* Lines of one operation often follow one another: the entry of the last one is tried first. */
typedef struct indexer {
  cs_profile *profile;
  const char *signature; /* of the last usual line, in the text; NULL: none */
  size_t length;
  cs_profile_entry *entry;
} indexer;

/* A line of the form that this program writes. */
typedef struct usual_line {
  const char *signature; /* behind its opening quote */
  size_t length;
  bool escapes;     /* the signature is still JSON's: in escapes, or not plain ASCII */
  const char *tail; /* the comma behind the signature */
  const char *end;
  int number;
} usual_line;

/* ---- Scanning ---- */

/* The closing quote of a JSON string that begins before `from`; NULL: none. */
static const char *closing_quote(const char *from, const char *end, bool *escapes) {
  const char *quote = memchr(from, '"', (size_t)(end - from));
  *escapes = quote && memchr(from, '\\', (size_t)(quote - from));
  if (!*escapes) return quote;
  for (const char *p = from; p < end; p++) {
    if (*p == '"') return p;
    if (*p == '\\') p++;
  }
  return NULL;
}

/* Nothing that JSON would refuse, above all no NUL: then it is its bytes. */
static bool is_plain(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (text[i] < 0x20 || text[i] > 0x7e) return false;
  }
  return true;
}

static bool starts_with(const char *text, const char *end, const char *with, size_t length) {
  return (size_t)(end - text) >= length && memcmp(text, with, length) == 0;
}
#define STARTS_WITH(text, end, literal) starts_with(text, end, literal, sizeof(literal) - 1)

static bool is_usual_member(const char *tail, const char *end) {
  return STARTS_WITH(tail, end, ",\"candidate\":{") || STARTS_WITH(tail, end, ",\"kernels\":{") ||
         STARTS_WITH(tail, end, ",\"complete\":{") || STARTS_WITH(tail, end, ",\"corun\":{") ||
         STARTS_WITH(tail, end, ",\"device_info\":{");
}

static bool scan_usual_line(const cs_profile *profile, const char *line, usual_line *out) {
  const char *end = out->end;
  if (!starts_with(line, end, profile->prefix, profile->prefix_length)) return false;
  const char *quote = line + profile->prefix_length;
  if (quote >= end || *quote != '"') return false;
  const char *close = closing_quote(quote + 1, end, &out->escapes);
  if (!close) return false;
  out->signature = quote + 1;
  out->length = (size_t)(close - out->signature);
  out->escapes = out->escapes || !is_plain(out->signature, out->length);
  out->tail = close + 1;
  return is_usual_member(out->tail, end) && end[-1] == '}' && end[-2] == '}';
}

/* ---- Keys: which lines a later one overrides. Only their number matters, so a hash will do ----
 */

static void key_text(const char *tail, const char *end, const char **from, const char **to) {
  static const char record[] = ",\"candidate\":{\"id\":\"", members_end[] = "\"}],\"";
  static const char kernels[] = ",\"kernels\":{\"candidate\":\"";
  bool escapes;
  *from = tail;
  *to = NULL;
  if (STARTS_WITH(tail, end, record)) {
    *from = tail + sizeof record - 1;
    *to = closing_quote(*from, end, &escapes);
  } else if (STARTS_WITH(tail, end, kernels)) {
    *to = closing_quote(tail + sizeof kernels - 1, end, &escapes);
  } else if (STARTS_WITH(tail, end, ",\"corun\":{")) {
    *to = memmem(tail, (size_t)(end - tail), members_end, sizeof members_end - 1);
  } else if (STARTS_WITH(tail, end, ",\"device_info\":{")) {
    *to = tail;
  }
  if (!*to) *to = end;
}

static cs_status add_key(cs_profile *profile, uint64_t seed, const usual_line *line) {
  const char *from, *to;
  key_text(line->tail, line->end, &from, &to);
  if (STARTS_WITH(line->tail, line->end, ",\"kernels\":{") &&
      memmem(to, (size_t)(line->end - to), ",\"counters\":{", 13)) {
    seed++;
  }
  CS_RETURN_IF_ERROR(
      cs_grow(&profile->keys, &profile->keys_capacity, profile->n_keys + 1, sizeof *profile->keys));
  profile->keys[profile->n_keys++] = cs_profile_hash(seed, from, (size_t)(to - from));
  return CS_OK;
}

/* ---- Indexing ---- */

static cs_status add_pending(cs_profile *profile, cs_profile_entry *entry, const usual_line *line) {
  CS_RETURN_IF_ERROR(cs_grow(&profile->pending, &profile->pending_capacity, profile->n_pending + 1,
                             sizeof *profile->pending));
  int index = (int)profile->n_pending++;
  profile->pending[index] = (cs_pending_line){.tail = (size_t)(line->tail - profile->text),
                                              .length = (size_t)(line->end - line->tail),
                                              .number = line->number,
                                              .next = -1};
  if (entry->last_pending >= 0) {
    profile->pending[entry->last_pending].next = index;
  } else {
    entry->first_pending = index;
  }
  entry->last_pending = index;
  return add_key(profile, entry->hash, line);
}

static cs_status index_usual_line(indexer *index, const usual_line *line) {
  if (!index->entry || index->length != line->length ||
      memcmp(index->signature, line->signature, line->length) != 0) {
    index->signature = line->signature;
    index->length = line->length;
    CS_RETURN_IF_ERROR(
        cs_profile_entry_of(index->profile, line->signature, line->length, true, &index->entry));
  }
  return add_pending(index->profile, index->entry, line);
}

/* *taken false: the signature is no JSON string. */
static cs_status index_escaped_line(cs_profile *profile, const usual_line *line, bool *taken) {
  cs_profile_entry *entry = NULL;
  json_t *string = json_loadb(line->signature - 1, line->length + 2, JSON_DECODE_ANY, NULL);
  *taken = string != NULL;
  if (!string) return CS_OK;
  cs_status st = cs_profile_entry_of(profile, json_string_value(string), json_string_length(string),
                                     true, &entry);
  if (st == CS_OK) st = add_pending(profile, entry, line);
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
  cs_line_kind kind = cs_line_classify(profile->identity, line, (size_t)(end - line), &root);
  if (kind == CS_LINE_FOREIGN) {
    cs_skipped_add(&profile->foreign, number);
  } else if (kind == CS_LINE_DAMAGED) {
    cs_skipped_add(&profile->damaged, number);
  } else {
    const char *signature = json_string_value(json_object_get(root, "op"));
    CS_TRY(st, cs_profile_entry_of(profile, signature, strlen(signature), true, &entry), done);
    CS_TRY(st, cs_profile_materialise(profile, entry), done);
    CS_TRY(st, cs_profile_apply(profile, entry, root, &damaged), done);
    cs_profile_sort(entry);
  }
done:
  json_decref(root);
  return st;
}

static cs_status index_line(indexer *index, const char *text, const char *end, int number) {
  usual_line line = {.end = end, .number = number};
  bool taken = true;
  if (end == text) return CS_OK;
  if (!scan_usual_line(index->profile, text, &line)) {
    taken = false;
  } else if (line.escapes) {
    CS_RETURN_IF_ERROR(index_escaped_line(index->profile, &line, &taken));
  } else {
    CS_RETURN_IF_ERROR(index_usual_line(index, &line));
  }
  return taken ? CS_OK : index_other_line(index->profile, text, end, number);
}

cs_status cs_profile_index(cs_profile *profile, size_t length) {
  indexer index = {.profile = profile};
  const char *end_of_text = profile->text + length;
  int number = 0;
  for (const char *line = profile->text; line < end_of_text;) {
    const char *end = memchr(line, '\n', (size_t)(end_of_text - line));
    number++;
    if (!end) {
      cs_skipped_add(&profile->damaged, number);
      break;
    }
    CS_RETURN_IF_ERROR(index_line(&index, line, end, number));
    line = end + 1;
  }
  return CS_OK;
}

cs_status cs_profile_load(cs_profile *profile) {
  size_t length = 0;
  CS_RETURN_IF_ERROR(cs_database_read(profile->path, &profile->text, &length));
  return cs_profile_index(profile, length);
}

/* ---- Compaction ---- */

static bool insert_key(uint64_t *set, size_t mask, uint64_t key) {
  key += key == 0; /* 0 is an empty place */
  size_t at = (size_t)key & mask;
  for (; set[at] != 0; at = (at + 1) & mask) {
    if (set[at] == key) return false;
  }
  set[at] = key;
  return true;
}

cs_status cs_profile_wants_compaction(const cs_profile *profile, bool *out) {
  size_t room = 256, distinct = 0;
  *out = false;
  if (profile->n_keys < SMALL_FILE_LINES) return CS_OK;
  while (room < 2 * profile->n_keys) room *= 2;
  uint64_t *set = cs_calloc(room, sizeof *set);
  if (!set) return cs_no_memory("the profile's keys", room * sizeof *set);
  for (size_t i = 0; i < profile->n_keys; i++) {
    distinct += insert_key(set, room - 1, profile->keys[i]);
  }
  free(set);
  *out = profile->n_keys > 2 * distinct;
  return CS_OK;
}
