#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY ".tmp." /* between a file's name and its writer's number */

cs_status cs_file_read(const char *path, size_t limit, char **out, size_t *length) {
  cs_status st = CS_OK;
  char *data = NULL;
  size_t used = 0, capacity = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cs_io_error(path, "open", errno);
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    st = cs_io_error(path, "read", EISDIR);
    goto done;
  }
  if (S_ISREG(info.st_mode) && (uint64_t)info.st_size <= limit) {
    /* One allocation, never touched before it is read into: room for the NUL, and for the byte that
     * a read at the end is asked for. */
    capacity = (size_t)info.st_size + 2;
    data = cs_calloc(capacity, 1);
    if (!data) {
      st = cs_no_memory(path, capacity);
      goto done;
    }
  }
  for (;;) {
    if (used > limit) {
      CS_FAIL(st, done, CS_CODE_BAD_INPUT, "%s: larger than the limit of %zu bytes", path, limit);
    }
    if (capacity - used < 2) CS_TRY(st, cs_grow(&data, &capacity, used + 65536, 1), done);
    ssize_t n = read(fd, data + used, capacity - used - 1);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      st = cs_io_error(path, "read", errno);
      goto done;
    }
    if (n == 0) break;
    used += (size_t)n;
  }
  data[used] = '\0';
  *out = data;
  *length = used;
  data = NULL;
done:
  free(data);
  close(fd);
  return st;
}

static cs_status write_all(int fd, const char *path, const void *data, size_t length) {
  const char *next = data;
  while (length > 0) {
    ssize_t n = write(fd, next, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cs_io_error(path, "write", errno);
    next += n;
    length -= (size_t)n;
  }
  return CS_OK;
}

/* Nothing is opened: a pipe's reader would take that for the end. */
static cs_status check_in_place(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return cs_io_error(path, "open", EISDIR);
  return access(path, W_OK) == 0 ? CS_OK : cs_io_error(path, "open", errno);
}

bool cs_file_is_in_place(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* The file beside `path` that a rename then puts in its place. The lock tells other processes, also
 * those that see no process of this number, that it is being written. */
static cs_status create_temporary(const char *path, char **temporary, int *fd) {
  cs_strbuf name = {0};
  cs_strbuf_printf(&name, "%s" TEMPORARY "%ld", path, (long)getpid());
  CS_RETURN_IF_ERROR(cs_strbuf_take(&name, temporary));
  *fd = open(*temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (*fd >= 0) {
    flock(*fd, LOCK_EX | LOCK_NB);
    return CS_OK;
  }
  cs_status st = cs_io_error(path, "create", errno);
  free(*temporary);
  *temporary = NULL;
  return st;
}

/* Whether `name` is a file's name, ".tmp." and the number of a process that is no more; the file's
 * name is written to `of`. */
static bool is_left_over(const char *name, char of[NAME_MAX + 1]) {
  const char *mark = NULL;
  for (const char *next = name; (next = strstr(next, TEMPORARY)); next++) mark = next;
  if (!mark || mark == name || mark - name > NAME_MAX) return false;
  const char *number = mark + strlen(TEMPORARY);
  if (*number < '1' || *number > '9') return false;
  char *end;
  errno = 0;
  long pid = strtol(number, &end, 10);
  if (*end || errno != 0 || pid > INT_MAX) return false;
  snprintf(of, NAME_MAX + 1, "%.*s", (int)(mark - name), name);
  return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Where no lock can be had (a writer elsewhere, a file system without locks), it stays. */
static void remove_unlocked(int folder, const char *name) {
  int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
  close(fd);
}

void cs_file_tidy(const char *folder, bool (*wanted)(const char *name, const void *user),
                  const void *user) {
  char of[NAME_MAX + 1];
  DIR *open_folder = opendir(folder);
  for (const struct dirent *entry; open_folder && (entry = readdir(open_folder));) {
    if (!is_left_over(entry->d_name, of) || !wanted(of, user)) continue;
    remove_unlocked(dirfd(open_folder), entry->d_name);
  }
  if (open_folder) closedir(open_folder);
}

static bool is_name(const char *name, const void *user) {
  return strcmp(name, user) == 0;
}

/* Temporary files of processes that were killed while they wrote `path`. */
static void remove_leftovers(const char *path) {
  char *folder = NULL;
  const char *slash = strrchr(path, '/');
  cs_status_free(cs_path_beside(path, ".", &folder));
  if (folder) cs_file_tidy(folder, is_name, slash ? slash + 1 : path);
  free(folder);
}

cs_status cs_file_check_unchanged(int fd, const char *path, size_t size,
                                  const struct timespec *modified) {
  struct stat info;
  if (fstat(fd, &info) != 0) return cs_io_error(path, "read", errno);
  if ((uintmax_t)info.st_size != size) {
    return cs_error(CS_CODE_IO,
                    "%s: found %lld bytes, wanted the %zu that it had when it was opened: it was "
                    "written while in use",
                    path, (long long)info.st_size, size);
  }
  if (info.st_mtim.tv_sec != modified->tv_sec || info.st_mtim.tv_nsec != modified->tv_nsec) {
    return cs_error(CS_CODE_IO,
                    "%s: found it modified since it was opened, wanted a file that stays as it is: "
                    "it was written while in use",
                    path);
  }
  return CS_OK;
}

cs_status cs_file_check_replace(const char *path) {
  char *temporary = NULL;
  int fd;
  if (cs_file_is_in_place(path)) return check_in_place(path);
  CS_RETURN_IF_ERROR(create_temporary(path, &temporary, &fd));
  close(fd);
  unlink(temporary);
  free(temporary);
  return CS_OK;
}

/* A device or a pipe cannot be replaced by a rename, only written. */
cs_status cs_file_writer_open_one_of_many(cs_file_writer *writer, const char *path) {
  *writer = (cs_file_writer){.fd = -1};
  CS_RETURN_IF_ERROR(cs_strdup_to(path, &writer->path));
  cs_status st = CS_OK;
  if (!cs_file_is_in_place(path)) {
    st = create_temporary(path, &writer->temporary, &writer->fd);
  } else {
    writer->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (writer->fd < 0) st = cs_io_error(path, "open", errno);
  }
  if (st != CS_OK) cs_file_writer_abandon(writer);
  return st;
}

cs_status cs_file_writer_open(cs_file_writer *writer, const char *path) {
  if (!cs_file_is_in_place(path)) remove_leftovers(path);
  return cs_file_writer_open_one_of_many(writer, path);
}

#define FLUSH_BYTES ((int64_t)8 << 20)

/* Data goes to the disk while more is written, a piece behind: a process cannot be ended inside of
 * fsync, which would otherwise have all of a large file left to do. What fails here fails there
 * again. */
static void flush_behind(cs_file_writer *writer) {
  const unsigned wait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (writer->written - writer->begun < FLUSH_BYTES) return;
  (void)sync_file_range(writer->fd, writer->begun, writer->written - writer->begun,
                        SYNC_FILE_RANGE_WRITE);
  if (writer->begun > 0) {
    int64_t from = cs_max_i64(0, writer->begun - 2 * FLUSH_BYTES);
    (void)sync_file_range(writer->fd, from, writer->begun - from, wait);
  }
  writer->begun = writer->written;
}

cs_status cs_file_writer_append(cs_file_writer *writer, const void *data, size_t length) {
  const char *next = data;
  while (length > 0) {
    size_t piece = length < (size_t)FLUSH_BYTES ? length : (size_t)FLUSH_BYTES;
    CS_RETURN_IF_ERROR(write_all(writer->fd, writer->path, next, piece));
    writer->written += (int64_t)piece;
    if (writer->temporary) flush_behind(writer);
    next += piece;
    length -= piece;
  }
  return CS_OK;
}

cs_status cs_file_writer_commit(cs_file_writer *writer) {
  cs_status st = CS_OK;
  const char *path = writer->path;
  bool replaces = writer->temporary != NULL;
  if (replaces && fsync(writer->fd) != 0 && errno != EINVAL && errno != EROFS) {
    st = cs_io_error(path, "write", errno);
  }
  if (replaces && st == CS_OK && rename(writer->temporary, path) != 0) {
    st = cs_io_error(path, "replace", errno);
  }
  int fd = writer->fd;
  writer->fd = -1;
  if (close(fd) != 0 && st == CS_OK) st = cs_io_error(path, "close", errno);
  if (st == CS_OK) {
    free(writer->temporary);
    writer->temporary = NULL;
  }
  cs_file_writer_abandon(writer);
  return st;
}

void cs_file_writer_abandon(cs_file_writer *writer) {
  if (!writer->path) return;
  if (writer->fd >= 0) close(writer->fd);
  if (writer->temporary) unlink(writer->temporary);
  free(writer->temporary);
  free(writer->path);
  *writer = (cs_file_writer){.fd = -1};
}

cs_status cs_file_replace(const char *path, const void *data, size_t length) {
  cs_file_writer writer;
  CS_RETURN_IF_ERROR(cs_file_writer_open(&writer, path));
  cs_status st = cs_file_writer_append(&writer, data, length);
  if (st == CS_OK) return cs_file_writer_commit(&writer);
  cs_file_writer_abandon(&writer);
  return st;
}

cs_status cs_make_directories(const char *path) {
  cs_status st = CS_OK;
  char *copy = NULL;
  CS_RETURN_IF_ERROR(cs_strdup_to(path, &copy));
  for (char *p = copy + 1; st == CS_OK; p++) {
    if (*p != '/' && *p != '\0') continue;
    char end = *p;
    *p = '\0';
    if (mkdir(copy, 0777) != 0 && errno != EEXIST)
      st = cs_io_error(copy, "create directory", errno);
    *p = end;
    if (end == '\0') break;
  }
  free(copy);
  return st;
}

cs_status cs_file_remove(const char *path) {
  if (unlink(path) == 0 || errno == ENOENT) return CS_OK;
  return cs_io_error(path, "remove", errno);
}

cs_status cs_path_beside(const char *path, const char *relative, char **out) {
  const char *slash = strrchr(path, '/');
  if (relative[0] == '/' || !slash) return cs_strdup_to(relative, out);
  cs_strbuf joined = {0};
  cs_strbuf_append(&joined, path, (size_t)(slash - path) + 1);
  cs_strbuf_append(&joined, relative, strlen(relative));
  return cs_strbuf_take(&joined, out);
}
