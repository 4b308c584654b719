/* Kernels of winograd.h. Rows of tiles lie side by side: a warp's threads have neighbouring tiles.
 */
#include "backend/cuda/tensor_core.cuh"
/* Behind what declares C's functions as such. */
#include "backend/cuda/winograd.h"

namespace {

constexpr int kThreads = 128;

/* A row of tiles, one after the other over all images. */
struct Tiles {
  int32_t total; /* threads */
  FastDiv tiles, across, down;
};

__device__ __forceinline__ bool place(const Tiles &t, int32_t *row, int32_t *tile, int32_t *image,
                                      int32_t *th, int32_t *tw) {
  int32_t index = thread_index<int32_t>();
  if (index >= t.total) return false;
  *row = divide(index, t.tiles, tile);
  int32_t rest = divide(*tile, t.across, tw);
  *image = divide(rest, t.down, th);
  return true;
}

Tiles tiles_of(const cs_winograd *w, int64_t rows) {
  Tiles t = {};
  t.total = (int32_t)(rows * w->tiles);
  set_divisor(&t.tiles, w->tiles);
  set_divisor(&t.across, w->tiles_w);
  set_divisor(&t.down, w->tiles_h);
  return t;
}

/* ---- Inputs: tiles overlap by two ---- */

struct ForthParams {
  Tiles tiles;
  const float *x;
  float *out;
  int64_t plane, pitch; /* of `out`: elements from one of the n² to the next, from row to row */
  Strides<true> in;
  int height, width, pad_h, pad_w;
};

template <int M>
__global__ void __launch_bounds__(kThreads)
    cs_winograd_forth_kernel(const __grid_constant__ ForthParams p) {
  begin_kernel();
  constexpr int N = M + 2;
  int32_t c, tile, image, th, tw;
  if (!place(p.tiles, &c, &tile, &image, &th, &tw)) return;
  const float *x = p.x + image * p.in.n + c * p.in.c;
  int y0 = th * M - p.pad_h, x0 = tw * M - p.pad_w;
  float d[N * N];
#pragma unroll
  for (int i = 0; i < N; i++)
#pragma unroll
    for (int j = 0; j < N; j++) {
      bool there =
          (unsigned)(y0 + i) < (unsigned)p.height && (unsigned)(x0 + j) < (unsigned)p.width;
      d[i * N + j] = there ? x[(y0 + i) * p.in.h + (x0 + j) * p.in.w] : 0.f;
    }
#pragma unroll
  for (int j = 0; j < N; j++) {
    float column[N * N];
    cs_winograd_forth(M, d + j, column, N);
#pragma unroll
    for (int i = 0; i < N; i++) d[i * N + j] = column[i * N];
  }
  float *out = p.out + c * p.pitch + tile;
#pragma unroll
  for (int i = 0; i < N; i++) {
    float row[N];
    cs_winograd_forth(M, d + i * N, row, 1);
#pragma unroll
    for (int j = 0; j < N; j++) out[(i * N + j) * p.plane] = row[j];
  }
}

/* ---- Products: sums[filter][tile] = Σ over channels of filters[channel][filter] ·
 * tiles[channel][tile] ----
 * Both factors are rows that lie as they are multiplied: they go to shared memory as they are, in
 * stages. Sums of kChunk stages are added to those of all channels: errors grow with the root of
 * fewer products. */

constexpr int kFilters = 64, kColumns = 128; /* of a block's tile; 8 × 8 a thread, in fours */
constexpr int kDepth = 16, kStages = 3, kChunk = 2;

struct ProductParams {
  const float *filters, *tiles;
  float *sums;
  int channels, n_filters;
  int64_t pitch, filter_pitch;
};

struct Stage {
  float filters[kDepth][kFilters], tiles[kDepth][kColumns];
};

/* What a thread loads of a factor's stages: vectors of one column of its rows, LANES threads to a
 * row. Zeros behind the last channel and the last column. */
template <int LANES>
struct Loader {
  static constexpr int kRows = kThreads / LANES; /* of a round */
  const float *from;
  int64_t pitch;
  int channel, column;
  bool there;

  __device__ __forceinline__ Loader(const float *matrix, int64_t pitch, int64_t first)
      : pitch(pitch), channel((int)threadIdx.x / LANES), column((int)threadIdx.x % LANES * 4) {
    there = first + column < pitch;
    from = matrix + (there ? channel * pitch + first + column : 0);
  }

  __device__ __forceinline__ void load(float (&to)[kDepth][LANES * 4], int channels) {
    int own = (int)threadIdx.x / LANES;
#pragma unroll
    for (int i = 0; i < kDepth; i += kRows)
      copy_async((uint32_t)__cvta_generic_to_shared(&to[own + i][column]), from + i * pitch,
                 there && channel + i < channels);
    from += kDepth * pitch, channel += kDepth;
  }
};

__device__ __forceinline__ void multiply_stage(const Stage &stage, int tx, int ty,
                                               float (&sum)[8][8]) {
#pragma unroll
  for (int d = 0; d < kDepth; d++) {
    float a[2][4], b[2][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      load_vector<float, 4>(&stage.filters[d][half * (kFilters / 2) + ty * 4], a[half]);
      load_vector<float, 4>(&stage.tiles[d][half * (kColumns / 2) + tx * 4], b[half]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) sum[i][j] = fmaf(a[i / 4][i % 4], b[j / 4][j % 4], sum[i][j]);
  }
}

__device__ __forceinline__ void add_chunk(float (&sum)[8][8], float (&chunk)[8][8]) {
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sum[i][j] += chunk[i][j], chunk[i][j] = 0.f;
}

__global__ void __launch_bounds__(kThreads, 3)
    cs_winograd_product_kernel(const __grid_constant__ ProductParams p) {
  begin_kernel();
  __shared__ __align__(16) Stage stages[kStages];
  int64_t tile0 = (int64_t)blockIdx.x * kColumns, z = blockIdx.z;
  int filter0 = (int)blockIdx.y * kFilters;
  int steps = (p.channels + kDepth - 1) / kDepth;
  int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
  float sum[8][8] = {}, chunk[8][8] = {};
  Loader<kFilters / 4> filter_loader(p.filters + z * p.channels * p.filter_pitch, p.filter_pitch,
                                     filter0);
  Loader<kColumns / 4> tile_loader(p.tiles + z * p.channels * p.pitch, p.pitch, tile0);
#pragma unroll
  for (int s = 0; s < kStages - 1; s++) {
    filter_loader.load(stages[s].filters, p.channels);
    tile_loader.load(stages[s].tiles, p.channels);
    commit_async();
  }
  for (int step = 0, at = 0; step < steps; step++) {
    wait_async<kStages - 2>();
    __syncthreads(); /* the stage is there, and the one before has been read by all */
    int next = step + kStages - 1, next_at = at == 0 ? kStages - 1 : at - 1;
    if (next < steps) {
      filter_loader.load(stages[next_at].filters, p.channels);
      tile_loader.load(stages[next_at].tiles, p.channels);
    }
    commit_async();
    multiply_stage(stages[at], tx, ty, chunk);
    if (step % kChunk == kChunk - 1 || step == steps - 1) add_chunk(sum, chunk);
    at = at == kStages - 1 ? 0 : at + 1;
  }
  float *sums = p.sums + z * p.n_filters * p.pitch;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int filter = filter0 + i / 4 * (kFilters / 2) + ty * 4 + i % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int64_t tile = tile0 + half * (kColumns / 2) + tx * 4;
      float four[4] = {sum[i][4 * half], sum[i][4 * half + 1], sum[i][4 * half + 2],
                       sum[i][4 * half + 3]};
      if (filter < p.n_filters && tile < p.pitch)
        store_vector<float, 4>(sums + filter * p.pitch + tile, four);
    }
  }
}

/* ---- Outputs ---- */

struct BackParams {
  Tiles tiles;
  const float *sums, *bias, *residual;
  float *y;
  int64_t plane, pitch;
  Strides<true> out, added;
  int height, width;
  Activation act;
};

/* V outputs of a row together: whole vectors, where they lie in the image at all. */
template <int M, int V>
__global__ void __launch_bounds__(kThreads)
    cs_winograd_back_kernel(const __grid_constant__ BackParams p) {
  begin_kernel();
  constexpr int N = M + 2;
  int32_t k, tile, image, th, tw;
  if (!place(p.tiles, &k, &tile, &image, &th, &tw)) return;
  const float *sums = p.sums + k * p.pitch + tile;
  float s[N * N];
#pragma unroll
  for (int i = 0; i < N * N; i++) s[i] = sums[i * p.plane];
#pragma unroll
  for (int j = 0; j < N; j++) {
    float column[N * N];
    cs_winograd_back(M, s + j, column, N);
#pragma unroll
    for (int i = 0; i < M; i++) s[i * N + j] = column[i * N];
  }
  float bias = p.bias != nullptr ? p.bias[k] : 0.f;
#pragma unroll
  for (int i = 0; i < M; i++) {
    float row[M];
    cs_winograd_back(M, s + i * N, row, 1);
    int oy = th * M + i;
#pragma unroll
    for (int j = 0; j < M; j += V) {
      int ox = tw * M + j;
      if (oy >= p.height || ox >= p.width) continue;
      float out[V];
#pragma unroll
      for (int v = 0; v < V; v++) out[v] = row[j + v] + bias;
      if (p.residual != nullptr) {
        const float *added =
            p.residual + image * p.added.n + k * p.added.c + oy * p.added.h + ox * p.added.w;
#pragma unroll
        for (int v = 0; v < V; v++) out[v] += added[v * p.added.w];
      }
      activate<V>(p.act, out);
      store_vector<float, V>(p.y + image * p.out.n + k * p.out.c + oy * p.out.h + ox * p.out.w,
                             out);
    }
  }
}

/* ---- Host ---- */

template <int M>
cs_status launch_forth(const cs_op_desc *desc, const cs_winograd *w,
                       const cs_winograd_arrays *arrays, cudaStream_t stream) {
  ForthParams p = {};
  const int64_t *in = desc->inputs[0].shape.dims;
  p.tiles = tiles_of(w, w->channels);
  p.x = arrays->x, p.out = arrays->tiles;
  p.plane = w->channels * w->pitch, p.pitch = w->pitch;
  p.in = strides_of<true>(desc->inputs[0].strides);
  p.height = (int)in[2], p.width = (int)in[3];
  p.pad_h = (int)desc->attrs.conv.pads[0], p.pad_w = (int)desc->attrs.conv.pads[1];
  int64_t blocks = ((int64_t)p.tiles.total + kThreads - 1) / kThreads;
  return launch_kernel("winograd_forth", cs_winograd_forth_kernel<M>, dim3((unsigned)blocks),
                       dim3(kThreads), p, stream);
}

cs_status launch_product(const cs_winograd *w, const cs_winograd_arrays *arrays,
                         cudaStream_t stream) {
  ProductParams p = {};
  p.filters = arrays->filters, p.tiles = arrays->tiles, p.sums = arrays->sums;
  p.channels = (int)w->channels, p.n_filters = (int)w->filters;
  p.pitch = w->pitch, p.filter_pitch = w->filter_pitch;
  dim3 grid((unsigned)((w->tiles + kColumns - 1) / kColumns),
            (unsigned)((w->filters + kFilters - 1) / kFilters), (unsigned)(w->n * w->n));
  return launch_kernel("winograd_product", cs_winograd_product_kernel, grid, dim3(kThreads), p,
                       stream);
}

template <int M, int V>
cs_status launch_back(const cs_op_desc *desc, const cs_winograd *w,
                      const cs_winograd_arrays *arrays, cudaStream_t stream) {
  BackParams p = {};
  p.tiles = tiles_of(w, w->filters);
  p.sums = arrays->sums, p.bias = arrays->bias, p.residual = arrays->residual, p.y = arrays->y;
  p.plane = w->filters * w->pitch, p.pitch = w->pitch;
  p.out = strides_of<true>(desc->output.strides);
  if (arrays->residual) p.added = strides_of<true>(desc->inputs[desc->n_inputs - 1].strides);
  p.height = (int)desc->output.shape.dims[2], p.width = (int)desc->output.shape.dims[3];
  p.act = activation_of(desc->activation);
  int64_t blocks = ((int64_t)p.tiles.total + kThreads - 1) / kThreads;
  return launch_kernel("winograd_back", cs_winograd_back_kernel<M, V>, dim3((unsigned)blocks),
                       dim3(kThreads), p, stream);
}

template <int M>
cs_status launch_back(const cs_op_desc *desc, const cs_winograd *w,
                      const cs_winograd_arrays *arrays, cudaStream_t stream) {
  int vector = cs_winograd_vector(w, &desc->output);
  if constexpr (M == 4)
    if (vector == 4) return launch_back<M, 4>(desc, w, arrays, stream);
  if (vector == 2) return launch_back<M, 2>(desc, w, arrays, stream);
  return launch_back<M, 1>(desc, w, arrays, stream);
}

template <int M>
cs_status launch(const cs_op_desc *desc, const cs_winograd *w, const cs_winograd_arrays *arrays,
                 cudaStream_t stream) {
  cs_status st = launch_forth<M>(desc, w, arrays, stream);
  if (st == CS_OK) st = launch_product(w, arrays, stream);
  if (st == CS_OK) st = launch_back<M>(desc, w, arrays, stream);
  return st;
}

}  // namespace

cs_status cs_cuda_winograd(const cs_op_desc *desc, const cs_winograd *w,
                           const cs_winograd_arrays *arrays, cudaStream_t stream) {
  return w->m == 2 ? launch<2>(desc, w, arrays, stream) : launch<4>(desc, w, arrays, stream);
}
