/* Which of a database's lines are still needed, and the file rewritten with those. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"

typedef struct compaction {
  const char *identity;
  cs_strbuf kept, damaged;
  json_t *latest; /* key of a line -> offset of the latest such line */
} compaction;

/* What a later line overrides this one by. */
static cs_status key_of(const json_t *root, cs_line_kind kind, char **out) {
  cs_strbuf key = {0};
  const char *op = json_string_value(json_object_get(root, "op"));
  const json_t *rest = NULL;
  if (kind == CS_LINE_RECORD) rest = json_object_get(json_object_get(root, "candidate"), "id");
  if (kind == CS_LINE_KERNELS)
    rest = json_object_get(json_object_get(root, "kernels"), "candidate");
  if (kind == CS_LINE_CORUN) rest = json_object_get(json_object_get(root, "corun"), "members");
  if (kind == CS_LINE_COMPLETION) rest = json_object_get(root, "complete");
  char *text = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
  /* A record before its kernels. */
  cs_strbuf_printf(&key, "%s %d %s", op, (int)kind, text ? text : "");
  key.failed = key.failed || (rest && !text);
  free(text);
  return cs_strbuf_take(&key, out);
}

static bool is_ours(cs_line_kind kind) {
  return kind != CS_LINE_FOREIGN && kind != CS_LINE_DAMAGED;
}

/* First pass (`writing` false) notes the latest line of each key; the second keeps those. */
static cs_status compact_line(compaction *c, const char *line, size_t length, size_t offset,
                              bool torn, bool writing) {
  cs_status st = CS_OK;
  json_t *root = NULL;
  char *key = NULL;
  cs_line_kind kind = cs_line_classify(c->identity, line, length, &root);
  if (torn) kind = CS_LINE_DAMAGED;
  bool keep = kind == CS_LINE_FOREIGN;
  if (is_ours(kind)) {
    CS_TRY(st, key_of(root, kind, &key), done);
    if (!writing && json_object_set_new(c->latest, key, json_integer((json_int_t)offset)) != 0) {
      st = cs_no_memory("the index of the profile's lines", 0);
      goto done;
    }
    keep = json_integer_value(json_object_get(c->latest, key)) == (json_int_t)offset;
  }
  if (writing && (keep || kind == CS_LINE_DAMAGED)) {
    cs_strbuf *to = keep ? &c->kept : &c->damaged;
    cs_strbuf_append(to, line, length);
    cs_strbuf_append(to, "\n", 1);
  }
done:
  json_decref(root);
  free(key);
  return st;
}

static cs_status compact_text(compaction *c, const char *text, size_t text_length) {
  for (int pass = 0; pass < 2; pass++) {
    for (size_t at = 0; at < text_length;) {
      const char *line = text + at;
      const char *end = memchr(line, '\n', text_length - at);
      size_t length = end ? (size_t)(end - line) : text_length - at;
      if (length > 0) CS_RETURN_IF_ERROR(compact_line(c, line, length, at, !end, pass == 1));
      at += length + 1;
    }
  }
  if (c->kept.failed || c->damaged.failed) return cs_no_memory("a compacted profile", text_length);
  return CS_OK;
}

static cs_status set_damaged_aside(const char *path, const cs_strbuf *damaged) {
  cs_strbuf name = {0};
  char *aside = NULL;
  if (damaged->length == 0) return CS_OK;
  cs_strbuf_printf(&name, "%s.damaged", path);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&name, &aside));
  cs_status st = cs_database_append_unlocked(aside, damaged->data, damaged->length);
  free(aside);
  return st;
}

cs_status cs_database_compact(const char *path, const char *identity) {
  cs_status st = CS_OK;
  compaction c = {.identity = identity, .latest = json_object()};
  char *text = NULL;
  size_t length = 0;
  int lock = -1;
  if (!c.latest) return cs_no_memory("the index of the profile's lines", 0);
  CS_TRY(st, cs_database_lock(path, &lock), done);
  CS_TRY(st, cs_file_read(path, CS_PROFILE_FILE_LIMIT, &text, &length), done);
  CS_TRY(st, compact_text(&c, text, length), done);
  CS_TRY(st, set_damaged_aside(path, &c.damaged), done);
  st = cs_file_replace(path, c.kept.data ? c.kept.data : "", c.kept.length);
done:
  if (lock >= 0) close(lock);
  json_decref(c.latest);
  cs_strbuf_free(&c.kept);
  cs_strbuf_free(&c.damaged);
  free(text);
  return st;
}

/* ---- Export ---- */

typedef struct keyed_line {
  char *key;
  const char *line;
  size_t length, number;
} keyed_line;

static int compare_lines(const void *a, const void *b) {
  const keyed_line *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order ? order : (x->number > y->number) - (x->number < y->number);
}

static cs_status collect_lines(const char *identity, const char *text, size_t length,
                               keyed_line **lines, size_t *n) {
  size_t capacity = 0;
  for (size_t at = 0, number = 0; at < length; number++) {
    const char *line = text + at, *end = memchr(line, '\n', length - at);
    if (!end) break; /* torn */
    at += (size_t)(end - line) + 1;
    json_t *root = NULL;
    cs_line_kind kind = cs_line_classify(identity, line, (size_t)(end - line), &root);
    cs_status st = CS_OK;
    if (is_ours(kind)) {
      st = cs_grow(lines, &capacity, *n + 1, sizeof **lines);
      if (st == CS_OK) {
        (*lines)[*n] = (keyed_line){.line = line, .length = (size_t)(end - line), .number = number};
        st = key_of(root, kind, &(*lines)[*n].key);
      }
      if (st == CS_OK) (*n)++;
    }
    json_decref(root);
    CS_RETURN_IF_ERROR(st);
  }
  return CS_OK;
}

cs_status cs_lines_latest(const char *identity, const char *text, size_t length, cs_strbuf *out,
                          int *taken) {
  keyed_line *lines = NULL;
  size_t n = 0;
  *taken = 0;
  cs_status st = collect_lines(identity, text, length, &lines, &n);
  if (st == CS_OK && n > 0) qsort(lines, n, sizeof *lines, compare_lines);
  for (size_t i = 0; st == CS_OK && i < n; i++) {
    if (i + 1 < n && strcmp(lines[i].key, lines[i + 1].key) == 0) continue;
    cs_strbuf_append(out, lines[i].line, lines[i].length);
    cs_strbuf_append(out, "\n", 1);
    (*taken)++;
  }
  if (st == CS_OK && out->failed) st = cs_no_memory("the profile's lines", length);
  for (size_t i = 0; i < n; i++) free(lines[i].key);
  free(lines);
  return st;
}
