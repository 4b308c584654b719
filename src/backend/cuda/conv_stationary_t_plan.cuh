/* Which operations conv_stationary_t.cu takes, its tables of taps, its tiles, its packed weights
 * and where everything lies: the host's part, and what the kernel and a test share. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_PLAN_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_STATIONARY_T_PLAN_CUH_

#include "backend/cuda/conv_tile.cuh"
#include "backend/cuda/tensor_map.cuh"
#include "backend/cuda/tma.cuh"

/* Everything here is the including file's own. */
namespace {

/* X(id, filters of a block, its groups of four warps, 64s of pixels of a group's tile) */
#define CS_STATIONARY_T_TILES(X)             \
  X("cuda.stationary_t.v1-64x4x1", 64, 4, 1) \
  X("cuda.stationary_t.v1-64x2x2", 64, 2, 2) \
  X("cuda.stationary_t.v1-32x4x1", 32, 4, 1) \
  X("cuda.stationary_t.v1-32x2x2", 32, 2, 2)
struct StationaryVariant {
  const char *id;
  int filters, groups, parts;
};
const StationaryVariant kStationaryVariants[] = {
#define CS_STATIONARY_T_VARIANT(...) {__VA_ARGS__},
    CS_STATIONARY_T_TILES(CS_STATIONARY_T_VARIANT)
#undef CS_STATIONARY_T_VARIANT
};

constexpr int kStationaryTapsMost = 4;       /* of an axis */
constexpr int kStationaryPadMost = 127;      /* of a side, pixels */
constexpr int kStationaryStagesMost = 4;     /* of a group, in shared memory */
constexpr int kStationaryShared = 227 << 10; /* bytes that a block may have */
constexpr int kStationaryAlignment = 1024;   /* of stages and weights */
/* Bytes: the weights' barrier, and two for each of a group's stages. */
constexpr int stationary_barriers(int groups) {
  return 8 * (1 + groups * 2 * kStationaryStagesMost);
}

/* ---- Taps ---- */

/* Outputs of one remainder by 2 on an axis: output 2·j + remainder gets from input j + first + t by
 * the kernel's row or column last − 2·t, t < n. */
struct RemainderTaps {
  int32_t first, n, last;
};
inline RemainderTaps remainder_taps(const cs_conv_attrs *conv, int axis, int remainder) {
  int64_t shifted = remainder + conv->pads[axis], tap = shifted % 2;
  int64_t n = (conv->kernel[axis] - tap + 1) / 2;
  return {(int32_t)(shifted / 2 - (n - 1)), (int32_t)n, (int32_t)(tap + 2 * (n - 1))};
}

/* What one shift of the input's columns is multiplied for. */
struct ColumnShift {
  int32_t shift, remainders; /* a bit for each of the output's columns */
  int32_t tap[2];            /* the kernel's column for each */
};

/* First the shifts for both remainders, then those for one alone, then those for the other alone.
 */
struct StationaryTaps {
  RemainderTaps rows[2];
  ColumnShift columns[kStationaryTapsMost];
  int32_t both, alone[2];
  int shifts() const { return both + alone[0] + alone[1]; }
  int pairs() const { return 2 * both + alone[0] + alone[1]; } /* of a shift and a remainder */
};

inline StationaryTaps stationary_taps(const cs_conv_attrs *conv) {
  StationaryTaps out = {};
  RemainderTaps columns[2];
  for (int r = 0; r < 2; r++)
    out.rows[r] = remainder_taps(conv, 0, r), columns[r] = remainder_taps(conv, 1, r);
  int32_t begin = min(columns[0].first, columns[1].first);
  for (int32_t wanted : {3, 1, 2})
    for (int32_t shift = begin; shift < begin + kStationaryTapsMost; shift++) {
      ColumnShift one = {shift, 0, {-1, -1}};
      for (int r = 0; r < 2; r++) {
        int32_t t = shift - columns[r].first;
        if (t < 0 || t >= columns[r].n) continue;
        one.remainders |= 1 << r, one.tap[r] = columns[r].last - 2 * t;
      }
      if (one.remainders != wanted) continue;
      out.columns[out.shifts()] = one;
      (wanted == 3 ? out.both : out.alone[wanted - 1])++;
    }
  return out;
}

/* ---- Which operations ---- */

/* What store_half takes as WIDE. */
inline bool stationary_stores(const cs_op_desc *desc) {
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  return desc->attrs.conv.out_channels % width == 0 && channels_vectorise(&desc->output, width) &&
         slope_of(activation_of(desc->activation)).any;
}

inline bool stationary_takes(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV_TRANSPOSE || desc->has_residual || desc->has_prologue) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (view_elements(view_of(&desc->inputs[0])) == 0 || view_elements(view_of(&desc->output)) == 0)
    return false;
  for (int axis = 0; axis < 2; axis++) {
    if (conv->strides[axis] != 2 || conv->dilations[axis] != 1) return false;
    if (conv->kernel[axis] < 2 || conv->kernel[axis] > kStationaryTapsMost) return false;
    if (conv->pads[axis] < 0 || conv->pads[axis] > kStationaryPadMost) return false;
  }
  cs_op_desc as_conv = *desc; /* no window is asked for here: only how tensors lie, and how large */
  as_conv.op = CS_OP_CONV;
  for (int64_t &pad : as_conv.attrs.conv.pads) pad = 0;
  return tiles_take(&as_conv) && stationary_stores(desc) && stationary_taps(conv).both > 0;
}

inline int64_t stationary_chunks(const cs_op_desc *desc) {
  return filled_elements(desc, desc->inputs[0].shape.dims[1], kStageRow) *
         cs_dtype_size(desc->output.dtype) / kStageRow;
}

/* Filters filled up to whole slices of any variant. */
inline int64_t stationary_packed(const cs_op_desc *desc) {
  return cs_round_up(desc->attrs.conv.out_channels, 64);
}

/* ---- Tiles ---- */

/* 64 or 128 pixels: rows of whole groups of 8 pixels, which the swizzle of shared memory repeats
 * after, so that the same box serves every row of taps. Powers of two. */
struct StationaryTile {
  int w, h, n;
};
constexpr StationaryTile kStationaryTiles[] = {
    {16, 4, 1}, {8, 8, 1}, {16, 8, 1}, {8, 16, 1}, {8, 8, 2}};

inline int64_t stationary_tiles(const cs_op_desc *desc, const StationaryTile &tile) {
  const int64_t *dims = desc->output.shape.dims;
  int64_t rows = (dims[2] + 1) / 2, columns = (dims[3] + 1) / 2;
  return (rows + tile.h - 1) / tile.h * ((columns + tile.w - 1) / tile.w) *
         ((dims[0] + tile.n - 1) / tile.n);
}

/* Of those of so many pixels the one that takes the fewest. */
inline StationaryTile stationary_tile(const cs_op_desc *desc, int pixels) {
  StationaryTile best = {};
  for (const StationaryTile &tile : kStationaryTiles) {
    bool fits = tile.w * tile.h * tile.n == pixels;
    if (fits && (best.w == 0 || stationary_tiles(desc, tile) < stationary_tiles(desc, best)))
      best = tile;
  }
  return best;
}

/* ---- A launch ---- */

struct StationaryParams : ConvOutput {
  CUtensorMap x;
  const char *w;          /* as packed */
  int64_t w_rows;         /* bytes from the weights of one remainder of the rows to the other's */
  int32_t w_block;        /* … from one tap of all filters to the next */
  int32_t chunks, slices; /* stages of a shift; slices of the filters */
  int32_t both, alone[2]; /* shifts of the columns */
  int32_t shift_w[kStationaryTapsMost];
  int32_t shift_h[2], taps_h[2];
  int32_t blocks[2]; /* products' weights of a slice, all of them in shared memory */
  StationaryTile tile;
  int32_t box_h, tiles;
  FastDiv tiles_w, tiles_h, tile_w, tile_h;
  int32_t stages, stage_bytes; /* stages: of a group */
  int32_t images, out_rows, out_columns;
};

inline int64_t stationary_blocks(const StationaryTaps &taps, int64_t chunks, int remainder) {
  return taps.rows[remainder].n * chunks * taps.pairs();
}

/* Bytes of shared memory of a launch with p->stages stages a group. */
inline int64_t stationary_shared(const StationaryParams &p, const StationaryVariant &variant) {
  int64_t blocks = cs_max_i64(p.blocks[0], p.blocks[1]);
  return kStationaryAlignment + blocks * variant.filters * kStageRow +
         (int64_t)variant.groups * p.stages * p.stage_bytes + stationary_barriers(variant.groups);
}

/* All but pointers, map and what fill_output says. False: it does not fit into shared memory, or
 * the counts of stages do not into 32 bits. */
inline bool stationary_params(const cs_op_desc *desc, const StationaryVariant &variant,
                              StationaryParams *p) {
  const StationaryTaps taps = stationary_taps(&desc->attrs.conv);
  const int64_t *dims = desc->output.shape.dims;
  const StationaryTile tile = stationary_tile(desc, 64 * variant.parts);
  int64_t tiles = stationary_tiles(desc, tile), chunks = stationary_chunks(desc);
  if (tiles * chunks * taps.shifts() > INT32_MAX / 2) return false;
  p->chunks = (int32_t)chunks, p->both = taps.both;
  for (int i = 0; i < taps.shifts(); i++) p->shift_w[i] = taps.columns[i].shift;
  for (int r = 0; r < 2; r++) {
    p->alone[r] = taps.alone[r];
    p->shift_h[r] = taps.rows[r].first, p->taps_h[r] = taps.rows[r].n;
    p->blocks[r] = (int32_t)stationary_blocks(taps, chunks, r);
  }
  p->w_block = (int32_t)(stationary_packed(desc) * kStageRow);
  p->w_rows = (int64_t)p->blocks[0] * p->w_block;
  p->slices = (int32_t)((desc->attrs.conv.out_channels + variant.filters - 1) / variant.filters);
  p->tile = tile, p->tiles = (int32_t)tiles;
  p->box_h = tile.h + max(p->taps_h[0], p->taps_h[1]) - 1;
  set_divisor(&p->tiles_w, ((dims[3] + 1) / 2 + tile.w - 1) / tile.w);
  set_divisor(&p->tiles_h, ((dims[2] + 1) / 2 + tile.h - 1) / tile.h);
  set_divisor(&p->tile_w, tile.w), set_divisor(&p->tile_h, tile.h);
  p->stage_bytes = tile.w * p->box_h * tile.n * kStageRow;
  p->images = (int32_t)dims[0], p->out_rows = (int32_t)dims[2], p->out_columns = (int32_t)dims[3];
  p->stages = kStationaryStagesMost;
  while (p->stages > 0 && stationary_shared(*p, variant) > kStationaryShared) p->stages--;
  return p->stages >= 2;
}

/* ---- Weights: [remainder of the rows][shift of the columns][stage][tap of the rows][remainder of
 * the columns][filter][128 bytes], swizzled and permuted as conv_tma.cu's; then the bias in f32 */

inline int64_t stationary_filters_bytes(const cs_op_desc *desc) {
  const StationaryTaps taps = stationary_taps(&desc->attrs.conv);
  int64_t chunks = stationary_chunks(desc);
  int64_t blocks = stationary_blocks(taps, chunks, 0) + stationary_blocks(taps, chunks, 1);
  return weight_part_bytes(blocks * stationary_packed(desc) * kStageRow);
}

/* put(block, kernel's row and column, first channel) for every block of packed filters, in order.
 */
template <typename PUT>
inline void stationary_for_blocks(const cs_op_desc *desc, PUT put) {
  const StationaryTaps taps = stationary_taps(&desc->attrs.conv);
  int64_t chunks = stationary_chunks(desc), width = kStageRow / cs_dtype_size(desc->output.dtype);
  int64_t block = 0;
  for (const RemainderTaps &rows : taps.rows)
    for (int i = 0; i < taps.shifts(); i++)
      for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int32_t t = 0; t < rows.n; t++)
          for (int r = 0; r < 2; r++)
            if (taps.columns[i].remainders >> r & 1)
              put(block++, rows.last - 2 * t, taps.columns[i].tap[r], chunk * width);
}

inline void stationary_pack(const cs_op_desc *desc, const float *weight, const float *bias,
                            void *host_out) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  const bool f32 = desc->output.dtype == CS_DTYPE_F32;
  int64_t size = cs_dtype_size(desc->output.dtype), width = kStageRow / size;
  int64_t channels = desc->inputs[0].shape.dims[1], packed = stationary_packed(desc);
  memset(host_out, 0, (size_t)with_bias_bytes(desc, stationary_filters_bytes(desc)));
  stationary_for_blocks(desc, [&](int64_t block, int64_t kernel_h, int64_t kernel_w,
                                  int64_t first) {
    for (int64_t k = 0; k < conv->out_channels; k++) {
      int64_t row = f32 ? packed_row<float>(k) : packed_row<__half>(k);
      for (int64_t c = first; c < cs_min_i64(first + width, channels); c++) {
        float value =
            weight[((c * conv->out_channels + k) * conv->kernel[0] + kernel_h) * conv->kernel[1] +
                   kernel_w];
        int64_t at = block * packed * kStageRow + swizzled_at(row, (c - first) * size);
        put_rounded(desc->output.dtype, host_out, at / size, f32 ? round_tf32(value) : value);
      }
    }
  });
  pack_bias(desc, bias, stationary_filters_bytes(desc), host_out);
}

/* ---- Places, for the kernel too ---- */

/* The first pixel of a tile, by remainder: column, row, image. */
struct TilePlace {
  int32_t w, h, n;
};
__host__ __device__ __forceinline__ TilePlace tile_place(const StationaryParams &p, int32_t tile) {
  TilePlace at;
  at.n = divide(divide(tile, p.tiles_w, &at.w), p.tiles_h, &at.h);
  at.w *= p.tile.w, at.h *= p.tile.h, at.n *= p.tile.n;
  return at;
}

/* Pixel `row` of a tile, and with it where it goes: the output of remainder (row_rest, 0); false:
 * outside. */
struct OutputPlace {
  int32_t n, h, w;
};
__host__ __device__ __forceinline__ bool output_place(const StationaryParams &p,
                                                      const TilePlace &tile, int32_t row,
                                                      int32_t row_rest, OutputPlace *out) {
  int32_t w, h;
  out->n = tile.n + divide(divide(row, p.tile_w, &w), p.tile_h, &h);
  out->h = 2 * (tile.h + h) + row_rest, out->w = 2 * (tile.w + w);
  return out->n < p.images && out->h < p.out_rows && out->w < p.out_columns;
}

/* Where in a stage the second 64 pixels of a tile begin. */
__host__ __device__ __forceinline__ int32_t second_part_bytes(const StationaryParams &p) {
  return (p.tile.n == 1 ? 64 : p.tile.w * p.box_h) * kStageRow;
}

}  // namespace

#endif
