/* Names of streams, for profilers (NVTX). */
#ifndef CONVSCHED_BACKEND_CUDA_STREAM_NAME_H_
#define CONVSCHED_BACKEND_CUDA_STREAM_NAME_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* "convsched stream 2", of high priority or on a part of so many SMs (0: the whole device) where it
 * is. Nothing in a build without NVTX. */
void cs_cuda_name_stream(cudaStream_t stream, int index, bool urgent, int part_units);

#endif
