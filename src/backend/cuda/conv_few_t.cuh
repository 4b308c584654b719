/* The kernel of conv_few_t.cu: what it gets, where everything lies, and how it loads, multiplies
 * and stores a row. What is index arithmetic runs on the host too, where a test emulates a warp. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_FEW_T_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_FEW_T_CUH_

#include "backend/cuda/tensor_core.cuh"

/* Included once: everything here is the including file's own. */
namespace {

/* A block is 2 × 2 output pixels. With output row y + pad_top = 2 · j + t (t is 0 or 1), block row
 * j gets from input row j − i by row 2 · i + t of the kernel. Output column x = 2 · b + s belongs
 * to block column b; x + pad_left = 2 · (b + d) + t gets from input column b + d − i by column 2 ·
 * i + t of the kernel. */

constexpr int kFewTFiltersMost = 8, kFewTPairedMost = 4;
constexpr int kFewTWarpsMost = 4; /* of a thread block */

/* A kernel of K × K; ODD: pad_left is. A fragment of sums, 16 block columns × 8, is of one s: of
 * both t of a row by 4 filters (PAIRED; K is even then), or of one t by 8. */
template <int K, bool ODD, bool PAIRED>
struct FewTShape {
  static constexpr int kSize = K, kTaps = (K + 1) / 2; /* kTaps: input rows that a block reaches */
  static constexpr bool kOdd = ODD, kPaired = PAIRED;
  static constexpr int kTiles = PAIRED ? 1 : 2;
  static constexpr int kShifts = kTaps + ODD; /* input columns that a block reaches */
  static constexpr int kFragments = K * (PAIRED ? kTaps : K); /* of weights, for a step */
  static_assert(!PAIRED || K % 2 == 0, "both rows of a block have as many taps");

  /* Column of the kernel by which outputs s get from input column b + (d of s = 0) − (kTaps − 1) +
   * a; -1: by none. */
  static __host__ __device__ constexpr int tap_w(int s, int a) {
    int i = (ODD && s == 1 ? 1 : 0) + kTaps - 1 - a, tap = 2 * i + (s + ODD) % 2;
    return i < 0 || tap >= K ? -1 : tap;
  }
  /* Row t of a block, and filter, that column n of a fragment u is. */
  static __host__ __device__ constexpr int row_of(int u, int n) { return PAIRED ? n / 4 : u; }
  static __host__ __device__ constexpr int filter_of(int n) { return PAIRED ? n % 4 : n; }
};

/* A warp computes blocks of 16 · MF columns, row by row. STEPS: 32-byte steps of the sum over
 * channels, 0 where the parameters say them; STAGES rows of inputs in shared memory. */
template <typename T_, typename SHAPE, int MF, int STEPS, int STAGES>
struct FewTTile : SHAPE {
  using T = T_;
  using Shape = SHAPE;
  static constexpr int kMmaM = MF, kSteps = STEPS, kStages = STAGES;
  static constexpr int kColumns = 16 * MF, kPixels = kColumns + SHAPE::kShifts - 1;
};

/* Part of an image: strip · rows of blocks × kColumns. */
struct FewTParams {
  const void *x, *w;
  const float *bias; /* kFewTFiltersMost of them */
  void *y;
  int32_t height, width, filters, out_height, out_width;
  int32_t pad_top, shift;        /* shift: of a block column's leftmost input column */
  int32_t first_row, block_rows; /* of blocks: the first that has an output, how many have */
  Strides<false> in, out;
  int32_t units, strip;
  FastDiv chunks, strips;  /* parts side by side, and below each other */
  FastDiv pixel, channels; /* pixel: 16-byte vectors of one in shared memory; channels: filters */
  int32_t vectors;         /* of a pixel in memory */
  int32_t steps, slot;     /* slot: bytes of a row in shared memory */
  Activation act;
  bool wide,
      planar; /* 4 outputs at a time are possible; a row's outputs of a filter are adjacent */
};

/* ---- Where everything lies ---- */

/* A row of inputs, of part `unit`, which belongs to image n and begins with block column `column`.
 * Sums of rows of blocks from `begin` on are whole; the part ends before row `end`. */
struct FewTRow {
  int32_t unit, n, column, begin, row, end;
};

template <typename C>
__host__ __device__ __forceinline__ FewTRow unit_at(const FewTParams &p, int32_t unit) {
  FewTRow at = {unit, 0, 0, 0, 0, 0};
  if (unit >= p.units) return at;
  int32_t chunk, strip;
  at.n = divide(divide(unit, p.chunks, &chunk), p.strips, &strip);
  at.column = chunk * C::kColumns;
  at.begin = p.first_row + strip * p.strip;
  int32_t end = p.first_row + p.block_rows;
  at.end = at.begin + p.strip < end ? at.begin + p.strip : end;
  at.row = at.begin - (C::kTaps - 1);
  return at;
}
/* True: it is another part's, `apart` on. */
template <typename C>
__host__ __device__ __forceinline__ bool next_row(const FewTParams &p, int32_t apart, FewTRow *at) {
  if (++at->row < at->end) return false;
  *at = unit_at<C>(p, at->unit + apart);
  return true;
}

template <typename C>
__host__ __device__ __forceinline__ int steps_of(const FewTParams &p) {
  return C::kSteps > 0 ? C::kSteps : p.steps;
}
/* Bytes of a pixel in shared memory: an odd number of 16-byte vectors, so that the 8 pixels that
 * ldmatrix reads together are in different banks. */
template <typename C>
__host__ __device__ __forceinline__ int pixel_bytes(const FewTParams &p) {
  return steps_of<C>(p) * 32 + 16;
}

/* A 16-byte vector of a row, the `pass`-th that a lane loads: where it goes, bytes, and where it
 * comes from, elements of the row; false in `there`: it is zeros, and comes from nowhere. */
struct FewTVector {
  int32_t to, from;
  bool there;
};
template <typename C>
__host__ __device__ __forceinline__ int32_t row_vectors(const FewTParams &p) {
  return C::kPixels * 2 * steps_of<C>(p);
}
template <typename C>
__host__ __device__ __forceinline__ FewTVector vector_at(const FewTParams &p, int32_t column,
                                                         int lane, int pass) {
  int32_t pixel, part;
  if constexpr (C::kSteps > 0) {
    constexpr int kVectors = 2 * C::kSteps; /* of a pixel: a pass loads whole ones */
    static_assert(32 % kVectors == 0, "a lane has the same part of every pixel");
    pixel = lane / kVectors + pass * (32 / kVectors), part = lane % kVectors;
  } else {
    pixel = divide(lane + 32 * pass, p.pixel, &part);
  }
  int32_t w = column + p.shift + pixel;
  bool there = part < p.vectors && (uint32_t)w < (uint32_t)p.width;
  return {pixel * pixel_bytes<C>(p) + part * 16, w * p.in.w + part * kVector<typename C::T>, there};
}

/* What ldmatrix asks a lane for: half a step of a pixel, whose place in a row is this of the
 * fragment at fragment_at(). */
template <typename C>
__host__ __device__ __forceinline__ int32_t matrix_row(const FewTParams &p, int lane) {
  return lane % 16 * pixel_bytes<C>(p) + lane / 16 * 16;
}
template <typename C>
__host__ __device__ __forceinline__ int32_t fragment_at(const FewTParams &p, int m, int a,
                                                        int step) {
  return (16 * m + a) * pixel_bytes<C>(p) + step * 32;
}

/* The host's compiler does not know the pragma. */
#ifdef __CUDA_ARCH__
#define CS_FEW_T_UNROLL _Pragma("unroll")
#else
#define CS_FEW_T_UNROLL
#endif

/* All products of a step, in the order of the packed weights: on_shift(a), then for each that
 * multiplies the inputs there on_product(fragment of weights, s, i, u): sums of row of blocks (row
 * of inputs + i). */
#pragma nv_exec_check_disable
template <typename S, typename SHIFT, typename PRODUCT>
__host__ __device__ __forceinline__ void for_products(SHIFT on_shift, PRODUCT on_product) {
  int fragment = 0;
  CS_FEW_T_UNROLL
  for (int a = 0; a < S::kShifts; a++) {
    on_shift(a);
    CS_FEW_T_UNROLL
    for (int s = 0; s < 2; s++) CS_FEW_T_UNROLL
    for (int i = 0; i < S::kTaps; i++) CS_FEW_T_UNROLL
    for (int u = 0; u < S::kTiles; u++)
      if (S::tap_w(s, a) >= 0 && 2 * i + u < S::kSize) on_product(fragment++, s, i, u);
  }
}
#undef CS_FEW_T_UNROLL

/* Sums of two rows of outputs on their way through shared memory: floats [t][x][filter]. */
template <typename C>
__host__ __device__ __forceinline__ int32_t staged_row(const FewTParams &p) {
  return 2 * C::kColumns * p.filters + 4;
}
/* Element e of a row of a lane's fragment: its filter, and where sum (m, s, u) of row
 * half · 8 + lane / 4 goes, if there is such a filter. */
template <typename C>
__host__ __device__ __forceinline__ int staged_filter(int lane, int e) {
  return C::filter_of(lane % 4 * 2 + e);
}
template <typename C>
__host__ __device__ __forceinline__ int32_t staged_at(const FewTParams &p, int lane, int m, int s,
                                                      int u, int half, int e) {
  int n = lane % 4 * 2 + e;
  int32_t x = 2 * (16 * m + half * 8 + lane / 4) + s;
  return C::row_of(u, n) * staged_row<C>(p) + x * p.filters + C::filter_of(n);
}
/* Output row t of a row of blocks, and its first output there, elements; false: it is cut off. */
__host__ __device__ __forceinline__ bool output_line(const FewTParams &p, const FewTRow &at, int t,
                                                     int32_t *offset) {
  int32_t y = 2 * at.row - p.pad_top + t;
  if ((uint32_t)y >= (uint32_t)p.out_height) return false;
  *offset = at.n * p.out.n + y * p.out.h + 2 * at.column * p.out.w;
  return true;
}
/* The i-th output of a line, x of it and its filter, so that neighbours are neighbours in memory.
 */
template <typename C>
__host__ __device__ __forceinline__ int32_t output_at(const FewTParams &p, int32_t i,
                                                      int32_t *filter) {
  if (!p.planar) return divide(i, p.channels, filter);
  *filter = i / (2 * C::kColumns);
  return i % (2 * C::kColumns);
}

/* ---- Loading ---- */

/* Fragments of weights: in registers where all of them are known, else in shared memory. */
template <typename C>
struct FewTWeights {
  static constexpr bool kHeld = C::kSteps > 0;
  uint2 held[kHeld ? C::kSteps * C::kFragments : 1];
  const uint2 *shared;

  static __device__ __forceinline__ int bytes(const FewTParams &p) {
    return kHeld ? 0 : p.steps * C::kFragments * 32 * (int)sizeof(uint2);
  }
  __device__ __forceinline__ void load(const FewTParams &p, char *to) {
    int lane = (int)threadIdx.x % 32;
    if constexpr (kHeld) {
#pragma unroll
      for (int i = 0; i < C::kSteps * C::kFragments; i++)
        held[i] = __ldg(static_cast<const uint2 *>(p.w) + i * 32 + lane);
    } else {
      const char *from = static_cast<const char *>(p.w);
      uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
      for (int i = (int)threadIdx.x * 16; i < bytes(p); i += (int)blockDim.x * 16)
        copy_async(at + (uint32_t)i, from + i, true);
      commit_async();
      wait_async<0>();
      __syncthreads();
      shared = reinterpret_cast<const uint2 *>(to) + lane;
    }
  }
  __device__ __forceinline__ uint2 at(int step, int fragment) const {
    if constexpr (kHeld)
      return held[step * C::kFragments + fragment];
    else
      return shared[(step * C::kFragments + fragment) * 32];
  }
};

/* A warp's row, with zeros where there are no inputs; nothing where there are no more parts. */
template <typename C>
__device__ __forceinline__ void load_row(const FewTParams &p, const FewTRow &at, uint32_t slot) {
  using T = typename C::T;
  int lane = (int)threadIdx.x % 32;
  if (at.unit >= p.units) return;
  bool inside = (uint32_t)at.row < (uint32_t)p.height;
  const T *from = static_cast<const T *>(p.x) + (inside ? at.n * p.in.n + at.row * p.in.h : 0);
  int32_t vectors = row_vectors<C>(p);
  auto load = [&](int pass) {
    FewTVector vector = vector_at<C>(p, at.column, lane, pass);
    copy_async(slot + (uint32_t)vector.to, from + vector.from, vector.there && inside);
  };
  if constexpr (C::kSteps > 0) {
#pragma unroll
    for (int pass = 0; pass < (C::kPixels * 2 * C::kSteps + 31) / 32; pass++)
      if (lane + 32 * pass < vectors) load(pass);
  } else {
#pragma unroll 1
    for (int pass = 0; lane + 32 * pass < vectors; pass++) load(pass);
  }
}

/* ---- Multiplying ---- */

/* f32 to the nearest tf32, ties to even where that is one instruction. */
template <typename T>
__device__ __forceinline__ void round_inputs(uint32_t (&a)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(a[i]) : "f"(__uint_as_float(a[i])));
  }
#else
  round_operand<T>(a);
#endif
}

/* [fragment][row of blocks, from that of the inputs on][s][u] */
template <typename C>
using FewTSums = float[C::kMmaM][C::kTaps][2][C::kTiles][4];

template <typename C>
__device__ __forceinline__ void multiply_row(const FewTParams &p, uint32_t slot,
                                             const FewTWeights<C> &weights, FewTSums<C> &sum) {
  using T = typename C::T;
  slot += (uint32_t)matrix_row<C>(p, (int)threadIdx.x % 32);
#pragma unroll(C::kSteps > 0 ? C::kSteps : 2)
  for (int step = 0; step < steps_of<C>(p); step++) {
    uint32_t inputs[C::kMmaM][4];
    for_products<C>(
        [&](int a) {
#pragma unroll
          for (int m = 0; m < C::kMmaM; m++) {
            load_matrices(inputs[m], slot + (uint32_t)fragment_at<C>(p, m, a, step));
            round_inputs<T>(inputs[m]);
          }
        },
        [&](int fragment, int s, int i, int u) {
          uint2 b = weights.at(step, fragment);
#pragma unroll
          for (int m = 0; m < C::kMmaM; m++) multiply<T>(sum[m][i][s][u], inputs[m], b.x, b.y);
        });
  }
}

/* Sums of the next row of inputs: a row of blocks on, or all of them new. They begin with the bias.
 */
template <typename C>
__device__ __forceinline__ void next_sums(const float (&bias)[2], bool all, FewTSums<C> &sum) {
#pragma unroll
  for (int m = 0; m < C::kMmaM; m++)
#pragma unroll
    for (int i = 0; i < C::kTaps; i++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int u = 0; u < C::kTiles; u++)
#pragma unroll
          for (int e = 0; e < 4; e++)
            sum[m][i][s][u][e] =
                all || i + 1 == C::kTaps ? bias[e % 2] : sum[m][(i + 1) % C::kTaps][s][u][e];
}

/* ---- Storing ---- */

template <typename C>
__device__ __forceinline__ void stage_sums(const FewTParams &p, const FewTSums<C> &sum,
                                           float *staged) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int e = 0; e < 2; e++) {
    if (staged_filter<C>(lane, e) >= p.filters) continue;
#pragma unroll
    for (int m = 0; m < C::kMmaM; m++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int u = 0; u < C::kTiles; u++)
#pragma unroll
          for (int half = 0; half < 2; half++)
            staged[staged_at<C>(p, lane, m, s, u, half, e)] = sum[m][0][s][u][2 * half + e];
  }
}

/* tanh to 2^-18 of itself, more than operands of 11 bits leave, in half the instructions of tanhf,
 * which would take longer than the products. NaN stays NaN. */
__host__ __device__ __forceinline__ float quick_tanh(float x) {
  float square = x * x;
  float near = fmaf(x * square, fmaf(square, 2.f / 15.f, -1.f / 3.f), x); /* of its series */
#ifdef __CUDA_ARCH__
  float far = 1.f - __fdividef(2.f, 1.f + __expf(2.f * x));
#else
  float far = 1.f - 2.f / (1.f + expf(2.f * x));
#endif
  return fabsf(x) < 0.125f ? near : far;
}
__device__ __forceinline__ void activate_four(const Activation &act, float (&v)[4]) {
  if (act.kind == CS_ACT_TANH) {
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = quick_tanh(v[i]);
  } else {
    activate<4>(act, v);
  }
}

/* Both lines, four outputs at a time; `across`: outputs side by side that there are. */
template <typename C>
__device__ __forceinline__ void store_wide(const FewTParams &p, const FewTRow &at,
                                           const float *staged, int32_t across) {
  using T = typename C::T;
  int32_t fours = across * p.filters / 4;
#pragma unroll 1
  for (int32_t i = (int)threadIdx.x % 32; i < 2 * fours; i += 32) {
    int t = i < fours ? 0 : 1;
    int32_t from = 4 * (i - t * fours), offset;
    if (!output_line(p, at, t, &offset)) continue;
    float4 four = *reinterpret_cast<const float4 *>(staged + t * staged_row<C>(p) + from);
    float v[4] = {four.x, four.y, four.z, four.w};
    activate_four(p.act, v);
    store_vector<T, 4>(static_cast<T *>(p.y) + offset + from, v);
  }
}

/* One line, one by one. */
template <typename C>
__device__ __forceinline__ void store_singles(const FewTParams &p, const float *staged,
                                              int32_t across, typename C::T *y) {
#pragma unroll 1
  for (int32_t i = (int)threadIdx.x % 32; i < 2 * C::kColumns * p.filters; i += 32) {
    int32_t filter, x = output_at<C>(p, i, &filter);
    if (x < across)
      y[x * p.out.w + filter * p.out.c] =
          Convert<typename C::T>::to(activated(p.act, staged[x * p.filters + filter]));
  }
}

/* A warp's whole row of blocks, through shared memory. */
template <typename C>
__device__ __forceinline__ void store_row(const FewTParams &p, const FewTRow &at,
                                          const FewTSums<C> &sum, float *staged) {
  using T = typename C::T;
  stage_sums<C>(p, sum, staged);
  __syncwarp();
  int32_t across = min(2 * C::kColumns, p.out_width - 2 * at.column), offset;
  if (p.wide) {
    store_wide<C>(p, at, staged, across);
  } else {
#pragma unroll 1
    for (int t = 0; t < 2; t++)
      if (output_line(p, at, t, &offset))
        store_singles<C>(p, staged + t * staged_row<C>(p), across, static_cast<T *>(p.y) + offset);
  }
}

/* ---- The kernel ---- */

/* With 4-byte weights held in registers a thread has up to 255 of them. */
template <typename C>
__global__ void __launch_bounds__(32 * kFewTWarpsMost, sizeof(typename C::T) == 4 ? 2 : 3)
    cs_conv_few_t_kernel(const __grid_constant__ FewTParams p) {
  extern __shared__ __align__(128) char shared[];
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;
  FewTWeights<C> weights;
  weights.load(p, shared);
  int filter = C::filter_of(lane % 4 * 2);
  float bias[2] = {__ldg(p.bias + filter), __ldg(p.bias + filter + 1)};
  begin_kernel();
  char *rows = shared + FewTWeights<C>::bytes(p) + warp * C::kStages * p.slot;
  uint32_t slots = (uint32_t)__cvta_generic_to_shared(rows);
  int32_t apart = (int32_t)gridDim.x * warps;
  FewTRow at = unit_at<C>(p, (int32_t)blockIdx.x * warps + warp), loaded = at;
#pragma unroll
  for (int stage = 0; stage < C::kStages - 1; stage++) {
    load_row<C>(p, loaded, slots + (uint32_t)(stage * p.slot));
    commit_async();
    next_row<C>(p, apart, &loaded);
  }
  FewTSums<C> sum;
  next_sums<C>(bias, true, sum);
  int stage = 0;
#pragma unroll 1
  while (at.unit < p.units) {
    wait_async<C::kStages - 2>();
    __syncwarp(); /* the row is there, and all are done with the one before */
    int before = stage > 0 ? stage - 1 : C::kStages - 1;
    load_row<C>(p, loaded, slots + (uint32_t)(before * p.slot));
    commit_async();
    next_row<C>(p, apart, &loaded);
    multiply_row<C>(p, slots + (uint32_t)(stage * p.slot), weights, sum);
    if (at.row >= at.begin) {
      __syncwarp(); /* all are done with the inputs: the sums take their place */
      store_row<C>(p, at, sum, reinterpret_cast<float *>(rows + stage * p.slot));
    }
    bool all = next_row<C>(p, apart, &at);
    next_sums<C>(bias, all, sum);
    stage = stage + 1 < C::kStages ? stage + 1 : 0;
  }
}

}  // namespace

#endif
