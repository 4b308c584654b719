/* Which of a database's lines are still needed, and the file rewritten with those. */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"

typedef struct keyed_line {
  char *key; /* what a later line overrides this one by; NULL: not of this device */
  const char *text;
  size_t length;
  int number; /* 1-based */
  bool damaged, latest;
} keyed_line;

typedef struct keyed_lines {
  keyed_line *items;
  size_t n, capacity;
  keyed_line **sorted; /* those with keys, by key, then number */
  size_t n_sorted;
} keyed_lines;

static void free_lines(keyed_lines *lines) {
  for (size_t i = 0; i < lines->n; i++) free(lines->items[i].key);
  free(lines->items);
  free(lines->sorted);
}

static bool any_counters(const json_t *kernels) {
  size_t i;
  json_t *kernel;
  json_array_foreach(json_object_get(kernels, "list"), i, kernel) {
    if (json_object_get(kernel, "counters")) return true;
  }
  return false;
}

/* Kernels with counters and kernels without have keys of their own: the latter do not override the
 * former. The operation comes first, a record before its kernels. How many records an enumeration
 * had is no part of its key. Changes the parsed line, not its text. */
static cs_status key_of(json_t *root, cs_line_kind kind, char **out) {
  cs_strbuf key = {0};
  const json_t *kernels = json_object_get(root, "kernels");
  const json_t *rest = NULL;
  if (kind == CS_LINE_RECORD) rest = json_object_get(json_object_get(root, "candidate"), "id");
  if (kind == CS_LINE_KERNELS) rest = json_object_get(kernels, "candidate");
  if (kind == CS_LINE_CORUN) rest = json_object_get(json_object_get(root, "corun"), "members");
  if (kind == CS_LINE_COMPLETION) {
    json_object_del(json_object_get(root, "complete"), "records");
    rest = json_object_get(root, "complete");
  }
  char *text = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
  cs_strbuf_printf(&key, "%s\n%d%d %s", json_string_value(json_object_get(root, "op")), (int)kind,
                   any_counters(kernels), text ? text : "");
  key.failed = key.failed || (rest && !text);
  free(text);
  return cs_strbuf_take(&key, out);
}

static cs_status read_line(keyed_lines *lines, const char *identity, keyed_line line, bool torn) {
  cs_status st = CS_OK;
  json_t *root = NULL;
  cs_line_kind kind = CS_LINE_DAMAGED;
  if (!torn) kind = cs_line_classify(identity, line.text, line.length, &root);
  line.damaged = kind == CS_LINE_DAMAGED;
  CS_TRY(st, cs_grow(&lines->items, &lines->capacity, lines->n + 1, sizeof line), done);
  if (kind != CS_LINE_DAMAGED && kind != CS_LINE_FOREIGN) {
    CS_TRY(st, key_of(root, kind, &line.key), done);
    lines->n_sorted++;
  }
  lines->items[lines->n++] = line;
done:
  json_decref(root);
  return st;
}

static int compare_lines(const void *a, const void *b) {
  const keyed_line *x = *(keyed_line *const *)a, *y = *(keyed_line *const *)b;
  int order = strcmp(x->key, y->key);
  return order ? order : (x->number > y->number) - (x->number < y->number);
}

static cs_status mark_latest(keyed_lines *lines) {
  size_t n = 0;
  if (lines->n_sorted == 0) return CS_OK;
  lines->sorted = cs_calloc(lines->n_sorted, sizeof(keyed_line *));
  if (!lines->sorted) return cs_no_memory("the profile's lines", lines->n * sizeof(keyed_line *));
  for (size_t i = 0; i < lines->n; i++) {
    if (lines->items[i].key) lines->sorted[n++] = &lines->items[i];
  }
  qsort(lines->sorted, n, sizeof(keyed_line *), compare_lines);
  for (size_t i = 0; i < n; i++) {
    lines->sorted[i]->latest =
        i + 1 == n || strcmp(lines->sorted[i]->key, lines->sorted[i + 1]->key) != 0;
  }
  return CS_OK;
}

static cs_status read_lines(const char *identity, const char *text, size_t length,
                            keyed_lines *out) {
  int number = 0;
  for (size_t at = 0; at < length;) {
    const char *end = memchr(text + at, '\n', length - at);
    keyed_line line = {.text = text + at, .number = ++number};
    line.length = end ? (size_t)(end - text) - at : length - at;
    if (line.length > 0) CS_RETURN_IF_ERROR(read_line(out, identity, line, !end));
    at += line.length + 1;
  }
  return mark_latest(out);
}

static void append_line(cs_strbuf *to, const keyed_line *line) {
  cs_strbuf_append(to, line->text, line->length);
  cs_strbuf_append(to, "\n", 1);
}

/* ---- Compaction ---- */

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
  keyed_lines lines = {0};
  cs_strbuf kept = {0}, damaged = {0};
  char *text = NULL;
  size_t length = 0;
  int lock = -1;
  CS_TRY(st, cs_database_lock(path, LOCK_EX, &lock), done);
  CS_TRY(st, cs_database_remove_leftovers(path), done);
  CS_TRY(st, cs_file_read(path, CS_PROFILE_FILE_LIMIT, &text, &length), done);
  CS_TRY(st, read_lines(identity, text, length, &lines), done);
  for (size_t i = 0; i < lines.n; i++) {
    const keyed_line *line = &lines.items[i];
    if (line->damaged) append_line(&damaged, line);
    if (!line->damaged && (!line->key || line->latest)) append_line(&kept, line);
  }
  if (kept.failed || damaged.failed) {
    st = cs_no_memory("a compacted profile", length);
    goto done;
  }
  CS_TRY(st, set_damaged_aside(path, &damaged), done);
  st = cs_file_replace(path, kept.data ? kept.data : "", kept.length);
done:
  if (lock >= 0) close(lock);
  free_lines(&lines);
  cs_strbuf_free(&kept);
  cs_strbuf_free(&damaged);
  free(text);
  return st;
}

/* ---- Export and import ---- */

cs_status cs_lines_latest(const char *identity, const char *text, size_t length, cs_strbuf *out,
                          cs_latest_lines *report) {
  keyed_lines lines = {0};
  *report = (cs_latest_lines){0};
  cs_status st = read_lines(identity, text, length, &lines);
  for (size_t i = 0; st == CS_OK && i < lines.n; i++) {
    const keyed_line *line = &lines.items[i];
    if (line->damaged) cs_skipped_add(&report->damaged, line->number);
    if (!line->damaged && !line->key) cs_skipped_add(&report->foreign, line->number);
  }
  for (size_t i = 0; st == CS_OK && i < lines.n_sorted; i++) {
    if (!lines.sorted[i]->latest) continue;
    append_line(out, lines.sorted[i]);
    report->n++;
  }
  if (st == CS_OK && out->failed) st = cs_no_memory("the profile's lines", length);
  free_lines(&lines);
  return st;
}
