/* The file of the database: appending and compacting under one lock (`path`.lock). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"

static cs_status lock_file(const char *path, int *out) {
  cs_status st = CS_OK;
  cs_strbuf name = {0};
  char *lock_path = NULL;
  cs_strbuf_printf(&name, "%s.lock", path);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&name, &lock_path));
  *out = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*out < 0) {
    st = cs_io_error(lock_path, "create", errno);
    goto done;
  }
  while (flock(*out, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    st = cs_io_error(lock_path, "lock", errno);
    close(*out);
    *out = -1;
    goto done;
  }
done:
  free(lock_path);
  return st;
}

/* One write; what a full disk left of it is taken back. */
static cs_status write_whole(int fd, const char *path, const char *data, size_t length,
                             off_t size) {
  size_t written = 0;
  while (written < length) {
    ssize_t n = write(fd, data + written, length - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      cs_status st = cs_io_error(path, "append to", errno);
      if (written > 0 && ftruncate(fd, size) != 0) {
        return cs_annotate(st, "a torn line stays behind: ");
      }
      return st;
    }
    written += (size_t)n;
  }
  return CS_OK;
}

static cs_status append_unlocked(const char *path, const char *line, size_t length) {
  cs_status st = CS_OK;
  cs_strbuf data = {0};
  char last = '\n';
  int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return cs_io_error(path, "open", errno);
  off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0 || (size > 0 && pread(fd, &last, 1, size - 1) != 1)) {
    st = cs_io_error(path, "read", errno);
    goto done;
  }
  if (last != '\n') cs_strbuf_append(&data, "\n", 1);
  cs_strbuf_append(&data, line, length);
  if (data.failed) {
    st = cs_no_memory("a profile line", length);
    goto done;
  }
  st = write_whole(fd, path, data.data, data.length, size);
done:
  cs_strbuf_free(&data);
  close(fd);
  return st;
}

cs_status cs_database_append(const char *path, const char *line, size_t length) {
  int lock = -1;
  CS_RETURN_IF_ERROR(lock_file(path, &lock));
  cs_status st = append_unlocked(path, line, length);
  close(lock);
  return st;
}

/* ---- Compaction ---- */

typedef struct compaction {
  const char *identity;
  cs_strbuf kept, damaged;
  json_t *latest; /* key of a line -> offset of the latest such line */
} compaction;

static cs_status key_of(const json_t *root, cs_line_kind kind, char **out) {
  cs_strbuf key = {0};
  const char *op = json_string_value(json_object_get(root, "op"));
  if (kind == CS_LINE_RECORD) {
    const json_t *id = json_object_get(json_object_get(root, "candidate"), "id");
    cs_strbuf_printf(&key, "r%zu:%s%s", strlen(op), op, json_string_value(id));
  } else {
    char *text = json_dumps(json_object_get(root, "complete"), JSON_COMPACT | JSON_SORT_KEYS);
    cs_strbuf_printf(&key, "c%zu:%s%s", strlen(op), op, text ? text : "");
    key.failed = key.failed || !text;
    free(text);
  }
  return cs_strbuf_take(&key, out);
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
  if (kind == CS_LINE_RECORD || kind == CS_LINE_COMPLETION) {
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
  cs_status st = append_unlocked(aside, damaged->data, damaged->length);
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
  CS_TRY(st, lock_file(path, &lock), done);
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
