#include "backend/cuda/cudnn_pool.h"

#include <string.h>

cs_status cs_cudnn_pool_init(cs_cudnn_pool *pool) {
  memset(pool, 0, sizeof(*pool));
  if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
    return cs_error(CS_CODE_INTERNAL, "creating a mutex failed");
  }
  return CS_OK;
}

void cs_cudnn_pool_destroy(cs_cudnn_pool *pool) {
  for (int i = 0; i < CS_MAX_HANDLES; i++) {
    if (pool->slots[i].handle) (void)cudnnDestroy(pool->slots[i].handle);
  }
  pthread_mutex_destroy(&pool->mutex);
}

cs_status cs_cudnn_acquire(cs_cudnn_pool *pool, cs_cudnn_slot **out) {
  *out = NULL;
  cs_cudnn_slot *slot = NULL;
  pthread_mutex_lock(&pool->mutex);
  for (int i = 0; i < CS_MAX_HANDLES && !slot; i++) {
    if (!pool->slots[i].busy) slot = &pool->slots[i];
  }
  if (slot) slot->busy = true;
  pthread_mutex_unlock(&pool->mutex);
  if (!slot) {
    return cs_error(CS_CODE_INTERNAL, "all %d cuDNN handles are in use", CS_MAX_HANDLES);
  }
  if (!slot->handle) {
    cudnnStatus_t result = cudnnCreate(&slot->handle);
    if (result != CUDNN_STATUS_SUCCESS) {
      slot->handle = NULL;
      cs_cudnn_release(pool, slot);
      return cs_cudnn_status(result, "creating a cuDNN handle");
    }
  }
  *out = slot;
  return CS_OK;
}

void cs_cudnn_release(cs_cudnn_pool *pool, cs_cudnn_slot *slot) {
  if (!slot) return;
  pthread_mutex_lock(&pool->mutex);
  slot->busy = false;
  pthread_mutex_unlock(&pool->mutex);
}

cs_status cs_cudnn_slot_use(cs_cudnn_slot *slot, cudaStream_t stream) {
  if (slot->stream == stream) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_cudnn_status(cudnnSetStream(slot->handle, stream), "giving cuDNN a stream"));
  slot->stream = stream;
  return CS_OK;
}
