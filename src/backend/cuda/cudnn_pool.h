/* cuDNN handles, made when first needed and kept: one for each stream or preparing thread that uses
 * cuDNN at the same time. Thread-safe. */
#ifndef CONVSCHED_BACKEND_CUDA_CUDNN_POOL_H_
#define CONVSCHED_BACKEND_CUDA_CUDNN_POOL_H_

#include <pthread.h>

#include "backend/cuda/cuda_error.h"

#define CS_MAX_HANDLES 512 /* 16 requests in flight of several plans, a handle a stream */

typedef struct cs_cudnn_slot {
  cudnnHandle_t handle;
  cudaStream_t stream; /* the handle's; set by cs_cudnn_slot_use */
  bool busy;
} cs_cudnn_slot;

typedef struct cs_cudnn_pool {
  pthread_mutex_t mutex;
  cs_cudnn_slot slots[CS_MAX_HANDLES];
} cs_cudnn_pool;

cs_status cs_cudnn_pool_init(cs_cudnn_pool *pool) CS_MUST_USE;
/* Every slot must have been released. */
void cs_cudnn_pool_destroy(cs_cudnn_pool *pool);
/* The free slot of lowest index; its handle belongs to the caller until released. */
cs_status cs_cudnn_acquire(cs_cudnn_pool *pool, cs_cudnn_slot **out) CS_MUST_USE;
void cs_cudnn_release(cs_cudnn_pool *pool, cs_cudnn_slot *slot); /* NULL is fine */
/* Makes the handle work on `stream`. */
cs_status cs_cudnn_slot_use(cs_cudnn_slot *slot, cudaStream_t stream) CS_MUST_USE;

#endif
