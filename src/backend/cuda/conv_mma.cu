/* Convolution in NHWC as an implicit matrix product on the tensor cores: rows are output pixels,
 * columns filters, and the sum runs over (tap, channel), channels innermost. Operands come through
 * a ring of shared-memory stages by cp.async (16 bytes a thread, zeros where a tap falls outside),
 * are read by ldmatrix and multiplied by mma.sync; sums stay in f32. Bias, residual and activation
 * are applied on the way out, which writes any NHWC view, so that a branch's result goes straight
 * into its slice of a concat.
 *
 * One launch takes up to CS_CUDA_MERGE_MOST convolutions: each has its tiles among the blocks, and
 * nothing is shared but the launch. */
#include "backend/cuda/kernel_util.cuh"

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

/* ---- Instructions ---- */

__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0));
}
__device__ __forceinline__ void commit_async() {
  asm volatile("cp.async.commit_group;");
}
template <int PENDING>
__device__ __forceinline__ void wait_async() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

/* sum[16 × 8] += a[16 × 32 bytes] · b[32 bytes × 8] */
template <typename T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  if constexpr (std::is_same_v<T, float>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/* The tensor cores cut f32 to tf32; rounding comes first. Weights are rounded when packed. */
template <typename T>
__device__ __forceinline__ void round_operand(uint32_t (&a)[4]) {
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[i]) : "f"(__uint_as_float(a[i])));
  }
}

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

/* ---- Variants ---- */

/* Large tiles read each operand less often; small ones, and those that share a sum among warps,
 * reach more SMs where there are few pixels. */
using Tile128x128 = Tile<128, 128, 2, 4, 1, 128, 3>;
using Tile128x64 = Tile<128, 64, 2, 2, 1, 128, 3>;
using Tile64x128 = Tile<64, 128, 2, 2, 1, 128, 3>;
using Tile64x64 = Tile<64, 64, 2, 1, 2, 128, 3>;
using Tile64x32 = Tile<64, 32, 2, 1, 2, 128, 4>;
using Tile32x64 = Tile<32, 64, 1, 2, 4, 256, 3>;
using Tile32x32 = Tile<32, 32, 1, 1, 4, 256, 4>;
using Tile16x32 = Tile<16, 32, 1, 1, 8, 256, 4>;

struct MmaVariant {
  const char *id;
  int rows, columns; /* of a tile */
};
const MmaVariant kVariants[] = {
    {"cuda.mma.v2-128x128", 128, 128}, {"cuda.mma.v2-128x64", 128, 64},
    {"cuda.mma.v2-64x128", 64, 128},   {"cuda.mma.v2-64x64", 64, 64},
    {"cuda.mma.v2-64x32", 64, 32},     {"cuda.mma.v2-32x64", 32, 64},
    {"cuda.mma.v2-32x32", 32, 32},     {"cuda.mma.v2-16x32", 16, 32},
};
constexpr int kVariantCount = (int)(sizeof kVariants / sizeof *kVariants);

int variant_of(const char *id) {
  for (int v = 0; v < kVariantCount; v++)
    if (strcmp(id, kVariants[v].id) == 0) return v;
  return -1;
}

/* Elements between packed filters: whole stages of every variant. */
int64_t filter_row(const cs_op_desc *desc) {
  return cs_round_up(cs_op_weight_elements(desc) / desc->attrs.conv.out_channels,
                     256 / cs_dtype_size(desc->output.dtype));
}

int64_t filters_bytes(const cs_op_desc *desc) {
  return weight_part_bytes(filter_row(desc) * desc->attrs.conv.out_channels *
                           cs_dtype_size(desc->output.dtype));
}

bool is_pointwise(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  bool padded =
      conv->pads[0] != 0 || conv->pads[1] != 0 || conv->pads[2] != 0 || conv->pads[3] != 0;
  return conv->kernel[0] == 1 && conv->kernel[1] == 1 && !padded;
}

bool takes(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV || desc->precision == CS_PRECISION_F32) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  if (desc->output.shape.rank != 4 || conv->group != 1) return false;
  if (desc->output.layout != CS_LAYOUT_NHWC || view_of(&desc->output).stride[1] != 1) return false;
  bool narrow = fits_narrow(view_of(&desc->output)) &&
                filter_row(desc) * (conv->out_channels + 128) < kNarrowLimit;
  for (int i = 0; i < desc->n_inputs; i++)
    narrow = narrow && fits_narrow(view_of(&desc->inputs[i]));
  if (desc->has_residual && view_of(&desc->inputs[desc->n_inputs - 1]).stride[1] != 1) return false;
  return narrow && desc->inputs[0].shape.dims[1] % width == 0 &&
         channels_vectorise(&desc->inputs[0], width);
}

/* One that would compute more than four times what is asked for is not worth measuring. */
bool is_worthwhile(const cs_op_desc *desc, const MmaVariant *variant) {
  int64_t filters = desc->attrs.conv.out_channels;
  int64_t pixels = view_elements(view_of(&desc->output)) / filters;
  return cs_round_up(filters, variant->columns) * cs_round_up(pixels, variant->rows) <=
             4 * filters * pixels ||
         variant == &kVariants[kVariantCount - 1];
}

int mma_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!takes(desc)) return 0;
  for (int v = 0; v < kVariantCount; v++)
    if (is_worthwhile(desc, &kVariants[v])) add_variant(ids, capacity, &count, kVariants[v].id);
  return count;
}

/* ---- Weights: [filter][tap][channel], rows padded with zeros; then the bias in f32 ---- */

int64_t mma_weight_bytes(const cs_op_desc *desc) {
  int64_t bias = desc->has_bias ? desc->attrs.conv.out_channels * (int64_t)sizeof(float) : 0;
  return filters_bytes(desc) + weight_part_bytes(bias);
}

/* To the nearest tf32, ties away from zero, as cvt.rna does; infinities and NaN stay. */
float round_tf32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

void mma_pack(const cs_op_desc *desc, const float *weight, const float *bias, void *host_out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t taps = conv->kernel[0] * conv->kernel[1], channels = desc->inputs[0].shape.dims[1];
  bool f32 = desc->output.dtype == CS_DTYPE_F32;
  memset(host_out, 0, (size_t)mma_weight_bytes(desc));
  for (int64_t k = 0; k < conv->out_channels; k++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        float value = *weight++;
        put_rounded(desc->output.dtype, host_out, k * filter_row(desc) + tap * channels + c,
                    f32 ? round_tf32(value) : value);
      }
  if (desc->has_bias)
    memcpy((char *)host_out + filters_bytes(desc), bias,
           (size_t)conv->out_channels * sizeof(float));
}

/* ---- Launch ---- */

MmaPart part_of(const cs_cuda_merge_part *from, const MmaVariant *variant, int stage_bytes) {
  const cs_op_desc *desc = from->desc;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  MmaPart p = {};
  p.x = from->inputs[0], p.w = from->weights, p.y = from->output;
  p.wide = conv->out_channels % width == 0 && channels_vectorise(&desc->output, width);
  if (desc->has_bias)
    p.bias = reinterpret_cast<const float *>(static_cast<const char *>(from->weights) +
                                             filters_bytes(desc));
  if (desc->has_residual) {
    const cs_tensor_desc *residual = &desc->inputs[desc->n_inputs - 1];
    p.residual = from->inputs[desc->n_inputs - 1];
    p.added = strides_of<false>(view_of(residual).stride);
    p.wide = p.wide && channels_vectorise(residual, width);
  }
  p.rows = (int32_t)(out.dim[0] * out.dim[2] * out.dim[3]);
  p.filters = (int32_t)conv->out_channels, p.channels = (int32_t)in.dim[1];
  int64_t sum_bytes =
      conv->kernel[0] * conv->kernel[1] * in.dim[1] * cs_dtype_size(desc->output.dtype);
  p.steps = (int32_t)((sum_bytes + stage_bytes - 1) / stage_bytes);
  p.w_row = (int32_t)filter_row(desc);
  p.height = (int32_t)in.dim[2], p.width = (int32_t)in.dim[3];
  p.taps_h = (int32_t)conv->kernel[0], p.taps_w = (int32_t)conv->kernel[1];
  p.stride_h = (int32_t)conv->strides[0], p.stride_w = (int32_t)conv->strides[1];
  p.dilation_h = (int32_t)conv->dilations[0], p.dilation_w = (int32_t)conv->dilations[1];
  p.pad_top = (int32_t)conv->pads[0], p.pad_left = (int32_t)conv->pads[1];
  p.in = strides_of<false>(in.stride), p.out = strides_of<false>(out.stride);
  set_divisor(&p.out_w, out.dim[3]);
  set_divisor(&p.out_h, out.dim[2]);
  p.act = activation_of(desc->activation);
  p.columns = (p.filters + variant->columns - 1) / variant->columns;
  return p;
}

/* Parts with the longest sums first, so that short ones fill the end; their first blocks. */
int64_t arrange(MmaParams *params, const MmaVariant *variant) {
  for (int i = 1; i < params->n; i++)
    for (int j = i; j > 0 && params->part[j].steps > params->part[j - 1].steps; j--) {
      MmaPart other = params->part[j];
      params->part[j] = params->part[j - 1];
      params->part[j - 1] = other;
    }
  int64_t blocks = 0;
  for (int i = 0; i < params->n; i++) {
    MmaPart *p = &params->part[i];
    p->first = (int32_t)cs_min_i64(blocks, INT32_MAX);
    blocks += (int64_t)p->columns * ((p->rows + (int64_t)variant->rows - 1) / variant->rows);
  }
  return blocks;
}

template <typename T, typename C, bool POINTWISE>
cs_status launch_tile(const MmaParams &params, int64_t blocks, cudaStream_t stream) {
  auto kernel = cs_conv_mma_kernel<T, C, POINTWISE>;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kShared);
  if (error != cudaSuccess) return launch_error("conv_mma", error);
  void *args[] = {const_cast<MmaParams *>(&params)};
  error =
      cudaLaunchKernel(kernel, dim3((unsigned)blocks), dim3(C::kThreads), args, C::kShared, stream);
  return error == cudaSuccess ? CS_OK : launch_error("conv_mma", error);
}

template <typename T, typename C>
cs_status launch_parts(const cs_cuda_merge_part *parts, int n, int variant, cudaStream_t stream) {
  MmaParams params = {};
  bool pointwise = true;
  for (int i = 0; i < n; i++) {
    MmaPart part = part_of(&parts[i], &kVariants[variant], C::kBytes);
    if (part.rows == 0) continue;
    params.part[params.n++] = part;
    pointwise = pointwise && is_pointwise(parts[i].desc);
  }
  int64_t blocks = arrange(&params, &kVariants[variant]);
  if (blocks == 0) return CS_OK;
  if (blocks > INT32_MAX)
    return cs_error(CS_CODE_BAD_INPUT, "kernel conv_mma: %lld blocks; at most %d fit",
                    (long long)blocks, INT32_MAX);
  return pointwise ? launch_tile<T, C, true>(params, blocks, stream)
                   : launch_tile<T, C, false>(params, blocks, stream);
}

template <typename T>
cs_status launch_variant(const cs_cuda_merge_part *parts, int n, int variant, cudaStream_t stream) {
  switch (variant) {
    case 0:
      return launch_parts<T, Tile128x128>(parts, n, variant, stream);
    case 1:
      return launch_parts<T, Tile128x64>(parts, n, variant, stream);
    case 2:
      return launch_parts<T, Tile64x128>(parts, n, variant, stream);
    case 3:
      return launch_parts<T, Tile64x64>(parts, n, variant, stream);
    case 4:
      return launch_parts<T, Tile64x32>(parts, n, variant, stream);
    case 5:
      return launch_parts<T, Tile32x64>(parts, n, variant, stream);
    case 6:
      return launch_parts<T, Tile32x32>(parts, n, variant, stream);
    default:
      return launch_parts<T, Tile16x32>(parts, n, variant, stream);
  }
}

cs_status mma_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                     const void *weights, void *output, cudaStream_t stream) {
  cs_cuda_merge_part part = {desc, inputs, weights, output};
  return cs_cuda_kernel_launch_merged(&part, 1, id, stream);
}

}  // namespace

const KernelFamily cs_mma_family = {mma_variants, mma_weight_bytes, mma_pack, mma_launch};

bool cs_cuda_kernel_merges(const char *id) {
  return variant_of(id) >= 0;
}

cs_status cs_cuda_kernel_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                                       cudaStream_t stream) {
  int variant = variant_of(id);
  if (variant < 0 || n < 1 || n > CS_CUDA_MERGE_MOST)
    return cs_error(CS_CODE_BAD_INPUT,
                    "%d operations in one launch of \"%s\"; 1 to %d of a cuda.mma", n, id,
                    CS_CUDA_MERGE_MOST);
  cs_dtype dtype = parts[0].desc->output.dtype;
  for (int i = 0; i < n; i++)
    if (!takes(parts[i].desc) || parts[i].desc->output.dtype != dtype)
      return cs_error(CS_CODE_BAD_INPUT, "%s does not take operation %d of a launch", id, i);
  return by_dtype(
      dtype, [&](auto type) { return launch_variant<decltype(type)>(parts, n, variant, stream); });
}
