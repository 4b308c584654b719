#include "backend/cuda/requests.h"

#include <inttypes.h>
#include <stdlib.h>

#include "backend/cuda/kernels.h"
#include "backend/cuda/schedule.h"

/* Requests of a burst that the host is ahead of the device, at most: enough that the device never
 * waits for the host, and few enough that no queue of the driver is full. */
#define AHEAD 128

typedef struct slot_state {
  cs_request_slot slot;
  cudaStream_t stream; /* of its graphs */
  cudaEvent_t copied;  /* inputs are on the device */
  cudaEvent_t ran;     /* inputs may be overwritten, outputs are there */
  cudaEvent_t fetched; /* outputs are in host memory, and may be overwritten on the device */
} slot_state;

struct cs_requests {
  cs_cuda_backend *backend;
  slot_state *slots;
  int n;
  cudaStream_t copy_in, copy_out;
  cudaEvent_t first;                      /* of a burst */
  cudaEvent_t starts[AHEAD], ends[AHEAD]; /* of its requests, in turn */
};

/* ---- Host memory ---- */

cs_status cs_cuda_host_allocate(cs_backend *backend, int64_t bytes, void **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cudaError_t result = cudaHostAlloc(out, (size_t)cs_max_i64(bytes, 1), cudaHostAllocDefault);
  if (result == cudaSuccess) return CS_OK;
  *out = NULL;
  if (result != cudaErrorMemoryAllocation) {
    return cs_cuda_status(result, "allocating %" PRId64 " bytes of pinned host memory", bytes);
  }
  (void)cudaGetLastError();
  return cs_error(CS_CODE_NO_MEMORY,
                  "out of pinned host memory: %" PRId64
                  " bytes wanted (what a process may lock is "
                  "limited: ulimit -l)",
                  bytes);
}

void cs_cuda_host_release(cs_backend *backend, void *memory) {
  if (!memory) return;
  cs_status_free(cs_cuda_enter(cs_cuda(backend)));
  (void)cudaFreeHost(memory);
}

/* ---- Making ---- */

static cs_status create_stream(cudaStream_t *out) {
  return cs_cuda_status(cudaStreamCreateWithFlags(out, cudaStreamNonBlocking),
                        "creating a stream for requests in flight");
}

static cs_status create_event(cudaEvent_t *out, unsigned flags) {
  return cs_cuda_status(cudaEventCreateWithFlags(out, flags),
                        "creating an event of requests in flight");
}

static cs_status create_slot(const cs_request_slot *from, slot_state *to) {
  to->slot = *from;
  if (!from->schedule->executable) {
    return cs_error(CS_CODE_BAD_INPUT,
                    "requests in flight: found a schedule of stream calls, wanted CUDA graphs");
  }
  CS_RETURN_IF_ERROR(create_stream(&to->stream));
  CS_RETURN_IF_ERROR(create_event(&to->copied, cudaEventDisableTiming));
  CS_RETURN_IF_ERROR(create_event(&to->ran, cudaEventDisableTiming));
  CS_RETURN_IF_ERROR(create_event(&to->fetched, cudaEventDisableTiming));
  return cs_cuda_status(cudaGraphUpload(from->schedule->executable, to->stream),
                        "uploading a CUDA graph");
}

static cs_status create_all(cs_requests *r, const cs_request_slot *slots, int n) {
  r->slots = cs_calloc((size_t)n, sizeof(*r->slots));
  if (!r->slots) return cs_no_memory("requests in flight", (size_t)n * sizeof(*r->slots));
  r->n = n;
  CS_RETURN_IF_ERROR(create_stream(&r->copy_in));
  CS_RETURN_IF_ERROR(create_stream(&r->copy_out));
  CS_RETURN_IF_ERROR(create_event(&r->first, cudaEventDefault));
  for (int i = 0; i < AHEAD; i++) {
    CS_RETURN_IF_ERROR(create_event(&r->starts[i], cudaEventDefault));
    CS_RETURN_IF_ERROR(create_event(&r->ends[i], cudaEventDefault));
  }
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(create_slot(&slots[i], &r->slots[i]));
  return CS_OK;
}

cs_status cs_cuda_requests_create(cs_backend *backend, const cs_request_slot *slots, int n,
                                  cs_requests **out) {
  *out = NULL;
  CS_RETURN_IF_ERROR(cs_cuda_enter(cs_cuda(backend)));
  cs_requests *r = cs_calloc(1, sizeof(*r));
  if (!r) return cs_no_memory("requests in flight", sizeof(*r));
  r->backend = cs_cuda(backend);
  cs_status st = create_all(r, slots, n);
  if (st != CS_OK) {
    cs_cuda_requests_destroy(r);
    return st;
  }
  *out = r;
  return CS_OK;
}

static void destroy_stream(cudaStream_t stream) {
  if (!stream) return;
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

static void destroy_event(cudaEvent_t event) {
  if (event) (void)cudaEventDestroy(event);
}

void cs_cuda_requests_destroy(cs_requests *requests) {
  cs_requests *r = requests;
  if (!r) return;
  cs_status_free(cs_cuda_enter(r->backend));
  destroy_stream(r->copy_in);
  for (int i = 0; i < r->n; i++) destroy_stream(r->slots[i].stream);
  destroy_stream(r->copy_out);
  for (int i = 0; i < r->n; i++) {
    destroy_event(r->slots[i].copied);
    destroy_event(r->slots[i].ran);
    destroy_event(r->slots[i].fetched);
  }
  destroy_event(r->first);
  for (int i = 0; i < AHEAD; i++) {
    destroy_event(r->starts[i]);
    destroy_event(r->ends[i]);
  }
  free(r->slots);
  free(r);
}

/* ---- Enqueueing ---- */

/* A run, and what leaves in place of its outputs. */
static cs_status launch(const slot_state *s) {
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaGraphLaunch(s->slot.schedule->executable, s->stream),
                                    "launching a CUDA graph"));
  for (int i = 0; i < s->slot.n_outputs; i++) {
    const cs_transfer *t = &s->slot.outputs[i];
    if (!t->tensor) continue;
    CS_RETURN_IF_ERROR(cs_cuda_pixels_launch(&t->desc, t->tensor, t->device, s->stream));
  }
  return CS_OK;
}

static cs_status copy(const cs_transfer *transfers, int n, enum cudaMemcpyKind kind,
                      cudaStream_t stream) {
  bool in = kind == cudaMemcpyHostToDevice;
  for (int i = 0; i < n; i++) {
    const cs_transfer *t = &transfers[i];
    CS_RETURN_IF_ERROR(
        cs_cuda_status(cudaMemcpyAsync(in ? t->device : t->host, in ? t->host : t->device,
                                       (size_t)t->bytes, kind, stream),
                       "copying %" PRId64 " bytes of %s", t->bytes, in ? "inputs" : "outputs"));
  }
  return CS_OK;
}

/* A request with its copies; `start` and `end` may be NULL. Waiting for an event that was never
 * recorded is no waiting. */
static cs_status enqueue(cs_requests *r, slot_state *s, cudaEvent_t start, cudaEvent_t end) {
  CS_RETURN_IF_ERROR(cs_cuda_wait_for(r->copy_in, s->ran));
  if (start) CS_RETURN_IF_ERROR(cs_cuda_record(start, r->copy_in));
  CS_RETURN_IF_ERROR(copy(s->slot.inputs, s->slot.n_inputs, cudaMemcpyHostToDevice, r->copy_in));
  CS_RETURN_IF_ERROR(cs_cuda_record(s->copied, r->copy_in));
  CS_RETURN_IF_ERROR(cs_cuda_wait_for(s->stream, s->copied));
  CS_RETURN_IF_ERROR(cs_cuda_wait_for(s->stream, s->fetched));
  CS_RETURN_IF_ERROR(launch(s));
  CS_RETURN_IF_ERROR(cs_cuda_record(s->ran, s->stream));
  CS_RETURN_IF_ERROR(cs_cuda_wait_for(r->copy_out, s->ran));
  CS_RETURN_IF_ERROR(copy(s->slot.outputs, s->slot.n_outputs, cudaMemcpyDeviceToHost, r->copy_out));
  if (end) CS_RETURN_IF_ERROR(cs_cuda_record(end, r->copy_out));
  return cs_cuda_record(s->fetched, r->copy_out);
}

/* A run alone, in its place among the slot's requests. */
static cs_status enqueue_run(slot_state *s, cudaEvent_t start, cudaEvent_t end) {
  CS_RETURN_IF_ERROR(cs_cuda_record(start, s->stream));
  CS_RETURN_IF_ERROR(launch(s));
  return cs_cuda_record(end, s->stream);
}

cs_status cs_cuda_requests_submit(cs_requests *requests, int slot) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(requests->backend));
  return enqueue(requests, &requests->slots[slot], NULL, NULL);
}

cs_status cs_cuda_requests_wait(cs_requests *requests, int slot) {
  CS_RETURN_IF_ERROR(cs_cuda_enter(requests->backend));
  return cs_cuda_status(cudaEventSynchronize(requests->slots[slot].fetched),
                        "running a request in slot %d", slot);
}

/* ---- Bursts ---- */

static cs_status wait_for_all(cs_requests *r) {
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaStreamSynchronize(r->copy_in), "copying inputs"));
  for (int i = 0; i < r->n; i++) {
    CS_RETURN_IF_ERROR(cs_cuda_status(cudaStreamSynchronize(r->slots[i].stream),
                                      "running requests in slot %d", i));
  }
  return cs_cuda_status(cudaStreamSynchronize(r->copy_out), "copying outputs");
}

static cs_status since_first(const cs_requests *r, cudaEvent_t event, double *us) {
  float ms = 0;
  CS_RETURN_IF_ERROR(
      cs_cuda_status(cudaEventElapsedTime(&ms, r->first, event), "reading a timing event"));
  *us = (double)ms * 1e3;
  return CS_OK;
}

/* Waits until request i has ended. */
static cs_status read_times(const cs_requests *r, int i, cs_request_times *out) {
  cudaEvent_t end = r->ends[i % AHEAD];
  CS_RETURN_IF_ERROR(cs_cuda_status(cudaEventSynchronize(end), "running request %d", i));
  CS_RETURN_IF_ERROR(since_first(r, r->starts[i % AHEAD], &out->start));
  return since_first(r, end, &out->end);
}

cs_status cs_cuda_requests_burst(cs_requests *requests, int in_flight, bool copies, int n,
                                 cs_request_times *times) {
  cs_requests *r = requests;
  CS_RETURN_IF_ERROR(cs_cuda_enter(r->backend));
  CS_RETURN_IF_ERROR(wait_for_all(r));
  CS_RETURN_IF_ERROR(cs_cuda_record(r->first, copies ? r->copy_in : r->slots[0].stream));
  for (int i = 0; i < n; i++) {
    slot_state *s = &r->slots[i % in_flight];
    if (i >= AHEAD) CS_RETURN_IF_ERROR(read_times(r, i - AHEAD, &times[i - AHEAD]));
    cudaEvent_t start = r->starts[i % AHEAD], end = r->ends[i % AHEAD];
    CS_RETURN_IF_ERROR(copies ? enqueue(r, s, start, end) : enqueue_run(s, start, end));
  }
  for (int i = n > AHEAD ? n - AHEAD : 0; i < n; i++) {
    CS_RETURN_IF_ERROR(read_times(r, i, &times[i]));
  }
  return wait_for_all(r);
}
