/* The kernel of conv_stationary_t.cu. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_CUH_

#include "backend/cuda/conv_stationary_t_plan.cuh"

/* Everything here is the including file's own. */
namespace {

/* GROUPS of four warps, each with a tile, stages and a warp that copies of its own; a tile is PARTS
 * times 64 pixels, of which FILTERS are computed at both remainders of the columns. */
template <int FILTERS, int GROUPS, int PARTS>
struct StationaryBlock {
  static constexpr int kFilters = FILTERS, kGroups = GROUPS, kParts = PARTS;
  static constexpr int kWarps = 4 * GROUPS; /* that multiply; those that copy are behind them */
  static constexpr int kThreads = 32 * (kWarps + GROUPS);
  static constexpr int kFragments = 2 * FILTERS / 8;
  /* Whether both remainders are one product, which reads the pixels once: where the assembler finds
   * registers for products of two widths (CUDA 13.0). Else it has each wait for the one before, and
   * says so to ptxas -v (C7511). */
  template <typename T>
  static constexpr bool kWide = sizeof(T) == 2 ? FILTERS == 64 || PARTS == 2 : FILTERS == 32;
};

/* A block's share: one remainder of the rows, a slice of filters, every `step`-th tile. */
struct StationaryShare {
  int32_t row_rest, slice, first, step;
};
__device__ __forceinline__ StationaryShare share_of(const StationaryParams &p, int32_t block,
                                                    int32_t blocks) {
  int32_t ways = 2 * p.slices, way = block % ways;
  return {way % 2, way / 2, block / ways, blocks / ways};
}

/* Shared memory as a group sees it: the block's weights, its own stages and their barriers, and the
 * stage that is next. */
struct StationaryShared {
  uint32_t weights, weights_full, stages, full, empty;
  int32_t slot = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ StationaryShared(const StationaryParams &p, uint32_t shared,
                                              int filters, int groups, int32_t group) {
    weights = (shared + kStationaryAlignment - 1) / kStationaryAlignment * kStationaryAlignment;
    stages = weights + (uint32_t)(max(p.blocks[0], p.blocks[1]) * filters * kStageRow);
    weights_full = stages + (uint32_t)(groups * p.stages * p.stage_bytes);
    stages += (uint32_t)(group * p.stages * p.stage_bytes);
    full = weights_full + 8 + (uint32_t)(group * 16 * kStationaryStagesMost);
    empty = full + 8 * kStationaryStagesMost;
  }
  /* By one thread of the group. */
  __device__ __forceinline__ void create_barriers(const StationaryParams &p) const {
    for (uint32_t i = 0; i < (uint32_t)p.stages; i++) {
      barrier_create(full + i * 8, 1);
      barrier_create(empty + i * 8, 4);
    }
  }
  __device__ __forceinline__ uint32_t stage(const StationaryParams &p) const {
    return stages + (uint32_t)(slot * p.stage_bytes);
  }
  __device__ __forceinline__ uint32_t is_full() const { return full + 8 * (uint32_t)slot; }
  __device__ __forceinline__ uint32_t is_empty() const { return empty + 8 * (uint32_t)slot; }
  __device__ __forceinline__ void next(const StationaryParams &p) {
    if (++slot == p.stages) slot = 0, parity ^= 1;
  }
};

/* ---- One thread of each group copies ---- */

/* For the whole block, while kernels before may still run. */
template <int FILTERS>
__device__ __forceinline__ void load_weights(const StationaryParams &p,
                                             const StationaryShare &share,
                                             const StationaryShared &shared) {
  constexpr uint32_t kBlock = FILTERS * kStageRow;
  const int32_t blocks = p.blocks[share.row_rest];
  const char *w = p.w + share.row_rest * p.w_rows + (int64_t)share.slice * kBlock;
  barrier_expect(shared.weights_full, (uint32_t)blocks * kBlock);
#pragma unroll 1
  for (int32_t i = 0; i < blocks; i++, w += p.w_block)
    copy_bulk(shared.weights + (uint32_t)i * kBlock, w, kBlock, shared.weights_full);
}

/* The pixels of one of the group's tiles after another. */
template <typename T>
__device__ __forceinline__ void load_pixels(const StationaryParams &p, const StationaryShare &share,
                                            int32_t first, int32_t step, StationaryShared shared) {
#pragma unroll 1
  for (int32_t tile = first; tile < p.tiles; tile += step) {
    TilePlace place = tile_place(p, tile);
#pragma unroll 1
    for (int32_t i = 0; i < p.both + p.alone[0] + p.alone[1]; i++) {
      WindowAt at = {0, place.w + p.shift_w[i], place.h + p.shift_h[share.row_rest], place.n};
#pragma unroll 1
      for (int32_t chunk = 0; chunk < p.chunks; chunk++, shared.next(p)) {
        barrier_wait(shared.is_empty(), shared.parity ^ 1);
        barrier_expect(shared.is_full(), (uint32_t)p.stage_bytes);
        copy_box(shared.stage(p), &p.x, at, shared.is_full());
        at.c += kStageRow / (int)sizeof(T);
      }
    }
  }
}

/* ---- The others multiply ---- */

/* One row of taps of a stage: N sums of each pixel, from fragment FROM on. a, b: of matrix_low. */
template <typename T, typename B, int N, int FROM>
__device__ __forceinline__ void multiply_row(uint32_t a, uint32_t second, uint32_t b,
                                             float (&sum)[B::kParts][B::kFragments][4]) {
#pragma unroll
  for (uint32_t k = 0; k < kStageRow / 16; k += 2)
#pragma unroll
    for (uint32_t part = 0; part < B::kParts; part++)
      wgmma<T, N, FROM>(sum[part], matrix_of(a + part * second + k), matrix_of(b + k));
}

/* So many stages, all for the same remainders of the columns (REMAINDERS: a bit for each; of both
 * there are some). Their rows of taps are the same box, further and further down. `weights`:
 * theirs, moved behind them. */
template <typename T, typename B, int REMAINDERS>
__device__ __forceinline__ void multiply_stages(const StationaryParams &p, int32_t stages,
                                                int32_t taps, uint32_t &weights,
                                                StationaryShared &shared,
                                                float (&sum)[B::kParts][B::kFragments][4]) {
  constexpr uint32_t kBlock = B::kFilters * kStageRow / 16, kBlocks = REMAINDERS == 3 ? 2 : 1;
  const uint32_t second = (uint32_t)(second_part_bytes(p) / 16);
  const uint32_t down = (uint32_t)(p.tile.w * kStageRow / 16);
  const bool tells = threadIdx.x % 32 == 0;
  uint32_t b = matrix_low(weights);
  uint32_t before = 0; /* the stage that is not given back yet */
  int32_t left = stages;
  if (REMAINDERS != 3 && left == 0) return;
#pragma unroll 1
  do {
    uint32_t a = matrix_low(shared.stage(p));
    barrier_wait(shared.is_full(), shared.parity);
    int32_t t = 0;
#pragma unroll 1
    do {
      wgmma_begin();
      if constexpr (REMAINDERS == 3 && B::template kWide<T>) {
        multiply_row<T, B, 2 * B::kFilters, 0>(a, second, b, sum);
      } else {
        constexpr int kRight = B::kFilters / 8;
        constexpr uint32_t kBehind = REMAINDERS == 3 ? kBlock : 0;
        if constexpr (REMAINDERS != 2) multiply_row<T, B, B::kFilters, 0>(a, second, b, sum);
        if constexpr (REMAINDERS != 1)
          multiply_row<T, B, B::kFilters, kRight>(a, second, b + kBehind, sum);
      }
      b += kBlocks * kBlock;
      wgmma_commit();
      wgmma_wait<1>();
      if (tells && t == 0 && before != 0) barrier_arrive(before);
      a += down;
    } while (++t < taps);
    before = shared.is_empty();
    shared.next(p);
  } while (--left > 0);
  wgmma_wait<0>();
  if (tells && before != 0) barrier_arrive(before);
  weights += (uint32_t)(stages * taps * kBlocks * B::kFilters * kStageRow);
}

/* The sums of a tile: of each pixel those of the output's column of remainder 0, then those of
 * remainder 1. */
template <typename T, typename B>
__device__ __forceinline__ void multiply_tile(const StationaryParams &p, int32_t taps,
                                              StationaryShared &shared,
                                              float (&sum)[B::kParts][B::kFragments][4]) {
  uint32_t weights = shared.weights;
  multiply_stages<T, B, 3>(p, p.both * p.chunks, taps, weights, shared, sum);
  multiply_stages<T, B, 1>(p, p.alone[0] * p.chunks, taps, weights, shared, sum);
  multiply_stages<T, B, 2>(p, p.alone[1] * p.chunks, taps, weights, shared, sum);
}

template <typename T, typename B>
__device__ __forceinline__ void store_tile(const StationaryParams &p, const TilePlace &tile,
                                           const StationaryShare &share,
                                           const float (&sum)[B::kParts][B::kFragments][4]) {
  constexpr int kHalf = B::kFragments / 2;
  const int32_t lane = (int32_t)threadIdx.x % 32, warp = (int32_t)threadIdx.x / 32 % 4;
  const int32_t column0 = share.slice * B::kFilters;
  Slope act = slope_of(p.act);
#pragma unroll
  for (int part = 0; part < B::kParts; part++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      OutputPlace at;
      int32_t row = part * 64 + warp * 16 + half * 8 + lane / 4;
      if (!output_place(p, tile, row, share.row_rest, &at)) continue;
      int32_t y = at.n * p.out.n + at.h * p.out.h + at.w * p.out.w;
      store_half<T, kHalf, 0, true>(p, act, sum[part], half, column0, y, 0);
      if (at.w + 1 < p.out_columns)
        store_half<T, kHalf, kHalf, true>(p, act, sum[part], half, column0, y + p.out.w, 0);
    }
}

template <typename T, typename B>
__global__ void __launch_bounds__(B::kThreads, 1)
    cs_conv_stationary_t_kernel(const __grid_constant__ StationaryParams p) {
#if CS_WGMMA
  extern __shared__ char memory[];
  const int32_t warp = uniform_warp(), copier = warp - B::kWarps;
  const int32_t group = copier >= 0 ? copier : warp / 4;
  const StationaryShare share = share_of(p, (int32_t)blockIdx.x, (int32_t)gridDim.x);
  const int32_t first = share.first + group * share.step, step = B::kGroups * share.step;
  StationaryShared shared(p, (uint32_t)__cvta_generic_to_shared(memory), B::kFilters, B::kGroups,
                          group);
  if (copier >= 0 && threadIdx.x % 32 == 0) {
    if (copier == 0) prefetch_map(&p.x);
    if (copier == 0) barrier_create(shared.weights_full, 1);
    shared.create_barriers(p);
    barriers_created();
  }
  __syncthreads();
  if (copier >= 0) {
    if (threadIdx.x % 32 != 0) return;
    if (copier == 0) load_weights<B::kFilters>(p, share, shared);
    begin_kernel();
    load_pixels<T>(p, share, first, step, shared);
    return;
  }
  await_inputs(); /* for what is stored */
  barrier_wait(shared.weights_full, 0);
#pragma unroll 1
  for (int32_t tile = first; tile < p.tiles; tile += step) {
    float sum[B::kParts][B::kFragments][4] = {};
    multiply_tile<T, B>(p, p.taps_h[share.row_rest], shared, sum);
    store_tile<T, B>(p, tile_place(p, tile), share, sum);
  }
#endif
}

}  // namespace

#endif
