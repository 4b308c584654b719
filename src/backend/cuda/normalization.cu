/* LRN across channels and Softmax. */
#include "backend/cuda/kernel_util.cuh"

/* ---- LRN: y = x / (bias + alpha/size · Σ x²)^beta over channels [c − before, c + after] ---- */

template <bool WIDE>
struct LrnParams {
  using I = typename Index<WIDE>::type;
  I total;                            /* threads */
  typename Index<WIDE>::Div inner[3]; /* output extents, innermost first; channels in chunks */
  const void *x;
  void *y;
  int channels, before, after;
  float scale, beta, bias; /* scale = alpha / size */
  Strides<WIDE> in, out;
};

/* Where thread `index` works: NHWC has channels innermost, else the width. */
template <bool NHWC, typename P, typename I>
__device__ __forceinline__ void lrn_position(const P &p, I index, I *n, I *c, I *h, I *w) {
  if (NHWC) {
    I rest = divide(index, p.inner[0], c);
    rest = divide(rest, p.inner[1], w);
    *n = divide(rest, p.inner[2], h);
  } else {
    I rest = divide(index, p.inner[0], w);
    rest = divide(rest, p.inner[1], h);
    *n = divide(rest, p.inner[2], c);
  }
}

template <typename T, bool NHWC, bool WIDE>
__global__ void cs_lrn_kernel(const __grid_constant__ LrnParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I n, c, h, w;
  lrn_position<NHWC>(p, index, &n, &c, &h, &w);
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + h * p.in.h + w * p.in.w;
  I first = c - p.before > 0 ? c - p.before : 0;
  I last = c + p.after < p.channels - 1 ? c + p.after : p.channels - 1;
  float squares = 0.f;
#pragma unroll 4
  for (I j = first; j <= last; j++) {
    float v = Convert<T>::from(x[j * p.in.c]);
    squares = fmaf(v, v, squares);
  }
  float y = Convert<T>::from(x[c * p.in.c]) * powf(fmaf(p.scale, squares, p.bias), -p.beta);
  static_cast<T *>(p.y)[n * p.out.n + c * p.out.c + h * p.out.h + w * p.out.w] = Convert<T>::to(y);
}

/* Size 5 and beta 0.75 (AlexNet, GoogLeNet): a chunk of channels per thread, read once with a halo
 * of two. Adjacent channels move as 16-byte vectors, others one by one, coalesced along the width.
 */
constexpr int kLrnHalo = 2;
template <typename T, bool NHWC>
constexpr int kLrnChunk = NHWC ? kVector<T> : 8;

template <typename T, bool NHWC>
__global__ void cs_lrn5_kernel(const __grid_constant__ LrnParams<false> p) {
  begin_kernel();
  constexpr int kChunk = kLrnChunk<T, NHWC>;
  int32_t index = thread_index<int32_t>();
  if (index >= p.total) return;
  int32_t n, c, h, w;
  lrn_position<NHWC>(p, index, &n, &c, &h, &w);
  c *= kChunk;
  const T *x = static_cast<const T *>(p.x) + n * p.in.n + c * p.in.c + h * p.in.h + w * p.in.w;
  float value[kChunk], square[kChunk + 2 * kLrnHalo];
  if (NHWC) {
    load_vector<T, kChunk>(x, value);
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; i++)
      value[i] = c + i < p.channels ? Convert<T>::from(x[i * p.in.c]) : 0.f;
  }
#pragma unroll
  for (int i = 1; i <= kLrnHalo; i++) {
    int behind = kChunk - 1 + i;
    float low = c - i >= 0 ? Convert<T>::from(x[-i * p.in.c]) : 0.f;
    float high = c + behind < p.channels ? Convert<T>::from(x[behind * p.in.c]) : 0.f;
    square[kLrnHalo - i] = low * low, square[kLrnHalo + behind] = high * high;
  }
#pragma unroll
  for (int i = 0; i < kChunk; i++) square[kLrnHalo + i] = value[i] * value[i];
#pragma unroll
  for (int i = 0; i < kChunk; i++) {
    float sum = square[i] + square[i + 1] + square[i + 2] + square[i + 3] + square[i + 4];
    float root = rsqrtf(fmaf(p.scale, sum, p.bias)); /* d^-1/2 */
    value[i] *= root * root * rsqrtf(root);          /* d^-3/4 */
  }
  T *y = static_cast<T *>(p.y) + n * p.out.n + c * p.out.c + h * p.out.h + w * p.out.w;
  if (NHWC) {
    store_vector<T, kChunk>(y, value);
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; i++)
      if (c + i < p.channels) y[i * p.out.c] = Convert<T>::to(value[i]);
  }
}

template <bool WIDE>
static LrnParams<WIDE> lrn_params(const cs_op_desc *desc, bool nhwc, int chunk, const void *x,
                                  void *y) {
  using I = typename Index<WIDE>::type;
  const cs_lrn_attrs *lrn = &desc->attrs.lrn;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  const int64_t chunks = (out.dim[1] + chunk - 1) / chunk;
  LrnParams<WIDE> p = {};
  p.total = (I)(out.dim[0] * chunks * out.dim[2] * out.dim[3]);
  set_divisor(&p.inner[0], nhwc ? chunks : out.dim[3]);
  set_divisor(&p.inner[1], nhwc ? out.dim[3] : out.dim[2]);
  set_divisor(&p.inner[2], nhwc ? out.dim[2] : chunks);
  p.x = x, p.y = y;
  p.channels = (int)out.dim[1];
  p.before = (int)((lrn->size - 1) / 2), p.after = (int)(lrn->size / 2);
  p.scale = (float)(lrn->alpha / (double)lrn->size);
  p.beta = (float)lrn->beta, p.bias = (float)lrn->bias;
  p.in = strides_of<WIDE>(in.stride), p.out = strides_of<WIDE>(out.stride);
  return p;
}

template <typename T, bool NHWC, bool WIDE>
static cs_status launch_lrn(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  LrnParams<WIDE> params = lrn_params<WIDE>(desc, NHWC, 1, x, y);
  return launch_linear("lrn", cs_lrn_kernel<T, NHWC, WIDE>, params.total, params, stream);
}

template <typename T, bool NHWC>
static cs_status launch_lrn5(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  LrnParams<false> params = lrn_params<false>(desc, NHWC, kLrnChunk<T, NHWC>, x, y);
  return launch_linear("lrn5", cs_lrn5_kernel<T, NHWC>, params.total, params, stream);
}

static int lrn_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->output.shape.rank != 4 || desc->activation.kind != CS_ACT_NONE || desc->has_residual)
    return 0;
  add_variant(ids, capacity, &count, "cuda.lrn.v1");
  return count;
}

static cs_status lrn_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                            const void *, void *output, cudaStream_t stream) {
  const cs_tensor_desc *in = &desc->inputs[0], *out = &desc->output;
  const cs_lrn_attrs *lrn = &desc->attrs.lrn;
  bool usual = lrn->size == 2 * kLrnHalo + 1 && lrn->beta == 0.75;
  return by_dtype(out->dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int V = kVector<T>;
    if (!fits_narrow(view_of(in)) || !fits_narrow(view_of(out)))
      return launch_lrn<T, false, true>(desc, inputs[0], output, stream);
    if (usual && channels_vectorise(in, V) && channels_vectorise(out, V))
      return launch_lrn5<T, true>(desc, inputs[0], output, stream);
    if (out->layout == CS_LAYOUT_NHWC)
      return launch_lrn<T, true, false>(desc, inputs[0], output, stream);
    return usual ? launch_lrn5<T, false>(desc, inputs[0], output, stream)
                 : launch_lrn<T, false, false>(desc, inputs[0], output, stream);
  });
}

const KernelFamily cs_lrn_family = {lrn_variants, NULL, NULL, lrn_launch};

/* ---- Softmax: one pass for the largest value and the sum, rescaled as the largest grows (Milakov
 * and Gimelshein, 2018), one that writes. A row is shared by THREADS threads. ---- */

template <bool WIDE>
struct SoftmaxParams {
  using I = typename Index<WIDE>::type;
  I rows, length;
  typename Index<WIDE>::Div inner[2]; /* extents of the other axes, innermost first */
  I in_row[3], out_row[3];            /* their strides */
  I in_step, out_step;                /* along the axis */
  const void *x;
  void *y;
};

struct SoftmaxState {
  float largest, sum;
};

__device__ __forceinline__ void softmax_merge(SoftmaxState *a, float largest, float sum) {
  float both = fmaxf(a->largest, largest);
  a->sum = a->sum * expf(a->largest - both) + sum * expf(largest - both);
  a->largest = both;
}

template <int THREADS>
__device__ __forceinline__ void softmax_reduce(SoftmaxState *state) {
  if constexpr (THREADS >= 32) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) {
      float largest = __shfl_xor_sync(0xffffffffu, state->largest, lane);
      softmax_merge(state, largest, __shfl_xor_sync(0xffffffffu, state->sum, lane));
    }
  }
  if constexpr (THREADS > 32) {
    __shared__ SoftmaxState partial[THREADS / 32];
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = *state;
    __syncthreads();
    *state = partial[0];
#pragma unroll
    for (int i = 1; i < THREADS / 32; i++) softmax_merge(state, partial[i].largest, partial[i].sum);
  }
}

template <typename T, int THREADS, bool WIDE>
__global__ void cs_softmax_kernel(const __grid_constant__ SoftmaxParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I row = thread_index<I>() / THREADS;
  if (row >= p.rows) return;
  I at[3];
  I rest = divide(row, p.inner[0], &at[0]);
  at[2] = divide(rest, p.inner[1], &at[1]);
  const T *x =
      static_cast<const T *>(p.x) + at[0] * p.in_row[0] + at[1] * p.in_row[1] + at[2] * p.in_row[2];
  T *y = static_cast<T *>(p.y) + at[0] * p.out_row[0] + at[1] * p.out_row[1] + at[2] * p.out_row[2];
  I first = (I)threadIdx.x % THREADS;
  SoftmaxState state = {-3.402823466e38f, 0.f}; /* finite: −∞ − largest must not be NaN */
#pragma unroll 4
  for (I i = first; i < p.length; i += THREADS) {
    float v = Convert<T>::from(x[i * p.in_step]);
    if (v > state.largest) {
      state.sum = fmaf(state.sum, expf(state.largest - v), 1.f);
      state.largest = v;
    } else {
      state.sum += expf(v - state.largest);
    }
  }
  softmax_reduce<THREADS>(&state);
  float scale = 1.f / state.sum;
#pragma unroll 4
  for (I i = first; i < p.length; i += THREADS)
    y[i * p.out_step] =
        Convert<T>::to(expf(Convert<T>::from(x[i * p.in_step]) - state.largest) * scale);
}

template <bool WIDE>
static SoftmaxParams<WIDE> softmax_params(const cs_op_desc *desc, const void *x, void *y) {
  using I = typename Index<WIDE>::type;
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  static const int kNchw[4] = {3, 2, 1, 0}, kNhwc[4] = {1, 3, 2, 0};
  const int *order = desc->output.layout == CS_LAYOUT_NHWC ? kNhwc : kNchw;
  int axis = (int)desc->attrs.axis.axis, other = 0;
  SoftmaxParams<WIDE> p = {};
  for (int i = 0; i < 4; i++) {
    if (order[i] == axis) continue;
    if (other < 2) set_divisor(&p.inner[other], out.dim[order[i]]);
    p.in_row[other] = (I)in.stride[order[i]];
    p.out_row[other++] = (I)out.stride[order[i]];
  }
  p.length = (I)out.dim[axis];
  p.rows = (I)(view_elements(out) / out.dim[axis]);
  p.in_step = (I)in.stride[axis], p.out_step = (I)out.stride[axis];
  p.x = x, p.y = y;
  return p;
}

template <typename T, int THREADS, bool WIDE>
static cs_status launch_rows(const cs_op_desc *desc, const void *x, void *y, cudaStream_t stream) {
  SoftmaxParams<WIDE> params = softmax_params<WIDE>(desc, x, y);
  constexpr int64_t kBlock = 256;
  int64_t rows = params.rows;
  if (THREADS < kBlock)
    return launch_linear("softmax", cs_softmax_kernel<T, THREADS, WIDE>, rows * THREADS, params,
                         stream);
  return launch_kernel("softmax", cs_softmax_kernel<T, THREADS, WIDE>, dim3((unsigned)rows),
                       dim3(kBlock), params, stream);
}

static const char *const kSoftmaxIds[] = {"cuda.softmax.block.v1", "cuda.softmax.warp.v1",
                                          "cuda.softmax.thread.v1"};

static bool softmax_narrow(const cs_op_desc *desc) {
  View in = view_of(&desc->inputs[0]), out = view_of(&desc->output);
  int64_t rows = view_elements(out) / out.dim[desc->attrs.axis.axis];
  return fits_narrow(in) && fits_narrow(out) && rows * 256 < kNarrowLimit;
}

/* A thread for a row is only worth a try where neighbouring rows are adjacent in memory. */
static int softmax_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->activation.kind != CS_ACT_NONE || desc->has_residual ||
      desc->attrs.axis.axis >= desc->output.shape.rank)
    return 0;
  if (!softmax_narrow(desc)) {
    add_variant(ids, capacity, &count, kSoftmaxIds[1]);
    return count;
  }
  View out = view_of(&desc->output);
  bool adjacent = out.stride[desc->attrs.axis.axis] == 1;
  if (adjacent) add_variant(ids, capacity, &count, kSoftmaxIds[0]);
  add_variant(ids, capacity, &count, kSoftmaxIds[1]);
  if (!adjacent) add_variant(ids, capacity, &count, kSoftmaxIds[2]);
  return count;
}

static cs_status softmax_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                                const void *, void *output, cudaStream_t stream) {
  return by_dtype(desc->output.dtype, [&](auto type) {
    using T = decltype(type);
    if (!softmax_narrow(desc)) return launch_rows<T, 32, true>(desc, inputs[0], output, stream);
    if (strcmp(id, kSoftmaxIds[0]) == 0)
      return launch_rows<T, 256, false>(desc, inputs[0], output, stream);
    if (strcmp(id, kSoftmaxIds[1]) == 0)
      return launch_rows<T, 32, false>(desc, inputs[0], output, stream);
    return launch_rows<T, 1, false>(desc, inputs[0], output, stream);
  });
}

const KernelFamily cs_softmax_family = {softmax_variants, NULL, NULL, softmax_launch};
