/* Profiles as files that travel: export and import. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "profiler/database.h"
#include "profiler/record_json.h"

/* The latest lines of this device in a file, sorted. */
static cs_status latest_of_file(const cs_profile *profile, const char *path, cs_strbuf *lines,
                                cs_latest_lines *report) {
  char *text = NULL;
  size_t length = 0;
  bool own = path == profile->path && profile->writable;
  CS_RETURN_IF_ERROR(own ? cs_database_read(path, &text, &length)
                         : cs_read_maybe_gzip(path, &text, &length));
  cs_status st = cs_lines_latest(profile->identity, text, length, lines, report);
  free(text);
  return st;
}

/* ---- Export ---- */

/* Writing over the database would take away what is skipped in it, and what others append. */
static bool is_database(const cs_profile *profile, const char *path) {
  struct stat ours, theirs;
  return stat(profile->path, &ours) == 0 && stat(path, &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

cs_status cs_profile_export(const cs_profile *profile, const char *path) {
  cs_strbuf lines = {0};
  cs_latest_lines report;
  if (!profile->path || (!profile->writable && !profile->read_only)) {
    return cs_error(CS_CODE_IO,
                    "the measurements of this run are in memory only: nothing to export");
  }
  if (is_database(profile, path)) {
    return cs_error(CS_CODE_USAGE, "%s: found the profile database itself, wanted another file",
                    path);
  }
  cs_status st = latest_of_file(profile, profile->path, &lines, &report);
  if (st == CS_OK && report.n == 0) {
    st = cs_error(CS_CODE_NOT_FOUND, "%s: nothing is measured yet on %s", profile->path,
                  profile->identity);
  }
  if (st == CS_OK) st = cs_write_maybe_gzip(path, lines.data, lines.length);
  cs_strbuf_free(&lines);
  return st;
}

/* ---- Import ---- */

typedef struct line_text {
  const char *text;
  size_t length; /* with its newline */
} line_text;

static int compare_texts(const void *a, const void *b) {
  const line_text *x = a, *y = b;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return memcmp(x->text, y->text, x->length);
}

static line_text next_line(const char *at, const char *end) {
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return (line_text){at, newline ? (size_t)(newline - at) + 1 : (size_t)(end - at)};
}

/* Of `theirs` the lines that are not among `ours`, both of whole lines. */
static cs_status new_lines(const cs_strbuf *ours, int n_ours, const cs_strbuf *theirs,
                           cs_strbuf *out, int *taken) {
  line_text *known = cs_calloc((size_t)n_ours + 1, sizeof *known);
  size_t n = 0;
  if (!known) return cs_no_memory("the profile's lines", (size_t)n_ours * sizeof *known);
  for (size_t at = 0; at < ours->length; at += known[n++].length) {
    known[n] = next_line(ours->data + at, ours->data + ours->length);
  }
  qsort(known, n, sizeof *known, compare_texts);
  for (size_t at = 0; at < theirs->length;) {
    line_text line = next_line(theirs->data + at, theirs->data + theirs->length);
    at += line.length;
    if (bsearch(&line, known, n, sizeof *known, compare_texts)) continue;
    cs_strbuf_append(out, line.text, line.length);
    (*taken)++;
  }
  free(known);
  return out->failed ? cs_no_memory("the profile's lines", theirs->length) : CS_OK;
}

/* Why a file had nothing to take. */
static cs_status refuse(const cs_profile *profile, const char *path) {
  cs_profile *other = NULL;
  CS_RETURN_IF_ERROR(cs_profile_open_file(path, NULL, &other));
  cs_status st = cs_error(CS_CODE_BAD_INPUT, "%s: a profile of \"%s\", %s; this device is \"%s\"",
                          path, cs_profile_identity(other),
                          strcmp(other->identity, profile->identity) == 0
                              ? "of which no line is of this version of measuring"
                              : "another device or other versions of its libraries",
                          profile->identity);
  cs_profile_close(other);
  return st;
}

cs_status cs_profile_import(cs_profile *profile, const char *path, int *taken) {
  cs_status st = CS_OK;
  cs_strbuf ours = {0}, theirs = {0}, added = {0};
  cs_latest_lines own = {0}, other;
  *taken = 0;
  if (!cs_profile_path(profile)) {
    return cs_error(CS_CODE_IO, "the profile database cannot be written: nothing can be imported");
  }
  CS_TRY(st, latest_of_file(profile, path, &theirs, &other), done);
  if (other.n == 0) {
    st = refuse(profile, path);
    goto done;
  }
  cs_report_skipped(&profile->logger, path, &other.damaged, &other.foreign);
  CS_TRY(st, latest_of_file(profile, profile->path, &ours, &own), done);
  CS_TRY(st, new_lines(&ours, own.n, &theirs, &added, taken), done);
  if (*taken == 0) goto done;
  CS_TRY(st, cs_database_append(profile->path, added.data, added.length), done);
  cs_profile_forget(profile);
  st = cs_profile_load(profile);
done:
  cs_strbuf_free(&ours);
  cs_strbuf_free(&theirs);
  cs_strbuf_free(&added);
  return st;
}
