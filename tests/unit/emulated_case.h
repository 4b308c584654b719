/* A case of conformance_cases.h for a kernel that runs on the host: its tensors, what the plain C
 * reference makes of them, and the comparison. */
#ifndef CONVSCHED_TESTS_UNIT_EMULATED_CASE_H_
#define CONVSCHED_TESTS_UNIT_EMULATED_CASE_H_

#include <math.h>

#include "backend/reference/reference.h"
#include "conformance_cases.h"

static inline void *zeros(int64_t bytes) {
  void *memory = calloc(1, (size_t)(bytes > 0 ? bytes : 1));
  if (!memory) abort();
  return memory;
}

static inline int64_t elements_of(const cs_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++) n *= shape->dims[i];
  return n;
}

static inline float *random_values(int64_t n, uint64_t stream, double deviation, cs_dtype dtype) {
  float *values = zeros(n * (int64_t)sizeof(float));
  cs_rng rng;
  cs_rng_init(&rng, 77, stream);
  cs_rng_fill_normal(&rng, values, n, 0.0, deviation);
  cs_round_to_dtype(dtype, values, n);
  return values;
}

/* A case with its inputs, parameters and what the reference makes of them. */
typedef struct emulated {
  const conformance_case *c;
  unsigned char *input, *output, *untouched; /* untouched: the output as it was */
  float *weight, *bias;
  double *value, *magnitude;
  int64_t elements;
} emulated;

static inline emulated emulated_of(const conformance_case *c) {
  const cs_op_desc *d = &c->desc;
  emulated e = {.c = c, .elements = elements_of(&d->output.shape)};
  uint64_t stream = cs_hash_string(CS_HASH_SEED, c->name);
  int64_t n = elements_of(&d->inputs[0].shape), doubles = (int64_t)sizeof(double);
  float *x = random_values(n, stream, 1.0, d->inputs[0].dtype);
  double *wide = zeros(n * doubles);
  for (int64_t i = 0; i < n; i++) wide[i] = (double)x[i];
  e.input = zeros(c->inputs[0].bytes);
  memset(e.input, 0xFF, (size_t)c->inputs[0].bytes);
  cs_tensor_from_f32(&d->inputs[0], x, e.input + c->inputs[0].offset);
  e.weight = random_values(cs_op_weight_elements(d), stream + 7,
                           1.0 / sqrt((double)cs_op_reduction(d)), d->output.dtype);
  if (d->has_bias) e.bias = random_values(cs_op_bias_elements(d), stream + 8, 0.5, d->output.dtype);
  e.output = zeros(c->output.bytes), e.untouched = zeros(c->output.bytes);
  memset(e.untouched, 0xFF, (size_t)c->output.bytes);
  e.value = zeros(e.elements * doubles), e.magnitude = zeros(e.elements * doubles);
  const double *inputs[CS_MAX_OP_INPUTS] = {wide};
  cs_status st = cs_reference_run(d, inputs, e.weight, e.bias, e.value, e.magnitude, 0);
  if (st != CS_OK) abort();
  free(x);
  free(wide);
  return e;
}

static inline void emulated_free(emulated *e) {
  free(e->input);
  free(e->output);
  free(e->untouched);
  free(e->weight);
  free(e->bias);
  free(e->value);
  free(e->magnitude);
}

static inline int complain(const emulated *e, const char *id, const char *what) {
  fprintf(stderr, "FAIL %s %s: %s\n", e->c->name, id, what);
  return 1;
}

/* The output against the reference, and what lies between its elements against what was there. */
static inline int judge(const emulated *e, const char *id) {
  const cs_op_desc *d = &e->c->desc;
  float *out = zeros(e->elements * (int64_t)sizeof(float));
  cs_tensor_to_f32(&d->output, e->output + e->c->output.offset, out);
  double rel_l2, max_scaled;
  cs_tolerance(d, 0, &rel_l2, &max_scaled);
  cs_error_measure m = cs_measure_error(out, e->value, e->magnitude, e->elements);
  char text[160];
  snprintf(text, sizeof text, "rel_l2 %.3g (limit %.3g), max_scaled %.3g (limit %.3g)%s", m.rel_l2,
           rel_l2, m.max_scaled, max_scaled, m.finite ? "" : ", not finite");
  int failures = 0;
  if (!m.finite || m.rel_l2 > rel_l2 || m.max_scaled > max_scaled)
    failures += complain(e, id, text);
  unsigned char *expected = zeros(e->c->output.bytes);
  memcpy(expected, e->untouched, (size_t)e->c->output.bytes);
  cs_tensor_from_f32(&d->output, out, expected + e->c->output.offset);
  if (memcmp(expected, e->output, (size_t)e->c->output.bytes) != 0)
    failures += complain(e, id, "writes between the elements of the output");
  free(expected);
  free(out);
  return failures;
}

#endif
