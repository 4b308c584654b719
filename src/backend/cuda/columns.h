/* Transposed convolutions as one matrix product: columns[pixel][tap][filter] = x[pixel] · W, by
 * cuBLASLt in f32, and a kernel that gathers for every output the columns which reach it (col2im
 * without atomic additions), adds the bias, activates and stores. And the naive way, scattering:
 * every input element adds to all outputs that it reaches, atomically, into f32 sums.
 *
 * What the kernels' arithmetic of indices is stands here, for device and host. */
#ifndef CONVSCHED_BACKEND_CUDA_COLUMNS_H_
#define CONVSCHED_BACKEND_CUDA_COLUMNS_H_

#include <cuda_runtime_api.h>

#include "graph/op.h"

#ifdef __CUDACC__
#define CS_ON_BOTH __host__ __device__ __forceinline__
#else
#define CS_ON_BOTH static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- One axis ---- */

/* Output `out` gets from input `in` through tap `tap` where out + pad = in · stride + tap ·
 * dilation. Taps that reach one output are tap_step apart, their inputs in_step, going down. */
typedef struct cs_axis_map {
  int stride, dilation, pad, kernel;
  int in, out; /* extents */
  int tap_step, in_step;
} cs_axis_map;

/* The inputs that reach an output: `n` of them, the first `in` through `tap`. */
typedef struct cs_reach {
  int tap, in, n;
} cs_reach;

CS_ON_BOTH cs_reach cs_reach_of(const cs_axis_map *a, int out) {
  cs_reach reach = {0, 0, 0};
  int shifted = out + a->pad, tap = 0;
  while (tap < a->tap_step && (shifted - tap * a->dilation) % a->stride != 0) tap++;
  if (tap == a->tap_step) return reach; /* no tap of this remainder */
  int in = (shifted - tap * a->dilation) / a->stride;
  if (in >= a->in) {
    int skipped = (in - a->in) / a->in_step + 1;
    tap += skipped * a->tap_step;
    in -= skipped * a->in_step;
  }
  if (tap >= a->kernel || in < 0) return reach;
  int by_taps = (a->kernel - 1 - tap) / a->tap_step, by_inputs = in / a->in_step;
  reach.tap = tap, reach.in = in;
  reach.n = (by_taps < by_inputs ? by_taps : by_inputs) + 1;
  return reach;
}

/* The output that an input reaches through a tap; -1: none. */
CS_ON_BOTH int cs_reached(const cs_axis_map *a, int in, int tap) {
  int out = in * a->stride + tap * a->dilation - a->pad;
  return out >= 0 && out < a->out ? out : -1;
}

/* ---- Columns ---- */

typedef struct cs_columns {
  cs_axis_map h, w;
  int64_t images;  /* of one product */
  int pieces;      /* products that the batch is cut into */
  int64_t filters; /* output channels */
  bool planes;     /* columns[image][tap][filter][pixel], else [image][pixel][tap][filter] */
} cs_columns;

/* NULL; or why this is no such operation (a static text that continues "not computed by columns:
 * "). One piece. */
const char *cs_columns_make(const cs_op_desc *desc, cs_columns *out) CS_MUST_USE;
/* Cuts the batch into equal pieces, whose columns take at most `limit` bytes; false: one image's
 * take more. */
bool cs_columns_cut(cs_columns *columns, int64_t batch, int64_t limit);
/* f32 columns of one piece, bytes, rounded up to 256. */
int64_t cs_columns_bytes(const cs_columns *columns);
/* The operation on one piece. */
cs_op_desc cs_columns_piece(const cs_columns *columns, const cs_op_desc *desc);

/* Strides of columns, elements. */
typedef struct cs_column_strides {
  int64_t image, h, w, tap, filter;
} cs_column_strides;
cs_column_strides cs_columns_strides(const cs_columns *columns);

/* ---- The product by rungs of our own (gemm_ladder.cu), of pixels that are rows ---- */

typedef struct cs_product_rows {
  int64_t rows, in, out; /* y[rows][out] = x[rows][in] · W[out][in]ᵀ */
  int64_t pitch;         /* elements from a row of x to the next */
  int64_t weight_pitch;  /* of W: a multiple of 16, filled up with zeros */
  int64_t alignment;     /* of x, bytes */
} cs_product_rows;
/* "cuda.gemm.naive.v1", …; NULL: no more. */
const char *cs_cuda_product_rung(int index);
/* Whether there is such a rung, for so many. */
bool cs_cuda_product_takes(const char *id, const cs_product_rows *rows);
/* `y` in f32, dense. */
cs_status cs_cuda_product(const char *id, cs_dtype dtype, const cs_product_rows *rows,
                          const void *x, const void *weights, float *y,
                          cudaStream_t stream) CS_MUST_USE;

/* ---- Kernels (columns.cu); `desc` is of a piece ---- */

/* y = act(sums of columns + bias), `bias` f32 [filters] or NULL. */
cs_status cs_cuda_gather_columns(const cs_op_desc *desc, const cs_columns *columns,
                                 const float *values, const float *bias, void *y,
                                 cudaStream_t stream) CS_MUST_USE;

/* The naive way. */
#define CS_CUDA_SCATTER_ID "cuda.convtranspose_scatter.v1"
bool cs_cuda_scatter_takes(const cs_op_desc *desc);
int64_t cs_cuda_scatter_workspace(const cs_op_desc *desc); /* f32 sums, bytes */
/* [channel][tap][filter] in the storage type, f32 bias behind at a multiple of 256. */
int64_t cs_cuda_scatter_weight_bytes(const cs_op_desc *desc);
void cs_cuda_scatter_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                          void *host_out);
cs_status cs_cuda_scatter_launch(const cs_op_desc *desc, const void *x, const void *weights,
                                 float *sums, void *y, cudaStream_t stream) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
