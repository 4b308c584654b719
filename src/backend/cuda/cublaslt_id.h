/* The identity of a cuBLASLt algorithm: "cublaslt.v130100:algo66/20/36/1/0/0/3/0/2", where the
 * numbers behind the algorithm are its attributes tile, stages, splits of k, reduction scheme,
 * swizzle, custom option, inner shape and cluster shape. Words of the algorithm's descriptor that
 * these do not determine follow as "+3=1f,5=2" (index, hexadecimal value). Pure data. */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_ID_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_ID_H_

#include <stdint.h>

#include "base/base.h"

#define CS_CUBLASLT_PREFIX "cublaslt."
#define CS_CUBLASLT_WORDS 8 /* of cublasLtMatmulAlgo_t */

typedef enum cs_cublaslt_attribute {
  CS_CUBLASLT_TILE,
  CS_CUBLASLT_STAGES,
  CS_CUBLASLT_SPLITS,
  CS_CUBLASLT_REDUCTION,
  CS_CUBLASLT_SWIZZLE,
  CS_CUBLASLT_CUSTOM,
  CS_CUBLASLT_INNER,
  CS_CUBLASLT_CLUSTER,
  CS_CUBLASLT_N_ATTRIBUTES
} cs_cublaslt_attribute;

typedef struct cs_cublaslt_id {
  int64_t version; /* of the library: 130100 */
  uint32_t algorithm;
  uint32_t attributes[CS_CUBLASLT_N_ATTRIBUTES];
  bool has_word[CS_CUBLASLT_WORDS];
  uint64_t words[CS_CUBLASLT_WORDS]; /* 0 where there is none */
} cs_cublaslt_id;

cs_status cs_cublaslt_id_format(const cs_cublaslt_id *id, char **out) CS_MUST_USE;
/* False: no id as _format writes them. */
bool cs_cublaslt_id_parse(const char *text, cs_cublaslt_id *out);

#endif
