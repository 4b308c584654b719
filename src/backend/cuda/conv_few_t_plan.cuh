/* Which operations conv_few_t.cu takes, by which tile, and how a launch is shared out: the host's
 * part, which a test needs too. */
#ifndef CONVSCHED_BACKEND_CUDA_CONV_FEW_T_PLAN_CUH_
#define CONVSCHED_BACKEND_CUDA_CONV_FEW_T_PLAN_CUH_

#include "backend/cuda/conv_few_t.cuh"

/* Everything here is the including file's own. */
namespace {

/* X(id, fragments of 16 block columns a warp, rows in shared memory): wide ones read the columns
 * between parts less often, narrow ones are for small images; more rows hide more of the memory's
 * latency, fewer leave room for more warps. The last is for any shape, the others for paired ones.
 */
#define CS_FEW_T_TILES(X)           \
  X("cuda.mma_few_t.v1-32x3", 2, 3) \
  X("cuda.mma_few_t.v1-32x5", 2, 5) \
  X("cuda.mma_few_t.v1-16x4", 1, 4)

struct FewTVariant {
  const char *id;
  int fragments, stages;
};
const FewTVariant kFewTVariants[] = {
#define CS_FEW_T_VARIANT(id, fragments, stages) {id, fragments, stages},
    CS_FEW_T_TILES(CS_FEW_T_VARIANT)
#undef CS_FEW_T_VARIANT
};
constexpr int kFewTVariantCount = (int)(sizeof kFewTVariants / sizeof *kFewTVariants);

constexpr int64_t kFewTSharedMost = 96 << 10;  /* bytes a thread block */
constexpr int64_t kFewTSharedUnit = 228 << 10; /* of an SM; each block takes 1 KiB more */
constexpr int64_t kFewTUnits = 132;            /* SMs, usually */
constexpr int64_t kFewTExtentMost = 1 << 24;   /* of an image, and of its padding */
constexpr int64_t kFewTStripsTried = 1024;

inline bool few_t_takes(const cs_op_desc *desc) {
  if (desc->op != CS_OP_CONV_TRANSPOSE || desc->precision == CS_PRECISION_F32) return false;
  const cs_conv_attrs *conv = &desc->attrs.conv;
  if (desc->output.shape.rank != 4 || conv->group != 1 || desc->has_residual) return false;
  if (desc->has_prologue) return false;
  int64_t size = conv->kernel[0];
  if (conv->kernel[1] != size || size < 3 || size > 5) return false;
  if (conv->out_channels < 1 || conv->out_channels > kFewTFiltersMost) return false;
  for (int axis = 0; axis < 2; axis++) {
    if (conv->strides[axis] != 2 || conv->dilations[axis] != 1) return false;
    /* So that nothing that follows overflows. */
    if (conv->pads[axis] < 0 || conv->pads[axis] > kFewTExtentMost) return false;
    if (desc->inputs[0].shape.dims[2 + axis] > kFewTExtentMost) return false;
    if (desc->output.shape.dims[2 + axis] > kFewTExtentMost) return false;
  }
  int width = 16 / (int)cs_dtype_size(desc->output.dtype);
  if (!fits_narrow(view_of(&desc->output)) || !fits_narrow(view_of(&desc->inputs[0]))) return false;
  return desc->inputs[0].shape.dims[1] >= width && channels_vectorise(&desc->inputs[0], width);
}

/* ---- Tiles ---- */

inline bool few_t_paired(const cs_op_desc *desc) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  return conv->kernel[0] == 4 && conv->pads[1] % 2 != 0 && conv->out_channels <= kFewTPairedMost;
}

template <int K, typename F>
inline auto few_t_by_parity(const cs_op_desc *desc, F f) {
  return desc->attrs.conv.pads[1] % 2 != 0 ? f(FewTShape<K, true, false>())
                                           : f(FewTShape<K, false, false>());
}

/* Calls f with the operation's FewTShape. */
template <typename F>
inline auto few_t_by_shape(const cs_op_desc *desc, F f) {
  if (few_t_paired(desc)) return f(FewTShape<4, true, true>());
  switch (desc->attrs.conv.kernel[0]) {
    case 3:
      return few_t_by_parity<3>(desc, f);
    case 4:
      return few_t_by_parity<4>(desc, f);
    default:
      return few_t_by_parity<5>(desc, f);
  }
}

inline int64_t few_t_steps(const cs_op_desc *desc) {
  return (desc->inputs[0].shape.dims[1] * cs_dtype_size(desc->output.dtype) + 31) / 32;
}

/* Weights in registers: paired, of up to 64 channels that need all these steps. */
template <typename T>
constexpr int kFewTHeld = 64 * (int)sizeof(T) / 32;
inline bool few_t_held(const cs_op_desc *desc) {
  return few_t_paired(desc) && few_t_steps(desc) * 32 == 64 * cs_dtype_size(desc->output.dtype);
}

template <typename T, typename S, typename F>
inline cs_status few_t_by_shaped_tile(const cs_op_desc *desc, const char *id, F f) {
#define CS_FEW_T_TILE(name, fragments, stages)                                             \
  if constexpr (S::kPaired || fragments == 1)                                              \
    if (strcmp(id, name) == 0) {                                                           \
      if constexpr (S::kPaired)                                                            \
        if (few_t_held(desc)) return f(FewTTile<T, S, fragments, kFewTHeld<T>, stages>()); \
      return f(FewTTile<T, S, fragments, 0, stages>());                                    \
    }
  CS_FEW_T_TILES(CS_FEW_T_TILE)
#undef CS_FEW_T_TILE
  return cs_error(CS_CODE_BAD_INPUT, "%s: the operation has no such variant", id);
}

template <typename T, typename F>
inline cs_status few_t_by_typed_tile(const cs_op_desc *desc, const char *id, F f) {
  return few_t_by_shape(
      desc, [&](auto shape) { return few_t_by_shaped_tile<T, decltype(shape)>(desc, id, f); });
}

/* Calls f with the FewTTile of a variant that the operation has. */
template <typename F>
inline cs_status few_t_by_tile(const cs_op_desc *desc, const char *id, F f) {
  return by_dtype(desc->output.dtype,
                  [&](auto type) { return few_t_by_typed_tile<decltype(type)>(desc, id, f); });
}

/* ---- Shared memory ---- */

/* Bytes of packed weights, 8 a lane of a fragment. */
inline int64_t few_t_fragments_bytes(const cs_op_desc *desc) {
  int64_t fragments = few_t_by_shape(desc, [](auto shape) { return decltype(shape)::kFragments; });
  return few_t_steps(desc) * fragments * 32 * (int64_t)sizeof(uint2);
}

/* Bytes of a row of inputs, or of the sums that take its place. */
inline int64_t few_t_slot(const cs_op_desc *desc, const FewTVariant &variant) {
  int64_t columns = 16 * variant.fragments;
  int64_t shifts = few_t_by_shape(desc, [](auto shape) { return decltype(shape)::kShifts; });
  int64_t inputs = (columns + shifts - 1) * (few_t_steps(desc) * 32 + 16);
  int64_t sums = 2 * (2 * columns * desc->attrs.conv.out_channels + 4) * (int64_t)sizeof(float);
  return cs_round_up(cs_max_i64(inputs, sums), 16);
}

inline int64_t few_t_shared(const cs_op_desc *desc, const FewTVariant &variant, int64_t warps) {
  int64_t weights = few_t_held(desc) ? 0 : few_t_fragments_bytes(desc);
  return weights + warps * variant.stages * few_t_slot(desc, variant);
}

inline bool few_t_offers(const cs_op_desc *desc, const FewTVariant &variant) {
  return (few_t_paired(desc) || variant.fragments == 1) &&
         few_t_shared(desc, variant, 1) <= kFewTSharedMost;
}

/* ---- A launch ---- */

struct FewTLaunch {
  int64_t warps, blocks,
      shared;       /* warps of a block; blocks that there is work for, bytes a block */
  int64_t together; /* blocks on an SM */
  int64_t images;   /* columns of parts in all images */
};

/* As many warps on an SM as its shared memory and (launch bounds) its registers hold. */
inline FewTLaunch few_t_share(const cs_op_desc *desc, const FewTVariant &variant) {
  int64_t least = desc->output.dtype == CS_DTYPE_F32 ? 8 : 12; /* warps with enough registers */
  FewTLaunch best = {};
  for (int64_t warps = kFewTWarpsMost; warps > 0; warps--) {
    int64_t shared = few_t_shared(desc, variant, warps);
    if (shared > kFewTSharedMost) continue;
    int64_t together = cs_min_i64(kFewTSharedUnit / (shared + 1024), least / warps);
    if (warps * together > best.warps * best.together) best = {warps, 0, shared, together, 0};
  }
  return best;
}

/* Rows of blocks of a part, of `rows`, so that `images` (or columns of them) take all warps the
 * least time: a part reads kTaps − 1 rows more than it makes. */
inline int64_t few_t_strip(int64_t rows, int64_t images, int64_t warps, int64_t more) {
  int64_t best = rows, least = INT64_MAX;
  for (int64_t strips = 1; strips <= cs_min_i64(rows, kFewTStripsTried); strips++) {
    int64_t strip = (rows + strips - 1) / strips;
    int64_t parts = images * ((rows + strip - 1) / strip);
    int64_t time = (parts + warps - 1) / warps * (strip + more);
    if (time < least) best = strip, least = time;
  }
  return best;
}

/* Parts of so many rows of blocks. */
inline void few_t_divide(int64_t strip, FewTParams *p, FewTLaunch *launch) {
  int64_t strips = (p->block_rows + strip - 1) / strip;
  p->strip = (int32_t)strip;
  set_divisor(&p->strips, strips);
  p->units = (int32_t)(launch->images * strips);
  launch->blocks =
      cs_min_i64((p->units + launch->warps - 1) / launch->warps, kFewTUnits * launch->together);
}

template <typename C>
FewTParams few_t_params(const cs_op_desc *desc, const FewTVariant &variant, FewTLaunch *launch) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  int64_t size = cs_dtype_size(desc->output.dtype);
  FewTParams p = {};
  p.height = (int32_t)in.dim[2], p.width = (int32_t)in.dim[3];
  p.filters = (int32_t)conv->out_channels;
  p.out_height = (int32_t)out.dim[2], p.out_width = (int32_t)out.dim[3];
  p.pad_top = (int32_t)conv->pads[0];
  p.shift = (int32_t)(conv->pads[1] / 2 - (C::kTaps - 1));
  p.first_row = p.pad_top / 2;
  p.block_rows = (p.out_height - 1 + p.pad_top) / 2 - p.first_row + 1;
  p.in = strides_of<false>(in.stride), p.out = strides_of<false>(out.stride);
  *launch = few_t_share(desc, variant);
  int64_t warps = kFewTUnits * launch->together * launch->warps;
  int64_t chunks = ((out.dim[3] + 1) / 2 + C::kColumns - 1) / C::kColumns;
  set_divisor(&p.chunks, chunks);
  launch->images = out.dim[0] * chunks;
  few_t_divide(few_t_strip(p.block_rows, launch->images, warps, C::kTaps - 1), &p, launch);
  p.vectors = (int32_t)(in.dim[1] * size / 16);
  p.steps = (int32_t)few_t_steps(desc), p.slot = (int32_t)few_t_slot(desc, variant);
  set_divisor(&p.pixel, 2 * p.steps);
  set_divisor(&p.channels, p.filters);
  p.act = activation_of(desc->activation);
  p.wide = out.stride[1] == 1 && out.stride[3] == p.filters && out.stride[0] % 4 == 0 &&
           out.stride[2] % 4 == 0 && out.dim[3] * p.filters % 4 == 0 &&
           desc->output.alignment >= 4 * size;
  p.planar = out.stride[3] == 1 && p.filters > 1;
  return p;
}

}  // namespace

#endif
