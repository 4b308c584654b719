#include "backend/cuda/conv_few_t_plan.cuh"
/* … with C's headers in extern "C". */
#include "unit/few_t_emulated.h"

namespace {

constexpr int kLanes = 32;

float value_of(const unsigned char *from, __half) {
  uint16_t bits;
  memcpy(&bits, from, sizeof bits);
  return cs_f16_to_f32(bits);
}
float value_of(const unsigned char *from, __nv_bfloat16) {
  uint16_t bits;
  memcpy(&bits, from, sizeof bits);
  return cs_bf16_to_f32(bits);
}
float value_of(const unsigned char *from, float) {
  float value;
  memcpy(&value, from, sizeof value);
  return round_tf32(value); /* the last bit of a tie apart, what the kernel rounds to */
}

/* Sums of one warp: [lane][element]. */
struct Fragment {
  float of[kLanes][4];
};

/* An operand of a warp: bytes of a lane's 32-bit words. */
template <int WORDS>
struct Operand {
  unsigned char of[kLanes][WORDS][4];
};

/* PTX ISA, mma.m16n8k16 and mma.m16n8k8 (.tf32): row and column of A's element `e` of word `word`.
 */
template <typename T>
void place_in_a(int lane, int word, int e, int *row, int *column) {
  *row = lane / 4 + word % 2 * 8;
  *column = sizeof(T) == 4 ? lane % 4 + word / 2 * 4 : lane % 4 * 2 + e + word / 2 * 8;
}
template <typename T>
void place_in_b(int lane, int word, int e, int *row, int *column) {
  *row = sizeof(T) == 4 ? lane % 4 + word * 4 : lane % 4 * 2 + e + word * 8;
  *column = lane / 4;
}

template <typename T>
void multiply_emulated(const Operand<4> &a, const Operand<2> &b, Fragment *sum) {
  constexpr int kDepth = 32 / (int)sizeof(T), kPacked = 4 / (int)sizeof(T);
  float left[16][kDepth], right[kDepth][8];
  for (int lane = 0; lane < kLanes; lane++)
    for (int e = 0; e < kPacked; e++) {
      int row, column;
      for (int word = 0; word < 4; word++) {
        place_in_a<T>(lane, word, e, &row, &column);
        left[row][column] = value_of(a.of[lane][word] + e * sizeof(T), T());
      }
      for (int word = 0; word < 2; word++) {
        place_in_b<T>(lane, word, e, &row, &column);
        right[row][column] = value_of(b.of[lane][word] + e * sizeof(T), T());
      }
    }
  for (int lane = 0; lane < kLanes; lane++)
    for (int e = 0; e < 4; e++)
      for (int k = 0; k < kDepth; k++)
        sum->of[lane][e] += left[lane / 4 + e / 2 * 8][k] * right[k][lane % 4 * 2 + e % 2];
}

/* PTX ISA, ldmatrix .x4: word r of a lane is 4 bytes of the row whose place lane 8 · r + lane / 4
 * gives. */
template <typename C>
void load_matrices_emulated(const FewTParams &p, const unsigned char *slot, int m, int a, int step,
                            Operand<4> *to) {
  for (int lane = 0; lane < kLanes; lane++)
    for (int word = 0; word < 4; word++)
      memcpy(to->of[lane][word],
             slot + matrix_row<C>(p, 8 * word + lane / 4) + fragment_at<C>(p, m, a, step) +
                 lane % 4 * 4,
             4);
}

template <typename C>
struct Warp {
  using T = typename C::T;
  const FewTParams &p;
  int64_t input_bytes;
  few_t_faults *faults;
  unsigned char *slots;
  Fragment sum[C::kMmaM][C::kTaps][2][C::kTiles];

  void load(const FewTRow &at, unsigned char *slot) {
    if (at.unit >= p.units) return;
    memset(slot, 0xFF, (size_t)p.slot); /* NaN, wherever nothing is written */
    bool inside = (uint32_t)at.row < (uint32_t)p.height;
    const unsigned char *x = static_cast<const unsigned char *>(p.x);
    for (int32_t v = 0; v < row_vectors<C>(p); v++) {
      FewTVector vector = vector_at<C>(p, at.column, v % kLanes, v / kLanes);
      int64_t from =
          (int64_t)sizeof(T) * (at.n * p.in.n + (int64_t)at.row * p.in.h + (int64_t)vector.from);
      if (vector.to + 16 > p.slot) {
        faults->slot_overrun++;
        continue;
      }
      for (int i = 0; i < 16; i++) faults->places_twice += slot[vector.to + i] != 0xFF;
      if (!(vector.there && inside)) {
        memset(slot + vector.to, 0, 16);
      } else if (from < 0 || from + 16 > input_bytes) {
        faults->reads_outside++;
      } else {
        faults->misaligned += from % 16 != 0;
        memcpy(slot + vector.to, x + from, 16);
      }
    }
  }

  void multiply(const unsigned char *slot) {
    for (int step = 0; step < ::steps_of<C>(p); step++) {
      Operand<4> inputs[C::kMmaM];
      for_products<C>(
          [&](int a) {
            for (int m = 0; m < C::kMmaM; m++)
              load_matrices_emulated<C>(p, slot, m, a, step, &inputs[m]);
          },
          [&](int fragment, int s, int i, int u) {
            Operand<2> b;
            memcpy(b.of,
                   static_cast<const char *>(p.w) +
                       (int64_t)(step * C::kFragments + fragment) * (int64_t)sizeof b,
                   sizeof b);
            for (int m = 0; m < C::kMmaM; m++) multiply_emulated<T>(inputs[m], b, &sum[m][i][s][u]);
          });
    }
  }

  void next_sums(bool all) {
    for (int m = 0; m < C::kMmaM; m++)
      for (int i = 0; i < C::kTaps; i++)
        for (int s = 0; s < 2; s++)
          for (int u = 0; u < C::kTiles; u++) {
            Fragment begin;
            for (int lane = 0; lane < kLanes; lane++)
              for (int e = 0; e < 4; e++)
                begin.of[lane][e] = p.bias[C::filter_of(lane % 4 * 2) + e % 2];
            sum[m][i][s][u] = all || i + 1 == C::kTaps ? begin : sum[m][i + 1][s][u];
          }
  }

  void stage(float *staged) {
    for (int32_t i = 0; i < 2 * staged_row<C>(p); i++) staged[i] = NAN;
    for (int m = 0; m < C::kMmaM; m++)
      for (int s = 0; s < 2; s++)
        for (int u = 0; u < C::kTiles; u++)
          for (int lane = 0; lane < kLanes; lane++)
            for (int e = 0; e < 4; e++)
              if (staged_filter<C>(lane, e % 2) < p.filters)
                staged[staged_at<C>(p, lane, m, s, u, e / 2, e % 2)] = sum[m][0][s][u].of[lane][e];
  }

  void put(int64_t at, float value) {
    faults->unwritten += std::isnan(value);
    faults->outputs++;
    float y = p.act.kind == CS_ACT_TANH ? quick_tanh(value) : value;
    put_rounded(sizeof(T) == 4              ? CS_DTYPE_F32
                : std::is_same_v<T, __half> ? CS_DTYPE_F16
                                            : CS_DTYPE_BF16,
                p.y, at, y);
  }

  void store(const FewTRow &at, unsigned char *slot) {
    float *staged = reinterpret_cast<float *>(slot);
    stage(staged);
    int32_t across = p.out_width - 2 * at.column, offset;
    if (across > 2 * C::kColumns) across = 2 * C::kColumns;
    for (int t = 0; t < 2; t++) {
      if (!output_line(p, at, t, &offset)) continue;
      if (p.wide) faults->misaligned += offset % 4 != 0 || across * p.filters % 4 != 0;
      const float *line = staged + t * staged_row<C>(p);
      for (int32_t i = 0; i < (p.wide ? across : 2 * C::kColumns) * p.filters; i++) {
        int32_t filter, x = output_at<C>(p, i, &filter);
        if (p.wide)
          put(offset + i, line[i]);
        else if (x < across)
          put(offset + (int64_t)x * p.out.w + (int64_t)filter * p.out.c,
              line[x * p.filters + filter]);
      }
    }
  }

  /* The kernel's loop. */
  void run(int32_t first, int32_t apart) {
    FewTRow at = unit_at<C>(p, first), loaded = at;
    for (int stage = 0; stage < C::kStages - 1; stage++) {
      load(loaded, slots + (int64_t)stage * p.slot);
      next_row<C>(p, apart, &loaded);
    }
    next_sums(true);
    int stage = 0;
    while (at.unit < p.units) {
      int before = stage > 0 ? stage - 1 : C::kStages - 1;
      load(loaded, slots + (int64_t)before * p.slot);
      next_row<C>(p, apart, &loaded);
      multiply(slots + (int64_t)stage * p.slot);
      if (at.row >= at.begin) store(at, slots + (int64_t)stage * p.slot);
      bool all = next_row<C>(p, apart, &at);
      next_sums(all);
      stage = stage + 1 < C::kStages ? stage + 1 : 0;
    }
  }
};

template <typename C>
cs_status emulate(const cs_op_desc *desc, const FewTVariant &variant, int warps, int strip,
                  const void *input, int64_t input_bytes, const void *weights, void *output,
                  few_t_faults *faults) {
  FewTLaunch launch;
  FewTParams p = few_t_params<C>(desc, variant, &launch);
  if (strip > 0) few_t_divide(strip, &p, &launch);
  p.x = input, p.w = weights, p.y = output;
  p.bias = reinterpret_cast<const float *>(static_cast<const char *>(weights) +
                                           weight_part_bytes(few_t_fragments_bytes(desc)));
  unsigned char *slots = static_cast<unsigned char *>(cs_calloc((size_t)p.slot, C::kStages));
  if (!slots) return cs_no_memory("rows", (size_t)p.slot * C::kStages);
  for (int warp = 0; warp < warps; warp++) {
    Warp<C> one = {p, input_bytes, faults, slots, {}};
    one.run(warp, warps);
  }
  free(slots);
  return CS_OK;
}

}  // namespace

float few_t_tanh(float x) {
  return quick_tanh(x);
}

cs_status few_t_emulate(const cs_op_desc *desc, const char *id, int warps, int strip,
                        const void *input, int64_t input_bytes, const void *weights, void *output,
                        few_t_faults *faults) {
  memset(faults, 0, sizeof *faults);
  int v = 0;
  while (v < kFewTVariantCount - 1 && strcmp(id, kFewTVariants[v].id) != 0) v++;
  return few_t_by_tile(desc, id, [&](auto tile) {
    return emulate<decltype(tile)>(desc, kFewTVariants[v], warps, strip, input, input_bytes,
                                   weights, output, faults);
  });
}
