/* Winograd's minimal filtering F(m × m, 3 × 3) for f32, in three kernels through workspace: tiles
 * of inputs are transformed, one matrix product of filters and tiles for each element of a
 * transform (n × n, n = m + 2), and the sums are transformed back, biased and activated. The
 * workspace grows with the batch: under a limit a large batch has it in parts (docs/scheduling.md,
 * micro-batches).
 *
 * The transforms stand here, for device and host. Points: m = 2: 0, 1, -1, infinity; m = 4: 0,
 * ±1/2, ±3/2, infinity, whose rounding error is about half that of the usual 0, ±1, ±2. */
#ifndef CONVSCHED_BACKEND_CUDA_WINOGRAD_H_
#define CONVSCHED_BACKEND_CUDA_WINOGRAD_H_

#include <cuda_runtime_api.h>

#include "graph/op.h"

#ifdef __CUDACC__
#define CS_WINOGRAD_ON_BOTH __host__ __device__ __forceinline__
#else
#define CS_WINOGRAD_ON_BOTH static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Transforms of one axis: elements `step` apart ---- */

/* v[0 … m + 1] of d[0 … m + 1]. */
CS_WINOGRAD_ON_BOTH void cs_winograd_forth(int m, const float *d, float *v, int step) {
  if (m == 2) {
    v[0] = d[2 * step] - d[0];
    v[step] = d[step] + d[2 * step];
    v[2 * step] = d[2 * step] - d[step];
    v[3 * step] = d[3 * step] - d[step];
    return;
  }
  float even = d[4 * step] - 2.25f * d[2 * step], odd = 0.5f * d[3 * step] - 1.125f * d[step];
  float near_even = d[4 * step] - 0.25f * d[2 * step];
  float near_odd = 1.5f * d[3 * step] - 0.375f * d[step];
  float first = 0.5625f * d[0] - 2.5f * d[2 * step] + d[4 * step];
  float last = 0.5625f * d[step] - 2.5f * d[3 * step] + d[5 * step];
  v[0] = first;
  v[step] = even + odd, v[2 * step] = even - odd;
  v[3 * step] = near_even + near_odd, v[4 * step] = near_even - near_odd;
  v[5 * step] = last;
}

/* y[0 … m - 1] of s[0 … m + 1]. */
CS_WINOGRAD_ON_BOTH void cs_winograd_back(int m, const float *s, float *y, int step) {
  float sum = s[step] + s[2 * step], difference = s[step] - s[2 * step];
  if (m == 2) {
    float first = s[0] + sum;
    y[step] = difference + s[3 * step];
    y[0] = first;
    return;
  }
  float far_sum = s[3 * step] + s[4 * step], far_difference = s[3 * step] - s[4 * step];
  float first = s[0] + sum + far_sum, last = s[5 * step];
  y[0] = first;
  y[step] = 0.5f * difference + 1.5f * far_difference;
  y[2 * step] = 0.25f * sum + 2.25f * far_sum;
  y[3 * step] = 0.125f * difference + 3.375f * far_difference + last;
}

/* ---- What an operation is in tiles ---- */

#define CS_WINOGRAD_MOST 6 /* extent of the largest transform */

typedef struct cs_winograd {
  int m, n; /* extents of a tile of outputs, and of its transform */
  int64_t channels, filters;
  int64_t tiles_h, tiles_w; /* of an image */
  int64_t tiles;            /* of all images */
  /* Elements: of a row of tiles, and of a row of filters; both multiples of 4. */
  int64_t pitch, filter_pitch;
} cs_winograd;

/* "cuda.winograd.v1-2x2", "cuda.winograd.v1-4x4". */
#define CS_WINOGRAD_FAMILY "cuda.winograd"
#define CS_WINOGRAD_PREFIX "cuda.winograd."
const char *cs_winograd_id(int index); /* NULL: no more */
/* NULL; or why this is no such operation (a static text). */
const char *cs_winograd_make(const cs_op_desc *desc, const char *id, cs_winograd *out) CS_MUST_USE;
/* How many of a row's outputs are stored together: a divisor of m. */
int cs_winograd_vector(const cs_winograd *w, const cs_tensor_desc *y);
/* Bytes, multiples of 256: transformed tiles [n²][channel][tile], then sums [n²][filter][tile]. */
int64_t cs_winograd_tiles_bytes(const cs_winograd *w);
int64_t cs_winograd_workspace(const cs_winograd *w);
/* Transformed filters [n²][channel][filter], then the bias, f32. */
int64_t cs_winograd_filters_bytes(const cs_winograd *w);
int64_t cs_winograd_weight_bytes(const cs_winograd *w, bool has_bias);
/* `weight`: PyTorch's shape. */
void cs_winograd_pack(const cs_winograd *w, const float *weight, const float *bias, void *host_out);

/* ---- Kernels (winograd.cu) ---- */

typedef struct cs_winograd_arrays {
  const float *x, *filters, *bias, *residual; /* bias, residual: or NULL */
  float *tiles, *sums, *y;
} cs_winograd_arrays;
cs_status cs_cuda_winograd(const cs_op_desc *desc, const cs_winograd *w,
                           const cs_winograd_arrays *arrays, cudaStream_t stream) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
