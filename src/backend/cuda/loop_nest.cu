#include "backend/cuda/loop_nest.cuh"

LoopNest nest_begin(const View &output) {
  LoopNest nest = {};
  nest.rank = 4;
  nest.n_tensors = 1;
  for (int axis = 0; axis < 4; axis++) {
    nest.size[axis] = output.dim[axis];
    nest.stride[0][axis] = output.stride[axis];
  }
  return nest;
}

void nest_add(LoopNest *nest, const View &view) {
  int t = nest->n_tensors++;
  for (int axis = 0; axis < 4; axis++)
    nest->stride[t][axis] = view.dim[axis] == 1 ? 0 : view.stride[axis];
}

void nest_add_channels(LoopNest *nest) {
  int t = nest->n_tensors++;
  for (int axis = 0; axis < 4; axis++) nest->stride[t][axis] = axis == 1;
}

static void swap_axes(LoopNest *nest, int a, int b) {
  int64_t size = nest->size[a];
  nest->size[a] = nest->size[b];
  nest->size[b] = size;
  for (int t = 0; t < nest->n_tensors; t++) {
    int64_t stride = nest->stride[t][a];
    nest->stride[t][a] = nest->stride[t][b];
    nest->stride[t][b] = stride;
  }
}

static bool axes_merge(const LoopNest *nest, int inner, int outer) {
  for (int t = 0; t < nest->n_tensors; t++)
    if (nest->stride[t][outer] != nest->size[inner] * nest->stride[t][inner]) return false;
  return true;
}

static void copy_axis(LoopNest *nest, int from, int to) {
  nest->size[to] = nest->size[from];
  for (int t = 0; t < nest->n_tensors; t++) nest->stride[t][to] = nest->stride[t][from];
}

void nest_collapse(LoopNest *nest) {
  int rank = 0;
  for (int axis = 0; axis < 4; axis++)
    if (nest->size[axis] != 1) copy_axis(nest, axis, rank++);
  for (int i = 1; i < rank; i++)
    for (int j = i; j > 0 && nest->stride[0][j] < nest->stride[0][j - 1]; j--)
      swap_axes(nest, j, j - 1);
  int merged = 0;
  for (int axis = 1; axis < rank; axis++) {
    if (axes_merge(nest, merged, axis))
      nest->size[merged] *= nest->size[axis];
    else
      copy_axis(nest, axis, ++merged);
  }
  if (rank == 0) { /* a single element */
    nest->size[0] = 1;
    for (int t = 0; t < nest->n_tensors; t++) nest->stride[t][0] = 1;
  }
  nest->rank = merged + 1;
  for (int axis = nest->rank; axis < 4; axis++) {
    nest->size[axis] = 1;
    for (int t = 0; t < nest->n_tensors; t++) nest->stride[t][axis] = 0;
  }
}

int64_t nest_elements(const LoopNest *nest) {
  return nest->size[0] * nest->size[1] * nest->size[2] * nest->size[3];
}

bool nest_fits_narrow(const LoopNest *nest) {
  if (nest_elements(nest) >= kNarrowLimit) return false;
  for (int t = 0; t < nest->n_tensors; t++) {
    int64_t last = 0;
    for (int axis = 0; axis < 4; axis++)
      last += (nest->size[axis] - 1) * llabs(nest->stride[t][axis]);
    if (last >= kNarrowLimit) return false;
  }
  return true;
}

bool nest_vectorises(const LoopNest *nest, int tensor, int width, int64_t alignment,
                     int64_t element_bytes) {
  const int64_t *stride = nest->stride[tensor];
  if (stride[0] != 1 || nest->size[0] % width != 0) return false;
  if (alignment < cs_min_i64(width * element_bytes, 16)) return false;
  for (int axis = 1; axis < nest->rank; axis++)
    if (stride[axis] % width != 0) return false;
  return true;
}
