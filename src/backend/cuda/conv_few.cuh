/* The kernel of conv_few.cu: what it gets, and how it loads, multiplies and stores a tile. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_FEW_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_FEW_CUH_

#include "backend/cuda/tensor_core.cuh"

/* Included once: everything here is the including file's own. */
namespace {

constexpr int kFewColumns = 16;   /* output pixels of a tile's row: the rows of a fragment */
constexpr int kGroupElements = 8; /* of a kernel's row that are multiplied together */
constexpr int kFewGroupsMost = 64;

/* A block's tile: WARPS · ROWS rows of 16 output pixels, ROWS of them a warp, by 8 · MMA_N filters.
 */
template <int WARPS, int ROWS, int MMA_N>
struct FewTile {
  static constexpr int kWarps = WARPS, kRows = ROWS, kMmaN = MMA_N;
  static constexpr int kThreads = 32 * WARPS, kHeight = WARPS * ROWS, kFilters = 8 * MMA_N;
  /* Rows of inputs that a warp loads at once: all of them, for a 7 × 7 kernel that steps by 2. */
  static constexpr int kLoadRows = (2 * kHeight + 5 + WARPS - 1) / WARPS;
};

/* A group is 8 elements of a row of the kernel: its byte offset in the tile of inputs, times 4,
 * plus how much of it belongs to the kernel. */
enum FewExtent { FEW_ALL, FEW_TAIL, FEW_NONE };

struct FewParams {
  const void *x, *w;
  const float *bias; /* padded to whole tiles of filters */
  void *y;
  int32_t height, width, channels, filters, out_height, out_width;
  int32_t stride_h, stride_w, pad_top, pad_left;
  Strides<false> in, out;
  FastDiv tiles_w, tiles_h, pixel; /* pixel: elements of one in the tile of inputs */
  int32_t tiles, tiles_a_block;
  int32_t input_rows, input_elements, pitch; /* of the tile of inputs: rows, elements of a row */
  int32_t steps, tail;                       /* tail: elements of a row's last group, 1 to 8 */
  Activation act;
  bool wide; /* 16-byte stores are possible */
  int32_t group[kFewGroupsMost];
};

/* What the sum looks like, as the parameters say. */
template <typename T>
struct FewAny {
  static constexpr bool kKnown = false;
  static __device__ __forceinline__ int pixel(const FewParams &p) { return (int)p.pixel.divisor; }
  static __device__ __forceinline__ int pitch(const FewParams &p) { return p.pitch; }
  static __device__ __forceinline__ int stride_h(const FewParams &p) { return p.stride_h; }
  static __device__ __forceinline__ int stride_w(const FewParams &p) { return p.stride_w; }
  static __device__ __forceinline__ int steps(const FewParams &p) { return p.steps; }
  static __device__ __forceinline__ int offset(const FewParams &p, int g) {
    return p.group[g] >> 2;
  }
  static __device__ __forceinline__ int extent(const FewParams &p, int g) { return p.group[g] & 3; }
};

/* The same, known when compiled: a kernel of SIZE × SIZE over C channels that steps by STRIDE. */
template <typename T, int SIZE, int C, int STRIDE>
struct FewKnown {
  static constexpr bool kKnown = true;
  static constexpr int kSize = SIZE, kChannels = C, kStride = STRIDE;
  static constexpr int kPixel = C * STRIDE % 2 != 0 ? C + 1 : C;
  static constexpr int kGroups = (SIZE * kPixel + kGroupElements - 1) / kGroupElements;
  static constexpr int kPitch = (kFewColumns - 1) * STRIDE * kPixel + kGroups * kGroupElements;
  static constexpr int kGroupsAStep = 4 / (int)sizeof(T);
  static constexpr int kSteps = (SIZE * kGroups + kGroupsAStep - 1) / kGroupsAStep;
  static __device__ __forceinline__ int pixel(const FewParams &) { return kPixel; }
  static __device__ __forceinline__ int pitch(const FewParams &) { return kPitch; }
  static __device__ __forceinline__ int stride_h(const FewParams &) { return STRIDE; }
  static __device__ __forceinline__ int stride_w(const FewParams &) { return STRIDE; }
  static __device__ __forceinline__ int steps(const FewParams &) { return kSteps; }
  static __device__ __forceinline__ int offset(const FewParams &, int g) {
    return g < SIZE * kGroups
               ? (g / kGroups * kPitch + g % kGroups * kGroupElements) * (int)sizeof(T)
               : 0;
  }
  static __device__ __forceinline__ int extent(const FewParams &, int g) {
    bool last = g % kGroups == kGroups - 1 && SIZE * kPixel % kGroupElements != 0;
    return g >= SIZE * kGroups ? FEW_NONE : last ? FEW_TAIL : FEW_ALL;
  }
};

struct FewPlace {
  int32_t n, h, w; /* of a tile's first output pixel */
};

__device__ __forceinline__ FewPlace place_of(const FewParams &p, int32_t tile, int rows) {
  FewPlace at;
  int32_t w, h;
  at.n = divide(divide(tile, p.tiles_w, &w), p.tiles_h, &h);
  at.h = h * rows, at.w = w * kFewColumns;
  return at;
}

/* ---- Loading ---- */

/* Packed filters of this block's column of tiles, and nothing else: they serve all its tiles. */
template <typename T, typename C>
__device__ __forceinline__ void load_filters(const FewParams &p, char *shared) {
  int bytes = p.steps * C::kMmaN * 32 * 8;
  const char *from = static_cast<const char *>(p.w) + (int64_t)blockIdx.y * bytes;
  uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
  for (int i = (int)threadIdx.x * 16; i < bytes; i += C::kThreads * 16)
    copy_async(to + (uint32_t)i, from + i, true);
  commit_async();
}

/* What a thread loads of some rows of a tile: columns `first`, `first` + 32, … of every row. */
template <typename T, typename C, typename S>
struct FewLoad {
  static constexpr int kColumns = 4;
  T value[kColumns][C::kLoadRows];

  __device__ __forceinline__ void load(const FewParams &p, const FewPlace &at, int first, int row) {
    int32_t top = at.h * S::stride_h(p) - p.pad_top, left = at.w * S::stride_w(p) - p.pad_left;
    const T *image = static_cast<const T *>(p.x) + at.n * p.in.n;
#pragma unroll
    for (int j = 0; j < kColumns; j++) {
      int32_t i = first + 32 * j, c, w = left;
      if constexpr (S::kKnown)
        w += i / S::kPixel, c = i % S::kPixel;
      else
        w += divide(i, p.pixel, &c);
      bool inside = i < p.input_elements && c < p.channels && (uint32_t)w < (uint32_t)p.width;
      const T *from = image + (inside ? w * p.in.w + c * p.in.c : 0);
#pragma unroll
      for (int r = 0; r < C::kLoadRows; r++) {
        int32_t h = top + row + r * C::kWarps;
        value[j][r] = Convert<T>::to(0.f);
        if (inside && (uint32_t)h < (uint32_t)p.height) value[j][r] = __ldg(from + h * p.in.h);
      }
    }
  }

  /* Rounded for the tensor cores. */
  __device__ __forceinline__ void store(const FewParams &p, int first, int row, T *tile) const {
#pragma unroll
    for (int j = 0; j < kColumns; j++)
#pragma unroll
      for (int r = 0; r < C::kLoadRows; r++) {
        int at = row + r * C::kWarps, i = first + 32 * j;
        T rounded = value[j][r];
        if constexpr (std::is_same_v<T, float>) {
          uint32_t bits[1] = {__float_as_uint(rounded)};
          round_operand<T>(bits);
          rounded = __uint_as_float(bits[0]);
        }
        if (i < p.input_elements && at < p.input_rows) tile[at * S::pitch(p) + i] = rounded;
      }
  }
};

/* The inputs under a tile, with zeros where there are none. */
template <typename T, typename C, typename S>
__device__ __forceinline__ void load_inputs(const FewParams &p, const FewPlace &at, T *tile) {
  using Load = FewLoad<T, C, S>;
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll 1
  for (int first = lane; first - lane < p.input_elements; first += 32 * Load::kColumns)
#pragma unroll 1
    for (int row = warp; row < p.input_rows; row += C::kWarps * C::kLoadRows) {
      Load load;
      load.load(p, at, first, row);
      load.store(p, first, row, tile);
    }
}

/* ---- Multiplying ---- */

/* Elements 2j and 2j + 1 of a group, j = lane % 4: a word in 16 bits, two in f32. */
template <typename T>
constexpr int kPairWords = (int)sizeof(T) / 2;

/* Which bits of a lane's pair belong to the kernel in a row's last group. What lies beyond is the
 * next pixel, whose weight is zero; it must not count even where it is infinite. */
template <typename T>
__device__ __forceinline__ void tail_mask(const FewParams &p, uint32_t (&mask)[kPairWords<T>]) {
  int first = (int)threadIdx.x % 4 * 2;
  bool one = first < p.tail, two = first + 1 < p.tail;
  if constexpr (kPairWords<T> == 2)
    mask[0] = one ? ~0u : 0u, mask[1] = two ? ~0u : 0u;
  else
    mask[0] = (one ? 0xffffu : 0u) | (two ? 0xffff0000u : 0u);
}

/* One group of every row of fragments: words `first`, `first` + 1 (rows 0 to 7 and 8 to 15), in f32
 * also the two after. */
template <typename T, typename C, typename S>
__device__ __forceinline__ void load_group(const FewParams &p,
                                           const char *const (&from)[C::kRows][2], int group,
                                           const uint32_t (&tail)[kPairWords<T>], int first,
                                           uint32_t (&a)[C::kRows][4]) {
  int offset = S::offset(p, group), extent = S::extent(p, group);
  uint32_t mask[kPairWords<T>];
#pragma unroll
  for (int i = 0; i < kPairWords<T>; i++)
    mask[i] = extent == FEW_ALL ? ~0u : extent == FEW_TAIL ? tail[i] : 0u;
#pragma unroll
  for (int r = 0; r < C::kRows; r++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t pair[kPairWords<T>];
      load_words(from[r][half] + offset, pair);
#pragma unroll
      for (int i = 0; i < kPairWords<T>; i++) a[r][first + half + 2 * i] = pair[i] & mask[i];
    }
}

template <typename T, typename C, typename S>
__device__ __forceinline__ void multiply_step(const FewParams &p, int step,
                                              const char *const (&from)[C::kRows][2],
                                              const uint32_t (&tail)[kPairWords<T>],
                                              const uint4 *fragments,
                                              float (&sum)[C::kRows][C::kMmaN][4]) {
  uint32_t a[C::kRows][4];
  if constexpr (kPairWords<T> == 2) {
    load_group<T, C, S>(p, from, step, tail, 0, a);
  } else {
    load_group<T, C, S>(p, from, 2 * step, tail, 0, a);
    load_group<T, C, S>(p, from, 2 * step + 1, tail, 2, a);
  }
#pragma unroll
  for (int j = 0; j < C::kMmaN / 2; j++) {
    uint4 b = fragments[(step * (C::kMmaN / 2) + j) * 32];
#pragma unroll
    for (int r = 0; r < C::kRows; r++) {
      multiply<T>(sum[r][2 * j], a[r], b.x, b.y);
      multiply<T>(sum[r][2 * j + 1], a[r], b.z, b.w);
    }
  }
}

template <typename T, typename C, typename S>
__device__ __forceinline__ void multiply_tile(const FewParams &p, const char *filters,
                                              const char *tile,
                                              float (&sum)[C::kRows][C::kMmaN][4]) {
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  uint32_t tail[kPairWords<T>];
  tail_mask<T>(p, tail);
  const char *from[C::kRows][2];
  int pixel = S::stride_w(p) * S::pixel(p);
#pragma unroll
  for (int r = 0; r < C::kRows; r++)
#pragma unroll
    for (int half = 0; half < 2; half++)
      from[r][half] =
          tile + (int)sizeof(T) * ((warp * C::kRows + r) * S::stride_h(p) * S::pitch(p) +
                                   (lane / 4 + half * 8) * pixel + lane % 4 * 2);
  const uint4 *fragments = reinterpret_cast<const uint4 *>(filters) + lane;
  if constexpr (S::kKnown) {
#pragma unroll
    for (int step = 0; step < S::kSteps; step++)
      multiply_step<T, C, S>(p, step, from, tail, fragments, sum);
  } else {
#pragma unroll 2
    for (int step = 0; step < p.steps; step++)
      multiply_step<T, C, S>(p, step, from, tail, fragments, sum);
  }
}

/* ---- Storing ---- */

/* 16-byte vectors. */
template <typename T, typename C>
__device__ __forceinline__ void store_wide(const FewParams &p, const Slope &act, T *to, int half,
                                           int filter0, const float (&sum)[C::kMmaN][4]) {
  constexpr int V = kVector<T>;
#pragma unroll
  for (int j = 0; j < C::kMmaN; j += V / 2) {
    int filter = filter0 + fragment_filter<T>(j, (int)threadIdx.x % 4);
    float v[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
      v[i] = act.of(sum[j + i / 2][half * 2 + i % 2]);
    }
    if (filter < p.filters) store_vector<T, V>(to + filter, v);
  }
}

template <typename T, typename C>
__device__ __forceinline__ void store_single(const FewParams &p, T *to, int half, int filter0,
                                             const float (&sum)[C::kMmaN][4]) {
#pragma unroll
  for (int j = 0; j < C::kMmaN; j++) {
    int filter = filter0 + fragment_filter<T>(j, (int)threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < 2; i++)
      if (filter + i < p.filters)
        to[filter + i] = Convert<T>::to(activated(p.act, sum[j][half * 2 + i]));
  }
}

template <typename T, typename C>
__device__ __forceinline__ void store_tile(const FewParams &p, const FewPlace &at, int filter0,
                                           const float (&sum)[C::kRows][C::kMmaN][4]) {
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  Slope act = slope_of(p.act);
#pragma unroll
  for (int r = 0; r < C::kRows; r++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int32_t h = at.h + warp * C::kRows + r, w = at.w + lane / 4 + half * 8;
      if (h >= p.out_height || w >= p.out_width) continue;
      T *to = static_cast<T *>(p.y) + at.n * p.out.n + h * p.out.h + w * p.out.w;
      if (p.wide && act.any)
        store_wide<T, C>(p, act, to, half, filter0, sum[r]);
      else
        store_single<T, C>(p, to, half, filter0, sum[r]);
    }
}

/* ---- The kernel ---- */

/* The sums begin with the bias. */
template <typename T, typename C>
__device__ __forceinline__ void begin_sums(const FewParams &p, int filter0,
                                           float (&sum)[C::kRows][C::kMmaN][4]) {
#pragma unroll
  for (int j = 0; j < C::kMmaN; j++) {
    float2 bias = make_float2(0.f, 0.f);
    int filter = filter0 + fragment_filter<T>(j, (int)threadIdx.x % 4); /* even */
    if (p.bias != nullptr) bias = __ldg(reinterpret_cast<const float2 *>(p.bias + filter));
#pragma unroll
    for (int r = 0; r < C::kRows; r++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        sum[r][j][2 * half] = bias.x, sum[r][j][2 * half + 1] = bias.y;
  }
}

template <typename T, typename C, typename S>
__global__ void __launch_bounds__(C::kThreads, 512 / C::kThreads)
    cs_conv_few_kernel(const __grid_constant__ FewParams p) {
  extern __shared__ __align__(128) char shared[];
  char *inputs = shared + S::steps(p) * C::kMmaN * 32 * 8;
  int filter0 = (int)blockIdx.y * C::kFilters;
  load_filters<T, C>(p, shared);
  begin_kernel();
  int32_t first = (int32_t)blockIdx.x * p.tiles_a_block;
  int32_t end = min(first + p.tiles_a_block, p.tiles);
#pragma unroll 1
  for (int32_t tile = first; tile < end; tile++) {
    FewPlace at = place_of(p, tile, C::kHeight);
    float sum[C::kRows][C::kMmaN][4];
    begin_sums<T, C>(p, filter0, sum);
    load_inputs<T, C, S>(p, at, reinterpret_cast<T *>(inputs));
    wait_async<0>();
    __syncthreads(); /* filters and inputs are there */
    multiply_tile<T, C, S>(p, shared, inputs, sum);
    store_tile<T, C>(p, at, filter0, sum);
    __syncthreads(); /* all are done with the inputs */
  }
}

}  // namespace

#endif
