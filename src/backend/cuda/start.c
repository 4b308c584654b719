#include "backend/cuda/start.h"

#include <pthread.h>
#include <stdlib.h>

#include "backend/cuda/cuda_backend.h"

struct cs_cuda_start {
  cs_cuda_backend *backend;
  pthread_mutex_t mutex;
  pthread_t thread;
  bool joined;
  cs_status status; /* of the thread; valid once joined */
};

static cs_status make_all(cs_cuda_backend *cuda) {
  cudaStream_t first;
  cs_cudnn_slot *slot = NULL;
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaSetDevice(cuda->device), "selecting CUDA device %d", cuda->device));
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaEventCreate(&cuda->start), "creating an event"));
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaEventCreate(&cuda->stop), "creating an event"));
  CS_RETURN_IF_ERROR(cs_cuda_stream(cuda, 0, false, &first));
  CS_RETURN_IF_ERROR(cs_cudnn_acquire(&cuda->pool, &slot));
  cs_cudnn_release(&cuda->pool, slot);
  return CS_OK;
}

static void *run_start(void *user) {
  cs_cuda_start *start = user;
  start->status = make_all(start->backend);
  return NULL;
}

cs_status cs_cuda_start_begin(cs_cuda_backend *backend, cs_cuda_start **out) {
  *out = NULL;
  cs_cuda_start *start = cs_calloc(1, sizeof(*start));
  if (!start) return cs_no_memory("starting a device", sizeof(*start));
  start->backend = backend;
  if (pthread_mutex_init(&start->mutex, NULL) != 0) {
    free(start);
    return cs_error(CS_CODE_INTERNAL, "creating a mutex failed");
  }
  if (pthread_create(&start->thread, NULL, run_start, start) != 0) {
    /* No thread to be had: what it would do is done here. */
    (void)run_start(start);
    start->joined = true;
  }
  *out = start;
  return CS_OK;
}

static void join(cs_cuda_start *start) {
  pthread_mutex_lock(&start->mutex);
  if (!start->joined) pthread_join(start->thread, NULL);
  start->joined = true;
  pthread_mutex_unlock(&start->mutex);
}

cs_status cs_cuda_start_wait(cs_cuda_start *start) {
  join(start);
  if (start->status == CS_OK) return CS_OK;
  return cs_error(cs_status_code(start->status), "%s", cs_status_message(start->status));
}

void cs_cuda_start_destroy(cs_cuda_start *start) {
  if (!start) return;
  join(start);
  cs_status_free(start->status);
  pthread_mutex_destroy(&start->mutex);
  free(start);
}
