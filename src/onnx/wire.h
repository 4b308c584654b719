/* protobuf's wire format, as much as finding a model's tensors takes. protobuf-c copies what it
 * unpacks, so it is given a skeleton: the model without the elements of its tensors, each of which
 * says where in the file it is. What the importer does not read (sub-graphs, functions, types other
 * than tensors, documentation) is left out, so that nesting is bounded by this module's tables and
 * not by the file. */
#ifndef CONVSCHED_ONNX_WIRE_H_
#define CONVSCHED_ONNX_WIRE_H_

#include "base/base.h"

typedef enum cs_wire_type {
  CS_WIRE_VARINT = 0,
  CS_WIRE_64 = 1,
  CS_WIRE_BYTES = 2,
  CS_WIRE_32 = 5
} cs_wire_type;

typedef struct cs_wire_field {
  uint64_t number;
  cs_wire_type type;
  const uint8_t *begin; /* of the field with its tag */
  const uint8_t *data;  /* BYTES: the contents; 32, 64: the value */
  size_t size;          /* bytes at `data` */
  uint64_t varint;
} cs_wire_field;

/* Reads a varint at *at (before `end`) and moves on; false: cut off or longer than 10 bytes. */
bool cs_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *out);
/* Reads the field at *at (before `end`) and moves on; false: malformed or past the end. */
bool cs_wire_next(const uint8_t **at, const uint8_t *end, cs_wire_field *out);

/* Field numbers of TensorProto's elements. */
enum {
  CS_TENSOR_FLOAT_DATA = 4,
  CS_TENSOR_INT32_DATA = 5,
  CS_TENSOR_INT64_DATA = 7,
  CS_TENSOR_RAW_DATA = 9,
  CS_TENSOR_DOUBLE_DATA = 10,
  CS_TENSOR_UINT64_DATA = 11
};

/* The skeleton of a serialized ModelProto. Every TensorProto in it has, as its `segment`, the bytes
 * from begin to end of `data` that are the whole message. `path` names the file in messages.
 * BAD_INPUT: malformed, a tensor with a segment of its own, a structure too large to be one. */
cs_status cs_wire_skeleton(const char *path, const uint8_t *data, size_t size,
                           cs_strbuf *out) CS_MUST_USE;

#endif
