/* A dense layer as a matrix product, made from Gemm, or from a 1×1 convolution whose pixels are the
 * rows of a matrix; and MatMul. Pure data.
 *
 * Row by row, Y[n, m] = act(X[n, k] · W[m, k]ᵀ + bias + residual). cuBLASLt counts by columns:
 * D (m × n) = A (k × m, transposed) · B (k × n) with A = W, B = X, C = the residual, D = Y.
 *
 * Or a MatMul, image by image, where A (m × k, not transposed) is its second factor and B its
 * first.
 *
 * Or the columns of a transposed convolution (columns.h), in f32: of pixels that are rows as a
 * dense layer is, with a row of W for each tap and filter; of planes, image by image, A = X (pixels
 * × k, not transposed) and B = W (k × taps and filters).
 */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_PROBLEM_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_PROBLEM_H_

#include <cublasLt.h>

#include "backend/cuda/columns.h"

typedef struct cs_cublaslt_matrix {
  int64_t rows, columns; /* of what is stored, column by column */
  int64_t pitch;         /* elements from a column to the next */
  int64_t alignment;     /* of the first element (of every image), bytes */
  int64_t image;         /* elements from an image to the next; 0: the same for all */
} cs_cublaslt_matrix;

typedef struct cs_cublaslt_problem {
  bool convolution, matmul;
  bool plain;                       /* A is not transposed */
  int64_t images;                   /* products; 1 but of a MatMul and of planes */
  int64_t constant;                 /* elements of a MatMul's constant factor; 0: there is none */
  int64_t m, n, k;                  /* outputs (features), rows (pixels), inputs */
  cs_cublaslt_matrix a, b, c, d;    /* c: as d where there is no residual */
  cs_dtype storage, result;         /* of a, b and the bias; of c and d */
  cudaDataType_t type, result_type; /* the same */
  cublasComputeType_t compute;
  cublasLtEpilogue_t epilogue;
  bool bias, residual;
  cs_precision precision;
} cs_cublaslt_problem;

/* NULL; or why this is no product for cuBLASLt (a static text that continues "not computed by
 * cuBLASLt: "). */
const char *cs_cublaslt_problem_make(const cs_op_desc *desc, cs_cublaslt_problem *out) CS_MUST_USE;
/* The same of columns; the operation is that of a piece. */
const char *cs_cublaslt_columns_make(const cs_op_desc *desc, const cs_columns *columns,
                                     cs_cublaslt_problem *out) CS_MUST_USE;
/* Packed weights: rows of W, each `a.pitch` elements, then the bias; -1: there is none. Of a
 * MatMul: the constant as it is. */
int64_t cs_cublaslt_bias_offset(const cs_cublaslt_problem *problem);
int64_t cs_cublaslt_weight_bytes(const cs_cublaslt_problem *problem);
/* The reduction schemes (a mask) whose sums are as wide as the products'. */
uint32_t cs_cublaslt_reductions(const cs_cublaslt_problem *problem, bool deterministic);

#endif
