/* The folder of the profile database: its files, their removal, and the limit on its size. */
#ifndef CONVSCHED_PROFILER_CACHE_H_
#define CONVSCHED_PROFILER_CACHE_H_

#include "profiler/profile.h"

/* The environment's limit on the bytes of the folder, k/M/G allowed; 0: none. */
#define CS_CACHE_CAP_VARIABLE "CONVSCHED_CACHE_CAP"
#define CS_CACHE_CAP_DEFAULT (INT64_C(1) << 30)

typedef struct cs_cache_file {
  char *path;
  int64_t bytes;    /* with what was set aside as damaged */
  int64_t last_use; /* seconds since 1970: opened, or written to */
} cs_cache_file;

typedef struct cs_cache_files {
  cs_cache_file *items; /* last used first; ties by path */
  int n;
  int64_t bytes;
} cs_cache_files;

/* The database files of a folder; one that is not there has none. */
cs_status cs_cache_list(const char *directory, cs_cache_files *out) CS_MUST_USE;
void cs_cache_files_clear(cs_cache_files *files);
/* Removes a database file with what belongs to it, under its lock; one that is gone is fine. */
cs_status cs_cache_remove(const char *path) CS_MUST_USE;
/* Notes that a database file is used now. */
void cs_cache_touch(const char *path);
/* The limit in force. USAGE: the environment's is not a number of bytes. */
cs_status cs_cache_cap(int64_t *bytes) CS_MUST_USE;
/* Removes whole files of the folder of `keep`, last used longest ago first, never `keep`, until it
 * holds at most `cap` bytes; says so once. What cannot be removed is a warning. */
cs_status cs_cache_trim(const char *keep, int64_t cap, const cs_logger *logger) CS_MUST_USE;

/* What a profile holds, after parsing all of it. */
typedef struct cs_profile_summary {
  int method; /* version of measuring */
  int operations, complete, records, rejected, kernels,
      coruns;           /* kernels: candidates with theirs */
  int damaged, foreign; /* lines passed over */
} cs_profile_summary;
cs_status cs_profile_summarise(cs_profile *profile, cs_profile_summary *out) CS_MUST_USE;

#endif
