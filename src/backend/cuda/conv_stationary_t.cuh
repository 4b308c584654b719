/* The kernel of conv_stationary_t.cu. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_CUH_

#include "backend/cuda/conv_stationary_t_plan.cuh"

/* Everything here is the including file's own. */
namespace {

constexpr int kStationaryGroups = 2; /* of four warps that multiply, each a tile of its own */
constexpr int kStationaryWarps = 4 * kStationaryGroups; /* the one behind them copies */
constexpr int kStationaryThreads = 32 * kStationaryWarps + 32;
constexpr int kStationaryParts = kStationaryPixels / 64;

/* A block's share: one remainder of the rows, a slice of filters, every `step`-th tile. */
struct StationaryShare {
  int32_t row_rest, slice, first, step;
};
__device__ __forceinline__ StationaryShare share_of(const StationaryParams &p, int32_t block,
                                                    int32_t blocks) {
  int32_t ways = 2 * p.slices, way = block % ways;
  return {way % 2, way / 2, block / ways, blocks / ways};
}

/* Shared memory: weights, stages, barriers; and the stage that is next. A barrier tells one phase
 * from the next, no more: a group begins a tile when the other has seen all stages of the one
 * before
 * (`turns`: a barrier for each group). */
struct StationaryShared {
  uint32_t weights, stages, weights_full, full, empty, turns;
  int32_t slot = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ StationaryShared(const StationaryParams &p, uint32_t shared,
                                              int filters) {
    weights = (shared + kStationaryAlignment - 1) / kStationaryAlignment * kStationaryAlignment;
    stages = weights + (uint32_t)(max(p.blocks[0], p.blocks[1]) * filters * kStageRow);
    weights_full = stages + (uint32_t)(p.stages * p.stage_bytes);
    full = weights_full + 8, empty = full + 8 * kStationaryStagesMost;
    turns = empty + 8 * kStationaryStagesMost;
  }
  __device__ __forceinline__ void create_barriers(const StationaryParams &p) const {
    if (threadIdx.x == 0) {
      barrier_create(weights_full, 1);
      for (int32_t group = 0; group < kStationaryGroups; group++) barrier_create(turn(group), 1);
      for (uint32_t i = 0; i < (uint32_t)p.stages; i++) {
        barrier_create(full + i * 8, 1);
        barrier_create(empty + i * 8, kStationaryWarps / kStationaryGroups);
      }
      barriers_created();
    }
    __syncthreads();
  }
  __device__ __forceinline__ uint32_t stage(const StationaryParams &p) const {
    return stages + (uint32_t)(slot * p.stage_bytes);
  }
  __device__ __forceinline__ uint32_t is_full() const { return full + 8 * (uint32_t)slot; }
  __device__ __forceinline__ uint32_t is_empty() const { return empty + 8 * (uint32_t)slot; }
  __device__ __forceinline__ uint32_t turn(int32_t group) const {
    return turns + 8 * (uint32_t)group;
  }
  __device__ __forceinline__ void next(const StationaryParams &p) {
    if (++slot == p.stages) slot = 0, parity ^= 1;
  }
  /* To the stage that is number `position` of all. */
  __device__ __forceinline__ void go_to(const StationaryParams &p, int32_t position) {
    slot = position % p.stages, parity = (uint32_t)(position / p.stages) & 1;
  }
};

/* ---- One thread copies ---- */

/* The weights once, while kernels before may still run; then the pixels of one tile after another.
 */
template <typename T, int FILTERS>
__device__ __forceinline__ void load_share(const StationaryParams &p, const StationaryShare &share,
                                           StationaryShared shared) {
  constexpr uint32_t kBlock = FILTERS * kStageRow;
  const int32_t blocks = p.blocks[share.row_rest];
  const char *w = p.w + share.row_rest * p.w_rows + (int64_t)share.slice * kBlock;
  barrier_expect(shared.weights_full, (uint32_t)blocks * kBlock);
#pragma unroll 1
  for (int32_t i = 0; i < blocks; i++, w += p.w_block)
    copy_bulk(shared.weights + (uint32_t)i * kBlock, w, kBlock, shared.weights_full);
  begin_kernel();
#pragma unroll 1
  for (int32_t tile = share.first; tile < p.tiles; tile += share.step) {
    TilePlace place = tile_place(p, tile);
#pragma unroll 1
    for (int32_t i = 0; i < p.shifts; i++) {
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

/* One row of taps of a stage, for one remainder of the columns: FILTERS sums of each pixel. */
template <typename T, int FILTERS, int REMAINDER, int ALL>
__device__ __forceinline__ void multiply_row(uint32_t a, uint32_t second, uint32_t b,
                                             float (&sum)[kStationaryParts][ALL][4]) {
  constexpr int kFrom = REMAINDER * FILTERS / 8;
#pragma unroll
  for (uint32_t k = 0; k < kStageRow / 16; k += 2) {
    wgmma<T, FILTERS, kFrom>(sum[0], matrix_of(a + k), matrix_of(b + k));
    wgmma<T, FILTERS, kFrom>(sum[1], matrix_of(second + k), matrix_of(b + k));
  }
}

/* What is left of a tile: stages, and where their weights are. */
struct StationaryLeft {
  int32_t stages;
  uint32_t weights;
  uint32_t turn; /* of the other group: when no stage is left to be waited for */
};

/* So many stages, all for the same remainders of the columns (REMAINDERS: a bit for each). Their
 * rows of taps are the same box, further and further down. */
template <typename T, int FILTERS, int REMAINDERS, int ALL>
__device__ __forceinline__ void multiply_stages(const StationaryParams &p, int32_t stages,
                                                int32_t taps, StationaryLeft &left,
                                                StationaryShared &shared,
                                                float (&sum)[kStationaryParts][ALL][4]) {
  constexpr uint32_t kBlock = FILTERS * kStageRow / 16;
  const uint32_t second = (uint32_t)(second_part_bytes(p) / 16);
  const uint32_t down = (uint32_t)(p.tile.w * kStageRow / 16);
  const bool tells = threadIdx.x % 32 == 0;
  uint32_t b = matrix_low(left.weights);
  uint32_t before = 0; /* the stage that is not given back yet */
#pragma unroll 1
  for (int32_t i = 0; i < stages; i++, shared.next(p)) {
    uint32_t a = matrix_low(shared.stage(p));
    barrier_wait(shared.is_full(), shared.parity);
    if (--left.stages == 0 && threadIdx.x % 128 == 0) barrier_arrive(left.turn);
#pragma unroll 1
    for (int32_t t = 0; t < taps; t++, a += down) {
      wgmma_begin();
      if constexpr ((REMAINDERS & 1) != 0) {
        multiply_row<T, FILTERS, 0>(a, a + second, b, sum);
        b += kBlock;
      }
      if constexpr ((REMAINDERS & 2) != 0) {
        multiply_row<T, FILTERS, 1>(a, a + second, b, sum);
        b += kBlock;
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (tells && t == 0 && before != 0) barrier_arrive(before);
    }
    before = shared.is_empty();
  }
  wgmma_wait<0>();
  if (tells && before != 0) barrier_arrive(before);
  constexpr int kBlocks = (REMAINDERS & 1) + (REMAINDERS >> 1);
  left.weights += (uint32_t)(stages * taps * kBlocks * FILTERS * kStageRow);
}

/* The sums of a tile: of each pixel FILTERS for the output's column of remainder 0, then as many of
 * remainder 1. */
template <typename T, int FILTERS>
__device__ __forceinline__ void multiply_tile(const StationaryParams &p, int32_t taps,
                                              int32_t group, StationaryShared shared,
                                              float (&sum)[kStationaryParts][2 * FILTERS / 8][4]) {
  StationaryLeft left = {p.shifts * p.chunks, shared.weights,
                         shared.turn(kStationaryGroups - 1 - group)};
  int32_t both = p.shifts - p.alone[0] - p.alone[1];
  multiply_stages<T, FILTERS, 1>(p, p.alone[0] * p.chunks, taps, left, shared, sum);
  multiply_stages<T, FILTERS, 2>(p, p.alone[1] * p.chunks, taps, left, shared, sum);
  multiply_stages<T, FILTERS, 3>(p, both * p.chunks, taps, left, shared, sum);
}

template <typename T, int FILTERS>
__device__ __forceinline__ void store_tile(
    const StationaryParams &p, const TilePlace &tile, const StationaryShare &share,
    const float (&sum)[kStationaryParts][2 * FILTERS / 8][4]) {
  const int32_t lane = (int32_t)threadIdx.x % 32, warp = (int32_t)threadIdx.x / 32 % 4;
  const int32_t column0 = share.slice * FILTERS;
  Slope act = slope_of(p.act);
#pragma unroll
  for (int part = 0; part < kStationaryParts; part++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      OutputPlace at;
      int32_t row = part * 64 + warp * 16 + half * 8 + lane / 4;
      if (!output_place(p, tile, row, share.row_rest, &at)) continue;
      int32_t y = at.n * p.out.n + at.h * p.out.h + at.w * p.out.w;
      if (at.w < p.out_columns)
        store_half<T, FILTERS / 8, 0, true>(p, act, sum[part], half, column0, y, 0);
      if (at.w + 1 < p.out_columns)
        store_half<T, FILTERS / 8, FILTERS / 8, true>(p, act, sum[part], half, column0, y + p.out.w,
                                                      0);
    }
}

template <typename T, int FILTERS>
__global__ void __launch_bounds__(kStationaryThreads, 1)
    cs_conv_stationary_t_kernel(const __grid_constant__ StationaryParams p) {
#if CS_WGMMA
  extern __shared__ char memory[];
  const int warp = uniform_warp();
  const StationaryShare share = share_of(p, (int32_t)blockIdx.x, (int32_t)gridDim.x);
  StationaryShared shared(p, (uint32_t)__cvta_generic_to_shared(memory), FILTERS);
  if (threadIdx.x == 0) prefetch_map(&p.x);
  shared.create_barriers(p);
  if (warp == kStationaryWarps) {
    if (threadIdx.x % 32 == 0) load_share<T, FILTERS>(p, share, shared);
    return;
  }
  const int32_t group = warp / 4, stages = p.shifts * p.chunks, taps = p.taps_h[share.row_rest];
  await_inputs(); /* for what is stored */
  barrier_wait(shared.weights_full, 0);
  int32_t position = group * stages;
  uint32_t parity = group == 0; /* the first turn is the first group's */
#pragma unroll 1
  for (int32_t tile = share.first + group * share.step; tile < p.tiles;
       tile += kStationaryGroups * share.step, position += kStationaryGroups * stages) {
    float sum[kStationaryParts][2 * FILTERS / 8][4] = {};
    shared.go_to(p, position);
    barrier_wait(shared.turn(group), parity);
    parity ^= 1;
    multiply_tile<T, FILTERS>(p, taps, group, shared, sum);
    store_tile<T, FILTERS>(p, tile_place(p, tile), share, sum);
  }
#endif
}

}  // namespace

#endif
