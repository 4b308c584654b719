/* The kernel of conv_mma.cu: its tiles, what it gets, and how it loads and multiplies. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_MMA_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_MMA_CUH_

#include "backend/cuda/conv_tile.cuh"

/* Included once: everything here is the including file's own. */
namespace {

/* A block's tile: M pixels × N filters by WM × WN × WK warps (WK of them share a tile's sum), KB
 * bytes of the sum a stage. SPLIT blocks, a cluster, share a tile's sum. */
template <int M, int N, int WM, int WN, int WK, int KB, int STAGES, int SPLIT = 1>
struct Tile {
  static constexpr int kM = M, kN = N, kWarpsM = WM, kWarpsN = WN, kWarpsK = WK;
  static constexpr int kBytes = KB, kStages = STAGES, kSplit = SPLIT;
  static constexpr int kThreads = 32 * WM * WN * WK, kStorers = kThreads;
  static constexpr int kVectors = KB / 16;               /* 16-byte vectors of a row of a stage */
  static constexpr int kRowStep = kThreads / kVectors;   /* rows that one pass of the block loads */
  static constexpr int kWarpM = M / WM, kWarpN = N / WN; /* of a warp */
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kPitch = N + 4; /* floats between rows of the sums in shared memory */
  static constexpr int kStageBytes = (M + N) * KB;
  static constexpr bool kShares = WK > 1 || SPLIT > 1; /* sums are added up in shared memory */
  static constexpr int kSumBytes = kShares ? WK * M * kPitch * 4 : 0;
  static constexpr int kShared = STAGES * kStageBytes > kSumBytes ? STAGES *kStageBytes : kSumBytes;
  static_assert(M % kRowStep == 0 && N % kRowStep == 0, "whole passes");
  static_assert(kWarpM % 16 == 0 && kWarpN % 32 == 0, "whole fragments, whole vectors of filters");
  static_assert(KB / 32 % WK == 0, "whole steps a warp");
};

struct MmaPart : ConvOutput {
  const void *x, *w;
  int32_t channels;
  int32_t packed, w_row; /* packed filters, and elements between them */
  int32_t height, width, taps_h, taps_w;
  int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  Strides<false> in;
  /* Of a prologue: scale and shift of each channel, in 16-byte vectors; the least it lets pass. */
  const void *affine;
  int32_t affine_vectors;
  float lowest;
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
  int32_t offset[kRowsA]; /* of a row's first tap */
  uint32_t taps[kRowsA];  /* which are inside: bit r and bit 16 + s; pointwise: bit 0 of any row */
  int32_t c, tap_h, tap_w, moved; /* moved: offset of the tap */
  int row, vector, filters_left;

  /* Of the stages from `begin` on. */
  __device__ __forceinline__ Loader(const MmaPart &part, int row0, int column0, int32_t begin)
      : p(part), x(static_cast<const T *>(part.x)), w(static_cast<const T *>(part.w)) {
    row = (int)threadIdx.x / C::kVectors, vector = (int)threadIdx.x % C::kVectors;
#pragma unroll
    for (int i = 0; i < kRowsA; i++) find_row(i, row0 + row + i * C::kRowStep);
    c = (begin * C::kVectors + vector) * kWidth, tap_h = 0, tap_w = 0, moved = 0;
    wrap();
    w += (column0 + row) * p.w_row + (begin * C::kVectors + vector) * kWidth;
    filters_left = p.packed - column0 - row;
  }

  __device__ __forceinline__ void find_row(int i, int32_t pixel) {
    offset[i] = 0, taps[i] = 0;
    if (pixel >= p.rows) return;
    int32_t q, h;
    int32_t n = divide(divide(pixel, p.out_w, &q), p.out_h, &h);
    int32_t top = h * p.stride_h - p.pad_top, left = q * p.stride_w - p.pad_left;
    offset[i] = n * p.in.n + top * p.in.h + left * p.in.w;
    if constexpr (POINTWISE) {
      taps[i] = 1;
    } else {
      for (int r = 0; r < p.taps_h; r++)
        if ((uint32_t)(top + r * p.dilation_h) < (uint32_t)p.height) taps[i] |= 1u << r;
      for (int t = 0; t < p.taps_w; t++)
        if ((uint32_t)(left + t * p.dilation_w) < (uint32_t)p.width) taps[i] |= 0x10000u << t;
    }
  }

  __device__ __forceinline__ void wrap() {
    if constexpr (!POINTWISE) {
      if (c < p.channels) return;
      do {
        c -= p.channels;
        if (++tap_w == p.taps_w) tap_w = 0, tap_h = min(tap_h + 1, p.taps_h);
      } while (c >= p.channels);
      moved = tap_h * p.dilation_h * p.in.h + tap_w * p.dilation_w * p.in.w;
    }
  }

  /* Pixels of the next stage, into it at `to`. Behind the last tap no row has any: bit taps_h. */
  __device__ __forceinline__ void load_pixels(uint32_t to) {
    uint32_t tap = 1u << tap_h | 0x10000u << tap_w;
    if constexpr (POINTWISE) tap = c < p.channels ? 1u : 2u;
    const T *from = x + (moved + c);
#pragma unroll
    for (int i = 0; i < kRowsA; i++)
      copy_async(to + place<C>(row + i * C::kRowStep, vector), from + offset[i],
                 (taps[i] & tap) == tap);
    c += C::kVectors * kWidth;
    wrap();
  }

  /* Its filters. */
  __device__ __forceinline__ void load_filters(uint32_t to) {
    to += C::kM * C::kBytes;
#pragma unroll
    for (int i = 0; i < kRowsB; i++)
      copy_async(to + place<C>(row + i * C::kRowStep, vector), w + i * C::kRowStep * p.w_row,
                 i * C::kRowStep < filters_left);
    w += C::kVectors * kWidth;
  }
};

/* ---- The prologue ---- */

/* Scale and shift of the channels that a register of a fragment holds: two, or one of f32. */
template <typename T>
using Map = std::conditional_t<std::is_same_v<T, float>, float2, float4>;

/* A part's scales and shifts into shared memory; they arrive with the first stage. */
template <typename C>
__device__ __forceinline__ void load_affine(const MmaPart &p, uint32_t to) {
  for (int v = (int)threadIdx.x; v < p.affine_vectors; v += C::kThreads)
    copy_async(to + 16u * (uint32_t)v, static_cast<const char *>(p.affine) + 16 * v, true);
}

/* Of a lane's channels in the `step`th 32 bytes of the sum: in registers 0 and 1, and in 2 and 3.
 */
template <typename T>
__device__ __forceinline__ void load_maps(const char *affine, int step, Map<T> (&maps)[2]) {
  const Map<T> *from = reinterpret_cast<const Map<T> *>(affine) + step * 8 + (int)threadIdx.x % 4;
  maps[0] = from[0], maps[1] = from[4];
}

/* In f32, then rounded as it would be stored (f32: where operands are). NaN stays NaN; zeros behind
 * the last channel meet zeros and stay. */
template <typename T>
__device__ __forceinline__ void apply_maps(uint32_t (&a)[4], const Map<T> (&maps)[2],
                                           float lowest) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const Map<T> &map = maps[i / 2];
    if constexpr (std::is_same_v<T, float>) {
      float v = fmaf(map.x, __uint_as_float(a[i]), map.y);
      a[i] = __float_as_uint(v < lowest ? lowest : v);
    } else {
      float2 v = Convert<T>::from2(a[i]);
      a[i] = larger<T>(Convert<T>::to2(fmaf(map.x, v.x, map.y), fmaf(map.z, v.y, map.w)),
                       Convert<T>::to2(lowest, lowest));
    }
  }
}

/* ---- Multiplying ---- */

/* Sums of a warp's fragments. */
template <typename C>
using Sums = float[C::kMmaM][C::kMmaN][4];

/* `affine`: of the stage's channels, `lowest`: of the part. */
template <typename T, typename C, bool PROLOGUE>
__device__ __forceinline__ void multiply_stage(uint32_t stage, const char *affine, float lowest,
                                               int warp_m, int warp_n, int warp_k, Sums<C> &sum) {
  constexpr int kSteps = C::kBytes / 32;
  int lane = (int)threadIdx.x % 32, part = lane / 8, line = lane % 8;
  uint32_t filters = stage + C::kM * C::kBytes;
#pragma unroll
  for (int step = 0; step < kSteps / C::kWarpsK; step++) {
    int v = 2 * (step * C::kWarpsK + warp_k);
    uint32_t a[C::kMmaM][4], b[C::kMmaN / 2][4];
    Map<T> maps[2] = {};
    if constexpr (PROLOGUE) load_maps<T>(affine, v / 2, maps);
#pragma unroll
    for (int i = 0; i < C::kMmaM; i++) {
      int r = warp_m * C::kWarpM + i * 16 + (part & 1) * 8 + line;
      load_matrices(a[i], stage + place<C>(r, v + (part >> 1)));
      if constexpr (PROLOGUE) apply_maps<T>(a[i], maps, lowest);
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

/* The sum of a block's tile over `steps` stages from `begin` on. Filters are no other kernel's
 * output: their first stages come before what this kernel waits for has ended. Afterwards the
 * stages' memory is free. `affine`: the part's scales and shifts, on their way. */
template <typename T, typename C, bool POINTWISE, bool PROLOGUE>
__device__ __forceinline__ void multiply_tile(const MmaPart &p, int row0, int column0,
                                              int32_t begin, int32_t steps, uint32_t stages,
                                              const char *affine, Sums<C> &sum) {
  constexpr int kAffineBytes = C::kBytes / 32 * 8 * (int)sizeof(Map<T>); /* of a stage */
  int warp = (int)threadIdx.x / 32;
  int warp_n = warp % C::kWarpsN, warp_m = warp / C::kWarpsN % C::kWarpsM;
  int warp_k = warp / (C::kWarpsN * C::kWarpsM);
  Loader<T, C, POINTWISE> loader(p, row0, column0, begin);
#pragma unroll
  for (int s = 0; s < C::kStages - 1; s++)
    if (s < steps) loader.load_filters(stages + (uint32_t)(s * C::kStageBytes));
  begin_kernel();
#pragma unroll
  for (int s = 0; s < C::kStages - 1; s++) {
    if (s < steps) loader.load_pixels(stages + (uint32_t)(s * C::kStageBytes));
    commit_async();
  }
#pragma unroll 1
  for (int step = 0, slot = 0, next = C::kStages - 1; step < steps; step++) {
    wait_async<C::kStages - 2>();
    __syncthreads(); /* stage `step` is there, and all are done with the one before */
    if (step + C::kStages - 1 < steps) {
      loader.load_pixels(stages + (uint32_t)(next * C::kStageBytes));
      loader.load_filters(stages + (uint32_t)(next * C::kStageBytes));
    }
    commit_async();
    multiply_stage<T, C, PROLOGUE>(stages + (uint32_t)(slot * C::kStageBytes),
                                   affine + (begin + step) * kAffineBytes, p.lowest, warp_m, warp_n,
                                   warp_k, sum);
    slot = slot + 1 == C::kStages ? 0 : slot + 1;
    next = next + 1 == C::kStages ? 0 : next + 1;
  }
  wait_async<0>();
  __syncthreads();
}

/* ---- The kernel ---- */

template <typename T, typename C, bool POINTWISE, bool PROLOGUE>
__global__ void __launch_bounds__(C::kThreads)
    cs_conv_mma_kernel(const __grid_constant__ MmaParams params) {
  extern __shared__ __align__(1024) char shared[];
  int part = 0;
  while (part + 1 < params.n && (int)blockIdx.x >= params.part[part + 1].first) part++;
  const MmaPart &p = params.part[part];
  int tile = ((int)blockIdx.x - p.first) / C::kSplit;
  int rank = ((int)blockIdx.x - p.first) % C::kSplit; /* in the cluster */
  int row0 = tile / p.columns * C::kM, column0 = tile % p.columns * C::kN;
  int32_t begin = p.steps * rank / C::kSplit, end = p.steps * (rank + 1) / C::kSplit;
  int warp = (int)threadIdx.x / 32;
  int warp_n = warp % C::kWarpsN, warp_m = warp / C::kWarpsN % C::kWarpsM;
  int warp_k = warp / (C::kWarpsN * C::kWarpsM);
  uint32_t stages = (uint32_t)__cvta_generic_to_shared(shared);
  Sums<C> sum = {};
  if constexpr (PROLOGUE) load_affine<C>(p, stages + C::kShared);
  multiply_tile<T, C, POINTWISE, PROLOGUE>(p, row0, column0, begin, end - begin, stages,
                                           shared + C::kShared, sum);
  if constexpr (!C::kShares) {
#pragma unroll
    for (int i = 0; i < C::kMmaM; i++)
      store_fragments<T, C::kMmaN>(p, sum[i], row0 + warp_m * C::kWarpM + i * 16,
                                   column0 + warp_n * C::kWarpN);
  } else {
    float *sums = reinterpret_cast<float *>(shared);
    int row = warp_k * C::kM + warp_m * C::kWarpM;
#pragma unroll
    for (int i = 0; i < C::kMmaM; i++)
      put_fragments<T, C>(sums + (row + i * 16) * C::kPitch + warp_n * C::kWarpN, sum[i]);
    if constexpr (C::kSplit == 1) __syncthreads();
    store_shared<T, C>(p, sums, row0, column0, rank, (int)threadIdx.x);
  }
}

}  // namespace

#endif
