/* Transposed convolutions by kernels that are there already. Outputs of one remainder by the stride
 * get their sums through taps of one remainder: they are an ordinary convolution of the input, and
 * all of them are one launch of several parts (conv_mma.cu, conv_tma.cu). Of an input of one pixel
 * every output is a product of its own: that is a dense layer (dense_layer.h), by gemm.cu or, as a
 * 1x1 convolution to all of an image's outputs, by the same kernels as the others. */
#include "backend/cuda/conv_tiles.h"
#include "backend/cuda/kernel_util.cuh"

extern "C" {
#include "backend/cuda/dense_layer.h"
}

namespace {

/* ---- As convolutions ---- */

/* The outputs of one remainder: on each axis `phase` by the stride, whose taps are `tap` and every
 * stride-th behind it, the last one first. */
struct SubConvolution {
  cs_op_desc desc;
  int64_t phase[2], tap[2];
  int64_t offset; /* of its first output, elements */
};

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* One axis of a remainder; false: no convolution that is known here. */
bool split_axis(const cs_op_desc *desc, int axis, int64_t phase, SubConvolution *out) {
  const cs_conv_attrs *from = &desc->attrs.conv;
  cs_conv_attrs *to = &out->desc.attrs.conv;
  int64_t stride = from->strides[axis], dilation = from->dilations[axis];
  int64_t shifted = phase + from->pads[axis], tap = shifted % stride;
  if ((dilation > 1 && stride > 1) || tap >= from->kernel[axis]) return false;
  int64_t taps = ceil_div(from->kernel[axis] - tap, stride), beyond = (taps - 1) * dilation;
  int64_t outputs = ceil_div(desc->output.shape.dims[2 + axis] - phase, stride);
  to->kernel[axis] = taps;
  to->strides[axis] = 1;
  to->dilations[axis] = dilation;
  to->pads[axis] = beyond - shifted / stride;
  to->pads[2 + axis] = outputs + beyond - desc->inputs[0].shape.dims[2 + axis] - to->pads[axis];
  out->desc.output.shape.dims[2 + axis] = outputs;
  out->desc.output.strides[2 + axis] *= stride;
  out->phase[axis] = phase, out->tap[axis] = tap;
  out->offset += phase * desc->output.strides[2 + axis];
  return to->pads[axis] >= 0;
}

int64_t aligned_at(int64_t alignment, int64_t bytes) {
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

/* Returns how many there are; 0: not to be had as CS_CUDA_MERGE_MOST or fewer. */
int split(const cs_op_desc *desc, SubConvolution out[CS_CUDA_MERGE_MOST]) {
  const cs_conv_attrs *conv = &desc->attrs.conv;
  cs_op_desc dense;
  int n = 0;
  if (cs_dense_layer(desc, &dense)) return 0; /* most products would be with padding */
  if (desc->op != CS_OP_CONV_TRANSPOSE || conv->group != 1 || desc->has_residual ||
      desc->output.shape.rank != 4 || conv->strides[0] > CS_CUDA_MERGE_MOST ||
      conv->strides[1] > CS_CUDA_MERGE_MOST / conv->strides[0])
    return 0;
  for (int64_t h = 0; h < cs_min_i64(conv->strides[0], desc->output.shape.dims[2]); h++)
    for (int64_t w = 0; w < cs_min_i64(conv->strides[1], desc->output.shape.dims[3]); w++) {
      SubConvolution *one = &out[n++];
      *one = {};
      one->desc = *desc;
      one->desc.op = CS_OP_CONV;
      if (!split_axis(desc, 0, h, one) || !split_axis(desc, 1, w, one)) return 0;
      one->desc.output.alignment =
          aligned_at(desc->output.alignment, one->offset * cs_dtype_size(desc->output.dtype));
    }
  return n;
}

struct Way {
  const char *id, *base; /* base: what computes the convolutions */
  const char *above;     /* a large tile's: the one whose operations it is for */
  int rows;              /* … its output pixels */
};
constexpr int64_t kTilesLeast = 132; /* large ones: so many as there are SMs, usually */
const Way kMma[] = {
#define CS_WAY(name, m, n, ...) {"cuda.mma_t.v1-" name, CS_MMA_ID name},
    CS_MMA_TILES(CS_WAY)
#undef CS_WAY
};
const Way kTma[] = {
#define CS_WAY(name, m, n, ...) {"cuda.tma_t.v1-" name, CS_TMA_ID name},
    CS_TMA_TILES(CS_WAY)
#undef CS_WAY
#define CS_WAY(name, m, n, above, ...) {"cuda.tma_t.v1-" name, CS_TMA_ID name, CS_TMA_ID above, m},
        CS_TMA_LARGE_TILES(CS_WAY)
#undef CS_WAY
};
const Way kGemm[] = {{"cuda.gemm_t.warp.v1", "cuda.gemm.warp.v1"},
                     {"cuda.gemm_t.block.v1", "cuda.gemm.block.v1"},
                     {"cuda.gemm_t.tile.v1", "cuda.gemm.tile.v1"}};

const Way kMmaPixel[] = {
#define CS_WAY(name, m, n, ...) {"cuda.mma_pixel_t.v1-" name, CS_MMA_ID name},
    CS_MMA_TILES(CS_WAY)
#undef CS_WAY
};
const Way kTmaPixel[] = {
#define CS_WAY(name, m, n, ...) {"cuda.tma_pixel_t.v1-" name, CS_TMA_ID name},
    CS_TMA_TILES(CS_WAY)
#undef CS_WAY
};

template <int N>
const char *base_of(const Way (&ways)[N], const char *id) {
  for (const Way &way : ways)
    if (strcmp(way.id, id) == 0) return way.base;
  return nullptr;
}

/* What a family offers for an operation. */
struct Offered {
  const char *ids[CS_CUDA_VARIANTS_MOST];
  int n;
  Offered(const KernelFamily &family, const cs_op_desc *desc) {
    n = (int)cs_min_i64(family.variants(desc, ids, CS_CUDA_VARIANTS_MOST), CS_CUDA_VARIANTS_MOST);
  }
  bool has(const char *id) const {
    for (int i = 0; i < n; i++)
      if (strcmp(ids[i], id) == 0) return true;
    return false;
  }
};

bool computes(const Way &way, const Offered &offered, const cs_op_desc *part) {
  if (way.above == nullptr) return offered.has(way.base);
  const int64_t *dims = part->output.shape.dims;
  return offered.has(way.above) && dims[0] * dims[2] * dims[3] >= kTilesLeast * way.rows;
}

/* FAMILY: of convolutions, with several in a launch. */
template <const KernelFamily &FAMILY, const auto &WAYS>
struct AsConvolutions {
  static int variants(const cs_op_desc *desc, const char **ids, int capacity) {
    SubConvolution parts[CS_CUDA_MERGE_MOST];
    constexpr int kWays = (int)(sizeof WAYS / sizeof *WAYS);
    int count = 0, n = split(desc, parts), takers[kWays] = {}; /* parts that each way computes */
    for (int i = 0; i < n; i++) {
      Offered offered(FAMILY, &parts[i].desc);
      for (int way = 0; way < kWays; way++)
        takers[way] += computes(WAYS[way], offered, &parts[i].desc);
    }
    for (int way = 0; way < kWays; way++)
      if (n > 0 && takers[way] == n) add_variant(ids, capacity, &count, WAYS[way].id);
    return count;
  }

  static int64_t weight_bytes(const cs_op_desc *desc) {
    SubConvolution parts[CS_CUDA_MERGE_MOST];
    int64_t bytes = 0;
    for (int i = 0, n = split(desc, parts); i < n; i++)
      bytes += FAMILY.weight_bytes(&parts[i].desc);
    return bytes;
  }

  /* Weights of a transposed convolution: [channel][filter][tap]; bias: the same for all. */
  static cs_status pack(const cs_op_desc *desc, const float *weight, const float *bias,
                        void *host_out) {
    SubConvolution parts[CS_CUDA_MERGE_MOST];
    const cs_conv_attrs *from = &desc->attrs.conv;
    int64_t filters = from->out_channels, channels = desc->inputs[0].shape.dims[1];
    char *to = static_cast<char *>(host_out);
    cs_status st = CS_OK;
    float *own =
        static_cast<float *>(cs_calloc((size_t)cs_op_weight_elements(desc), sizeof(float)));
    if (!own) return cs_no_memory("weights", (size_t)cs_op_weight_elements(desc) * sizeof(float));
    for (int i = 0, n = split(desc, parts); i < n && st == CS_OK; i++) {
      const SubConvolution &part = parts[i];
      const int64_t *taps = part.desc.attrs.conv.kernel;
      float *next = own;
      for (int64_t k = 0; k < filters; k++)
        for (int64_t c = 0; c < channels; c++)
          for (int64_t h = 0; h < taps[0]; h++)
            for (int64_t w = 0; w < taps[1]; w++) {
              int64_t at_h = part.tap[0] + (taps[0] - 1 - h) * from->strides[0];
              int64_t at_w = part.tap[1] + (taps[1] - 1 - w) * from->strides[1];
              *next++ =
                  weight[((c * filters + k) * from->kernel[0] + at_h) * from->kernel[1] + at_w];
            }
      st = FAMILY.pack(&part.desc, own, bias, to);
      to += FAMILY.weight_bytes(&part.desc);
    }
    free(own);
    return st;
  }

  static cs_status launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                          const void *weights, void *output, cudaStream_t stream) {
    SubConvolution parts[CS_CUDA_MERGE_MOST];
    cs_cuda_merge_part merged[CS_CUDA_MERGE_MOST];
    int n = split(desc, parts);
    const char *w = static_cast<const char *>(weights);
    for (int i = 0; i < n; i++) {
      int64_t offset = parts[i].offset * cs_dtype_size(desc->output.dtype);
      merged[i] = {&parts[i].desc, inputs, w, static_cast<char *>(output) + offset};
      w += FAMILY.weight_bytes(&parts[i].desc);
    }
    return FAMILY.launch_merged(merged, n, base_of(WAYS, id), stream);
  }
};

/* ---- As a dense layer ---- */

/* The layer as a family takes it; false: the operation is none. */
bool as_gemm(const cs_op_desc *desc, cs_op_desc *out) {
  return cs_dense_layer(desc, out);
}

bool as_pointwise(const cs_op_desc *desc, cs_op_desc *out) {
  if (!cs_dense_layer(desc, out)) return false;
  int64_t outputs = out->output.shape.dims[1];
  out->op = CS_OP_CONV;
  out->attrs.conv = {};
  out->attrs.conv.out_channels = outputs, out->attrs.conv.group = 1;
  for (int axis = 0; axis < 2; axis++)
    out->attrs.conv.kernel[axis] = out->attrs.conv.strides[axis] = out->attrs.conv.dilations[axis] =
        1;
  for (cs_tensor_desc *tensor : {&out->inputs[0], &out->output}) {
    tensor->layout = CS_LAYOUT_NHWC;
    tensor->shape.rank = 4;
    for (int axis = 2; axis < 4; axis++)
      tensor->shape.dims[axis] = 1, tensor->strides[axis] = tensor->strides[0];
  }
  return true;
}

template <const KernelFamily &FAMILY, const auto &WAYS,
          bool (*AS)(const cs_op_desc *, cs_op_desc *)>
struct AsDense {
  static int variants(const cs_op_desc *desc, const char **ids, int capacity) {
    cs_op_desc dense;
    int count = 0;
    if (!AS(desc, &dense)) return 0;
    Offered offered(FAMILY, &dense);
    for (const Way &way : WAYS)
      if (offered.has(way.base)) add_variant(ids, capacity, &count, way.id);
    return count;
  }

  static int64_t weight_bytes(const cs_op_desc *desc) {
    cs_op_desc dense;
    return AS(desc, &dense) ? FAMILY.weight_bytes(&dense) : 0;
  }

  static cs_status pack(const cs_op_desc *desc, const float *weight, const float *bias,
                        void *host_out) {
    cs_op_desc dense;
    float *own_weight = nullptr;
    const float *own_bias = nullptr;
    if (!AS(desc, &dense)) return CS_OK; /* not offered */
    cs_status st = cs_dense_layer_weights(desc, weight, bias, &own_weight, &own_bias);
    if (st == CS_OK) st = FAMILY.pack(&dense, own_weight, own_bias, host_out);
    free(own_weight);
    return st;
  }

  static cs_status launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                          const void *weights, void *output, cudaStream_t stream) {
    cs_op_desc dense;
    if (!AS(desc, &dense))
      return cs_error(CS_CODE_BAD_INPUT, "%s: the operation is no dense layer", id);
    return FAMILY.launch(&dense, base_of(WAYS, id), inputs, weights, output, stream);
  }
};

using Mma = AsConvolutions<cs_mma_family, kMma>;
using Tma = AsConvolutions<cs_tma_family, kTma>;
using Gemm = AsDense<cs_gemm_family, kGemm, as_gemm>;
using MmaPixel = AsDense<cs_mma_family, kMmaPixel, as_pointwise>;
using TmaPixel = AsDense<cs_tma_family, kTmaPixel, as_pointwise>;

}  // namespace

const KernelFamily cs_mma_transposed_family = {Mma::variants, Mma::weight_bytes, Mma::pack,
                                               Mma::launch};
const KernelFamily cs_tma_transposed_family = {Tma::variants, Tma::weight_bytes, Tma::pack,
                                               Tma::launch};
const KernelFamily cs_gemm_transposed_family = {Gemm::variants, Gemm::weight_bytes, Gemm::pack,
                                                Gemm::launch};
const KernelFamily cs_mma_pixel_family = {MmaPixel::variants, MmaPixel::weight_bytes,
                                          MmaPixel::pack, MmaPixel::launch};
const KernelFamily cs_tma_pixel_family = {TmaPixel::variants, TmaPixel::weight_bytes,
                                          TmaPixel::pack, TmaPixel::launch};
