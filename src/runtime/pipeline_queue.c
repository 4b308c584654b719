/* Requests one after the other, each run to its end on the caller's thread, timed by the host's
 * clock. */
#include <stdlib.h>

#include "backend/reference/reference.h"
#include "runtime/pipeline.h"

/* Pixels of a tensor, made on the host. */
static cs_status fetch_pixels(cs_backend *backend, const cs_transfer *t) {
  const cs_backend_vtable *vtable = backend->vtable;
  if (vtable->memory_is_hosts) return cs_tensor_to_pixels(&t->desc, t->tensor, t->host);
  int64_t bytes = cs_tensor_span_bytes(&t->desc);
  void *elements = cs_calloc(1, (size_t)bytes);
  if (!elements) return cs_no_memory("an output", (size_t)bytes);
  cs_status st = vtable->download(backend, elements, t->tensor, bytes);
  if (st == CS_OK) st = cs_tensor_to_pixels(&t->desc, elements, t->host);
  free(elements);
  return st;
}

static cs_status fetch(cs_backend *backend, const cs_transfer *t) {
  if (t->tensor) return fetch_pixels(backend, t);
  return backend->vtable->download(backend, t->host, t->device, t->bytes);
}

cs_status cs_queue_run(const cs_pipeline *pipeline, const cs_slot *slot, bool copies) {
  cs_backend *backend = pipeline->backend;
  const cs_backend_vtable *vtable = backend->vtable;
  const cs_program *program = pipeline->session->planned.program;
  for (int i = 0; copies && i < program->graph->n_inputs; i++) {
    const cs_transfer *t = &slot->inputs[i];
    CS_RETURN_IF_ERROR(vtable->upload(backend, t->device, t->host, t->bytes));
  }
  CS_RETURN_IF_ERROR(vtable->schedule_run(slot->realised.schedule));
  for (int i = 0; copies && i < program->graph->n_outputs; i++) {
    CS_RETURN_IF_ERROR(fetch(backend, &slot->outputs[i]));
  }
  return CS_OK;
}

cs_status cs_queue_burst(const cs_pipeline *pipeline, int in_flight, bool copies, int n,
                         cs_request_times *times) {
  double first = cs_now_seconds();
  for (int i = 0; i < n; i++) {
    times[i].start = (cs_now_seconds() - first) * 1e6;
    CS_RETURN_IF_ERROR(cs_queue_run(pipeline, &pipeline->slots[i % in_flight], copies));
    times[i].end = (cs_now_seconds() - first) * 1e6;
  }
  return CS_OK;
}
