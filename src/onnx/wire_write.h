/* Writing protobuf's wire format: fields appended to a buffer. A buffer that could not grow stays
 * failed, which whoever takes its text is told. */
#ifndef CONVSCHED_ONNX_WIRE_WRITE_H_
#define CONVSCHED_ONNX_WIRE_WRITE_H_

#include "base/base.h"

void cs_wire_put_varint(cs_strbuf *out, uint64_t value);
void cs_wire_put_int(cs_strbuf *out, int field, int64_t value);
void cs_wire_put_float(cs_strbuf *out, int field, float value);
void cs_wire_put_bytes(cs_strbuf *out, int field, const void *data, size_t size);
void cs_wire_put_text(cs_strbuf *out, int field, const char *text);
/* A message within another; `message` is released. */
void cs_wire_put_message(cs_strbuf *out, int field, cs_strbuf *message);
/* What stands before `size` bytes of a field that are written behind. */
void cs_wire_put_head(cs_strbuf *out, int field, uint64_t size);

#endif
