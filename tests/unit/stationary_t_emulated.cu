#include <vector>

#include "backend/cuda/conv_stationary_t_plan.cuh"
/* … with C's headers in extern "C". */
#include "unit/stationary_t_emulated.h"

namespace {

float value_of(const unsigned char *from, cs_dtype dtype) {
  uint16_t bits;
  float value;
  memcpy(&bits, from, sizeof bits);
  memcpy(&value, from, cs_dtype_size(dtype) == 4 ? sizeof value : sizeof bits);
  if (dtype == CS_DTYPE_F16) return cs_f16_to_f32(bits);
  if (dtype == CS_DTYPE_BF16) return cs_bf16_to_f32(bits);
  return round_tf32(value); /* the last bit of a tie apart, what the copy engine rounds to */
}

struct Emulation {
  const cs_op_desc *desc;
  const StationaryParams &p;
  int filters, pixels, parts;
  const unsigned char *input;
  stationary_t_faults *faults;
  int width; /* elements of a row in shared memory */
  std::vector<float> box, unpacked, sum;

  Emulation(const cs_op_desc *of, const StationaryParams &params, const StationaryVariant &variant,
            const void *from, stationary_t_faults *found)
      : desc(of),
        p(params),
        filters(variant.filters),
        pixels(64 * variant.parts),
        parts(variant.parts),
        input(static_cast<const unsigned char *>(from)),
        faults(found),
        width(kStageRow / (int)cs_dtype_size(of->output.dtype)) {}

  /* The copy engine: [image][row][column][channel], zeros outside. */
  void load(const TilePlace &tile, int32_t shift_h, int32_t shift_w, int32_t chunk) {
    const View in = view_of(&desc->inputs[0]);
    const int64_t size = cs_dtype_size(desc->output.dtype);
    faults->misplaced += p.stage_bytes % kStationaryAlignment != 0;
    box.assign((size_t)(p.stage_bytes / size), 0.f);
    size_t at = 0;
    for (int n = 0; n < p.tile.n; n++)
      for (int h = 0; h < p.box_h; h++)
        for (int w = 0; w < p.tile.w; w++)
          for (int c = 0; c < width; c++, at++) {
            int64_t place[4] = {tile.n + n, (int64_t)chunk * width + c, tile.h + shift_h + h,
                                tile.w + shift_w + w};
            int64_t offset = 0;
            bool inside = true;
            for (int axis = 0; axis < 4; axis++) {
              inside = inside && place[axis] >= 0 && place[axis] < in.dim[axis];
              offset += place[axis] * in.stride[axis];
            }
            if (inside) box[at] = value_of(input + offset * size, desc->output.dtype);
          }
  }

  /* [filter][channel] of a block of packed weights. */
  void unpack(const char *weights) {
    const cs_dtype dtype = desc->output.dtype;
    unpacked.clear();
    for (int q = 0; q < filters; q++)
      for (int c = 0; c < width; c++) {
        int byte = c * (int)cs_dtype_size(dtype), vector = byte / 16 ^ q % 8;
        const char *w = weights + q * kStageRow + vector * 16 + byte % 16;
        unpacked.push_back(value_of(reinterpret_cast<const unsigned char *>(w), dtype));
      }
  }

  /* One row of taps for one remainder of the columns. */
  void multiply(int32_t down, const char *weights, int remainder) {
    unpack(weights);
    faults->misplaced += down * p.tile.w * kStageRow % kStationaryAlignment != 0;
    faults->misplaced += parts > 1 && second_part_bytes(p) % kStationaryAlignment != 0;
    for (int m = 0; m < pixels; m++) {
      int64_t row = m / 64 * (second_part_bytes(p) / kStageRow) + m % 64 + down * p.tile.w;
      if ((row + 1) * kStageRow > p.stage_bytes) {
        faults->overrun++;
        continue;
      }
      for (int q = 0; q < filters; q++)
        for (int c = 0; c < width; c++)
          sum[(size_t)((m * 2 + remainder) * filters + q)] +=
              box[(size_t)(row * width + c)] * unpacked[(size_t)(q * width + c)];
    }
  }

  void run_tile(const TilePlace &tile, int row_rest, int slice) {
    int32_t block = 0;
    const char *w = p.w + row_rest * p.w_rows + (int64_t)slice * filters * kStageRow;
    sum.assign((size_t)(pixels * 2 * filters), 0.f);
    for (int i = 0; i < p.both + p.alone[0] + p.alone[1]; i++)
      for (int chunk = 0; chunk < p.chunks; chunk++) {
        int alone = i < p.both ? -1 : i < p.both + p.alone[0] ? 0 : 1;
        load(tile, p.shift_h[row_rest], p.shift_w[i], chunk);
        for (int t = 0; t < p.taps_h[row_rest]; t++)
          for (int remainder = 0; remainder < 2; remainder++)
            if (alone < 0 || alone == remainder)
              multiply(t, w + (int64_t)block++ * p.w_block, remainder);
      }
    faults->overrun += block != p.blocks[row_rest];
  }

  template <typename T>
  void store_tile(const TilePlace &tile, int row_rest, int slice) {
    for (int m = 0; m < pixels; m++)
      for (int remainder = 0; remainder < 2; remainder++)
        for (int q = 0; q < filters; q++) {
          OutputPlace at;
          int filter = slice * filters + fragment_filter<T>(q / 8, q % 8 / 2) + q % 2;
          bool there = output_place(p, tile, m, row_rest, &at);
          if (!there || at.w + remainder >= p.out_columns || filter >= p.filters) continue;
          float v = sum[(size_t)((m * 2 + remainder) * filters + q)];
          if (p.bias) v += p.bias[filter];
          put_rounded(desc->output.dtype, p.y,
                      at.n * p.out.n + at.h * p.out.h + (at.w + remainder) * p.out.w + filter,
                      slope_of(p.act).of(v));
          faults->outputs++;
        }
  }
};

}  // namespace

bool stationary_t_takes(const cs_op_desc *desc) {
  return stationary_takes(desc);
}

const char *stationary_t_id(int v) {
  constexpr int kCount = (int)(sizeof kStationaryVariants / sizeof *kStationaryVariants);
  return v < kCount ? kStationaryVariants[v].id : nullptr;
}

cs_status stationary_t_emulate(const cs_op_desc *desc, int v, const void *input,
                               const float *weight, const float *bias, void *output,
                               stationary_t_faults *faults) {
  const StationaryVariant &variant = kStationaryVariants[v];
  StationaryParams p = {};
  std::vector<char> weights((size_t)with_bias_bytes(desc, stationary_filters_bytes(desc)));
  cs_cuda_merge_part part = {desc, &input, weights.data(), output};
  stationary_pack(desc, weight, bias, weights.data());
  fill_output(&part, variant.filters, stationary_filters_bytes(desc), &p);
  p.w = weights.data();
  if (!stationary_params(desc, variant, &p))
    return cs_error(CS_CODE_NOT_FOUND, "too much for shared memory");
  Emulation emulation(desc, p, variant, input, faults);
  for (int32_t tile = 0; tile < p.tiles; tile++)
    for (int row_rest = 0; row_rest < 2; row_rest++)
      for (int slice = 0; slice < p.slices; slice++) {
        TilePlace place = tile_place(p, tile);
        emulation.run_tile(place, row_rest, slice);
        (void)by_dtype(desc->output.dtype, [&](auto type) {
          emulation.store_tile<decltype(type)>(place, row_rest, slice);
          return (cs_status)CS_OK;
        });
      }
  return CS_OK;
}
