/* The anchor: one fixed convolution that is sampled between the samples of others. It warms the
 * clock up, and a change of its time shows that the clock drifted. */
#include <stdlib.h>
#include <string.h>

#include "profiler/measure.h"

#define ANCHOR_CHAIN_US 200.0

struct cs_anchor {
  cs_operation operation;
  cs_op_desc desc;
  cs_op_buffers buffers;
  cs_schedule *schedule;
  double cost_us;
};

cs_op_desc cs_measure_conv_desc(int64_t images, int64_t channels, int64_t extent, int64_t kernel,
                                cs_precision precision, cs_layout layout) {
  cs_op_desc desc;
  cs_shape shape = {.rank = 4, .dims = {images, channels, extent, extent}};
  cs_dtype storage = cs_precision_storage(precision);
  memset(&desc, 0, sizeof desc);
  desc.op = CS_OP_CONV;
  desc.attrs.conv = (cs_conv_attrs){.out_channels = channels,
                                    .group = 1,
                                    .kernel = {kernel, kernel},
                                    .strides = {1, 1},
                                    .dilations = {1, 1}};
  for (int i = 0; i < 4; i++) desc.attrs.conv.pads[i] = kernel / 2;
  desc.n_inputs = 1;
  desc.inputs[0] = desc.output = cs_tensor_dense(&shape, storage, layout);
  desc.precision = precision;
  return desc;
}

/* The chain of the first candidate that runs. */
static cs_status start(const cs_measuring *measuring, cs_anchor *anchor, cs_trial *trial) {
  const cs_backend_vtable *vtable = measuring->backend->vtable;
  cs_status st = CS_OK;
  double us = 0;
  cs_launch chain[16];
  CS_TRY(st, cs_op_buffers_pack(&anchor->buffers, trial), done);
  chain[0] = cs_op_buffers_launch(&anchor->buffers, trial, 0);
  CS_TRY(st,
         vtable->schedule_create(measuring->backend, chain, 1, &cs_one_stream, false,
                                 &anchor->schedule),
         done);
  CS_TRY(st, vtable->schedule_run(anchor->schedule), done);
  CS_TRY(st, vtable->schedule_latency(anchor->schedule, 1, &us), done);
  vtable->schedule_destroy(anchor->schedule);
  anchor->schedule = NULL;
  int n = us >= ANCHOR_CHAIN_US ? 1 : us <= ANCHOR_CHAIN_US / 16 ? 16 : (int)(ANCHOR_CHAIN_US / us);
  for (int i = 1; i < n; i++) chain[i] = chain[0];
  CS_TRY(st,
         vtable->schedule_create(measuring->backend, chain, n, &cs_one_stream, true,
                                 &anchor->schedule),
         done);
  CS_TRY(st, vtable->schedule_run(anchor->schedule), done);
  CS_TRY(st, cs_anchor_sample(anchor, &anchor->cost_us), done);
done:
  if (st != CS_OK && anchor->schedule) {
    vtable->schedule_destroy(anchor->schedule);
    anchor->schedule = NULL;
  }
  return st;
}

static cs_status start_first_that_runs(const cs_measuring *measuring, cs_anchor *anchor) {
  for (int i = 0; i < anchor->operation.n_trials && !anchor->schedule; i++) {
    cs_trial *trial = &anchor->operation.trials[i];
    if (trial->rejected) continue;
    cs_status st = start(measuring, anchor, trial);
    if (st != CS_OK) {
      CS_RETURN_IF_ERROR(cs_trial_reject(trial, "failed to run", st));
      CS_RETURN_IF_ERROR(cs_device_alive(&anchor->buffers));
    }
  }
  return CS_OK;
}

cs_status cs_anchor_create(const cs_measuring *measuring, cs_anchor **out) {
  cs_status st = CS_OK;
  cs_layout layouts[CS_MAX_DEVICE_LAYOUTS];
  cs_backend *backend = measuring->backend;
  cs_anchor *anchor = cs_calloc(1, sizeof *anchor);
  *out = NULL;
  if (!anchor) return cs_no_memory("the anchor", sizeof *anchor);
  if (backend->vtable->layouts(backend, CS_PRECISION_F32, layouts) < 1) goto done;
  anchor->desc = cs_measure_conv_desc(1, 64, 28, 3, CS_PRECISION_F32, layouts[0]);
  anchor->operation.desc = &anchor->desc;
  anchor->operation.name = "the anchor";
  CS_TRY(st, cs_op_signature(&anchor->desc, &anchor->operation.signature), done);
  CS_TRY(st, cs_prepare_operations(measuring, &anchor->operation, 1, 4), done);
  CS_TRY(st, cs_op_buffers_create(measuring, &anchor->operation, &anchor->buffers), done);
  CS_TRY(st, start_first_that_runs(measuring, anchor), done);
  if (!anchor->schedule) goto done;
  *out = anchor;
  anchor = NULL;
done:
  cs_anchor_destroy(anchor);
  return cs_annotate(st, "warming up: ");
}

void cs_anchor_destroy(cs_anchor *anchor) {
  if (!anchor) return;
  cs_backend *backend = anchor->buffers.backend;
  if (backend) {
    if (anchor->schedule) backend->vtable->schedule_destroy(anchor->schedule);
    cs_operation_clear(backend, &anchor->operation);
    cs_op_buffers_destroy(&anchor->buffers);
  } else {
    free(anchor->operation.signature);
  }
  free(anchor);
}

cs_status cs_anchor_warm_up(cs_anchor *anchor, double seconds) {
  double us = 0, start_time = cs_now_seconds();
  while (anchor && cs_now_seconds() - start_time < seconds) {
    CS_RETURN_IF_ERROR(anchor->buffers.backend->vtable->schedule_b2b(anchor->schedule, 10, &us));
  }
  return CS_OK;
}

cs_status cs_anchor_sample(cs_anchor *anchor, double *us) {
  return anchor->buffers.backend->vtable->schedule_latency(anchor->schedule, 1, us);
}

double cs_anchor_cost_us(const cs_anchor *anchor) {
  return anchor ? anchor->cost_us : 0;
}
