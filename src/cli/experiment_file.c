/* The file of an experiment's records. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_lines.h"
#include "cli/experiment.h"
#include "cli/members.h"

#define MOST_BYTES ((size_t)1 << 31)

/* ---- What is there ---- */

static cs_status note(experiment_file *file, const json_t *record) {
  const json_t *key = json_object_get(record, "key"), *outcome = json_object_get(record, "outcome");
  if (!json_is_string(key) || !json_is_string(outcome)) {
    return cli_error(CS_CODE_BAD_INPUT, "%s: a record without key and outcome", file->path);
  }
  const json_t *seconds = json_object_get(record, "seconds");
  file->timed += json_is_number(seconds);
  file->seconds += json_number_value(seconds);
  int failed = json_object_set(file->done, json_string_value(key), (json_t *)(uintptr_t)outcome);
  return failed ? cs_no_memory("records", 0) : CS_OK;
}

static cs_status something_else(const experiment_file *file) {
  return cli_error(CS_CODE_BAD_INPUT,
                   "%s: found a file of something else, wanted an experiment's records",
                   file->path);
}

static cs_status read_lines(experiment_file *file, json_t *lines) {
  size_t i;
  json_t *line;
  bool torn;
  CS_RETURN_IF_ERROR(cs_json_lines_read(file->path, MOST_BYTES, lines, &file->length, &torn));
  json_array_foreach(lines, i, line) {
    if (i > 0) {
      CS_RETURN_IF_ERROR(note(file, line));
      continue;
    }
    if (strcmp(string(line, "schema"), "convsched.experiment-head/1") != 0) {
      return something_else(file);
    }
    file->header = json_incref(line);
  }
  return CS_OK;
}

static cs_status read_file(experiment_file *file) {
  json_t *lines = json_array();
  file->done = json_object();
  cs_status st = lines && file->done ? read_lines(file, lines) : cs_no_memory("records", 0);
  json_decref(lines);
  return st;
}

cs_status experiment_file_read(const char *path, experiment_file *out) {
  *out = (experiment_file){.path = path, .fd = -1};
  if (access(path, F_OK) == 0) return read_file(out);
  out->done = json_object();
  return out->done ? CS_OK : cs_no_memory("records", 0);
}

/* ---- Opening ---- */

static cs_status open_once(experiment_file *file, struct stat *status) {
  bool made = access(file->path, F_OK) != 0;
  file->fd = open(file->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file->fd < 0) return cs_io_error(file->path, "open", errno);
  if (fstat(file->fd, status) != 0) return cs_io_error(file->path, "open", errno);
  if (!S_ISREG(status->st_mode)) {
    return cli_error(CS_CODE_USAGE, "--output %s: wanted a file, since records are read again",
                     file->path);
  }
  if (flock(file->fd, LOCK_EX | LOCK_NB) == 0) {
    file->made = made; /* another process's file is not ours to remove */
    return fstat(file->fd, status) == 0 ? CS_OK : cs_io_error(file->path, "open", errno);
  }
  if (errno != EWOULDBLOCK) return cs_io_error(file->path, "lock", errno);
  return cli_error(CS_CODE_USAGE, "--output %s: another process writes to it", file->path);
}

/* Again where the process that had the lock has removed its file, which had nothing in it. */
static cs_status open_locked(experiment_file *file) {
  struct stat status;
  for (;;) {
    CS_RETURN_IF_ERROR(open_once(file, &status));
    if (status.st_nlink > 0) return CS_OK;
    (void)close(file->fd);
    file->fd = -1;
  }
}

/* A line without an end is what a process of ours left, or somebody's file, which stays. */
static cs_status check_ours(const experiment_file *file) {
  static const char begin[] = "{\"schema\":\"convsched.experiment-head/1\"";
  char found[sizeof begin];
  if (file->header) return CS_OK;
  ssize_t n = pread(file->fd, found, sizeof begin - 1, (off_t)file->length);
  if (n < 0) return cs_io_error(file->path, "read", errno);
  if (memcmp(found, begin, (size_t)n) == 0) return CS_OK;
  return something_else(file);
}

cs_status experiment_file_open(const char *path, experiment_file *out) {
  *out = (experiment_file){.path = path, .fd = -1};
  CS_RETURN_IF_ERROR(open_locked(out));
  CS_RETURN_IF_ERROR(read_file(out));
  CS_RETURN_IF_ERROR(check_ours(out));
  if (ftruncate(out->fd, (off_t)out->length) == 0) return CS_OK;
  return cs_io_error(path, "cut off an unfinished line of", errno);
}

void experiment_file_close(experiment_file *file) {
  if (file->fd >= 0) {
    if (file->made && file->length == 0) (void)unlink(file->path);
    (void)close(file->fd);
  }
  json_decref(file->header);
  json_decref(file->done);
  *file = (experiment_file){.fd = -1};
}

/* ---- Writing ---- */

/* All or nothing: what a full disk took of a line is taken back. */
static cs_status write_line(experiment_file *file, const char *line, size_t length) {
  ssize_t written = write(file->fd, line, length);
  int problem = written < 0 ? errno : ENOSPC;
  if (written == (ssize_t)length && fsync(file->fd) == 0) {
    file->length += length;
    return CS_OK;
  }
  if (written == (ssize_t)length) problem = errno;
  (void)!ftruncate(file->fd, (off_t)file->length);
  return cs_io_error(file->path, "write", problem);
}

static cs_status append(experiment_file *file, const json_t *record) {
  cs_strbuf line = {0};
  char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
  if (!text) return cs_no_memory("a record", 0);
  cs_strbuf_printf(&line, "%s\n", text);
  free(text);
  size_t length = line.length;
  CS_RETURN_IF_ERROR(cs_strbuf_take(&line, &text));
  cs_status st = write_line(file, text, length);
  free(text);
  return st;
}

static cs_status check_same(const experiment_file *file, const char *what, const char *found,
                            const char *wanted) {
  if (strcmp(found, wanted) == 0) return CS_OK;
  return cli_error(CS_CODE_BAD_INPUT,
                   "%s: was recorded of another %s: found %s, wanted %s; name another file with "
                   "--output, or remove it",
                   file->path, what, found, wanted);
}

cs_status experiment_file_begin(experiment_file *file, const json_t *header) {
  if (!file->header) return append(file, header);
  CS_RETURN_IF_ERROR(check_same(file, "specification (or of other models)",
                                string(file->header, "hash"), string(header, "hash")));
  CS_RETURN_IF_ERROR(check_same(file, "build of convsched", string(file->header, "commit"),
                                string(header, "commit")));
  return check_same(file, "device", string(json_object_get(file->header, "device"), "identity"),
                    string(json_object_get(header, "device"), "identity"));
}

cs_status experiment_file_append(experiment_file *file, const json_t *record) {
  CS_RETURN_IF_ERROR(append(file, record));
  return note(file, record);
}

const char *experiment_file_outcome(const experiment_file *file, const char *key) {
  return json_string_value(json_object_get(file->done, key));
}
