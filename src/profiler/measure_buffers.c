/* Device memory of the operation under measurement: sets of inputs and outputs to rotate through,
 * pools of packed weights, a workspace, all between guard bands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "profiler/measure.h"
#include "profiler/measure_data.h"

#define GUARD_BYTE 0xA5
/* Outside of what belongs to a tensor lies NaN: reading past it shows. */
#define POISON_BYTE 0xFF
#define MAX_WORKSPACE_POISON ((int64_t)64 << 20)

/* ---- Guarded memory ---- */

static cs_status guarded_allocate(cs_backend *backend, int64_t bytes, int64_t alignment,
                                  cs_guarded *out) {
  /* Exactly as aligned as the description says, so that more is not silently relied on. */
  out->front = CS_GUARD_BYTES + (alignment > 0 && alignment < 256 ? alignment : 0);
  CS_RETURN_IF_ERROR(
      backend->vtable->allocate(backend, out->front + bytes + CS_GUARD_BYTES, &out->allocation));
  out->base = (char *)out->allocation + out->front;
  return CS_OK;
}

static void guarded_release(cs_backend *backend, cs_guarded *memory) {
  if (memory->allocation) backend->vtable->release(backend, memory->allocation);
  memset(memory, 0, sizeof *memory);
}

cs_status cs_guard_arm(cs_backend *backend, const cs_guarded *memory, int64_t bytes) {
  CS_RETURN_IF_ERROR(backend->vtable->fill(backend, memory->allocation, GUARD_BYTE, memory->front));
  return backend->vtable->fill(backend, memory->base + bytes, GUARD_BYTE, CS_GUARD_BYTES);
}

static bool all_guard(const unsigned char *bytes, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (bytes[i] != GUARD_BYTE) return false;
  }
  return true;
}

cs_status cs_guard_intact(cs_backend *backend, const cs_guarded *memory, int64_t bytes,
                          bool *intact) {
  unsigned char band[CS_GUARD_BYTES + 256];
  CS_RETURN_IF_ERROR(backend->vtable->download(backend, band, memory->allocation, memory->front));
  *intact = all_guard(band, memory->front);
  CS_RETURN_IF_ERROR(
      backend->vtable->download(backend, band, memory->base + bytes, CS_GUARD_BYTES));
  *intact = *intact && all_guard(band, CS_GUARD_BYTES);
  return CS_OK;
}

/* ---- Sets ---- */

static cs_status add_set(cs_op_buffers *b) {
  const cs_op_desc *desc = b->desc;
  const cs_backend_vtable *vtable = b->backend->vtable;
  cs_guarded *inputs = &b->inputs[b->n_sets * CS_MAX_OP_INPUTS];
  cs_guarded *output = &b->outputs[b->n_sets];
  b->n_sets++; /* from here on destroy releases what the set has */
  for (int i = 0; i < desc->n_inputs; i++) {
    int64_t span = cs_tensor_span_bytes(&desc->inputs[i]);
    CS_RETURN_IF_ERROR(guarded_allocate(b->backend, span, desc->inputs[i].alignment, &inputs[i]));
    CS_RETURN_IF_ERROR(
        vtable->fill(b->backend, inputs[i].allocation, POISON_BYTE, inputs[i].front));
    CS_RETURN_IF_ERROR(
        vtable->fill(b->backend, inputs[i].base + span, POISON_BYTE, CS_GUARD_BYTES));
    CS_RETURN_IF_ERROR(vtable->upload(b->backend, inputs[i].base, b->host_inputs[i], span));
  }
  int64_t span = cs_tensor_span_bytes(&desc->output);
  CS_RETURN_IF_ERROR(guarded_allocate(b->backend, span, desc->output.alignment, output));
  return vtable->fill(b->backend, output->base, POISON_BYTE, span);
}

static cs_status allocate_workspace(const cs_operation *operation, cs_op_buffers *b) {
  for (int i = 0; i < operation->n_trials; i++) {
    if (operation->trials[i].rejected) continue;
    b->workspace_bytes = cs_max_i64(b->workspace_bytes, operation->trials[i].workspace_bytes);
  }
  if (b->workspace_bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(guarded_allocate(b->backend, b->workspace_bytes, 256, &b->workspace));
  return b->backend->vtable->fill(b->backend, b->workspace.base, POISON_BYTE,
                                  cs_min_i64(b->workspace_bytes, MAX_WORKSPACE_POISON));
}

cs_status cs_measure_check_fits(const cs_backend *backend, const cs_op_desc *desc) {
  int64_t available = backend->vtable->info(backend)->memory_bytes;
  double wanted = (double)cs_tensor_span_bytes(&desc->output);
  for (int i = 0; i < desc->n_inputs; i++) wanted += (double)cs_tensor_span_bytes(&desc->inputs[i]);
  if (available <= 0 || wanted <= (double)available) return CS_OK;
  return cs_error(CS_CODE_NO_MEMORY,
                  "out of device memory: inputs and output take %.0f bytes, the device has %lld",
                  wanted, (long long)available);
}

cs_status cs_op_buffers_create(const cs_measuring *measuring, const cs_operation *operation,
                               cs_op_buffers *out) {
  cs_status st = CS_OK;
  memset(out, 0, sizeof *out);
  out->backend = measuring->backend;
  out->desc = operation->desc;
  out->inputs = cs_calloc((size_t)CS_MAX_CHAIN * CS_MAX_OP_INPUTS, sizeof *out->inputs);
  out->outputs = cs_calloc(CS_MAX_CHAIN, sizeof *out->outputs);
  if (!out->inputs || !out->outputs) {
    st = cs_no_memory("buffers", (size_t)CS_MAX_CHAIN * sizeof *out->inputs);
    goto done;
  }
  for (int i = 0; i < out->desc->n_inputs; i++) {
    CS_TRY(st,
           cs_measure_make_input(measuring->normals, &out->desc->inputs[i], i,
                                 cs_op_wants_positive(out->desc, i), &out->host_inputs[i]),
           done);
  }
  CS_TRY(st, cs_measure_make_weights(measuring->normals, out->desc, &out->weight, &out->bias),
         done);
  CS_TRY(st, add_set(out), done);
  CS_TRY(st, allocate_workspace(operation, out), done);
done:
  if (st != CS_OK) cs_op_buffers_destroy(out);
  return st;
}

void cs_op_buffers_destroy(cs_op_buffers *b) {
  for (int set = 0; b->inputs && b->outputs && set < b->n_sets; set++) {
    for (int i = 0; i < b->desc->n_inputs; i++) {
      guarded_release(b->backend, &b->inputs[set * CS_MAX_OP_INPUTS + i]);
    }
    guarded_release(b->backend, &b->outputs[set]);
  }
  if (b->workspace.allocation) guarded_release(b->backend, &b->workspace);
  for (size_t p = 0; p < b->n_pools; p++) {
    for (int i = 0; i < b->pools[p].n_copies; i++) {
      b->backend->vtable->release(b->backend, b->pools[p].copies[i]);
    }
    free(b->pools[p].copies);
    free(b->pools[p].packed);
  }
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(b->host_inputs[i]);
  free(b->pools);
  free(b->inputs);
  free(b->outputs);
  free(b->weight);
  free(b->bias);
  memset(b, 0, sizeof *b);
}

/* ---- Weights ---- */

static cs_status grow_pool(cs_op_buffers *b, cs_weight_pool *pool, int n) {
  while (pool->n_copies < n) {
    void *memory = NULL;
    CS_RETURN_IF_ERROR(b->backend->vtable->allocate(b->backend, pool->bytes, &memory));
    pool->copies[pool->n_copies++] = memory;
    CS_RETURN_IF_ERROR(b->backend->vtable->upload(b->backend, memory, pool->packed, pool->bytes));
  }
  return CS_OK;
}

static int find_pool(const cs_op_buffers *b, const void *packed, int64_t bytes) {
  for (size_t p = 0; p < b->n_pools; p++) {
    if (b->pools[p].bytes == bytes && memcmp(b->pools[p].packed, packed, (size_t)bytes) == 0) {
      return (int)p;
    }
  }
  return -1;
}

cs_status cs_op_buffers_pack(cs_op_buffers *b, cs_trial *trial) {
  cs_status st = CS_OK;
  void *packed = NULL;
  cs_weight_pool pool = {0};
  if (trial->weight_bytes == 0) return CS_OK;
  packed = cs_calloc(1, (size_t)trial->weight_bytes);
  if (!packed) return cs_no_memory("packed weights", (size_t)trial->weight_bytes);
  CS_TRY(st, b->backend->vtable->pack_weights(trial->exec, b->weight, b->bias, packed), done);
  trial->pool = find_pool(b, packed, trial->weight_bytes);
  if (trial->pool >= 0) goto done;
  CS_TRY(st, cs_grow(&b->pools, &b->pools_capacity, b->n_pools + 1, sizeof *b->pools), done);
  pool.copies = cs_calloc(CS_MAX_CHAIN, sizeof *pool.copies);
  if (!pool.copies) {
    st = cs_no_memory("weight copies", CS_MAX_CHAIN * sizeof *pool.copies);
    goto done;
  }
  pool.bytes = trial->weight_bytes;
  pool.packed = packed;
  packed = NULL;
  trial->pool = (int)b->n_pools;
  b->pools[b->n_pools++] = pool;
  st = grow_pool(b, &b->pools[trial->pool], 1);
done:
  free(packed);
  return st;
}

cs_status cs_op_buffers_grow(cs_op_buffers *b, int n) {
  while (b->n_sets < n) CS_RETURN_IF_ERROR(add_set(b));
  return CS_OK;
}

cs_status cs_op_buffers_grow_pool(cs_op_buffers *b, const cs_trial *trial, int n,
                                  int64_t most_bytes) {
  if (trial->pool < 0) return CS_OK;
  cs_weight_pool *pool = &b->pools[trial->pool];
  return grow_pool(b, pool, (int)cs_min_i64(n, cs_max_i64(1, most_bytes / pool->bytes)));
}

int64_t cs_op_buffers_set_bytes(const cs_op_buffers *b) {
  int64_t bytes = cs_tensor_span_bytes(&b->desc->output), weights = 0;
  for (int i = 0; i < b->desc->n_inputs; i++) bytes += cs_tensor_span_bytes(&b->desc->inputs[i]);
  for (size_t p = 0; p < b->n_pools; p++) weights = cs_max_i64(weights, b->pools[p].bytes);
  return bytes + weights;
}

cs_launch cs_op_buffers_launch(const cs_op_buffers *b, const cs_trial *trial, int set) {
  cs_launch launch = {.exec = trial->exec, .name = trial->candidate.id, .merged = -1};
  int at = set % b->n_sets;
  for (int i = 0; i < b->desc->n_inputs; i++) {
    launch.inputs[i] = b->inputs[at * CS_MAX_OP_INPUTS + i].base;
  }
  launch.output = b->outputs[at].base;
  if (trial->pool >= 0) {
    const cs_weight_pool *pool = &b->pools[trial->pool];
    launch.weights = pool->copies[set % pool->n_copies];
  }
  if (trial->workspace_bytes > 0) launch.workspace = b->workspace.base;
  return launch;
}
