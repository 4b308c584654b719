/* The planted backend as a device that compares results where they are. */
#ifndef CONVSCHED_TESTS_PROFILER_FAKE_EXPECTED_H_
#define CONVSCHED_TESTS_PROFILER_FAKE_EXPECTED_H_

#include "unit/profiler_fake.h"

struct cs_expected {
  fake_backend *backend;
  cs_op_desc desc;
  int n;
  int64_t elements;
  double *value, *magnitude; /* [n × elements] */
};

static inline void fake_expected_destroy(cs_expected *e) {
  e->backend->expected--;
  free(e->value);
  free(e->magnitude);
  free(e);
}

static inline cs_status fake_expect_one(cs_expected *e, int at, const void *const *inputs,
                                        const float *weight, const float *bias) {
  double *doubles[CS_MAX_OP_INPUTS] = {NULL};
  for (int i = 0; i < e->desc.n_inputs; i++) {
    int64_t n = 0;
    CS_RETURN_IF_ERROR(cs_shape_elements(&e->desc.inputs[i].shape, &n));
    doubles[i] = cs_calloc((size_t)n, sizeof(double));
    cs_tensor_to_f64(&e->desc.inputs[i], inputs[at * e->desc.n_inputs + i], doubles[i]);
  }
  cs_status st = cs_reference_run(&e->desc, (const double *const *)doubles, weight, bias,
                                  e->value + at * e->elements, e->magnitude + at * e->elements, 1);
  for (int i = 0; i < e->desc.n_inputs; i++) free(doubles[i]);
  return st;
}

static inline cs_status fake_expected_create(cs_backend *backend, const cs_op_desc *desc,
                                             const void *const *inputs, int n, const float *weight,
                                             const float *bias, cs_expected **out) {
  fake_backend *fake = fake_of(backend);
  if (fake->expects_nothing) return cs_error(CS_CODE_NO_MEMORY, "out of fake device memory");
  cs_expected *e = cs_calloc(1, sizeof *e);
  *e = (cs_expected){.backend = fake, .desc = *desc, .n = n};
  CS_RETURN_IF_ERROR(cs_shape_elements(&desc->output.shape, &e->elements));
  e->value = cs_calloc((size_t)(n * e->elements), sizeof(double));
  e->magnitude = cs_calloc((size_t)(n * e->elements), sizeof(double));
  for (int i = 0; i < n; i++) CS_RETURN_IF_ERROR(fake_expect_one(e, i, inputs, weight, bias));
  fake->expected++;
  *out = e;
  return CS_OK;
}

static inline cs_status fake_expected_compare(cs_expected *e, const void *const *outputs,
                                              int gap_byte, cs_compared *out) {
  CS_RETURN_IF_ERROR(fake_broken(e->backend));
  size_t span = (size_t)cs_tensor_span_bytes(&e->desc.output);
  float *result = cs_calloc((size_t)e->elements, sizeof *result);
  unsigned char *alone = malloc(span); /* the elements, and the gap's byte between them */
  for (int i = 0; i < e->n; i++) {
    cs_tensor_to_f32(&e->desc.output, outputs[i], result);
    memset(alone, gap_byte, span);
    cs_tensor_from_f32(&e->desc.output, result, alone);
    out[i].error = cs_measure_error(result, e->value + i * e->elements,
                                    e->magnitude + i * e->elements, e->elements);
    out[i].gaps_kept = memcmp(alone, outputs[i], span) == 0;
  }
  free(result);
  free(alone);
  e->backend->compared++;
  return CS_OK;
}

static const cs_backend_vtable fake_comparing_vtable = {
    FAKE_VTABLE, .expected_create = fake_expected_create, .expected_destroy = fake_expected_destroy,
    .expected_compare = fake_expected_compare};

#endif
