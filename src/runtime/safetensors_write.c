#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/progress.h"
#include "runtime/safetensors.h"

static const char *format_dtype(cs_dtype dtype) {
  switch (dtype) {
    case CS_DTYPE_F32:
      return "F32";
    case CS_DTYPE_F16:
      return "F16";
    case CS_DTYPE_BF16:
      return "BF16";
  }
  return NULL;
}

static cs_status header_entry(const cs_safetensors_item *item, const char *dtype, int64_t begin,
                              int64_t end, json_t *root) {
  json_t *shape = json_array();
  for (int i = 0; shape && i < item->shape->rank; i++) {
    json_array_append_new(shape, json_integer(item->shape->dims[i]));
  }
  json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                            (json_int_t)begin, (json_int_t)end);
  if (!entry) return cs_no_memory("a safetensors header", 0);
  if (json_object_get(root, item->name)) {
    json_decref(entry);
    return cs_error(CS_CODE_BAD_INPUT, "tensor \"%s\" is given twice", item->name);
  }
  if (json_object_set_new(root, item->name, entry) != 0) {
    return cs_error(CS_CODE_BAD_INPUT, "tensor \"%s\": the name is not UTF-8", item->name);
  }
  return CS_OK;
}

static void convert(const float *from, int64_t count, cs_dtype dtype, char *to) {
  if (dtype == CS_DTYPE_F32) {
    if (count > 0) memcpy(to, from, (size_t)count * sizeof *from);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits = dtype == CS_DTYPE_F16 ? cs_f32_to_f16(from[i]) : cs_f32_to_bf16(from[i]);
    memcpy(to + 2 * i, &bits, sizeof bits);
  }
}

/* The header's text, padded with spaces so that the data behind it is 8-byte aligned; and the
 * number of data bytes. */
static cs_status make_header(cs_dtype dtype, const cs_safetensors_item *items, int n_items,
                             char **out, size_t *length, int64_t *data_bytes) {
  cs_status st = CS_OK;
  char *text = NULL;
  cs_strbuf buffer = {0};
  *data_bytes = 0;
  json_t *root = json_object();
  if (!root) return cs_no_memory("a safetensors header", 0);
  for (int i = 0; i < n_items; i++) {
    int64_t elements, bytes, end;
    CS_TRY(st, cs_shape_elements(items[i].shape, &elements), done);
    if (!cs_mul_i64(elements, cs_dtype_size(dtype), &bytes) ||
        !cs_add_i64(*data_bytes, bytes, &end)) {
      CS_FAIL(st, done, CS_CODE_BAD_INPUT, "tensor \"%s\": the byte count overflows",
              items[i].name);
    }
    CS_TRY(st, header_entry(&items[i], format_dtype(dtype), *data_bytes, end, root), done);
    *data_bytes = end;
  }
  text = json_dumps(root, JSON_COMPACT);
  if (!text) {
    st = cs_no_memory("a safetensors header", 0);
    goto done;
  }
  cs_strbuf_printf(&buffer, "%s", text);
  while (buffer.length % 8 != 0) cs_strbuf_append(&buffer, " ", 1);
  *length = buffer.length;
  st = cs_strbuf_take(&buffer, out);
done:
  free(text);
  json_decref(root);
  return st;
}

#define PIECE ((int64_t)1 << 20) /* elements converted and written at a time */

typedef struct pieces {
  cs_file_writer file;
  int64_t written, all; /* bytes of elements */
  cs_dtype dtype;
  cs_safetensors_fill fill;
  const void *user;
  float *given;    /* what `fill` gave */
  char *converted; /* to the file's type */
} pieces;

static cs_status write_item(pieces *to, const cs_safetensors_item *item) {
  int64_t elements;
  CS_RETURN_IF_ERROR(cs_shape_elements(item->shape, &elements));
  for (int64_t first = 0; first < elements; first += PIECE) {
    int64_t count = cs_min_i64(PIECE, elements - first);
    const float *from = item->data ? item->data + first : to->given;
    if (!item->data) {
      CS_RETURN_IF_ERROR(to->fill(to->user, item->name, first, count, to->given));
    }
    convert(from, count, to->dtype, to->converted);
    size_t bytes = (size_t)(count * cs_dtype_size(to->dtype));
    cs_progress_step("writing weights", "bytes", to->written, to->all, "%s", item->name);
    to->written += (int64_t)bytes;
    CS_RETURN_IF_ERROR(cs_file_writer_append(&to->file, to->converted, bytes));
  }
  return CS_OK;
}

cs_status cs_safetensors_write(const char *path, cs_dtype dtype, const cs_safetensors_item *items,
                               int n_items, cs_safetensors_fill fill, const void *user) {
  cs_status st = CS_OK;
  char *header = NULL;
  size_t header_bytes = 0;
  int64_t data_bytes = 0;
  pieces to = {.dtype = dtype, .fill = fill, .user = user};
  CS_TRY(st, make_header(dtype, items, n_items, &header, &header_bytes, &data_bytes), done);
  to.given = cs_calloc((size_t)PIECE, sizeof *to.given);
  to.converted = cs_calloc((size_t)PIECE, sizeof *to.given);
  if (!to.given || !to.converted) {
    st = cs_no_memory("a piece of a safetensors file", 2 * (size_t)PIECE * sizeof *to.given);
    goto done;
  }
  uint64_t length_field = header_bytes;
  to.all = data_bytes;
  CS_TRY(st, cs_file_writer_open(&to.file, path), done);
  CS_TRY(st, cs_file_writer_append(&to.file, &length_field, sizeof length_field), done);
  CS_TRY(st, cs_file_writer_append(&to.file, header, header_bytes), done);
  for (int i = 0; i < n_items; i++) CS_TRY(st, write_item(&to, &items[i]), done);
  st = cs_file_writer_commit(&to.file);
done:
  cs_file_writer_abandon(&to.file);
  free(to.converted);
  free(to.given);
  free(header);
  if (st != CS_OK && cs_status_code(st) != CS_CODE_IO) st = cs_annotate(st, "%s: ", path);
  return st;
}
