/* Files: whole reads, replacement by rename. Errors are IO and name the path. */
#ifndef CONVSCHED_BASE_FILE_H_
#define CONVSCHED_BASE_FILE_H_

#include <time.h>

#include "base/base.h"

/* Reads a file of at most `limit` bytes; a NUL is appended behind *length. BAD_INPUT if larger. */
cs_status cs_file_read(const char *path, size_t limit, char **out, size_t *length) CS_MUST_USE;
/* Writes path.tmp.PID, fsyncs, renames; removes those that killed processes left. A full disk
 * leaves the old file as it was. A device or pipe is written in place. */
cs_status cs_file_replace(const char *path, const void *data, size_t length) CS_MUST_USE;
/* The same piece by piece. Zero-initialise; what was opened is ended by commit (also where it
 * fails) or by abandon, which leaves the old file as it was. */
typedef struct cs_file_writer {
  char *path, *temporary; /* temporary: NULL where the file is written in place */
  int fd;
  int64_t written, begun; /* bytes: in all, and of those that are on their way to the disk */
} cs_file_writer;
cs_status cs_file_writer_open(cs_file_writer *writer, const char *path) CS_MUST_USE;
/* The same without a look for what killed processes left, which reads the folder: of many files of
 * one folder, where cs_file_tidy was called first. */
cs_status cs_file_writer_open_one_of_many(cs_file_writer *writer, const char *path) CS_MUST_USE;
cs_status cs_file_writer_append(cs_file_writer *writer, const void *data,
                                size_t length) CS_MUST_USE;
cs_status cs_file_writer_commit(cs_file_writer *writer) CS_MUST_USE;
void cs_file_writer_abandon(cs_file_writer *writer);
/* Removes what killed processes left of any of a folder's files whose name is `wanted`. What cannot
 * be listed or removed stays. */
void cs_file_tidy(const char *folder, bool (*wanted)(const char *name, const void *user),
                  const void *user);
/* What is there and no file (a folder, a device, a pipe) cannot be replaced by a rename. */
bool cs_file_is_in_place(const char *path);
/* IO where an open file has another size or time of modification than it had when it was opened. */
cs_status cs_file_check_unchanged(int fd, const char *path, size_t size,
                                  const struct timespec *modified) CS_MUST_USE;
/* IO now where cs_file_replace would fail later because of the folder, a permission or a folder in
 * its place. Leaves nothing behind, and an existing file as it is. */
cs_status cs_file_check_replace(const char *path) CS_MUST_USE;
/* A file that is not there is fine. */
cs_status cs_file_remove(const char *path) CS_MUST_USE;
/* mkdir -p. */
cs_status cs_make_directories(const char *path) CS_MUST_USE;
/* Directory part of `path` joined with `relative` (kept as is when absolute). free() releases. */
cs_status cs_path_beside(const char *path, const char *relative, char **out) CS_MUST_USE;

#endif
