/* What convolutions in NHWC on tensor-core tiles (rows: output pixels, columns: filters) share:
 * which operations they take, the order of packed filters, the parts of a launch, and how sums
 * leave for the output. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_TILE_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_TILE_CUH_

#include "backend/cuda/cluster.cuh"
#include "backend/cuda/tensor_core.cuh"

/* Everything here is the including file's own. */
namespace {

/* What becomes of the sums, and a part's place in a launch. */
struct ConvOutput {
  void *y;
  const void *residual;
  const float *bias;
  int32_t rows, filters, steps; /* output pixels; stages that the sum takes */
  Strides<false> out, added;    /* added: of the residual */
  FastDiv out_w, out_h;
  Activation act;
  int32_t first, columns; /* the part's first block; tiles side by side */
  bool wide;              /* 16-byte stores (and residual loads) are possible */
};

/* ---- Which operations ---- */

constexpr int64_t kTapsMost = 15; /* of an axis: bits of half a word, and one more */
constexpr int kColumnsMost = 256; /* of a tile */

/* With the padding, as offsets of taps outside are added up too. */
inline bool window_fits_narrow(const cs_op_desc *desc) {
  const int64_t *pads = desc->attrs.conv.pads;
  View in = view_of(&desc->inputs[0]);
  int64_t left = kNarrowLimit - view_last(in);
  for (int axis = 0; axis < 2; axis++) {
    int64_t extent = in.dim[2 + axis] + pads[axis] + pads[2 + axis];
    int64_t stride = cs_max_i64(in.stride[2 + axis], 1);
    if (extent >= left / stride) return false;
    left -= extent * stride;
  }
  return true;
}

/* So many elements filled up to whole granules of so many bytes. */
inline int64_t filled_elements(const cs_op_desc *desc, int64_t elements, int64_t granule) {
  return cs_round_up(elements, granule / cs_dtype_size(desc->output.dtype));
}

/* NHWC with 16-byte vectors of channels, one group, offsets that fit 32 bits. */
inline bool tiles_take(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV || desc->precision == CS_PRECISION_F32) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  if (desc->output.shape.rank != 4 || conv->group != 1) return false;
  if (conv->kernel[0] > kTapsMost || conv->kernel[1] > kTapsMost) return false;
  if (desc->output.layout != CS_LAYOUT_NHWC || view_of(&desc->output).stride[1] != 1) return false;
  int64_t channels = filled_elements(desc, desc->inputs[0].shape.dims[1], 256);
  bool narrow =
      fits_narrow(view_of(&desc->output)) && conv->kernel[0] * conv->kernel[1] * channels <
                                                 kNarrowLimit / (conv->out_channels + kColumnsMost);
  for (int i = 0; i < desc->n_inputs; i++)
    narrow = narrow && fits_narrow(view_of(&desc->inputs[i]));
  if (desc->has_residual && view_of(&desc->inputs[desc->n_inputs - 1]).stride[1] != 1) return false;
  return narrow && window_fits_narrow(desc) && desc->inputs[0].shape.dims[1] % width == 0 &&
         channels_vectorise(&desc->inputs[0], width);
}

/* A tile that would compute more than four times what is asked for is not worth measuring. */
inline bool tile_is_worthwhile(const cs_op_desc *desc, int rows, int columns) {
  int64_t filters = desc->attrs.conv.out_channels;
  int64_t pixels = view_elements(view_of(&desc->output)) / filters;
  return cs_round_up(filters, columns) * cs_round_up(pixels, rows) <= 4 * filters * pixels;
}

/* What a tile is shared out to a cluster for: that there are fewer tiles than SMs, and sums of many
 * stages of so many bytes. */
constexpr int kUnitsUsual = 132;
inline bool split_is_worthwhile(const cs_op_desc *desc, int rows, int columns, int split,
                                int stage_bytes) {
  int64_t filters = desc->attrs.conv.out_channels;
  int64_t pixels = view_elements(view_of(&desc->output)) / filters;
  int64_t tiles = (filters + columns - 1) / columns * ((pixels + rows - 1) / rows);
  int64_t bytes = cs_op_weight_elements(desc) / filters * cs_dtype_size(desc->output.dtype);
  return tiles <= kUnitsUsual && bytes >= (int64_t)4 * split * stage_bytes && device_has_clusters();
}

/* ---- Packed filters: permuted (fragment_filter), the last group filled with zeros ---- */

inline int64_t packed_filters(const cs_op_desc *desc) {
  return filled_elements(desc, desc->attrs.conv.out_channels, 64);
}

/* Where among the packed filters a filter comes. */
template <typename T>
inline int64_t packed_row(int64_t filter) {
  constexpr int kTogether = 4 * kVector<T>; /* filters permuted among themselves */
  int64_t in = filter % kTogether;
  for (int column = 0; column < kTogether; column++)
    if (fragment_filter<T>(column / 8, column % 8 / 2) + column % 2 == in)
      return filter - in + column;
  return filter; /* not reached: it is a permutation */
}

/* put(row, tap, channel, value) for every weight, rounded to tf32 where that is what is multiplied.
 */
template <typename PUT>
inline void pack_filters(const cs_op_desc *desc, const float *weight, PUT put) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  int64_t taps = conv->kernel[0] * conv->kernel[1], channels = desc->inputs[0].shape.dims[1];
  bool f32 = desc->output.dtype == CS_DTYPE_F32;
  for (int64_t k = 0; k < conv->out_channels; k++) {
    int64_t row = f32 ? packed_row<float>(k) : packed_row<__half>(k);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        float value = *weight++;
        put(row, tap, c, f32 ? round_tf32(value) : value);
      }
  }
}

/* Behind the filters, which take so many bytes, comes the bias in f32. */
inline int64_t with_bias_bytes(const cs_op_desc *desc, int64_t filters) {
  int64_t bias = desc->has_bias ? desc->attrs.conv.out_channels * (int64_t)sizeof(float) : 0;
  return filters + weight_part_bytes(bias);
}
inline void pack_bias(const cs_op_desc *desc, const float *bias, int64_t filters, void *host_out) {
  if (!desc->has_bias) return;
  memcpy(static_cast<char *>(host_out) + filters, bias,
         (size_t)desc->attrs.conv.out_channels * sizeof(float));
}

/* ---- Parts of a launch ---- */

/* All but steps and first. `bias_at`: of the bias behind the packed filters, bytes. */
inline void fill_output(const cs_cuda_merge_part *from, int tile_columns, int64_t bias_at,
                        ConvOutput *p) {
  const cs_op_desc *desc = from->desc;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View out = view_of(&desc->output);
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  p->y = from->output;
  p->wide = conv->out_channels % width == 0 && channels_vectorise(&desc->output, width);
  if (desc->has_bias)
    p->bias = reinterpret_cast<const float *>(static_cast<const char *>(from->weights) + bias_at);
  if (desc->has_residual) {
    const cs_tensor_desc *residual = &desc->inputs[desc->n_inputs - 1];
    p->residual = from->inputs[desc->n_inputs - 1];
    p->added = strides_of<false>(view_of(residual).stride);
    p->wide = p->wide && channels_vectorise(residual, width);
  }
  p->rows = (int32_t)(out.dim[0] * out.dim[2] * out.dim[3]);
  p->filters = (int32_t)conv->out_channels;
  p->out = strides_of<false>(out.stride);
  set_divisor(&p->out_w, out.dim[3]);
  set_divisor(&p->out_h, out.dim[2]);
  p->act = activation_of(desc->activation);
  p->columns = (p->filters + tile_columns - 1) / tile_columns;
}

/* Parts with the longest sums first, so that short ones fill the end; their first blocks, of which
 * `split` share a tile. Returns how many blocks there are. */
template <typename Part>
inline int64_t arrange(Part *parts, int n, int tile_rows, int split) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && parts[j].steps > parts[j - 1].steps; j--) {
      Part other = parts[j];
      parts[j] = parts[j - 1];
      parts[j - 1] = other;
    }
  int64_t blocks = 0;
  for (int i = 0; i < n; i++) {
    parts[i].first = (int32_t)cs_min_i64(blocks, INT32_MAX);
    blocks +=
        split * (int64_t)parts[i].columns * ((parts[i].rows + (int64_t)tile_rows - 1) / tile_rows);
  }
  return blocks;
}

inline cs_status too_many_blocks(const char *kernel, int64_t blocks) {
  return cs_error(CS_CODE_BAD_INPUT, "kernel %s: %lld blocks; at most %d fit", kernel,
                  (long long)blocks, INT32_MAX);
}

/* ---- Storing ---- */

/* V filters of one pixel: bias, residual, activation. */
template <typename T, int V>
__device__ __forceinline__ void store_pixel(const ConvOutput &p, const float *sum, int32_t filter,
                                            int32_t y, int32_t added) {
  float v[V];
#pragma unroll
  for (int i = 0; i < V; i++)
    v[i] = sum[i] + (p.bias != nullptr ? __ldg(p.bias + filter + i) : 0.f);
  if (p.residual != nullptr) {
    float r[V];
    load_vector<T, V>(static_cast<const T *>(p.residual) + added, r);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] += r[i];
  }
  activate<V>(p.act, v);
  store_vector<T, V>(static_cast<T *>(p.y) + y, v);
}

/* A fragment's vector of filters of one pixel, from registers. */
template <typename T>
__device__ __forceinline__ void store_vector_of(const ConvOutput &p, const Slope &act,
                                                float (&v)[kVector<T>], int32_t filter, int32_t y,
                                                int32_t added) {
  constexpr int V = kVector<T>;
  if (p.bias != nullptr) {
#pragma unroll
    for (int e = 0; e < V; e += 4) {
      float4 bias = __ldg(reinterpret_cast<const float4 *>(p.bias + filter + e));
      v[e] += bias.x, v[e + 1] += bias.y, v[e + 2] += bias.z, v[e + 3] += bias.w;
    }
  }
  if (p.residual != nullptr) {
    float r[V];
    load_vector<T, V>(static_cast<const T *>(p.residual) + added + filter, r);
#pragma unroll
    for (int e = 0; e < V; e++) v[e] += r[e];
  }
#pragma unroll
  for (int e = 0; e < V; e++) v[e] = act.of(v[e]);
  store_vector<T, V>(static_cast<T *>(p.y) + y + filter, v);
}

/* The same one by one, with any activation, where vectors would not be aligned. */
template <typename T>
__device__ __forceinline__ void store_singles_of(const ConvOutput &p, const float (&v)[kVector<T>],
                                                 int32_t filter, int32_t y, int32_t added) {
#pragma unroll
  for (int e = 0; e < kVector<T>; e++) {
    if (filter + e >= p.filters) continue;
    float value = v[e] + (p.bias != nullptr ? p.bias[filter + e] : 0.f);
    if (p.residual != nullptr)
      value += Convert<T>::from(static_cast<const T *>(p.residual)[added + filter + e]);
    static_cast<T *>(p.y)[y + filter + e] = Convert<T>::to(activated(p.act, value));
  }
}

/* FRAGMENTS · 8 filters from column0 on of one pixel, which is at y of the output and at `added` of
 * the residual: a lane's share of the fragments from FROM on, of whose two pixels it is number
 * `half`. */
template <typename T, int FRAGMENTS, int FROM = 0, bool WIDE = false, int ALL>
__device__ __forceinline__ void store_half(const ConvOutput &p, const Slope &act,
                                           const float (&sum)[ALL][4], int half, int32_t column0,
                                           int32_t y, int32_t added) {
  constexpr int V = kVector<T>;
#pragma unroll
  for (int j = 0; j < FRAGMENTS; j += V / 2) {
    int32_t filter = column0 + fragment_filter<T>(j, (int)threadIdx.x % 4);
    if (filter >= p.filters) continue;
    float v[V];
#pragma unroll
    for (int e = 0; e < V; e++) v[e] = sum[FROM + j + e / 2][half * 2 + e % 2];
    if (WIDE || (p.wide && act.any))
      store_vector_of<T>(p, act, v, filter, y, added);
    else
      store_singles_of<T>(p, v, filter, y, added);
  }
}

/* What a warp has of 16 pixels from row0 on and FRAGMENTS · 8 filters from column0 on, from its
 * registers. */
template <typename T, int FRAGMENTS>
__device__ __forceinline__ void store_fragments(const ConvOutput &p,
                                                const float (&sum)[FRAGMENTS][4], int32_t row0,
                                                int32_t column0) {
  int lane = (int)threadIdx.x % 32;
  Slope act = slope_of(p.act);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int32_t pixel = row0 + half * 8 + lane / 4, q, h;
    if (pixel >= p.rows) continue;
    int32_t n = divide(divide(pixel, p.out_w, &q), p.out_h, &h);
    store_half<T, FRAGMENTS>(p, act, sum, half, column0, n * p.out.n + h * p.out.h + q * p.out.w,
                             n * p.added.n + h * p.added.h + q * p.added.w);
  }
}

/* ---- Sums in shared memory, of a tile C: kM × kN of each of kWarpsK sets of warps in each of
 * kSplit blocks of a cluster, rows kPitch floats apart; kStorers threads add them up ---- */

/* A warp's fragments of 16 pixels, to where its first one's sums are. */
template <typename T, typename C, int FRAGMENTS>
__device__ __forceinline__ void put_fragments(float *to, const float (&sum)[FRAGMENTS][4]) {
  int lane = (int)threadIdx.x % 32;
  to += lane / 4 * C::kPitch;
#pragma unroll
  for (int j = 0; j < FRAGMENTS; j++)
#pragma unroll
    for (int half = 0; half < 2; half++)
      *reinterpret_cast<float2 *>(to + half * 8 * C::kPitch + fragment_filter<T>(j, lane % 4)) =
          make_float2(sum[j][half * 2], sum[j][half * 2 + 1]);
}

/* V sums at `at`, added up: always in the same order. */
template <typename C, int V>
__device__ __forceinline__ void add_sums(const float *at, float (&sum)[V]) {
  constexpr int kApart = C::kM * C::kPitch; /* floats between the sets */
  uint32_t own = (uint32_t)__cvta_generic_to_shared(at);
#pragma unroll
  for (int v = 0; v < V; v++) sum[v] = 0.f;
#pragma unroll
  for (int rank = 0; rank < C::kSplit; rank++)
#pragma unroll
    for (int k = 0; k < C::kWarpsK; k++) {
      float more[V];
      if constexpr (C::kSplit > 1) {
        cluster_load<V>(cluster_place(own + (uint32_t)(k * kApart * 4), rank), more);
      } else {
#pragma unroll
        for (int v = 0; v < V; v++) more[v] = at[k * kApart + v];
      }
#pragma unroll
      for (int v = 0; v < V; v++) sum[v] += more[v];
    }
}

template <typename T, typename C, int V>
__device__ __forceinline__ void store_sums(const ConvOutput &p, const float *sums, int row0,
                                           int column0, int first) {
  constexpr int kAcross = C::kN / V;
#pragma unroll 1
  for (int i = first; i < C::kM * kAcross; i += C::kStorers * C::kSplit) {
    int row = i / kAcross, column = i % kAcross * V;
    int32_t pixel = row0 + row, filter = column0 + column, q, h;
    if (pixel >= p.rows || filter >= p.filters) continue;
    int32_t n = divide(divide(pixel, p.out_w, &q), p.out_h, &h);
    float sum[V];
    add_sums<C, V>(sums + row * C::kPitch + column, sum);
    store_pixel<T, V>(p, sum, filter, n * p.out.n + h * p.out.h + q * p.out.w + filter,
                      n * p.added.n + h * p.added.h + q * p.added.w + filter);
  }
}

/* Stores a block's tile, of which a cluster's blocks each store a share. `thread`: of kStorers. */
template <typename T, typename C>
__device__ __forceinline__ void store_shared(const ConvOutput &p, const float *sums, int row0,
                                             int column0, int rank, int thread) {
  if constexpr (C::kSplit > 1) cluster_meet();
  int first = thread + rank * C::kStorers;
  if (p.wide)
    store_sums<T, C, kVector<T>>(p, sums, row0, column0, first);
  else
    store_sums<T, C, 1>(p, sums, row0, column0, first);
  if constexpr (C::kSplit > 1) cluster_meet(); /* until then the others read this one's sums */
}

}  // namespace

#endif
