/* Is a candidate's result right? Each candidate is run once on poisoned memory and compared with
 * the double-precision reference of the same inputs; guard bands show writes out of bounds.
 *
 * The whole output is compared where that is cheap. Else three images are: the first, the middle
 * one and the last, each against the reference of an operation on that image alone (what an
 * operation does to one image depends on no other). Guard bands are checked in either case. */
#include <stdlib.h>
#include <string.h>

#include "backend/reference/reference.h"
#include "profiler/measure.h"

#define POISON_BYTE 0xFF
/* Whole outputs are checked up to these sizes: elements, and FLOPs of a reference on the device and
 * on the host. */
#define WHOLE_ELEMENTS (1 << 20)
#define WHOLE_DEVICE_FLOPS 2e10
#define WHOLE_HOST_FLOPS 2e9
#define MAX_WORKSPACE_POISON ((int64_t)64 << 20)
/* Results that wait to be judged take at most this much memory. */
#define MAX_HELD_BYTES ((int64_t)1 << 30)

/* ---- What is compared ---- */

static bool images_independent(const cs_op_desc *desc) {
  int64_t n = desc->output.shape.dims[0];
  if (desc->output.shape.rank < 2) return false;
  for (int i = 0; i < desc->n_inputs; i++) {
    if (desc->inputs[i].shape.rank < 2 || desc->inputs[i].shape.dims[0] != n) return false;
  }
  if (desc->op == CS_OP_PAD) return desc->attrs.pad.pads[0] == 0 && desc->attrs.pad.pads[4] == 0;
  if (desc->op == CS_OP_SOFTMAX) return desc->attrs.axis.axis > 0;
  return desc->op != CS_OP_CONCAT && desc->op != CS_OP_FLATTEN;
}

static bool whole_is_cheap(const cs_backend *backend, const cs_op_desc *desc, int64_t elements) {
  double limit = backend->vtable->reference ? WHOLE_DEVICE_FLOPS : WHOLE_HOST_FLOPS;
  return elements <= WHOLE_ELEMENTS && cs_op_flops(desc) <= limit;
}

static int64_t image_bytes(const cs_tensor_desc *desc, int64_t image) {
  return image * desc->strides[0] * cs_dtype_size(desc->dtype);
}

/* Fills desc, regions' offsets and images[n_regions]. */
static void choose_regions(cs_checker *c, const cs_backend *backend, const cs_op_desc *desc,
                           int64_t elements, int64_t images[3]) {
  int64_t n = desc->output.shape.dims[0];
  c->desc = *desc;
  c->n_regions = 1;
  images[0] = 0;
  if (whole_is_cheap(backend, desc, elements) || n <= 3 || !images_independent(desc)) return;
  c->n_regions = 3;
  images[1] = n / 2;
  images[2] = n - 1;
  for (int i = 0; i < desc->n_inputs; i++) c->desc.inputs[i].shape.dims[0] = 1;
  c->desc.output.shape.dims[0] = 1;
  for (int r = 0; r < 3; r++) c->regions[r].offset = image_bytes(&desc->output, images[r]);
}

/* ---- The reference ---- */

static cs_status host_reference(const cs_op_buffers *buffers, const cs_checker *c, int64_t image,
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
    cs_tensor_to_f64(&c->desc.inputs[i], memory + image_bytes(&buffers->desc->inputs[i], image),
                     inputs[i]);
    pointers[i] = inputs[i];
  }
  st = cs_reference_run(&c->desc, pointers, buffers->weight, buffers->bias, region->value,
                        region->magnitude, 0);
done:
  for (int i = 0; i < CS_MAX_OP_INPUTS; i++) free(inputs[i]);
  return st;
}

static cs_status device_reference(const cs_op_buffers *buffers, const cs_checker *c, int64_t image,
                                  const cs_check_region *region) {
  const void *inputs[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < c->desc.n_inputs; i++) {
    inputs[i] = buffers->inputs[i].base + image_bytes(&buffers->desc->inputs[i], image);
  }
  return buffers->backend->vtable->reference(buffers->backend, &c->desc, inputs, buffers->weight,
                                             buffers->bias, region->value, region->magnitude);
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

cs_status cs_checker_create(const cs_measuring *measuring, const cs_op_buffers *buffers,
                            cs_checker *out) {
  cs_status st = CS_OK;
  int64_t images[3] = {0}, elements = 0;
  memset(out, 0, sizeof *out);
  CS_TRY(st, cs_shape_elements(&buffers->desc->output.shape, &elements), done);
  choose_regions(out, measuring->backend, buffers->desc, elements, images);
  CS_TRY(st, cs_shape_elements(&out->desc.output.shape, &out->elements), done);
  out->span = cs_tensor_span_bytes(&out->desc.output);
  CS_TRY(st, find_owned(out), done);
  for (int r = 0; r < out->n_regions; r++) {
    cs_check_region *region = &out->regions[r];
    region->value = cs_calloc((size_t)out->elements, sizeof(double));
    region->magnitude = cs_calloc((size_t)out->elements, sizeof(double));
    if (!region->value || !region->magnitude) {
      st = cs_no_memory("the reference", (size_t)out->elements * sizeof(double));
      goto done;
    }
    st = measuring->backend->vtable->reference ? device_reference(buffers, out, images[r], region)
                                               : host_reference(buffers, out, images[r], region);
    if (st != CS_OK) goto done;
  }
done:
  if (st != CS_OK) cs_checker_destroy(out);
  return cs_annotate(st, "the reference result: ");
}

void cs_checker_destroy(cs_checker *c) {
  for (int r = 0; r < c->n_regions; r++) {
    free(c->regions[r].value);
    free(c->regions[r].magnitude);
  }
  free(c->owned);
  memset(c, 0, sizeof *c);
}

/* ---- Judging, on the host alone ---- */

static bool gaps_untouched(const cs_checker *c, const unsigned char *memory) {
  for (int64_t i = 0; c->owned && i < c->span; i++) {
    if (!c->owned[i] && memory[i] != POISON_BYTE) return false;
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
  double rel_l2 = 0, max_scaled = 0;
  bool zero = true;
  float *result = cs_calloc((size_t)c->elements, sizeof *result);
  if (!result) return cs_no_memory("a result to check", (size_t)c->elements * sizeof *result);
  cs_tensor_to_f32(&c->desc.output, memory, result);
  cs_error_measure error = cs_measure_error(result, region->value, region->magnitude, c->elements);
  cs_tolerance(&c->desc, trial->candidate.notes, &rel_l2, &max_scaled);
  cs_status st = padding_is_zero(c, memory, result, &zero);
  free(result);
  if (st != CS_OK) return st;
  if (!error.finite) {
    cs_trial_reject_text(trial, "wrong result: NaN or infinite, or not written at all");
  } else if (!(error.rel_l2 <= rel_l2) || !(error.max_scaled <= max_scaled)) {
    cs_trial_reject_text(trial,
                         "wrong result: relative L2 error %.3g (limit %.3g), largest scaled error "
                         "%.3g (limit %.3g)",
                         error.rel_l2, rel_l2, error.max_scaled, max_scaled);
  } else if (!gaps_untouched(c, memory)) {
    cs_trial_reject_text(trial, "writes between the elements of its output");
  } else if (!zero) {
    cs_trial_reject_text(trial, "leaves lanes that pad the last channel block other than zero");
  }
  return CS_OK;
}

typedef struct judge_work {
  const cs_checker *checker;
  cs_trial **trials;
} judge_work;

static cs_status judge_body(void *user, int64_t index, int worker) {
  const judge_work *work = user;
  cs_trial *trial = work->trials[index];
  cs_status st = CS_OK;
  (void)worker;
  for (int r = 0; r < work->checker->n_regions && !trial->rejected && st == CS_OK; r++) {
    st = judge_region(work->checker, &work->checker->regions[r],
                      trial->held + r * work->checker->span, trial);
  }
  free(trial->held);
  trial->held = NULL;
  return st;
}

/* ---- Running ---- */

static cs_status check_guards(const cs_op_buffers *buffers, cs_trial *trial) {
  bool intact = true;
  int64_t span = cs_tensor_span_bytes(&buffers->desc->output);
  CS_RETURN_IF_ERROR(cs_guard_intact(buffers->backend, &buffers->outputs[0], span, &intact));
  if (!intact) {
    cs_trial_reject_text(trial, "writes outside of its output");
    return CS_OK;
  }
  if (trial->workspace_bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(
      cs_guard_intact(buffers->backend, &buffers->workspace, trial->workspace_bytes, &intact));
  if (!intact) cs_trial_reject_text(trial, "writes outside of its workspace");
  return CS_OK;
}

static cs_status poison(const cs_op_buffers *buffers, const cs_trial *trial) {
  cs_backend *backend = buffers->backend;
  int64_t span = cs_tensor_span_bytes(&buffers->desc->output);
  CS_RETURN_IF_ERROR(backend->vtable->fill(backend, buffers->outputs[0].base, POISON_BYTE, span));
  CS_RETURN_IF_ERROR(cs_guard_arm(backend, &buffers->outputs[0], span));
  if (trial->workspace_bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(
      backend->vtable->fill(backend, buffers->workspace.base, POISON_BYTE,
                            cs_min_i64(trial->workspace_bytes, MAX_WORKSPACE_POISON)));
  return cs_guard_arm(backend, &buffers->workspace, trial->workspace_bytes);
}

cs_status cs_device_alive(const cs_op_buffers *buffers) {
  const cs_guarded *memory = &buffers->outputs[0];
  unsigned char sent[16] = "still there?", received[16] = {0};
  cs_backend *backend = buffers->backend;
  CS_RETURN_IF_ERROR(
      backend->vtable->upload(backend, memory->allocation, sent, (int64_t)sizeof sent));
  CS_RETURN_IF_ERROR(
      backend->vtable->download(backend, received, memory->allocation, (int64_t)sizeof received));
  if (memcmp(sent, received, sizeof sent) == 0) return CS_OK;
  return cs_error(CS_CODE_DEVICE, "the device no longer keeps what is written to it");
}

/* Plain stream calls, so that what is loaded at first use is loaded before anything is captured. */
static cs_status run_once(const cs_op_buffers *buffers, cs_trial *trial) {
  const cs_backend_vtable *vtable = buffers->backend->vtable;
  cs_status st = CS_OK;
  cs_schedule *schedule = NULL;
  cs_launch launch = cs_op_buffers_launch(buffers, trial, 0);
  CS_TRY(st,
         vtable->schedule_create(buffers->backend, &launch, 1, &cs_one_stream, false, &schedule),
         done);
  double start = cs_now_seconds();
  CS_TRY(st, vtable->schedule_run(schedule), done);
  trial->rough_us = 1e6 * (cs_now_seconds() - start);
  /* A second launch times better, unless the first says that it is not worth the wait. */
  if (trial->rough_us < 20e3) st = vtable->schedule_latency(schedule, 1, &trial->rough_us);
done:
  if (schedule) vtable->schedule_destroy(schedule);
  return st;
}

static cs_status hold_results(const cs_op_buffers *buffers, const cs_checker *c, cs_trial *trial) {
  trial->held = malloc((size_t)(c->span * c->n_regions));
  if (!trial->held) return cs_no_memory("a result to check", (size_t)(c->span * c->n_regions));
  for (int r = 0; r < c->n_regions; r++) {
    CS_RETURN_IF_ERROR(buffers->backend->vtable->download(
        buffers->backend, trial->held + r * c->span,
        buffers->outputs[0].base + c->regions[r].offset, c->span));
  }
  return CS_OK;
}

static cs_status run_trial(cs_op_buffers *buffers, const cs_checker *checker, cs_trial *trial) {
  cs_status st = cs_op_buffers_pack(buffers, trial);
  if (st != CS_OK) return cs_trial_reject(trial, "its weights cannot be packed", st);
  CS_RETURN_IF_ERROR(poison(buffers, trial));
  st = run_once(buffers, trial);
  if (st != CS_OK) {
    CS_RETURN_IF_ERROR(cs_trial_reject(trial, "failed to run", st));
    return cs_device_alive(buffers);
  }
  CS_RETURN_IF_ERROR(check_guards(buffers, trial));
  return trial->rejected ? CS_OK : hold_results(buffers, checker, trial);
}

cs_status cs_checker_check_all(const cs_measuring *measuring, cs_op_buffers *buffers,
                               const cs_checker *checker, cs_operation *operation) {
  cs_status st = CS_OK;
  int64_t held_each = checker->span * checker->n_regions;
  int batch = (int)cs_max_i64(1, cs_min_i64(operation->n_trials, MAX_HELD_BYTES / held_each));
  judge_work work = {.checker = checker};
  work.trials = cs_calloc((size_t)batch, sizeof(cs_trial *));
  if (!work.trials) return cs_no_memory("trials", (size_t)batch * sizeof(cs_trial *));
  for (int next = 0; next < operation->n_trials && st == CS_OK;) {
    int n = 0;
    for (; next < operation->n_trials && n < batch && st == CS_OK; next++) {
      cs_trial *trial = &operation->trials[next];
      if (trial->rejected) continue;
      if (cs_measuring_cancelled(measuring)) {
        st = cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
        break;
      }
      st = cs_annotate(run_trial(buffers, checker, trial), "%s: candidate %s: ", operation->name,
                       trial->candidate.id);
      if (trial->held) work.trials[n++] = trial;
    }
    if (st == CS_OK) st = cs_parallel_for(n, 0, judge_body, &work);
  }
  for (int i = 0; i < operation->n_trials; i++) {
    free(operation->trials[i].held);
    operation->trials[i].held = NULL;
  }
  free(work.trials);
  return st;
}
