/* Our own GPU kernels, callable from C. Every launcher is asynchronous on `stream`, allocates
 * nothing, and returns DEVICE errors of the launch itself. All pointers are device memory. */
#ifndef CONVSCHED_BACKEND_CUDA_KERNELS_H_
#define CONVSCHED_BACKEND_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include "backend/error_measure.h"
#include "graph/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Variants of own kernels for an operation: writes up to `capacity` stable ids ("cuda.maxpool.v1",
 * …; static strings) and returns how many there are; 0: none. Covers every operation that reaches a
 * backend, any strides, NCHW and NHWC, f32/f16/bf16 (arithmetic in f32) — Conv, ConvTranspose and
 * Gemm included (direct forms: the last resort, always admissible). */
#define CS_CUDA_VARIANTS_MOST 48
int cs_cuda_kernel_variants(const cs_op_desc *desc, const char **ids, int capacity);
/* The same of kernels that are there to be compared with; not among the variants. */
int cs_cuda_kernel_baselines(const cs_op_desc *desc, const char **ids, int capacity);
/* A variant, found once for an operation; both members are static. */
typedef struct cs_cuda_kernel {
  const struct KernelFamily *family;
  const char *id;
} cs_cuda_kernel;
/* BAD_INPUT: the operation has no such variant. */
cs_status cs_cuda_kernel_find(const cs_op_desc *desc, const char *id,
                              cs_cuda_kernel *out) CS_MUST_USE;
/* Of a variant of this operation. Bytes of packed weights it wants; and packing: weight and bias
 * (f32, PyTorch shapes, NULL where there is none) into host memory. */
int64_t cs_cuda_kernel_weight_bytes(const cs_cuda_kernel *kernel, const cs_op_desc *desc);
cs_status cs_cuda_kernel_pack_weights(const cs_cuda_kernel *kernel, const cs_op_desc *desc,
                                      const float *weight, const float *bias,
                                      void *host_out) CS_MUST_USE;
cs_status cs_cuda_kernel_launch(const cs_cuda_kernel *kernel, const cs_op_desc *desc,
                                const void *const *inputs, const void *weights, void *output,
                                cudaStream_t stream) CS_MUST_USE;

/* Whether the operation has a prologue, and a kernel that is meant for it. */
bool cs_cuda_kernel_takes_prologue(const cs_op_desc *desc);

/* Operations that one launch computes side by side; none reads what another writes. */
#define CS_CUDA_MERGE_MOST 8
typedef struct cs_cuda_merge_part {
  const cs_op_desc *desc;
  const void *const *inputs;
  const void *weights; /* as packed for the kernel */
  void *output;
} cs_cuda_merge_part;
/* Whether a launch of this kernel takes several operations (of one dtype, each of which has the
 * kernel among its variants). */
bool cs_cuda_kernel_merges(const char *id);
/* BAD_INPUT: it does not, or more than CS_CUDA_MERGE_MOST. */
cs_status cs_cuda_kernel_launch_merged(const cs_cuda_merge_part *parts, int n, const char *id,
                                       cudaStream_t stream) CS_MUST_USE;

/* y = act(x + bias[c] + residual), the unfused half of a convolution: y as desc->output says, x of
 * the same shape and dtype as x_desc says (x may be y itself). `bias` f32 [C] or NULL; `residual`
 * shaped and strided as desc->inputs[n_inputs − 1] or NULL. */
cs_status cs_cuda_epilogue_launch(const cs_op_desc *desc, const cs_tensor_desc *x_desc,
                                  const void *x, const float *bias, const void *residual, void *y,
                                  cudaStream_t stream) CS_MUST_USE;

/* 8-bit pixels N×H×W×C of a tensor N×C×H×W with one channel or three (graph/pixels.h). */
cs_status cs_cuda_pixels_launch(const cs_tensor_desc *desc, const void *tensor, uint8_t *out,
                                cudaStream_t stream) CS_MUST_USE;

/* Logical copy between any two descs of equal shape (layout, strides, dtype differ): f32 row-major
 * import and export are cases of it. Lanes that pad a blocked layout do not occur on the GPU. */
cs_status cs_cuda_copy_launch(const cs_tensor_desc *from_desc, const void *from,
                              const cs_tensor_desc *to_desc, void *to,
                              cudaStream_t stream) CS_MUST_USE;

/* The double twin of the plain C reference: same loops, double accumulation, one thread per output
 * element. Inputs are the device's own tensors (desc->inputs), weight and bias f32 device arrays in
 * PyTorch shapes; value and magnitude are row-major double device arrays. */
cs_status cs_cuda_reference_launch(const cs_op_desc *desc, const void *const *inputs,
                                   const float *weight, const float *bias, double *value,
                                   double *magnitude, cudaStream_t stream) CS_MUST_USE;
/* The same compared at once with `output`, as desc->output says: one sum for each block, over
 * elements that depend on their number alone. Writes *n_sums of `sums`, at most CS_CUDA_ERROR_SUMS.
 */
#define CS_CUDA_ERROR_SUMS 8192
cs_status cs_cuda_reference_error_launch(const cs_op_desc *desc, const void *const *inputs,
                                         const float *weight, const float *bias, const void *output,
                                         cs_error_sums *sums, int *n_sums,
                                         cudaStream_t stream) CS_MUST_USE;

/* A comparison as it lies on the device. */
typedef struct cs_cuda_compared {
  cs_error_sums sums;
  int gaps_written; /* 1: a byte between the elements is not as it was */
} cs_cuda_compared;
/* Compares `output`, NCHW or NHWC as desc says, with a reference's row-major value and magnitude,
 * and every byte between its elements with gap_byte. The same bits every time. `scratch`:
 * CS_CUDA_COMPARE_SUMS. INTERNAL: a view whose elements overlap. */
#define CS_CUDA_COMPARE_SUMS 1024
cs_status cs_cuda_compare_launch(const cs_tensor_desc *desc, const void *output,
                                 const double *value, const double *magnitude, int gap_byte,
                                 cs_error_sums *scratch, cs_cuda_compared *result,
                                 cudaStream_t stream) CS_MUST_USE;

/* Keeps the device busy for about `us` microseconds (one block, spinning on the global timer). */
cs_status cs_cuda_spin_launch(double us, cudaStream_t stream) CS_MUST_USE;
/* A fixed, arithmetic-bound kernel of about 20 µs on an H100, for noticing clock drift. */
cs_status cs_cuda_reference_work_launch(float *scratch, cudaStream_t stream) CS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
