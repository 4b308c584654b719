#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graph/op_family.h"
#include "runtime/npy.h"
#include "runtime/params.h"

#define NPY_HEADER_LIMIT 65536

static bool is_npy(const char *path) {
  size_t length = strlen(path);
  return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* Where the data of a file's contents lies, after checking shape and length. */
static cs_status locate(const char *path, const cs_shape *want, int64_t count, const char *data,
                        size_t length, cs_npy_header *header) {
  char found[CS_TEXT_SIZE], wanted[CS_TEXT_SIZE];
  *header = (cs_npy_header){.type = CS_NPY_F4, .shape = *want};
  if (is_npy(path)) {
    CS_RETURN_IF_ERROR(cs_annotate(cs_npy_parse(data, length, header), "%s: ", path));
    if (!cs_shape_equal(&header->shape, want)) {
      return cs_error(CS_CODE_BAD_INPUT, "%s: shape %s, wanted %s", path,
                      cs_shape_text(&header->shape, found), cs_shape_text(want, wanted));
    }
  }
  size_t bytes = (size_t)(count * cs_npy_type_size(header->type));
  if (length - header->data_offset != bytes) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: %zu bytes of data, wanted %zu for shape %s", path,
                    length - header->data_offset, bytes, cs_shape_text(want, wanted));
  }
  return CS_OK;
}

static cs_status count_of(const char *path, const cs_shape *shape, int64_t *count,
                          int64_t *most_bytes) {
  char text[CS_TEXT_SIZE];
  CS_RETURN_IF_ERROR(cs_annotate(cs_shape_elements(shape, count), "%s: ", path));
  if (!cs_mul_i64(*count, (int64_t)sizeof(double), most_bytes) ||
      !cs_add_i64(*most_bytes, NPY_HEADER_LIMIT, most_bytes)) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: the byte count of shape %s overflows", path,
                    cs_shape_text(shape, text));
  }
  return CS_OK;
}

cs_status cs_array_read(const char *path, const cs_shape *want, float **out) {
  cs_status st = CS_OK;
  char *data = NULL;
  float *array = NULL;
  size_t length = 0;
  int64_t count, most_bytes;
  cs_npy_header header;
  *out = NULL;
  CS_TRY(st, count_of(path, want, &count, &most_bytes), done);
  CS_TRY(st, cs_file_read(path, (size_t)most_bytes, &data, &length), done);
  CS_TRY(st, locate(path, want, count, data, length, &header), done);
  array = cs_calloc((size_t)count, sizeof *array);
  if (!array) {
    st = cs_no_memory(path, (size_t)count * sizeof *array);
    goto done;
  }
  for (int64_t i = 0; i < count; i++) {
    array[i] = cs_npy_element(data + header.data_offset, header.type, i);
  }
  *out = array, array = NULL;
done:
  free(array);
  free(data);
  return st;
}

cs_status cs_array_write(const char *path, const cs_shape *shape, const float *data) {
  cs_status st = CS_OK;
  cs_strbuf contents = {0};
  char *text = NULL;
  int64_t count, most_bytes;
  CS_TRY(st, count_of(path, shape, &count, &most_bytes), done);
  if (is_npy(path)) cs_npy_format(shape, &contents);
  if (count > 0) cs_strbuf_append(&contents, (const char *)data, (size_t)count * sizeof *data);
  size_t length = contents.length;
  CS_TRY(st, cs_strbuf_take(&contents, &text), done);
  st = cs_file_replace(path, text, length);
done:
  cs_strbuf_free(&contents);
  free(text);
  return st;
}
