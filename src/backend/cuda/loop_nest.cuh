/* A loop nest over tensors of one shape: the axes ordered by the output's strides and merged where
 * every tensor allows, so that dense views of any layout become one long loop. */
#ifndef CONVSCHED_BACKEND_CUDA_LOOP_NEST_CUH_
#define CONVSCHED_BACKEND_CUDA_LOOP_NEST_CUH_

#include "backend/cuda/kernel_util.cuh"

#define CS_NEST_TENSORS 4

/* Axis 0 is innermost. Tensor 0 is the output. */
struct LoopNest {
  int rank, n_tensors;
  int64_t size[4];
  int64_t stride[CS_NEST_TENSORS][4];
};

LoopNest nest_begin(const View &output);
/* A tensor of the nest's shape, or one that broadcasts (extent 1) along some axes. */
void nest_add(LoopNest *nest, const View &view);
/* A [C] array. */
void nest_add_channels(LoopNest *nest);
void nest_collapse(LoopNest *nest);
int64_t nest_elements(const LoopNest *nest);
bool nest_fits_narrow(const LoopNest *nest);
/* Axis 0 is adjacent in tensor t and everything else a multiple of `width`. */
bool nest_vectorises(const LoopNest *nest, int tensor, int width, int64_t alignment,
                     int64_t element_bytes);

/* Whether a copy from tensor 1 to tensor 0 is a transpose in tiles (copy.cu): two axes, of which
 * each is adjacent in one of them. */
bool nest_transposes(const LoopNest *nest);
cs_status nest_transpose_launch(const LoopNest *nest, cs_dtype dtype, int64_t from_alignment,
                                const void *from, int64_t to_alignment, void *to,
                                cudaStream_t stream);

template <bool WIDE>
struct NestParams {
  using I = typename Index<WIDE>::type;
  I total; /* threads */
  int rank;
  typename Index<WIDE>::Div size[3];
  I stride[CS_NEST_TENSORS][4]; /* axis 0 in vectors */
};

template <bool WIDE>
inline NestParams<WIDE> nest_params(const LoopNest *nest, int width) {
  using I = typename Index<WIDE>::type;
  NestParams<WIDE> params = {};
  params.total = (I)(nest_elements(nest) / width);
  params.rank = nest->rank;
  for (int axis = 0; axis < 3; axis++)
    set_divisor(&params.size[axis], axis == 0 ? nest->size[0] / width : nest->size[axis]);
  for (int t = 0; t < nest->n_tensors; t++)
    for (int axis = 0; axis < 4; axis++)
      params.stride[t][axis] = (I)(axis == 0 ? nest->stride[t][0] * width : nest->stride[t][axis]);
  return params;
}

/* Element offsets of thread `index` in the first TENSORS tensors. */
template <int TENSORS, bool WIDE, typename I>
__device__ __forceinline__ void nest_offsets(const NestParams<WIDE> &params, I index,
                                             I (&offset)[TENSORS]) {
  I at[4] = {index, 0, 0, 0};
  if (params.rank > 1) at[1] = divide(index, params.size[0], &at[0]);
  if (params.rank > 2) at[2] = divide(at[1], params.size[1], &at[1]);
  if (params.rank > 3) at[3] = divide(at[2], params.size[2], &at[2]);
#pragma unroll
  for (int t = 0; t < TENSORS; t++)
    offset[t] = at[0] * params.stride[t][0] + at[1] * params.stride[t][1] +
                at[2] * params.stride[t][2] + at[3] * params.stride[t][3];
}

#endif
