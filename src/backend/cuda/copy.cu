/* Copy: any desc to any desc of the same shape. Three ways: vectors where both sides are adjacent,
 * shared-memory tiles where the adjacent axes differ (NCHW <-> NHWC), element by element else. */
#include "backend/cuda/loop_nest.cuh"

/* One or two elements at a time, unconverted when the types are equal (NaN payloads survive). */
template <typename FROM, typename TO, int V>
__device__ __forceinline__ void copy_vector(const FROM *from, TO *to) {
  if constexpr (sizeof(FROM) == sizeof(TO) && V > 1 && std::is_same<FROM, TO>::value) {
    uint32_t words[V * (int)sizeof(FROM) / 4];
    load_words(from, words);
    store_words(to, words);
  } else if constexpr (std::is_same<FROM, TO>::value) {
    *to = *from;
  } else {
    float values[V];
    load_vector<FROM, V>(from, values);
    store_vector<TO, V>(to, values);
  }
}

template <bool WIDE>
struct CopyParams {
  NestParams<WIDE> nest; /* to, from */
  const void *from;
  void *to;
};

template <typename FROM, typename TO, int V, bool WIDE>
__global__ void cs_copy_kernel(const __grid_constant__ CopyParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.nest.total) return;
  I offset[2];
  nest_offsets(p.nest, index, offset);
  copy_vector<FROM, TO, V>(static_cast<const FROM *>(p.from) + offset[1],
                           static_cast<TO *>(p.to) + offset[0]);
}

/* Axis a is adjacent in `from`, axis b in `to`; what remains is a batch of one or two axes. */
struct TransposeParams {
  const void *from;
  void *to;
  int32_t size_a, size_b;
  FastDiv tiles_a, tiles_b, inner_batch;
  int32_t from_b, to_a; /* the strides that are not 1 */
  int32_t from_batch[2], to_batch[2];
};

/* Tiles of 32·V × 32·V, each thread moving V neighbours at a time on both sides. */
template <typename FROM, typename TO, int V>
__global__ void __launch_bounds__(256)
    cs_transpose_kernel(const __grid_constant__ TransposeParams p) {
  begin_kernel();
  constexpr int kTile = 32 * V;
  __shared__ TO tile[kTile][kTile + 1];
  int32_t tile_a, tile_b, inner;
  int32_t rest = divide((int32_t)blockIdx.x, p.tiles_a, &tile_a);
  rest = divide(rest, p.tiles_b, &tile_b);
  int32_t outer = divide(rest, p.inner_batch, &inner);
  const FROM *from =
      static_cast<const FROM *>(p.from) + inner * p.from_batch[0] + outer * p.from_batch[1];
  TO *to = static_cast<TO *>(p.to) + inner * p.to_batch[0] + outer * p.to_batch[1];
  int lane = (int)threadIdx.x % 32 * V, row = (int)threadIdx.x / 32;
  int32_t a = tile_a * kTile + lane;
  if (a < p.size_a) {
#pragma unroll
    for (int i = 0; i < kTile / 8; i++) {
      int32_t b = tile_b * kTile + row + 8 * i;
      float values[V];
      if (b < p.size_b) {
        load_vector<FROM, V>(from + a + b * p.from_b, values);
#pragma unroll
        for (int j = 0; j < V; j++) tile[row + 8 * i][lane + j] = Convert<TO>::to(values[j]);
      }
    }
  }
  __syncthreads();
  int32_t b = tile_b * kTile + lane;
  if (b < p.size_b) {
#pragma unroll
    for (int i = 0; i < kTile / 8; i++) {
      a = tile_a * kTile + row + 8 * i;
      float values[V];
#pragma unroll
      for (int j = 0; j < V; j++) values[j] = Convert<TO>::from(tile[lane + j][row + 8 * i]);
      if (a < p.size_a) store_vector<TO, V>(to + b + a * p.to_a, values);
    }
  }
}

/* The axis adjacent in tensor t, or -1. */
static int adjacent_axis(const LoopNest *nest, int t) {
  for (int axis = 0; axis < nest->rank; axis++)
    if (nest->stride[t][axis] == 1) return axis;
  return -1;
}

/* Shorter axes leave too much of a tile empty. */
#define CS_TILE_MIN 12

/* Axes a and b of a transpose in tiles. */
static bool tile_axes(const LoopNest *nest, int *a, int *b) {
  *a = adjacent_axis(nest, 1), *b = adjacent_axis(nest, 0);
  return *a >= 0 && *b >= 0 && *a != *b && nest->size[*a] >= CS_TILE_MIN &&
         nest->size[*b] >= CS_TILE_MIN;
}

bool nest_transposes(const LoopNest *nest) {
  int a, b;
  return nest_fits_narrow(nest) && tile_axes(nest, &a, &b);
}

static TransposeParams transpose_params(const LoopNest *nest, int a, int b, int tile) {
  TransposeParams params = {};
  params.size_a = (int32_t)nest->size[a], params.size_b = (int32_t)nest->size[b];
  set_divisor(&params.tiles_a, (nest->size[a] + tile - 1) / tile);
  set_divisor(&params.tiles_b, (nest->size[b] + tile - 1) / tile);
  params.from_b = (int32_t)nest->stride[1][b], params.to_a = (int32_t)nest->stride[0][a];
  int batch = 0;
  int64_t batch_size[2] = {1, 1};
  for (int axis = 0; axis < 4; axis++) {
    if (axis == a || axis == b) continue;
    batch_size[batch] = nest->size[axis];
    params.from_batch[batch] = (int32_t)nest->stride[1][axis];
    params.to_batch[batch++] = (int32_t)nest->stride[0][axis];
  }
  set_divisor(&params.inner_batch, batch_size[0]);
  return params;
}

static int64_t transpose_blocks(const LoopNest *nest, int a, int b, int tile) {
  int64_t size_a = nest->size[a], size_b = nest->size[b];
  int64_t tiles = ((size_a + tile - 1) / tile) * ((size_b + tile - 1) / tile);
  return tiles * (nest_elements(nest) / (size_a * size_b));
}

/* Pairs can be moved along axis `along` of tensor t. */
static bool pairs(const LoopNest *nest, int t, int along, int64_t alignment, int64_t bytes) {
  if (nest->size[along] % 2 != 0 || alignment < 2 * bytes) return false;
  for (int axis = 0; axis < nest->rank; axis++)
    if (axis != along && nest->stride[t][axis] % 2 != 0) return false;
  return true;
}

template <typename FROM, typename TO>
static cs_status launch_transpose(const LoopNest *nest, int64_t from_alignment, const void *from,
                                  int64_t to_alignment, void *to, cudaStream_t stream) {
  /* The larger tiles only where they still fill the device (about two blocks for each of 132 SMs).
   */
  int a, b;
  (void)tile_axes(nest, &a, &b);
  bool wide = pairs(nest, 1, a, from_alignment, sizeof(FROM)) &&
              pairs(nest, 0, b, to_alignment, sizeof(TO)) &&
              transpose_blocks(nest, a, b, 64) >= 264;
  TransposeParams params = transpose_params(nest, a, b, wide ? 64 : 32);
  params.from = from, params.to = to;
  dim3 grid((unsigned)transpose_blocks(nest, a, b, wide ? 64 : 32));
  return wide ? launch_kernel("transpose", cs_transpose_kernel<FROM, TO, 2>, grid, dim3(256),
                              params, stream)
              : launch_kernel("transpose", cs_transpose_kernel<FROM, TO, 1>, grid, dim3(256),
                              params, stream);
}

cs_status nest_transpose_launch(const LoopNest *nest, cs_dtype dtype, int64_t from_alignment,
                                const void *from, int64_t to_alignment, void *to,
                                cudaStream_t stream) {
  return by_dtype(dtype, [&](auto type) {
    using T = decltype(type);
    return launch_transpose<T, T>(nest, from_alignment, from, to_alignment, to, stream);
  });
}

template <typename FROM, typename TO, int V, bool WIDE>
static cs_status launch_nest(const LoopNest *nest, const void *from, void *to,
                             cudaStream_t stream) {
  CopyParams<WIDE> params = {nest_params<WIDE>(nest, V), from, to};
  return launch_linear("copy", cs_copy_kernel<FROM, TO, V, WIDE>, params.nest.total, params,
                       stream);
}

cs_status cs_cuda_copy_launch(const cs_tensor_desc *from_desc, const void *from,
                              const cs_tensor_desc *to_desc, void *to, cudaStream_t stream) {
  LoopNest nest = nest_begin(view_of(to_desc));
  nest_add(&nest, view_of(from_desc));
  nest_collapse(&nest);
  if (nest_elements(&nest) == 0) return CS_OK;
  return by_dtype(from_desc->dtype, [&](auto from_type) {
    return by_dtype(to_desc->dtype, [&](auto to_type) {
      using From = decltype(from_type);
      using To = decltype(to_type);
      constexpr int V = kVector<From> < kVector<To> ? kVector<From> : kVector<To>;
      if (!nest_fits_narrow(&nest)) return launch_nest<From, To, 1, true>(&nest, from, to, stream);
      if (nest_transposes(&nest))
        return launch_transpose<From, To>(&nest, from_desc->alignment, from, to_desc->alignment, to,
                                          stream);
      if (nest_vectorises(&nest, 0, V, to_desc->alignment, sizeof(To)) &&
          nest_vectorises(&nest, 1, V, from_desc->alignment, sizeof(From)))
        return launch_nest<From, To, V, false>(&nest, from, to, stream);
      return launch_nest<From, To, 1, false>(&nest, from, to, stream);
    });
  });
}

static int copy_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  int count = 0;
  if (desc->activation.kind != CS_ACT_NONE || desc->has_residual || desc->n_inputs != 1) return 0;
  add_variant(ids, capacity, &count, "cuda.copy.v1");
  return count;
}

static cs_status copy_launch(const cs_op_desc *desc, const char *, const void *const *inputs,
                             const void *, void *output, cudaStream_t stream) {
  return cs_cuda_copy_launch(&desc->inputs[0], inputs[0], &desc->output, output, stream);
}

const KernelFamily cs_copy_family = {copy_variants, NULL, NULL, copy_launch};
