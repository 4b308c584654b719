/* Splits of the device's SMs: a green context for each part, and streams in them. A split is made
 * when it is first asked for and kept until the backend is closed. */
#ifndef CONVSCHED_BACKEND_CUDA_SPLIT_H_
#define CONVSCHED_BACKEND_CUDA_SPLIT_H_

#include "backend/cuda/cuda_backend.h"

typedef struct cs_cuda_split cs_cuda_split;

/* Tells in the backend's info what its device can be split into. */
cs_status cs_cuda_split_units(cs_cuda_backend *backend) CS_MUST_USE;
/* The split of these parts (which cs_stream_set_check has passed). BAD_INPUT says what the driver
 * gave instead. The device is the thread's current one. */
cs_status cs_cuda_split_find(cs_cuda_backend *backend, const cs_stream_set *streams,
                             cs_cuda_split **out) CS_MUST_USE;
/* Stream `index` of a part, made when first asked for; the split's. */
cs_status cs_cuda_split_stream(const cs_cuda_backend *backend, cs_cuda_split *split, int part,
                               int index, bool urgent, cudaStream_t *out) CS_MUST_USE;
void cs_cuda_splits_destroy(cs_cuda_backend *backend);

#endif
