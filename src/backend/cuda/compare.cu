/* An output against a reference that is kept as row-major doubles: sums of the error, and whether
 * what lies between the elements of a view was left alone. */
#include "backend/cuda/reference.cuh"

/* ---- The elements ---- */

struct CompareParams {
  RefTensor out;
  const double *value, *magnitude;
  int64_t total;
  cs_error_sums *sums; /* one a block */
  cs_cuda_compared *result;
};

/* A thread takes every (threads of the grid)th element. Takes back what the kernel of the gaps said
 * of the output before this one. */
__global__ void cs_compare_kernel(const __grid_constant__ CompareParams p) {
  int64_t step = (int64_t)gridDim.x * blockDim.x, at[4];
  cs_error_sums sums = cs_no_error();
  for (int64_t index = thread_index<int64_t>(); index < p.total; index += step) {
    ref_place(p.out.dim, index, at);
    cs_error_add(&sums, ref_load(p.out, at[0], at[1], at[2], at[3]), p.value[index],
                 p.magnitude[index]);
  }
  block_errors(&sums);
  if (threadIdx.x != 0) return;
  p.sums[blockIdx.x] = sums;
  if (blockIdx.x == 0) p.result->gaps_written = 0;
}

struct MergeParams {
  const cs_error_sums *sums;
  int n;
  cs_cuda_compared *result;
};

/* One block. */
__global__ void cs_compare_merge_kernel(const __grid_constant__ MergeParams p) {
  cs_error_sums sums = cs_no_error();
  for (int i = (int)threadIdx.x; i < p.n; i += (int)blockDim.x) cs_error_merge(&sums, &p.sums[i]);
  block_errors(&sums);
  if (threadIdx.x == 0) p.result->sums = sums;
}

/* ---- What lies between them ---- */

struct GapParams {
  const void *data;
  int64_t slots;             /* elements that the span has room for */
  int64_t dim[4], stride[4]; /* as they lie in memory, outermost first */
  uint32_t gap;              /* what every byte between the elements is, four times */
  int *written;
};

/* Whether there is an element of the view in this slot. */
__device__ __forceinline__ bool gap_is_element(const GapParams &p, int64_t slot) {
#pragma unroll
  for (int axis = 0; axis < 4; axis++) {
    int64_t index = slot / p.stride[axis];
    if (index >= p.dim[axis]) return false;
    slot -= index * p.stride[axis];
  }
  return slot == 0;
}

/* T: an unsigned integer of the element's size. */
template <typename T>
__global__ void cs_compare_gaps_kernel(const __grid_constant__ GapParams p) {
  const T *data = static_cast<const T *>(p.data);
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  bool written = false;
  for (int64_t slot = thread_index<int64_t>(); slot < p.slots; slot += step)
    written = written || (data[slot] != (T)p.gap && !gap_is_element(p, slot));
  if (__syncthreads_or(written) && threadIdx.x == 0) atomicOr(p.written, 1);
}

/* ---- Launch ---- */

static int64_t grid_of(int64_t threads) {
  int64_t block = block_size(threads);
  return cs_min_i64((threads + block - 1) / block, CS_CUDA_COMPARE_SUMS);
}

/* Axes in the order in which they lie in memory; those of extent 1, whose stride says nothing, pass
 * a slot on. INTERNAL: an axis is no longer than what it steps over, so elements share memory. */
static cs_status gap_params(const cs_tensor_desc *desc, const void *output, GapParams *p) {
  static const int orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
  const int *order = orders[desc->layout == CS_LAYOUT_NHWC];
  View view = view_of(desc);
  int64_t last = 0;
  p->data = output;
  p->slots = view_last(view) + 1;
  for (int i = 3; i >= 0; i--) {
    int64_t dim = view.dim[order[i]], stride = view.stride[order[i]];
    p->dim[i] = dim;
    p->stride[i] = dim > 1 ? stride : p->slots;
    if (dim == 1) continue;
    if (stride <= last)
      return cs_error(CS_CODE_INTERNAL,
                      "comparing an output: found a stride of %lld elements over %lld of them",
                      (long long)stride, (long long)last + 1);
    last += (dim - 1) * stride;
  }
  return CS_OK;
}

static cs_status launch_gaps(const cs_tensor_desc *desc, const void *output, int gap_byte,
                             cs_cuda_compared *result, cudaStream_t stream) {
  GapParams p = {};
  CS_RETURN_IF_ERROR(gap_params(desc, output, &p));
  p.gap = (uint32_t)(gap_byte & 0xFF) * 0x01010101u;
  p.written = &result->gaps_written;
  return launch_kernel("compare_gaps",
                       cs_dtype_size(desc->dtype) == 4 ? cs_compare_gaps_kernel<uint32_t>
                                                       : cs_compare_gaps_kernel<uint16_t>,
                       dim3((unsigned)grid_of(p.slots)), dim3(block_size(p.slots)), p, stream);
}

cs_status cs_cuda_compare_launch(const cs_tensor_desc *desc, const void *output,
                                 const double *value, const double *magnitude, int gap_byte,
                                 cs_error_sums *scratch, cs_cuda_compared *result,
                                 cudaStream_t stream) {
  View view = view_of(desc);
  CompareParams p = {};
  p.out = ref_tensor(desc, output);
  p.value = value, p.magnitude = magnitude;
  p.total = view_elements(view);
  p.sums = scratch, p.result = result;
  /* A block even of nothing, so that the result is written. */
  unsigned blocks = (unsigned)cs_max_i64(grid_of(p.total), 1);
  CS_RETURN_IF_ERROR(launch_kernel("compare", cs_compare_kernel, dim3(blocks),
                                   dim3(block_size(p.total)), p, stream));
  if (view_last(view) + 1 > p.total)
    CS_RETURN_IF_ERROR(launch_gaps(desc, output, gap_byte, result, stream));
  MergeParams merge = {scratch, (int)blocks, result};
  return launch_kernel("compare_merge", cs_compare_merge_kernel, dim3(1), dim3(256), merge, stream);
}
