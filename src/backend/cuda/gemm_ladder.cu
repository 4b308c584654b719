/* Rungs of a ladder of dense layers, each with one idea more than the one before: a thread for each
 * output; tiles of both factors in shared memory; tiles of sums in registers, which vectors are
 * loaded for while the ones before are multiplied; the tensor cores, by what convolutions have
 * there (conv_mma.cu, conv_tma.cu). They are there to be compared with, and with cuBLASLt. */
#include "backend/cuda/conv_tiles.h"
#include "backend/cuda/gemm.cuh"
/* Behind what declares C's functions as such. */
#include "backend/cuda/columns.h"

namespace {

/* Their outputs are of type OUT: f32 of columns (columns.h), else that of the factors. */

/* ---- A thread for each output ---- */

constexpr int kNaive = 16; /* squared threads a block; neighbours are neighbours in a row of y */

template <typename T, typename OUT>
__global__ void __launch_bounds__(kNaive *kNaive)
    cs_gemm_naive_kernel(const __grid_constant__ GemmParams p) {
  begin_kernel();
  int64_t row = (int64_t)blockIdx.y * kNaive + threadIdx.x / kNaive;
  int column = (int)(blockIdx.x * kNaive + threadIdx.x % kNaive);
  if (row >= p.batch || column >= p.out) return;
  const T *x = static_cast<const T *>(p.x) + row * p.x_row;
  const T *w = static_cast<const T *>(p.w) + (int64_t)column * p.w_row;
  float sum = 0.f;
  for (int k = 0; k < p.in; k++)
    sum = fmaf(Convert<T>::from(x[k * p.x_col]), Convert<T>::from(w[k]), sum);
  gemm_store<T, OUT>(p, row, column, sum);
}

/* ---- Tiles in shared memory ---- */

constexpr int kShared = 32; /* squared outputs a block, one a thread; so many products deep */

template <typename T, typename OUT>
__global__ void __launch_bounds__(kShared *kShared)
    cs_gemm_shared_kernel(const __grid_constant__ GemmParams p) {
  begin_kernel();
  __shared__ float x_tile[kShared][kShared + 1], w_tile[kShared][kShared + 1];
  int ty = (int)threadIdx.x / kShared, tx = (int)threadIdx.x % kShared;
  int64_t row = (int64_t)blockIdx.y * kShared + ty;
  int column0 = (int)blockIdx.x * kShared;
  bool row_there = row < p.batch, w_there = column0 + ty < p.out;
  const T *x = static_cast<const T *>(p.x) + (row_there ? row : 0) * p.x_row;
  const T *w = static_cast<const T *>(p.w) + (int64_t)(w_there ? column0 + ty : 0) * p.w_row;
  float sum = 0.f;
  for (int k0 = 0; k0 < p.in; k0 += kShared) {
    int k = k0 + tx;
    x_tile[ty][tx] = row_there && k < p.in ? Convert<T>::from(x[k * p.x_col]) : 0.f;
    w_tile[ty][tx] = w_there && k < p.in ? Convert<T>::from(w[k]) : 0.f;
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kShared; d++) sum = fmaf(x_tile[ty][d], w_tile[tx][d], sum);
    __syncthreads();
  }
  if (row_there && column0 + tx < p.out) gemm_store<T, OUT>(p, row, column0 + tx, sum);
}

/* ---- Tiles in registers ---- */

constexpr int kTile = 128;    /* squared outputs a block */
constexpr int kThreads = 256; /* 16 × 16, each 8 × 8 outputs: two of four rows and columns each */
constexpr int kPitch = kTile + 4;

/* Both factors come in steps of two vectors: two threads load a row's. */
template <typename T>
constexpr int kStep = 2 * kVector<T>;

/* A vector of a row from `k` on; zeros where the row has ended. VECTORS: rows are whole aligned
 * vectors. */
template <typename T, bool VECTORS>
__device__ __forceinline__ void load_part(const T *row, int k, int end, int64_t step,
                                          float (&values)[kVector<T>]) {
  constexpr int V = kVector<T>;
  if (VECTORS) {
#pragma unroll
    for (int i = 0; i < V; i++) values[i] = 0.f;
    if (k < end) load_vector<T, V>(row + k, values);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++)
      values[i] = k + i < end ? Convert<T>::from(row[(k + i) * step]) : 0.f;
  }
}

template <typename T>
__device__ __forceinline__ void put_part(float (&tile)[kStep<T>][kPitch], int row, int k,
                                         const float (&values)[kVector<T>]) {
#pragma unroll
  for (int i = 0; i < kVector<T>; i++) tile[k + i][row] = values[i];
}

template <typename T>
__device__ __forceinline__ void multiply_step(const float (&x_tile)[kStep<T>][kPitch],
                                              const float (&w_tile)[kStep<T>][kPitch], int ty,
                                              int tx, float (&sum)[8][8]) {
#pragma unroll
  for (int d = 0; d < kStep<T>; d++) {
    float a[2][4], b[2][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      load_vector<float, 4>(&x_tile[d][half * 64 + ty * 4], a[half]);
      load_vector<float, 4>(&w_tile[d][half * 64 + tx * 4], b[half]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) sum[i][j] = fmaf(a[i / 4][i % 4], b[j / 4][j % 4], sum[i][j]);
  }
}

/* VECTORS: of x; W's rows are whole vectors in any case. */
template <typename T, typename OUT, bool VECTORS>
__global__ void __launch_bounds__(kThreads)
    cs_gemm_register_kernel(const __grid_constant__ GemmParams p) {
  begin_kernel();
  constexpr int V = kVector<T>;
  __shared__ __align__(16) float x_tile[2][kStep<T>][kPitch], w_tile[2][kStep<T>][kPitch];
  int64_t row0 = (int64_t)blockIdx.y * kTile;
  int column0 = (int)blockIdx.x * kTile, thread = (int)threadIdx.x;
  int own = thread / 2, part = thread % 2 * V; /* what it loads of each step */
  int64_t x_row = row0 + own < p.batch ? row0 + own : p.batch - 1;
  int w_row = column0 + own < p.out ? column0 + own : p.out - 1;
  const T *x = static_cast<const T *>(p.x) + x_row * p.x_row;
  const T *w = static_cast<const T *>(p.w) + (int64_t)w_row * p.w_row;
  int ty = thread / 16, tx = thread % 16;
  float sum[8][8] = {}, next_x[V], next_w[V];
  load_part<T, VECTORS>(x, part, p.in, p.x_col, next_x);
  load_part<T, true>(w, part, p.w_row, 1, next_w);
  put_part<T>(x_tile[0], own, part, next_x);
  put_part<T>(w_tile[0], own, part, next_w);
  __syncthreads();
  for (int k0 = 0, buffer = 0; k0 < p.in; k0 += kStep<T>, buffer ^= 1) {
    bool more = k0 + kStep<T> < p.in;
    if (more) {
      load_part<T, VECTORS>(x, k0 + kStep<T> + part, p.in, p.x_col, next_x);
      load_part<T, true>(w, k0 + kStep<T> + part, p.w_row, 1, next_w);
    }
    multiply_step<T>(x_tile[buffer], w_tile[buffer], ty, tx, sum);
    if (more) {
      put_part<T>(x_tile[buffer ^ 1], own, part, next_x);
      put_part<T>(w_tile[buffer ^ 1], own, part, next_w);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      int64_t row = row0 + i / 4 * 64 + ty * 4 + i % 4;
      int column = column0 + j / 4 * 64 + tx * 4 + j % 4;
      if (row < p.batch && column < p.out) gemm_store<T, OUT>(p, row, column, sum[i][j]);
    }
}

/* ---- Host ---- */

enum { NAIVE, SHARED, REGISTER, OWN };
const char *const kIds[OWN] = {"cuda.gemm.naive.v1", "cuda.gemm.shared.v1",
                               "cuda.gemm.register.v1"};
constexpr int kTiles[OWN] = {kNaive, kShared, kTile};
constexpr int kRowsMost = 65535; /* of tiles, in a grid */

int ladder_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->op != CS_OP_GEMM || !gemm_takes(desc)) return 0;
  for (int rung = 0; rung < OWN; rung++)
    if ((desc->output.shape.dims[0] + kTiles[rung] - 1) / kTiles[rung] <= kRowsMost)
      add_variant(ids, capacity, &count, kIds[rung]);
  return count;
}

int64_t ladder_weight_bytes(const cs_op_desc *desc) {
  return cs_gemm_family.weight_bytes(desc);
}

cs_status ladder_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                      void *host_out) {
  return cs_gemm_family.pack(desc, weight, bias, host_out);
}

dim3 grid_of(const GemmParams &p, int tile) {
  return dim3((unsigned)(((int64_t)p.out + tile - 1) / tile),
              (unsigned)((p.batch + tile - 1) / tile));
}

template <typename T, typename OUT>
cs_status launch_rung(int rung, const GemmParams &p, bool aligned, cudaStream_t stream) {
  if (p.batch == 0 || p.out == 0) return CS_OK;
  if (rung == NAIVE)
    return launch_kernel("gemm_naive", cs_gemm_naive_kernel<T, OUT>, grid_of(p, kNaive),
                         dim3(kNaive * kNaive), p, stream);
  if (rung == SHARED)
    return launch_kernel("gemm_shared", cs_gemm_shared_kernel<T, OUT>, grid_of(p, kShared),
                         dim3(kShared * kShared), p, stream);
  bool vectors = aligned && p.x_col == 1 && p.in % kVector<T> == 0 &&
                 (p.batch == 1 || p.x_row % kVector<T> == 0);
  return launch_kernel(
      "gemm_register",
      vectors ? cs_gemm_register_kernel<T, OUT, true> : cs_gemm_register_kernel<T, OUT, false>,
      grid_of(p, kTile), dim3(kThreads), p, stream);
}

/* OWN: it is none. */
int rung_of(const char *id) {
  int rung = 0;
  while (rung < OWN && strcmp(kIds[rung], id) != 0) rung++;
  return rung;
}

/* The caller found the variant among those of the operation. */
cs_status ladder_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                        const void *weights, void *output, cudaStream_t stream) {
  GemmParams p = gemm_params(desc, inputs, weights, output);
  bool aligned = desc->inputs[0].alignment >= 16;
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    return launch_rung<T, T>(rung_of(id), p, aligned, stream);
  });
}

/* ---- The tensor cores: a convolution of 1 × 1 over one line of pixels, the rows ---- */

struct Way {
  const char *id, *base; /* base: what computes the convolution */
};
const Way kMma[] = {
#define CS_WAY(name, m, n, ...) {"cuda.gemm.mma.v1-" name, CS_MMA_ID name},
    CS_MMA_TILES(CS_WAY)
#undef CS_WAY
};
const Way kTma[] = {
#define CS_WAY(name, m, n, ...) {"cuda.gemm.tma.v1-" name, CS_TMA_ID name},
    CS_TMA_TILES(CS_WAY)
#undef CS_WAY
};

/* [rows][elements] as one image of one line. */
cs_tensor_desc as_line(const cs_tensor_desc *matrix) {
  cs_tensor_desc line = *matrix;
  int64_t rows = matrix->shape.dims[0], elements = matrix->shape.dims[1], row = matrix->strides[0];
  line.layout = CS_LAYOUT_NHWC;
  line.shape.rank = 4;
  line.shape.dims[0] = line.shape.dims[2] = 1;
  line.shape.dims[1] = elements, line.shape.dims[3] = rows;
  line.strides[0] = line.strides[2] = rows * row;
  line.strides[1] = matrix->strides[1], line.strides[3] = row;
  return line;
}

cs_op_desc as_convolution(const cs_op_desc *desc) {
  cs_op_desc conv = *desc;
  conv.op = CS_OP_CONV;
  memset(&conv.attrs, 0, sizeof(conv.attrs));
  conv.attrs.conv.out_channels = desc->output.shape.dims[1];
  conv.attrs.conv.group = 1;
  for (int axis = 0; axis < 2; axis++) {
    conv.attrs.conv.kernel[axis] = conv.attrs.conv.strides[axis] = 1;
    conv.attrs.conv.dilations[axis] = 1;
  }
  for (int i = 0; i < desc->n_inputs; i++) conv.inputs[i] = as_line(&desc->inputs[i]);
  conv.output = as_line(&desc->output);
  return conv;
}

template <const KernelFamily &FAMILY, const auto &WAYS>
struct OnTensorCores {
  static int variants(const cs_op_desc *desc, const char **ids, int capacity) {
    const char *offered[CS_CUDA_VARIANTS_MOST];
    int count = 0;
    if (desc->op != CS_OP_GEMM || !gemm_takes(desc)) return 0;
    cs_op_desc conv = as_convolution(desc);
    int n = FAMILY.variants(&conv, offered, CS_CUDA_VARIANTS_MOST);
    for (int i = 0; i < n && i < CS_CUDA_VARIANTS_MOST; i++)
      for (const Way &way : WAYS)
        if (strcmp(way.base, offered[i]) == 0) add_variant(ids, capacity, &count, way.id);
    return count;
  }

  static int64_t weight_bytes(const cs_op_desc *desc) {
    cs_op_desc conv = as_convolution(desc);
    return FAMILY.weight_bytes(&conv);
  }

  static cs_status pack(const cs_op_desc *desc, const float *weight, const float *bias,
                        void *host_out) {
    cs_op_desc conv = as_convolution(desc);
    return FAMILY.pack(&conv, weight, bias, host_out);
  }

  static cs_status launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                          const void *weights, void *output, cudaStream_t stream) {
    cs_op_desc conv = as_convolution(desc);
    for (const Way &way : WAYS)
      if (strcmp(way.id, id) == 0)
        return FAMILY.launch(&conv, way.base, inputs, weights, output, stream);
    return cs_error(CS_CODE_BAD_INPUT, "%s is no rung of dense layers", id);
  }
};

using Mma = OnTensorCores<cs_mma_family, kMma>;
using Tma = OnTensorCores<cs_tma_family, kTma>;

}  // namespace

const char *cs_cuda_product_rung(int index) {
  return index < OWN ? kIds[index] : nullptr;
}

bool cs_cuda_product_takes(const char *id, const cs_product_rows *rows) {
  int rung = rung_of(id);
  return rung < OWN && rows->in < INT32_MAX / 2 && rows->out < INT32_MAX / 2 &&
         (rows->rows + kTiles[rung] - 1) / kTiles[rung] <= kRowsMost;
}

cs_status cs_cuda_product(const char *id, cs_dtype dtype, const cs_product_rows *rows,
                          const void *x, const void *weights, float *y, cudaStream_t stream) {
  GemmParams p = {};
  p.x = x, p.w = weights, p.y = y;
  p.batch = rows->rows, p.in = (int)rows->in, p.out = (int)rows->out;
  p.w_row = (int)rows->weight_pitch;
  p.x_row = rows->pitch, p.x_col = 1, p.y_row = rows->out, p.y_col = 1;
  return by_dtype(dtype, [&](auto type) {
    return launch_rung<decltype(type), float>(rung_of(id), p, rows->alignment >= 16, stream);
  });
}

const KernelFamily cs_gemm_ladder_family = {ladder_variants, ladder_weight_bytes, ladder_pack,
                                            ladder_launch};
const KernelFamily cs_gemm_mma_family = {Mma::variants, Mma::weight_bytes, Mma::pack, Mma::launch};
const KernelFamily cs_gemm_tma_family = {Tma::variants, Tma::weight_bytes, Tma::pack, Tma::launch};
