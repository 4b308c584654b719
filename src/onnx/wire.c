#include "onnx/wire.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "onnx/wire_write.h"

/* Far above what networks have (a structure of 10 000 nodes takes 2 MB), far below what would
 * exhaust memory when unpacked. */
#define MOST_BYTES ((size_t)32 << 20)
#define MOST_MESSAGES (1 << 20)

bool cs_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << (shift < 64 ? shift : 63);
    if (byte & 0x80) continue;
    *out = value;
    return true;
  }
  return false;
}

static bool take_bytes(const uint8_t **at, const uint8_t *end, uint64_t size, cs_wire_field *out) {
  if (size > (uint64_t)(end - *at)) return false;
  out->data = *at;
  out->size = (size_t)size;
  *at += size;
  return true;
}

bool cs_wire_next(const uint8_t **at, const uint8_t *end, cs_wire_field *out) {
  uint64_t tag, size;
  *out = (cs_wire_field){.begin = *at};
  if (!cs_wire_varint(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return false;
  out->number = tag >> 3;
  out->type = (cs_wire_type)(tag & 7);
  switch (out->type) {
    case CS_WIRE_VARINT:
      return cs_wire_varint(at, end, &out->varint);
    case CS_WIRE_64:
      return take_bytes(at, end, 8, out);
    case CS_WIRE_32:
      return take_bytes(at, end, 4, out);
    case CS_WIRE_BYTES:
      return cs_wire_varint(at, end, &size) && take_bytes(at, end, size, out);
  }
  return false; /* groups: no file of this format has any */
}

/* ---- What a skeleton keeps ---- */

typedef struct message message;
typedef struct kept_field {
  uint64_t number;        /* 0: the end */
  const message *message; /* NULL: copied as it is */
  bool is_text;           /* that has to be UTF-8, since messages repeat it */
} kept_field;
struct message {
  const char *name;
  bool is_tensor;
  kept_field fields[12];
};

#define PLAIN(number) \
  { (number), NULL, false }
#define TEXT(number) \
  { (number), NULL, true }
#define INNER(number, message) \
  { (number), &(message), false }

static const message opset = {"OperatorSetIdProto", false, {TEXT(1), PLAIN(2)}};
static const message dimension = {"Dimension", false, {PLAIN(1), TEXT(2)}};
static const message shape = {"TensorShapeProto", false, {INNER(1, dimension)}};
static const message tensor_type = {"TypeProto.Tensor", false, {PLAIN(1), INNER(2, shape)}};
static const message type = {"TypeProto", false, {INNER(1, tensor_type)}};
static const message value_info = {"ValueInfoProto", false, {TEXT(1), INNER(2, type)}};
static const message pair = {"StringStringEntryProto", false, {TEXT(1), TEXT(2)}};
/* dims, data_type, name, external_data, data_location */
static const message tensor = {
    "TensorProto", true, {PLAIN(1), PLAIN(2), TEXT(8), INNER(13, pair), PLAIN(14)}};
static const message sparse_tensor = {"SparseTensorProto", false, {INNER(1, tensor)}};
/* name, f, i, s, t, floats, ints, strings, type, ref_attr_name */
static const message attribute = {"AttributeProto",
                                  false,
                                  {TEXT(1), PLAIN(2), PLAIN(3), PLAIN(4), INNER(5, tensor),
                                   PLAIN(7), PLAIN(8), PLAIN(9), PLAIN(20), TEXT(21)}};
/* input, output, name, op_type, attribute, domain */
static const message node = {
    "NodeProto", false, {TEXT(1), TEXT(2), TEXT(3), TEXT(4), INNER(5, attribute), TEXT(7)}};
/* node, name, initializer, input, output, value_info, sparse_initializer */
static const message graph = {
    "GraphProto",
    false,
    {INNER(1, node), TEXT(2), INNER(5, tensor), INNER(11, value_info), INNER(12, value_info),
     INNER(13, value_info), INNER(15, sparse_tensor)}};
/* ir_version, producer_name, producer_version, graph, opset_import, metadata_props */
static const message model = {
    "ModelProto",
    false,
    {PLAIN(1), TEXT(2), TEXT(3), INNER(7, graph), INNER(8, opset), INNER(14, pair)}};

static const kept_field *kept(const message *of, uint64_t number) {
  for (const kept_field *field = of->fields; field->number; field++) {
    if (field->number == number) return field;
  }
  return NULL;
}

/* ---- Copying ---- */

#define DEEPEST 8 /* ModelProto … Dimension are 7 messages */
#define LENGTH 5  /* bytes of a length, padded: it is not known before the contents are */
#define SEGMENT 3 /* TensorProto.segment */

typedef struct frame {
  const message *message;
  const uint8_t *begin, *at, *end;
  size_t length_at; /* in the output; the outermost has none */
} frame;

typedef struct copier {
  const char *path;
  const uint8_t *data;
  cs_strbuf *out;
  frame stack[DEEPEST];
  int depth, messages;
} copier;

static void put_segment(copier *copy, const frame *top) {
  cs_strbuf inner = {0};
  cs_wire_put_int(&inner, 1, (int64_t)(top->begin - copy->data));
  cs_wire_put_int(&inner, 2, (int64_t)(top->end - copy->data));
  cs_wire_put_message(copy->out, SEGMENT, &inner);
}

static void close_message(copier *copy) {
  frame *top = &copy->stack[--copy->depth];
  if (top->message->is_tensor) put_segment(copy, top);
  if (copy->depth == 0 || copy->out->failed) return;
  size_t length = copy->out->length - top->length_at - LENGTH;
  for (int i = 0; i < LENGTH; i++) {
    copy->out->data[top->length_at + (size_t)i] =
        (char)((length >> (7 * i) & 0x7f) | (i < LENGTH - 1 ? 0x80 : 0));
  }
}

static cs_status open_message(copier *copy, const message *of, const cs_wire_field *field) {
  static const char padding[LENGTH] = {0};
  if (++copy->messages > MOST_MESSAGES) {
    return cs_error(CS_CODE_BAD_INPUT, "%s: found more than %d messages, wanted a model",
                    copy->path, MOST_MESSAGES);
  }
  cs_wire_put_varint(copy->out, field->number << 3 | CS_WIRE_BYTES);
  copy->stack[copy->depth++] =
      (frame){of, field->data, field->data, field->data + field->size, copy->out->length};
  cs_strbuf_append(copy->out, padding, LENGTH);
  return CS_OK;
}

static bool is_utf8(const cs_wire_field *field) {
  if (memchr(field->data, 0, field->size)) return false;
  json_t *json = json_stringn((const char *)field->data, field->size);
  json_decref(json);
  return json != NULL;
}

static cs_status copy_field(copier *copy, const frame *top, const cs_wire_field *field) {
  const kept_field *keep = kept(top->message, field->number);
  if (top->message->is_tensor && field->number == SEGMENT) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: byte %zu: found a tensor stored in segments, wanted whole tensors",
                    copy->path, (size_t)(field->begin - copy->data));
  }
  if (!keep) return CS_OK;
  if (keep->message && field->type == CS_WIRE_BYTES) {
    return open_message(copy, keep->message, field);
  }
  if (keep->message) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: byte %zu: found a number in field %" PRIu64 " of %s, wanted a %s",
                    copy->path, (size_t)(field->begin - copy->data), field->number,
                    top->message->name, keep->message->name);
  }
  if (keep->is_text && field->type == CS_WIRE_BYTES && !is_utf8(field)) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "%s: byte %zu: found a name in a %s that is not UTF-8 or holds a NUL",
                    copy->path, (size_t)(field->begin - copy->data), top->message->name);
  }
  cs_strbuf_append(copy->out, (const char *)field->begin, (size_t)(top->at - field->begin));
  return CS_OK;
}

cs_status cs_wire_skeleton(const char *path, const uint8_t *data, size_t size, cs_strbuf *out) {
  copier copy = {.path = path, .data = data, .out = out};
  copy.stack[copy.depth++] = (frame){&model, data, data, data + size, 0};
  while (copy.depth > 0) {
    frame *top = &copy.stack[copy.depth - 1];
    if (top->at == top->end) {
      close_message(&copy);
      continue;
    }
    cs_wire_field field;
    const uint8_t *begin = top->at;
    if (!cs_wire_next(&top->at, top->end, &field)) {
      return cs_error(
          CS_CODE_BAD_INPUT,
          "%s: byte %zu: found what is no field of a %s that ends at byte %zu (cut off, "
          "damaged, or not an ONNX model)",
          path, (size_t)(begin - data), top->message->name, (size_t)(top->end - data));
    }
    CS_RETURN_IF_ERROR(copy_field(&copy, top, &field));
    if (out->length > MOST_BYTES) {
      return cs_error(CS_CODE_BAD_INPUT,
                      "%s: found more than %zu MB of structure beside the tensors, wanted a model",
                      path, MOST_BYTES >> 20);
    }
  }
  return out->failed ? cs_no_memory("a model's structure", out->capacity) : CS_OK;
}
