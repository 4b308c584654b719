/* Tensors as pictures (graph/pixels.h): a thread makes four neighbours of a row, or one pixel. */
#include "backend/cuda/kernel_util.cuh"

extern "C" {
#include "graph/pixels.h"
}

namespace {

template <bool WIDE>
struct PixelParams {
  Strides<WIDE> from;
  const void *tensor;
  uint8_t *out;
  typename Index<WIDE>::type total;        /* threads */
  typename Index<WIDE>::Div width, height; /* width: in threads */
};

/* Saturates, and takes a NaN for 0. */
__device__ __forceinline__ uint32_t pixel_of(float x) {
  return (uint32_t)__float2int_rn(
      fminf(fmaxf(__fmul_rn(__fadd_rn(x, 1.0f), 127.5f), 0.0f), 255.0f));
}

/* V pixels of C channels; with V 4 they are C whole words. */
template <typename T, int C, int V, bool WIDE>
__global__ void cs_pixels_kernel(const __grid_constant__ PixelParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I group, row;
  I rest = divide(index, p.width, &group);
  I picture = divide(rest, p.height, &row);
  const T *from = static_cast<const T *>(p.tensor) + picture * p.from.n + row * p.from.h;
  uint32_t bytes[V * C];
#pragma unroll
  for (int v = 0; v < V; v++)
#pragma unroll
    for (int c = 0; c < C; c++)
      bytes[v * C + c] =
          pixel_of(Convert<T>::from(from[(group * V + v) * p.from.w + c * p.from.c]));
  if constexpr (V == 4) {
    uint32_t *out = reinterpret_cast<uint32_t *>(p.out) + index * C;
#pragma unroll
    for (int i = 0; i < C; i++)
      out[i] =
          bytes[4 * i] | bytes[4 * i + 1] << 8 | bytes[4 * i + 2] << 16 | bytes[4 * i + 3] << 24;
  } else {
#pragma unroll
    for (int c = 0; c < C; c++) p.out[index * C + c] = (uint8_t)bytes[c];
  }
}

template <typename T, int C, int V, bool WIDE>
cs_status launch(const cs_tensor_desc *desc, const void *tensor, uint8_t *out,
                 cudaStream_t stream) {
  using I = typename Index<WIDE>::type;
  const int64_t *dims = desc->shape.dims;
  PixelParams<WIDE> params = {strides_of<WIDE>(desc->strides),        tensor, out,
                              (I)(dims[0] * dims[2] * (dims[3] / V)), {},     {}};
  set_divisor(&params.width, dims[3] / V);
  set_divisor(&params.height, dims[2]);
  return launch_linear("pixels", cs_pixels_kernel<T, C, V, WIDE>, (int64_t)params.total, params,
                       stream);
}

template <typename T, int C>
cs_status launch_channels(const cs_tensor_desc *desc, const void *tensor, uint8_t *out,
                          cudaStream_t stream) {
  const int64_t *dims = desc->shape.dims;
  bool wide =
      cs_tensor_span_bytes(desc) >= kNarrowLimit || cs_pixels_bytes(&desc->shape) >= kNarrowLimit;
  if (wide) return launch<T, C, 1, true>(desc, tensor, out, stream);
  return dims[3] % 4 == 0 ? launch<T, C, 4, false>(desc, tensor, out, stream)
                          : launch<T, C, 1, false>(desc, tensor, out, stream);
}

}  // namespace

cs_status cs_cuda_pixels_launch(const cs_tensor_desc *desc, const void *tensor, uint8_t *out,
                                cudaStream_t stream) {
  return by_dtype(desc->dtype, [&](auto type) {
    using T = decltype(type);
    return desc->shape.dims[1] == 1 ? launch_channels<T, 1>(desc, tensor, out, stream)
                                    : launch_channels<T, 3>(desc, tensor, out, stream);
  });
}
