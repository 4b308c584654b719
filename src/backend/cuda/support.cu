/* What the kernel files share on the host, and the kernels that measuring needs. */
#include "backend/cuda/kernel_util.cuh"

View view_of(const cs_tensor_desc *desc) {
  View view;
  for (int axis = 0; axis < 4; axis++) {
    bool there = axis < desc->shape.rank;
    view.dim[axis] = there ? desc->shape.dims[axis] : 1;
    view.stride[axis] = there ? desc->strides[axis] : 0;
  }
  return view;
}

int64_t view_elements(const View &view) {
  return view.dim[0] * view.dim[1] * view.dim[2] * view.dim[3];
}

int64_t view_last(const View &view) {
  int64_t last = 0;
  for (int axis = 0; axis < 4; axis++) last += (view.dim[axis] - 1) * view.stride[axis];
  return last;
}

bool channels_vectorise(const cs_tensor_desc *desc, int width) {
  View view = view_of(desc);
  int64_t bytes = cs_min_i64(width * cs_dtype_size(desc->dtype), 16);
  if (view.stride[1] != 1 || view.dim[1] % width != 0 || desc->alignment < bytes) return false;
  for (int axis = 0; axis < 4; axis++)
    if (axis != 1 && view.dim[axis] > 1 && view.stride[axis] % width != 0) return false;
  return true;
}

static bool plain_tensor(const cs_tensor_desc *desc) {
  if (desc->shape.rank < 1 || desc->shape.rank > 4) return false;
  if (desc->layout != CS_LAYOUT_NCHW && desc->layout != CS_LAYOUT_NHWC) return false;
  for (int axis = 0; axis < desc->shape.rank; axis++)
    if (desc->shape.dims[axis] < 0 || desc->strides[axis] < 0) return false;
  return true;
}

bool plain_tensors(const cs_op_desc *desc) {
  if (!plain_tensor(&desc->output)) return false;
  for (int i = 0; i < desc->n_inputs; i++) {
    if (!plain_tensor(&desc->inputs[i])) return false;
    if (desc->op != CS_OP_COPY && desc->inputs[i].dtype != desc->output.dtype) return false;
  }
  return true;
}

void put_rounded(cs_dtype dtype, void *to, int64_t index, float value) {
  if (dtype == CS_DTYPE_F32)
    static_cast<float *>(to)[index] = value;
  else
    static_cast<uint16_t *>(to)[index] =
        dtype == CS_DTYPE_F16 ? cs_f32_to_f16(value) : cs_f32_to_bf16(value);
}

/* 264: two blocks for each of the 132 SMs of the largest device known. */
int device_capability() {
  int device, major, minor;
  bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
  if (!known) (void)cudaGetLastError(); /* there is no device */
  return known ? major * 10 + minor : 0;
}

unsigned block_size(int64_t threads) {
  unsigned block = 256;
  while (block > 64 && threads / block < 264) block /= 2;
  return block;
}

cs_status launch_error(const char *name, cudaError_t error) {
  (void)cudaGetLastError(); /* the next launch must not report this one */
  return cs_error(CS_CODE_DEVICE, "kernel %s: %s", name, cudaGetErrorString(error));
}

/* ---- Spinning and steady work ---- */

struct SpinParams {
  uint64_t nanoseconds;
};

static __device__ __forceinline__ uint64_t global_nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void cs_spin_kernel(const __grid_constant__ SpinParams p) {
  uint64_t start = global_nanoseconds();
  while (global_nanoseconds() - start < p.nanoseconds) {
  }
}

cs_status cs_cuda_spin_launch(double us, cudaStream_t stream) {
  SpinParams params = {us > 0 ? (uint64_t)(us * 1e3) : 0};
  return launch_kernel("spin", cs_spin_kernel, dim3(1), dim3(1), params, stream);
}

struct WorkParams {
  float *scratch;
  float factor;
};

/* Four chains of multiply-adds in each of two warps a scheduler: 2 · 4 · 4960 issue slots, 20 µs at
 * 1.98 GHz. */
__global__ void __launch_bounds__(256)
    cs_reference_work_kernel(const __grid_constant__ WorkParams p) {
  float a = (float)threadIdx.x, b = a + 1.f, c = a + 2.f, d = a + 3.f;
#pragma unroll 16
  for (int i = 0; i < 4960; i++) {
    a = fmaf(a, p.factor, 1.f);
    b = fmaf(b, p.factor, 1.f);
    c = fmaf(c, p.factor, 1.f);
    d = fmaf(d, p.factor, 1.f);
  }
  /* Never true (the chains stay finite), so nothing is written, yet nothing can be left out. */
  if (isnan(a + b + c + d)) *p.scratch = a;
}

cs_status cs_cuda_reference_work_launch(float *scratch, cudaStream_t stream) {
  WorkParams params = {scratch, 0.5f};
  return launch_kernel("reference_work", cs_reference_work_kernel, dim3(132), dim3(256), params,
                       stream);
}
