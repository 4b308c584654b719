/* Making pipelines; requests one by one. */
#include "runtime/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "graph/op_family.h"
#include "graph/pixels.h"

/* ---- Slots ---- */

static const cs_tensor_desc *desc_of(const cs_pipeline *pipeline, int tensor) {
  return &pipeline->session->planned.program->tensors[tensor].desc;
}

static cs_status host_allocate(cs_backend *backend, int64_t bytes, void **out) {
  if (backend->vtable->host_allocate) return backend->vtable->host_allocate(backend, bytes, out);
  *out = cs_calloc(1, (size_t)cs_max_i64(bytes, 1));
  return *out ? CS_OK : cs_no_memory("inputs and outputs of a request", (size_t)bytes);
}

static void host_release(cs_backend *backend, void *memory) {
  if (backend->vtable->host_release) {
    backend->vtable->host_release(backend, memory);
  } else {
    free(memory);
  }
}

/* Room in host memory for a slot's tensors; zeros, which stay between the elements of a view. */
static cs_status make_transfers(const cs_pipeline *pipeline, const cs_realised *realised,
                                const int *tensors, int n, cs_transfer **out) {
  const cs_planned *planned = &pipeline->session->planned;
  cs_transfer *transfers = cs_calloc((size_t)n, sizeof *transfers);
  *out = transfers;
  if (!transfers) return cs_no_memory("a request", (size_t)n * sizeof *transfers);
  for (int i = 0; i < n; i++) {
    int64_t bytes = cs_tensor_span_bytes(desc_of(pipeline, tensors[i]));
    transfers[i] = (cs_transfer){
        .device = cs_realised_tensor(realised, planned->program, planned->plan, tensors[i]),
        .bytes = bytes};
    CS_RETURN_IF_ERROR(host_allocate(pipeline->backend, bytes, &transfers[i].host));
    memset(transfers[i].host, 0, (size_t)bytes);
  }
  return CS_OK;
}

/* Makes the slot's output leave as pixels. Without requests in flight they are made on the host, of
 * what is downloaded. */
static cs_status make_pixels(const cs_pipeline *pipeline, cs_slot *slot) {
  cs_backend *backend = pipeline->backend;
  cs_transfer *output = &slot->outputs[0];
  const cs_tensor_desc *desc =
      desc_of(pipeline, pipeline->session->planned.program->output_tensors[0]);
  int64_t bytes = cs_pixels_bytes(&desc->shape);
  host_release(backend, output->host);
  output->host = NULL;
  CS_RETURN_IF_ERROR(host_allocate(backend, bytes, &output->host));
  void *pixels = NULL;
  CS_RETURN_IF_ERROR(backend->vtable->allocate(backend, bytes, &pixels));
  output->tensor = output->device;
  output->device = pixels; /* free_transfers releases it */
  output->desc = *desc;
  output->bytes = bytes;
  return CS_OK;
}

static void free_transfers(cs_backend *backend, cs_transfer *transfers, int n) {
  for (int i = 0; transfers && i < n; i++) {
    host_release(backend, transfers[i].host);
    if (transfers[i].tensor) backend->vtable->release(backend, transfers[i].device);
  }
  free(transfers);
}

static cs_status make_slot(const cs_pipeline *pipeline, int index) {
  const cs_session *session = pipeline->session;
  const cs_program *program = session->planned.program;
  cs_slot *slot = &pipeline->slots[index];
  CS_RETURN_IF_ERROR(
      cs_realise_beside(&session->realised, program, session->planned.plan, &slot->realised));
  CS_RETURN_IF_ERROR(make_transfers(pipeline, &slot->realised, program->input_tensors,
                                    program->graph->n_inputs, &slot->inputs));
  CS_RETURN_IF_ERROR(make_transfers(pipeline, &slot->realised, program->output_tensors,
                                    program->graph->n_outputs, &slot->outputs));
  if (pipeline->pixels) CS_RETURN_IF_ERROR(make_pixels(pipeline, slot));
  cs_slot_set_inputs(pipeline, index, (const float *const *)session->inputs);
  /* Runs without copies have inputs then, too. */
  return cs_session_upload_inputs(session, &slot->realised, session->planned.plan);
}

void cs_slot_set_inputs(const cs_pipeline *pipeline, int slot, const float *const *inputs) {
  const cs_program *program = pipeline->session->planned.program;
  for (int i = 0; i < program->graph->n_inputs; i++) {
    cs_tensor_from_f32(desc_of(pipeline, program->input_tensors[i]), inputs[i],
                       pipeline->slots[slot].inputs[i].host);
  }
}

void cs_slot_output(const cs_pipeline *pipeline, int slot, int i, float *out) {
  const cs_program *program = pipeline->session->planned.program;
  cs_tensor_to_f32(desc_of(pipeline, program->output_tensors[i]),
                   pipeline->slots[slot].outputs[i].host, out);
}

/* ---- Create, destroy ---- */

static cs_status check_slots(const cs_session *session, int slots) {
  CS_RETURN_IF_ERROR(cs_device_must_compute(session->device, "requests in flight"));
  if (slots < 1 || slots > CS_PIPELINE_MOST_SLOTS) {
    return cs_error(CS_CODE_USAGE, "%d requests in flight: wanted 1 to %d", slots,
                    CS_PIPELINE_MOST_SLOTS);
  }
  int64_t arena = session->planned.plan->arena_bytes,
          limit = session->settings.options.memory_limit;
  if (limit > 0 && arena > limit / slots) {
    int64_t all = arena * slots;
    return cs_error(CS_CODE_BAD_INPUT,
                    "%d requests in flight: their arenas have %lld bytes (%lld each), wanted at "
                    "most %lld, the memory limit; %lld fit",
                    slots, (long long)all, (long long)arena, (long long)limit,
                    (long long)(limit / arena));
  }
  return CS_OK;
}

static cs_status make_requests(cs_pipeline *pipeline) {
  const cs_backend_vtable *vtable = pipeline->backend->vtable;
  const cs_graph *graph = pipeline->session->planned.program->graph;
  if (!vtable->requests_create) return CS_OK;
  cs_request_slot slots[CS_PIPELINE_MOST_SLOTS];
  for (int i = 0; i < pipeline->n; i++) {
    const cs_slot *slot = &pipeline->slots[i];
    slots[i] = (cs_request_slot){.schedule = slot->realised.schedule,
                                 .inputs = slot->inputs,
                                 .outputs = slot->outputs,
                                 .n_inputs = graph->n_inputs,
                                 .n_outputs = graph->n_outputs};
  }
  return vtable->requests_create(pipeline->backend, slots, pipeline->n, &pipeline->requests);
}

static cs_status create(cs_session *session, int slots, bool pixels, cs_pipeline **out) {
  cs_status st = CS_OK;
  CS_RETURN_IF_ERROR(check_slots(session, slots));
  CS_RETURN_IF_ERROR(cs_session_fetch_inputs(session));
  cs_pipeline *pipeline = cs_calloc(1, sizeof *pipeline);
  if (!pipeline) return cs_no_memory("a pipeline", sizeof *pipeline);
  pipeline->session = session;
  pipeline->backend = session->device->backend;
  pipeline->pixels = pixels;
  pipeline->slots = cs_calloc((size_t)slots, sizeof *pipeline->slots);
  if (!pipeline->slots) {
    st = cs_no_memory("a pipeline", (size_t)slots * sizeof *pipeline->slots);
    goto done;
  }
  pipeline->n = slots;
  for (int i = 0; i < slots; i++) {
    CS_TRY(st, cs_annotate(make_slot(pipeline, i), "request %d of %d: ", i + 1, slots), done);
  }
  CS_TRY(st, make_requests(pipeline), done);
  *out = pipeline, pipeline = NULL;
done:
  cs_pipeline_destroy(pipeline);
  return st;
}

cs_status cs_pipeline_create(cs_session *session, int slots, cs_pipeline **out) {
  *out = NULL;
  return create(session, slots, false, out);
}

cs_status cs_pipeline_create_pixels(cs_session *session, int slots, cs_pipeline **out) {
  const cs_program *program = session->planned.program;
  const cs_graph *graph = program->graph;
  *out = NULL;
  if (graph->n_outputs != 1) {
    return cs_error(CS_CODE_USAGE, "%s has %d outputs, wanted one, of pictures", graph->name,
                    graph->n_outputs);
  }
  const cs_shape *shape = &program->tensors[program->output_tensors[0]].desc.shape;
  if (!cs_pixels_shape(shape)) {
    char text[CS_TEXT_SIZE];
    return cs_error(CS_CODE_USAGE, "%s gives %s, wanted pictures: N×C×H×W of one channel or three",
                    graph->name, cs_shape_text(shape, text));
  }
  return create(session, slots, true, out);
}

void cs_pipeline_destroy(cs_pipeline *pipeline) {
  if (!pipeline) return;
  const cs_graph *graph = pipeline->session->planned.program->graph;
  if (pipeline->requests) pipeline->backend->vtable->requests_destroy(pipeline->requests);
  for (int i = 0; pipeline->slots && i < pipeline->n; i++) {
    cs_slot *slot = &pipeline->slots[i];
    free_transfers(pipeline->backend, slot->inputs, graph->n_inputs);
    free_transfers(pipeline->backend, slot->outputs, graph->n_outputs);
    cs_realised_free(&slot->realised);
  }
  free(pipeline->slots);
  free(pipeline);
}

int64_t cs_pipeline_arena_bytes(const cs_pipeline *pipeline) {
  return pipeline->n * pipeline->session->planned.plan->arena_bytes;
}

const char *cs_pipeline_how(const cs_pipeline *pipeline) {
  return pipeline->requests ? "a CUDA graph launch a request, on a stream for each request in "
                              "flight; copies from and to pinned memory on two more"
                            : "one request after the other: the device has no requests in flight";
}

/* ---- Requests ---- */

static cs_status check_slot(const cs_pipeline *pipeline, int slot) {
  if (slot >= 0 && slot < pipeline->n) return CS_OK;
  return cs_error(CS_CODE_USAGE, "slot %d: wanted 0 to %d", slot, pipeline->n - 1);
}

cs_status cs_pipeline_must_rest(const cs_pipeline *pipeline, const char *what) {
  for (int i = 0; i < pipeline->n; i++) {
    if (!pipeline->slots[i].busy) continue;
    return cs_error(CS_CODE_USAGE,
                    "%s: slot %d has a request in flight, wanted: cs_pipeline_wait first", what, i);
  }
  return CS_OK;
}

cs_status cs_pipeline_submit(cs_pipeline *pipeline, int slot, const float *const *inputs,
                             const int64_t *input_sizes, int n_inputs) {
  CS_RETURN_IF_ERROR(check_slot(pipeline, slot));
  cs_slot *s = &pipeline->slots[slot];
  if (s->busy) {
    return cs_error(CS_CODE_USAGE,
                    "slot %d has a request in flight, wanted: cs_pipeline_wait first", slot);
  }
  if (inputs) {
    CS_RETURN_IF_ERROR(cs_session_check_inputs(pipeline->session, input_sizes, n_inputs));
    cs_slot_set_inputs(pipeline, slot, inputs);
  }
  CS_RETURN_IF_ERROR(pipeline->requests
                         ? pipeline->backend->vtable->requests_submit(pipeline->requests, slot)
                         : cs_queue_run(pipeline, s, true));
  s->busy = true;
  return CS_OK;
}

cs_status cs_pipeline_must_give_tensors(const cs_pipeline *pipeline, const char *what) {
  if (!pipeline->pixels) return CS_OK;
  return cs_error(CS_CODE_USAGE, "%s: outputs of this pipeline are pixels, wanted tensors", what);
}

static cs_status wait_for(cs_pipeline *pipeline, int slot) {
  cs_slot *s = &pipeline->slots[slot];
  if (!s->busy) {
    return cs_error(CS_CODE_USAGE,
                    "slot %d has no request in flight, wanted: cs_pipeline_submit first", slot);
  }
  if (pipeline->requests) {
    CS_RETURN_IF_ERROR(pipeline->backend->vtable->requests_wait(pipeline->requests, slot));
  }
  s->busy = false;
  return CS_OK;
}

cs_status cs_pipeline_wait(cs_pipeline *pipeline, int slot, float *const *outputs,
                           const int64_t *output_sizes, int n_outputs) {
  CS_RETURN_IF_ERROR(check_slot(pipeline, slot));
  if (outputs) {
    CS_RETURN_IF_ERROR(cs_pipeline_must_give_tensors(pipeline, "cs_pipeline_wait"));
    CS_RETURN_IF_ERROR(cs_session_check_outputs(pipeline->session, output_sizes, n_outputs));
  }
  CS_RETURN_IF_ERROR(wait_for(pipeline, slot));
  for (int i = 0; outputs && i < n_outputs; i++) cs_slot_output(pipeline, slot, i, outputs[i]);
  return CS_OK;
}

cs_status cs_pipeline_wait_pixels(cs_pipeline *pipeline, int slot, const uint8_t **pixels,
                                  int64_t *bytes) {
  *pixels = NULL;
  *bytes = 0;
  CS_RETURN_IF_ERROR(check_slot(pipeline, slot));
  if (!pipeline->pixels) {
    return cs_error(CS_CODE_USAGE,
                    "outputs of this pipeline are tensors, wanted one that "
                    "cs_pipeline_create_pixels made");
  }
  CS_RETURN_IF_ERROR(wait_for(pipeline, slot));
  *pixels = pipeline->slots[slot].outputs[0].host;
  *bytes = pipeline->slots[slot].outputs[0].bytes;
  return CS_OK;
}
