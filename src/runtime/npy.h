/* The header of NumPy's .npy format. */
#ifndef CONVSCHED_RUNTIME_NPY_H_
#define CONVSCHED_RUNTIME_NPY_H_

#include "graph/op.h"

typedef enum cs_npy_type { CS_NPY_F4, CS_NPY_F8, CS_NPY_F2, CS_NPY_U1 } cs_npy_type;
typedef struct cs_npy_header {
  cs_npy_type type;
  cs_shape shape;
  size_t data_offset; /* bytes from the start of the file */
} cs_npy_header;

int64_t cs_npy_type_size(cs_npy_type type);
/* Parses the head of a file's contents (versions 1, 2 and 3). BAD_INPUT without the file's name. */
cs_status cs_npy_parse(const char *data, size_t length, cs_npy_header *out) CS_MUST_USE;
/* Element `index` of data of a type. */
float cs_npy_element(const char *data, cs_npy_type type, int64_t index);
/* A version 1 header of little-endian f32 in C order, 64-byte aligned, appended to `out`. */
void cs_npy_format(const cs_shape *shape, cs_strbuf *out);

#endif
