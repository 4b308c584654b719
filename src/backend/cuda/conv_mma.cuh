/* The kernel of conv_mma.cu: its tiles, what it gets, and how it loads, multiplies and stores. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_MMA_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_MMA_CUH_

#include "backend/cuda/tensor_core.cuh"

/* Included once: everything here is the including file's own. */
namespace {

/* A block's tile: M pixels × N filters by WM × WN × WK warps (WK of them share a tile's sum), KB
 * bytes of the sum a stage. */
template <int M, int N, int WM, int WN, int WK, int KB, int STAGES>
struct Tile {
  static constexpr int kM = M, kN = N, kWarpsM = WM, kWarpsN = WN, kWarpsK = WK;
  static constexpr int kBytes = KB, kStages = STAGES;
  static constexpr int kThreads = 32 * WM * WN * WK;
  static constexpr int kVectors = KB / 16;               /* 16-byte vectors of a row of a stage */
  static constexpr int kRowStep = kThreads / kVectors;   /* rows that one pass of the block loads */
  static constexpr int kWarpM = M / WM, kWarpN = N / WN; /* of a warp */
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kPitch = N + 4; /* floats between rows of the sums in shared memory */
  static constexpr int kStageBytes = (M + N) * KB;
  static constexpr int kSumBytes = WK * M * kPitch * 4;
  static constexpr int kShared = STAGES * kStageBytes > kSumBytes ? STAGES *kStageBytes : kSumBytes;
  static_assert(M % kRowStep == 0 && N % kRowStep == 0, "whole passes");
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0, "whole fragments");
  static_assert(KB / 32 % WK == 0, "whole steps a warp");
};

struct MmaPart {
  const void *x, *w, *residual;
  const float *bias;
  void *y;
  int32_t rows, filters, channels, steps; /* steps: stages that the sum takes */
  int32_t w_row;                          /* elements between filters */
  int32_t height, width, taps_h, taps_w;
  int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  Strides<false> in, out, added;
  FastDiv out_w, out_h;
  Activation act;
  int32_t first, columns; /* the part's first block; tiles side by side */
  bool wide;              /* 16-byte stores (and residual loads) are possible */
};

struct MmaParams {
  MmaPart part[CS_CUDA_MERGE_MOST];
  int n;
};

/* Where vector `v` of a row lies in a stage: swizzled so that the 8 rows that ldmatrix reads
 * together are in different banks. */
template <typename C>
__device__ __forceinline__ uint32_t place(int row, int v) {
  static_assert(C::kVectors >= 4 && C::kVectors <= 16, "64, 128 or 256 bytes a row");
  int swizzled = C::kVectors == 4 ? v ^ ((row >> 1) & 3) : v ^ (row & 7);
  return (uint32_t)(row * C::kBytes + swizzled * 16);
}

/* ---- Loading ---- */

/* What a thread loads of every stage: one vector of each of its rows of pixels and of filters. */
template <typename T, typename C, bool POINTWISE>
struct Loader {
  static constexpr int kWidth = kVector<T>;
  static constexpr int kRowsA = C::kM / C::kRowStep, kRowsB = C::kN / C::kRowStep;
  const MmaPart &p;
  const T *x, *w;
  int32_t offset[kRowsA], top[kRowsA], left[kRowsA]; /* top < 0 without padding: no such row */
  int32_t c, tap_h, tap_w, w_offset;
  int row, vector, filters_left;

  __device__ __forceinline__ Loader(const MmaPart &part, int row0, int column0)
      : p(part), x(static_cast<const T *>(part.x)), w(static_cast<const T *>(part.w)) {
    row = (int)threadIdx.x / C::kVectors, vector = (int)threadIdx.x % C::kVectors;
#pragma unroll
    for (int i = 0; i < kRowsA; i++) find_row(i, row0 + row + i * C::kRowStep);
    c = vector * kWidth, tap_h = 0, tap_w = 0;
    wrap();
    w_offset = (column0 + row) * p.w_row + vector * kWidth;
    filters_left = p.filters - column0 - row;
  }

  __device__ __forceinline__ void find_row(int i, int32_t pixel) {
    if (pixel >= p.rows) {
      offset[i] = 0, left[i] = 0;
      top[i] = INT32_MIN / 2;
      return;
    }
    int32_t q, h;
    int32_t n = divide(divide(pixel, p.out_w, &q), p.out_h, &h);
    top[i] = h * p.stride_h - p.pad_top, left[i] = q * p.stride_w - p.pad_left;
    offset[i] = n * p.in.n + top[i] * p.in.h + left[i] * p.in.w;
  }

  __device__ __forceinline__ void wrap() {
    if constexpr (!POINTWISE) {
      while (c >= p.channels) {
        c -= p.channels;
        if (++tap_w == p.taps_w) tap_w = 0, tap_h++;
      }
    }
  }

  /* The next stage, into shared memory at `to`. */
  __device__ __forceinline__ void load(uint32_t to) {
    int32_t h = POINTWISE ? 0 : tap_h * p.dilation_h, s = POINTWISE ? 0 : tap_w * p.dilation_w;
    int32_t moved = POINTWISE ? c : h * p.in.h + s * p.in.w + c;
    bool inside = POINTWISE ? c < p.channels : tap_h < p.taps_h;
#pragma unroll
    for (int i = 0; i < kRowsA; i++) {
      bool there = POINTWISE ? inside && top[i] >= 0
                             : inside && (uint32_t)(top[i] + h) < (uint32_t)p.height &&
                                   (uint32_t)(left[i] + s) < (uint32_t)p.width;
      copy_async(to + place<C>(row + i * C::kRowStep, vector), there ? x + (offset[i] + moved) : x,
                 there);
    }
    to += C::kM * C::kBytes;
#pragma unroll
    for (int i = 0; i < kRowsB; i++) {
      bool there = i * C::kRowStep < filters_left;
      copy_async(to + place<C>(row + i * C::kRowStep, vector),
                 there ? w + (w_offset + i * C::kRowStep * p.w_row) : w, there);
    }
    c += C::kVectors * kWidth, w_offset += C::kVectors * kWidth;
    wrap();
  }
};

/* ---- Multiplying ---- */

template <typename T, typename C>
__device__ __forceinline__ void multiply_stage(uint32_t stage, int warp_m, int warp_n, int warp_k,
                                               float (&sum)[C::kMmaM][C::kMmaN][4]) {
  constexpr int kSteps = C::kBytes / 32;
  int lane = (int)threadIdx.x % 32, part = lane / 8, line = lane % 8;
  uint32_t filters = stage + C::kM * C::kBytes;
#pragma unroll
  for (int step = 0; step < kSteps / C::kWarpsK; step++) {
    int v = 2 * (step * C::kWarpsK + warp_k);
    uint32_t a[C::kMmaM][4], b[C::kMmaN / 2][4];
#pragma unroll
    for (int i = 0; i < C::kMmaM; i++) {
      int r = warp_m * C::kWarpM + i * 16 + (part & 1) * 8 + line;
      load_matrices(a[i], stage + place<C>(r, v + (part >> 1)));
      round_operand<T>(a[i]);
    }
#pragma unroll
    for (int j = 0; j < C::kMmaN / 2; j++) {
      int r = warp_n * C::kWarpN + j * 16 + (part >> 1) * 8 + line;
      load_matrices(b[j], filters + place<C>(r, v + (part & 1)));
    }
#pragma unroll
    for (int i = 0; i < C::kMmaM; i++)
#pragma unroll
      for (int j = 0; j < C::kMmaN; j++)
        multiply<T>(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
  }
}

/* ---- Storing ---- */

template <typename C>
__device__ __forceinline__ void put_sums(float *sums, int warp_m, int warp_n, int warp_k,
                                         const float (&sum)[C::kMmaM][C::kMmaN][4]) {
  int lane = (int)threadIdx.x % 32;
  float *at = sums + ((warp_k * C::kM + warp_m * C::kWarpM + lane / 4) * C::kPitch +
                      warp_n * C::kWarpN + lane % 4 * 2);
#pragma unroll
  for (int i = 0; i < C::kMmaM; i++)
#pragma unroll
    for (int j = 0; j < C::kMmaN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *reinterpret_cast<float2 *>(at + (i * 16 + half * 8) * C::kPitch + j * 8) =
            make_float2(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
}

/* V filters of one pixel, from the sums at `from`. */
template <typename T, typename C, int V>
__device__ __forceinline__ void store_pixel(const MmaPart &p, const float *from, int32_t filter,
                                            int32_t y, int32_t added) {
  float v[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] = from[i];
#pragma unroll
    for (int k = 1; k < C::kWarpsK; k++) v[i] += from[k * C::kM * C::kPitch + i];
    if (p.bias != nullptr) v[i] += p.bias[filter + i];
  }
  if (p.residual != nullptr) {
    float r[V];
    load_vector<T, V>(static_cast<const T *>(p.residual) + added, r);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] += r[i];
  }
  activate<V>(p.act, v);
  store_vector<T, V>(static_cast<T *>(p.y) + y, v);
}

template <typename T, typename C, int V>
__device__ __forceinline__ void store_tile(const MmaPart &p, const float *sums, int row0,
                                           int column0) {
  constexpr int kAcross = C::kN / V;
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < C::kM * kAcross; i += C::kThreads) {
    int row = i / kAcross, column = i % kAcross * V;
    int32_t pixel = row0 + row, filter = column0 + column, q, h;
    if (pixel >= p.rows || filter >= p.filters) continue;
    int32_t n = divide(divide(pixel, p.out_w, &q), p.out_h, &h);
    store_pixel<T, C, V>(p, sums + row * C::kPitch + column, filter,
                         n * p.out.n + h * p.out.h + q * p.out.w + filter,
                         n * p.added.n + h * p.added.h + q * p.added.w + filter);
  }
}

/* ---- The kernel ---- */

template <typename T, typename C, bool POINTWISE>
__global__ void __launch_bounds__(C::kThreads)
    cs_conv_mma_kernel(const __grid_constant__ MmaParams params) {
  extern __shared__ __align__(128) char shared[];
  int part = 0;
  while (part + 1 < params.n && (int)blockIdx.x >= params.part[part + 1].first) part++;
  const MmaPart &p = params.part[part];
  int tile = (int)blockIdx.x - p.first;
  int row0 = tile / p.columns * C::kM, column0 = tile % p.columns * C::kN;
  int warp = (int)threadIdx.x / 32;
  int warp_n = warp % C::kWarpsN, warp_m = warp / C::kWarpsN % C::kWarpsM;
  int warp_k = warp / (C::kWarpsN * C::kWarpsM);
  uint32_t stages = (uint32_t)__cvta_generic_to_shared(shared);
  Loader<T, C, POINTWISE> loader(p, row0, column0);
  float sum[C::kMmaM][C::kMmaN][4] = {};
#pragma unroll
  for (int s = 0; s < C::kStages - 1; s++) {
    if (s < p.steps) loader.load(stages + (uint32_t)(s * C::kStageBytes));
    commit_async();
  }
#pragma unroll 1
  for (int step = 0, slot = 0, next = C::kStages - 1; step < p.steps; step++) {
    wait_async<C::kStages - 2>();
    __syncthreads(); /* stage `step` is there, and all are done with the one before */
    if (step + C::kStages - 1 < p.steps) loader.load(stages + (uint32_t)(next * C::kStageBytes));
    commit_async();
    multiply_stage<T, C>(stages + (uint32_t)(slot * C::kStageBytes), warp_m, warp_n, warp_k, sum);
    slot = slot + 1 == C::kStages ? 0 : slot + 1;
    next = next + 1 == C::kStages ? 0 : next + 1;
  }
  wait_async<0>();
  __syncthreads(); /* the stages become sums */
  float *sums = reinterpret_cast<float *>(shared);
  put_sums<C>(sums, warp_m, warp_n, warp_k, sum);
  __syncthreads();
  if (p.wide)
    store_tile<T, C, kVector<T>>(p, sums, row0, column0);
  else
    store_tile<T, C, 1>(p, sums, row0, column0);
}

}  // namespace

#endif
