/* MatMul: y = act(a · b) over the last two axes, batch axes broadcast. A plain tiled kernel of any
 * strides and extents, f32 arithmetic. A constant factor is packed in the storage type. */
#include "backend/cuda/kernel_util.cuh"

/* A matrix of each image: strides in elements, 0 where a batch axis repeats. */
struct Matrices {
  const void *data;
  int64_t batch[2], row, column;
};

struct MatmulParams {
  Matrices a, b, y;
  void *out; /* y's */
  int64_t m, n, k;
  int64_t inner_batch;             /* extent of the second batch axis */
  int64_t row_tiles, column_tiles; /* of one image */
  Activation act;
};

template <typename T>
__device__ __forceinline__ const T *image_of(const Matrices &of, int64_t outer, int64_t inner) {
  return static_cast<const T *>(of.data) + outer * of.batch[0] + inner * of.batch[1];
}

constexpr int kDepth = 16, kThreads = 16; /* 16 × 16 threads */

/* TILE × TILE outputs a block, TILE / 16 squared a thread, 16 products deep. */
template <typename T, int TILE>
__global__ void __launch_bounds__(256) cs_matmul_kernel(const __grid_constant__ MatmulParams p) {
  begin_kernel();
  constexpr int kEach = TILE / kThreads;
  __shared__ __align__(16) float a_tile[kDepth][TILE + 4], b_tile[kDepth][TILE + 4];
  int64_t block = blockIdx.x, image = block / (p.row_tiles * p.column_tiles);
  int64_t row0 = block / p.column_tiles % p.row_tiles * TILE,
          column0 = block % p.column_tiles * TILE;
  int64_t outer = image / p.inner_batch, inner = image % p.inner_batch;
  const T *a = image_of<T>(p.a, outer, inner), *b = image_of<T>(p.b, outer, inner);
  int thread = (int)threadIdx.x, ty = thread / kThreads, tx = thread % kThreads;
  float sum[kEach][kEach] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
#pragma unroll
    for (int i = 0; i < kEach; i++) {
      int row = ty + i * kThreads; /* of a: neighbours in a warp are neighbours in K */
      bool there = row0 + row < p.m && k0 + tx < p.k;
      int64_t at = (row0 + row) * p.a.row + (k0 + tx) * p.a.column;
      a_tile[tx][row] = there ? Convert<T>::from(a[at]) : 0.f;
    }
#pragma unroll
    for (int i = 0; i < kEach; i++) {
      int element = thread + i * kThreads * kThreads; /* of b: neighbours in N */
      int depth = element / TILE, column = element % TILE;
      bool there = k0 + depth < p.k && column0 + column < p.n;
      int64_t at = (k0 + depth) * p.b.row + (column0 + column) * p.b.column;
      b_tile[depth][column] = there ? Convert<T>::from(b[at]) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; d++) {
      float x[kEach], w[kEach];
      load_vector<float, kEach>(&a_tile[d][ty * kEach], x);
      load_vector<float, kEach>(&b_tile[d][tx * kEach], w);
#pragma unroll
      for (int i = 0; i < kEach; i++)
#pragma unroll
        for (int j = 0; j < kEach; j++) sum[i][j] = fmaf(x[i], w[j], sum[i][j]);
    }
    __syncthreads();
  }
  T *y = static_cast<T *>(p.out) + outer * p.y.batch[0] + inner * p.y.batch[1];
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    int64_t row = row0 + ty * kEach + i;
    activate<kEach>(p.act, sum[i]);
#pragma unroll
    for (int j = 0; j < kEach; j++) {
      int64_t column = column0 + tx * kEach + j;
      if (row < p.m && column < p.n)
        y[row * p.y.row + column * p.y.column] = Convert<T>::to(sum[i][j]);
    }
  }
}

/* ---- Host ---- */

static const char *const kMatmulIds[] = {"cuda.matmul.tile64.v1", "cuda.matmul.tile32.v1"};
static const int kTiles[] = {64, 32};

static int64_t tiles_of(int64_t extent, int tile) {
  return (extent + tile - 1) / tile;
}

/* Blocks of one launch; 0: more than fit. */
static int64_t blocks_of(const cs_shape *out, int tile) {
  int64_t blocks = 1;
  for (int i = 0; i < out->rank; i++) {
    int64_t extent = i < out->rank - 2 ? out->dims[i] : tiles_of(out->dims[i], tile);
    if (!cs_mul_i64(blocks, extent, &blocks) || blocks > INT32_MAX) return 0;
  }
  return blocks;
}

static int matmul_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  const cs_shape *out = &desc->output.shape;
  if (desc->op != CS_OP_MATMUL || out->rank < 2 || out->rank > 4 || desc->has_bias ||
      desc->has_residual)
    return 0;
  for (int i = 0; i < 2; i++)
    if (blocks_of(out, kTiles[i]) > 0) add_variant(ids, capacity, &count, kMatmulIds[i]);
  return count;
}

static int64_t matmul_weight_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(cs_op_weight_elements(desc) * cs_dtype_size(desc->output.dtype));
}

static cs_status matmul_pack(const cs_op_desc *desc, const float *weight, const float *,
                             void *host_out) {
  int64_t n = cs_op_weight_elements(desc);
  if (n == 0) return CS_OK;
  memset(host_out, 0, (size_t)matmul_weight_bytes(desc));
  for (int64_t i = 0; i < n; i++) put_rounded(desc->output.dtype, host_out, i, weight[i]);
  return CS_OK;
}

static Matrices matrices_of(const cs_tensor_desc *of, const void *data) {
  int rank = of->shape.rank;
  Matrices m = {data, {0, 0}, of->strides[rank - 2], of->strides[rank - 1]};
  if (rank > 2) m.batch[1] = of->strides[rank - 3];
  if (rank > 3) m.batch[0] = of->strides[0];
  return m;
}

template <int TILE>
static cs_status launch_tiles(MatmulParams p, const cs_shape *out, cs_dtype dtype,
                              cudaStream_t stream) {
  int64_t blocks = blocks_of(out, TILE);
  p.row_tiles = tiles_of(p.m, TILE), p.column_tiles = tiles_of(p.n, TILE);
  return by_dtype(dtype, [&](auto type) {
    return launch_kernel("matmul", cs_matmul_kernel<decltype(type), TILE>, dim3((unsigned)blocks),
                         dim3(kThreads * kThreads), p, stream);
  });
}

static cs_status matmul_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                               const void *weights, void *output, cudaStream_t stream) {
  cs_matmul_factors of = cs_op_factors(desc, desc->output.dtype);
  const cs_shape *out = &desc->output.shape;
  bool constant = of.constant_a || of.constant_b;
  MatmulParams p = {};
  p.a = matrices_of(&of.a, of.constant_a ? weights : inputs[0]);
  p.b = matrices_of(&of.b, of.constant_b ? weights : inputs[constant ? 0 : 1]);
  p.y = matrices_of(&desc->output, output);
  p.out = output;
  p.m = out->dims[out->rank - 2], p.n = out->dims[out->rank - 1];
  p.k = of.a.shape.dims[out->rank - 1];
  p.inner_batch = out->rank > 2 ? out->dims[out->rank - 3] : 1;
  p.act = activation_of(desc->activation);
  return strcmp(id, kMatmulIds[0]) == 0 ? launch_tiles<64>(p, out, desc->output.dtype, stream)
                                        : launch_tiles<32>(p, out, desc->output.dtype, stream);
}

const KernelFamily cs_matmul_family = {matmul_variants, matmul_weight_bytes, matmul_pack,
                                       matmul_launch};
