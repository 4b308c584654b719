/* A kernel that tells which SMs its blocks ran on. */
#ifndef CONVSCHED_TESTS_GPU_SMID_H_
#define CONVSCHED_TESTS_GPU_SMID_H_

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds 1 to seen[SM] (device memory, of `most` SMs) for each of `blocks` blocks, which stay for
 * some 10 us so that all SMs that may run them do. */
cudaError_t smid_launch(unsigned *seen, int most, int blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
