/* Inside of the profile database: the table of operations by signature, the lines not yet parsed,
 * and the file. A file is read once at open; its lines are indexed by a scan of their fixed prefix
 * and signature, and parsed operation by operation when first asked for. */
#ifndef CONVSCHED_PROFILER_DATABASE_H_
#define CONVSCHED_PROFILER_DATABASE_H_

#include "profiler/profile.h"

/* Largest file read, bytes. */
#define CS_PROFILE_FILE_LIMIT ((size_t)1 << 30)

/* A line of the text whose members behind the signature are still to be parsed. */
typedef struct cs_pending_line {
  size_t tail, length; /* from the comma behind the signature up to the end of the line */
  int number;          /* 1-based */
  int next;            /* of the same operation, -1: none */
} cs_pending_line;

typedef struct cs_profile_entry {
  cs_op_profile op;
  int first_pending, last_pending; /* -1: none */
} cs_profile_entry;

/* Lines that were skipped: how many, and the first few numbers. */
typedef struct cs_skipped_lines {
  int n;
  int numbers[8];
} cs_skipped_lines;

struct cs_profile {
  char *path; /* NULL: memory only */
  char *identity;
  char *prefix; /* of every line of this device; see cs_line_prefix */
  size_t prefix_length;
  cs_logger logger;
  bool writable; /* false after the first failed append */
  cs_profile_entry **entries;
  size_t n_entries, entries_capacity;
  size_t *buckets; /* open addressing: entry index + 1, 0: empty */
  size_t n_buckets;
  char *text; /* of the file, kept while lines are pending */
  cs_pending_line *pending;
  size_t n_pending, pending_capacity;
  uint64_t *keys; /* per indexed line: hash of (signature, candidate id) */
  size_t n_keys, keys_capacity;
  cs_skipped_lines damaged, foreign;
};

/* The entry of a signature of `length` bytes; `create`: added if absent (else *out is NULL). */
cs_status cs_profile_entry_of(cs_profile *profile, const char *signature, size_t length,
                              bool create, cs_profile_entry **out) CS_MUST_USE;
/* Puts a record (taken over on success) or a completion into an entry, in place of an older one. */
cs_status cs_profile_put_record(cs_profile_entry *entry, cs_record *record) CS_MUST_USE;
cs_status cs_profile_put_completion(cs_profile_entry *entry,
                                    const cs_completion *completion) CS_MUST_USE;
void cs_profile_sort(cs_profile_entry *entry);
void cs_profile_forget(cs_profile *profile); /* all entries and the text; not the path */

/* ---- database_load.c ---- */

/* Reads and indexes the file; a file that is not there is empty. Fills damaged and foreign. */
cs_status cs_profile_load(cs_profile *profile) CS_MUST_USE;
/* Parses the pending lines of an entry. Newly found damage is reported. */
cs_status cs_profile_materialise(cs_profile *profile, cs_profile_entry *entry) CS_MUST_USE;
/* More than twice as many lines as the latest of each (operation, candidate) need. */
bool cs_profile_wants_compaction(const cs_profile *profile);
void cs_skipped_add(cs_skipped_lines *skipped, int number);
/* Warns about what is skipped, naming the lines; silent if nothing is. */
void cs_profile_report_skipped(const cs_profile *profile, const cs_skipped_lines *damaged,
                               const cs_skipped_lines *foreign);

typedef enum cs_line_kind {
  CS_LINE_RECORD,
  CS_LINE_COMPLETION,
  CS_LINE_FOREIGN, /* another schema, method or device */
  CS_LINE_DAMAGED
} cs_line_kind;
/* Classifies a line by parsing all of it; *root (may come back NULL) is released by the caller. */
cs_line_kind cs_line_classify(const char *identity, const char *line, size_t length, json_t **root);

/* ---- database_file.c ---- */

/* Appends `line` (with its newline) in one write under the lock, on a fresh line even where the
 * last one was torn. A failed write leaves the file as it was. */
cs_status cs_database_append(const char *path, const char *line, size_t length) CS_MUST_USE;
/* Keeps the latest line per (operation, candidate) and every foreign line; damaged lines go to
 * `path`.damaged. By temporary file and rename, under the lock. */
cs_status cs_database_compact(const char *path, const char *identity) CS_MUST_USE;

#endif
