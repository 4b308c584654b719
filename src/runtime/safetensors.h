/* safetensors files: eight bytes of header length (little-endian), a JSON header that gives each
 * tensor's dtype, shape and byte range, then the data without holes or overlaps. */
#ifndef CONVSCHED_RUNTIME_SAFETENSORS_H_
#define CONVSCHED_RUNTIME_SAFETENSORS_H_

#include "graph/op.h"

typedef struct cs_safetensor {
  char *name;
  const char *dtype; /* the format's name: "F32", "I64", … */
  cs_shape shape;
  int64_t elements;
  uint64_t begin, end; /* bytes from the start of the data */
} cs_safetensor;

/* A file mapped for reading. Not thread-safe to open, safe to read from several threads. The file
 * must not be written in place while it is open: where it shrinks during a read, SIGBUS comes. */
typedef struct cs_safetensors cs_safetensors;

/* Opens and checks the whole header. BAD_INPUT (file, tensor, found, wanted): too short, a header
 * length past the end or over 100 MB, malformed JSON, an unknown key or dtype, a duplicate name, a
 * shape that overflows, a byte range that does not fit dtype and shape, past the end, overlapping
 * or leaving a hole. IO: cannot be opened or mapped. */
cs_status cs_safetensors_open(const char *path, cs_safetensors **out) CS_MUST_USE;
void cs_safetensors_close(cs_safetensors *file);
int cs_safetensors_count(const cs_safetensors *file);
/* NULL if there is none of that name. */
const cs_safetensor *cs_safetensors_find(const cs_safetensors *file, const char *name);
/* IO where the file's length or time of modification is not what it was when it was opened. */
cs_status cs_safetensors_check_unchanged(const cs_safetensors *file) CS_MUST_USE;
/* BAD_INPUT for dtypes other than F32, F16 and BF16, which are what can be read as floats. */
cs_status cs_safetensors_check_f32(const cs_safetensors *file,
                                   const cs_safetensor *tensor) CS_MUST_USE;
/* The mapped elements; NULL where they are not F32, or not aligned as floats are. */
const float *cs_safetensors_f32(const cs_safetensors *file, const cs_safetensor *tensor);
/* Gives the memory of a tensor's pages back, which is read from the file again where it is wanted:
 * harmless while others read. */
void cs_safetensors_release(const cs_safetensors *file, const cs_safetensor *tensor);
/* Writes tensor->elements floats. Errors as cs_safetensors_check_f32. */
cs_status cs_safetensors_read_f32(const cs_safetensors *file, const cs_safetensor *tensor,
                                  float *out) CS_MUST_USE;

/* One array to write: `data`, or where that is NULL what `fill` gives, piece by piece and in order:
 * elements first … first + count − 1. */
typedef struct cs_safetensors_item {
  const char *name;
  const cs_shape *shape;
  const float *data;
} cs_safetensors_item;
typedef cs_status (*cs_safetensors_fill)(const void *user, const char *name, int64_t first,
                                         int64_t count, float *out);
/* Writes the items in their order, converted to `dtype`; replaces the file at once. Memory does not
 * grow with the file. */
cs_status cs_safetensors_write(const char *path, cs_dtype dtype, const cs_safetensors_item *items,
                               int n_items, cs_safetensors_fill fill, const void *user) CS_MUST_USE;

#endif
