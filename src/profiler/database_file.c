/* The file of the database: appending under one lock (`path`.lock). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/database.h"

/* A folder that cannot be written may still be read, under a lock that others have created. */
static int open_lock(const char *lock_path, int operation) {
  int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 && operation == LOCK_SH) fd = open(lock_path, O_RDONLY | O_CLOEXEC);
  return fd;
}

static int flock_patiently(int fd, int operation) {
  int rc;
  while ((rc = flock(fd, operation)) != 0 && errno == EINTR) continue;
  return rc;
}

/* The lock is of the file that has the name now, not of one that was removed while we waited. */
static bool is_current(int fd, const char *lock_path) {
  struct stat held, named;
  return fstat(fd, &held) == 0 && stat(lock_path, &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

cs_status cs_database_lock(const char *path, int operation, int *out) {
  cs_status st = CS_OK;
  cs_strbuf name = {0};
  char *lock_path = NULL;
  cs_strbuf_printf(&name, "%s.lock", path);
  CS_RETURN_IF_ERROR(cs_strbuf_take(&name, &lock_path));
  for (;;) {
    *out = open_lock(lock_path, operation);
    if (*out < 0) {
      st = cs_io_error(lock_path, "create", errno);
      break;
    }
    if (flock_patiently(*out, operation) != 0) {
      st = cs_io_error(lock_path, "lock", errno);
      close(*out);
      *out = -1;
      break;
    }
    if (is_current(*out, lock_path)) break;
    close(*out);
  }
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

cs_status cs_database_append_unlocked(const char *path, const char *line, size_t length) {
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
  CS_RETURN_IF_ERROR(cs_database_lock(path, LOCK_EX, &lock));
  cs_status st = cs_database_append_unlocked(path, line, length);
  close(lock);
  return st;
}

static bool is_absent(const char *path) {
  return access(path, F_OK) != 0 && errno == ENOENT;
}

/* A pipe would be waited for; what is no file cannot be appended to and replaced. */
static cs_status check_regular(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) return CS_OK;
  if (S_ISDIR(info.st_mode)) return cs_io_error(path, "read", EISDIR);
  return cs_error(CS_CODE_IO, "%s: found a device or a pipe, wanted a file", path);
}

cs_status cs_database_read(const char *path, char **out, size_t *length) {
  int lock = -1;
  *length = 0;
  if (is_absent(path)) return cs_strdup_to("", out); /* and no lock file is left beside nothing */
  CS_RETURN_IF_ERROR(check_regular(path));
  /* Where no lock can be had (a folder of others, never written to), there is none to wait for. */
  cs_status st = cs_database_lock(path, LOCK_SH, &lock);
  cs_status_free(st);
  /* It may have been removed while we waited. */
  st = is_absent(path) ? cs_strdup_to("", out)
                       : cs_file_read(path, CS_PROFILE_FILE_LIMIT, out, length);
  if (lock >= 0) close(lock);
  return st;
}

/* ---- What a killed process leaves behind ---- */

static cs_status remove_beside(const char *path, const char *name) {
  char *found = NULL;
  CS_RETURN_IF_ERROR(cs_path_beside(path, name, &found));
  cs_status st = cs_file_remove(found);
  free(found);
  return st;
}

cs_status cs_database_remove_leftovers(const char *path) {
  cs_status st = CS_OK;
  char *directory = NULL, prefix[NAME_MAX + 1];
  CS_RETURN_IF_ERROR(cs_path_beside(path, ".", &directory));
  const char *slash = strrchr(path, '/');
  snprintf(prefix, sizeof prefix, "%s.tmp.", slash ? slash + 1 : path);
  DIR *folder = opendir(directory);
  if (!folder) st = cs_io_error(directory, "list", errno);
  for (const struct dirent *entry; folder && st == CS_OK && (entry = readdir(folder));) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    st = remove_beside(path, entry->d_name);
  }
  if (folder) closedir(folder);
  free(directory);
  return st;
}
