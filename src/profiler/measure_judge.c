#include "profiler/measure_judge.h"

#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"

/* ---- The reference, on the device that compares ---- */

static cs_status expect_on_device(const cs_op_buffers *buffers, cs_checker *c) {
  const void *inputs[CS_MAX_EXPECTED * CS_MAX_OP_INPUTS] = {NULL};
  const int n_inputs = c->desc.n_inputs;
  for (int r = 0; r < c->n_regions; r++) {
    for (int i = 0; i < n_inputs; i++) {
      inputs[r * n_inputs + i] = buffers->inputs[i].base + c->regions[r].inputs_at[i];
    }
  }
  return buffers->backend->vtable->expected_create(buffers->backend, &c->desc, inputs, c->n_regions,
                                                   buffers->weight, buffers->bias, &c->expected);
}

/* ---- The reference, as arrays of the host ---- */

static cs_status host_reference(const cs_op_buffers *buffers, const cs_checker *c,
                                const cs_check_region *region) {
  cs_status st = CS_OK;
  double *inputs[CS_MAX_OP_INPUTS] = {NULL};
  const double *pointers[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < c->desc.n_inputs; i++) {
    int64_t n = 0;
    CS_TRY(st, cs_shape_elements(&c->desc.inputs[i].shape, &n), done);
    inputs[i] = cs_calloc((size_t)n, sizeof(double));
    if (!inputs[i]) {
      st = cs_no_memory("the reference's input", (size_t)n * sizeof(double));
      goto done;
    }
    const char *memory = buffers->host_inputs[i];
    cs_tensor_to_f64(&c->desc.inputs[i], memory + region->inputs_at[i], inputs[i]);
    pointers[i] = inputs[i];
  }
  st = cs_reference_run(&c->desc, pointers, buffers->weight, buffers->bias, region->value,
                        region->magnitude, 0);
done:
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(inputs[i]);
  return st;
}

static cs_status device_reference(const cs_op_buffers *buffers, const cs_checker *c,
                                  const cs_check_region *region) {
  const void *inputs[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < c->desc.n_inputs; i++) {
    inputs[i] = buffers->inputs[i].base + region->inputs_at[i];
  }
  return buffers->backend->vtable->reference(buffers->backend, &c->desc, inputs, buffers->weight,
                                             buffers->bias, region->value, region->magnitude);
}

static cs_status expect_on_host(const cs_op_buffers *buffers, const cs_checker *c,
                                cs_check_region *region) {
  region->value = cs_calloc((size_t)c->elements, sizeof(double));
  region->magnitude = cs_calloc((size_t)c->elements, sizeof(double));
  if (!region->value || !region->magnitude) {
    return cs_no_memory("the reference", (size_t)c->elements * sizeof(double));
  }
  return buffers->backend->vtable->reference ? device_reference(buffers, c, region)
                                             : host_reference(buffers, c, region);
}

/* Which bytes of the span belong to the view: those that writing it sets whatever they were. */
static cs_status find_owned(cs_checker *c) {
  if (cs_tensor_is_dense(&c->desc.output)) return CS_OK;
  cs_status st = CS_OK;
  c->owned = cs_calloc(1, (size_t)c->span);
  unsigned char *over_zeros = cs_calloc(1, (size_t)c->span), *over_ones = malloc((size_t)c->span);
  float *zeros = cs_calloc((size_t)c->elements, sizeof *zeros);
  if (!c->owned || !over_zeros || !over_ones || !zeros) {
    st = cs_no_memory("the mask of a view", (size_t)c->span);
    goto done;
  }
  memset(over_ones, 0xFF, (size_t)c->span);
  cs_tensor_from_f32(&c->desc.output, zeros, over_zeros);
  cs_tensor_from_f32(&c->desc.output, zeros, over_ones);
  for (int64_t i = 0; i < c->span; i++) c->owned[i] = over_zeros[i] == over_ones[i];
done:
  free(over_zeros);
  free(over_ones);
  free(zeros);
  return st;
}

cs_status cs_judge_expect(const cs_op_buffers *buffers, cs_checker *c) {
  c->backend = buffers->backend;
  if (c->backend->vtable->expected_create) return expect_on_device(buffers, c);
  CS_RETURN_IF_ERROR(find_owned(c));
  for (int r = 0; r < c->n_regions; r++) {
    CS_RETURN_IF_ERROR(expect_on_host(buffers, c, &c->regions[r]));
  }
  return CS_OK;
}

void cs_judge_forget(cs_checker *c) {
  if (c->expected) c->backend->vtable->expected_destroy(c->expected);
  c->expected = NULL;
  for (int r = 0; r < CS_MAX_EXPECTED; r++) {
    free(c->regions[r].value);
    free(c->regions[r].magnitude);
    c->regions[r].value = c->regions[r].magnitude = NULL;
  }
  free(c->owned);
  c->owned = NULL;
}

/* ---- The verdict ---- */

typedef struct findings { /* on one region */
  cs_compared compared;
  bool lanes_zero; /* those that pad the last channel block */
} findings;

static void reject_what_is_wrong(const cs_checker *c, const findings *found, cs_trial *trial) {
  double rel_l2 = 0, max_scaled = 0;
  const cs_error_measure *error = &found->compared.error;
  cs_tolerance(&c->desc, trial->candidate.notes, &rel_l2, &max_scaled);
  if (!error->finite) {
    cs_trial_reject_text(trial, "wrong result: NaN or infinite, or not written at all");
  } else if (!(error->rel_l2 <= rel_l2) || !(error->max_scaled <= max_scaled)) {
    cs_trial_reject_text(trial,
                         "wrong result: relative L2 error %.3g (limit %.3g), largest scaled error "
                         "%.3g (limit %.3g)",
                         error->rel_l2, rel_l2, error->max_scaled, max_scaled);
  } else if (!found->compared.gaps_kept) {
    cs_trial_reject_text(trial, "writes between the elements of its output");
  } else if (!found->lanes_zero) {
    cs_trial_reject_text(trial, "leaves lanes that pad the last channel block other than zero");
  }
}

/* ---- Judging right behind the run ---- */

/* No device that compares has layouts with lanes to pad. */
static cs_status judge_on_device(const cs_op_buffers *buffers, const cs_checker *c,
                                 cs_trial *trial) {
  const void *outputs[CS_MAX_EXPECTED] = {NULL};
  findings found = {.lanes_zero = true};
  cs_compared compared[CS_MAX_EXPECTED];
  for (int r = 0; r < c->n_regions; r++) {
    outputs[r] = buffers->outputs[0].base + c->regions[r].output_at;
  }
  CS_RETURN_IF_ERROR(
      c->backend->vtable->expected_compare(c->expected, outputs, CS_POISON_BYTE, compared));
  for (int r = 0; r < c->n_regions && !trial->rejected; r++) {
    found.compared = compared[r];
    reject_what_is_wrong(c, &found, trial);
  }
  return CS_OK;
}

static cs_status hold_result(const cs_op_buffers *buffers, const cs_checker *c, cs_trial *trial) {
  trial->held = malloc((size_t)(c->span * c->n_regions));
  if (!trial->held) return cs_no_memory("a result to check", (size_t)(c->span * c->n_regions));
  for (int r = 0; r < c->n_regions; r++) {
    CS_RETURN_IF_ERROR(
        c->backend->vtable->download(c->backend, trial->held + r * c->span,
                                     buffers->outputs[0].base + c->regions[r].output_at, c->span));
  }
  return CS_OK;
}

cs_status cs_judge_result(const cs_op_buffers *buffers, const cs_checker *c, cs_trial *trial) {
  return c->expected ? judge_on_device(buffers, c, trial) : hold_result(buffers, c, trial);
}

/* ---- Judging what is held, on the host alone ---- */

static bool gaps_kept(const cs_checker *c, const unsigned char *memory) {
  for (int64_t i = 0; c->owned && i < c->span; i++) {
    if (!c->owned[i] && memory[i] != CS_POISON_BYTE) return false;
  }
  return true;
}

/* Lanes that pad the last channel block must be zero: the next operation reads them. */
static cs_status padding_is_zero(const cs_checker *c, const unsigned char *memory,
                                 const float *result, bool *zero) {
  const cs_tensor_desc *output = &c->desc.output;
  *zero = true;
  if (output->shape.rank != 4 || output->shape.dims[1] % cs_layout_granule(output->layout) == 0) {
    return CS_OK;
  }
  unsigned char *again = malloc((size_t)c->span);
  if (!again) return cs_no_memory("a result to check", (size_t)c->span);
  memcpy(again, memory, (size_t)c->span);
  cs_tensor_from_f32(output, result, again);
  *zero = memcmp(again, memory, (size_t)c->span) == 0;
  free(again);
  return CS_OK;
}

static cs_status judge_region(const cs_checker *c, const cs_check_region *region,
                              const unsigned char *memory, cs_trial *trial) {
  findings found;
  float *result = cs_calloc((size_t)c->elements, sizeof *result);
  if (!result) return cs_no_memory("a result to check", (size_t)c->elements * sizeof *result);
  cs_tensor_to_f32(&c->desc.output, memory, result);
  found.compared.error = cs_measure_error(result, region->value, region->magnitude, c->elements);
  found.compared.gaps_kept = gaps_kept(c, memory);
  cs_status st = padding_is_zero(c, memory, result, &found.lanes_zero);
  free(result);
  if (st == CS_OK) reject_what_is_wrong(c, &found, trial);
  return st;
}

typedef struct judge_work {
  const cs_checker *checker;
  cs_trial **trials;
} judge_work;

static cs_status judge_body(void *user, int64_t index, int worker) {
  const judge_work *work = user;
  const cs_checker *c = work->checker;
  cs_trial *trial = work->trials[index];
  cs_status st = CS_OK;
  (void)worker;
  for (int r = 0; r < c->n_regions && !trial->rejected && st == CS_OK; r++) {
    st = judge_region(c, &c->regions[r], trial->held + r * c->span, trial);
  }
  free(trial->held);
  trial->held = NULL;
  return st;
}

cs_status cs_judge_held(const cs_checker *checker, cs_trial **trials, int n) {
  judge_work work = {checker, trials};
  return cs_parallel_for(n, 0, judge_body, &work);
}
