/* InstanceNormalization: y = scale[c] (x − mean) / √(variance + epsilon) + shift[c], statistics
 * over each image's plane of a channel. A block of 256 threads takes a plane, or in NHWC 32
 * neighbouring channels of an image, 8 threads each. */
#include "backend/cuda/kernel_util.cuh"

struct InstanceNormParams {
  const void *x;
  const float *scale, *shift; /* [C] */
  void *y;
  int64_t channels, groups; /* groups: of channels, in a block each */
  int64_t height, width;
  Strides<true> in, out;
  float epsilon;
};

constexpr int kNormThreads = 256;

/* The sum over the threads of a channel: `lane` of LANES, threads of one channel CHANNELS apart. */
template <int CHANNELS>
__device__ __forceinline__ float channel_sum(float v) {
  __shared__ float partial[kNormThreads];
  __syncthreads();
  partial[threadIdx.x] = v;
  __syncthreads();
  for (int half = kNormThreads / 2; half >= CHANNELS; half /= 2) {
    if ((int)threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  return partial[threadIdx.x % CHANNELS];
}

template <typename T, int CHANNELS>
__global__ void __launch_bounds__(kNormThreads)
    cs_instance_norm_kernel(const __grid_constant__ InstanceNormParams p) {
  begin_kernel();
  constexpr int LANES = kNormThreads / CHANNELS;
  int64_t group = blockIdx.x % p.groups, n = blockIdx.x / p.groups;
  int64_t c = group * CHANNELS + threadIdx.x % CHANNELS, lane = threadIdx.x / CHANNELS;
  bool active = c < p.channels;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c * p.in.c;
  int64_t pixels = active ? p.height * p.width : 0;
  float sum = 0.f, squares = 0.f;
  for (int64_t i = lane; i < pixels; i += LANES)
    sum += Convert<T>::from(x[i / p.width * p.in.h + i % p.width * p.in.w]);
  float count = (float)(p.height * p.width), mean = channel_sum<CHANNELS>(sum) / count;
  for (int64_t i = lane; i < pixels; i += LANES) {
    float d = Convert<T>::from(x[i / p.width * p.in.h + i % p.width * p.in.w]) - mean;
    squares = fmaf(d, d, squares);
  }
  float variance = channel_sum<CHANNELS>(squares) / count;
  if (!active) return;
  float scale = p.scale[c] / sqrtf(variance + p.epsilon), shift = p.shift[c];
  T *y = static_cast<T *>(p.y) + n * p.out.n + c * p.out.c;
  for (int64_t i = lane; i < pixels; i += LANES) {
    int64_t h = i / p.width, w = i % p.width;
    float v[1] = {fmaf(Convert<T>::from(x[h * p.in.h + w * p.in.w]) - mean, scale, shift)};
    store_vector<T, 1>(y + h * p.out.h + w * p.out.w, v);
  }
}

static int instance_norm_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->activation.kind != CS_ACT_NONE || desc->has_residual ||
      desc->n_inputs != 1)
    return 0;
  add_variant(ids, capacity, &count, "cuda.instance_norm.v1");
  return count;
}

template <typename T, int CHANNELS>
static cs_status launch_norm(InstanceNormParams params, int64_t images, cudaStream_t stream) {
  params.groups = (params.channels + CHANNELS - 1) / CHANNELS;
  int64_t blocks = images * params.groups;
  if (blocks > INT32_MAX)
    return cs_error(CS_CODE_BAD_INPUT, "kernel instance_norm: %lld planes; at most 2^31 blocks fit",
                    (long long)blocks);
  return launch_kernel("instance_norm", cs_instance_norm_kernel<T, CHANNELS>,
                       dim3((unsigned)blocks), dim3(kNormThreads), params, stream);
}

static cs_status instance_norm_launch(const cs_op_desc *desc, const char *,
                                      const void *const *inputs, const void *weights, void *output,
                                      cudaStream_t stream) {
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  const char *scale = static_cast<const char *>(weights);
  const char *shift = scale + weight_part_bytes(in.dim[1] * (int64_t)sizeof(float));
  InstanceNormParams params = {inputs[0],
                               reinterpret_cast<const float *>(scale),
                               reinterpret_cast<const float *>(shift),
                               output,
                               in.dim[1],
                               0,
                               in.dim[2],
                               in.dim[3],
                               strides_of<true>(in.stride),
                               strides_of<true>(out.stride),
                               (float)desc->attrs.batch_norm.epsilon};
  bool neighbours = in.stride[1] == 1 && in.dim[1] > 1 && in.dim[2] * in.dim[3] > 1;
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    if (neighbours) return launch_norm<T, 32>(params, in.dim[0], stream);
    return launch_norm<T, 1>(params, in.dim[0], stream);
  });
}

const KernelFamily cs_instance_norm_family = {instance_norm_variants, channel_weight_bytes,
                                              channel_pack, instance_norm_launch};
