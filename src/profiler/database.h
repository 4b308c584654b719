/* Inside of the profile database: the table of operations by signature, the lines not yet parsed,
 * and the file. A file is read once at open; its lines are indexed by a scan of their fixed prefix
 * and signature, and parsed operation by operation when first asked for. */
#ifndef CONVSCHED_PROFILER_DATABASE_H_
#define CONVSCHED_PROFILER_DATABASE_H_

#include <jansson.h>

#include "profiler/profile.h"

/* Largest file read, bytes. */
#define CS_PROFILE_FILE_LIMIT ((size_t)1 << 30)

/* A line of the text whose members behind the signature are still to be parsed. */
typedef struct cs_pending_line {
  size_t tail, length; /* from the comma behind the signature up to the end of the line */
  int number;          /* 1-based */
  int next;            /* of the same operation, -1: none */
} cs_pending_line;

/* Kernels of a candidate whose record has not been seen (yet). */
typedef struct cs_loose_kernels {
  char *candidate;
  cs_kernel_profile *kernels;
  int n;
} cs_loose_kernels;

typedef struct cs_profile_entry {
  cs_op_profile op;
  uint64_t hash; /* of the signature; cs_profile_hash */
  cs_loose_kernels *loose;
  size_t n_loose, loose_capacity;
  cs_corun *coruns; /* of an entry whose signature is that of co-runs */
  size_t n_coruns, coruns_capacity;
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
  int method;     /* version of measuring; of a file of its own: that of its first line */
  bool writable;  /* false after the first failed append, and where only reading is wanted */
  bool read_only; /* opened as a file of its own */
  cs_profile_entry **entries;
  size_t n_entries, entries_capacity;
  size_t *buckets; /* open addressing: entry index + 1, 0: empty */
  size_t n_buckets;
  char *text; /* of the file, kept while lines are pending */
  cs_pending_line *pending;
  size_t n_pending, pending_capacity;
  uint64_t *keys; /* per indexed line: hash of what a later line overrides it by */
  size_t n_keys, keys_capacity;
  cs_skipped_lines damaged, foreign;
  bool has_absent; /* a record was marked absent */
  bool has_device;
  cs_device_info device;
};

/* ---- database_table.c ---- */

/* Fast, of this process alone; never written down. */
uint64_t cs_profile_hash(uint64_t seed, const char *text, size_t length);
/* The entry of a signature of `length` bytes, none of them NUL; `create`: added if absent (else
 * *out is NULL). */
cs_status cs_profile_entry_of(cs_profile *profile, const char *signature, size_t length,
                              bool create, cs_profile_entry **out) CS_MUST_USE;
void cs_profile_forget(cs_profile *profile); /* all entries and the text; not the path */

/* ---- database_put.c: each puts something into an entry, in place of an older one ---- */

/* The record is taken over on success; kernels of an older one (or loose ones) pass to it. */
cs_status cs_profile_put_record(cs_profile_entry *entry, cs_record *record) CS_MUST_USE;
/* Of an operation's records those that an enumeration so limited may have led to. */
int cs_op_profile_count(const cs_op_profile *operation, const cs_completion *of);
/* NULL: there is none. */
cs_record *cs_profile_record_in(cs_profile_entry *entry, const char *candidate);
cs_status cs_profile_put_completion(cs_profile_entry *entry,
                                    const cs_completion *completion) CS_MUST_USE;
/* *kernels is taken over on success (and NULL then). Those that are not counted take the counters
 * of the ones they replace, if all names are the same. */
cs_status cs_profile_put_kernels(cs_profile_entry *entry, const char *candidate,
                                 cs_kernel_profile **kernels, int n) CS_MUST_USE;
/* The co-run of the same members, NULL: none. */
cs_corun *cs_profile_corun_of(const cs_profile_entry *entry, const cs_corun *corun);
/* Taken over on success. */
cs_status cs_profile_put_corun(cs_profile_entry *entry, cs_corun *corun) CS_MUST_USE;
void cs_kernels_take_counters(const cs_kernel_profile *old, int n_old, cs_kernel_profile *kernels,
                              int n);
void cs_profile_sort(cs_profile_entry *entry);
void cs_profile_entry_free(cs_profile_entry *entry);

/* ---- database_add.c ---- */

/* The entry of a signature, added if absent, with nothing pending. */
cs_status cs_profile_ready_entry(cs_profile *profile, const char *signature,
                                 cs_profile_entry **out) CS_MUST_USE;
/* From here on nothing is written; said once. Consumes `why`. */
void cs_profile_keep_in_memory(cs_profile *profile, cs_status why);

/* ---- database_load.c ---- */

/* Reads and indexes the file; a file that is not there is empty. Fills damaged and foreign. */
cs_status cs_profile_load(cs_profile *profile) CS_MUST_USE;
/* Indexes profile->text. */
cs_status cs_profile_index(cs_profile *profile, size_t length) CS_MUST_USE;
/* More than twice as many lines as the latest of each key need. */
cs_status cs_profile_wants_compaction(const cs_profile *profile, bool *out) CS_MUST_USE;

/* ---- database_lines.c ---- */

/* Parses the pending lines of an entry. Newly found damage is reported. */
cs_status cs_profile_materialise(cs_profile *profile, cs_profile_entry *entry) CS_MUST_USE;
/* Puts a parsed line's members into its entry. */
cs_status cs_profile_apply(cs_profile *profile, cs_profile_entry *entry, const json_t *object,
                           bool *damaged) CS_MUST_USE;
void cs_skipped_add(cs_skipped_lines *skipped, int number);
/* Warns about what is skipped, naming the lines; silent if nothing is. */
void cs_report_skipped(const cs_logger *logger, const char *path, const cs_skipped_lines *damaged,
                       const cs_skipped_lines *foreign);

typedef enum cs_line_kind {
  CS_LINE_RECORD,
  CS_LINE_COMPLETION,
  CS_LINE_KERNELS,
  CS_LINE_CORUN,
  CS_LINE_DEVICE,
  CS_LINE_FOREIGN, /* another schema, method, device or kind */
  CS_LINE_DAMAGED
} cs_line_kind;
/* The kind by the member that tells it; FOREIGN: none does. */
cs_line_kind cs_line_kind_of(const json_t *object);
/* Classifies a line by parsing all of it; *root (may come back NULL) is released by the caller. */
cs_line_kind cs_line_classify(const char *identity, const char *line, size_t length, json_t **root);

/* ---- database_file.c ---- */

/* Takes the lock of a database file, LOCK_EX or (to read) LOCK_SH; close() gives it back. */
cs_status cs_database_lock(const char *path, int operation, int *out) CS_MUST_USE;
/* Reads a database file while nobody is in the middle of a line; one that is not there is empty. */
cs_status cs_database_read(const char *path, char **out, size_t *length) CS_MUST_USE;
/* Appends `line` (with its newline; or several lines) in one write under the lock, on a fresh line
 * even where the last one was torn. A failed write leaves the file as it was. */
cs_status cs_database_append(const char *path, const char *line, size_t length) CS_MUST_USE;
/* The same without the lock. */
cs_status cs_database_append_unlocked(const char *path, const char *line,
                                      size_t length) CS_MUST_USE;

/* Removes temporary files of rewriters that were killed. Under the lock: there are no others. */
cs_status cs_database_remove_leftovers(const char *path) CS_MUST_USE;

/* ---- database_compact.c ---- */

/* Keeps the latest line of each key and every foreign line; damaged lines go to `path`.damaged.
 * By temporary file and rename, under the lock. */
cs_status cs_database_compact(const char *path, const char *identity) CS_MUST_USE;

/* ---- database_gzip.c ---- */

/* Reads a file as it is, or unpacked where it begins as gzip's do; a NUL is appended behind
 * *length. Errors: IO; BAD_INPUT (damaged, or larger than CS_PROFILE_FILE_LIMIT). */
cs_status cs_read_maybe_gzip(const char *path, char **out, size_t *length) CS_MUST_USE;
/* Replaces `path`, compressed if its name ends in .gz; the same data give the same bytes. */
cs_status cs_write_maybe_gzip(const char *path, const char *data, size_t length) CS_MUST_USE;

/* What cs_lines_latest found. */
typedef struct cs_latest_lines {
  int n; /* lines given back */
  cs_skipped_lines damaged, foreign;
} cs_latest_lines;

/* The latest line of each key among `text`, sorted by key, each with its newline. The damaged and
 * those of other devices are left out, and reported. */
cs_status cs_lines_latest(const char *identity, const char *text, size_t length, cs_strbuf *out,
                          cs_latest_lines *report) CS_MUST_USE;

#endif
