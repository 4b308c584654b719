/* Transposed convolution by steps of 2 whose weights stay in shared memory (NHWC, Hopper). What
 * fills shared memory is what bounds a generator's later layers: they have few filters, so a tile's
 * operands are read again and again for few products. Here a block holds the taps of one remainder
 * of the output's rows, for all channels, both remainders of the columns and a slice of the
 * filters, and walks over tiles: only pixels come in, once for each shift of the columns. A shift
 * of the rows is the same box in shared memory further down, as tiles are 8 or 16 pixels wide, and
 * both remainders of the columns share the shifts that they have in common. Groups of four warps
 * have tiles and stages of their own: one stores while another multiplies. */
#include "backend/cuda/conv_stationary_t.cuh"

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

/* NULL: the driver has none. */
EncodeTiled encode_tiled() {
  return driver_function<EncodeTiled>("cuTensorMapEncodeTiled");
}

/* Tiles of mostly real pixels and filters, and so many that half of all groups have one. */
bool is_worthwhile(const cs_op_desc *desc, const StationaryVariant &variant) {
  StationaryParams p = {};
  if (!stationary_params(desc, variant, &p)) return false;
  const int64_t *dims = desc->output.shape.dims;
  int64_t filters = desc->attrs.conv.out_channels;
  int64_t pixels = dims[0] * ((dims[2] + 1) / 2) * ((dims[3] + 1) / 2);
  int64_t computed = (int64_t)p.tiles * 64 * variant.parts * p.slices * variant.filters;
  return computed <= 2 * pixels * filters &&
         2 * (int64_t)p.tiles * 2 * p.slices >= (int64_t)variant.groups * kUnitsUsual;
}

int stationary_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (!stationary_takes(desc) || !device_has_wgmma() || encode_tiled() == nullptr) return 0;
  for (const StationaryVariant &variant : kStationaryVariants)
    if (is_worthwhile(desc, variant)) add_variant(ids, capacity, &count, variant.id);
  return count;
}

int64_t stationary_weight_bytes(const cs_op_desc *desc) {
  return stationary_takes(desc) ? with_bias_bytes(desc, stationary_filters_bytes(desc)) : 0;
}

cs_status stationary_pack_weights(const cs_op_desc *desc, const float *weight, const float *bias,
                                  void *host_out) {
  if (stationary_takes(desc)) stationary_pack(desc, weight, bias, host_out);
  return CS_OK;
}

/* ---- Launch ---- */

/* Boxes of a tile's pixels with the rows that its taps reach. */
cs_status encode_map(const cs_op_desc *desc, const void *input, StationaryParams *p) {
  int64_t size = cs_dtype_size(desc->output.dtype);
  MapView in = map_view_of(view_of(&desc->inputs[0]), size);
  cuuint32_t box[4] = {(cuuint32_t)(kStageRow / size), (cuuint32_t)p->tile.w, (cuuint32_t)p->box_h,
                       (cuuint32_t)p->tile.n};
  cuuint32_t steps[4] = {1, 1, 1, 1};
  EncodeTiled encode = encode_tiled();
  if (!encode)
    return cs_error(CS_CODE_DEVICE, "kernel conv_stationary_t: the driver makes no tiled maps");
  CUresult result =
      encode(&p->x, map_type_of(desc->output.dtype), 4, const_cast<void *>(input), in.dims,
             in.strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return CS_OK;
  return cs_error(CS_CODE_DEVICE,
                  "kernel conv_stationary_t: the driver makes no tiled map (error %d)",
                  (int)result);
}

/* A block for every SM, all ways of sharing out as often. */
cs_status blocks_of(const StationaryParams &p, unsigned *out) {
  int device, units;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return launch_error("conv_stationary_t", error);
  int64_t ways = 2 * (int64_t)p.slices;
  int64_t rounds = cs_min_i64(cs_max_i64(units / ways, 1), p.tiles);
  *out = (unsigned)(ways * rounds);
  return CS_OK;
}

template <typename B>
cs_status launch_blocks(const cs_op_desc *desc, const StationaryVariant &variant,
                        const void *const *inputs, const void *weights, void *output,
                        cudaStream_t stream) {
  StationaryParams p = {};
  unsigned blocks = 0;
  cs_cuda_merge_part part = {desc, inputs, weights, output};
  fill_output(&part, B::kFilters, stationary_filters_bytes(desc), &p);
  p.w = static_cast<const char *>(weights);
  if (!stationary_params(desc, variant, &p))
    return cs_error(CS_CODE_BAD_INPUT, "kernel conv_stationary_t: does not fit");
  CS_RETURN_IF_ERROR(encode_map(desc, inputs[0], &p));
  CS_RETURN_IF_ERROR(blocks_of(p, &blocks));
  return by_dtype(desc->output.dtype, [&](auto type) {
    return launch_kernel_shared("conv_stationary_t", cs_conv_stationary_t_kernel<decltype(type), B>,
                                dim3(blocks), dim3(B::kThreads), p,
                                (size_t)stationary_shared(p, variant), kStationaryShared, stream);
  });
}

/* The caller found the variant among those of the operation. */
cs_status stationary_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                            const void *weights, void *output, cudaStream_t stream) {
  using Launcher = cs_status (*)(const cs_op_desc *, const StationaryVariant &, const void *const *,
                                 const void *, void *, cudaStream_t);
  static constexpr Launcher launchers[] = {
#define CS_STATIONARY_T_LAUNCHER(id, ...) launch_blocks<StationaryBlock<__VA_ARGS__>>,
      CS_STATIONARY_T_TILES(CS_STATIONARY_T_LAUNCHER)
#undef CS_STATIONARY_T_LAUNCHER
  };
  int v = 0;
  while (strcmp(id, kStationaryVariants[v].id) != 0) v++;
  return launchers[v](desc, kStationaryVariants[v], inputs, weights, output, stream);
}

}  // namespace

const KernelFamily cs_stationary_transposed_family = {stationary_variants, stationary_weight_bytes,
                                                      stationary_pack_weights, stationary_launch};
