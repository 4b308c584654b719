/* Is a candidate's result right? Each candidate is run once on poisoned memory and compared with
 * the double-precision reference of the same inputs; guard bands show writes out of bounds.
 *
 * The whole output is compared where that is cheap. Else three images are: the first, the middle
 * one and the last, each against the reference of an operation on that image alone (what an
 * operation does to one image depends on no other). Guard bands are checked in either case. */
#include <stdlib.h>
#include <string.h>

#include "profiler/measure_judge.h"

/* Whole outputs are checked up to these sizes: elements, and FLOPs of a reference on the device and
 * on the host. */
#define WHOLE_ELEMENTS (1 << 20)
#define WHOLE_DEVICE_FLOPS 2e10
#define WHOLE_HOST_FLOPS 2e9
#define MAX_WORKSPACE_POISON ((int64_t)64 << 20)
/* Results that wait to be judged take at most this much memory. */
#define MAX_HELD_BYTES ((int64_t)1 << 30)

/* ---- What is compared ---- */

/* Every image of the output from the same image of the inputs, and the constant the same for all of
 * them. A matrix is an image whole. */
static bool operands_by_image(const cs_op_desc *desc) {
  const cs_shape *operand = &desc->attrs.binary.operand;
  if (desc->op == CS_OP_MATMUL && desc->output.shape.rank < 3) return false;
  for (int i = 0; i < desc->n_inputs; i++) {
    if (desc->inputs[i].shape.rank != desc->output.shape.rank) return false;
  }
  return operand->rank < desc->output.shape.rank || operand->dims[0] == 1;
}

static bool slices_images(const cs_slice_attrs *slice) {
  for (int k = 0; k < slice->n_axes; k++) {
    if (slice->axes[k] == 0) return true;
  }
  return false;
}

static bool images_independent(const cs_op_desc *desc) {
  int64_t n = desc->output.shape.dims[0];
  if (desc->output.shape.rank < 2) return false;
  for (int i = 0; i < desc->n_inputs; i++) {
    if (desc->inputs[i].shape.rank < 2 || desc->inputs[i].shape.dims[0] != n) return false;
  }
  bool reduced[CS_MAX_RANK];
  if (cs_op_reduces(desc, reduced)) return !reduced[0];
  if (cs_op_takes_operand(desc->op)) return operands_by_image(desc);
  if (desc->op == CS_OP_PAD) {
    const cs_pad_attrs *pad = &desc->attrs.pad;
    return pad->pads[0] == 0 && pad->pads[pad->rank] == 0;
  }
  if (desc->op == CS_OP_TRANSPOSE) {
    const cs_transpose_attrs *transpose = &desc->attrs.transpose;
    return transpose->perm[0] == 0 &&
           (!transpose->input_shape.rank || transpose->input_shape.dims[0] == n);
  }
  if (desc->op == CS_OP_SLICE) return !slices_images(&desc->attrs.slice);
  if (desc->op == CS_OP_SOFTMAX) return desc->attrs.axis.axis > 0;
  return desc->op != CS_OP_CONCAT && !cs_op_keeps_order(desc->op);
}

static bool whole_is_cheap(const cs_backend *backend, const cs_op_desc *desc, int64_t elements) {
  double limit = backend->vtable->reference ? WHOLE_DEVICE_FLOPS : WHOLE_HOST_FLOPS;
  return elements <= WHOLE_ELEMENTS && cs_op_flops(desc) <= limit;
}

static int64_t image_bytes(const cs_tensor_desc *desc, int64_t image) {
  return image * desc->strides[0] * cs_dtype_size(desc->dtype);
}

/* Fills desc and where the regions are. */
static void choose_regions(cs_checker *c, const cs_backend *backend, const cs_op_desc *desc,
                           int64_t elements) {
  int64_t n = desc->output.shape.dims[0];
  const int64_t images[CS_MAX_EXPECTED] = {0, n / 2, n - 1};
  c->desc = *desc;
  c->n_regions = 1;
  if (whole_is_cheap(backend, desc, elements) || n <= 3 || !images_independent(desc)) return;
  c->n_regions = CS_MAX_EXPECTED;
  c->desc.output.shape.dims[0] = 1;
  for (int i = 0; i < desc->n_inputs; i++) c->desc.inputs[i].shape.dims[0] = 1;
  if (desc->op == CS_OP_TRANSPOSE) c->desc.attrs.transpose.input_shape.dims[0] = 1;
  for (int r = 0; r < c->n_regions; r++) {
    c->regions[r].output_at = image_bytes(&desc->output, images[r]);
    for (int i = 0; i < desc->n_inputs; i++) {
      c->regions[r].inputs_at[i] = image_bytes(&desc->inputs[i], images[r]);
    }
  }
}

cs_status cs_checker_create(const cs_measuring *measuring, const cs_op_buffers *buffers,
                            cs_checker *out) {
  cs_status st = CS_OK;
  int64_t elements = 0;
  memset(out, 0, sizeof *out);
  CS_TRY(st, cs_shape_elements(&buffers->desc->output.shape, &elements), done);
  choose_regions(out, measuring->backend, buffers->desc, elements);
  CS_TRY(st, cs_shape_elements(&out->desc.output.shape, &out->elements), done);
  out->span = cs_tensor_span_bytes(&out->desc.output);
  st = cs_judge_expect(buffers, out);
done:
  if (st != CS_OK) cs_checker_destroy(out);
  return cs_annotate(st, "the reference result: ");
}

void cs_checker_destroy(cs_checker *c) {
  cs_judge_forget(c);
  memset(c, 0, sizeof *c);
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
  CS_RETURN_IF_ERROR(
      backend->vtable->fill(backend, buffers->outputs[0].base, CS_POISON_BYTE, span));
  CS_RETURN_IF_ERROR(cs_guard_arm(backend, &buffers->outputs[0], span));
  if (trial->workspace_bytes == 0) return CS_OK;
  CS_RETURN_IF_ERROR(
      backend->vtable->fill(backend, buffers->workspace.base, CS_POISON_BYTE,
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

/* First launches that take longer than this are not repeated. Loading what is loaded at first use,
 * and waiting for other processes, take tens of milliseconds: that says nothing of a candidate. */
#define MOST_FIRST_US 200e3

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
  if (trial->rough_us < MOST_FIRST_US) st = vtable->schedule_latency(schedule, 1, &trial->rough_us);
done:
  if (schedule) vtable->schedule_destroy(schedule);
  return st;
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
  return trial->rejected ? CS_OK : cs_judge_result(buffers, checker, trial);
}

cs_status cs_checker_check_all(const cs_measuring *measuring, cs_op_buffers *buffers,
                               const cs_checker *checker, cs_operation *operation) {
  cs_status st = CS_OK;
  int64_t held_each = checker->span * checker->n_regions;
  int batch = (int)cs_max_i64(1, cs_min_i64(operation->n_trials, MAX_HELD_BYTES / held_each));
  cs_trial **held = cs_calloc((size_t)batch, sizeof(cs_trial *));
  if (!held) return cs_no_memory("trials", (size_t)batch * sizeof(cs_trial *));
  for (int next = 0; next < operation->n_trials && st == CS_OK;) {
    int n = 0;
    for (; next < operation->n_trials && n < batch && st == CS_OK; next++) {
      cs_trial *trial = &operation->trials[next];
      if (trial->rejected) continue;
      if (cs_measuring_cancelled(measuring)) {
        st = cs_error(CS_CODE_CANCELLED, "profiling was interrupted; what was measured is kept");
        break;
      }
      cs_measuring_tell(measuring, operation->name, trial->candidate.id);
      st = cs_annotate(run_trial(buffers, checker, trial), "%s: candidate %s: ", operation->name,
                       trial->candidate.id);
      if (trial->held) held[n++] = trial;
    }
    if (st == CS_OK) st = cs_judge_held(checker, held, n);
  }
  for (int i = 0; i < operation->n_trials; i++) {
    free(operation->trials[i].held);
    operation->trials[i].held = NULL;
  }
  free(held);
  return st;
}
