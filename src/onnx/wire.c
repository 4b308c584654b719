#include "onnx/wire.h"

#include <inttypes.h>
#include <string.h>

/* Far above what networks have (a structure of 10 000 nodes takes 2 MB), far below what would
 * exhaust memory when unpacked. */
#define MOST_BYTES ((size_t)32 << 20)
#define MOST_MESSAGES (1 << 22)

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
  const message *message; /* NULL: copied as it is, a scalar or a string */
} kept_field;
struct message {
  const char *name;
  bool is_tensor;
  kept_field fields[12];
};

static const message opset = {"OperatorSetIdProto", false, {{1, NULL}, {2, NULL}}};
static const message dimension = {"Dimension", false, {{1, NULL}, {2, NULL}}};
static const message shape = {"TensorShapeProto", false, {{1, &dimension}}};
static const message tensor_type = {"TypeProto.Tensor", false, {{1, NULL}, {2, &shape}}};
static const message type = {"TypeProto", false, {{1, &tensor_type}}};
static const message value_info = {"ValueInfoProto", false, {{1, NULL}, {2, &type}}};
static const message external = {"StringStringEntryProto", false, {{1, NULL}, {2, NULL}}};
/* dims, data_type, name, external_data, data_location */
static const message tensor = {
    "TensorProto", true, {{1, NULL}, {2, NULL}, {8, NULL}, {13, &external}, {14, NULL}}};
static const message sparse_tensor = {"SparseTensorProto", false, {{1, &tensor}}};
/* name, f, i, s, t, floats, ints, strings, type, ref_attr_name */
static const message attribute = {"AttributeProto",
                                  false,
                                  {{1, NULL},
                                   {2, NULL},
                                   {3, NULL},
                                   {4, NULL},
                                   {5, &tensor},
                                   {7, NULL},
                                   {8, NULL},
                                   {9, NULL},
                                   {20, NULL},
                                   {21, NULL}}};
/* input, output, name, op_type, attribute, domain */
static const message node = {
    "NodeProto", false, {{1, NULL}, {2, NULL}, {3, NULL}, {4, NULL}, {5, &attribute}, {7, NULL}}};
/* node, name, initializer, input, output, value_info, sparse_initializer */
static const message graph = {"GraphProto",
                              false,
                              {{1, &node},
                               {2, NULL},
                               {5, &tensor},
                               {11, &value_info},
                               {12, &value_info},
                               {13, &value_info},
                               {15, &sparse_tensor}}};
/* ir_version, producer_name, producer_version, graph, opset_import */
static const message model = {
    "ModelProto", false, {{1, NULL}, {2, NULL}, {3, NULL}, {7, &graph}, {8, &opset}}};

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

static void put_varint(cs_strbuf *out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) bytes[n++] = (char)((value & 0x7f) | 0x80);
  bytes[n++] = (char)value;
  cs_strbuf_append(out, bytes, n);
}

static void put_segment(copier *copy, const frame *top) {
  cs_strbuf inner = {0};
  put_varint(&inner, 1 << 3);
  put_varint(&inner, (uint64_t)(top->begin - copy->data));
  put_varint(&inner, 2 << 3);
  put_varint(&inner, (uint64_t)(top->end - copy->data));
  put_varint(copy->out, SEGMENT << 3 | CS_WIRE_BYTES);
  put_varint(copy->out, inner.length);
  if (inner.failed) copy->out->failed = true;
  if (!inner.failed) cs_strbuf_append(copy->out, inner.data, inner.length);
  cs_strbuf_free(&inner);
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
  put_varint(copy->out, field->number << 3 | CS_WIRE_BYTES);
  copy->stack[copy->depth++] =
      (frame){of, field->data, field->data, field->data + field->size, copy->out->length};
  cs_strbuf_append(copy->out, padding, LENGTH);
  return CS_OK;
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
