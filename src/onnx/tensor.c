/* Elements of a TensorProto: as raw bytes, in a typed list, or in a file of its own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/model.h"
#include "onnx/wire.h"

typedef struct dtype_info {
  const char *name;
  int size;       /* bytes */
  uint32_t field; /* of the typed list */
} dtype_info;

static const dtype_info dtypes[] = {
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT] = {"float", 4, CS_TENSOR_FLOAT_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8] = {"uint8", 1, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8] = {"int8", 1, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16] = {"uint16", 2, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16] = {"int16", 2, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32] = {"int32", 4, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64] = {"int64", 8, CS_TENSOR_INT64_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL] = {"bool", 1, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16] = {"float16", 2, CS_TENSOR_INT32_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE] = {"double", 8, CS_TENSOR_DOUBLE_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32] = {"uint32", 4, CS_TENSOR_UINT64_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64] = {"uint64", 8, CS_TENSOR_UINT64_DATA},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16] = {"bfloat16", 2, CS_TENSOR_INT32_DATA},
};

static const dtype_info *info_of(int32_t dtype) {
  bool known = dtype > 0 && dtype < (int32_t)(sizeof dtypes / sizeof dtypes[0]);
  return known && dtypes[dtype].name ? &dtypes[dtype] : NULL;
}

const char *cs_onnx_dtype_name(int32_t dtype) {
  const dtype_info *info = info_of(dtype);
  return info                                             ? info->name
         : dtype == ONNX__TENSOR_PROTO__DATA_TYPE__STRING ? "string"
         : dtype == 14 || dtype == 15                     ? "complex"
         : dtype >= 17 && dtype <= 20                     ? "float8"
                                                          : "of a type that is not known";
}

bool cs_onnx_dtype_is_real(int32_t dtype) {
  return dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
         dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
         dtype == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
         dtype == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

bool cs_onnx_dtype_is_whole(int32_t dtype) {
  return info_of(dtype) && !cs_onnx_dtype_is_real(dtype);
}

/* ---- Decoding ---- */

typedef union element {
  double real;
  int64_t whole;
} element;

/* `bits`: the element's bytes, zero-extended. */
static element from_bits(int32_t dtype, uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float single;
  double wide;
  switch (dtype) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
      memcpy(&single, &low, sizeof single);
      return (element){.real = (double)single};
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
      memcpy(&wide, &bits, sizeof wide);
      return (element){.real = wide};
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
      return (element){.real = (double)cs_f16_to_f32((uint16_t)bits)};
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
      return (element){.real = (double)cs_bf16_to_f32((uint16_t)bits)};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
      return (element){.whole = (int8_t)bits};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
      return (element){.whole = (int16_t)bits};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
      return (element){.whole = (int32_t)bits};
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
      return (element){.whole = (uint8_t)bits};
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
      return (element){.whole = (uint16_t)bits};
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
      return (element){.whole = (int64_t)low};
    default: /* int64; uint64 beyond int64's range is no extent of anything */
      return (element){.whole = (int64_t)bits};
  }
}

/* Where decoded elements go: those from `first` on, `count` of them; `seen` counts all. */
typedef struct sink {
  int32_t dtype;
  int64_t first, count, seen;
  float *reals;    /* or */
  double *wide;    /* or */
  int64_t *wholes; /* or none: only counts */
} sink;

static void put(sink *to, uint64_t bits) {
  int64_t at = to->seen++ - to->first;
  if (at < 0 || at >= to->count) return;
  element value = from_bits(to->dtype, bits);
  bool real = cs_onnx_dtype_is_real(to->dtype);
  if (to->reals) to->reals[at] = real ? (float)value.real : (float)value.whole;
  if (to->wide) to->wide[at] = real ? value.real : (double)value.whole;
  if (to->wholes) to->wholes[at] = value.whole;
}

static bool take_packed(const cs_wire_field *field, int width, sink *to) {
  const uint8_t *at = field->data, *end = field->data + field->size;
  if (width && field->size % (size_t)width != 0) return false;
  while (at < end) {
    uint64_t bits = 0;
    if (width) {
      memcpy(&bits, at, (size_t)width);
      at += width;
    } else if (!cs_wire_varint(&at, end, &bits)) {
      return false;
    }
    put(to, bits);
  }
  return true;
}

/* Walks a TensorProto's typed list, packed or not, in one or several pieces. `count` may be less
 * than all: what is decoded before `first` is passed over, since varints have no fixed place. */
static bool walk(const cs_onnx_tensor *tensor, sink *to) {
  const dtype_info *info = info_of(tensor->dtype);
  const uint8_t *at = tensor->message;
  int width = info->field == CS_TENSOR_FLOAT_DATA    ? 4
              : info->field == CS_TENSOR_DOUBLE_DATA ? 8
                                                     : 0;
  while (at < tensor->message_end) {
    cs_wire_field field;
    if (!cs_wire_next(&at, tensor->message_end, &field)) return false;
    if (field.number != info->field) continue;
    uint64_t bits = field.varint;
    if (field.type == CS_WIRE_BYTES) {
      if (!take_packed(&field, width, to)) return false;
      continue;
    }
    if ((width == 0) != (field.type == CS_WIRE_VARINT) || (width && field.size != (size_t)width)) {
      return false;
    }
    if (width) {
      bits = 0;
      memcpy(&bits, field.data, field.size);
    }
    put(to, bits);
  }
  return true;
}

/* ---- Opening ---- */

static cs_status tensor_error(const cs_onnx_model *model, const char *name, const char *found,
                              const char *wanted) {
  return cs_error(CS_CODE_BAD_INPUT, "%s: tensor \"%s\": found %s, wanted %s", model->file.path,
                  name, found, wanted);
}

static cs_status read_shape(const cs_onnx_model *model, const Onnx__TensorProto *proto,
                            const char *name, cs_onnx_tensor *out) {
  char found[96];
  if (proto->n_dims > CS_MAX_RANK) {
    snprintf(found, sizeof found, "%zu axes", proto->n_dims);
    return tensor_error(model, name, found, "at most 8");
  }
  out->shape.rank = (int)proto->n_dims;
  out->elements = 1;
  for (size_t i = 0; i < proto->n_dims; i++) {
    out->shape.dims[i] = proto->dims[i];
    if (proto->dims[i] >= 0 && cs_mul_i64(out->elements, proto->dims[i], &out->elements)) continue;
    snprintf(found, sizeof found, "extent %lld on axis %zu", (long long)proto->dims[i], i);
    return tensor_error(model, name, found, "extents from 0 on whose product fits 63 bits");
  }
  return CS_OK;
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;
  if (!text[0] || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18) return false;
  *out = strtoull(text, &end, 10);
  return true;
}

static cs_status open_external(cs_onnx_model *model, const Onnx__TensorProto *proto,
                               const char *name, uint64_t bytes, cs_onnx_tensor *out) {
  const char *location = NULL;
  uint64_t offset = 0, length = bytes;
  char found[128];
  for (size_t i = 0; i < proto->n_external_data; i++) {
    const char *key = proto->external_data[i]->key ? proto->external_data[i]->key : "";
    const char *value = proto->external_data[i]->value ? proto->external_data[i]->value : "";
    bool good = true;
    if (strcmp(key, "location") == 0) location = value;
    if (strcmp(key, "offset") == 0) good = parse_number(value, &offset);
    if (strcmp(key, "length") == 0) good = parse_number(value, &length);
    if (good) continue;
    snprintf(found, sizeof found, "external data's %.16s \"%.40s\"", key, value);
    return tensor_error(model, name, found, "a number of bytes");
  }
  const cs_onnx_mapping *file;
  CS_RETURN_IF_ERROR(cs_onnx_model_external(model, name, location, &file));
  if (length != bytes) {
    snprintf(found, sizeof found, "%" PRIu64 " bytes of external data", length);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%" PRIu64 " of type and shape", bytes);
    return tensor_error(model, name, found, wanted);
  }
  if (offset > file->size || bytes > file->size - offset) {
    snprintf(found, sizeof found, "external data to byte %" PRIu64 " of a file of %zu bytes",
             offset + bytes, file->size);
    return tensor_error(model, name, found, "bytes within the file");
  }
  out->data = file->data ? file->data + offset : NULL;
  return CS_OK;
}

/* The last raw_data field, as protobuf has it; the elements of the only packed list of floats or
 * doubles, which lie as raw ones do. */
static bool find_dense(const cs_onnx_tensor *tensor, cs_wire_field *raw, cs_wire_field *list,
                       int *pieces) {
  const dtype_info *info = info_of(tensor->dtype);
  const uint8_t *at = tensor->message;
  *raw = *list = (cs_wire_field){0};
  *pieces = 0;
  while (at < tensor->message_end) {
    cs_wire_field field;
    if (!cs_wire_next(&at, tensor->message_end, &field)) return false;
    if (field.number == CS_TENSOR_RAW_DATA) {
      if (field.type != CS_WIRE_BYTES) return false;
      *raw = field;
    }
    if (field.number == info->field) {
      *list = field;
      ++*pieces;
    }
  }
  return true;
}

static cs_status open_inline(cs_onnx_model *model, const char *name, uint64_t bytes,
                             cs_onnx_tensor *out) {
  cs_wire_field raw, list;
  int pieces;
  char found[96], wanted[64];
  if (!find_dense(out, &raw, &list, &pieces)) {
    return tensor_error(model, name, "malformed elements", "a TensorProto");
  }
  if (raw.number) {
    if (raw.size == bytes && pieces == 0) {
      out->data = raw.data;
      return CS_OK;
    }
    snprintf(found, sizeof found, "%zu bytes of raw data%s", raw.size,
             pieces ? " and a typed list" : "");
    snprintf(wanted, sizeof wanted, "%" PRIu64 " of type and shape", bytes);
    return tensor_error(model, name, found, wanted);
  }
  bool fixed = out->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
               out->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
  if (fixed && pieces == 1 && list.type == CS_WIRE_BYTES && list.size == bytes) {
    out->data = list.data;
    return CS_OK;
  }
  sink counter = {.dtype = out->dtype};
  if (!walk(out, &counter)) {
    return tensor_error(model, name, "malformed elements", "a list of the tensor's type");
  }
  if (counter.seen == out->elements) return CS_OK;
  snprintf(found, sizeof found, "%lld elements", (long long)counter.seen);
  snprintf(wanted, sizeof wanted, "%lld of the shape", (long long)out->elements);
  return tensor_error(model, name, found, wanted);
}

cs_status cs_onnx_tensor_open(cs_onnx_model *model, const Onnx__TensorProto *proto,
                              const char *name, cs_onnx_tensor *out) {
  *out = (cs_onnx_tensor){.dtype = proto->data_type};
  const dtype_info *info = info_of(out->dtype);
  CS_RETURN_IF_ERROR(read_shape(model, proto, name, out));
  if (!info) {
    return tensor_error(model, name, cs_onnx_dtype_name(out->dtype),
                        "float, float16, bfloat16, double, an integer type or bool");
  }
  const uint8_t *file = model->file.data;
  out->message = file + proto->segment->begin; /* as wire.c wrote it */
  out->message_end = file + proto->segment->end;
  int64_t bytes;
  if (!cs_mul_i64(out->elements, info->size, &bytes)) {
    return tensor_error(model, name, "a number of bytes that overflows", "one that fits 63 bits");
  }
  if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    return open_external(model, proto, name, (uint64_t)bytes, out);
  }
  return open_inline(model, name, (uint64_t)bytes, out);
}

/* ---- Reading ---- */

static void read_elements(const cs_onnx_tensor *tensor, sink *to) {
  if (to->count == 0) return;
  if (!tensor->data) {
    (void)walk(tensor, to); /* was walked once: it is well-formed */
    return;
  }
  size_t size = (size_t)info_of(tensor->dtype)->size;
  const uint8_t *at = tensor->data + (size_t)to->first * size;
  to->seen = to->first;
  for (int64_t i = 0; i < to->count; i++, at += size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    put(to, bits);
  }
}

/* Half floats, of one kind or the other: what large models have, and worth a loop of their own. */
static void widen(const uint8_t *data, bool half, int64_t count, float *out) {
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, data + (size_t)i * sizeof bits, sizeof bits);
    out[i] = half ? cs_f16_to_f32(bits) : cs_bf16_to_f32(bits);
  }
}

void cs_onnx_tensor_f32(const cs_onnx_tensor *tensor, int64_t first, int64_t count, float *out) {
  if (tensor->data && tensor->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT) {
    memcpy(out, tensor->data + (size_t)first * sizeof *out, (size_t)count * sizeof *out);
    return;
  }
  bool half = tensor->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
  if (tensor->data && (half || tensor->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16)) {
    widen(tensor->data + (size_t)first * sizeof(uint16_t), half, count, out);
    return;
  }
  sink to = {.dtype = tensor->dtype, .first = first, .count = count, .reals = out};
  read_elements(tensor, &to);
}

void cs_onnx_tensor_reals(const cs_onnx_tensor *tensor, double *out) {
  sink to = {.dtype = tensor->dtype, .count = tensor->elements, .wide = out};
  read_elements(tensor, &to);
}

void cs_onnx_tensor_ints(const cs_onnx_tensor *tensor, int64_t *out) {
  sink to = {.dtype = tensor->dtype, .count = tensor->elements, .wholes = out};
  read_elements(tensor, &to);
}

void cs_onnx_tensor_release(const cs_onnx_tensor *tensor) {
  if (!tensor->data) return;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t bytes = (size_t)tensor->elements * (size_t)info_of(tensor->dtype)->size;
  uintptr_t begin = (uintptr_t)tensor->data / page * page;
  /* Whole pages of a read-only mapping: what shares them is read from the file again. */
  (void)madvise((void *)begin, (uintptr_t)tensor->data + bytes - begin, MADV_DONTNEED);
}
