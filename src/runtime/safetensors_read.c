#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "graph/op_family.h"
#include "runtime/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights and arrays are read and written on little-endian machines only"
#endif

#define HEADER_LIMIT UINT64_C(100000000)

struct cs_safetensors {
  char *path;
  int fd; /* open as long as the map is, to see that nobody writes; −1: not yet */
  struct timespec modified; /* when it was opened */
  void *map;                /* the whole file */
  size_t map_bytes;
  const unsigned char *data;
  uint64_t data_bytes;
  cs_safetensor *tensors; /* by name */
  int n_tensors;
};

typedef struct dtype_row {
  const char *name;
  int64_t bytes;
} dtype_row;

static const dtype_row dtypes[] = {{"F32", 4},  {"F16", 2}, {"BF16", 2},    {"F64", 8},
                                   {"I64", 8},  {"I32", 4}, {"I16", 2},     {"I8", 1},
                                   {"U64", 8},  {"U32", 4}, {"U16", 2},     {"U8", 1},
                                   {"BOOL", 1}, {"C64", 8}, {"F8_E5M2", 1}, {"F8_E4M3", 1}};

static const dtype_row *find_dtype(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
    if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
  }
  return NULL;
}

/* ---- The header ---- */

static cs_status parse_shape(const char *where, const char *name, const json_t *json,
                             cs_safetensor *tensor) {
  if (!json_is_array(json)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": \"shape\" is %s, wanted an array", where,
                    name, json ? "of another type" : "missing");
  }
  size_t rank = json_array_size(json);
  if (rank > CS_MAX_RANK) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": rank %zu, wanted at most %d", where,
                    name, rank, CS_MAX_RANK);
  }
  tensor->shape.rank = (int)rank;
  tensor->elements = 1;
  for (size_t i = 0; i < rank; i++) {
    const json_t *item = json_array_get(json, i);
    json_int_t extent = json_integer_value(item);
    if (!json_is_integer(item) || extent < 0) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: tensor \"%s\": shape[%zu] is not a non-negative integer", where, name,
                      i);
    }
    tensor->shape.dims[i] = extent;
    if (!cs_mul_i64(tensor->elements, extent, &tensor->elements)) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": the shape's element count overflows",
                      where, name);
    }
  }
  return CS_OK;
}

static cs_status parse_range(const char *where, const char *name, const json_t *json,
                             uint64_t data_bytes, cs_safetensor *tensor) {
  const json_t *begin = json_array_get(json, 0), *end = json_array_get(json, 1);
  if (json_array_size(json) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
      json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: tensor \"%s\": \"data_offsets\" must be [begin, end] with 0 <= begin <= "
                    "end",
                    where, name);
  }
  tensor->begin = (uint64_t)json_integer_value(begin);
  tensor->end = (uint64_t)json_integer_value(end);
  if (tensor->end > data_bytes) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: tensor \"%s\": data ends at byte %" PRIu64
                    ", past the end of the file's %" PRIu64 " data bytes",
                    where, name, tensor->end, data_bytes);
  }
  return CS_OK;
}

static cs_status parse_tensor(const char *where, const char *name, json_t *json,
                              uint64_t data_bytes, cs_safetensor *tensor) {
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 &&
        strcmp(key, "data_offsets") != 0) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": unknown key \"%s\"", where, name, key);
    }
  }
  char text[CS_TEXT_SIZE];
  const char *dtype = json_string_value(json_object_get(json, "dtype"));
  const dtype_row *row = dtype ? find_dtype(dtype) : NULL;
  if (!row) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": unknown dtype %s", where, name,
                    dtype ? dtype : "(none)");
  }
  tensor->dtype = row->name;
  CS_RETURN_IF_ERROR(parse_shape(where, name, json_object_get(json, "shape"), tensor));
  CS_RETURN_IF_ERROR(
      parse_range(where, name, json_object_get(json, "data_offsets"), data_bytes, tensor));
  int64_t bytes;
  if (!cs_mul_i64(tensor->elements, row->bytes, &bytes)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": the shape's byte count overflows", where,
                    name);
  }
  if (tensor->end - tensor->begin != (uint64_t)bytes) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: tensor \"%s\": %" PRIu64 " bytes of data, wanted %" PRId64
                    " for %s of shape %s",
                    where, name, tensor->end - tensor->begin, bytes, row->name,
                    cs_shape_text(&tensor->shape, text));
  }
  return cs_strdup_to(name, &tensor->name);
}

static cs_status check_metadata(const char *where, json_t *json) {
  const char *key;
  json_t *value;
  if (!json_is_object(json)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: \"__metadata__\" is not an object", where);
  }
  json_object_foreach(json, key, value) {
    if (!json_is_string(value)) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: \"__metadata__\": \"%s\" is not a string", where,
                      key);
    }
  }
  return CS_OK;
}

static int by_offset(const void *a, const void *b) {
  const cs_safetensor *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
  const cs_safetensor *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* The byte ranges must tile the data exactly. */
static cs_status check_tiling(cs_safetensors *file) {
  uint64_t end = 0;
  qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_offset);
  for (int i = 0; i < file->n_tensors; i++) {
    const cs_safetensor *tensor = &file->tensors[i];
    if (tensor->begin != end) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: tensor \"%s\": data begins at byte %" PRIu64 ", wanted %" PRIu64 " (%s)",
                      file->path, tensor->name, tensor->begin, end,
                      tensor->begin < end ? "it overlaps the tensor before" : "a hole");
    }
    end = tensor->end;
  }
  if (end != file->data_bytes) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: %" PRIu64 " bytes behind the last tensor belong to none", file->path,
                    file->data_bytes - end);
  }
  qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_name);
  return CS_OK;
}

static cs_status parse_header(cs_safetensors *file, const char *text, size_t length) {
  cs_status st = CS_OK;
  json_error_t error;
  const char *name;
  json_t *value, *root = NULL;
  if (length == 0 || text[0] != '{') {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT, "%s: the header does not begin with '{'", file->path);
  }
  root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT, "%s: header, byte %d: %s", file->path, error.position,
            error.text);
  }
  file->tensors = cs_calloc(json_object_size(root), sizeof *file->tensors);
  if (!file->tensors) {
    st = cs_no_memory("the tensor table", json_object_size(root) * sizeof *file->tensors);
    goto done;
  }
  json_object_foreach(root, name, value) {
    if (strcmp(name, "__metadata__") == 0) {
      CS_TRY(st, check_metadata(file->path, value), done);
      continue;
    }
    if (!json_is_object(value)) {
      CS_FAIL(st, done, CS_CODE_BAD_INPUT, "%s: tensor \"%s\" is not an object", file->path, name);
    }
    CS_TRY(st,
           parse_tensor(file->path, name, value, file->data_bytes, &file->tensors[file->n_tensors]),
           done);
    file->n_tensors++;
  }
  st = check_tiling(file);
done:
  json_decref(root);
  return st;
}

/* ---- The file ---- */

static cs_status map_file(cs_safetensors *file) {
  struct stat info;
  /* Not blocking: a pipe without a writer is refused, not waited for. */
  file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->fd < 0) return cs_io_error(file->path, "open", errno);
  if (fstat(file->fd, &info) != 0) return cs_io_error(file->path, "read", errno);
  if (!S_ISREG(info.st_mode)) {
    return cs_error(CS_CODE_IO, "%s: cannot map: not a regular file", file->path);
  }
  if (info.st_size < 8) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: %lld bytes, wanted at least the 8 of a safetensors header length",
                    file->path, (long long)info.st_size);
  }
  void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file->fd, 0);
  if (map == MAP_FAILED) return cs_io_error(file->path, "map", errno);
  file->map = map;
  file->map_bytes = (size_t)info.st_size;
  file->modified = info.st_mtim;
  return CS_OK;
}

cs_status cs_safetensors_check_unchanged(const cs_safetensors *file) {
  return cs_file_check_unchanged(file->fd, file->path, file->map_bytes, &file->modified);
}

cs_status cs_safetensors_open(const char *path, cs_safetensors **out) {
  cs_status st = CS_OK;
  *out = NULL;
  cs_safetensors *file = cs_calloc(1, sizeof *file);
  if (!file) return cs_no_memory("a safetensors file", sizeof *file);
  file->fd = -1;
  CS_TRY(st, cs_strdup_to(path, &file->path), done);
  CS_TRY(st, map_file(file), done);
  uint64_t header_bytes;
  memcpy(&header_bytes, file->map, sizeof header_bytes);
  if (header_bytes > HEADER_LIMIT) {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT,
            "%s: header of %" PRIu64 " bytes, wanted at most %" PRIu64
            " (is this a safetensors file?)",
            path, header_bytes, HEADER_LIMIT);
  }
  if (header_bytes > file->map_bytes - 8) {
    CS_FAIL(st, done, CS_CODE_BAD_INPUT,
            "%s: header of %" PRIu64 " bytes in a file of %zu: the file is cut off", path,
            header_bytes, file->map_bytes);
  }
  file->data = (const unsigned char *)file->map + 8 + header_bytes;
  file->data_bytes = file->map_bytes - 8 - header_bytes;
  CS_TRY(st, parse_header(file, (const char *)file->map + 8, (size_t)header_bytes), done);
  *out = file, file = NULL;
done:
  cs_safetensors_close(file);
  return st;
}

void cs_safetensors_close(cs_safetensors *file) {
  if (!file) return;
  for (int i = 0; i < file->n_tensors; i++) free(file->tensors[i].name);
  free(file->tensors);
  if (file->map) munmap(file->map, file->map_bytes);
  if (file->fd >= 0) close(file->fd);
  free(file->path);
  free(file);
}

int cs_safetensors_count(const cs_safetensors *file) {
  return file->n_tensors;
}

static int name_against_tensor(const void *key, const void *element) {
  return strcmp(key, ((const cs_safetensor *)element)->name);
}

const cs_safetensor *cs_safetensors_find(const cs_safetensors *file, const char *name) {
  return bsearch(name, file->tensors, (size_t)file->n_tensors, sizeof *file->tensors,
                 name_against_tensor);
}

static bool is_dtype(const cs_safetensor *tensor, const char *dtype) {
  return strcmp(tensor->dtype, dtype) == 0;
}

cs_status cs_safetensors_check_f32(const cs_safetensors *file, const cs_safetensor *tensor) {
  if (is_dtype(tensor, "F32") || is_dtype(tensor, "F16") || is_dtype(tensor, "BF16")) return CS_OK;
  return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": dtype %s, wanted F32, F16 or BF16",
                  file->path, tensor->name, tensor->dtype);
}

const float *cs_safetensors_f32(const cs_safetensors *file, const cs_safetensor *tensor) {
  const unsigned char *data = file->data + tensor->begin;
  bool aligned = (uintptr_t)data % sizeof(float) == 0;
  return aligned && is_dtype(tensor, "F32") ? (const float *)(const void *)data : NULL;
}

/* Whole pages of its own only: what shares one with it may be in use. */
void cs_safetensors_release(const cs_safetensors *file, const cs_safetensor *tensor) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)file->data;
  uintptr_t begin = (data + tensor->begin + page - 1) / page * page;
  uintptr_t end = (data + tensor->end) / page * page;
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

cs_status cs_safetensors_read_f32(const cs_safetensors *file, const cs_safetensor *tensor,
                                  float *out) {
  const unsigned char *from = file->data + tensor->begin;
  size_t count = (size_t)tensor->elements;
  CS_RETURN_IF_ERROR(cs_safetensors_check_f32(file, tensor));
  if (is_dtype(tensor, "F32")) {
    if (count > 0) memcpy(out, from, count * sizeof *out);
    return CS_OK;
  }
  bool f16 = is_dtype(tensor, "F16");
  for (size_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, from + 2 * i, sizeof bits);
    out[i] = f16 ? cs_f16_to_f32(bits) : cs_bf16_to_f32(bits);
  }
  return CS_OK;
}
