/* Requests in flight: a stream for each slot's CUDA graphs, one for copies to the device and one
 * for copies from it; events order them, the host waits for none. */
#ifndef CONVSCHED_BACKEND_CUDA_REQUESTS_H_
#define CONVSCHED_BACKEND_CUDA_REQUESTS_H_

#include "backend/backend.h"

cs_status cs_cuda_host_allocate(cs_backend *backend, int64_t bytes, void **out) CS_MUST_USE;
void cs_cuda_host_release(cs_backend *backend, void *memory);

cs_status cs_cuda_requests_create(cs_backend *backend, const cs_request_slot *slots, int n,
                                  cs_requests **out) CS_MUST_USE;
void cs_cuda_requests_destroy(cs_requests *requests);
cs_status cs_cuda_requests_submit(cs_requests *requests, int slot) CS_MUST_USE;
cs_status cs_cuda_requests_wait(cs_requests *requests, int slot) CS_MUST_USE;
cs_status cs_cuda_requests_burst(cs_requests *requests, int in_flight, bool copies, int n,
                                 cs_request_times *times) CS_MUST_USE;

#endif
