#include <inttypes.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"

cs_status cs_cuda_allocate(cs_backend *backend, int64_t bytes, void **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cudaError_t result = cudaMalloc(out, (size_t)cs_max_i64(bytes, 1));
  if (result == cudaSuccess) return CS_OK;
  *out = NULL;
  if (result != cudaErrorMemoryAllocation) {
    return cs_cuda_status(result, "allocating %" PRId64 " bytes of device memory", bytes);
  }
  (void)cudaGetLastError();
  size_t free_bytes = 0, total = 0;
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaMemGetInfo(&free_bytes, &total), "asking for the free device memory"));
  return cs_error(CS_CODE_NO_MEMORY,
                  "out of device memory: %" PRId64 " bytes wanted, %zu of %zu bytes free on %s",
                  bytes, free_bytes, total, cs_cuda(backend)->info.name);
}

void cs_cuda_release(cs_backend *backend, void *memory) {
  if (!memory) return;
  cs_status_free(cs_cuda_enter(cs_cuda(backend)));
  (void)cudaFree(memory);
}

/* Copies go through stream 0, whose end is waited for: a plain copy from pageable memory may return
 * before the device has it, and the non-blocking streams do not wait for it. */
static cs_status begin(cs_backend *backend, cudaStream_t *stream) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  return cs_cuda_stream(cs_cuda(backend), 0, false, stream);
}

cs_status cs_cuda_upload(cs_backend *backend, void *device, const void *host, int64_t bytes) {
  cudaStream_t stream;
  CS_RETURN_IF_ERROR(begin(backend, &stream));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaMemcpyAsync(device, host, (size_t)bytes, cudaMemcpyHostToDevice, stream),
                     "uploading %" PRId64 " bytes", bytes));
  return cs_cuda_status(cudaStreamSynchronize(stream), "uploading %" PRId64 " bytes", bytes);
}

cs_status cs_cuda_download(cs_backend *backend, void *host, const void *device, int64_t bytes) {
  cudaStream_t stream;
  CS_RETURN_IF_ERROR(begin(backend, &stream));
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaMemcpyAsync(host, device, (size_t)bytes, cudaMemcpyDeviceToHost, stream),
                     "downloading %" PRId64 " bytes", bytes));
  return cs_cuda_status(cudaStreamSynchronize(stream), "downloading %" PRId64 " bytes", bytes);
}

cs_status cs_cuda_fill(cs_backend *backend, void *device, int byte, int64_t bytes) {
  cudaStream_t stream;
  CS_RETURN_IF_ERROR(begin(backend, &stream));
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaMemsetAsync(device, byte, (size_t)bytes, stream),
                                    "filling %" PRId64 " bytes", bytes));
  return cs_cuda_status(cudaStreamSynchronize(stream), "filling %" PRId64 " bytes", bytes);
}

static cs_status convert(cs_backend *backend, const cs_tensor_desc *from_desc, const void *from,
                         const cs_tensor_desc *to_desc, void *to, void *native_stream) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  return cs_cuda_copy_launch(from_desc, from, to_desc, to, native_stream);
}

/* The caller's array is as aligned as its address is. */
static cs_tensor_desc plain_desc(const cs_tensor_desc *desc, const float *nchw) {
  cs_tensor_desc plain = cs_tensor_dense(&desc->shape, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  while (plain.alignment > 1 && (uintptr_t)nchw % (uintptr_t)plain.alignment != 0) {
    plain.alignment /= 2;
  }
  return plain;
}

cs_status cs_cuda_import(cs_backend *backend, const float *nchw, const cs_tensor_desc *desc,
                         void *tensor, void *native_stream) {
  cs_tensor_desc plain = plain_desc(desc, nchw);
  return convert(backend, &plain, nchw, desc, tensor, native_stream);
}

cs_status cs_cuda_export(cs_backend *backend, const cs_tensor_desc *desc, const void *tensor,
                         float *nchw, void *native_stream) {
  cs_tensor_desc plain = plain_desc(desc, nchw);
  return convert(backend, desc, tensor, &plain, nchw, native_stream);
}
