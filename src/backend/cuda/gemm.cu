/* Gemm: y = act(x·Wᵀ + b + residual). Few rows: matrix-vector products, bound by reading W once.
 * More rows: a plain tiled kernel. Weights are packed in the storage type, rows padded to 16
 * elements. */
#include "backend/cuda/gemm.cuh"

/* THREADS threads (a warp or a block of 256) share the products of one output column; ROWS rows of
 * x at a time. */
template <typename T, int V, int ROWS, int THREADS>
__global__ void __launch_bounds__(256) cs_gemv_kernel(const __grid_constant__ GemmParams p) {
  begin_kernel();
  int64_t global = thread_index<int64_t>();
  int64_t column = global / THREADS;
  if (column >= p.out) return;
  int lane = (int)threadIdx.x % THREADS;
  int64_t row0 = (int64_t)blockIdx.y * ROWS;
  const T *w = static_cast<const T *>(p.w) + column * p.w_row;
  const T *x[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    int64_t row = row0 + r < p.batch ? row0 + r : p.batch - 1;
    x[r] = static_cast<const T *>(p.x) + row * p.x_row;
  }
  float sum[ROWS] = {};
  int vectors = p.in / V;
#pragma unroll 4
  for (int k = lane; k < vectors; k += THREADS) {
    float weights[V];
    load_vector<T, V>(w + (int64_t)k * V, weights);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      float values[V];
      load_vector<T, V>(x[r] + (V == 1 ? k * p.x_col : (int64_t)k * V), values);
#pragma unroll
      for (int i = 0; i < V; i++) sum[r] = fmaf(weights[i], values[i], sum[r]);
    }
  }
#pragma unroll 1
  for (int k = vectors * V + lane; k < p.in; k += THREADS)
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      sum[r] = fmaf(Convert<T>::from(w[k]), Convert<T>::from(x[r][k]), sum[r]);
#pragma unroll
  for (int r = 0; r < ROWS; r++) sum[r] = warp_sum(sum[r]);
  if constexpr (THREADS > 32) {
    __shared__ float partial[THREADS / 32][ROWS];
    if (lane % 32 == 0)
#pragma unroll
      for (int r = 0; r < ROWS; r++) partial[lane / 32][r] = sum[r];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      sum[r] = partial[0][r];
#pragma unroll
      for (int i = 1; i < THREADS / 32; i++) sum[r] += partial[i][r];
    }
  }
  if (lane != 0) return;
#pragma unroll
  for (int r = 0; r < ROWS; r++)
    if (row0 + r < p.batch) gemm_store<T>(p, row0 + r, (int)column, sum[r]);
}

/* 64 × 64 outputs a block, 4 × 4 a thread, 16 products deep. */
constexpr int kTile = 64, kDepth = 16;

template <typename T>
__global__ void __launch_bounds__(256) cs_gemm_tile_kernel(const __grid_constant__ GemmParams p) {
  begin_kernel();
  __shared__ float x_tile[kDepth][kTile + 4], w_tile[kDepth][kTile + 4];
  int64_t row0 = (int64_t)blockIdx.y * kTile;
  int column0 = (int)blockIdx.x * kTile;
  int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < p.in; k0 += kDepth) {
    int64_t k = k0 + tx;
    const T *x = static_cast<const T *>(p.x) + (row0 + ty) * p.x_row + k * p.x_col;
    const T *w = static_cast<const T *>(p.w) + (int64_t)(column0 + ty) * p.w_row + k;
#pragma unroll
    for (int i = 0; i < kTile; i += 16) {
      bool row_there = row0 + ty + i < p.batch, column_there = column0 + ty + i < p.out;
      x_tile[tx][ty + i] = k < p.in && row_there ? Convert<T>::from(x[i * p.x_row]) : 0.f;
      w_tile[tx][ty + i] =
          k < p.in && column_there ? Convert<T>::from(w[(int64_t)i * p.w_row]) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; d++) {
      float a[4], b[4];
      load_vector<float, 4>(&x_tile[d][ty * 4], a);
      load_vector<float, 4>(&w_tile[d][tx * 4], b);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int64_t row = row0 + ty * 4 + i;
      int column = column0 + tx * 4 + j;
      if (row < p.batch && column < p.out) gemm_store<T>(p, row, column, sum[i][j]);
    }
}

/* ---- Host ---- */

static const char *const kGemmIds[] = {"cuda.gemm.warp.v1", "cuda.gemm.block.v1",
                                       "cuda.gemm.tile.v1"};

/* Beyond these rows the other kind is never the faster one. */
#define CS_GEMV_ROWS_MAX 64
#define CS_TILE_ROWS_MIN 5

bool gemm_takes(const cs_op_desc *desc) {
  return desc->output.shape.rank == 2 && desc->inputs[0].shape.rank == 2 &&
         desc->inputs[0].shape.dims[1] < INT32_MAX / 2 &&
         desc->output.shape.dims[1] < INT32_MAX / 2;
}

static int gemm_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  int64_t batch = desc->output.shape.dims[0];
  if (!gemm_takes(desc)) return 0;
  if (batch <= CS_GEMV_ROWS_MAX) {
    add_variant(ids, capacity, &count, kGemmIds[0]);
    add_variant(ids, capacity, &count, kGemmIds[1]);
  }
  if (batch >= CS_TILE_ROWS_MIN) add_variant(ids, capacity, &count, kGemmIds[2]);
  return count;
}

static int64_t weight_row(const cs_op_desc *desc) {
  return cs_round_up(desc->inputs[0].shape.dims[1], 16);
}

static int64_t weight_matrix_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(weight_row(desc) * desc->output.shape.dims[1] *
                           cs_dtype_size(desc->output.dtype));
}

static int64_t gemm_weight_bytes(const cs_op_desc *desc) {
  int64_t bias = desc->has_bias ? desc->output.shape.dims[1] * (int64_t)sizeof(float) : 0;
  return weight_matrix_bytes(desc) + weight_part_bytes(bias);
}

static cs_status gemm_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                           void *host_out) {
  int64_t in = desc->inputs[0].shape.dims[1], out = desc->output.shape.dims[1];
  memset(host_out, 0, (size_t)gemm_weight_bytes(desc));
  for (int64_t o = 0; o < out; o++)
    for (int64_t i = 0; i < in; i++)
      put_rounded(desc->output.dtype, host_out, o * weight_row(desc) + i, weight[o * in + i]);
  if (desc->has_bias)
    memcpy((char *)host_out + weight_matrix_bytes(desc), bias, (size_t)out * sizeof(float));
  return CS_OK;
}

GemmParams gemm_params(const cs_op_desc *desc, const void *const *inputs, const void *weights,
                       void *output) {
  GemmParams p = {};
  p.x = inputs[0], p.w = weights, p.y = output;
  if (desc->has_bias)
    p.bias = reinterpret_cast<const float *>(static_cast<const char *>(weights) +
                                             weight_matrix_bytes(desc));
  if (desc->has_residual) {
    const cs_tensor_desc *residual = &desc->inputs[desc->n_inputs - 1];
    p.residual = inputs[desc->n_inputs - 1];
    p.residual_row = residual->strides[0], p.residual_col = residual->strides[1];
  }
  p.batch = desc->output.shape.dims[0];
  p.in = (int)desc->inputs[0].shape.dims[1], p.out = (int)desc->output.shape.dims[1];
  p.w_row = (int)weight_row(desc);
  p.x_row = desc->inputs[0].strides[0], p.x_col = desc->inputs[0].strides[1];
  p.y_row = desc->output.strides[0], p.y_col = desc->output.strides[1];
  p.act = activation_of(desc->activation);
  return p;
}

template <typename T, int V, int ROWS, int THREADS>
static cs_status launch_gemv(const GemmParams &p, cudaStream_t stream) {
  constexpr int kBlock = THREADS == 32 ? 128 : THREADS;
  dim3 grid((unsigned)(((int64_t)p.out * THREADS + kBlock - 1) / kBlock),
            (unsigned)((p.batch + ROWS - 1) / ROWS));
  return launch_kernel("gemv", cs_gemv_kernel<T, V, ROWS, THREADS>, grid, dim3(kBlock), p, stream);
}

template <typename T, int V>
static cs_status launch_rows(const GemmParams &p, bool block, cudaStream_t stream) {
  if (p.batch == 1)
    return block ? launch_gemv<T, V, 1, 256>(p, stream) : launch_gemv<T, V, 1, 32>(p, stream);
  return block ? launch_gemv<T, V, 4, 256>(p, stream) : launch_gemv<T, V, 4, 32>(p, stream);
}

static cs_status gemm_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                             const void *weights, void *output, cudaStream_t stream) {
  GemmParams p = gemm_params(desc, inputs, weights, output);
  if (p.batch == 0 || p.out == 0) return CS_OK;
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    if (strcmp(id, kGemmIds[2]) == 0) {
      dim3 grid((unsigned)((p.out + kTile - 1) / kTile), (unsigned)((p.batch + kTile - 1) / kTile));
      if (grid.y > 65535)
        return cs_error(CS_CODE_BAD_INPUT, "kernel gemm_tile: a batch of %lld; at most %d fit",
                        (long long)p.batch, 65535 * kTile);
      return launch_kernel("gemm_tile", cs_gemm_tile_kernel<T>, grid, dim3(256), p, stream);
    }
    bool block = strcmp(id, kGemmIds[1]) == 0;
    bool vector =
        p.x_col == 1 && (p.batch == 1 || p.x_row % V == 0) && desc->inputs[0].alignment >= 16;
    return vector ? launch_rows<T, V>(p, block, stream) : launch_rows<T, 1>(p, block, stream);
  });
}

const KernelFamily cs_gemm_family = {gemm_variants, gemm_weight_bytes, gemm_pack, gemm_launch};
