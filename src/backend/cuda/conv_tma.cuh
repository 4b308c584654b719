/* The kernel of conv_tma.cu: one warp has the copy engine fill a ring of stages, the others
 * multiply them by wgmma. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_TMA_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_TMA_CUH_

#include "backend/cuda/conv_tile.cuh"
#include "backend/cuda/tma.cuh"

/* Included once: everything here is the including file's own. */
namespace {

constexpr int kStageRow = 128; /* bytes of the sum a stage */

/* A block's tile: M pixels × N filters by GROUPS times four warps, each group M / GROUPS of the
 * pixels; BLOCKS fit on an SM. The blocks of a CLUSTER have the same filters, and each brings a
 * part of them for all. */
template <int M, int N, int STAGES, int GROUPS, int BLOCKS, int CLUSTER = 1>
struct TmaTile {
  static constexpr int kM = M, kN = N, kStages = STAGES, kBlocks = BLOCKS, kCluster = CLUSTER;
  static constexpr int kParts = M / GROUPS / 64; /* of 64 pixels, of a group */
  static constexpr int kWarps = 4 * GROUPS;      /* that multiply; the one behind them copies */
  static constexpr int kThreads = 32 * kWarps + 32;
  static constexpr int kStageBytes = (M + N) * kStageRow;
  static constexpr int kAlignment = 1024; /* of a stage: what the swizzle repeats after */
  static constexpr int kShared = kAlignment + STAGES * (kStageBytes + 16);
  static_assert(M % (64 * GROUPS) == 0 && N % 32 == 0, "whole products, whole groups of filters");
  static_assert(CLUSTER == 1 || CLUSTER == 2, "parts of 8 filters at least, of 16");
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

/* A block's share of the filters of a stage. */
template <typename C>
__device__ __forceinline__ void load_filters(uint32_t to, const char *w, uint32_t bytes,
                                             uint32_t rank, uint32_t full) {
  if constexpr (C::kCluster == 1) {
    copy_bulk(to, w, bytes, full);
  } else {
    uint32_t share = bytes / C::kCluster;
    copy_bulk_to_all(to + rank * share, w + rank * share, share, full, (1 << C::kCluster) - 1);
  }
}

template <typename T, typename C>
__device__ __forceinline__ void load_tile(const TmaPart &p, int32_t row0, int32_t column0,
                                          Ring<C> ring) {
  int32_t q, h;
  int32_t n = divide(divide(row0, p.out_w, &q), p.out_h, &h);
  WindowAt at = {0, q * p.stride_w - p.pad_left, h * p.stride_h - p.pad_top, n};
  uint32_t filters = (uint32_t)(min(C::kN, p.packed - column0) * kStageRow);
  const char *w = p.w + (int64_t)column0 * kStageRow;
  uint32_t rank = C::kCluster > 1 ? cluster_rank() : 0;
  int32_t chunk = 0, tap_w = 0, right = 0, down = 0;
  for (int32_t step = 0; step < p.steps; step++, ring.next()) {
    uint32_t full = ring.full + (uint32_t)ring.slot * 8;
    barrier_wait(ring.empty + (uint32_t)ring.slot * 8, ring.parity ^ 1);
    barrier_expect(full, C::kM * kStageRow + filters);
    at.c = chunk * (kStageRow / (int)sizeof(T));
    copy_window(ring.stage(), &p.x, at, (uint16_t)right, (uint16_t)down, full);
    load_filters<C>(ring.stage() + C::kM * kStageRow, w, filters, rank, full);
    w += (int64_t)p.packed * kStageRow;
    if (++chunk < p.chunks) continue;
    chunk = 0, right += p.dilation_w;
    if (++tap_w == p.taps_w) tap_w = 0, right = 0, down += p.dilation_h;
  }
}

/* ---- The others multiply ---- */

/* A warp has read a stage: whoever copies into it may go on. */
template <typename C>
__device__ __forceinline__ void release_stage(uint32_t empty) {
  if constexpr (C::kCluster == 1) {
    barrier_arrive(empty);
  } else {
#pragma unroll
    for (uint32_t rank = 0; rank < C::kCluster; rank++) barrier_arrive_at(empty, rank);
  }
}

template <typename T, typename C>
__device__ __forceinline__ void multiply_tile(const TmaPart &p, int group, Ring<C> ring,
                                              float (&sum)[C::kParts][C::kN / 8][4]) {
  bool tells = threadIdx.x % 32 == 0;
  uint32_t before = 0;
#pragma unroll 1
  for (int32_t step = 0; step < p.steps; step++, ring.next()) {
    uint32_t pixels = ring.stage() + (uint32_t)(group * C::kParts * 64 * kStageRow);
    uint64_t a = matrix_descriptor(pixels);
    uint64_t b = matrix_descriptor(ring.stage() + C::kM * kStageRow);
    barrier_wait(ring.full + (uint32_t)ring.slot * 8, ring.parity);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < kStageRow / 32; k++)
#pragma unroll
      for (int part = 0; part < C::kParts; part++)
        wgmma<T, C::kN>(sum[part], a + (uint64_t)(part * (64 * kStageRow / 16) + 2 * k),
                        b + (uint64_t)(2 * k));
    wgmma_commit();
    wgmma_wait<1>(); /* the stage before is read */
    if (tells && step > 0) release_stage<C>(before);
    before = ring.empty + (uint32_t)ring.slot * 8;
  }
  wgmma_wait<0>();
}

/* Blocks side by side have the rows of a cluster one below the other, then the next columns. */
template <typename C>
__device__ __forceinline__ void find_tile(const TmaPart &p, int32_t *row0, int32_t *column0) {
  int tile = (int)blockIdx.x - p.first, rows = tile / C::kCluster;
  *row0 = (rows / p.columns * C::kCluster + tile % C::kCluster) * C::kM;
  *column0 = rows % p.columns * C::kN;
}

/* Seen by all threads of the cluster. */
template <typename C>
__device__ __forceinline__ void create_barriers(const Ring<C> &ring) {
  if (threadIdx.x == 0) {
    for (uint32_t slot = 0; slot < C::kStages; slot++) {
      barrier_create(ring.full + slot * 8, 1);
      barrier_create(ring.empty + slot * 8, C::kWarps * C::kCluster);
    }
    barriers_created();
  }
  if constexpr (C::kCluster == 1)
    __syncthreads();
  else
    cluster_arrive(), cluster_wait();
}

template <typename T, typename C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    cs_conv_tma_kernel(const __grid_constant__ TmaParams params) {
#if CS_WGMMA
  extern __shared__ char shared[];
  int part = 0, warp = (int)threadIdx.x / 32;
  while (part + 1 < params.n && (int)blockIdx.x >= params.part[part + 1].first) part++;
  const TmaPart &p = params.part[part];
  int32_t row0, column0;
  find_tile<C>(p, &row0, &column0);
  Ring<C> ring((uint32_t)__cvta_generic_to_shared(shared));
  if (threadIdx.x == 0) prefetch_map(&p.x);
  create_barriers(ring);
  if (warp == C::kWarps) {
    if (threadIdx.x % 32 == 0) load_tile<T, C>(p, row0, column0, ring);
    __syncwarp();
    if constexpr (C::kCluster > 1) cluster_arrive(), cluster_wait();
    return;
  }
  float sum[C::kParts][C::kN / 8][4] = {};
  multiply_tile<T, C>(p, warp / 4, ring, sum);
  if constexpr (C::kCluster > 1) cluster_arrive(); /* no block ends while others tell it of stages */
  row0 += warp / 4 * C::kParts * 64 + warp % 4 * 16;
#pragma unroll
  for (int i = 0; i < C::kParts; i++)
    store_fragments<T, C::kN / 8>(p, sum[i], row0 + i * 64, column0);
  if constexpr (C::kCluster > 1) cluster_wait();
#endif
}

}  // namespace

#endif
