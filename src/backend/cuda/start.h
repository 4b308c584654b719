/* A context and a cuDNN handle take a third of a second to make: that goes on in a thread, while
 * the caller loads its graph, its weights and its profile. */
#ifndef CONVSCHED_BACKEND_CUDA_START_H_
#define CONVSCHED_BACKEND_CUDA_START_H_

#include "base/status.h"

typedef struct cs_cuda_backend cs_cuda_backend;
typedef struct cs_cuda_start cs_cuda_start;

/* Begins making the backend's context, its first stream, its events and its first cuDNN handle. */
cs_status cs_cuda_start_begin(cs_cuda_backend *backend, cs_cuda_start **out) CS_MUST_USE;
/* Waits until all that is there; whoever asks is told what went wrong. Thread-safe. */
cs_status cs_cuda_start_wait(cs_cuda_start *start) CS_MUST_USE;
void cs_cuda_start_destroy(cs_cuda_start *start); /* waits; NULL is fine */

#endif
