#include "profiler/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"

/* What may lie beside a database file. */
static const char *const beside[] = {".damaged", ".lock"};

/* ---- Listing ---- */

static int64_t size_beside(const char *path, const char *suffix) {
  cs_strbuf name = {0};
  char *text = NULL;
  struct stat info;
  cs_strbuf_printf(&name, "%s%s", path, suffix);
  cs_status st = cs_strbuf_take(&name, &text);
  int64_t bytes = st == CS_OK && stat(text, &info) == 0 ? (int64_t)info.st_size : 0;
  cs_status_free(st);
  free(text);
  return bytes;
}

static int compare_use(const void *a, const void *b) {
  const cs_cache_file *x = a, *y = b;
  if (x->last_use != y->last_use) return x->last_use > y->last_use ? -1 : 1;
  return strcmp(x->path, y->path);
}

static cs_status add_file(cs_cache_files *files, size_t *capacity, const char *directory,
                          const char *name) {
  struct stat info;
  cs_strbuf text = {0};
  char *path = NULL;
  cs_strbuf_printf(&text, "%s/%s", directory, name);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &path));
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) { /* gone meanwhile, or not ours */
    free(path);
    return CS_OK;
  }
  cs_status st = cs_grow(&files->items, capacity, (size_t)files->n + 1, sizeof *files->items);
  if (st != CS_OK) {
    free(path);
    return st;
  }
  time_t used = info.st_atime > info.st_mtime ? info.st_atime : info.st_mtime;
  cs_cache_file file = {path, (int64_t)info.st_size + size_beside(path, ".damaged"), (int64_t)used};
  files->items[files->n++] = file;
  files->bytes += file.bytes;
  return CS_OK;
}

cs_status cs_cache_list(const char *directory, cs_cache_files *out) {
  size_t capacity = 0;
  *out = (cs_cache_files){0};
  DIR *folder = opendir(directory);
  if (!folder && errno == ENOENT) return CS_OK;
  if (!folder) return cs_io_error(directory, "list", errno);
  cs_status st = CS_OK;
  for (const struct dirent *entry; st == CS_OK && (entry = readdir(folder));) {
    if (fnmatch("profile-*.jsonl", entry->d_name, 0) != 0) continue;
    st = add_file(out, &capacity, directory, entry->d_name);
  }
  closedir(folder);
  if (st != CS_OK) cs_cache_files_clear(out);
  if (out->n > 1) qsort(out->items, (size_t)out->n, sizeof *out->items, compare_use);
  return st;
}

void cs_cache_files_clear(cs_cache_files *files) {
  for (int i = 0; i < files->n; i++) free(files->items[i].path);
  free(files->items);
  *files = (cs_cache_files){0};
}

/* ---- Removing ---- */

static cs_status remove_one(const char *path, const char *suffix) {
  cs_strbuf text = {0};
  char *name = NULL;
  cs_strbuf_printf(&text, "%s%s", path, suffix);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&text, &name));
  cs_status st = cs_file_remove(name);
  free(name);
  return st;
}

cs_status cs_cache_remove(const char *path) {
  int lock = -1;
  CS_RETURN_IF_ERROR(cs_database_lock(path, LOCK_EX, &lock));
  cs_status st = cs_database_remove_leftovers(path);
  if (st == CS_OK) st = remove_one(path, "");
  for (size_t i = 0; i < sizeof beside / sizeof beside[0] && st == CS_OK; i++) {
    st = remove_one(path, beside[i]);
  }
  close(lock);
  return st;
}

/* ---- The limit ---- */

void cs_cache_touch(const char *path) {
  /* The time of access, for file systems that do not keep it. A file of somebody else's cannot be
   * marked, and will not be removed by us either. */
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  (void)utimensat(AT_FDCWD, path, times, 0);
}

cs_status cs_cache_cap(int64_t *bytes) {
  const char *text = getenv(CS_CACHE_CAP_VARIABLE);
  *bytes = CS_CACHE_CAP_DEFAULT;
  if (!text || !text[0]) return CS_OK;
  if (cs_parse_bytes(text, bytes)) return CS_OK;
  return cs_error(CS_CODE_USAGE,
                  CS_CACHE_CAP_VARIABLE " \"%s\": wanted bytes, as 64M or 2G; 0 for no limit",
                  text);
}

static void trim_files(const cs_cache_files *files, const char *keep, int64_t cap,
                       const cs_logger *logger) {
  int64_t bytes = files->bytes;
  int removed = 0;
  for (int i = files->n - 1; i >= 0 && bytes > cap; i--) {
    const cs_cache_file *file = &files->items[i];
    if (strcmp(file->path, keep) == 0) continue;
    cs_status st = cs_cache_remove(file->path);
    if (st == CS_OK) {
      bytes -= file->bytes;
      removed++;
    } else {
      cs_log(logger, CS_LOG_WARNING, "the cache is larger than its limit: %s",
             cs_status_message(st));
      cs_status_free(st);
    }
  }
  if (removed == 0) return;
  cs_log(logger, CS_LOG_WARNING,
         "the cache held more than %lld bytes (" CS_CACHE_CAP_VARIABLE
         "): %d profile%s of other devices, used longest ago, %s removed",
         (long long)cap, removed, removed == 1 ? "" : "s", removed == 1 ? "was" : "were");
}

cs_status cs_cache_trim(const char *keep, int64_t cap, const cs_logger *logger) {
  cs_cache_files files;
  char *directory = NULL;
  if (cap == 0) return CS_OK;
  CS_RETURN_IF_ERROR(cs_strdup_to(keep, &directory));
  char *slash = strrchr(directory, '/');
  if (slash) *slash = '\0';
  cs_status st = cs_cache_list(slash ? directory : ".", &files);
  free(directory);
  if (st != CS_OK) return st;
  if (files.bytes > cap) trim_files(&files, keep, cap, logger);
  cs_cache_files_clear(&files);
  return CS_OK;
}

/* ---- What a profile holds ---- */

cs_status cs_profile_summarise(cs_profile *profile, cs_profile_summary *out) {
  *out = (cs_profile_summary){.method = profile->method};
  for (size_t i = 0; i < profile->n_entries; i++) {
    cs_profile_entry *entry = profile->entries[i];
    CS_RETURN_IF_ERROR(cs_profile_materialise(profile, entry));
    out->operations += entry->op.n_records > 0;
    out->complete += entry->op.n_records > 0 && entry->op.complete;
    out->records += entry->op.n_records;
    out->coruns += (int)entry->n_coruns;
    for (int r = 0; r < entry->op.n_records; r++) {
      out->rejected += entry->op.records[r].measured.rejected;
      out->kernels += entry->op.records[r].n_kernels > 0;
    }
  }
  out->damaged = profile->damaged.n;
  out->foreign = profile->foreign.n;
  return CS_OK;
}
