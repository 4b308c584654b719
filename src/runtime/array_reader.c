/* Arrays read piece by piece. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/op_family.h"
#include "runtime/npy.h"

#define HEAD_BYTES 65536
#define PIECE ((int64_t)1 << 16) /* elements converted at a time */

struct cs_array_reader {
  int fd;
  char *path;
  cs_npy_header header;
  int64_t count, next;
};

/* Up to `length` bytes; fewer at the end of the file. */
static cs_status read_at(const cs_array_reader *reader, int64_t offset, char *out, size_t length,
                         size_t *got) {
  *got = 0;
  while (*got < length) {
    ssize_t n = pread(reader->fd, out + *got, length - *got, (off_t)(offset + (int64_t)*got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cs_io_error(reader->path, "read", errno);
    if (n == 0) break;
    *got += (size_t)n;
  }
  return CS_OK;
}

static cs_status check_length(const cs_array_reader *reader) {
  struct stat info;
  if (fstat(reader->fd, &info) != 0) return cs_io_error(reader->path, "read", errno);
  int64_t bytes;
  if (!cs_mul_i64(reader->count, cs_npy_type_size(reader->header.type), &bytes) ||
      !cs_add_i64(bytes, (int64_t)reader->header.data_offset, &bytes) || info.st_size != bytes) {
    char text[CS_TEXT_SIZE];
    return cs_error(CS_CODE_BAD_INPUT, "%s: %lld bytes, wanted those of shape %s", reader->path,
                    (long long)info.st_size, cs_shape_text(&reader->header.shape, text));
  }
  return CS_OK;
}

static cs_status open_file(cs_array_reader *reader, const char *path) {
  size_t length = 0;
  CS_RETURN_IF_ERROR(cs_strdup_to(path, &reader->path));
  reader->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (reader->fd < 0) return cs_io_error(path, "open", errno);
  char *head = cs_calloc(1, HEAD_BYTES);
  if (!head) return cs_no_memory(path, HEAD_BYTES);
  cs_status st = read_at(reader, 0, head, HEAD_BYTES, &length);
  if (st == CS_OK) st = cs_annotate(cs_npy_parse(head, length, &reader->header), "%s: ", path);
  free(head);
  CS_RETURN_IF_ERROR(st);
  CS_RETURN_IF_ERROR(
      cs_annotate(cs_shape_elements(&reader->header.shape, &reader->count), "%s: ", path));
  return check_length(reader);
}

cs_status cs_array_reader_open(const char *path, cs_array_reader **out) {
  *out = NULL;
  cs_array_reader *reader = cs_calloc(1, sizeof *reader);
  if (!reader) return cs_no_memory(path, sizeof *reader);
  reader->fd = -1;
  cs_status st = open_file(reader, path);
  if (st != CS_OK) {
    cs_array_reader_close(reader);
    return st;
  }
  *out = reader;
  return CS_OK;
}

void cs_array_reader_shape(const cs_array_reader *reader, int *rank, int64_t dims[8]) {
  *rank = reader->header.shape.rank;
  memcpy(dims, reader->header.shape.dims, CS_MAX_RANK * sizeof *dims);
}

static cs_status read_piece(const cs_array_reader *reader, char *bytes, int64_t count, float *out) {
  int64_t size = cs_npy_type_size(reader->header.type);
  int64_t offset = (int64_t)reader->header.data_offset + reader->next * size;
  size_t got = 0;
  CS_RETURN_IF_ERROR(read_at(reader, offset, bytes, (size_t)(count * size), &got));
  if (got != (size_t)(count * size)) {
    return cs_error(CS_CODE_IO, "%s: was cut off while it was read", reader->path);
  }
  for (int64_t i = 0; i < count; i++) out[i] = cs_npy_element(bytes, reader->header.type, i);
  return CS_OK;
}

cs_status cs_array_reader_next(cs_array_reader *reader, int64_t count, float *out) {
  if (count < 0 || count > reader->count - reader->next) {
    return cs_error(CS_CODE_USAGE, "%s: %" PRId64 " elements wanted, %" PRId64 " are left",
                    reader->path, count, reader->count - reader->next);
  }
  char *bytes = cs_calloc((size_t)PIECE, sizeof(double));
  if (!bytes) return cs_no_memory(reader->path, (size_t)PIECE * sizeof(double));
  cs_status st = CS_OK;
  while (count > 0 && st == CS_OK) {
    int64_t piece = cs_min_i64(count, PIECE);
    st = read_piece(reader, bytes, piece, out);
    reader->next += piece;
    out += piece;
    count -= piece;
  }
  free(bytes);
  return st;
}

void cs_array_reader_close(cs_array_reader *reader) {
  if (!reader) return;
  if (reader->fd >= 0) close(reader->fd);
  free(reader->path);
  free(reader);
}
