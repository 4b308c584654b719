/* GlobalAveragePool: a warp for each plane of NCHW; in NHWC a block for each image and 4 vectors of
 * channels. */
#include "backend/cuda/kernel_util.cuh"

constexpr int kPoolBatch = 4; /* loads in flight per thread */

template <bool WIDE>
struct GlobalPoolParams {
  using I = typename Index<WIDE>::type;
  I rows; /* N × C, or N × channel groups */
  typename Index<WIDE>::Div channels, width;
  I pixels;
  const void *x;
  void *y;
  float scale;
  Strides<WIDE> in, out;
  bool row_major; /* the plane is one line of stride in.w */
  Activation act;
};

/* A warp for each (n, c), lanes along the plane. */
template <typename T, bool WIDE>
__global__ void cs_global_pool_plane_kernel(const __grid_constant__ GlobalPoolParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I row = thread_index<I>() / 32;
  if (row >= p.rows) return;
  I c;
  I n = divide(row, p.channels, &c);
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c * p.in.c;
  float sum = 0.f;
  for (I i = (I)threadIdx.x % 32; i < p.pixels; i += 32 * kPoolBatch) {
    float taps[kPoolBatch];
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) {
      I pixel = i + 32 * j, offset = pixel * p.in.w;
      if (!p.row_major) {
        I w;
        I h = divide(pixel, p.width, &w);
        offset = h * p.in.h + w * p.in.w;
      }
      taps[j] = pixel < p.pixels ? Convert<T>::from(x[offset]) : 0.f;
    }
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) sum += taps[j];
  }
  float mean[1] = {warp_sum(sum) * p.scale};
  activate<1>(p.act, mean);
  if (threadIdx.x % 32 == 0)
    store_vector<T, 1>(static_cast<T *>(p.y) + n * p.out.n + c * p.out.c, mean);
}

/* A block for each image and 4 vectors of channels: 4 × 32 threads, the pixels shared out. */
template <typename T, int V>
__global__ void __launch_bounds__(128)
    cs_global_pool_channels_kernel(const __grid_constant__ GlobalPoolParams<false> p) {
  begin_kernel();
  __shared__ float partial[4][4][V];
  int32_t group;
  int32_t n = divide((int32_t)blockIdx.x, p.channels, &group);
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  int32_t c = (group * 4 + lane % 4) * V;
  bool active = lane % 4 + group * 4 < p.rows;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c;
  float sum[V];
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = 0.f;
  for (int32_t first = (int)threadIdx.x / 4; active && first < p.pixels; first += 32 * kPoolBatch) {
    float taps[kPoolBatch][V];
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++) {
      int32_t pixel = first + 32 * j, w;
      int32_t h = divide(pixel, p.width, &w);
#pragma unroll
      for (int i = 0; i < V; i++) taps[j][i] = 0.f;
      if (pixel < p.pixels) load_vector<T, V>(x + h * p.in.h + w * p.in.w, taps[j]);
    }
#pragma unroll
    for (int j = 0; j < kPoolBatch; j++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] += taps[j][i];
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
#pragma unroll
    for (int step = 16; step >= 4; step /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
    if (lane < 4) partial[warp][lane][i] = sum[i];
  }
  __syncthreads();
  if (threadIdx.x >= 4 || !active) return;
#pragma unroll
  for (int i = 0; i < V; i++)
    sum[i] =
        (partial[0][lane][i] + partial[1][lane][i] + partial[2][lane][i] + partial[3][lane][i]) *
        p.scale;
  activate<V>(p.act, sum);
  store_vector<T, V>(static_cast<T *>(p.y) + n * p.out.n + c, sum);
}

template <bool WIDE>
static GlobalPoolParams<WIDE> global_params(const cs_op_desc *desc, const void *x, void *y) {
  using I = typename Index<WIDE>::type;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  GlobalPoolParams<WIDE> p = {};
  p.rows = (I)(in.dim[0] * in.dim[1]);
  set_divisor(&p.channels, in.dim[1]);
  set_divisor(&p.width, in.dim[3]);
  p.pixels = (I)(in.dim[2] * in.dim[3]);
  p.x = x, p.y = y;
  p.scale = 1.f / (float)p.pixels;
  p.in = strides_of<WIDE>(in.stride), p.out = strides_of<WIDE>(out.stride);
  p.row_major = in.stride[2] == in.dim[3] * in.stride[3];
  p.act = activation_of(desc->activation);
  return p;
}

template <typename T, bool WIDE>
static cs_status launch_plane(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  GlobalPoolParams<WIDE> params = global_params<WIDE>(desc, x, y);
  View in = view_of(&desc->inputs[0]);
  return launch_linear("global_average_pool", cs_global_pool_plane_kernel<T, WIDE>,
                       in.dim[0] * in.dim[1] * 32, params, stream);
}

template <typename T, int V>
static cs_status launch_channels(const cs_op_desc *desc, const void *x, void *y,
                                 cudaStream_t stream) {
  GlobalPoolParams<false> params = global_params<false>(desc, x, y);
  View in = view_of(&desc->inputs[0]);
  int64_t vectors = in.dim[1] / V, groups = (vectors + 3) / 4;
  params.rows = (int32_t)vectors;
  set_divisor(&params.channels, groups);
  return launch_kernel("global_average_pool", cs_global_pool_channels_kernel<T, V>,
                       dim3((unsigned)(in.dim[0] * groups)), dim3(128), params, stream);
}

static cs_status launch_global(const cs_op_desc *desc, const void *x, void *y,
                               cudaStream_t stream) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  return by_dtype(out->dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    View view = view_of(in);
    if (!fits_narrow(view) || view.dim[0] * view.dim[1] * 32 >= kNarrowLimit)
      return launch_plane<T, true>(desc, x, y, stream);
    if (channels_vectorise(in, V) && channels_vectorise(out, V))
      return launch_channels<T, V>(desc, x, y, stream);
    if (in->layout == CS_LAYOUT_NHWC && in->strides[1] == 1 && out->strides[1] == 1)
      return launch_channels<T, 1>(desc, x, y, stream);
    return launch_plane<T, false>(desc, x, y, stream);
  });
}

static int global_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->has_residual || desc->n_inputs != 1) return 0;
  add_variant(ids, capacity, &count, "cuda.global_average_pool.v1");
  return count;
}

static cs_status global_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                               const void *, void *output, cudaStream_t stream) {
  return launch_global(desc, inputs[0], output, stream);
}

const KernelFamily cs_global_pool_family = {global_variants, NULL, NULL, global_launch};
