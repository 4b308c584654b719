#include "onnx/wire_write.h"

#include <string.h>

#include "onnx/wire.h"

void cs_wire_put_varint(cs_strbuf *out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) bytes[n++] = (char)((value & 0x7f) | 0x80);
  bytes[n++] = (char)value;
  cs_strbuf_append(out, bytes, n);
}

static void put_tag(cs_strbuf *out, int field, cs_wire_type type) {
  cs_wire_put_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

void cs_wire_put_int(cs_strbuf *out, int field, int64_t value) {
  put_tag(out, field, CS_WIRE_VARINT);
  cs_wire_put_varint(out, (uint64_t)value);
}

void cs_wire_put_float(cs_strbuf *out, int field, float value) {
  char bytes[sizeof value]; /* little-endian, as the machines this runs on */
  memcpy(bytes, &value, sizeof value);
  put_tag(out, field, CS_WIRE_32);
  cs_strbuf_append(out, bytes, sizeof bytes);
}

void cs_wire_put_head(cs_strbuf *out, int field, uint64_t size) {
  put_tag(out, field, CS_WIRE_BYTES);
  cs_wire_put_varint(out, size);
}

void cs_wire_put_bytes(cs_strbuf *out, int field, const void *data, size_t size) {
  cs_wire_put_head(out, field, size);
  if (size) cs_strbuf_append(out, data, size);
}

void cs_wire_put_text(cs_strbuf *out, int field, const char *text) {
  cs_wire_put_bytes(out, field, text, strlen(text));
}

void cs_wire_put_message(cs_strbuf *out, int field, cs_strbuf *message) {
  if (message->failed) {
    out->failed = true;
  } else {
    cs_wire_put_bytes(out, field, message->data, message->length);
  }
  cs_strbuf_free(message);
}
