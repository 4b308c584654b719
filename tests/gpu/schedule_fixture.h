/* What tests of schedules on the GPU share: the device, memory, candidates, and three convolutions
 * of one input. */
#ifndef CONVSCHED_TESTS_GPU_SCHEDULE_FIXTURE_H_
#define CONVSCHED_TESTS_GPU_SCHEDULE_FIXTURE_H_

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "gpu/open_device.h"

static cs_backend *device;

static inline void ok(cs_status st) {
  if (st != CS_OK) fail_msg("%s", cs_status_message(st));
}

static inline void *allocate(int64_t bytes) {
  void *memory = NULL;
  ok(device->vtable->allocate(device, bytes, &memory));
  return memory;
}

/* The first candidate of a family that begins so (NULL: of any). */
static inline cs_exec *prepare(const cs_op_desc *desc, const char *family) {
  cs_candidate_list list = {0};
  cs_enumerate_options options = {.workspace_limit = (int64_t)64 << 20, .deterministic = true};
  ok(device->vtable->enumerate(device, desc, &options, &list));
  cs_exec *exec = NULL;
  for (size_t i = 0; i < list.n && !exec; i++) {
    if (family && strncmp(list.items[i].family, family, strlen(family)) != 0) continue;
    ok(device->vtable->prepare(device, desc, &list.items[i], &exec));
  }
  assert_non_null(exec);
  cs_candidate_list_free(&list);
  return exec;
}

/* ---- Three convolutions of one input, one per family of implementation, on streams 0 … 2 ---- */

enum { CONVS = 3 };
typedef struct convs {
  int64_t n_in, n_out;
  float *x;
  cs_exec *execs[CONVS];
  void *outputs[CONVS], *weights[CONVS], *workspaces[CONVS];
  cs_launch launches[CONVS];
} convs;

/* 3 × 3 kernels over size × size images of 32 channels, 64 filters. */
static inline void convs_create(convs *c, int batch, int size) {
  static const char *const families[CONVS] = {"cudnn.graph", "cudnn.legacy", "cuda."};
  memset(c, 0, sizeof(*c));
  cs_shape in = {.rank = 4, .dims = {batch, 32, size, size}};
  cs_shape out = {.rank = 4, .dims = {batch, 64, size, size}};
  cs_op_desc d = {.op = CS_OP_CONV,
                  .attrs.conv = {.out_channels = 64,
                                 .group = 1,
                                 .kernel = {3, 3},
                                 .strides = {1, 1},
                                 .pads = {1, 1, 1, 1},
                                 .dilations = {1, 1},
                                 .bias = true},
                  .activation = {.kind = CS_ACT_RELU},
                  .has_bias = true,
                  .n_inputs = 1,
                  .precision = CS_PRECISION_TF32};
  d.inputs[0] = cs_tensor_dense(&in, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  d.output = cs_tensor_dense(&out, CS_DTYPE_F32, CS_LAYOUT_NCHW);
  c->n_in = (int64_t)batch * 32 * size * size;
  c->n_out = 2 * c->n_in;
  int64_t n_weight = cs_op_weight_elements(&d);
  float *host = malloc((size_t)(c->n_in + n_weight + 64) * 4);
  cs_rng rng;
  cs_rng_init(&rng, 1, 0);
  cs_rng_fill_normal(&rng, host, c->n_in + n_weight + 64, 0, 1);
  c->x = allocate(c->n_in * 4);
  ok(device->vtable->upload(device, c->x, host, c->n_in * 4));
  const float *weight = host + c->n_in;
  for (int i = 0; i < CONVS; i++) {
    c->execs[i] = prepare(&d, families[i]);
    int64_t bytes = device->vtable->exec_weight_bytes(c->execs[i]);
    void *packed = calloc(1, (size_t)bytes);
    ok(device->vtable->pack_weights(c->execs[i], weight, weight + n_weight, packed));
    c->weights[i] = allocate(bytes);
    ok(device->vtable->upload(device, c->weights[i], packed, bytes));
    free(packed);
    c->outputs[i] = allocate(c->n_out * 4);
    c->workspaces[i] = allocate(device->vtable->exec_workspace(c->execs[i]));
    c->launches[i] = (cs_launch){.merged = -1,
                                 .exec = c->execs[i],
                                 .name = "conv",
                                 .inputs = {c->x},
                                 .output = c->outputs[i],
                                 .weights = c->weights[i],
                                 .workspace = c->workspaces[i],
                                 .stream = i};
  }
  free(host);
}

static inline void convs_destroy(convs *c) {
  for (int i = 0; i < CONVS; i++) {
    device->vtable->release(device, c->outputs[i]);
    device->vtable->release(device, c->weights[i]);
    device->vtable->release(device, c->workspaces[i]);
    device->vtable->exec_destroy(c->execs[i]);
  }
  device->vtable->release(device, c->x);
}

/* All outputs of three runs from poisoned memory; free() releases. */
static inline float *convs_results(const convs *c, cs_schedule *schedule) {
  float *results = malloc((size_t)(CONVS * c->n_out) * 4);
  for (int i = 0; i < CONVS; i++)
    ok(device->vtable->fill(device, c->outputs[i], 0xFF, c->n_out * 4));
  for (int repeat = 0; repeat < 3; repeat++) ok(device->vtable->schedule_run(schedule));
  for (int i = 0; i < CONVS; i++)
    ok(device->vtable->download(device, results + i * c->n_out, c->outputs[i], c->n_out * 4));
  return results;
}

#endif
