/* Transpose and Slice: bits move, up to eight axes deep. A thread writes a vector of neighbours of
 * the output; where they are neighbours of the input too it reads them as one, else one by one. Two
 * axes that change places are the tiles of copy.cu. */
#include "backend/cuda/loop_nest.cuh"

/* Axes in the order of the output's strides, the first innermost, merged where both tensors allow.
 */
struct MoveNest {
  int rank;
  int64_t size[CS_MAX_RANK], in[CS_MAX_RANK], out[CS_MAX_RANK];
  int64_t in_offset;
};

template <bool WIDE>
struct MoveParams {
  using I = typename Index<WIDE>::type;
  I total; /* threads */
  int rank;
  typename Index<WIDE>::Div size[CS_MAX_RANK];
  I in[CS_MAX_RANK], out[CS_MAX_RANK];
  const void *from;
  void *to;
};

/* Axes over which neighbours in the output may run on. */
constexpr int kRunAxes = 3;

/* The next element within a run. */
template <bool WIDE, typename I>
__device__ __forceinline__ void step_in_run(const MoveParams<WIDE> &p, I (&at)[CS_MAX_RANK],
                                            I *offset) {
  bool carry = true;
#pragma unroll
  for (int axis = 0; axis < kRunAxes; axis++) {
    if (!carry) continue;
    I size = (I)p.size[axis].divisor;
    *offset += p.in[axis];
    carry = ++at[axis] == size;
    if (carry) at[axis] = 0, *offset -= size * p.in[axis];
  }
}

template <typename T, int V, bool GATHER, bool WIDE>
__global__ void cs_move_kernel(const __grid_constant__ MoveParams<WIDE> p) {
  begin_kernel();
  using I = typename Index<WIDE>::type;
  I index = thread_index<I>();
  if (index >= p.total) return;
  I at[CS_MAX_RANK], rest = index * V, in = 0, out = 0;
#pragma unroll
  for (int axis = 0; axis < CS_MAX_RANK; axis++) {
    at[axis] = 0;
    if (axis >= p.rank) continue;
    rest = divide(rest, p.size[axis], &at[axis]);
    in += at[axis] * p.in[axis];
    out += at[axis] * p.out[axis];
  }
  const T *from = static_cast<const T *>(p.from) + in;
  T *to = static_cast<T *>(p.to) + out;
  if constexpr (V == 1) {
    *to = *from;
  } else if constexpr (!GATHER) {
    uint32_t words[V * (int)sizeof(T) / 4];
    load_words(from, words);
    store_words(to, words);
  } else {
    T values[V];
    I offset = 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
      values[i] = from[offset];
      if (i + 1 < V) step_in_run(p, at, &offset);
    }
    uint32_t words[V * (int)sizeof(T) / 4];
    memcpy(words, values, sizeof values);
    store_words(to, words);
  }
}

/* ---- The nest ---- */

static void swap_axes(MoveNest *nest, int a, int b) {
  int64_t *arrays[] = {nest->size, nest->in, nest->out};
  for (int64_t *array : arrays) {
    int64_t kept = array[a];
    array[a] = array[b], array[b] = kept;
  }
}

static bool axes_merge(const MoveNest *nest, int inner, int outer) {
  return nest->out[outer] == nest->size[inner] * nest->out[inner] &&
         nest->in[outer] == nest->size[inner] * nest->in[inner];
}

static MoveNest collapse(const cs_movement *movement) {
  MoveNest nest = {};
  nest.in_offset = movement->in_offset;
  for (int i = movement->rank - 1; i >= 0; i--) {
    if (movement->size[i] == 1) continue;
    nest.size[nest.rank] = movement->size[i];
    nest.in[nest.rank] = movement->in_stride[i];
    nest.out[nest.rank++] = movement->out_stride[i];
  }
  for (int i = 1; i < nest.rank; i++)
    for (int j = i; j > 0 && nest.out[j] < nest.out[j - 1]; j--) swap_axes(&nest, j, j - 1);
  int merged = 0;
  for (int axis = 1; axis < nest.rank; axis++) {
    if (axes_merge(&nest, merged, axis))
      nest.size[merged] *= nest.size[axis];
    else if (++merged != axis)
      swap_axes(&nest, merged, axis);
  }
  if (nest.rank == 0) nest.size[0] = nest.in[0] = nest.out[0] = 1; /* a single element */
  nest.rank = merged + 1;
  return nest;
}

static int64_t elements_of(const MoveNest &nest) {
  int64_t elements = 1;
  for (int axis = 0; axis < nest.rank; axis++) elements *= nest.size[axis];
  return elements;
}

static bool fits(const MoveNest &nest) {
  int64_t in = 0, out = 0;
  for (int axis = 0; axis < nest.rank; axis++) {
    in += (nest.size[axis] - 1) * llabs(nest.in[axis]);
    out += (nest.size[axis] - 1) * nest.out[axis];
  }
  return elements_of(nest) < kNarrowLimit && in < kNarrowLimit && out < kNarrowLimit;
}

/* As copy.cu has nests; false: too many axes. */
static bool as_loop_nest(const MoveNest &nest, LoopNest *out) {
  *out = {};
  if (nest.rank > 4) return false;
  out->rank = nest.rank, out->n_tensors = 2;
  for (int axis = 0; axis < 4; axis++) {
    bool there = axis < nest.rank;
    out->size[axis] = there ? nest.size[axis] : 1;
    out->stride[0][axis] = there ? nest.out[axis] : 0;
    out->stride[1][axis] = there ? nest.in[axis] : 0;
  }
  return true;
}

/* ---- How wide ---- */

/* Bytes that divide the address of the input's first element. */
static int64_t from_alignment(const cs_op_desc *desc, const MoveNest &nest) {
  int64_t alignment = desc->inputs[0].alignment, size = cs_dtype_size(desc->output.dtype);
  while (nest.in_offset * size % alignment != 0) alignment /= 2;
  return alignment;
}

/* Vectors of V of the output are adjacent: they lie in runs over the first axes. */
static bool writes_vectors(const MoveNest &nest, int64_t v, int64_t bytes, int64_t alignment) {
  int64_t run = 1;
  int axis = 0;
  if (alignment < v * bytes) return false;
  for (; axis < nest.rank && axis < kRunAxes && nest.out[axis] == run; axis++)
    run *= nest.size[axis];
  if (run % v != 0) return false;
  for (; axis < nest.rank; axis++)
    if (nest.out[axis] % v != 0) return false;
  return true;
}

static bool reads_vectors(const MoveNest &nest, int64_t v, int64_t bytes, int64_t alignment) {
  if (alignment < v * bytes || nest.in[0] != 1 || nest.out[0] != 1 || nest.size[0] % v != 0)
    return false;
  for (int axis = 1; axis < nest.rank; axis++)
    if (nest.in[axis] % v != 0) return false;
  return true;
}

/* ---- Launch ---- */

template <typename T, int V, bool GATHER, bool WIDE>
static cs_status launch_move(const MoveNest &nest, const void *from, void *to,
                             cudaStream_t stream) {
  using I = typename Index<WIDE>::type;
  MoveParams<WIDE> params = {};
  params.total = (I)(elements_of(nest) / V);
  params.rank = nest.rank;
  for (int axis = 0; axis < CS_MAX_RANK; axis++) {
    bool there = axis < nest.rank;
    set_divisor(&params.size[axis], there ? nest.size[axis] : 1);
    params.in[axis] = there ? (I)nest.in[axis] : 0;
    params.out[axis] = there ? (I)nest.out[axis] : 0;
  }
  params.from = static_cast<const T *>(from) + nest.in_offset, params.to = to;
  return launch_linear("move", cs_move_kernel<T, V, GATHER, WIDE>, params.total, params, stream);
}

/* The widest vectors that are read and written as such, else those that are written. */
template <typename T, int V>
static cs_status launch_widest(const cs_op_desc *desc, const MoveNest &nest, bool gather,
                               const void *from, void *to, cudaStream_t stream) {
  if constexpr (V == 1) {
    if (!gather) return launch_widest<T, kVector<T>>(desc, nest, true, from, to, stream);
    return launch_move<T, 1, false, false>(nest, from, to, stream);
  } else {
    bool fit = writes_vectors(nest, V, sizeof(T), desc->output.alignment);
    if (fit && gather) return launch_move<T, V, true, false>(nest, from, to, stream);
    if (fit && reads_vectors(nest, V, sizeof(T), from_alignment(desc, nest)))
      return launch_move<T, V, false, false>(nest, from, to, stream);
    return launch_widest<T, V / 2>(desc, nest, gather, from, to, stream);
  }
}

template <typename T>
static cs_status launch_bits(const cs_op_desc *desc, const MoveNest &nest, const void *from,
                             void *to, cudaStream_t stream) {
  if (!fits(nest)) return launch_move<T, 1, false, true>(nest, from, to, stream);
  return launch_widest<T, kVector<T>>(desc, nest, false, from, to, stream);
}

static const char kTiles[] = "cuda.transpose_tiles.v1";

static int move_variants(const cs_op_desc *desc, const char **ids, int capacity) {
  cs_movement movement;
  LoopNest tiles;
  int count = 0;
  if (desc->activation.kind != CS_ACT_NONE || desc->has_residual || desc->n_inputs != 1) return 0;
  if (!cs_op_movement(desc, &movement)) return 0;
  bool slice = desc->op == CS_OP_SLICE;
  add_variant(ids, capacity, &count, slice ? "cuda.slice.v1" : "cuda.transpose.v1");
  if (!slice && as_loop_nest(collapse(&movement), &tiles) && nest_transposes(&tiles))
    add_variant(ids, capacity, &count, kTiles);
  return count;
}

static cs_status move_launch(const cs_op_desc *desc, const char *id, const void *const *inputs,
                             const void *, void *output, cudaStream_t stream) {
  cs_movement movement;
  LoopNest tiles;
  if (!cs_op_movement(desc, &movement))
    return cs_error(CS_CODE_INTERNAL, "%s: no loop nest", cs_op_name(desc->op));
  MoveNest nest = collapse(&movement);
  if (strcmp(id, kTiles) == 0 && as_loop_nest(nest, &tiles))
    return nest_transpose_launch(&tiles, desc->output.dtype, desc->inputs[0].alignment, inputs[0],
                                 desc->output.alignment, output, stream);
  if (cs_dtype_size(desc->output.dtype) == 4)
    return launch_bits<uint32_t>(desc, nest, inputs[0], output, stream);
  return launch_bits<uint16_t>(desc, nest, inputs[0], output, stream);
}

const KernelFamily cs_move_family = {move_variants, NULL, NULL, move_launch};
