/* An ONNX file: mapped, its structure unpacked, the elements of its tensors left where they are. */
#ifndef CONVSCHED_ONNX_MODEL_H_
#define CONVSCHED_ONNX_MODEL_H_

#include <onnx.pb-c.h>

#include "graph/op.h"

/* Opsets of the domain "" that are known; the operators imported are checked against each. */
#define CS_ONNX_OPSET_MIN 7
#define CS_ONNX_OPSET_MAX 28

/* The entry of metadata_props that marks a file whose nodes are those of a graph of ours, so that
 * importing gives that graph, and nothing told another way. */
#define CS_ONNX_MARK_KEY "convsched"
#define CS_ONNX_MARK_VALUE "convsched.graph/1"
/* Beside it: numbers that f32, and so an attribute, rounds; JSON, by "<node>.<attribute>". */
#define CS_ONNX_REALS_KEY "convsched.reals"

/* A file mapped for reading; it must not shrink while it is open. */
typedef struct cs_onnx_mapping {
  char *path;
  const uint8_t *data; /* NULL where size is 0 */
  size_t size;
  int fd; /* open as long as the map is, to see what becomes of the file */
  struct timespec modified;
} cs_onnx_mapping;

typedef struct cs_onnx_model {
  cs_onnx_mapping file;
  Onnx__ModelProto *proto; /* the skeleton (wire.h) */
  const Onnx__GraphProto *graph;
  int64_t opset;
  bool as_written;           /* its metadata say that convsched exported it */
  json_t *reals;             /* CS_ONNX_REALS_KEY of such a file; NULL: none */
  cs_onnx_mapping *external; /* files of external data, in order of their first use */
  size_t n_external, external_capacity;
} cs_onnx_model;

/* IO: cannot be opened or mapped. BAD_INPUT: malformed, no graph, an opset that is not known. */
cs_status cs_onnx_model_open(const char *path, cs_onnx_model **out) CS_MUST_USE;
void cs_onnx_model_close(cs_onnx_model *model);
/* The file of external data that `location` names, mapped once. BAD_INPUT: the location is not
 * below the model's folder, or is not there. */
cs_status cs_onnx_model_external(cs_onnx_model *model, const char *tensor, const char *location,
                                 const cs_onnx_mapping **out) CS_MUST_USE;

/* IO: one of the files was written since it was opened, so that what is read is of two states. */
cs_status cs_onnx_model_check_unchanged(const cs_onnx_model *model) CS_MUST_USE;
/* The same of the one that holds this byte of elements (NULL: they are in the model's own). */
cs_status cs_onnx_model_check_at(const cs_onnx_model *model, const uint8_t *at) CS_MUST_USE;
/* The path of that one of the files which `path` names, too; NULL: none. */
const char *cs_onnx_model_file_at(const cs_onnx_model *model, const char *path);

/* Where a tensor's elements are. */
typedef struct cs_onnx_tensor {
  int32_t dtype; /* Onnx__TensorProto__DataType */
  cs_shape shape;
  int64_t elements;
  const uint8_t *data; /* little-endian, dense; NULL: coded one by one in the message (or none) */
  const uint8_t *message, *message_end; /* the TensorProto */
} cs_onnx_tensor;

/* Checks type, shape and that all elements are there. BAD_INPUT names the tensor as `name`. */
cs_status cs_onnx_tensor_open(cs_onnx_model *model, const Onnx__TensorProto *proto,
                              const char *name, cs_onnx_tensor *out) CS_MUST_USE;
/* "float16"; "type 99" for what is not known. */
const char *cs_onnx_dtype_name(int32_t dtype);
bool cs_onnx_dtype_is_real(int32_t dtype);
bool cs_onnx_dtype_is_whole(int32_t dtype); /* integers and bool */
/* Elements first … first + count − 1 in row-major order; rounded to f32. */
void cs_onnx_tensor_f32(const cs_onnx_tensor *tensor, int64_t first, int64_t count, float *out);
/* Every element, as f64. */
void cs_onnx_tensor_reals(const cs_onnx_tensor *tensor, double *out);
/* Every element; of integers and bool. */
void cs_onnx_tensor_ints(const cs_onnx_tensor *tensor, int64_t *out);
/* The pages of the elements may go; they come back when they are read again. */
void cs_onnx_tensor_release(const cs_onnx_tensor *tensor);

#endif
