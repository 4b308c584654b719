/* A dense layer as a matrix product, made from Gemm, or from a 1×1 convolution whose pixels are the
 * rows of a matrix; and MatMul. Pure data.
 *
 * Row by row, Y[n, m] = act(X[n, k] · W[m, k]ᵀ + bias + residual). cuBLASLt counts by columns:
 * D (m × n) = A (k × m, transposed) · B (k × n) with A = W, B = X, C = the residual, D = Y.
 *
 * Or a MatMul, image by image, where A (m × k, not transposed) is its second factor and B its
 * first.
 */
#ifndef CONVSCHED_BACKEND_CUDA_CUBLASLT_PROBLEM_H_
#define CONVSCHED_BACKEND_CUDA_CUBLASLT_PROBLEM_H_

#include <cublasLt.h>

#include "graph/op.h"

typedef struct cs_cublaslt_matrix {
  int64_t rows, columns; /* of what is stored, column by column */
  int64_t pitch;         /* elements from a column to the next */
  int64_t alignment;     /* of the first element (of every image), bytes */
  int64_t image;         /* elements from an image to the next; 0: the same for all */
} cs_cublaslt_matrix;

typedef struct cs_cublaslt_problem {
  bool convolution, matmul;
  int64_t images;                /* products; 1 but of a MatMul */
  int64_t constant;              /* elements of a MatMul's constant factor; 0: there is none */
  int64_t m, n, k;               /* outputs (features), rows (pixels), inputs */
  cs_cublaslt_matrix a, b, c, d; /* c: as d where there is no residual */
  cs_dtype storage;              /* of all four, and of the bias */
  cudaDataType_t type;           /* the same */
  cublasComputeType_t compute;
  cublasLtEpilogue_t epilogue;
  bool bias, residual;
  cs_precision precision;
} cs_cublaslt_problem;

/* NULL; or why this is no product for cuBLASLt (a static text that continues "not computed by
 * cuBLASLt: "). */
const char *cs_cublaslt_problem_make(const cs_op_desc *desc, cs_cublaslt_problem *out) CS_MUST_USE;
/* Packed weights: rows of W, each `a.pitch` elements, then the bias; -1: there is none. Of a
 * MatMul: the constant as it is. */
int64_t cs_cublaslt_bias_offset(const cs_cublaslt_problem *problem);
int64_t cs_cublaslt_weight_bytes(const cs_cublaslt_problem *problem);
/* The reduction schemes (a mask) whose sums are as wide as the products'. */
uint32_t cs_cublaslt_reductions(const cs_cublaslt_problem *problem, bool deterministic);

#endif
