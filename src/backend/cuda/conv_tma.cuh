/* The kernel of conv_tma.cu: one warp has the copy engine fill a ring of stages, the others
 * multiply them by wgmma. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_TMA_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_TMA_CUH_

#include "backend/cuda/conv_tile.cuh"
#include "backend/cuda/tma.cuh"

/* Included once: everything here is the including file's own. */
namespace {

/* A block's tile: M pixels × N filters by GROUPS times four warps, each group M / GROUPS of the
 * pixels; BLOCKS fit on an SM. SPLIT blocks, a cluster, share a tile's sum. */
template <int M, int N, int STAGES, int GROUPS, int BLOCKS, int SPLIT = 1>
struct TmaTile {
  static constexpr int kM = M, kN = N, kStages = STAGES, kBlocks = BLOCKS, kSplit = SPLIT;
  static constexpr int kParts = M / GROUPS / 64; /* of 64 pixels, of a group */
  static constexpr int kWarps = 4 * GROUPS;      /* that multiply; the one behind them copies */
  static constexpr int kThreads = 32 * kWarps + 32, kStorers = 32 * kWarps;
  static constexpr int kPitch = N + 4, kWarpsK = 1; /* of sums in shared memory */
  static constexpr int kStageBytes = (M + N) * kStageRow;
  static constexpr int kAlignment = 1024; /* of a stage: what the swizzle repeats after */
  static constexpr int kShared = kAlignment + STAGES * (kStageBytes + 16);
  static_assert(M % (64 * GROUPS) == 0 && N % 32 == 0, "whole products, whole groups of filters");
  static_assert(SPLIT == 1 || M * kPitch * 4 <= STAGES * kStageBytes, "sums fit into the stages");
};

struct TmaPart : ConvOutput {
  CUtensorMap x;
  const char *w;          /* [stage][packed filter][128 bytes], swizzled */
  int32_t packed, chunks; /* chunks: stages of a tap */
  int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  int32_t taps_w;
};

struct TmaParams {
  TmaPart part[CS_CUDA_MERGE_MOST];
  int n;
};

/* Stages in shared memory, the barriers that say that they are full, those that say empty. */
template <typename C>
struct Ring {
  uint32_t stages, full, empty;
  int slot = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ explicit Ring(uint32_t shared) {
    stages = (shared + C::kAlignment - 1) / C::kAlignment * C::kAlignment;
    full = stages + C::kStages * C::kStageBytes, empty = full + C::kStages * 8;
  }
  __device__ __forceinline__ uint32_t stage() const {
    return stages + (uint32_t)(slot * C::kStageBytes);
  }
  __device__ __forceinline__ void next() {
    if (++slot == C::kStages) slot = 0, parity ^= 1;
  }
};

/* ---- One thread copies ---- */

/* The operands of `steps` stages from `begin` on. What the loops read of a part is read before:
 * behind an asm statement it would be read again, and how fast copies follow one another is what
 * bounds small tiles. Filters are no other kernel's output: as many as there are stages come before
 * what this kernel waits for has ended. */
template <typename T, typename C>
__device__ __forceinline__ void load_tile(const TmaPart &p, int32_t row0, int32_t column0,
                                          int32_t begin, int32_t steps, Ring<C> ring) {
  int32_t q, h;
  int32_t n = divide(divide(row0, p.out_w, &q), p.out_h, &h);
  WindowAt at = {0, q * p.stride_w - p.pad_left, h * p.stride_h - p.pad_top, n};
  constexpr int32_t kWidth = kStageRow / (int)sizeof(T);
  const uint32_t filters = (uint32_t)(min(C::kN, p.packed - column0) * kStageRow);
  const int32_t channels = p.chunks * kWidth, across = p.dilation_w;
  const int32_t width = p.taps_w * across, downward = p.dilation_h;
  const int64_t w_stage = (int64_t)p.packed * kStageRow;
  const char *w = p.w + (int64_t)column0 * kStageRow;
  int32_t right = 0, down = 0;
  if constexpr (C::kSplit > 1) {
    int32_t tap = begin / p.chunks;
    at.c = begin % p.chunks * kWidth;
    right = tap % p.taps_w * across, down = tap / p.taps_w * downward;
    w += begin * w_stage;
  }
  auto next_tap = [&] {
    at.c += kWidth;
    if (at.c < channels) return;
    at.c = 0, right += across;
    if (right == width) right = 0, down += downward;
  };
  const int32_t early = min(steps, C::kStages);
#pragma unroll 1
  for (uint32_t slot = 0; slot < (uint32_t)early; slot++) {
    barrier_expect(ring.full + slot * 8, C::kM * kStageRow + filters);
    copy_bulk(ring.stages + slot * C::kStageBytes + C::kM * kStageRow, w, filters,
              ring.full + slot * 8);
    w += w_stage;
  }
  begin_kernel();
#pragma unroll 1
  for (int32_t i = 0; i < early; i++, ring.next()) {
    copy_window(ring.stage(), &p.x, at, (uint16_t)right, (uint16_t)down,
                ring.full + (uint32_t)ring.slot * 8);
    next_tap();
  }
#pragma unroll 1
  for (int32_t left = steps - early; left > 0; left--, ring.next()) {
    uint32_t full = ring.full + (uint32_t)ring.slot * 8;
    barrier_wait(ring.empty + (uint32_t)ring.slot * 8, ring.parity ^ 1);
    barrier_expect(full, C::kM * kStageRow + filters);
    copy_window(ring.stage(), &p.x, at, (uint16_t)right, (uint16_t)down, full);
    copy_bulk(ring.stage() + C::kM * kStageRow, w, filters, full);
    w += w_stage;
    next_tap();
  }
}

/* ---- The others multiply ---- */

template <typename T, typename C>
__device__ __forceinline__ void multiply_tile(int32_t steps, int group, Ring<C> ring,
                                              float (&sum)[C::kParts][C::kN / 8][4]) {
  const bool tells = threadIdx.x % 32 == 0;
  uint32_t before = 0;
#pragma unroll 1
  for (int32_t step = 0; step < steps; step++, ring.next()) {
    uint32_t a = matrix_low(ring.stage() + (uint32_t)(group * C::kParts * 64 * kStageRow));
    uint32_t b = matrix_low(ring.stage() + C::kM * kStageRow);
    barrier_wait(ring.full + (uint32_t)ring.slot * 8, ring.parity);
    wgmma_begin();
#pragma unroll
    for (uint32_t k = 0; k < kStageRow / 16; k += 2)
#pragma unroll
      for (int part = 0; part < C::kParts; part++)
        wgmma<T, C::kN>(sum[part], matrix_of(a + (uint32_t)(part * (64 * kStageRow / 16)) + k),
                        matrix_of(b + k));
    wgmma_commit();
    wgmma_wait<1>(); /* the stage before is read */
    if (tells && step > 0) barrier_arrive(before);
    before = ring.empty + (uint32_t)ring.slot * 8;
  }
  wgmma_wait<0>();
}

template <typename C>
__device__ __forceinline__ void create_barriers(const Ring<C> &ring) {
  if (threadIdx.x == 0) {
    for (uint32_t slot = 0; slot < C::kStages; slot++) {
      barrier_create(ring.full + slot * 8, 1);
      barrier_create(ring.empty + slot * 8, C::kWarps);
    }
    barriers_created();
  }
  __syncthreads();
}

template <typename T, typename C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    cs_conv_tma_kernel(const __grid_constant__ TmaParams params) {
#if CS_WGMMA
  extern __shared__ char shared[];
  int part = 0, warp = uniform_warp();
  while (part + 1 < params.n && (int)blockIdx.x >= params.part[part + 1].first) part++;
  const TmaPart &p = params.part[part];
  int tile = ((int)blockIdx.x - p.first) / C::kSplit;
  int rank = ((int)blockIdx.x - p.first) % C::kSplit; /* in the cluster */
  int32_t row0 = tile / p.columns * C::kM, column0 = tile % p.columns * C::kN;
  int32_t begin = p.steps * rank / C::kSplit, end = p.steps * (rank + 1) / C::kSplit;
  Ring<C> ring((uint32_t)__cvta_generic_to_shared(shared));
  if (threadIdx.x == 0) prefetch_map(&p.x);
  create_barriers(ring);
  if (warp == C::kWarps) {
    if (threadIdx.x % 32 == 0) load_tile<T, C>(p, row0, column0, begin, end - begin, ring);
    return;
  }
  float sum[C::kParts][C::kN / 8][4] = {};
  await_inputs(); /* for what is stored, and the residual */
  multiply_tile<T, C>(end - begin, warp / 4, ring, sum);
  int row = warp / 4 * C::kParts * 64 + warp % 4 * 16;
  if constexpr (C::kSplit == 1) {
#pragma unroll
    for (int i = 0; i < C::kParts; i++)
      store_fragments<T, C::kN / 8>(p, sum[i], row0 + row + i * 64, column0);
  } else {
    float *sums = reinterpret_cast<float *>(
        __cvta_shared_to_generic((size_t)ring.stages)); /* all stages are read */
    meet_in_block<C::kStorers>();
#pragma unroll
    for (int i = 0; i < C::kParts; i++)
      put_fragments<T, C>(sums + (row + i * 64) * C::kPitch, sum[i]);
    store_shared<T, C>(p, sums, row0, column0, rank, (int)threadIdx.x);
  }
#endif
}

}  // namespace

#endif
